// The papers' systems as examples/ has them: the couplings with their signs, which norms of errors
// do not see, since x₂ → −x₂ turns one sign into the other.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/network/condensed.hpp>

#include "support/systems/example_scenarios.hpp"

namespace portwave::test_paper_systems {
namespace {

using testing::example;

struct Coupling {
  std::string scenario;
  int row, column;  ///< from 0
  double value;     ///< J_o(row, column) = −J_o(column, row), and nothing else
};

class PaperSystem : public ::testing::TestWithParam<Coupling> {};

TEST_P(PaperSystem, CouplesAsTheSourceDoes) {
  const Coupling& expected = GetParam();
  const Scenario scenario = example(expected.scenario);
  const CondensedSystem system(scenario.system);
  const Eigen::MatrixXd J(system.J_coupling());
  EXPECT_EQ(J(expected.row, expected.column), expected.value);
  EXPECT_EQ(J(expected.column, expected.row), -expected.value);
  EXPECT_EQ((J.array() != 0.0).count(), 2);
}

// Source: Bartel, Günther, Jacob & Reis, example 13, sections 6.2.3, 6.3, 6.4, with J + B C Bᵀ;
// Lorenz, Zwerschke, Günther & Schäfers, section 5.
INSTANTIATE_TEST_SUITE_P(All, PaperSystem,
                         ::testing::Values(Coupling{"jacobi_failure", 0, 1, 15.0},
                                           Coupling{"two_masses", 2, 3, -1.0},
                                           Coupling{"circuit", 3, 4, 1.0},
                                           Coupling{"msd_chains", 51, 50, 1.0},
                                           Coupling{"msd_singlerate", 51, 50, 1.0},
                                           Coupling{"msd_multirate", 11, 10, 1.0}),
                         [](const auto& suite) { return suite.param.scenario; });

// p₁' = −(K + K₁)q₁ + K q₂ − (r₁/m₁)p₁,  q₁' = p₁/m₁, and the same with 1 and 2 exchanged: with the
// elongation q₁ − q₂ in place of both.
TEST(PaperSystemMotion, TwoMassesObeyTheirEquations) {
  const Scenario scenario = example("two_masses");
  const CondensedSystem system(scenario.system);
  const Eigen::MatrixXd A((system.J_local() + system.J_coupling() - system.R()) * system.Q());
  Eigen::MatrixXd expected(5, 5);   // p1, q1, q1 − q2, p2, q2
  expected << -0.25, -2, -4, 0, 0,  //
      0.5, 0, 0, 0, 0,              //
      0.5, 0, 0, -0.5, 0,           //
      0, 0, 4, -0.375, -2,          //
      0, 0, 0, 0.5, 0;
  EXPECT_TRUE(A.isApprox(expected, 1e-15)) << A;
  // Control: the other sign is not it.
  const Scenario mirrored = example("two_masses", {{"/subsystems/1/parameters/G", "[[-1], [0]]"}});
  const CondensedSystem other(mirrored.system);
  EXPECT_EQ(Eigen::MatrixXd(other.J_coupling())(2, 3), 1.0);
}

}  // namespace
}  // namespace portwave::test_paper_systems
