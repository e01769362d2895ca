// What it costs to change a parameter of one part between two steps: a ring of 500 cells, each a mass, a
// spring with a damper, a Duffing oscillator on the mass and dry friction under it, on one thread. And what the
// step after 40 changes takes, in steps of the same system: impedances that follow the state are checked in it,
// and a few islands take new factors. And what a step takes before which one parameter changes every time, by a signal
// and by a program, beside steps without.

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "friction_ring.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/signals/block.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
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

/// Steppers of one system: without changes, with one that a program makes before every step, and with one that
/// follows a signal.
void follow(const Report& report, const std::string& which, bool varied) {
  for (const Parameter& own : kParameters) {
    const std::string part = fmt::format("{}7", own.part);
    const auto value = [&](double t) { return own.value * (1.0 + 0.2 * std::sin(20.0 * t)); };
    Scenario still = friction_ring(varied), set = friction_ring(varied),
             driven = friction_ring(varied);
    portwave::SignalGraphBuilder graph(driven.system);
    graph.block("value",
                portwave::block::source(
                    portwave::Signal::expression(fmt::format("{}*(1 + 0.2*sin(20*t))", own.value))),
                {});
    graph.actuate_parameter("value", driven.system.find_part(part), own.name);
    driven.options.signals = std::make_shared<const portwave::SignalGraph>(graph.build());
    for (Scenario* const each : {&still, &set, &driven}) each->options.threads = 1;
    Stepper unchanged(std::move(still.system), still.options);
    Stepper looped(std::move(set.system), set.options);
    Stepper following(std::move(driven.system), driven.options);
    const auto slot = portwave::find_parameter(looped, set, fmt::format("{}.{}", part, own.name));
    const auto in_loop = [&] {
      portwave::set_parameter(looped, set, slot, value(looped.time_s()));
      looped.step();
    };
    for (int n = 0; n < 20; ++n) {
      unchanged.step();
      in_loop();
      following.step();
    }
    const double off = std::abs(following.energy().final_J - looped.energy().final_J);
    // A mass keeps its momentum where it follows a signal, and its velocity where a program sets it.
    const double tolerance = own.part == std::string("mass") ? 1e-2 : 1e-9;
    if (!(off <= tolerance * looped.energy().final_J))
      throw std::runtime_error("they step differently");
    const Contest contest =
        take_turns({processor_timed([&] { unchanged.step(); }), processor_timed(in_loop),
                    processor_timed([&] { following.step(); })},
                   {.rounds = 31, .turn_s = 8e-3});
    const std::string name = fmt::format("parameters/{}/{}/every_step", which, own.part);
    const std::string note =
        fmt::format("{:.0f} us without, {:.0f} in a loop, {:.0f} by a signal", contest.median_us(0),
                    contest.median_us(1), contest.median_us(2));
    report.add({.name = name + "/loop", .sense = Sense::at_most, .note = note}, contest, 1, 0);
    report.add({.name = name + "/signal", .sense = Sense::at_most, .note = note}, contest, 2, 0);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("parameters", 1);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, "equal", false);
  compare(report, "different", true);
  follow(report, "equal", false);
  follow(report, "different", true);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "parameters: {}\n", error.what());
  return 1;
}
