#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/study/iteration_study.hpp>

#include "support/systems/example_scenarios.hpp"

namespace portwave::test_iteration_study {
namespace {

using testing::example;

IterationStudy follow(const Scenario& scenario, int iterations, std::int64_t windows = 1) {
  return study_iteration(scenario, {.iterations = iterations, .windows = windows});
}

std::string digits(double value, int count) { return fmt::format("{:.{}e}", value, count - 1); }

/// First iteration with a relative error in x of at most `share`; −1: none.
int first_within(const IterationWindow& window, double share) {
  for (const IterationRow& row : window.rows) {
    if (row.x_relative <= share) return row.iteration;
  }
  return -1;
}

const IterationRow& worst(const IterationWindow& window) {
  return *std::max_element(
      window.rows.begin(), window.rows.end(),
      [](const IterationRow& a, const IterationRow& b) { return a.x_largest < b.x_largest; });
}

// Source: Bartel, Günther, Jacob & Reis, section 6.2.3; more digits independently computed.
TEST(IterationStudy, KnowsTheRatesOfTheTwoMasses) {
  const IterationStudy study = follow(example("two_masses"), 40);
  const LionsMercierBounds& bounds = study.parameters.bounds;
  EXPECT_EQ(digits(bounds.norm_K, 6), "4.57215e+00");
  EXPECT_EQ(digits(bounds.rate, 5), "9.7541e-01");
  EXPECT_EQ(digits(bounds.optimal_rate, 5), "9.4374e-01");
  EXPECT_DOUBLE_EQ(bounds.optimal_lambda, 1.0 / bounds.norm_K);
  EXPECT_TRUE(bounds.rank_mu);
  EXPECT_TRUE(bounds.monotone);
  ASSERT_EQ(study.windows.size(), 1u);
  const IterationWindow& window = study.windows[0];
  ASSERT_EQ(window.rows.size(), 41u);
  ASSERT_TRUE(window.largest_rise);
  EXPECT_LE(*window.largest_rise, bounds.rate);
  EXPECT_LT(window.rows.back().x_relative, 0.01 * window.rows.front().x_relative);

  // Control: with another stiffness between them they are others.
  const IterationStudy softer =
      follow(example("two_masses", {{"/subsystems/0/parameters/Q/2/2", "3.9"}}), 0);
  EXPECT_NE(digits(softer.parameters.bounds.rate, 5), "9.7541e-01");
  EXPECT_NE(digits(softer.parameters.bounds.norm_K, 6), "4.57215e+00");
}

// The norm has to fall only where h μ is small enough against h ω.
TEST(IterationStudy, SaysWhereTheNormMayRise) {
  const IterationStudy study = follow(example("two_masses", {{"/method/omega", "2"}}), 3);
  EXPECT_FALSE(study.parameters.bounds.monotone);
}

// Source: the same, section 6.3.
TEST(IterationStudy, ConvergesOnTheCircuit) {
  const IterationStudy study = follow(example("circuit"), 140);
  const DynamicParameters& used = study.parameters;
  EXPECT_EQ(used.integrator, Integrator::radau_iia);
  EXPECT_EQ(used.metric, IterationMetric::identity);
  EXPECT_EQ(digits(used.bounds.norm_K, 6), "2.00464e+01");
  EXPECT_EQ(digits(used.bounds.optimal_rate, 5), "9.9805e-01");
  EXPECT_EQ(digits(used.bounds.rate, 5), "9.9970e-01");
  const int within = first_within(study.windows[0], 1e-10);
  EXPECT_GE(within, 131);
  EXPECT_LE(within, 140);
  EXPECT_EQ(first_within(study.windows[0], 1e-14), -1);
}

// Source: the same, section 6.4; errors at stage values against the monolithic midpoint rule.
TEST(IterationStudy, ReproducesTheErrorsOfTheChains) {
  const auto errors = [](const IterationStudy& study) {
    std::vector<double> list;
    for (const int k : {10, 20, 30, 40, 100}) {
      list.push_back(study.windows[0].rows[static_cast<std::size_t>(k)].x_error);
    }
    return list;
  };
  const std::vector<double> list = errors(follow(example("msd_chains"), 100));
  EXPECT_EQ(digits(list[0], 3), "1.16e+00");
  EXPECT_EQ(digits(list[1], 3), "1.88e-01");
  EXPECT_EQ(digits(list[2], 2), "7.1e-02");
  EXPECT_EQ(digits(list[3], 2), "2.9e-02");
  EXPECT_EQ(digits(list[4], 2), "3.1e-04");
}

// Control: a coupling that enters the position, a misprint of the source, has other errors.
TEST(IterationStudy, SeesWhereTheCouplingEnters) {
  const IterationStudy study =
      follow(example("msd_chains", {{"/subsystems/1/parameters/G/entries/0/0", "1"}}), 20);
  EXPECT_NE(digits(study.windows[0].rows[10].x_error, 3), "1.16e+00");
  EXPECT_NE(digits(study.windows[0].rows[20].x_error, 3), "1.88e-01");
}

/// Example 13 of the same: ‖ε_k‖ = √2 D νᵏ e^{−τT} T^{k+1}/(k+1)!
double predicted(double T, int k) {
  return std::exp(0.5 * std::log(2.0) + k * std::log(15.0) - 0.01 * T + (k + 1) * std::log(T) -
                  std::lgamma(k + 2.0));
}

const StartError kStartError = {.size_per_s = 1.0, .decay_per_s = 0.01};

TEST(IterationStudy, JacobiFailsOnALongWindow) {
  const IterationStudy study = study_iteration(
      example("jacobi_failure"), {.iterations = 152, .windows = 1, .start_error = kStartError});
  EXPECT_EQ(study.window_steps, 100'000);
  const IterationWindow& window = study.windows[0];
  EXPECT_EQ(window.beyond_single, 40);
  EXPECT_EQ(digits(window.rows[40].x_largest, 2), "4.2e+38");
  EXPECT_LT(window.rows[39].x_largest, std::numeric_limits<float>::max());
  const IterationRow& most = worst(window);
  EXPECT_TRUE(most.iteration == 148 || most.iteration == 149) << most.iteration;
  EXPECT_EQ(digits(most.x_largest, 3), "3.87e+62");
  for (const int k : {1, 10, 40, 100, 148}) {
    const double error = window.rows[static_cast<std::size_t>(k)].x_largest;
    EXPECT_NEAR(error / predicted(10.0, k), 1.0, 1e-3) << k;
  }
  EXPECT_EQ(window.gives_up, std::nullopt);  // "divergence_limit": "none"
  EXPECT_GT(*window.largest_rise, 10.0);
  EXPECT_FALSE(window.rows[3].z_error);
}

TEST(IterationStudy, JacobiConvergesOnAShortWindow) {
  const std::vector<Override> half_second = {{"/time/end_s", "0.5"},
                                             {"/method/window_steps", "5000"}};
  const IterationStudy study =
      study_iteration(example("jacobi_failure", half_second),
                      {.iterations = 29, .windows = 1, .start_error = kStartError});
  const IterationWindow& window = study.windows[0];
  const IterationRow& most = worst(window);
  EXPECT_EQ(most.iteration, 6);
  EXPECT_EQ(digits(most.x_largest, 4), "2.485e+01");
  EXPECT_EQ(digits(window.rows[29].x_largest, 2), "6.3e-08");
  EXPECT_EQ(window.beyond_single, std::nullopt);

  // Gauss–Seidel hands the new waveform on: two iterations of Jacobi in one.
  std::vector<Override> newest = half_second;
  newest.push_back({"/method/kind", "\"gauss-seidel\""});
  const IterationStudy seidel =
      study_iteration(example("jacobi_failure", newest),
                      {.iterations = 29, .windows = 1, .start_error = kStartError});
  EXPECT_LT(seidel.windows[0].rows[16].x_largest, 1e-6);
  // Control: a slower turn never gets that large.
  std::vector<Override> slow = half_second;
  slow.push_back({"/couplings/0/gain", "[[0, -5], [5, 0]]"});
  const IterationStudy slower =
      study_iteration(example("jacobi_failure", slow),
                      {.iterations = 10, .windows = 1, .start_error = kStartError});
  EXPECT_LT(worst(slower.windows[0]).x_largest, 1.0);
}

TEST(IterationStudy, SaysWhenARunWouldGiveUp) {
  const IterationStudy study =
      study_iteration(example("jacobi_failure", {{"/method/divergence_limit", "1e6"}}),
                      {.iterations = 12, .windows = 1, .start_error = kStartError});
  const IterationWindow& window = study.windows[0];
  ASSERT_TRUE(window.gives_up);
  EXPECT_GT(*window.gives_up, 3);
  EXPECT_LT(*window.gives_up, 12);
  EXPECT_EQ(window.rows.size(), 13u);  // the study goes on
}

TEST(IterationStudy, EndsWhereWaveformsAreNotFinite) {
  // (ν T)^k/k! with ν T = 1500, squared, is beyond double precision.
  const IterationStudy study =
      study_iteration(example("jacobi_failure", {{"/couplings/0/gain", "[[0, -150], [150, 0]]"},
                                                 {"/time/step_s", "0.01"},
                                                 {"/method/window_steps", "1000"}}),
                      {.iterations = 400, .windows = 1, .start_error = kStartError});
  const IterationWindow& window = study.windows[0];
  EXPECT_FALSE(window.failure.empty());
  EXPECT_LT(window.rows.size(), 400u);
  EXPECT_GT(window.rows.size(), 50u);
  for (const IterationRow& row : window.rows) EXPECT_TRUE(std::isfinite(row.x_error));
}

// Each window starts from the solution: one that is cut in five has five errors of its own.
TEST(IterationStudy, WindowsInheritNothing) {
  const std::vector<Override> cut = {{"/method/window_steps", "100"}};
  const IterationStudy coarse = follow(example("two_masses", cut), 2, 1000);
  const IterationStudy fine = follow(example("two_masses", cut), 25, 1000);
  ASSERT_EQ(coarse.windows.size(), 5u);
  ASSERT_EQ(fine.windows.size(), 5u);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_DOUBLE_EQ(fine.windows[i].start_s, static_cast<double>(i));
    for (std::size_t k = 0; k <= 2; ++k) {
      EXPECT_EQ(coarse.windows[i].rows[k].x_error, fine.windows[i].rows[k].x_error)
          << i << " " << k;
    }
    EXPECT_LT(fine.windows[i].rows[25].x_relative, 1e-2) << i;
  }
  EXPECT_EQ(follow(example("two_masses", cut), 2, 2).windows.size(), 2u);
}

TEST(IterationStudy, RefusesWhatDoesNotIterate) {
  const auto where_of = [](const Scenario& scenario, const IterationOptions& options) {
    try {
      study_iteration(scenario, options);
    } catch (const ConfigError& error) {
      return error.issues().front().where;
    }
    return std::string("nowhere");
  };
  EXPECT_EQ(where_of(example("msd_singlerate"), {}), "/method/kind");
  EXPECT_EQ(where_of(example("chain_64"), {}), "/method/kind");
  EXPECT_EQ(where_of(example("two_masses"), {.start_error = kStartError}), "/method/kind");
  EXPECT_EQ(where_of(example("two_masses"), {.iterations = -1}), "");
  EXPECT_EQ(where_of(example("two_masses"), {.windows = 0}), "");
  EXPECT_EQ(where_of(example("two_masses"), {.iterations = 0}), "nowhere");
}

}  // namespace
}  // namespace portwave::test_iteration_study
