#include <algorithm>
#include <cmath>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/collocation.hpp>
#include <portwave/coupling/network/splitting.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_splitting {
namespace {

using testing::exact_state;

Splitting strang(CouplingFlow flow = CouplingFlow::automatic) {
  Splitting method;
  method.kind = SplittingKind::strang;
  method.coupling_flow = flow;
  return method;
}

Splitting impulse(int factor, std::vector<std::string> fast) {
  Splitting method;
  method.kind = SplittingKind::impulse;
  method.factor = factor;
  method.fast = std::move(fast);
  return method;
}

double distance(std::span<const double> x, const Eigen::VectorXd& y) {
  return (Eigen::Map<const Eigen::VectorXd>(x.data(), y.size()) - y).norm();
}

std::int64_t steps_for(double end_s, double step_s) { return std::llround(end_s / step_s); }

double splitting_error(const CondensedSystem& system, const Splitting& method, double step_s,
                       double end_s) {
  SplittingMethod splitting(system, step_s, method);
  for (std::int64_t n = steps_for(end_s, step_s); n > 0; --n) splitting.step(ForEach());
  return distance(splitting.state(), exact_state(system, end_s));
}

double midpoint_error(const CondensedSystem& system, double step_s, double end_s) {
  CollocationReference reference(system, step_s, Integrator::midpoint);
  for (std::int64_t n = steps_for(end_s, step_s); n > 0; --n) reference.step();
  return distance(reference.state(), exact_state(system, end_s));
}

/// Equal to the five printed digits.
void expect_printed(double value, double printed) {
  EXPECT_EQ(fmt::format("{:.4e}", value), fmt::format("{:.4e}", printed));
}

// Golden errors of the whole state at t = 2, in the 2-norm, against the matrix exponential: the two
// examples of Lorenz, Zwerschke, Günther & Schäfers, computed independently.
TEST(Splitting, GoldenErrorsOfTheSingleRateChains) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  ASSERT_EQ(system.size(), 101);
  expect_printed(midpoint_error(system, std::ldexp(1.0, -7), 2.0), 3.4678e-2);
  expect_printed(midpoint_error(system, std::ldexp(1.0, -9), 2.0), 2.1281e-3);
  expect_printed(midpoint_error(system, std::ldexp(1.0, -11), 2.0), 1.3285e-4);
  for (const CouplingFlow flow : {CouplingFlow::scalar, CouplingFlow::low_rank}) {
    expect_printed(splitting_error(system, strang(flow), std::ldexp(1.0, -7), 2.0), 3.3606e-2);
    expect_printed(splitting_error(system, strang(flow), std::ldexp(1.0, -9), 2.0), 2.0724e-3);
    expect_printed(splitting_error(system, strang(flow), std::ldexp(1.0, -11), 2.0), 1.2941e-4);
  }
}

TEST(Splitting, GoldenErrorsOfTheMultirateChains) {
  const System chains = testing::multirate_chains();
  const CondensedSystem system(chains);
  ASSERT_EQ(system.size(), 101);
  const Splitting method = impulse(10, {"chain_1"});
  expect_printed(midpoint_error(system, std::ldexp(1.0, -9), 2.0), 8.7325e-3);
  expect_printed(midpoint_error(system, std::ldexp(1.0, -11), 2.0), 6.0855e-4);
  expect_printed(midpoint_error(system, std::ldexp(1.0, -13), 2.0), 3.8278e-5);
  expect_printed(splitting_error(system, method, std::ldexp(1.0, -9), 2.0), 9.8023e-5);
  expect_printed(splitting_error(system, method, std::ldexp(1.0, -11), 2.0), 6.1327e-6);
  expect_printed(splitting_error(system, method, std::ldexp(1.0, -13), 2.0), 3.8332e-7);
}

TEST(SplittingControl, OtherParametersGiveOtherErrors) {
  const System chains = testing::chain_pair({}, {}, 50.5);
  const CondensedSystem system(chains);
  EXPECT_NE(fmt::format("{:.4e}", splitting_error(system, strang(), std::ldexp(1.0, -7), 2.0)),
            "3.3606e-02");
}

}  // namespace
}  // namespace portwave::test_splitting
