#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include <portwave/coupling/network/collocation.hpp>
#include <portwave/coupling/network/condensed.hpp>
#include <portwave/coupling/reference/monolithic.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/linear_networks.hpp"
#include "support/systems/random_linear.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_condensed {
namespace {

using testing::RandomLinear;

/// Chains whose ends need it closed by resistors, a transformer and a gyrator between them.
System network_of_all_joints() {
  SystemBuilder builder;
  const auto chain = [](ChainEnd left, ChainEnd right) {
    return mass_spring_damper_chain({.masses = 3,
                                     .mass_kg = 0.7,
                                     .stiffness_N_per_m = 20,
                                     .damping_Ns_per_m = 0.2,
                                     .ground_stiffness_N_per_m = 1.0,
                                     .coupling_stiffness_N_per_m = 30,
                                     .left_end = left,
                                     .right_end = right});
  };
  const ChainEnd mass = ChainEnd::mass, spring = ChainEnd::spring;
  builder.add("a", chain(mass, spring), {.initial_state = {0.1, 0.2, -0.3, 0.4, 0.0, -0.5, 0.05}});
  builder.add("b", chain(mass, spring),
              {.inputs = {{"force_2", Signal::sine_product(2.0, {{1.3, 0.4}})}}});
  builder.add("c", chain(mass, mass));
  builder.add("d", chain(spring, spring));
  builder.add("e", chain(mass, spring));
  builder.join(joint::Resistive{0.8}, {"a.left"});
  builder.join(joint::Transformer{1.7}, {"a.right", "b.left"});
  builder.join(joint::CommonEffort{}, {"b.right", "c.left", "e.left"});
  builder.connect("c.right", "d.left");
  builder.join(joint::Resistive{2.0}, {"d.right"});
  builder.join(joint::Fixed{}, {"e.right"});
  return builder.build();
}

/// The largest difference of states, efforts and flows from the wave-free reference, which knows
/// nothing of condensing, over some steps.
double difference_from_monolithic(const System& parts, double step_s, int steps) {
  const CondensedSystem system(parts);
  CollocationReference condensed(system, step_s, Integrator::midpoint);
  MonolithicReference reference(parts, step_s);
  double worst = 0.0;
  for (int n = 0; n < steps; ++n) {
    const Eigen::VectorXd before =
        Eigen::Map<const Eigen::VectorXd>(condensed.state().data(), system.size());
    condensed.step();
    reference.step();
    for (const CondensedBlock& block : system.blocks()) {
      for (int i = 0; i < block.size; ++i) {
        const auto k = static_cast<std::size_t>(i);
        worst =
            std::max(worst, std::abs(condensed.state()[static_cast<std::size_t>(block.first) + k] -
                                     reference.state(block.part)[k]));
      }
    }
    const Eigen::VectorXd z =
        system.Q() * Eigen::Map<const Eigen::VectorXd>(condensed.stages().data(), system.size());
    std::vector<double> effort(parts.scalar_ports().size()), flow(effort.size());
    system.ports(z.data(), effort, flow);
    for (std::size_t j = 0; j < effort.size(); ++j) {
      worst = std::max({worst, std::abs(effort[j] - reference.effort()[j]),
                        std::abs(flow[j] - reference.flow()[j])});
    }
  }
  return worst;
}

TEST(CondensedSystem, StepsLikeTheUncondensedOne) {
  EXPECT_LT(difference_from_monolithic(network_of_all_joints(), 0.01, 100), 1e-12);
  EXPECT_LT(difference_from_monolithic(testing::single_rate_chains(), 0.01, 50), 1e-12);
  EXPECT_LT(difference_from_monolithic(testing::chain_of_blocks(5, 4), 0.01, 50), 1e-12);
  EXPECT_LT(difference_from_monolithic(testing::rotation(15.0, 0.01, 2.0), 0.01, 50), 1e-12);
  for (unsigned seed = 1; seed <= 20; ++seed) {
    for (const auto kind : {RandomLinear::E::identity, RandomLinear::E::regular}) {
      const System network =
          testing::random_linear_network({.kind = kind, .driven = seed % 2 == 0}, seed);
      EXPECT_LT(difference_from_monolithic(network, 0.05, 20), 1e-11) << "seed " << seed;
    }
  }
}

TEST(CondensedSystem, ItsMatricesArePortHamiltonian) {
  const System parts = network_of_all_joints();
  const CondensedSystem system(parts);
  const Eigen::MatrixXd J_o(system.J_coupling()), J_d(system.J_local()), R(system.R());
  EXPECT_LT((J_o + J_o.transpose()).norm(), 1e-12 * J_o.norm());
  EXPECT_LT((J_d + J_d.transpose()).norm(), 1e-12 * J_d.norm());
  EXPECT_GT(Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(R).eigenvalues()[0], -1e-12);
  for (const CondensedBlock& block : system.blocks()) {
    EXPECT_EQ(J_o.block(block.first, block.first, block.size, block.size).norm(), 0.0);
  }
  EXPECT_GT(J_o.norm(), 0.0);
}

TEST(CondensedSystem, AResistorThatEndsAPortDampsItsPart) {
  const auto damping = [](double resistance) {
    SystemBuilder builder;
    builder.add("m", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 3.0}));
    builder.join(joint::Resistive{resistance}, {"m.coupling"});
    const System parts = builder.build();
    const CondensedSystem system(parts);
    EXPECT_EQ(system.blocks().size(), 1u);
    return system.R().sum();
  };
  EXPECT_DOUBLE_EQ(damping(0.0), 0.0);
  EXPECT_DOUBLE_EQ(damping(6.0), 2.0 * damping(3.0));
  EXPECT_GT(damping(3.0), 0.0);
}

std::vector<std::string> reasons_against(const System& parts) {
  std::vector<std::string> out;
  try {
    const CondensedSystem system(parts);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
  }
  return out;
}

TEST(CondensedSystem, SaysEveryReasonWhyASystemHasNoSuchForm) {
  const auto nonlinear = reasons_against(testing::duffing_linear_pair());
  ASSERT_EQ(nonlinear.size(), 1u);
  EXPECT_EQ(nonlinear[0], "/subsystems/0: \"A\" (duffing_oscillator) is not linear");

  const auto rigid = reasons_against(testing::lossless_pair());
  ASSERT_EQ(rigid.size(), 1u);
  EXPECT_NE(rigid[0].find("the coupling of A.coupling, B.coupling does not give the inputs"),
            std::string::npos)
      << rigid[0];

  for (const auto& part : {"docs/concepts/choosing-a-method.md", "\"kind\": \"auto\"", "put a "}) {
    EXPECT_NE(rigid[0].find(part), std::string::npos) << rigid[0];
  }
  const ChainEnd mass = ChainEnd::mass;
  SystemBuilder masses;
  masses.add("left", mass_spring_damper_chain({.masses = 2, .right_end = mass}));
  masses.add("right", mass_spring_damper_chain({.masses = 2, .right_end = mass}));
  masses.connect("left.right", "right.left");
  for (const char* end : {"left.left", "right.right"}) masses.join(joint::Free{}, {end});
  const auto joined = reasons_against(masses.build());
  ASSERT_EQ(joined.size(), 1u);
  for (const auto& part : {"left.right, right.left", "take an effort and give a flow, as masses do",
                           "put a stiff spring between them"}) {
    EXPECT_NE(joined[0].find(part), std::string::npos) << joined[0];
  }

  SystemBuilder builder;
  const auto link = [] {
    return mass_spring_damper_chain(
        {.masses = 2, .coupling_stiffness_N_per_m = 5, .coupling_damping_Ns_per_m = 0.3});
  };
  builder.add("a", link());
  builder.add("b", link());
  builder.join(joint::Free{}, {"a.left"});
  builder.connect("a.right", "b.left");
  builder.join(joint::Fixed{}, {"b.right"});
  const auto shared = reasons_against(builder.build());
  ASSERT_EQ(shared.size(), 1u);
  EXPECT_EQ(shared[0],
            "/couplings: the coupling dissipates between a.v2 and b.v1: a damper that two parts "
            "share; put it into one of them");
}

TEST(CondensedSystem, FindsScalarCouplings) {
  const System parts = testing::chain_pair({}, {}, 50.0);
  const CondensedSystem system(parts);
  std::string reason;
  const auto couplings = system.scalar_couplings(reason);
  ASSERT_EQ(couplings.size(), 1u) << reason;
  // ẋ_c = −p₂₁/m, ṗ₂₁ = +K_co x_c.
  EXPECT_EQ(couplings[0].row, 50);
  EXPECT_EQ(couplings[0].column, 51);
  EXPECT_DOUBLE_EQ(couplings[0].forward, -1.0 / 0.3);
  EXPECT_DOUBLE_EQ(couplings[0].backward, 50.0);

  const System hub = network_of_all_joints();
  EXPECT_TRUE(CondensedSystem(hub).scalar_couplings(reason).empty());
  EXPECT_FALSE(reason.empty());
}

}  // namespace
}  // namespace portwave::test_condensed
