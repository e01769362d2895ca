// Collocation of the whole system, the reference of dynamic iteration.

#include <cmath>

#include <Eigen/Core>
#include <gtest/gtest.h>

#include "portwave/coupling/network/collocation.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/random_linear.hpp"
#include "support/systems/systems.hpp"
#include "support/systems/whole_system.hpp"

namespace portwave::test_collocation {
namespace {

using testing::RandomLinear;

TEST(Collocation, RefusesMethodsThatAlgebraicEquationsCannotTake) {
  const System network = testing::random_linear_network({.kind = RandomLinear::E::singular}, 2);
  const CondensedSystem system(network);
  EXPECT_THROW(CollocationReference(system, 0.1, Integrator::midpoint), ConfigError);
  EXPECT_THROW(CollocationReference(
                   system, 0.1, Tableau{.stages = 2, .A_inverse = {1.0}, .b = {1.0}, .c = {1.0}}),
               ConfigError);
  EXPECT_NO_THROW(CollocationReference(system, 0.1, Integrator::automatic));
}

TEST(Collocation, RadauIiaHasOrderThreeAndMidpointTwo) {
  const System chains = testing::chain_pair({3, 50.0, 0.3, 0.1}, {4, 40.0, 0.5, 0.2}, 20.0);
  const CondensedSystem system(chains);
  const Eigen::VectorXd exact = testing::exact_state(system, 1.0);
  const auto error = [&](Integrator integrator, int steps) {
    CollocationReference reference(system, 1.0 / steps, integrator);
    for (int n = 0; n < steps; ++n) reference.step();
    return (Eigen::Map<const Eigen::VectorXd>(reference.state().data(), system.size()) - exact)
        .norm();
  };
  EXPECT_NEAR(std::log2(error(Integrator::midpoint, 200) / error(Integrator::midpoint, 400)), 2.0,
              0.05);
  EXPECT_NEAR(std::log2(error(Integrator::radau_iia, 200) / error(Integrator::radau_iia, 400)), 3.0,
              0.05);
}

// Differential variables of index 1 keep order 3, algebraic ones too, since the last stage is the
// state.
TEST(Collocation, RadauIiaOnDescriptorSystems) {
  for (const unsigned seed : {2u, 6u, 9u}) {
    const System network =
        testing::random_linear_network({.kind = RandomLinear::E::singular, .driven = true}, seed);
    const CondensedSystem system(network);
    EXPECT_EQ(system.analysis().index, 1);
    const auto state = [&](int steps) {
      CollocationReference reference(system, 1.0 / steps, Integrator::radau_iia);
      for (int n = 0; n < steps; ++n) reference.step();
      return Eigen::VectorXd(
          Eigen::Map<const Eigen::VectorXd>(reference.state().data(), system.size()));
    };
    const Eigen::VectorXd exact = state(6400), coarse = state(100) - exact,
                          fine = state(200) - exact;
    const double differential = (system.E() * coarse).norm() / (system.E() * fine).norm();
    EXPECT_NEAR(std::log2(differential), 3.0, 0.2) << "seed " << seed;
    EXPECT_NEAR(std::log2(coarse.norm() / fine.norm()), 3.0, 0.3) << "seed " << seed;
  }
}

}  // namespace
}  // namespace portwave::test_collocation
