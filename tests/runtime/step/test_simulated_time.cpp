// Steps under a deadline in simulated time: what work takes is given, so that runs can be repeated to the bit.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "parallel/clock.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "step/waves/deadline_rehearsal.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_simulated_time {
namespace {

constexpr double kUs = 1e-6;

WorkCosts costs_of(double evaluation, double commit, double solve, double linearise) {
  WorkCosts costs{};
  cost(costs, Work::first_evaluation) = cost(costs, Work::evaluation) = evaluation;
  cost(costs, Work::commit) = commit;
  cost(costs, Work::solve) = solve;
  cost(costs, Work::linearise) = linearise;
  return costs;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> all;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    const auto own = stepper.state(part);
    all.insert(all.end(), own.begin(), own.end());
  }
  return all;
}

TEST(SimulatedTime, StandsStillButForWork) {
  const Clock::time_point before = Clock::now();
  SimulatedTime time(costs_of(3 * kUs, 5 * kUs, 0.0, 0.0));
  EXPECT_EQ(Clock::now(), Clock::now());
  const Clock::time_point start = Clock::now();
  Clock::spend(Work::evaluation, 2.0);
  Clock::spend(Work::commit);
  EXPECT_NEAR(seconds(Clock::now() - start), 11 * kUs, 1e-8);
  EXPECT_LT(Clock::now(), before) << "control: the clock of the machine is not at its beginning";
  {
    const SimulatedTime within(costs_of(kUs, 0.0, 0.0, 0.0));
    Clock::spend(Work::evaluation);
  }
  EXPECT_NEAR(seconds(Clock::now() - start), 11 * kUs, 1e-8) << "another one leaves no trace";
}

/// Duffing oscillators on a grid, whose interface equations are solved under a deadline of 150 µs. With the factors there
/// are steps converge in that; new ones, which take 86, a solve with them and an evaluation after it do not fit.
struct Recovered {
  int before = 0, after = 0;  ///< of 40 steps each, those that converged
};
Recovered steps_around_a_jump(double linearise_us) {
  const System system = testing::duffing_grid(3, 3);
  StepperOptions options{.step_s = 0.1, .method = WaveCoupling{.kind = WaveUpdate::interface}};
  options.method.waves().iterations = 50;
  options.method.waves().tolerance = 1e-8;
  options.method.waves().impedance = {3.0};
  options.time.deadline_s = 150 * kUs;
  options.executor = ExecutorKind::serial;
  options.threads = 1;
  SimulatedTime time(costs_of(10 * kUs, 15 * kUs, 12 * kUs, linearise_us * kUs));
  Stepper stepper(system, options);
  Recovered out;
  for (int n = 0; n < 40; ++n) out.before += stepper.step().converged ? 1 : 0;
  std::vector<double> far = states_of(stepper);
  for (std::size_t i = 0; i < far.size(); ++i) far[i] = i % 2 == 0 ? 6.0 : -3.0;
  stepper.set_states(far);
  for (int n = 0; n < 40; ++n) out.after += stepper.step().converged ? 1 : 0;
  return out;
}

TEST(SimulatedTime, CostsVaryByTheirSpreadAlwaysInTheSameOrder) {
  WorkCosts spreads{};
  cost(spreads, Work::evaluation) = 0.5 * kUs;
  const auto spent = [&] {
    SimulatedTime time(costs_of(3 * kUs, 5 * kUs, 0.0, 0.0), spreads);
    std::vector<double> out;
    for (int i = 0; i < 1000; ++i) {
      const double before_s = time.now_s();
      Clock::spend(Work::evaluation);
      out.push_back(time.now_s() - before_s);
    }
    return out;
  };
  const std::vector<double> own = spent();
  EXPECT_EQ(own, spent());
  double sum = 0.0, squares = 0.0;
  for (const double one : own) sum += one;
  for (const double one : own) squares += std::pow(one - sum / 1000.0, 2);
  EXPECT_NEAR(sum / 1000.0, 3 * kUs, 0.05 * kUs);
  EXPECT_NEAR(std::sqrt(squares / 1000.0), 0.5 * kUs, 0.05 * kUs);
}

TEST(SimulatedTime, StepsConvergeAgainWhereFactorsHaveAStepOfTheirOwn) {
  const Recovered recovered = steps_around_a_jump(86.0);
  EXPECT_GE(recovered.before, 36);
  EXPECT_GE(recovered.after, 35);
  const Recovered control = steps_around_a_jump(1000.0);
  EXPECT_LE(control.after, 5) << "control: without new factors";
}

TEST(SimulatedTime, AFirstStepHasWavesToStartFrom) {
  // Three evaluations fit beside the commit; from no waves at all some ten are needed.
  const System system =
      parse_scenario(generate_scenario(network::Grid{.rows = 8, .columns = 8}), "grid.json", ".")
          .system;
  const auto lost_share = [&](bool has_waves) {
    StepperOptions options{.step_s = 1e-2,
                           .method = WaveCoupling{.kind = WaveUpdate::peaceman_rachford}};
    options.method.waves().impedance_kind = ImpedanceKind::leaf;
    options.method.waves().tolerance = 1e-10;
    options.method.waves().iterations = 200;
    options.time.deadline_s = 40 * kUs;
    options.executor = ExecutorKind::serial;
    options.threads = 1;
    const SimulatedTime time(costs_of(8 * kUs, 15 * kUs, 10 * kUs, 30 * kUs));
    Stepper stepper(system, options);
    if (!has_waves) stepper.set_states(states_of(stepper));  // waves begin anew
    const StepReport report = stepper.step();
    EXPECT_LE(report.iterations, 3);
    return std::abs(stepper.energy().mismatch_J) / stepper.energy().initial_J;
  };
  EXPECT_LE(lost_share(true), 1e-9);
  EXPECT_GE(lost_share(false), 1e-5) << "control: without waves";
}

TEST(SimulatedTime, AFirstStepKnowsWhatItsWorkTakes) {
  // A thousandth of what parts declare: by that no commit, let alone an evaluation, would fit.
  const System system =
      parse_scenario(generate_scenario(network::Grid{.rows = 8, .columns = 8}), "grid.json", ".")
          .system;
  const auto first_evaluations = [&](double deadline_s) {
    StepperOptions options{.step_s = 1e-2,
                           .method = WaveCoupling{.kind = WaveUpdate::peaceman_rachford}};
    options.method.waves().impedance_kind = ImpedanceKind::leaf;
    options.method.waves().iterations = 200;
    options.time.deadline_s = deadline_s;
    options.executor = ExecutorKind::serial;
    options.threads = 1;
    const SimulatedTime time(costs_of(0.008 * kUs, 0.015 * kUs, 0.01 * kUs, 0.03 * kUs));
    Stepper stepper(system, options);
    return stepper.step().iterations;
  };
  EXPECT_GE(first_evaluations(0.06 * kUs), 3);
  EXPECT_EQ(first_evaluations(0.016 * kUs), 0) << "control: there is no time for any";
}

/// A run at a pace in which a step has 100 µs and takes about 50, and the processor is lost now and then for six steps.
struct Paced {
  int without_evaluation = 0, converged = 0;
  double behind_s = 0.0;  ///< at the end
  DeadlineScheduler::Statistics statistics;
};
Paced paced_run(bool is_held_up) {
  constexpr int kSteps = 400, kEvery = 25, kLast = 350;
  const System system =
      parse_scenario(generate_scenario(network::Chain{.blocks = 48}), "chain.json", ".").system;
  StepperOptions options{.step_s = 1e-3,
                         .method = WaveCoupling{.kind = WaveUpdate::peaceman_rachford}};
  options.method.waves().impedance_kind = ImpedanceKind::leaf;
  options.method.waves().tolerance = 1e-10;
  options.method.waves().iterations = 200;
  options.time.pace = 10.0;
  options.executor = ExecutorKind::serial;
  options.threads = 1;
  SimulatedTime time(costs_of(10 * kUs, 15 * kUs, 10 * kUs, 30 * kUs));
  Stepper stepper(system, options);
  Paced out;
  double begin_s = 0.0;
  for (int n = 0; n < kSteps; ++n) {
    if (is_held_up && n < kLast && n % kEvery == kEvery - 1) Clock::spend(Work::commit, 40.0);
    const StepReport report = stepper.step();
    if (n == 0) begin_s = time.now_s();
    out.without_evaluation += report.iterations == 0 ? 1 : 0;
    out.converged += report.converged ? 1 : 0;
  }
  out.behind_s = time.now_s() - begin_s - (kSteps - 1) * 100 * kUs;
  out.statistics = stepper.deadline().value();
  return out;
}

// What is left of the period makes up for a late step, and the schedule is kept in the end.
TEST(SimulatedTime, AStepThatBeginsLateHasHalfOfItsPeriod) {
  const Paced own = paced_run(true), control = paced_run(false);
  EXPECT_EQ(own.without_evaluation, 0);
  EXPECT_GE(own.statistics.misses, 14) << "it is told";
  EXPECT_LE(own.behind_s, 50 * kUs) << "and made up for";
  EXPECT_GE(own.converged, 200);
  EXPECT_EQ(control.without_evaluation, 0);
  EXPECT_EQ(control.statistics.misses, 0);
  EXPECT_EQ(control.converged, 400);
}

/// Trials of the guard in a step that needs many, 66 steps after one in which it took so many times as long as usual.
std::int64_t trials_of_guard(double times_as_long, double deadline_us = 60.0) {
  constexpr int kLost = 2, kStep = 68;  // in these it acts
  const System system = testing::duffing_linear_pair();
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.method.waves().impedance = {0.5};
  options.method.waves().iterations = 0;
  options.method.waves().tank.initial_J = 0.0;
  options.method.waves().initial_waves = {0.7, -0.4};
  options.time.deadline_s = deadline_us * kUs;
  options.executor = ExecutorKind::serial;
  options.threads = 1;
  const WorkCosts costs = costs_of(kUs, kUs, kUs, kUs);
  const WorkCosts held = costs_of(kUs, times_as_long * kUs, kUs, kUs);
  const SimulatedTime time(costs);
  Stepper stepper(system, options);
  std::int64_t before = 0;
  for (int n = 0; n <= kStep; ++n) {
    before = stepper.waves()->guard()->trials;
    const SimulatedTime own(n == kLost ? held : costs);
    stepper.step();
  }
  return stepper.waves()->guard()->trials - before;
}

TEST(SimulatedTime, TheGuardIsInAHurryOnlyForSomeTimeAfterALoss) {
  constexpr std::int64_t kMostInAHurry = PassivityGuard::kHurriedTrials + 2;
  EXPECT_GT(trials_of_guard(28.0), kMostInAHurry)
      << "its sums and a trial have filled the deadline once";
  EXPECT_GT(trials_of_guard(1.0), kMostInAHurry) << "control: without a loss";
  EXPECT_LE(trials_of_guard(1.0, 3.0), kMostInAHurry) << "control: in a hurry";
}

struct Outcome {
  double error = 0.0;
  double step_s = 0.0;
};

/// Of a run of a chain. `rule`: null: auto. No deadline: the converged one.
Outcome run(const System& system, const ImpedanceKind* rule, double deadline_s,
            const std::vector<double>* converged, std::vector<double>* states = nullptr) {
  constexpr int kSteps = 100;
  StepperOptions options{.step_s = 1e-3, .method = WaveCoupling::automatic(1e-10)};
  options.executor = ExecutorKind::serial;
  options.threads = 1;
  options.time.deadline_s = deadline_s;
  options.method.waves().iterations = 200;
  if (rule != nullptr) {
    options.method.waves().kind = WaveUpdate::peaceman_rachford;
    options.method.waves().impedance_kind = *rule;
  }
  SimulatedTime time(costs_of(8 * kUs, 20 * kUs, 10 * kUs, 30 * kUs));
  Stepper stepper(system, options);
  const double start_s = time.now_s();
  stepper.step(kSteps);
  const std::vector<double> own = states_of(stepper);
  Outcome out{.step_s = (time.now_s() - start_s) / kSteps};
  if (states != nullptr) *states = own;
  if (converged == nullptr) return out;
  double off = 0.0, size = 0.0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    off += std::pow(own[i] - (*converged)[i], 2);
    size += std::pow((*converged)[i], 2);
  }
  out.error = std::sqrt(off / size);
  return out;
}

TEST(SimulatedTime, AutoIsNearTheBestFixedRuleUnderEveryDeadline) {
  constexpr double kVisible = 1e-7;
  constexpr double kLeastUs = 20.5;  // a commit, which no deadline shortens
  const System system =
      parse_scenario(generate_scenario(network::Chain{.blocks = 48}), "chain.json", ".").system;
  std::vector<double> converged;
  const double step_s = run(system, nullptr, 1e3, nullptr, &converged).step_s;
  double last = HUGE_VAL, worst = 0.0;
  for (const double share : {0.1, 0.5, 0.8, 1.0, 1.5, 2.0}) {
    double best = HUGE_VAL, least = HUGE_VAL, most = 0.0;
    for (const ImpedanceKind rule :
         {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::adapted}) {
      const Outcome own = run(system, &rule, share * step_s, &converged);
      const double error = std::max(own.error, kVisible);
      const bool is_late = own.step_s > std::max(share * step_s, kLeastUs * kUs);
      if (!is_late) best = std::min(best, error);
      least = std::min(least, error);
      most = std::max(most, error);
    }
    worst = std::max(worst, most / least);
    const double own = std::max(run(system, nullptr, share * step_s, &converged).error, kVisible);
    EXPECT_LE(own, 1.5 * best) << share;
    EXPECT_LE(own, 1.5 * last) << share;
    last = own;
  }
  EXPECT_GT(worst, 1.2) << "control: rules are told apart";
}

TEST(SimulatedTime, WhereNothingIsInTimeAnErrorMustBeWorthTheLengthOfTheSteps) {
  // As measured on a network of 2000 parts whose commit alone is late: the guard made three commits more.
  const WayTrial quick{.error = 0.16, .missed = 1.0, .length = 1.1};
  WayTrial slow{.error = 0.04, .missed = 1.0, .length = 4.2};
  EXPECT_TRUE(is_better(quick, slow));
  EXPECT_FALSE(is_better(slow, quick));
  slow.error = 0.004;
  EXPECT_TRUE(is_better(slow, quick)) << "that is worth it";
  slow.error = 0.04;
  slow.length = 1.1;
  EXPECT_TRUE(is_better(slow, quick)) << "control: it is the length";
  // In time the length is nothing, and what is in time comes first.
  const WayTrial in_time{.error = 1.0, .missed = 0.05, .length = 0.99};
  EXPECT_TRUE(is_better(in_time, slow));
  EXPECT_TRUE(is_better({.error = 0.5, .length = 0.99}, {.error = 1.0, .length = 0.2}));
  // A hair's breadth of lateness is not worth an error that is a hundred times as large.
  const WayTrial far_off{.error = 110.0, .missed = 0.03, .length = 0.9};
  EXPECT_TRUE(is_better({.error = 8e-4, .missed = 0.105, .length = 0.95}, far_off));
  EXPECT_FALSE(is_better({.error = 8e-4, .missed = 0.7, .length = 1.5}, far_off)) << "control";
  EXPECT_FALSE(is_better({.error = 1e-12, .missed = 0.75, .length = 1.5}, far_off))
      << "no error is worth it";
}

TEST(SimulatedTime, OfWaysThatAreExactTheShorterOneHasMoreToSpare) {
  // As measured on a chain of 1024: both are right to rounding, one with three evaluations and one with two.
  const WayTrial three{.error = 1e-29, .converged = 1.0, .length = 0.9};
  const WayTrial two{.error = 1e-27, .converged = 1.0, .length = 0.7};
  EXPECT_TRUE(is_better(two, three));
  EXPECT_FALSE(is_better(three, two));
  EXPECT_TRUE(is_better({.error = 1e-20, .length = 0.9}, {.error = 1e-12, .length = 0.2}))
      << "control";
  EXPECT_FALSE(is_better({.error = 1e-27, .missed = 0.6, .length = 0.2}, three)) << "control: late";
}

TEST(SimulatedTime, RunsAreRepeatedToTheBit) {
  const System system =
      parse_scenario(generate_scenario(network::Chain{.blocks = 48}), "chain.json", ".").system;
  std::vector<double> first, second;
  run(system, nullptr, 45 * kUs, nullptr, &first);
  run(system, nullptr, 45 * kUs, nullptr, &second);
  EXPECT_EQ(first, second);
}

}  // namespace
}  // namespace portwave::test_simulated_time
