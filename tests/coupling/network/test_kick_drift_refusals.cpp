#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/network/kick_drift.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

#include "support/systems/separable_networks.hpp"

namespace portwave::test_kick_drift_refusals {
namespace {

/// What is wrong with a system; empty if it is taken.
std::string objection(const System& system) {
  try {
    KickDriftMethod method(system, 0.0, 0.01, {.kind = SplittingKind::kick_drift});
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

void expect_names(const System& system, const std::vector<std::string>& all) {
  const std::string text = objection(system);
  for (const std::string& each : all) {
    EXPECT_NE(text.find(each), std::string::npos) << "\"" << each << "\" is not in\n" << text;
  }
}

/// Three states that all act on one another.
std::shared_ptr<const Subsystem> triangle() {
  Structure s = Structure::zero(3, 0);
  for (const auto& [i, j] : {std::pair{0, 1}, std::pair{1, 2}, std::pair{2, 0}}) {
    s.J.insert(i, j) = 1.0;
    s.J.insert(j, i) = -1.0;
  }
  SparseMatrix Q(3, 3);
  Q.setIdentity();
  return std::make_shared<LinearPortHamiltonian>(
      Signature{"triangle", {{"a", "m"}, {"b", "m"}, {"c", "m"}}, {}, {}}, std::move(s), Q);
}

TEST(KickDriftRefusal, TakesWhatHasTheForm) {
  EXPECT_EQ(objection(testing::separable_pair()), "");
  EXPECT_EQ(objection(testing::separable_line(8, 4)), "");
}

TEST(KickDriftRefusal, OfMassesJoinedRigidly) {
  SystemBuilder builder;
  builder.add("a", parts::mass({.mass_kg = 1.0}));
  builder.add("b", parts::mass({.mass_kg = 1.0}));
  builder.join(joint::CommonFlow{}, {"a.port", "b.port"});
  expect_names(builder.build(), {"a.port", "b.port", "constraint", "stiff spring"});
}

TEST(KickDriftRefusal, OfSpringsInSeries) {
  SystemBuilder builder;
  builder.add("a", parts::spring({.stiffness_N_per_m = 1.0}));
  builder.add("b", parts::spring({.stiffness_N_per_m = 1.0}));
  builder.join(joint::Fixed{}, {"a.left"});
  builder.connect("a.right", "b.left");
  builder.join(joint::Fixed{}, {"b.right"});
  expect_names(builder.build(), {"a.right", "small mass between"});
}

TEST(KickDriftRefusal, OfAllReasonsAtOnce) {
  SystemBuilder builder;
  builder.add("d", parts::diode({.saturation_current_A = 1e-9, .thermal_voltage_V = 0.025}));
  builder.add("c", parts::capacitor({.capacitance_F = 1e-6}));
  builder.join(joint::CommonEffort{}, {"d.terminals", "c.terminals"});
  builder.add("s", parts::electrical_switch({.on_S = 1.0}));
  builder.add("l", parts::inductor({.inductance_H = 1e-3}));
  builder.connect("s.terminals", "l.terminals");
  builder.add("a", parts::mass({.mass_kg = 1.0}));
  builder.add("b", parts::mass({.mass_kg = 1.0}));
  builder.join(joint::CommonFlow{}, {"a.port", "b.port"});
  expect_names(builder.build(), {"/subsystems/0", "\"d\"", "nonlinear resistance", "/subsystems/2",
                                 "\"s\"", "depends on its state", "/couplings", "a.port"});
}

TEST(KickDriftRefusal, OfADampedNonlinearStorage) {
  SystemBuilder builder;
  builder.add("l", parts::saturating_inductor(
                       {.inductance_H = 1e-3, .saturation_flux_Vs = 1e-3, .resistance_ohm = 1.0}));
  builder.add("c", parts::capacitor({.capacitance_F = 1e-6}));
  builder.connect("l.terminals", "c.terminals");
  expect_names(builder.build(), {"l.flux", "not quadratic", "\"kind\": \"auto\""});
}

TEST(KickDriftRefusal, OfStoragesThatAreNotSplit) {
  SystemBuilder builder;
  builder.add("arm", parts::planar_arm({.lengths_m = {1.0, 1.0}, .masses_kg = {1.0, 1.0}}));
  builder.join(joint::Free{}, {"arm.joint_1"});
  builder.join(joint::Free{}, {"arm.joint_2"});
  expect_names(builder.build(), {"/subsystems/0", "the storage ties", "arm."});
}

TEST(KickDriftRefusal, OfOddCycles) {
  SystemBuilder builder;
  builder.add("t", triangle());
  expect_names(builder.build(), {"t.b and t.c", "odd", "\"kind\": \"auto\""});
}

TEST(KickDriftRefusal, OfInputsThroughDampers) {
  SystemBuilder builder;
  SystemBuilder::PartOptions shaken;
  shaken.inputs["flow"] = Signal::sine_product(1.0, {{.frequency_Hz = 1.0}});
  builder.add("ground", parts::flow_source({.domain = "translation"}), shaken);
  builder.add("s", parts::spring_damper({.stiffness_N_per_m = 1.0, .damping_Ns_per_m = 0.1}));
  builder.add("m", parts::mass({.mass_kg = 1.0}));
  builder.connect("ground.port", "s.left");
  builder.connect("s.right", "m.port");
  expect_names(builder.build(), {"/subsystems/0/inputs/flow", "damper"});
}

TEST(KickDriftRefusal, OfDescriptorParts) {
  SystemBuilder builder;
  builder.add("d", parts::descriptor_port_hamiltonian(
                       {.states = {{"a", "m"}, {"b", "m"}},
                        .ports = {{"end", Causality::effort_in, Domain::translation, 1}},
                        .E = {{1.0, 0.0}, {0.0, 0.0}},
                        .J = {{0.0, 1.0}, {-1.0, 0.0}},
                        .R = {{0.0, 0.0}, {0.0, 1.0}},
                        .B = {{1.0}, {0.0}},
                        .Q = {{1.0, 0.0}, {0.0, 1.0}}}));
  builder.join(joint::Free{}, {"d.end"});
  expect_names(builder.build(), {"/subsystems/0", "descriptor"});
}

}  // namespace
}  // namespace portwave::test_kick_drift_refusals
