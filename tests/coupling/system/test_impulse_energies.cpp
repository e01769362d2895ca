// The energies of impulses at states that violate rigid joints. Those of random networks: test_state_constraints.cpp.

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave::test_impulse_energies {
namespace {

std::shared_ptr<const Component> part(const std::string& type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

SystemBuilder::PartOptions begins(std::vector<double> state) {
  return {.initial_state = std::move(state)};
}
SystemBuilder::PartOptions given(const std::string& input, double value) {
  SystemBuilder::PartOptions options;
  options.inputs[input] = Signal::constant(value);
  return options;
}

std::vector<StateConstraints::Odds> odds_at_start(const System& system) {
  const auto state = [&system](int part) -> std::span<const double> {
    return system.parts()[static_cast<std::size_t>(part)].initial_state;
  };
  const StateInstant start = {.state = state, .input = [&system](int part, int input) {
                                return system.parts()[static_cast<std::size_t>(part)]
                                    .inputs[static_cast<std::size_t>(input)](0.0);
                              }};
  return StateConstraints(system, state).odds(start, kOddsShare);
}

TEST(ImpulseEnergies, ANonlinearStorageIsProjectedToItsOwnLaw) {
  // Two capacitors whose voltage is q + q³, in parallel: the charge is kept.
  const auto capacitor = [] {
    Signature signature{
        "cubic", {{"q", "C"}}, {{"t", Causality::flow_in, Domain::electrical, 1}}, {}};
    Structure s = Structure::zero(1, 1);
    s.G.insert(0, 0) = 1.0;
    Hamiltonian h;
    h.value = [](const double* x) { return 0.5 * x[0] * x[0] + 0.25 * std::pow(x[0], 4); };
    h.gradient = [](const double* x, double* g) { g[0] = x[0] + std::pow(x[0], 3); };
    h.hessian = [](const double* x, double* H) { H[0] = 1.0 + 3.0 * x[0] * x[0]; };
    return std::make_shared<NonlinearPortHamiltonian>(
        std::move(signature), std::move(s), std::move(h), NonlinearPortHamiltonian::Options{});
  };
  SystemBuilder builder;
  builder.add("a", capacitor(), begins({2.0})).add("b", capacitor(), begins({0.5}));
  builder.connect("a.t", "b.t");
  const auto all = odds_at_start(builder.build());
  ASSERT_EQ(all.size(), 1u);
  ASSERT_EQ(all[0].jumps.size(), 2u);
  EXPECT_NEAR(all[0].jumps[0].after, 1.25, 1e-12);
  EXPECT_NEAR(all[0].jumps[1].after, 1.25, 1e-12);
  const auto H = [](double q) { return 0.5 * q * q + 0.25 * std::pow(q, 4); };
  EXPECT_NEAR(all[0].impulse_J, H(2.0) + H(0.5) - 2.0 * H(1.25), 1e-12);
  EXPECT_NEAR(all[0].change_J, -all[0].impulse_J, 1e-14) << "no source supplies";
  EXPECT_TRUE(all[0].is_passive);
}

TEST(ImpulseEnergies, AnImpulseThatCreatesEnergyIsSeen) {
  // A double well beside a soft capacitor: the state that satisfies the joint nearby has the most energy.
  const auto well = [] {
    Signature signature{
        "well", {{"q", "C"}}, {{"t", Causality::flow_in, Domain::electrical, 1}}, {}};
    Structure s = Structure::zero(1, 1);
    s.G.insert(0, 0) = 1.0;
    Hamiltonian h;
    h.value = [](const double* x) { return 0.25 * std::pow(x[0] * x[0] - 1.0, 2); };
    h.gradient = [](const double* x, double* g) { g[0] = std::pow(x[0], 3) - x[0]; };
    h.hessian = [](const double* x, double* H) { H[0] = 3.0 * x[0] * x[0] - 1.0; };
    return std::make_shared<NonlinearPortHamiltonian>(
        std::move(signature), std::move(s), std::move(h), NonlinearPortHamiltonian::Options{});
  };
  SystemBuilder builder;
  builder.add("a", well(), begins({0.1}));
  builder.add("b", part("capacitor", {{"capacitance_F", 10.0}}), begins({-0.01}));
  builder.join(joint::CommonEffort{}, {"a.t", "b.terminals"});
  const auto all = odds_at_start(builder.build());
  ASSERT_EQ(all.size(), 1u);
  EXPECT_TRUE(all[0].is_consistent);
  EXPECT_LT(all[0].impulse_J, 0.0);
  EXPECT_FALSE(all[0].is_passive);
}

TEST(ImpulseEnergies, EachSourceOfAnImpulseHasItsShare) {
  // Two sources and a capacitor in a loop: 3 C go through both.
  SystemBuilder builder;
  for (const auto& [name, volt] : {std::pair("v1", 1.0), std::pair("v2", 2.0)}) {
    builder.add(name, part("effort_source", {{"domain", std::string("electrical")}}),
                given("effort", volt));
  }
  builder.add("c", part("capacitor", {{"capacitance_F", 1.0}}));
  builder.join(joint::CommonFlow{}, {"v1.port", "v2.port", "c.terminals"});
  const auto all = odds_at_start(builder.build());
  ASSERT_EQ(all.size(), 1u);
  std::vector<double> supplied_J(3, 0.0);
  for (const auto& own : all[0].parts)
    supplied_J[static_cast<std::size_t>(own.part)] = own.supplied_J;
  EXPECT_NEAR(supplied_J[0], 3.0, 1e-12);
  EXPECT_NEAR(supplied_J[1], 6.0, 1e-12);
  EXPECT_EQ(supplied_J[2], 0.0);
  EXPECT_NEAR(all[0].impulse_J, 4.5, 1e-12);
}

}  // namespace
}  // namespace portwave::test_impulse_energies
