// What it costs to change a parameter of one part between two steps: a ring of 500 cells, each a mass, a
// spring with a damper, a Duffing oscillator on the mass and dry friction under it, on one thread. And what the
// step after 40 changes takes, in steps of the same system: impedances that follow the state are checked in it,
// and a few islands take new factors.

#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "friction_ring.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;
using portwave::Scenario;
using portwave::Stepper;

struct Parameter {
  const char* part;
  const char* name;
  double value;
};

constexpr Parameter kParameters[] = {{"mass", "mass_kg", 2.0},
                                     {"spring", "stiffness_N_per_m", 40.0},
                                     {"duffing", "stiffness_N_per_m", 30.0},
                                     {"friction", "friction_N", 0.3}};

void compare(const Report& report, const std::string& which, bool varied) {
  Scenario scenario = friction_ring(varied);
  portwave::StepperOptions options = scenario.options;
  options.threads = 1;
  Stepper stepper(std::move(scenario.system), options);
  stepper.step(20);
  fmt::print(stderr, "{}: {}, {} J\n", which, stepper.execution(), stepper.energy().final_J);
  for (const Parameter& own : kParameters) {
    int n = 0;
    const auto change = [&] {
      const int cell = n++ * 37 % kCells;
      portwave::set_parameter(stepper, scenario, fmt::format("{}{}.{}", own.part, cell, own.name),
                              own.value * (1.0 + 1e-4 * (n % 100)));
    };
    const Timer changes = processor_timed(change), steps = processor_timed([&] { stepper.step(); });
    std::vector<double> us, more;
    for (int round = 0; round < 15; ++round) {
      const double alone_s = steps(4) / 4;
      us.push_back(changes(40) / 40 * 1e6);
      more.push_back(steps(1) / alone_s);
    }
    const std::string note(portwave::to_string(portwave::instruction_set()));
    report.add({.name = fmt::format("parameters/{}/{}", which, own.part),
                .sense = Sense::at_most,
                .goal = 20.0,
                .note = note},
               us, "us");
    report.add({.name = fmt::format("parameters/{}/{}/next_step", which, own.part),
                .sense = Sense::at_most,
                .note = note},
               more, "steps");
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("parameters", 1);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, "equal", false);
  compare(report, "different", true);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "parameters: {}\n", error.what());
  return 1;
}
