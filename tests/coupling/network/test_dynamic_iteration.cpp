#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/dynamic_iteration.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_dynamic_iteration {
namespace {

DynamicIteration lions_mercier(double lambda, double mu, double omega, double alpha,
                               int window_steps) {
  DynamicIteration method;
  method.kind = IterationKind::lions_mercier;
  method.lambda = lambda;
  method.mu = mu;
  method.omega = omega;
  method.alpha = alpha;
  method.window_steps = window_steps;
  method.metric = IterationMetric::identity;
  return method;
}

DynamicIteration relaxation(IterationKind kind, int window_steps) {
  DynamicIteration method;
  method.kind = kind;
  method.window_steps = window_steps;
  method.divergence_limit = std::numeric_limits<double>::infinity();
  return method;
}

using Waveform = std::vector<double>;

/// Stage values of the monolithic solution over one window.
Waveform solution(const CondensedSystem& system, double step_s,
                  const WaveformIteration& iteration) {
  CollocationReference reference(system, step_s, iteration.parameters().integrator);
  Waveform out;
  for (int n = 0; n < iteration.window_steps(); ++n) {
    reference.step();
    out.insert(out.end(), reference.stages().begin(), reference.stages().end());
  }
  return out;
}

Waveform difference(const Waveform& a, const Waveform& b) {
  Waveform out(a.size());
  for (std::size_t i = 0; i < a.size(); ++i) out[i] = a[i] - b[i];
  return out;
}

double largest_norm(const Waveform& w, int n) {
  double largest = 0.0;
  for (std::size_t i = 0; i < w.size(); i += static_cast<std::size_t>(n)) {
    largest = std::max(largest, Eigen::Map<const Eigen::VectorXd>(w.data() + i, n).norm());
  }
  return largest;
}

WaveformIteration begun(const CondensedSystem& system, double step_s,
                        const DynamicIteration& method) {
  WaveformIteration iteration(system, step_s, method);
  const Eigen::VectorXd start = system.initial_state();
  iteration.begin(0.0, {start.data(), static_cast<std::size_t>(start.size())});
  return iteration;
}

std::string printed(double value, int digits) { return fmt::format("{:.{}f}", value, digits); }

// Figures of Bartel, Günther, Jacob & Reis, Numer. Math. 155 (2023), section 6, computed
// independently.
TEST(LionsMercier, GoldenBoundsOfTheTwoMasses) {
  const System masses = testing::two_masses();
  const CondensedSystem system(masses);
  const WaveformIteration iteration(system, 1e-3, lions_mercier(1.5, 2.0, 2.2, 0.5, 1));
  const LionsMercierBounds& bounds = iteration.parameters().bounds;
  EXPECT_EQ(printed(bounds.norm_K, 5), "4.57215");
  EXPECT_EQ(printed(bounds.rate, 5), "0.97541");
  EXPECT_EQ(printed(bounds.optimal_rate, 5), "0.94374");
  EXPECT_DOUBLE_EQ(bounds.optimal_lambda, 1.0 / bounds.norm_K);
  EXPECT_TRUE(bounds.monotone);
}

TEST(LionsMercier, GoldenErrorsOfTheChains) {
  const System chains = testing::single_rate_chains();
  const CondensedSystem system(chains);
  constexpr double h = 1e-3;
  WaveformIteration iteration = begun(system, h, lions_mercier(3.5, 2.0, 2.2, 0.5, 2000));
  const Waveform exact = solution(system, h, iteration);
  Waveform x(iteration.stages_size());
  const std::vector<std::pair<int, std::string>> golden = {
      {10, "1.16"}, {20, "0.188"}, {30, "0.071"}, {40, "0.029"}, {100, "0.00031"}};
  int k = 0;
  for (const auto& [at, error] : golden) {
    for (; k < at; ++k) iteration.iterate(ForEach());
    iteration.solve(ForEach(), x);
    const auto digits = static_cast<int>(error.size() - error.find('.') - 1);
    EXPECT_EQ(printed(iteration.plain_norm(difference(x, exact)), digits), error) << "k = " << at;
  }
}

TEST(LionsMercier, GoldenFiguresOfTheCircuit) {
  const System parts = testing::circuit();
  const CondensedSystem system(parts);
  EXPECT_EQ(system.analysis().index, 1);
  EXPECT_DOUBLE_EQ(system.J_coupling().coeff(3, 4), 1.0);
  EXPECT_DOUBLE_EQ(system.J_coupling().coeff(4, 3), -1.0);
  constexpr double h = 1e-4;
  DynamicIteration method = lions_mercier(1.2, 1.0, 2.2, 0.2, 1000);
  WaveformIteration iteration = begun(system, h, method);
  ASSERT_EQ(iteration.parameters().integrator, Integrator::radau_iia);
  const LionsMercierBounds& bounds = iteration.parameters().bounds;
  EXPECT_EQ(printed(bounds.norm_K, 4), "20.0464");
  EXPECT_EQ(printed(bounds.optimal_rate, 5), "0.99805");
  EXPECT_EQ(printed(bounds.rate, 5), "0.99970");
  const Waveform exact = solution(system, h, iteration);
  const double size = iteration.plain_norm(exact);
  Waveform x(exact.size());
  int first = -1;
  double error = 0.0;
  for (int k = 1; k <= 200; ++k) {
    iteration.iterate(ForEach());
    iteration.solve(ForEach(), x);
    error = iteration.plain_norm(difference(x, exact)) / size;
    if (first < 0 && error <= 1e-10) first = k;
  }
  EXPECT_NEAR(first, 136, 5);
  EXPECT_LT(largest_norm(difference(x, exact), system.size()), 1e-10);
}

// Example 13: ‖ε_k‖ = √2 D ν^k e^{−τT} T^{k+1}/(k+1)! from x⁰ = x + D t e^{−τt}(1, 1)ᵀ.
struct JacobiRun {
  std::vector<double> errors;  // by k, the largest 2-norm over time
  int worst() const {
    return static_cast<int>(std::max_element(errors.begin(), errors.end()) - errors.begin());
  }
};

/// Errors after every step (not at its midpoint), against the same method's own solution.
JacobiRun run_jacobi(double end_s, int steps, int iterations) {
  const System pair = testing::rotation(15.0, 0.01, 2.0);
  const CondensedSystem system(pair);
  const double h = end_s / steps;
  WaveformIteration iteration = begun(system, h, relaxation(IterationKind::jacobi, steps));
  Waveform start = solution(system, h, iteration);
  Waveform exact;
  CollocationReference reference(system, h, Integrator::midpoint);
  for (int n = 0; n < steps; ++n) {
    const double t = (n + 0.5) * h;
    for (int i = 0; i < 2; ++i)
      start[static_cast<std::size_t>(2 * n + i)] += t * std::exp(-0.01 * t);
    reference.step();
    exact.insert(exact.end(), reference.state().begin(), reference.state().end());
  }
  iteration.start_from(start);
  JacobiRun run;
  run.errors.push_back(0.0);
  Waveform x(exact.size());
  std::vector<WaveformIteration::StepEnergies> energies(static_cast<std::size_t>(steps));
  for (int k = 1; k <= iterations; ++k) {
    iteration.iterate(ForEach());
    iteration.finish(ForEach(), x, energies);
    run.errors.push_back(largest_norm(difference(x, exact), 2));
  }
  return run;
}

TEST(Jacobi, GoldenErrorsOverALongWindow) {
  const JacobiRun run = run_jacobi(10.0, 100000, 150);
  EXPECT_EQ(fmt::format("{:.2e}", run.errors[static_cast<std::size_t>(run.worst())]), "3.87e+62");
  EXPECT_TRUE(run.worst() == 148 || run.worst() == 149) << run.worst();
  EXPECT_EQ(fmt::format("{:.1e}", run.errors[40]), "4.2e+38");
  EXPECT_GT(run.errors[40], static_cast<double>(std::numeric_limits<float>::max()));
  EXPECT_LT(run.errors[39], static_cast<double>(std::numeric_limits<float>::max()));
}

TEST(Jacobi, GoldenErrorsOverAShortWindow) {
  const JacobiRun run = run_jacobi(0.5, 5000, 29);
  EXPECT_EQ(run.worst(), 6);
  EXPECT_EQ(fmt::format("{:.2f}", run.errors[6]), "24.85");
  EXPECT_EQ(fmt::format("{:.1e}", run.errors[29]), "6.3e-08");
}

}  // namespace
}  // namespace portwave::test_dynamic_iteration
