// One macro-step of the Duffing–linear pair (arXiv 2603.16424), K inner iterations, serial: the
// general engine beside three hand-written loops for this pair alone (peers/pair_loop.hpp).

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "peers/pair_loop.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "report.hpp"

namespace {

using namespace portwave::bench;

constexpr int kSteps = 1000;  // 10 s
constexpr double kTolerance = 1e-6;

portwave::System make_pair(double initial_m = 0.4) {
  using namespace portwave;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8,
                                  .stiffness_N_per_m = 100,
                                  .cubic_stiffness_N_per_m3 = 8000,
                                  .coupling_stiffness_N_per_m = 120,
                                  .coupling_damping_Ns_per_m = 0.05}),
              {.initial_state = {initial_m, 0, -initial_m}});
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

portwave::StepperOptions options(int iterations) {
  portwave::StepperOptions options{.method = portwave::WaveCoupling{}};
  options.step_s = PairSetting{}.step_s;
  options.method.waves().iterations = iterations;
  options.method.waves().impedance = {PairSetting{}.impedance_Ns_per_m};
  options.method.waves().guard = false;  // the published method, as the loops
  return options;
}

struct Loop {
  std::string name;
  PairFactory* make;
  std::optional<double> goal_at_2, goal_at_20;

  std::optional<double> goal(int iterations) const {
    return iterations == 2 ? goal_at_2 : iterations == 20 ? goal_at_20 : std::nullopt;
  }
};
const std::vector<Loop> kLoops = {{"warm_loop", warm_pair, 1.8, 1.4},
                                  {"series_loop", series_pair, 1.8, 1.4},
                                  {"plain_loop", plain_pair, {}, 0.6}};
/// Of a step without iterations and without the ledger, over the first loop: what a step costs at all.
constexpr double kGoalBare = 1.5;

/// Largest difference of (q1, q2) over 10 s, against the largest of them.
double difference(const portwave::System& system, PairFactory* make, int iterations) {
  portwave::Stepper engine(system, options(iterations));
  const auto loop = make(PairSetting{});
  double worst = 0.0, scale = 0.0;
  for (int n = 0; n < kSteps; ++n) {
    engine.step();
    loop->step(iterations);
    const double q1 = engine.state("A")[0], q2 = engine.state("B")[0];
    const double off = std::max(std::abs(q1 - loop->q1()), std::abs(q2 - loop->q2()));
    if (!std::isfinite(off)) return HUGE_VAL;
    worst = std::max(worst, off);
    scale = std::max({scale, std::abs(q1), std::abs(q2)});
  }
  return worst / scale;
}

void require(const std::string& name, double difference, bool agrees) {
  fmt::print(stderr, "  {:32} {:.1e}\n", name, difference);
  if ((difference <= kTolerance) == agrees) return;
  throw std::runtime_error(name + (agrees ? ": wrong answer" : ": the check saw nothing wrong"));
}

void compare(const Report& report, const portwave::System& system, int iterations) {
  portwave::Stepper engine(system, options(iterations));
  std::vector<Timer> contenders = {processor_timed([&engine] { engine.step(); })};
  std::vector<std::unique_ptr<PairLoop>> loops;
  std::vector<std::string> notes;
  for (const Loop& loop : kLoops) {
    const double off = difference(system, loop.make, iterations);
    require(fmt::format("K={} {}", iterations, loop.name), off, true);
    notes.push_back(fmt::format("{}; Certify::energy; trajectories differ by {:.1e} over 10 s",
                                to_string(portwave::instruction_set()), off));
    loops.push_back(loop.make({}));
    contenders.push_back(processor_timed([&l = *loops.back(), iterations] { l.step(iterations); }));
  }
  portwave::StepperOptions bare = options(iterations);
  bare.certify = portwave::Certify::none;
  portwave::Stepper without(system, bare);
  contenders.push_back(processor_timed([&without] { without.step(); }));
  const Contest contest = take_turns(contenders, {.rounds = 51, .turn_s = 1e-3});
  for (std::size_t i = 0; i < kLoops.size(); ++i) {
    report.add({.name = fmt::format("pair/K={}/{}", iterations, kLoops[i].name),
                .sense = Sense::at_most,
                .goal = kLoops[i].goal(iterations),
                .note = notes[i]},
               contest, 0, i + 1);
  }
  report.add({.name = fmt::format("pair/K={}/no_ledger/warm_loop", iterations),
              .sense = Sense::at_most,
              .goal = iterations == 0 ? std::optional(kGoalBare) : std::nullopt,
              .note = fmt::format("{}; Certify::none", to_string(portwave::instruction_set()))},
             contest, kLoops.size() + 1, 1);
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("pair", 5);
  if (report.only_lists(argc, argv)) return 0;
  const portwave::System system = make_pair();
  require("start 1e-4 off (control)", difference(make_pair(0.4 * (1 + 1e-4)), warm_pair, 20),
          false);
  for (const int iterations : {0, 1, 2, 5, 20, 50}) compare(report, system, iterations);
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "pair: {}\n", error.what());
  return 1;
}
