// Runs with a time budget, by the clock of the machine: nothing asserted depends on how fast it is.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/energy/guard.hpp"
#include "portwave/runtime/generate/generate.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_time_budget {
namespace {

/// A run of Duffing oscillators whose impedances follow their states.
struct Examined {
  std::int64_t looks = 0, watched = 0, tuned = 0;
  double moved_J = 0.0;
};
Examined examined(double deadline_s) {
  const System system = testing::duffing_grid(3, 3);
  StepperOptions options{.step_s = 0.02, .method = WaveCoupling{}};
  options.method.waves().impedance_kind = ImpedanceKind::matched;
  options.method.waves().retune_factor = 1.0 + 1e-9;
  options.method.waves().iterations = 20;
  options.method.waves().tolerance = 1e-8;
  options.time.deadline_s = deadline_s;
  Stepper stepper(system, options);
  stepper.step(40);
  return {stepper.coupling().count, stepper.resolution().value().looks,
          stepper.waves()->tuning().changes, stepper.coupling().moved_J};
}

// Whatever the clock says a nanosecond is too short for work beside the steps, and 1000 s are not.
TEST(TimeBudget, TheRunIsExaminedWhereThereIsTime) {
  const Examined without = examined(0.0), ample = examined(1e3), none = examined(1e-9);
  EXPECT_EQ(ample.looks, without.looks);
  EXPECT_EQ(ample.watched, without.watched);
  EXPECT_GT(without.tuned, 0);
  EXPECT_GT(ample.tuned, 0);
  EXPECT_EQ(none.looks, 0);
  EXPECT_EQ(none.watched, 0);
  EXPECT_EQ(none.tuned, 0);
  EXPECT_GT(none.moved_J, 0.2 * without.moved_J) << "found when it is asked for";
}

// Whatever the clock says a nanosecond leaves the guard no time to look for the best waves.
TEST(TimeBudget, WithoutTimeTheGuardTakesTheFirstWavesThatAreSafe) {
  const System system = testing::duffing_linear_pair();
  std::int64_t most = 0, hurried = 0, at_leisure = 0;
  for (const double gamma : {0.5, 1.0, 2.0, 3.0, 4.0, 8.0}) {
    for (const double deadline_s : {1e-9, 1e3}) {
      StepperOptions options{.method = WaveCoupling{}};
      options.start = Start::as_given;
      options.method.waves().impedance = {gamma};
      options.method.waves().iterations = 0;
      options.method.waves().tank.initial_J = 0.0;
      options.method.waves().initial_waves = {0.7, -0.4};
      options.time.deadline_s = deadline_s;
      Stepper stepper(system, options);
      std::int64_t trials = 0;
      for (int n = 0; n < 300; ++n) {
        stepper.step();
        const std::int64_t own = stepper.waves()->guard()->trials - trials;
        trials += own;
        if (deadline_s < 1.0) most = std::max(most, own);
      }
      (deadline_s < 1.0 ? hurried : at_leisure) += trials;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << gamma;
    }
  }
  EXPECT_GT(hurried, 8);
  EXPECT_LE(most, PassivityGuard::kHurriedTrials + 2);
  EXPECT_GT(at_leisure, hurried) << "control: where it may look for them";
}

// A nanosecond is no time for an evaluation, whatever the clock says: what is left to choose are impedances.
TEST(TimeBudget, WithoutTimeAutoTakesTheImpedancesOfTheBestExplicitSteps) {
  constexpr int kSteps = 100;
  const System system =
      parse_scenario(generate_scenario(network::Chain{.blocks = 64}), "chain.json", ".").system;
  const auto states = [&](const StepperOptions& options) {
    Stepper stepper(system, options);
    stepper.step(kSteps);
    std::vector<double> out;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      const auto own = stepper.state(part);
      out.insert(out.end(), own.begin(), own.end());
    }
    return out;
  };
  StepperOptions options{.method = WaveCoupling::automatic(1e-10)};
  options.step_s = 1e-3;
  const std::vector<double> converged = states(options);
  const auto error = [&](const StepperOptions& given) {
    const std::vector<double> own = states(given);
    double sum = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) sum += std::pow(own[i] - converged[i], 2);
    return std::sqrt(sum);
  };
  double best = HUGE_VAL, worst = 0.0;
  for (const ImpedanceKind rule :
       {ImpedanceKind::matched, ImpedanceKind::leaf, ImpedanceKind::adapted}) {
    StepperOptions fixed = options;
    fixed.method.waves().kind = WaveUpdate::peaceman_rachford;
    fixed.method.waves().impedance_kind = rule;
    fixed.method.waves().iterations = 0;
    best = std::min(best, error(fixed));
    worst = std::max(worst, error(fixed));
  }
  options.time.deadline_s = 1e-9;
  EXPECT_LE(error(options), 1.2 * best);
  EXPECT_GT(worst, 1.5 * best) << "control: the rules are told apart";
}

// A nanosecond is no time: whatever the clock says, no iteration fits.
TEST(TimeBudget, WithoutTimeEveryExecutorCommitsTheExplicitInterface) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 2);
  const System system = testing::chain_of_blocks(8, 3);
  for (const double tolerance : {0.0, 1e-9}) {
    StepperOptions explicit_options{.method = WaveCoupling{}};
    explicit_options.start = Start::as_given;
    explicit_options.step_s = 1e-3;
    explicit_options.method.waves().iterations = 0;
    explicit_options.method.waves().impedance = {100.0};
    Stepper explicit_run(system, explicit_options);
    explicit_run.step(20);
    for (const ExecutorKind executor :
         {ExecutorKind::serial, ExecutorKind::async, ExecutorKind::graph}) {
      StepperOptions options = explicit_options;
      options.method.waves().iterations = 50;
      options.method.waves().tolerance = tolerance;
      options.time.deadline_s = 1e-9;
      options.executor = executor;
      options.threads = 2;
      options.grain = Grain::of_parts(2);
      Stepper stepper(system, options);
      std::vector<double> start;
      for (const Part& own : system.parts())
        std::ranges::copy(own.initial_state, std::back_inserter(start));
      stepper.set_states(start);  // forgets the waves that were found for the first step
      for (int n = 0; n < 20; ++n) {
        EXPECT_EQ(stepper.step().reason, StopReason::deadline) << to_string(executor);
      }
      EXPECT_EQ(stepper.deadline().value().misses, 20);
      for (int part = 0; part < 8; ++part) {
        EXPECT_TRUE(std::ranges::equal(stepper.state(part), explicit_run.state(part)))
            << to_string(executor);
      }
    }
  }
}

// Whatever the clock says a nanosecond is too short for a solve, and ten seconds are not.
TEST(TimeBudget, InterfaceEquationsAreSolvedWhereThereIsTime) {
  const System system = testing::duffing_grid(3, 3);
  for (const double deadline_s : {1e-9, 10.0}) {
    StepperOptions options{.step_s = 0.02, .method = WaveCoupling{.kind = WaveUpdate::interface}};
    options.method.waves().iterations = 50;
    options.method.waves().tolerance = 1e-10;
    options.method.waves().impedance = {3.0};
    options.time.deadline_s = deadline_s;
    Stepper stepper(system, options);
    for (int n = 0; n < 40; ++n) {
      const StepReport report = stepper.step();
      EXPECT_EQ(report.converged, deadline_s == 10.0) << n;
      EXPECT_LE(report.iterations, deadline_s == 10.0 ? 10 : 0);
    }
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

TEST(TimeBudget, AnInterruptedWaitEndsAtOnce) {
  const System system = testing::lossless_pair();
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.time.pace = 1e-5;  // a step every 1000 s
  bool interrupted = false;
  int asked = 0;
  options.interrupted = [&] {
    ++asked;
    return interrupted;
  };
  Stepper stepper(system, options);
  stepper.step();  // the first is due at once
  interrupted = true;
  stepper.step();
  EXPECT_EQ(stepper.step_index(), 2);
  EXPECT_GE(asked, 1);
}

}  // namespace
}  // namespace portwave::test_time_budget
