// What it costs to run an FMU in a process of its own: a step of a mass on a spring, both FMUs, beside the same in this
// process; and a process more for each instance at the start. The FMUs are the small C models of examples/fmu, whose
// own steps take some 10 ns, so that what is measured is the way there and back.

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/adapters/fmu.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "report.hpp"

namespace {

using namespace portwave;
using namespace portwave::bench;

FmuPart part(const char* file, FmuPort port, std::map<std::string, FmuValue> start,
             bool in_process) {
  FmuPartOptions options;
  options.file = std::filesystem::path(PORTWAVE_BENCHMARK_FMUS) / file;
  options.ports = {std::move(port)};
  options.start = std::move(start);
  options.step_s = 0.01;
  options.process = in_process;
  options.time_limit_s = 60.0;
  return make_fmu_part(options);
}

System pair(bool in_process) {
  SystemBuilder builder;
  builder.add("mass",
              part("mass.fmu", {.name = "flange", .effort = "F", .flow = "v", .integral = "x"},
                   {{"m", 1.0}, {"x0", 0.1}}, in_process)
                  .component);
  builder.add("spring",
              part("spring.fmu",
                   {.name = "flange", .effort = "F", .flow = "v", .input = Causality::flow_in},
                   {{"k", 4e4}, {"d", 4.0}, {"x0", 0.1}}, in_process)
                  .component);
  builder.join(joint::CommonFlow{}, {"mass.flange", "spring.flange"});
  return builder.build();
}

StepperOptions with_iterations(int count) {
  StepperOptions options{.method = CouplingMethod::automatic()};
  options.step_s = 0.01;
  options.method.waves().iterations = count;
  options.method.waves().tolerance = 0.0;
  options.method.waves().tank.initial_J = 1e3;
  return options;
}

/// Both give the same bits.
void check(const System& here, const System& there, const StepperOptions& options) {
  Stepper a(here, options), b(there, options);
  a.step(200);
  b.step(200);
  for (int part = 0; part < 2; ++part) {
    const auto x = a.state(part), y = b.state(part);
    if (!std::equal(x.begin(), x.end(), y.begin(), y.end())) {
      throw std::runtime_error("an FMU in a process gives other numbers");
    }
  }
}

void measure_steps(const Report& report) {
  const System here = pair(false), there = pair(true);
  for (const int iterations : {1, 4}) {
    const StepperOptions options = with_iterations(iterations);
    check(here, there, options);
    Stepper a(here, options), b(there, options);
    a.step(100);
    b.step(100);
    const Contest contest =
        take_turns({timed([&] { a.step(); }), timed([&] { b.step(); })}, {.turn_s = 2e-2});
    const double more_us = contest.median_us(1) - contest.median_us(0);
    report.add({.name = fmt::format("fmu_process/step_K{}_over_in_process", iterations),
                .sense = Sense::at_most,
                .note = fmt::format("two FMUs, each two doSteps in a step: {:.1f} us more for each "
                                    "FMU and step",
                                    0.5 * more_us)},
               contest, 1, 0);
  }
}

void measure_start(const Report& report) {
  const Contest contest =
      take_turns({timed([] { pair(false); }), timed([] { pair(true); })}, {.rounds = 15});
  report.add({.name = "fmu_process/start_over_in_process",
              .sense = Sense::at_most,
              .note = fmt::format("unpacking, start and end of two FMUs: {:.2g} ms more for each",
                                  0.5e-3 * (contest.median_us(1) - contest.median_us(0)))},
             contest, 1, 0);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("fmu_process", 1);
  if (report.only_lists(argc, argv)) return 0;
  if (!has_fmi()) {
    fmt::print(stderr, "fmu_process: portwave was built without FMI\n");
    return 0;
  }
  measure_steps(report);
  measure_start(report);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "fmu_process: {}\n", error.what());
  return 1;
}
