// Splitting of order 4 with positive weights.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/dynamic_iteration.hpp>
#include <portwave/coupling/network/splitting.hpp>
#include <portwave/coupling/network/taylor.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_fourth_order {
namespace {

const Splitting kStrang{.kind = SplittingKind::strang, .order = 4};

Splitting impulse(int factor) {
  Splitting method{.kind = SplittingKind::impulse, .order = 4};
  method.factor = factor;
  method.fast = {"chain_1"};
  return method;
}

double error_of(const CondensedSystem& system, const Splitting& options, int exponent) {
  FourthOrderSplitting method(system, std::ldexp(1.0, -exponent), options);
  for (int n = 2 << exponent; n > 0; --n) method.step(ForEach());
  const Eigen::VectorXd exact = testing::exact_state(system, 2.0);
  return (Eigen::Map<const Eigen::VectorXd>(method.state().data(), exact.size()) - exact).norm();
}

void expect_printed(double value, double printed, double relative = 1e-3) {
  EXPECT_NEAR(value, printed, relative * printed) << fmt::format("{:.5e}", value);
}

// 2-norm errors at t = 2 s of an independent prototype, flows by Padé's (2,2) approximant.
TEST(FourthOrderSplitting, GoldenErrorsOfTheSingleRateChains) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  expect_printed(error_of(system, kStrang, 7), 1.2603e-6);
  expect_printed(error_of(system, kStrang, 9), 4.9254e-9);
  expect_printed(error_of(system, kStrang, 11), 1.9250e-11, 1e-2);
}

TEST(FourthOrderSplitting, GoldenErrorsOfTheMultirateChains) {
  const System chains = testing::multirate_chains();
  const CondensedSystem system(chains);
  expect_printed(error_of(system, impulse(10), 9), 2.3208e-10, 5e-3);
  EXPECT_LE(error_of(system, impulse(10), 11), 1.2e-12);  // 6.896e-13, but for rounding
  // Control: fewer fast steps.
  EXPECT_GT(error_of(system, impulse(2), 9), 1e-8);
}

/// The chains with other dampers.
System damped_chains(double damping) {
  return testing::chain_pair({.damping = damping}, {.damping = damping}, 50.0);
}

// The norm of a step, known to a prototype: below 1 for short and for long steps only.
TEST(FourthOrderSplitting, RefusesStepsThatCouldCreateEnergy) {
  const auto is_taken = [](double damping, double step_s) {
    const System chains = damped_chains(damping);
    const CondensedSystem system(chains);
    try {
      FourthOrderSplitting method(system, step_s, kStrang);
      return true;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.issues().front().where, "/time/step_s");
      EXPECT_NE(std::string(error.what()).find("order 2"), std::string::npos);
      return false;
    }
  };
  EXPECT_TRUE(is_taken(0.1, std::ldexp(1.0, -7)));
  EXPECT_TRUE(is_taken(0.1, 0.25));
  EXPECT_FALSE(is_taken(0.1, 0.5));
  EXPECT_TRUE(is_taken(0.1, 1.0));
  EXPECT_FALSE(is_taken(10.0, 0.125));
  EXPECT_FALSE(is_taken(10.0, std::ldexp(1.0, -7)));  // by 4.3e-10
  EXPECT_TRUE(is_taken(0.0, 0.5));
}

TEST(FourthOrderSplitting, KeepsTheAccount) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  for (const int exponent : {3, 5, 7}) {
    FourthOrderSplitting method(system, std::ldexp(1.0, -exponent), kStrang);
    double dissipated_J = 0.0, last_J = 0.0;
    for (int n = 2 << exponent; n > 0; --n) {
      const NetworkStep step = method.step(ForEach());
      EXPECT_LE(step.energy.max_passivity_residual_J, 1e-13 * step.energy_scale_J);
      EXPECT_NEAR(step.energy.mismatch_J, 0.0, 1e-13 * step.energy_scale_J);
      dissipated_J += step.energy.dissipated_J;
      last_J = step.energy.stored_J;
    }
    EXPECT_GT(dissipated_J, 0.1);
    EXPECT_NEAR(last_J, method.storage(0) + method.storage(1), 1e-13);
    if (exponent == 7) {
      EXPECT_NEAR(dissipated_J, .2430862436138385, 1e-6);
    }
  }
  // Without dampers all of it is kept, at every step size.
  const System lossless = damped_chains(0.0);
  const CondensedSystem kept(lossless);
  for (const double step_s : {0.01, 0.3, 3.0}) {
    FourthOrderSplitting method(kept, step_s, kStrang);
    const double start_J = method.storage(0) + method.storage(1);
    for (int n = 0; n < 100; ++n) method.step(ForEach());
    EXPECT_NEAR(method.storage(0) + method.storage(1), start_J, 1e-12 * start_J);
  }
}

/// Two oscillators, joined by a spring: one that the coupling moves is pushed itself.
System pushed(double other_damping) {
  SystemBuilder builder;
  builder.add(
      "a", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 30.0, .damping_Ns_per_m = 0.4}),
      {.initial_state = {0.1, 0.0},
       .inputs = {{"force", Signal::sine_product(3.0, {{.frequency_Hz = 0.9}})}}});
  builder.add("b",
              linear_oscillator(
                  {.mass_kg = 1.0, .stiffness_N_per_m = 40.0, .damping_Ns_per_m = other_damping}));
  builder.add("s", parts::spring({.stiffness_N_per_m = 25.0}));
  builder.connect("a.coupling", "s.left");
  builder.connect("s.right", "b.coupling");
  return builder.build();
}

TEST(FourthOrderSplitting, TakesInputsToItsOrder) {
  const System system = pushed(0.4);
  const CondensedSystem condensed(system);
  TaylorMethod exact(system, 0.0, 0.05, {.kind = SplittingKind::taylor, .order = 24});
  double supplied_J = 0.0;
  for (int n = 0; n < 40; ++n) supplied_J += exact.step(ForEach()).energy.supplied_J;
  const auto error = [&](int steps, double& supply_J) {
    FourthOrderSplitting method(condensed, 2.0 / steps, kStrang);
    supply_J = -supplied_J;
    for (int n = 0; n < steps; ++n) {
      const NetworkStep step = method.step(ForEach());
      supply_J += step.energy.supplied_J;
      EXPECT_NEAR(step.energy.mismatch_J, 0.0, 1e-13 * step.energy_scale_J);
    }
    double sum = 0.0;
    for (std::size_t i = 0; i < exact.state().size(); ++i) {
      sum += std::pow(method.state()[i] - exact.state()[i], 2);
    }
    return std::sqrt(sum);
  };
  double coarse_J = 0.0, fine_J = 0.0;
  const double coarse = error(50, coarse_J), fine = error(100, fine_J);
  EXPECT_NEAR(std::log2(coarse / fine), 4.0, 0.2) << coarse << ", " << fine;
  EXPECT_GT(std::log2(std::abs(coarse_J / fine_J)), 3.5) << coarse_J << ", " << fine_J;
}

// Beside a part without dampers a step gains energy of order h⁵ whatever its size: prototype 2.0e-9 at 0.04 s.
TEST(FourthOrderSplitting, RefusesDampersOnOneSideOfACoupling) {
  const System one_side = pushed(0.0), both_sides = pushed(0.4);
  const CondensedSystem one(one_side), both(both_sides);
  EXPECT_THROW(FourthOrderSplitting(one, 0.04, kStrang), ConfigError);
  EXPECT_NO_THROW(FourthOrderSplitting(one, 0.002, kStrang));
  EXPECT_NO_THROW(FourthOrderSplitting(both, 0.04, kStrang));
}

TEST(FourthOrderSplitting, RefusesKeysOfOrderTwo) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  Splitting split = kStrang;
  split.split_dissipation = true;
  Splitting scalar = kStrang;
  scalar.coupling_flow = CouplingFlow::scalar;
  for (const auto& [options, where] : {std::pair(split, "/method/split_dissipation"),
                                       std::pair(scalar, "/method/coupling_flow")}) {
    try {
      FourthOrderSplitting method(system, 0.01, options);
      ADD_FAILURE() << where;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.issues().front().where, where);
    }
  }
  EXPECT_THROW(SplittingMethod(system, 0.01, kStrang), ConfigError);
  const auto method = make_network_method(system, 0.01, kStrang, true);
  EXPECT_NE(method->description().find("order 4"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_fourth_order
