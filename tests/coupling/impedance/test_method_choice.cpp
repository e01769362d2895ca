// Predicted rates and the automatic choice, against the iterations that they predict.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "support/inner_iteration.hpp"
#include "support/linear_rate.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_method_choice {
namespace {

using testing::InnerRun;
using testing::run_steps;
using testing::wave_matrices;

WaveCoupling everything_automatic() {
  WaveCoupling method;
  method.kind = WaveUpdate::automatic;
  method.impedance_kind = ImpedanceKind::automatic;
  return method;
}

TEST(Rates, OfARingOfFiveMassBlocks) {
  const System system = testing::ring_of_blocks(8, 5);
  const struct {
    double h, rate, tolerance;
  } cases[] = {{1e-2, 9.34e-12, 2e-14}, {0.1, 9.686e-4, 1e-6}, {1.0, 0.4723, 1e-3}};
  for (const auto& c : cases) {
    const PortResponses responses(system, c.h);
    const auto m =
        wave_matrices(responses, tune_impedance(responses, ImpedanceKind::matched).by_port);
    EXPECT_NEAR(testing::peaceman_rachford_rate(m), c.rate, c.tolerance) << c.h;
    if (c.h < 1.0) {
      EXPECT_NEAR(testing::douglas_rachford_rate(m), 2.0 / 3.0, 0.01) << c.h;
    }
  }
}

TEST(Rates, AHubStallsMatchedAndTakesThreeEvaluationsWithLeaf) {
  const System system = testing::star_on_hub(64, 1.0);
  for (const double h : {1e-5, 1e-4, 1e-3, 1e-2, 0.1}) {
    const PortResponses responses(system, h);
    const auto matched = tune_impedance(responses, ImpedanceKind::matched).by_port;
    const auto leaf = tune_impedance(responses, ImpedanceKind::leaf).by_port;
    EXPECT_GT(testing::peaceman_rachford_rate(wave_matrices(responses, matched)), 0.95) << h;
    const PredictedRate rate = predict_rate(responses, leaf, WaveUpdate::peaceman_rachford, 1.0);
    EXPECT_LE(rate.evaluations, 3) << h;
    EXPECT_TRUE(rate.converges);
    EXPECT_FALSE(predict_rate(responses, matched, WaveUpdate::peaceman_rachford, 1.0).converges);
  }
}

TEST(Rates, PredictionIsTheSpectralRadiusWhereThatRules) {
  const System chain = testing::chain_of_blocks(6, 2);
  const PortResponses responses(chain, 0.2);
  const auto gamma = tune_impedance(responses, ImpedanceKind::leaf).by_port;
  const auto m = wave_matrices(responses, gamma);
  for (const double relaxation : {0.5, 0.8, 1.0}) {
    const PredictedRate rate =
        predict_rate(responses, gamma, WaveUpdate::peaceman_rachford, relaxation, 400);
    EXPECT_NEAR(rate.contraction, testing::peaceman_rachford_rate(m, relaxation), 0.06)
        << relaxation;
  }
  for (const double relaxation : {0.7, 1.0, 1.5}) {
    const PredictedRate rate =
        predict_rate(responses, gamma, WaveUpdate::douglas_rachford, relaxation, 400);
    EXPECT_NEAR(rate.contraction, testing::douglas_rachford_rate(m, relaxation), 0.06)
        << relaxation;
  }
}

TEST(Rates, PredictionIsWhatIsObserved) {
  const System grid = testing::duffing_grid(6, 6), tree = testing::random_mass_tree(40, 10.0, 1);
  for (const System* system : {&grid, &tree}) {
    const double h = 0.02;
    const PortResponses responses(*system, h);
    const auto leaf = tune_impedance(responses, ImpedanceKind::leaf).by_port;
    for (const auto& [kind, relaxation] : {std::pair{WaveUpdate::peaceman_rachford, 1.0},
                                           {WaveUpdate::peaceman_rachford, 0.5},
                                           {WaveUpdate::douglas_rachford, 1.0}}) {
      WaveCoupling method;
      method.kind = kind;
      method.relaxation = relaxation;
      method.impedance = leaf;
      const double observed = run_steps(*system, h, method).contraction;
      const double predicted = predict_rate(responses, leaf, kind, relaxation).contraction;
      EXPECT_NEAR(std::log(observed) / std::log(predicted), 1.0, 0.25)
          << system->parts().size() << " parts, " << to_string(kind) << " " << relaxation << ": "
          << observed << ", " << predicted;
    }
  }
}

TEST(Rates, WavesThatAreNotUniqueDoNotSpoilThePrediction) {
  // Two rigid bodies joined twice: how the two connections share the force is not determined.
  SystemBuilder builder;
  builder.add("a", testing::sprung_mass({.mass = 1.0, .rigid_ports = 2, .velocity = 1.0}));
  builder.add("b", testing::sprung_mass({.mass = 2.0, .rigid_ports = 2}));
  builder.connect("a.p0", "b.p0");
  builder.connect("a.p1", "b.p1");
  const System system = builder.build();
  const PortResponses responses(system, 0.01);
  const std::vector<double> gamma(4, 150.0);
  EXPECT_NEAR(testing::peaceman_rachford_rate(wave_matrices(responses, gamma), 0.5), 1.0, 1e-9);
  EXPECT_TRUE(predict_rate(responses, gamma, WaveUpdate::peaceman_rachford, 0.5).converges);
}

TEST(Rates, DivergenceIsNotConvergence) {
  // A part that creates energy: a negative damper heavier than its mass in a step.
  SystemBuilder builder;
  builder.add("a",
              linear_oscillator({.mass_kg = 1e-3, .damping_Ns_per_m = -0.5, .allow_active = true}));
  builder.add("b", linear_oscillator({.mass_kg = 1.0}));
  builder.connect("a.coupling", "b.coupling");
  const System system = builder.build();
  const PortResponses responses(system, 0.01);
  const PredictedRate rate = predict_rate(responses, std::vector<double>(2, 0.1),
                                          WaveUpdate::peaceman_rachford, 1.0, 2000);
  EXPECT_FALSE(rate.converges);
  EXPECT_EQ(rate.evaluations, 2000);
}

/// A system, the step sizes and what the automatic choice may take on it.
struct Goal {
  std::string name;
  std::function<System()> make;
  int evaluations;
  std::vector<double> steps = {1e-4, 1e-3, 1e-2};
};

std::vector<Goal> goals() {
  using namespace testing;
  std::vector<Goal> out = {
      {"star_64", [] { return star_on_hub(64, 1.0); }, 3},
      {"star_64_spread_masses", [] { return star_on_hub(64, 100.0); }, 3},
      {"duffing_grid_32x32", [] { return duffing_grid(32, 32); }, 15},
      {"stiff_soft_heavy", [] { return stiff_soft_pair(1e8, 1e6, false); }, 3},
      {"stiff_soft_light", [] { return stiff_soft_pair(1e8, 1e-6, false); }, 3},
      {"stiff_soft_heavy_duffing", [] { return stiff_soft_pair(1e8, 1e6, true); }, 5},
      {"stiff_soft_light_duffing", [] { return stiff_soft_pair(1e8, 1e-6, true); }, 5},
      {"dc_motors_16_on_a_bus", [] { return dc_motors(16, true); }, 8},
      {"dc_motors_16_loads_joined", [] { return dc_motors(16, false); }, 8},
      {"chain_64", [] { return chain_of_blocks(64, 5); }, 4},
      {"chain_1024", [] { return chain_of_blocks(1024, 5); }, 4},
      {"duffing_linear_pair", [] { return duffing_linear_pair(); }, 5},
      {"ring_of_junctions", [] { return ring_of_junctions(); }, 8},
  };
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const std::string id = std::to_string(seed);
    out.push_back({"mass_tree_" + id, [seed] { return random_mass_tree(40, 100.0, seed); }, 20});
    out.push_back({"dense_tree_" + id, [seed] { return random_dense_tree(40, 10.0, seed); }, 20});
  }
  return out;
}

/// Evaluations predicted for Douglas–Rachford with one γ for all ports, the best of a scan.
struct BestSingle {
  double impedance = 0.0;
  PredictedRate rate{.evaluations = 0};
};

BestSingle best_single_douglas_rachford(const PortResponses& responses) {
  constexpr int kLimit = 200;
  BestSingle best;
  for (int exponent = -12; exponent <= 20; ++exponent) {
    const double gamma = std::pow(10.0, 0.5 * exponent);
    const std::vector<double> impedance(responses.system().scalar_ports().size(), gamma);
    const PredictedRate rate =
        predict_rate(responses, impedance, WaveUpdate::douglas_rachford, 1.0, kLimit);
    const bool better = best.impedance == 0.0 || (rate.converges && !best.rate.converges) ||
                        (rate.converges == best.rate.converges &&
                         (rate.converges ? rate.evaluations < best.rate.evaluations
                                         : rate.contraction < best.rate.contraction));
    if (better) best = {gamma, rate};
  }
  return best;
}

class Automatic : public ::testing::TestWithParam<Goal> {};

TEST_P(Automatic, NeedsFewEvaluations) {
  const Goal& goal = GetParam();
  const System system = goal.make();
  for (const double h : goal.steps) {
    const PortResponses responses(system, h);
    const MethodChoice choice = choose_method(responses, everything_automatic());
    const InnerRun run = run_steps(system, h, choice.method.waves());
    const bool scan = system.parts().size() <= 100;
    const BestSingle single = scan ? best_single_douglas_rachford(responses) : BestSingle{};
    const std::string beside =
        scan ? std::to_string(single.rate.evaluations) + (single.rate.converges ? "" : "+") : "-";
    std::printf("%-26s h=%-6g measured %2d, predicted %2d; best single-impedance DR %s\n",
                goal.name.c_str(), h, run.most_evaluations, choice.rate.evaluations,
                beside.c_str());
    EXPECT_TRUE(run.converged) << h << ": " << choice.reason;
    EXPECT_LE(run.most_evaluations, goal.evaluations) << h << ": " << choice.reason;
    EXPECT_LE(run.most_evaluations, choice.rate.evaluations + 3) << h;  // as predicted
    if (scan && goal.evaluations <= 15) {
      EXPECT_GE(single.rate.evaluations, run.most_evaluations) << h;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Systems, Automatic, ::testing::ValuesIn(goals()),
                         [](const auto& instance) { return instance.param.name; });

TEST(MethodChoice, LeafOnTheGridTakesWhatItIsSaidTo) {
  const System system = testing::duffing_grid(32, 32);
  const struct {
    double h;
    int evaluations;
  } cases[] = {{1e-4, 5}, {1e-3, 7}, {1e-2, 10}, {0.1, 20}};
  for (const auto& c : cases) {
    WaveCoupling method;
    method.kind = WaveUpdate::peaceman_rachford;
    method.impedance_kind = ImpedanceKind::leaf;
    const MethodChoice choice = choose_method(PortResponses(system, c.h), method);
    EXPECT_LE(run_steps(system, c.h, choice.method.waves()).most_evaluations, c.evaluations) << c.h;
  }
}

TEST(MethodChoice, ChainsDoNotGetHarderWithTheirLength) {
  for (const double h : {1e-3, 1e-2}) {
    int evaluations[2];
    for (const int longer : {0, 1}) {
      const System system = testing::chain_of_blocks(longer == 1 ? 512 : 16, 5);
      evaluations[longer] =
          choose_method(PortResponses(system, h), everything_automatic()).rate.evaluations;
    }
    EXPECT_EQ(evaluations[0], evaluations[1]) << h;
  }
}

TEST(MethodChoice, IsTheSameEveryTime) {
  const System system = testing::random_mass_tree(40, 10.0, 9);
  const PortResponses responses(system, 1e-2), again(system, 1e-2);
  const MethodChoice a = choose_method(responses, everything_automatic());
  const MethodChoice b = choose_method(again, everything_automatic());
  EXPECT_EQ(a.method.waves().impedance, b.method.waves().impedance);
  EXPECT_EQ(a.reason, b.reason);
}

TEST(MethodChoice, LeavesAloneWhatIsGiven) {
  const System system = testing::duffing_linear_pair();
  const PortResponses responses(system, 0.01);
  WaveCoupling method;
  method.impedance = {0.4};
  method.relaxation = 1.3;
  method.acceleration = 4;
  const MethodChoice given = choose_method(responses, method);
  EXPECT_EQ(given.method.kind(), WaveUpdate::douglas_rachford);
  EXPECT_EQ(given.method.waves().relaxation, 1.3);
  EXPECT_EQ(given.method.waves().acceleration, 4);
  EXPECT_EQ(given.method.waves().impedance_kind, ImpedanceKind::given);
  EXPECT_EQ(given.method.waves().impedance, std::vector<double>(2, 0.4));
  method.impedance_kind = ImpedanceKind::automatic;
  const MethodChoice chosen = choose_method(responses, method);
  EXPECT_EQ(chosen.method.kind(), WaveUpdate::douglas_rachford);
  EXPECT_EQ(chosen.method.waves().relaxation, 1.3);
  EXPECT_NE(chosen.method.waves().impedance_kind, ImpedanceKind::automatic);
  method.impedance_kind = ImpedanceKind::given;
  method.impedance = {0.4, -1.0};
  EXPECT_THROW(choose_method(responses, method), ConfigError);
}

TEST(MethodChoice, SaysWhy) {
  const System system = testing::star_on_hub(16, 1.0);
  const MethodChoice choice = choose_method(PortResponses(system, 1e-2), everything_automatic());
  EXPECT_EQ(choice.reason.find("Peaceman-Rachford with leaf impedances: 3 evaluations predicted ("),
            0U)
      << choice.reason;
  EXPECT_NE(choice.reason.find("matched: 100 and more"), std::string::npos) << choice.reason;
}

// Evaluations of Duffing parts are cheap: up to twenty are less work than three solves.
TEST(MethodChoice, ManyEvaluationsCallForTheInterfaceEquation) {
  const System grid = testing::duffing_grid(6, 6);
  const MethodChoice many = choose_method(PortResponses(grid, 0.1), everything_automatic());
  EXPECT_EQ(many.method.kind(), WaveUpdate::peaceman_rachford) << many.reason;
  EXPECT_LE(many.rate.evaluations, 20);
  const MethodChoice slow = choose_method(PortResponses(grid, 0.3), everything_automatic());
  EXPECT_EQ(slow.method.kind(), WaveUpdate::interface) << slow.reason;
  EXPECT_LE(slow.rate.evaluations, 8);
  EXPECT_EQ(slow.method.waves().acceleration, 0);
  const MethodChoice fast = choose_method(PortResponses(grid, 1e-4), everything_automatic());
  EXPECT_EQ(fast.method.kind(), WaveUpdate::peaceman_rachford) << fast.reason;
  EXPECT_LE(fast.rate.evaluations, 8);
  EXPECT_EQ(fast.method.waves().acceleration, 0);
}

// Under a deadline there may be no time for a solve: islands that solve then have plain waves that converge.
TEST(MethodChoice, AnytimeHasPlainWavesBesideTheInterfaceEquation) {
  const System grid = testing::duffing_grid(6, 6);
  const PortResponses responses(grid, 0.3);
  const MethodChoice choice = choose_method(responses, everything_automatic(), {.is_on = true});
  const WaveCoupling& method = choice.method.waves();
  EXPECT_NE(method.kind, WaveUpdate::interface) << choice.reason;
  EXPECT_EQ(method.interface_islands, std::vector<int>{0});
  EXPECT_EQ(choose_method(responses, everything_automatic()).method.kind(), WaveUpdate::interface)
      << "control";
}

/// The largest condition of I + M̂, which the parts' own steps invert.
double worst_condition(const PortResponses& responses, const std::vector<double>& impedance) {
  const System& system = responses.system();
  double largest = 0.0;
  for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
    const Eigen::MatrixXd& M = responses.of(i);
    const auto first = static_cast<Eigen::Index>(system.first_scalar_port(i));
    const Signature& signature = system.parts()[static_cast<std::size_t>(i)].component->signature();
    Eigen::VectorXd scale(M.rows());
    Eigen::Index j = 0;
    for (const Port& port : signature.ports) {
      const double root = std::sqrt(impedance[static_cast<std::size_t>(first + j)]);
      scale[j++] = port.causality == Causality::effort_in ? root : 1.0 / root;
    }
    const Eigen::MatrixXd closed =
        Eigen::MatrixXd::Identity(M.rows(), M.rows()) + scale.asDiagonal() * M * scale.asDiagonal();
    largest = std::max(largest, closed.norm() * closed.inverse().norm());
  }
  return largest;
}

// A rule that needs few evaluations is no good where it makes a part's step map ill-conditioned.
TEST(MethodChoice, AvoidsIllConditionedStepMaps) {
  int avoided = 0;
  for (unsigned seed = 1; seed <= 60; ++seed) {
    const System system = testing::random_network({6, 10.0, false}, seed);
    const PortResponses responses(system, 1e-2);
    const MethodChoice choice = choose_method(responses, everything_automatic());
    const auto matched = tune_impedance(responses, ImpedanceKind::matched).by_port;
    if (matched.empty() || worst_condition(responses, matched) > 1e4) continue;
    EXPECT_LE(worst_condition(responses, choice.method.waves().impedance), 1e4)
        << seed << choice.reason;
    for (const ImpedanceKind rule : {ImpedanceKind::leaf, ImpedanceKind::adapted}) {
      const auto other = tune_impedance(responses, rule).by_port;
      if (!other.empty() && worst_condition(responses, other) > 1e4) ++avoided;
    }
  }
  EXPECT_GT(avoided, 0) << "control: no rule is ill-conditioned here";
}

}  // namespace
}  // namespace portwave::test_method_choice
