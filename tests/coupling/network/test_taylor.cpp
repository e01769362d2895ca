// Taylor series of linear networks beside answers that were computed independently.

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/taylor.hpp>
#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/separable_networks.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_taylor {
namespace {

struct Outcome {
  Eigen::VectorXd state;
  double supplied_J = 0.0, dissipated_J = 0.0, stored_J = 0.0;
  std::string remarks;
};

Outcome outcome(const System& system, int order, double end_s, int steps) {
  TaylorMethod method(system, 0.0, end_s / steps, {.kind = SplittingKind::taylor, .order = order});
  Outcome out;
  for (int n = 0; n < steps; ++n) {
    const NetworkStep step = method.step(ForEach());
    out.supplied_J += step.energy.supplied_J;
    out.dissipated_J += step.energy.dissipated_J;
    out.stored_J = step.energy.stored_J;
  }
  out.state = Eigen::Map<const Eigen::VectorXd>(method.state().data(),
                                                static_cast<Eigen::Index>(method.state().size()));
  out.remarks = method.remarks();
  return out;
}

/// Golden numbers with some digits.
void expect_printed(double value, double printed, double relative = 1e-3) {
  EXPECT_NEAR(value, printed, relative * printed) << fmt::format("{:.5e}", value);
}

// ‖x − x*‖ at t = 2 s, x* by the matrix exponential.
TEST(Taylor, GoldenErrorsOfTheSingleRateChains) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem condensed(chains);
  const Eigen::VectorXd exact = testing::exact_state(condensed, 2.0);
  const auto error = [&](int order, int steps) {
    const Outcome done = outcome(chains, order, 2.0, steps);
    EXPECT_EQ(done.remarks, "");
    return (done.state - exact).norm();
  };
  expect_printed(error(8, 32), 1.5402e-4);
  expect_printed(error(8, 64), 4.5105e-7);
  expect_printed(error(12, 32), 3.931e-8);
  expect_printed(error(12, 64), 7.34e-12, 2e-2);
  EXPECT_LE(error(16, 32), 1e-11);
  // One term more than those of order 8, whose error is 1.2469e-3 without it: the order shows.
  EXPECT_GT(std::log2(error(8, 32) / error(8, 64)), 8.0);
  EXPECT_NEAR(outcome(chains, 12, 2.0, 64).dissipated_J, .2430862436138385, 1e-13);
}

// Inputs, currents and voltages; x* by twice as high an order.
TEST(Taylor, GoldenErrorsOfTheDrivenLine) {
  const System system = testing::separable_line(16, 4);
  const Outcome exact = outcome(system, 24, .05, 160);
  EXPECT_NEAR(exact.stored_J, .46807349570479, 1e-13);
  EXPECT_NEAR(exact.supplied_J, 1.999228449448, 2e-12);
  EXPECT_NEAR(exact.dissipated_J, 1.533535633065, 2e-12);
  EXPECT_NEAR(exact.state[0], -1.24474822125849, 1e-12);
  EXPECT_NEAR(exact.state[31], .37257631572525, 1e-12);
  const Outcome done = outcome(system, 12, .05, 80);
  expect_printed((done.state - exact.state).norm() / exact.state.norm(), 5.507e-10, 5e-3);
  EXPECT_NEAR(done.dissipated_J, 1.533535633066, 2e-12);
  EXPECT_NEAR(done.supplied_J, 1.999228449447, 2e-12);
}

/// A mass on a spring and damper whose other end is moved: the input acts through a damper; the weight of the mass.
System moved_end() {
  SystemBuilder builder;
  SystemBuilder::PartOptions shaken;
  shaken.inputs["flow"] = Signal::sine_product(0.7, {{.frequency_Hz = 0.8}});
  builder.add("ground", parts::flow_source({.domain = "translation"}), shaken);
  builder.add("s", parts::spring_damper({.stiffness_N_per_m = 40.0, .damping_Ns_per_m = 3.0}),
              {.initial_state = {0.05}});
  builder.add("m", parts::mass({.mass_kg = 2.0}), {.initial_state = {0.0, 0.3}});
  builder.connect("ground.port", "s.left");
  builder.connect("s.right", "m.port");
  return builder.build();
}

TEST(Taylor, TakesInputsThatActThroughDampers) {
  const System system = moved_end();
  const Outcome fine = outcome(system, 16, 2.0, 128), coarse = outcome(system, 16, 2.0, 8),
                rough = outcome(system, 4, 2.0, 8);
  EXPECT_LE((fine.state - coarse.state).norm(), 1e-11);
  EXPECT_NEAR(fine.supplied_J, coarse.supplied_J, 1e-11);
  EXPECT_NEAR(fine.dissipated_J, coarse.dissipated_J, 1e-11);
  EXPECT_GT(coarse.dissipated_J, 0.1);
  EXPECT_GT((fine.state - rough.state).norm(), 1e-7) << "control";
}

/// A motor under an alternating voltage, which turns a flywheel on a shaft: a gyrator, dampers of all sorts.
System machine() {
  SystemBuilder builder;
  SystemBuilder::PartOptions voltage;
  voltage.inputs["effort"] = Signal::sine_product(6.0, {{.frequency_Hz = 1.3}});
  builder.add("v", parts::effort_source({.domain = "electrical"}), voltage);
  builder.add("motor", parts::dc_motor({.inductance_H = 0.02,
                                        .resistance_ohm = 0.5,
                                        .motor_constant_Vs_per_rad = 0.3,
                                        .inertia_kgm2 = 0.004,
                                        .damping_Nms_per_rad = 0.003}));
  builder.add("shaft", parts::torsional_spring({.stiffness_Nm_per_rad = 2.0}),
              {.initial_state = {0.1}});
  builder.add("wheel", parts::inertia({.inertia_kgm2 = 0.01}));
  builder.connect("v.port", "motor.terminals");
  builder.connect("motor.shaft", "shaft.left");
  builder.connect("shaft.right", "wheel.shaft");
  return builder.build();
}

TEST(Taylor, IsOfItsOrder) {
  const System system = machine();
  const Outcome exact = outcome(system, 24, 1.0, 200);
  for (const int order : {2, 4, 6, 8}) {
    const auto error = [&](int steps) {
      return (outcome(system, order, 1.0, steps).state - exact.state).norm();
    };
    const int steps = order == 2 ? 2000 : 100;
    const double coarse = error(steps), fine = error(2 * steps);
    EXPECT_GT(std::log2(coarse / fine), order - 0.3) << order << ": " << coarse << ", " << fine;
  }
}

}  // namespace
}  // namespace portwave::test_taylor
