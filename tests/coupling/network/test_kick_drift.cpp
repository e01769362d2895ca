#include <array>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/coupling/system/system.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_kick_drift {
namespace {

struct Outcome {
  Eigen::VectorXd state;
  double supplied_J = 0.0, dissipated_J = 0.0, stored_J = 0.0, worst_balance_J = 0.0;
};

Outcome outcome(const System& system, int order, double end_s, int steps) {
  KickDriftMethod method(system, 0.0, end_s / steps,
                         {.kind = SplittingKind::kick_drift, .order = order});
  Outcome out;
  for (int n = 0; n < steps; ++n) {
    const NetworkStep step = method.step(ForEach());
    out.supplied_J += step.energy.supplied_J;
    out.dissipated_J += step.energy.dissipated_J;
    out.worst_balance_J = std::max(out.worst_balance_J, std::abs(step.energy.mismatch_J));
    out.stored_J = step.energy.stored_J;
  }
  out.state = Eigen::Map<const Eigen::VectorXd>(method.state().data(),
                                                static_cast<Eigen::Index>(method.state().size()));
  return out;
}

/// Golden numbers with some digits.
void expect_printed(double value, double printed, double relative = 1e-3) {
  EXPECT_NEAR(value, printed, relative * printed) << fmt::format("{:.5e}", value);
}

// ‖(Δq1, Δq2)‖ at t = 10 s against two independent integrators in more digits.
TEST(KickDrift, GoldenErrorsOfTheDuffingLinearPair) {
  const System system = testing::separable_pair();
  const auto error = [&](int order, double step_s) {
    const Outcome done = outcome(system, order, 10.0, static_cast<int>(std::lround(10.0 / step_s)));
    EXPECT_LE(done.worst_balance_J, 1e-12) << step_s;
    return std::hypot(done.state[0] + .277453101531988, done.state[3] - .090596777434194);
  };
  expect_printed(error(4, .04), 1.2610e-4);
  expect_printed(error(4, .02), 8.2389e-6);
  expect_printed(error(4, .01), 5.2034e-7);
  expect_printed(error(4, .005), 3.260e-8, 2e-3);
  expect_printed(error(6, .04), 1.7826e-7);
  expect_printed(error(6, .02), 2.834e-9, 1e-2);
  expect_printed(error(6, .01), 4.44e-11, 5e-2);
  EXPECT_LT(error(6, .005), 2e-12);
}

TEST(KickDrift, DissipatesWhatTheDuffingLinearPairDoes) {
  const Outcome done = outcome(testing::separable_pair(), 6, 10.0, 1000);
  EXPECT_NEAR(done.dissipated_J, 8.081472398240848, 1e-9);
  EXPECT_NEAR(done.state[1], 2.826062761578712, 1e-9);
  EXPECT_NEAR(done.state[2], .368049878966182, 1e-9);
  EXPECT_NEAR(done.state[4], -1.539195675143062, 1e-9);
}

// An 8 × 8 grid of Duffing nodes after 2 s, against a reference in more digits.
TEST(KickDrift, EndsWhereTheGridDoes) {
  const auto check = [](double c12, double stored_J, double dissipated_J, double q27, double v27,
                        double q_norm, double v_norm) {
    const Outcome done = outcome(testing::separable_grid(8, c12), 6, 2.0, 320);
    EXPECT_NEAR(done.stored_J, stored_J, 1e-10 * stored_J);
    EXPECT_NEAR(done.stored_J + done.dissipated_J, 412.96770169502742, 1e-11 * 412.0);
    EXPECT_NEAR(done.dissipated_J, dissipated_J, 1e-10 * dissipated_J);
    EXPECT_NEAR(done.state[4 * 27], q27, 1e-11);
    EXPECT_NEAR(done.state[4 * 27 + 1], v27, 1e-10);
    double q = 0.0, v = 0.0;
    for (int n = 0; n < 64; ++n) {
      q += done.state[4 * n] * done.state[4 * n];
      v += done.state[4 * n + 1] * done.state[4 * n + 1];
    }
    EXPECT_NEAR(std::sqrt(q), q_norm, 1e-10);
    EXPECT_NEAR(std::sqrt(v), v_norm, 1e-10);
  };
  check(.05, 387.60015430564198, 25.36754738938542, -.001963345489762, .820161907714078,
        .786097497625664, 6.442013425076758);
  check(2.0, 47.58911823610178, 365.37858345892562, -.052266855760744, .106546592505685,
        .332292469411995, 2.480925742710076);
}

/// Relative 2-norm of the error of (q, v).
double grid_error(double c12, int order, int steps) {
  const System system = testing::separable_grid(8, c12);
  static const std::array<Eigen::VectorXd, 2> references = {
      outcome(testing::separable_grid(8, .05), 6, 2.0, 640).state,
      outcome(testing::separable_grid(8, 2.0), 6, 2.0, 640).state};
  const Eigen::VectorXd& exact = references[c12 == 2.0 ? 1 : 0];
  const Outcome done = outcome(system, order, 2.0, steps);
  double error = 0.0, size = 0.0;
  for (int n = 0; n < 64; ++n) {
    for (int k = 0; k < 2; ++k) {
      error += std::pow(done.state[4 * n + k] - exact[4 * n + k], 2);
      size += std::pow(exact[4 * n + k], 2);
    }
  }
  return std::sqrt(error / size);
}

TEST(KickDrift, GoldenErrorsOfTheGrid) {
  expect_printed(grid_error(.05, 4, 20), 2.154e-3);
  expect_printed(grid_error(.05, 4, 40), 7.325e-5);
  expect_printed(grid_error(.05, 4, 80), 4.247e-6);
  // Shared dampers to degree 1, lumped.
  expect_printed(grid_error(.05, 6, 20), 2.4750e-5);
  expect_printed(grid_error(.05, 6, 40), 1.2320e-7);
  expect_printed(grid_error(.05, 6, 80), 2.0105e-9, 5e-3);
  // Stronger ones to a higher degree.
  expect_printed(grid_error(2.0, 6, 20), 3.848e-6, 0.1);
  expect_printed(grid_error(2.0, 6, 40), 3.891e-8, 5e-3);
  expect_printed(grid_error(2.0, 6, 80), 5.745e-10, 2e-2);
}

// Rows of 30 nodes are long runs, which begin at whole groups of lanes; in another order of the parts there is none.
TEST(KickDrift, StepsAGridAlikeInAnyOrderOfItsNodes) {
  constexpr int kSize = 30, kNodes = kSize * kSize, kSpread = 7;
  const auto end = [](int spread, int order, double damping) {
    return outcome(testing::separable_grid(kSize, damping, spread), order, 0.2, 4);
  };
  // Springs and dampers in one proportion; the same to a higher degree; dampers that hardly are.
  for (const auto& [order, damping] :
       {std::pair{6, .05}, std::pair{6, 2.0}, std::pair{4, .05}, std::pair{6, 1e-9}}) {
    const Outcome rows = end(1, order, damping), spread = end(kSpread, order, damping);
    double worst = 0.0;
    for (int n = 0; n < kNodes; ++n) {
      const int other = n * kSpread % kNodes;
      for (int k = 0; k < 4; ++k) {
        worst = std::max(worst, std::abs(rows.state[4 * n + k] - spread.state[4 * other + k]));
      }
    }
    EXPECT_LE(worst, 1e-12) << "order " << order << ", damping " << damping;
    EXPECT_NEAR(rows.dissipated_J, spread.dissipated_J, 1e-12 * rows.stored_J);
    EXPECT_LE(rows.worst_balance_J, 1e-12 * rows.stored_J);
  }
  // Control: nodes differ.
  EXPECT_GT(std::abs(end(1, 6, .05).state[0] - end(1, 6, .06).state[0]), 1e-7);
}

/// A line of nodes, of which those that are `heavy` or beyond it have another mass.
System line_of(int nodes, int heavy) {
  SystemBuilder builder;
  const auto name = [](int i) { return "n" + std::to_string(i); };
  const auto node = [](double mass_kg) -> std::shared_ptr<const Subsystem> {
    return duffing_node({.mass_kg = mass_kg,
                         .stiffness_N_per_m = 100,
                         .cubic_stiffness_N_per_m3 = 8000,
                         .coupling_stiffness_N_per_m = 120,
                         .coupling_damping_Ns_per_m = 0.05});
  };
  const auto own = node(8.0), other = node(9.0);
  for (int i = 0; i < nodes; ++i) {
    builder.add(name(i), i < heavy ? own : other,
                {.initial_state = {0.1 * std::sin(0.7 * i), 0.0,
                                   0.1 * (std::sin(0.7 * (i + 1)) - std::sin(0.7 * i)), 0.0}});
    for (const char* port : {".north", ".south"}) builder.join(joint::Free{}, {name(i) + port});
    if (i > 0) builder.connect(name(i - 1) + ".east", name(i) + ".west");
  }
  builder.join(joint::Free{}, {"n0.west"});
  builder.join(joint::Free{}, {name(nodes - 1) + ".east"});
  return builder.build();
}

// More momenta than the second-level cache holds: kicks and drifts follow one another in blocks. What happens at
// one end does not depend yet on how long the line is.
TEST(KickDrift, SweepsLargeNetworksInBlocks) {
  constexpr int kLarge = 34000, kSmall = 1100, kLooked = 1000;
  const auto end = [](int nodes, int heavy) {
    return outcome(line_of(nodes, heavy), 6, 0.08, 4).state;
  };
  const Eigen::VectorXd large = end(kLarge, kLarge), small = end(kSmall, kSmall);
  EXPECT_LE((large.head(4 * kLooked) - small.head(4 * kLooked)).lpNorm<Eigen::Infinity>(), 1e-11);
  EXPECT_GT((small - end(kSmall, kLooked / 2)).head(4 * kLooked).lpNorm<Eigen::Infinity>(), 1e-4)
      << "control";
}

TEST(KickDrift, GoldenErrorsOfTheDrivenLine) {
  const System system = testing::separable_line(16, 4);
  const Outcome exact = outcome(system, 6, .05, 1600);
  EXPECT_NEAR(exact.stored_J, .46807349570479, 1e-11);
  EXPECT_NEAR(exact.supplied_J, 1.999228449448, 1e-11);
  EXPECT_NEAR(exact.dissipated_J, 1.533535633065, 1e-11);
  EXPECT_NEAR(exact.state[0], -1.24474822125849, 1e-11);
  EXPECT_NEAR(exact.state[31], .37257631572525, 1e-11);  // u of cell 16
  const auto error = [&](int steps) {
    const Outcome done = outcome(system, 6, .05, steps);
    return (done.state - exact.state).norm() / exact.state.norm();
  };
  expect_printed(error(100), 2.614e-7, 1e-2);
  expect_printed(error(200), 4.029e-9, 1e-2);
}

/// A line of nodes of which two are unlike the others, and like each other: single rows that are stepped together.
TEST(KickDrift, TakesUnlikeNodesAmongLikeOnes) {
  const auto line = [](double stiffer) {
    SystemBuilder builder;
    const auto name = [](int i) { return "n" + std::to_string(i); };
    for (int i = 0; i < 60; ++i) {
      const double factor = i == 20 || i == 40 ? stiffer : 1.0;
      builder.add(name(i),
                  duffing_node({.mass_kg = 8,
                                .stiffness_N_per_m = 100 * factor,
                                .cubic_stiffness_N_per_m3 = 8000 * factor,
                                .coupling_stiffness_N_per_m = 120,
                                .coupling_damping_Ns_per_m = 0.05}),
                  {.initial_state = {0.1 * std::sin(0.7 * i), 0.0, 0.0, 0.0}});
      for (const char* port : {".north", ".south"}) builder.join(joint::Free{}, {name(i) + port});
      if (i > 0) builder.connect(name(i - 1) + ".east", name(i) + ".west");
    }
    builder.join(joint::Free{}, {"n0.west"});
    builder.join(joint::Free{}, {"n59.east"});
    return builder.build();
  };
  for (const double stiffer : {1.0, 3.0}) {
    const System system = line(stiffer);
    const Outcome fine = outcome(system, 6, 1.0, 160), coarse = outcome(system, 6, 1.0, 40);
    EXPECT_LT((fine.state - coarse.state).norm(), 1e-5 * fine.state.norm()) << stiffer;
    EXPECT_LE(coarse.worst_balance_J, 1e-12 * coarse.stored_J);
  }
  // Control: the two nodes matter.
  EXPECT_GT((outcome(line(3.0), 6, 1.0, 40).state - outcome(line(1.0), 6, 1.0, 40).state).norm(),
            1e-3);
}

}  // namespace
}  // namespace portwave::test_kick_drift
