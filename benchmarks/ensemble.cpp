// 10^4 replicas of the Duffing-linear pair (arXiv 2603.16424), six inner iterations: an ensemble
// beside as many steppers of their own, stepped one after another, and on two threads beside one.
// Ledger and guard are on, as by default, or off, as noted.

#include "portwave/runtime/ensemble/ensemble.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "report.hpp"

namespace {

using namespace portwave;
using namespace portwave::bench;

constexpr int kReplicas = 10000;
constexpr int kSteps = 20;  // of a turn: a whole roll-out, or each stepper so often

System make_pair(double initial_m = 0.4) {
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

StepperOptions options(bool guard, Certify certify) {
  StepperOptions options{.method = WaveCoupling{}};
  options.step_s = 0.01;
  options.method.waves().iterations = 6;
  options.method.waves().impedance = {0.4};
  options.method.waves().guard = guard;
  options.certify = certify;
  return options;
}

std::vector<double> starts(int replicas) {
  std::vector<double> x0;
  for (int i = 0; i < replicas; ++i) {
    const double q = 0.4 - 0.3 * i / replicas;
    for (const double value : {q, 0.0, -q, 0.0, 0.0}) x0.push_back(value);
  }
  return x0;
}

/// The number of states of some replicas that differ from those of steppers of their own.
int differences(const StepperOptions& options, double off) {
  constexpr int kChecked = 300, kLong = 400;
  const System system = make_pair();
  Ensemble ensemble(system, kChecked, options, {.threads = 2});
  const std::vector<double> x0 = starts(kChecked);
  std::vector<double> x(static_cast<std::size_t>(kChecked) * 5);
  ensemble.rollout(x0, {}, kLong, x, {.every = kLong});
  int count = 0;
  for (int i = 0; i < kChecked; i += 7) {
    const System own = make_pair(x0[static_cast<std::size_t>(i) * 5] * (1.0 + off));
    Stepper stepper(own, options);
    stepper.step(kLong);
    for (std::size_t k = 0; k < 5; ++k) {
      const double alone = k < 3 ? stepper.state(0)[k] : stepper.state(1)[k - 3];
      count += alone == x[static_cast<std::size_t>(i) * 5 + k] ? 0 : 1;
    }
  }
  return count;
}

void require(const char* what, bool holds) {
  if (!holds) throw std::runtime_error(what);
}

struct Setting {
  std::string name;
  bool guard;
  Certify certify;
};

void compare(const Report& report, const Setting& setting) {
  const StepperOptions own = options(setting.guard, setting.certify);
  require("replicas differ from steppers of their own", differences(own, 0.0) == 0);
  require("the check saw nothing wrong", differences(own, 1e-15) > 0);
  const System system = make_pair();
  const std::vector<double> x0 = starts(kReplicas);
  std::vector<System> systems;
  systems.reserve(kReplicas);
  std::vector<Stepper> steppers;
  steppers.reserve(kReplicas);
  for (int i = 0; i < kReplicas; ++i) {
    systems.push_back(make_pair(x0[static_cast<std::size_t>(i) * 5]));
    steppers.emplace_back(systems.back(), own);
  }
  Stepper hot(system, own);  // one pair, whose numbers stay in the nearest cache
  std::vector<Snapshot> begun;
  for (const Stepper& stepper : steppers) begun.push_back(stepper.snapshot());
  // Ensembles that run on, and ensembles that start again every time.
  Ensemble one(system, kReplicas, own), two(system, kReplicas, own, {.threads = 2});
  Ensemble rolled(system, kReplicas, own), rolled_by_two(system, kReplicas, own, {.threads = 2});
  for (int i = 0; i < kReplicas; ++i) {
    const std::span start(x0.data() + static_cast<std::size_t>(i) * 5, 5);
    one.set_state(i, start);
    two.set_state(i, start);
  }
  std::vector<Stepper> again;
  again.reserve(kReplicas);
  for (int i = 0; i < kReplicas; ++i) again.emplace_back(systems[static_cast<std::size_t>(i)], own);
  std::vector<double> last(static_cast<std::size_t>(kReplicas) * 5), rows(last.size() * kSteps);
  std::vector<Timer> contenders = {
      timed([&] { one.step(kSteps); }),
      timed([&] { two.step(kSteps); }),
      timed([&] {
        for (Stepper& stepper : steppers) stepper.step(kSteps);
      }),
      timed([&] { rolled.rollout(x0, {}, kSteps, last, {.every = kSteps}); }),
      timed([&] { rolled.rollout(x0, {}, kSteps, rows); }),
      timed([&] { hot.step(kReplicas); }),
      timed([&] { rolled_by_two.rollout(x0, {}, kSteps, last, {.every = kSteps}); }),
      timed([&] {
        for (std::size_t i = 0; i < steppers.size(); ++i) {
          again[i].restore(begun[i]);
          again[i].step(kSteps);
        }
      }),
  };
  const Contest contest = take_turns(contenders, {.rounds = 11, .turn_s = 1e-3});
  const std::string set = fmt::format("{}; {}", to_string(instruction_set()), one.execution());
  const auto name = [&](const char* what) {
    return fmt::format("ensemble/{}/{}", setting.name, what);
  };
  const bool has_goal = setting.name != "bare";
  const auto goal = [&](double value) { return has_goal ? std::optional(value) : std::nullopt; };
  report.add({.name = name("beside_steppers"), .goal = goal(4.0), .note = set}, contest, 0, 2);
  report.add({.name = name("two_threads"), .goal = goal(1.8), .note = set}, contest, 1, 0);
  report.add({.name = name("rollouts_beside_steppers"), .goal = goal(4.0), .note = set}, contest, 3,
             7);
  report.add({.name = name("rollouts_on_two_threads"), .goal = goal(1.8), .note = set}, contest, 6,
             3);
  report.add(
      {.name = name("rollout_of_all_rows_beside_last"), .sense = Sense::at_most, .note = set},
      contest, 4, 3);
  std::vector<double> per_step_ns, rate, cached;
  for (std::size_t i = 0; i < contest.seconds(0).size(); ++i) {
    const double each = contest.seconds(0)[i] / (static_cast<double>(kReplicas) * kSteps);
    per_step_ns.push_back(each * 1e9);
    rate.push_back(1e-6 / each);
    cached.push_back(contest.seconds(5)[i] / kReplicas / each);
  }
  report.add({.name = name("replica_step"), .sense = Sense::at_most, .note = set}, per_step_ns,
             "ns");
  report.add({.name = name("rate"), .note = set}, rate, "million replica-steps per second");
  std::int64_t uses = 0;
  for (int i = 0; i < kReplicas; ++i) uses += rolled.status(i).guard.uses;
  report.add({.name = name("guard_uses_per_rolled_step"), .sense = Sense::at_most, .note = set},
             {static_cast<double>(uses) / kReplicas / kSteps}, "");
  report.add({.name = name("beside_one_stepper_in_cache"), .note = set}, cached, "times");
}

}  // namespace

int main(int argc, char** argv) try {
  const Report report("ensemble", 3);
  if (report.only_lists(argc, argv)) return 0;
  compare(report, {"guard", true, Certify::energy});
  compare(report, {"ledger", false, Certify::energy});
  compare(report, {"bare", false, Certify::none});
  return 0;
} catch (const std::exception& error) {
  fmt::print(stderr, "ensemble: {}\n", error.what());
  return 1;
}
