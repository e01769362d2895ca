// Taylor series and splitting of order 4, stepped by a Stepper.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/step/stepper.hpp>

#include "runtime/method/network/network_method_runs.hpp"
#include "runtime/method/states_of_stepper.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_taylor_runs {
namespace {

using testing::all_states;
using testing::refused;
using testing::states_and_ports;

StepperOptions options_of(double step_s, int order = 16) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = SplittingKind::taylor, .order = order};
  return options;
}

TEST(TaylorRuns, KeepTheLedgerAndTheCertificate) {
  const System system = testing::single_rate_chains();
  Stepper stepper(system, options_of(1.0 / 32.0));
  stepper.step(64);
  const EnergyTotals& energy = stepper.energy();
  EXPECT_NEAR(energy.dissipated_J, .2430862436138385, 1e-12);
  EXPECT_NEAR(energy.final_J + energy.tank_J, energy.initial_J - energy.dissipated_J,
              1e-13 * energy.initial_J);
  EXPECT_NEAR(energy.final_J, stepper.storage(0) + stepper.storage(1), 1e-13 * energy.initial_J);
  EXPECT_LE(energy.max_energy_ratio, 1.0 + 1e-12);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.iterations().max, 0);
  EXPECT_EQ(stepper.waves(), nullptr);
  EXPECT_NE(stepper.method().reason.find("order 16, 17 products"), std::string::npos)
      << stepper.method().reason;
  EXPECT_EQ(stepper.remarks(), "");
  Stepper coarse(system, options_of(0.8));
  coarse.step(5);
  EXPECT_NE(coarse.remarks().find("halved"), std::string::npos);
  EXPECT_NE(coarse.method().reason.find("a long step"), std::string::npos);
  EXPECT_EQ(coarse.certificate().status, CertificateStatus::holds);
}

// Mean efforts and flows of a long step are those of the short steps that it consists of, also where it is halved.
TEST(TaylorRuns, TellMeanEffortsAndFlows) {
  const System system = testing::separable_line(8, 4);
  constexpr int kShort = 16;
  const auto worst_of = [&](double step_s, int order) {
    Stepper coarse(system, options_of(step_s, order)), fine(system, options_of(step_s / kShort));
    double worst = 0.0;
    for (int n = 0; n < 4; ++n) {
      coarse.step();
      double effort = 0.0, flow = 0.0;
      for (int k = 0; k < kShort; ++k) {
        fine.step();
        effort += fine.effort(0) / kShort;
        flow += fine.flow(0) / kShort;
      }
      EXPECT_NEAR(coarse.effort(0), coarse.effort(1), 1e-13);
      EXPECT_NEAR(coarse.flow(0), -coarse.flow(1), 1e-13);
      worst =
          std::max({worst, std::abs(coarse.effort(0) - effort), std::abs(coarse.flow(0) - flow)});
    }
    return worst;
  };
  EXPECT_LE(worst_of(6e-4, 16), 1e-9);
  EXPECT_LE(worst_of(6e-3, 16), 5e-3);
  EXPECT_GT(worst_of(6e-4, 4), 1e-6) << "control";
}

TEST(TaylorRuns, GoOnFromASnapshotBitByBit) {
  const System system = testing::separable_line(8, 4);
  for (const double step_s : {6e-4, 6e-3}) {
    Stepper stepper(system, options_of(step_s));
    stepper.step(10);
    const Snapshot snapshot = stepper.snapshot();
    stepper.step(10);
    const std::vector<double> expected = states_and_ports(stepper);
    const double stored_J = stepper.energy().final_J;
    stepper.restore(snapshot);
    stepper.step(9);
    EXPECT_NE(states_and_ports(stepper), expected) << "control";
    stepper.step();
    EXPECT_EQ(states_and_ports(stepper), expected);
    EXPECT_EQ(stepper.energy().final_J, stored_J);
  }
}

TEST(TaylorRuns, TakeAShorterStepAtTheEnd) {
  const System system = testing::separable_line(8, 4);
  constexpr double kEnd_s = 2.1e-3, kNext_s = 2.7e-3;
  Stepper stepper(system, options_of(6e-4)), fine(system, options_of(1.5e-4));
  const auto apart = [&] {
    const std::vector<double> own = all_states(stepper), other = all_states(fine);
    double worst = 0.0;
    for (std::size_t i = 0; i < own.size(); ++i) {
      worst = std::max(worst, std::abs(own[i] - other[i]));
    }
    return worst;
  };
  stepper.run_until(kEnd_s);
  EXPECT_EQ(stepper.step_index(), 4);
  EXPECT_NEAR(stepper.time_s(), kEnd_s, 1e-15);
  fine.run_until(kEnd_s);
  EXPECT_LE(apart(), 1e-9);
  // And goes on with long ones.
  stepper.step();
  EXPECT_NEAR(stepper.time_s(), kNext_s, 1e-15);
  EXPECT_GT(apart(), 1e-3) << "control";
  fine.run_until(kNext_s);
  EXPECT_LE(apart(), 1e-9);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(TaylorRuns, RefuseDeadlinesAndOddOrders) {
  const System system = testing::single_rate_chains();
  StepperOptions options = options_of(0.02);
  options.time.deadline_s = 1e-3;
  const Issues late = refused(system, options);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late.front().where, "/deadline_s");
  const Issues order = refused(system, options_of(0.02, 5));
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(order.front().where, "/method/order");
  EXPECT_TRUE(refused(system, options_of(0.02)).empty()) << "control";
}

TEST(FourthOrderSplittingRuns, HoldTheCertificateAndGoOnFromASnapshot) {
  const System system = testing::single_rate_chains();
  StepperOptions options;
  options.step_s = 1.0 / 128.0;
  options.method = Splitting{.kind = SplittingKind::strang, .order = 4};
  Stepper stepper(system, options);
  stepper.step(128);
  const Snapshot snapshot = stepper.snapshot();
  stepper.step(128);
  EXPECT_NEAR(stepper.energy().dissipated_J, .2430862436138385, 1e-6);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  const std::vector<double> expected = states_and_ports(stepper);
  stepper.restore(snapshot);
  stepper.step(127);
  EXPECT_NE(states_and_ports(stepper), expected) << "control";
  stepper.step();
  EXPECT_EQ(states_and_ports(stepper), expected);
  EXPECT_NE(stepper.method().reason.find("no step of this size creates energy"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_taylor_runs
