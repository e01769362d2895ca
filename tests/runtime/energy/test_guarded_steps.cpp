// What the passivity guard does to a step, and what it leaves alone.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/energy_laws.hpp"
#include "support/guard_of.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_guarded_steps {
namespace {

using testing::same_bits;

StepperOptions options(int iterations, double gamma) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().iterations = iterations;
  o.method.waves().impedance = {gamma};
  return o;
}

double largest_difference(const Stepper& a, const Stepper& b) {
  double worst = 0.0;
  for (int i = 0; i < static_cast<int>(a.system().parts().size()); ++i) {
    for (std::size_t k = 0; k < a.state(i).size(); ++k) {
      worst = std::max(worst, std::abs(a.state(i)[k] - b.state(i)[k]));
    }
  }
  return worst;
}

// Round-off overdraws an empty tank now and then; repairing that must not move the states.
TEST(GuardedSteps, AConvergedRunIsLeftAsItIs) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = options(200, 0.4);
  o.method.waves().tank.initial_J = 0.0;
  Stepper guarded(system, o);
  o.method.waves().guard = false;
  Stepper plain(system, o);
  double worst = 0.0;
  for (int n = 0; n < 1000; ++n) {
    guarded.step();
    plain.step();
    worst = std::max(worst, largest_difference(guarded, plain));
  }
  EXPECT_LT(worst, 1e-12) << testing::guard_of(guarded).uses << " uses";
  EXPECT_LT(testing::guard_of(guarded).withheld_J, 1e-9);
  RecordProperty("uses", static_cast<int>(testing::guard_of(guarded).uses));
}

TEST(GuardedStepsControl, AnUnconvergedRunIsNot) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = options(3, 4.0);
  o.method.waves().tank.initial_J = 0.0;
  Stepper guarded(system, o);
  o.method.waves().guard = false;
  Stepper plain(system, o);
  guarded.step(100);
  plain.step(100);
  EXPECT_GT(testing::guard_of(guarded).uses, 0);
  EXPECT_GT(largest_difference(guarded, plain), 1e-6);
}

// With K = 0 and equal impedances â is bⁿ, swapped: what the guard has to work with is known.
TEST(GuardedSteps, TheLedgerSaysWhatWasWithheld) {
  for (const bool duffing : {false, true}) {
    const System system = duffing ? testing::duffing_linear_pair() : testing::lossless_pair();
    StepperOptions o = options(0, 3.0);
    o.method.waves().tank.initial_J = 0.0;
    o.method.waves().initial_waves = {0.7, -0.4};
    Stepper stepper(system, o);
    GuardStatistics sum;
    double b[2] = {0.7, -0.4};
    for (int n = 0; n < 200; ++n) {
      const double tank = stepper.waves()->tank(0);
      const StepReport report = stepper.step();
      const double alpha = report.energy.alpha;
      const double size = std::hypot(b[0], b[1]);
      const double moved =
          std::hypot(stepper.waves()->incident(0) - b[1], stepper.waves()->incident(1) - b[0]);
      EXPECT_NEAR(moved, (1.0 - alpha) * size, 1e-12 * size) << "step " << n;
      if (duffing) {  // far from balance nonlinear parts are scaled
        EXPECT_EQ(stepper.waves()->incident(0), alpha < 1.0 ? alpha * b[1] : b[1]) << "step " << n;
        EXPECT_EQ(stepper.waves()->incident(1), alpha < 1.0 ? alpha * b[0] : b[0]) << "step " << n;
      }
      EXPECT_EQ(report.energy.withheld_J > 0.0, alpha < 1.0) << "step " << n;
      if (alpha < 1.0) {
        ++sum.steps;
        sum.min_alpha = std::min(sum.min_alpha, alpha);
        sum.withheld_J += report.energy.withheld_J;
      }
      double booked = tank;
      for (int j = 0; j < 2; ++j) {
        b[j] = stepper.waves()->outgoing(j);
        booked += 0.5 * (b[j] * b[j] - stepper.waves()->incident(j) * stepper.waves()->incident(j));
      }
      EXPECT_NEAR(stepper.waves()->tank(0), booked, 1e-13);
      EXPECT_EQ(report.energy.tank_J, stepper.waves()->tank(0));
    }
    EXPECT_GT(sum.steps, 0) << "duffing " << duffing;
    EXPECT_EQ(testing::guard_of(stepper).steps, sum.steps);
    EXPECT_EQ(testing::guard_of(stepper).uses, sum.steps);
    EXPECT_GE(testing::guard_of(stepper).trials, sum.steps);
    EXPECT_EQ(testing::guard_of(stepper).min_alpha, sum.min_alpha);
    EXPECT_EQ(testing::guard_of(stepper).withheld_J, sum.withheld_J);
  }
}

TEST(GuardedSteps, NonlinearIslandsSettleInFewTrials) {
  const System system = testing::duffing_linear_pair();
  GuardStatistics sum;
  for (int K = 1; K <= 20; ++K) {
    for (const double gamma : {0.04, 0.4, 4.0}) {
      StepperOptions o = options(K, gamma);
      o.method.waves().tank.initial_J = 0.0;
      Stepper stepper(system, o);
      std::int64_t trials = 0, uses = 0;
      for (int n = 0; n < 300; ++n) {
        stepper.step();
        EXPECT_LE(testing::guard_of(stepper).trials - trials, 13)
            << "K=" << K << " gamma=" << gamma;
        trials = testing::guard_of(stepper).trials;
        uses = testing::guard_of(stepper).uses;
      }
      sum.trials += trials;
      sum.uses += uses;
    }
  }
  EXPECT_GT(sum.uses, 1000);
  EXPECT_LT(static_cast<double>(sum.trials), 3.0 * static_cast<double>(sum.uses))
      << sum.uses << " uses";
}

TEST(GuardedSteps, WithoutCertificatesTheGuardKeepsItsBooks) {
  const System system = testing::lossless_pair();
  StepperOptions o = options(1, 2.0);
  Stepper certified(system, o);
  o.certify = Certify::none;
  Stepper stepper(system, o);
  EXPECT_TRUE(stepper.keeps_ledger());
  testing::EnergyLaws laws(stepper);
  for (int n = 0; n < 300; ++n) {
    laws.observe(stepper, stepper.step());
    certified.step();
  }
  EXPECT_TRUE(laws.hold()) << laws.first_breach();
  EXPECT_GT(testing::guard_of(stepper).uses, 0);
  std::vector<double> with, without;
  testing::append_interface(certified, with);
  testing::append_interface(stepper, without);
  EXPECT_TRUE(same_bits(with, without));
  o.method.waves().guard = false;
  Stepper nothing(system, o);
  nothing.step(10);
  EXPECT_FALSE(nothing.keeps_ledger());
  EXPECT_EQ(testing::guard_of(nothing).uses, 0);
}

TEST(GuardedSteps, ABadImpedanceChangesNothing) {
  for (const int threads : {1, 2}) {
    const System system = testing::star();
    StepperOptions o = options(4, 0.05);
    o.threads = threads;
    if (threads > 1) o.executor = ExecutorKind::async;
    Stepper stepper(system, o), untouched(system, o);
    stepper.step(3);
    untouched.step(3);
    const std::vector<double> good(system.scalar_ports().size(), 0.2);
    for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
      std::vector<double> spoiled = good;
      spoiled[1] = bad;
      EXPECT_THROW(stepper.waves()->set_impedance(spoiled), ConfigError) << bad;
    }
    EXPECT_THROW(stepper.waves()->set_impedance({}), ConfigError);
    EXPECT_EQ(stepper.waves()->tuning().changes, 0);
    stepper.step(3);
    untouched.step(3);
    std::vector<double> a, b;
    testing::append_interface(stepper, a);
    testing::append_interface(untouched, b);
    EXPECT_TRUE(same_bits(a, b)) << threads << " threads";
  }
}

TEST(GuardedSteps, AChangeOfImpedanceKeepsEffortFlowAndTanks) {
  const System system = testing::archipelago({0, 1, 2});
  StepperOptions o = options(3, 0.4);
  Stepper stepper(system, o);
  stepper.step(5);
  const int ports = static_cast<int>(system.scalar_ports().size());
  std::vector<double> effort, flow, tank, gamma;
  for (int j = 0; j < ports; ++j) {
    effort.push_back(stepper.effort(j));
    flow.push_back(stepper.flow(j));
    gamma.push_back(0.4 * (j % 2 == 0 ? 30.0 : 0.01));
  }
  for (int i = 0; i < 3; ++i) tank.push_back(stepper.waves()->tank(i));
  double before = 0.0, after = 0.0;
  for (int j = 0; j < ports; ++j) before += 0.5 * std::pow(stepper.waves()->outgoing(j), 2);
  const double stored = stepper.energy().final_J;
  stepper.waves()->set_impedance(gamma);
  for (int j = 0; j < ports; ++j) {
    after += 0.5 * std::pow(stepper.waves()->outgoing(j), 2);
    EXPECT_NEAR(stepper.effort(j), effort[static_cast<std::size_t>(j)],
                1e-12 * (1.0 + std::abs(effort[static_cast<std::size_t>(j)])));
    EXPECT_NEAR(stepper.flow(j), flow[static_cast<std::size_t>(j)], 1e-12);
    EXPECT_EQ(stepper.waves()->impedance(j), gamma[static_cast<std::size_t>(j)]);
  }
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(stepper.waves()->tank(i), tank[static_cast<std::size_t>(i)]);
  EXPECT_EQ(stepper.energy().final_J, stored);
  EXPECT_EQ(stepper.waves()->tuning().changes, 1);
  EXPECT_NEAR(stepper.waves()->tuning().rescattered_J, after - before, 1e-12 * (after + before));
  EXPECT_GT(std::abs(after - before), 1e-3);
}

// The same impedances set anew change no bit.
TEST(GuardedSteps, SettingTheSameImpedancesChangesNoBit) {
  for (const auto& sample : testing::sample_systems()) {
    const System system = sample.make();
    StepperOptions o = options(4, sample.impedance);
    o.method.waves().kind = WaveUpdate::peaceman_rachford;
    o.method.waves().acceleration = 4;
    Stepper stepper(system, o), untouched(system, o);
    const std::vector<double> same(system.scalar_ports().size(), sample.impedance);
    for (int n = 0; n < 6; ++n) {
      stepper.waves()->set_impedance(same);
      stepper.step();
      untouched.step();
    }
    std::vector<double> a, b;
    testing::append_interface(stepper, a);
    testing::append_interface(untouched, b);
    EXPECT_TRUE(same_bits(a, b)) << sample.name;
  }
}

}  // namespace
}  // namespace portwave::test_guarded_steps
