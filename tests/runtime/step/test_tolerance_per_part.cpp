// "tolerance_per_part": parts that rest meet it, and steps that choose their size see small parts beside large ones.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_tolerance_per_part {
namespace {

Scenario scenario_of(const std::string& text) {
  return parse_scenario(text, "test.json", testing::source_folder());
}

/// A capacitor of .3 F that charges to 5.1 V over 3 ohm within seconds, and rests then.
Scenario charging(const std::string& method) {
  return scenario_of(R"json({"name": "rest", "time": {"step_s": 0.5, "end_s": 100}, "subsystems": [
      {"name": "g", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "5.1"}}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 3}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.3}}],
    "couplings": [{"kind": "common_flow", "ports": ["g.port", "r.terminals", "c.terminals"]}],
    "method": {"kind": "auto", "tolerance_per_part": true)json" +
                     method + "}}");
}

int part_named(const System& system, const std::string& name) {
  const auto parts = system.parts();
  const auto found = std::ranges::find(parts, name, &Part::name);
  return static_cast<int>(found - parts.begin());
}

// In the end the resistor's waves are what is left of those of the source and the capacitor: rounding.
TEST(TolerancePerPart, IsMetByPartsAtRest) {
  const Scenario scenario = charging("");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(scenario.steps);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_LT(stepper.iterations().per_step(), 4.0);
  EXPECT_NEAR(std::abs(stepper.state(part_named(scenario.system, "c"))[0]), 5.1, 1e-12);
}

TEST(TolerancePerPartControl, OneEvaluationIsNotEnoughWhileItCharges) {
  const Scenario scenario = charging(R"(, "iterations": 1)");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(3);
  EXPECT_GT(stepper.iterations().not_converged, 0);
}

/// Two masses on a spring, of 1e-10 m/s and with impedances that let their waves converge slowly, next to nothing away
/// from a mass of 1 m/s, beside whose waves their gap is soon 1e-13. Rounding of those waves is 1e-6 of theirs.
Scenario slow_small_ones(const std::string& kind) {
  return scenario_of(R"json({"name": "s", "time": {"step_s": 0.01, "end_s": 0.1}, "subsystems": [
      {"name": "big", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}},
      {"name": "link", "type": "spring_damper",
       "parameters": {"stiffness_N_per_m": 1e-14, "damping_Ns_per_m": 1e-14}},
      {"name": "m1", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1e-10}},
      {"name": "s", "type": "spring_damper", "parameters": {"stiffness_N_per_m": 100, "damping_Ns_per_m": 0.1}},
      {"name": "m2", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": -1e-10}}],
    "couplings": [{"kind": "connection", "ports": ["big.port", "link.left"]},
      {"kind": "common_flow", "ports": ["m1.port", "link.right", "s.left"]},
      {"kind": "connection", "ports": ["m2.port", "s.right"]}],
    "method": {"kind": ")json" +
                     kind + R"json(", "impedance": {"kind": "per_port", "value": 1500, "ports":
      {"big.port": 200, "link.left": 200}}, "iterations": 2000, "tolerance": 1e-10, "tolerance_per_part": true}})json");
}

TEST(TolerancePerPart, WhatStillConvergesIsNoRounding) {
  const Scenario slow = slow_small_ones("douglas-rachford"), sure = slow_small_ones("interface");
  Stepper waves(slow.system, slow.options), solved(sure.system, sure.options);
  waves.step(slow.steps);
  solved.step(sure.steps);
  EXPECT_GT(waves.iterations().per_step(), 20.0) << "control: it does converge slowly";
  const double right = solved.state(part_named(sure.system, "m2"))[0];
  EXPECT_NEAR(waves.state(part_named(slow.system, "m2"))[0] / right, 1.0, 2e-6);
}

/// An encoder of 1e-6 kg m² on the shaft of a rotor of 1e5 kg m², which a torque begins to turn faster.
struct Encoder {
  static constexpr double kInertia = 1e-6, kRotor = 1e5, kFrequency = 2.0 * std::numbers::pi * 50.0,
                          kDamping = 0.02, kTorque = 5000.0, kJump_s = 0.125, kEnd_s = 0.5;

  static Scenario scenario(const std::string& method) {
    const double stiffness = kInertia * kFrequency * kFrequency;
    const double damping = 2.0 * kDamping * kInertia * kFrequency;
    return scenario_of(fmt::format(
        R"json({{"name": "encoder", "time": {{"step": {{"kind": "adaptive", "tolerance": 1e-4}}, "end_s": {}}},
    "subsystems": [
      {{"name": "rotor", "type": "inertia", "parameters": {{"inertia_kgm2": {}}}, "initial_state": {{"speed": 314}},
       "inputs": {{"torque": {{"kind": "expression", "expression": "if(t<{},0,{})"}}}}}},
      {{"name": "s", "type": "torsional_spring_damper",
       "parameters": {{"stiffness_Nm_per_rad": {}, "damping_Nms_per_rad": {}}}}},
      {{"name": "p", "type": "inertia", "parameters": {{"inertia_kgm2": {}}}, "initial_state": {{"speed": 314}}}}],
    "couplings": [{{"kind": "connection", "ports": ["rotor.shaft", "s.left"]}},
                  {{"kind": "connection", "ports": ["p.shaft", "s.right"]}}],
    "method": {{"kind": "auto"{}}}}})json",
        kEnd_s, kRotor, kJump_s, kTorque, stiffness, damping, kInertia, method));
  }
  /// The size of the twist, in closed form; the encoder does not move the rotor.
  static double twist(double time_s) {
    const double t = time_s - kJump_s, rest = kTorque / kRotor / (kFrequency * kFrequency);
    if (t <= 0.0) return 0.0;
    const double swing = kFrequency * std::sqrt(1.0 - kDamping * kDamping);
    const double sine = kDamping * kFrequency / swing * std::sin(swing * t);
    return rest * (1.0 - std::exp(-kDamping * kFrequency * t) * (std::cos(swing * t) + sine));
  }
  /// The largest error of the twist at the ends of steps, of its largest value.
  double error = 0.0;
  std::int64_t steps = 0, missed = 0;

  explicit Encoder(const std::string& method) {
    const Scenario own = scenario(method);
    Stepper stepper(own.system, own.options);
    const int spring = part_named(own.system, "s");
    double most = 0.0, largest = 0.0;
    while (stepper.time_s() < kEnd_s) {
      stepper.step_towards(kEnd_s);
      const double exact = twist(stepper.time_s());
      most = std::max(most, std::abs(std::abs(stepper.state(spring)[0]) - exact));
      largest = std::max(largest, exact);
    }
    error = most / largest;
    steps = stepper.step_index();
    missed = stepper.iterations().not_converged;
  }
};

TEST(TolerancePerPart, HoldsSmallPartsToTheToleranceOfChosenSteps) {
  const Encoder own(R"(, "tolerance_per_part": true)");
  EXPECT_LT(own.error, 2e-5);
  EXPECT_LT(own.steps, 300);
  EXPECT_EQ(own.missed, 0);
}

// Behind a diode that blocks, waves are rounding beside those of the generator. They end an iteration all the same, and
// steps are not made shorter for them.
TEST(TolerancePerPart, ChosenStepsDoNotWaitForRounding) {
  const Scenario own =
      scenario_of(R"json({"name": "t", "time": {"step": {"kind": "adaptive", "tolerance": 1e-4},
    "end_s": 0.02}, "subsystems": [
      {"name": "T", "type": "inertia", "parameters": {"inertia_kgm2": 0.001, "ports": 2},
       "initial_state": {"speed": 314}, "inputs": {"torque": {"kind": "expression", "expression": "0.471*sin(30*t)"}}},
      {"name": "g", "type": "dc_motor", "parameters": {"inductance_H": 0.001, "resistance_ohm": 10,
       "motor_constant_Vs_per_rad": 0.1, "inertia_kgm2": 0.0001}, "initial_state": {"speed": 314}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 10000}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-6}},
      {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-12, "emission_coefficient": 2,
       "leakage_S": 1e-12}}],
    "couplings": [{"kind": "common_flow", "ports": ["T.shaft_1", "g.shaft"]}, {"kind": "free", "ports": ["T.shaft_2"]},
      {"kind": "kernel", "ports": ["g.terminals", "r.terminals", "d.terminals", "c.terminals"],
       "E": [[0,0,0,0], [0,0,0,0], [0,0,0,0], [-1,1,1,1]], "F": [[1,1,0,0], [0,-1,1,0], [0,0,-1,1], [0,0,0,0]]}],
    "method": {"kind": "auto", "tolerance_per_part": true}})json");
  Stepper stepper(own.system, own.options);
  while (stepper.time_s() < own.end_s && stepper.step_index() < 1000)
    stepper.step_towards(own.end_s);
  EXPECT_EQ(stepper.time_s(), own.end_s);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_LT(stepper.step_sizes()->rejected_for_coupling, 5);
}

TEST(TolerancePerPartControl, WithoutItChosenStepsDoNotSeeSmallParts) {
  const Encoder own("");
  EXPECT_GT(own.error, 0.1);
}

}  // namespace
}  // namespace portwave::test_tolerance_per_part
