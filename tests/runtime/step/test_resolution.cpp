// Motion that the steps do not resolve is told, with the part and how long a step is beside what happens
// there; motion that they resolve is not.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_resolution {
namespace {

std::string number(double value) { return std::to_string(value * 1e12) + "e-12"; }

/// A capacitor of 1 mF from 1 V over a resistor: the voltage dies at 1/(RC).
Scenario discharge(double h_lambda, int stages, int steps = 60, const std::string& more = "") {
  const double step_s = 1e-3 * h_lambda;  // RC = 1 ms
  return parse_scenario(R"({"name": "discharge", "time": {"step_s": )" + number(step_s) +
                            R"(, "steps": )" + std::to_string(steps) + R"(},
  "subsystems": [
    {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.001},
     "initial_state": {"voltage": 1}},
    {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1, "gives": "current"}}],
  "couplings": [{"kind": "connection", "ports": ["c.terminals", "r.terminals"]}],
  "method": {"kind": "auto", "stages": )" +
                            std::to_string(stages) + R"(, "integrator": "gauss")" + more + "}}",
                        "discharge.json", ".");
}

struct Outcome {
  Resolution resolution;
  RunSummary summary;
};

bool says(const RunSummary& summary, const std::string& what) {
  return summary_text(summary).find(what) != std::string::npos;
}

Outcome run(const Scenario& scenario, std::int64_t steps) {
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(steps);
  return {stepper.resolution().value(), summarize("test", scenario.options, stepper, 1.0)};
}

TEST(Resolution, TellsDecaysThatStepsTurnOver) {
  for (const int stages : {1, 2, 3}) {
    for (const double h_lambda : {20.0, 1e3, 1e6, 1e12}) {
      const Outcome own = run(discharge(h_lambda, stages), 60);
      EXPECT_NE(own.resolution.kind, Resolution::Kind::resolved) << stages << ", " << h_lambda;
      EXPECT_EQ(own.resolution.part, 0);
      EXPECT_EQ(own.summary.unresolved_part, "c");
      EXPECT_FALSE(own.summary.is_all_well());
      EXPECT_GT(own.resolution.share, 0.1);
      // Without the watch all would be well: the steps conserve energy and met their tolerance.
      EXPECT_EQ(own.summary.certificate.status, CertificateStatus::holds);
      EXPECT_EQ(own.summary.iterations.not_converged, 0);
    }
  }
}

TEST(Resolution, MeasuresHowLongAStepIsBesideTheDecay) {
  for (const int stages : {1, 2, 3}) {
    for (const double h_lambda : {20.0, 1e3, 1e5}) {
      EXPECT_NEAR(run(discharge(h_lambda, stages), 60).resolution.h_lambda, h_lambda,
                  0.02 * h_lambda)
          << stages;
    }
  }
}

/// Its control: the same decay, resolved.
TEST(Resolution, SaysNothingOfDecaysThatStepsFollow) {
  for (const int stages : {1, 2, 3}) {
    for (const double h_lambda : {1e-6, 1e-3, 0.1, 0.4}) {
      const Outcome own = run(discharge(h_lambda, stages, 200), 200);
      EXPECT_EQ(own.resolution.kind, Resolution::Kind::resolved) << stages << ", " << h_lambda;
      EXPECT_TRUE(own.summary.is_all_well());
      EXPECT_GT(own.resolution.looks, 0);
    }
  }
}

TEST(Resolution, StandsInTheSummary) {
  const Outcome own = run(discharge(100.0, 1), 60);
  const std::string text = summary_text(own.summary);
  EXPECT_NE(text.find("resolution   NOT RESOLVED"), std::string::npos) << text;
  EXPECT_NE(text.find("\"c\""), std::string::npos) << text;
  EXPECT_NE(text.find("h lambda"), std::string::npos) << text;
  EXPECT_NE(text.find("\"adaptive\""), std::string::npos) << text;  // what helps
}

/// A diode from 5 V: one step, and it is on the other side for good. Nothing goes to and fro.
Scenario on_a_diode(int stages, const std::string& integrator) {
  return parse_scenario(
      R"({"name": "diode", "time": {"step_s": 1e-4, "end_s": 0.01},
  "subsystems": [
    {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5},
     "initial_state": {"voltage": 5}},
    {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
    {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000, "gives": "current"}}],
  "couplings": [{"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "r.terminals"]}],
  "method": {"kind": "auto", "stages": )" +
          std::to_string(stages) + R"(, "integrator": ")" + integrator + "\"}}",
      "diode.json", ".");
}

TEST(Resolution, TellsASingleBounce) {
  for (const int stages : {1, 2, 3}) {
    EXPECT_EQ(run(on_a_diode(stages, "gauss"), 100).summary.unresolved_part, "c") << stages;
  }
}

// More than one damped stage overshoots where a part changes over; one does not.
TEST(Resolution, TellsThatDampedStagesOvershoot) {
  for (const std::string integrator : {"damped", "auto"}) {
    for (const int stages : {2, 3}) {
      // By default such a step is taken in pieces.
      Scenario usual = on_a_diode(stages, integrator);
      EXPECT_TRUE(run(usual, 100).summary.is_all_well()) << stages;
      usual.options.method.waves().kind = WaveUpdate::interface;
      const Outcome own = run(usual, 100);
      EXPECT_FALSE(own.summary.is_all_well()) << stages;
      EXPECT_EQ(own.summary.unresolved_part, "c") << stages;
    }
    const Outcome one = run(on_a_diode(1, integrator), 100);
    EXPECT_EQ(one.resolution.kind, Resolution::Kind::resolved);
    EXPECT_TRUE(one.summary.is_all_well());
  }
}

/// A decay that begins in the middle of a run, with a switch that a table or an expression closes.
TEST(Resolution, IsLookedAtAfterInputsChange) {
  const std::string inputs[] = {
      R"json({"kind": "table",
              "knots": [[0, 0], [10, 0], [10.0001, 1000], [10.0011, 1000], [10.0012, 0]]})json",
      R"json({"kind": "expression", "expression": "if(t < 10, 0, if(t < 10.001, 1000, 0))"})json"};
  for (const std::string& input : inputs) {
    const std::string text = R"json({"name": "switch", "time": {"step_s": 0.01, "steps": 1300},
  "subsystems": [
    {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-3},
     "initial_state": {"voltage": 5}},
    {"name": "sw", "type": "electrical_switch", "parameters": {"on_S": 10, "off_S": 1e-9},
     "inputs": {"speed": )json" +
                             input +
                             R"json(}}],
  "couplings": [{"kind": "connection", "ports": ["c.terminals", "sw.terminals"]}],
  "method": {"kind": "auto", "integrator": )json";
    const Scenario scenario = parse_scenario(text + R"("gauss"}})", "switch.json", ".");
    const Outcome own = run(scenario, 1300);
    EXPECT_EQ(own.summary.unresolved_part, "c") << input;
    EXPECT_GE(own.resolution.step, 999);
    // By default it is damped in these steps, and right.
    const Scenario usual = parse_scenario(text + R"("auto"}})", "switch.json", ".");
    EXPECT_TRUE(run(usual, 1300).summary.is_all_well()) << input;
  }
}

/// A mass that is driven at a speed that rises evenly: its states are right, and the force that does it
/// goes to and fro between nothing and twice its value.
TEST(Resolution, TellsEffortsThatGoToAndFro) {
  const Scenario scenario = parse_scenario(
      R"({"name": "driven", "time": {"step_s": 0.01, "steps": 100},
  "subsystems": [
    {"name": "q", "type": "flow_source", "parameters": {"domain": "rotation"},
     "inputs": {"flow": {"kind": "expression", "expression": "3*t"}}},
    {"name": "j", "type": "inertia", "parameters": {"inertia_kgm2": 2}}],
  "couplings": [{"kind": "common_flow", "ports": ["q.port", "j.shaft"]}],
  "method": {"kind": "auto"}})",
      "driven.json", ".");
  const Outcome own = run(scenario, 100);
  Stepper stepper(scenario.system, scenario.options);
  double least = 1e300, most = -1e300;
  for (int i = 0; i < 100; ++i) {
    stepper.step();
    least = std::min(least, std::abs(stepper.effort(0)));
    most = std::max(most, std::abs(stepper.effort(0)));
  }
  if (most - least > 1.0) {
    EXPECT_FALSE(own.summary.is_resolved());
    EXPECT_FALSE(own.summary.unresolved_part.empty());
  } else {
    EXPECT_TRUE(own.summary.is_resolved());
  }
}

/// What it has seen is part of the state of a run.
TEST(Resolution, GoesOnFromASnapshot) {
  for (const int stages : {1, 2}) {
    const Scenario scenario = discharge(1e3, stages);
    Stepper whole(scenario.system, scenario.options), first(scenario.system, scenario.options),
        second(scenario.system, scenario.options);
    whole.step(40);
    first.step(7);
    second.restore(first.snapshot());
    second.step(33);
    EXPECT_EQ(whole.resolution()->share, second.resolution()->share) << stages;
    EXPECT_EQ(whole.resolution()->step, second.resolution()->step);
    EXPECT_EQ(whole.resolution()->looks, second.resolution()->looks);
  }
}

/// A diode that blocks in step 22 leaves a coil swinging, in a run of 50 steps.
TEST(Resolution, TellsWhatBeginsLaterInAShortRun) {
  const Scenario scenario =
      parse_scenario(R"({"name": "coil", "time": {"step_s": 1e-7, "end_s": 5e-6},
  "subsystems": [
    {"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
     "inputs": {"effort": {"kind": "constant", "value": 10}}},
    {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
    {"name": "coil", "type": "inductor", "parameters": {"inductance_H": 2.2e-5},
     "initial_state": {"current": 1}}],
  "couplings": [{"kind": "common_flow", "ports": ["v.port", "d.terminals", "coil.terminals"]}],
  "method": {"kind": "auto", "integrator": "gauss"}})",
                     "coil.json", ".");
  const Outcome own = run(scenario, 50);
  EXPECT_NE(own.resolution.kind, Resolution::Kind::resolved);
  EXPECT_FALSE(own.summary.is_all_well());
}

/// A mass falls on a contact whose impacts take a hundredth of a step, the first one in step 142, where nobody looks.
TEST(Resolution, TellsImpactsWithinAStep) {
  const auto ball = [](const char* force_N, double step_s) {
    return parse_scenario(fmt::format(R"({{"name": "ball", "time": {{"step_s": {}, "end_s": 2}},
  "subsystems": [
    {{"name": "m", "type": "mass", "parameters": {{"mass_kg": 1}}, "initial_state": {{"position": 10}},
     "inputs": {{"force": {{"kind": "constant", "value": -9.81}}}}}},
    {{"name": "c", "type": "contact", "initial_state": {{"approach": 10}},
     "parameters": {{"force_N": {}, "compression_m": 1, "side": "negative", "damping_s_per_m": 0.15}}}}],
  "couplings": [{{"kind": "connection", "ports": ["c.face", "m.port"]}}]}})",
                                      step_s, force_N),
                          "ball.json", ".");
  };
  const Outcome own = run(ball("1e7", 0.01), 200);
  EXPECT_EQ(own.resolution.kind, Resolution::Kind::jumps);
  EXPECT_FALSE(own.summary.unresolved_part.empty());
  EXPECT_FALSE(own.summary.is_all_well());
  // Control: a soft contact, a hundred steps long, is followed.
  EXPECT_TRUE(run(ball("1e3", 0.001), 2000).summary.is_resolved());
}

/// Two capacitors on sources: one that jumps all the time and is followed, and one that jumps once, late.
TEST(Resolution, LooksAtTheFirstChangeOfEachInput) {
  const auto cells = [](double late_ohm) {
    return parse_scenario(
        fmt::format(R"json({{"name": "cells", "time": {{"step_s": 1e-3, "end_s": 1.5}},
  "subsystems": [
    {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
     "inputs": {{"effort": {{"kind": "expression", "expression": "if(mod(t, 0.05) < 0.025, 48, 43)"}}}}}},
    {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": 0.1}}}},
    {{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 0.1}},
     "initial_state": {{"voltage": -48}}}},
    {{"name": "w", "type": "effort_source", "parameters": {{"domain": "electrical"}},
     "inputs": {{"effort": {{"kind": "expression", "expression": "if(t < 1.303, 0, 48)"}}}}}},
    {{"name": "s", "type": "resistor", "parameters": {{"resistance_ohm": {}}}}},
    {{"name": "d", "type": "capacitor", "parameters": {{"capacitance_F": 0.1}}}}],
  "couplings": [{{"kind": "common_flow", "ports": ["v.port", "r.terminals", "c.terminals"]}},
    {{"kind": "common_flow", "ports": ["w.port", "s.terminals", "d.terminals"]}}],
  "method": {{"kind": "auto", "integrator": "gauss"}}}})json",
                    late_ohm),
        "cells.json", ".");
  };
  const Outcome own = run(cells(2e-4), 1500);
  EXPECT_NE(own.resolution.kind, Resolution::Kind::resolved);
  EXPECT_EQ(own.summary.unresolved_part, "d");
  EXPECT_TRUE(run(cells(0.1), 1500).summary.is_resolved());
}

/// An oscillating circuit through an ideal switch, which is always closed: all its parts are damped.
TEST(Resolution, TellsOscillationsThatDampedStepsTake) {
  const auto circuit = [](int stages, int steps_of_period) {
    return parse_scenario(
        fmt::format(R"({{"name": "circuit", "time": {{"step_s": {:.17g}, "steps": 1000}},
  "subsystems": [
    {{"name": "l", "type": "inductor", "parameters": {{"inductance_H": 1e-3}}}},
    {{"name": "s", "type": "ideal_switch", "inputs": {{"closed": {{"kind": "constant", "value": 1}}}}}},
    {{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 1e-5}},
     "initial_state": {{"voltage": 10}}}}],
  "couplings": [{{"kind": "common_flow", "ports": ["l.terminals", "s.terminals", "c.terminals"]}}],
  "method": {{"kind": "auto", "stages": {}}}}})",
                    2 * 3.14159265358979 * 1e-4 / steps_of_period, stages),
        "circuit.json", ".");
  };
  const Outcome own = run(circuit(1, 50), 100);
  EXPECT_EQ(own.resolution.kind, Resolution::Kind::damped_away);
  EXPECT_GT(own.resolution.share, 0.5);
  EXPECT_EQ(own.summary.unresolved_part, "l");
  EXPECT_FALSE(own.summary.is_all_well());
  EXPECT_TRUE(run(circuit(3, 50), 100).summary.is_resolved());
  EXPECT_TRUE(run(circuit(1, 5000), 100).summary.is_resolved());
}

/// Pressure waves behind a check valve, in a pipe with friction: damped steps may take little of all that the pumps
/// give, and yet let the waves die too soon. References: three stages take 6e-5 of what one takes.
TEST(Resolution, ComparesWhatDampedStepsTakeWithWhatResistancesTake) {
  const auto pipe = [](double step_s, int stages) {
    return parse_scenario(fmt::format(R"json({{"name": "pipe", "time": {{"step_s": {}, "end_s": 2}},
  "subsystems": [
    {{"name": "p", "type": "effort_source", "parameters": {{"domain": "hydraulic"}},
     "inputs": {{"effort": {{"kind": "expression", "expression": "if(t < 0.5, 1e6, 2e5)"}}}}}},
    {{"name": "valve", "type": "check_valve"}},
    {{"name": "line", "type": "fluid_line", "parameters": {{"cells": 20, "inertance_kg_per_m4": 5e6,
      "capacitance_m3_per_Pa": 2e-9, "friction_Pas_per_m3": 1e7}}}},
    {{"name": "q", "type": "effort_source", "parameters": {{"domain": "hydraulic"}},
     "inputs": {{"effort": {{"kind": "constant", "value": 5e5}}}}}}],
  "couplings": [
    {{"kind": "kernel", "ports": ["p.port", "valve.line", "line.left"],
      "E": [[-1, 1, 1], [0, 0, 0], [0, 0, 0]], "F": [[0, 0, 0], [1, 1, 0], [0, -1, 1]]}},
    {{"kind": "connection", "ports": ["line.right", "q.port"]}}],
  "method": {{"kind": "auto", "stages": {}}}}})json",
                                      step_s, stages),
                          "pipe.json", ".");
  };
  const Outcome own = run(pipe(1e-3, 1), 2000);
  EXPECT_EQ(own.resolution.kind, Resolution::Kind::damped_away);
  EXPECT_LT(own.resolution.share, 0.05);
  EXPECT_EQ(own.summary.unresolved_part, "line");
  EXPECT_TRUE(run(pipe(1e-3, 3), 2000).summary.is_resolved());
  EXPECT_TRUE(run(pipe(2e-4, 1), 10'000).summary.is_resolved());
}

/// The winding of a motor is fast and has little energy beside the rotor.
TEST(Resolution, LooksAtEachStateBesideItsOwnMotion) {
  const auto motor = [](double inductance_H, const char* integrator = "gauss") {
    return parse_scenario(
        fmt::format(R"json({{"name": "motor", "time": {{"step_s": 1e-3, "steps": 400}},
  "method": {{"kind": "auto", "integrator": "{}"}},
  "subsystems": [
    {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
     "inputs": {{"effort": {{"kind": "constant", "value": 12}}}}}},
    {{"name": "m", "type": "dc_motor", "parameters": {{"inductance_H": {}, "resistance_ohm": 1,
      "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 1e-4, "damping_Nms_per_rad": 1e-5}}}}],
  "couplings": [{{"kind": "connection", "ports": ["v.port", "m.terminals"]}},
                {{"kind": "free", "ports": ["m.shaft"]}}]}})json",
                    integrator, inductance_H),
        "motor.json", ".");
  };
  const Outcome stiff = run(motor(1e-6), 400);
  EXPECT_EQ(stiff.resolution.kind, Resolution::Kind::alternates);
  EXPECT_EQ(stiff.summary.unresolved_name, "m.current");
  EXPECT_TRUE(says(stiff.summary, "NOT RESOLVED: \"m.current\" oscillates from step to step"));
  const Outcome overshoot = run(motor(1e-4), 400);
  EXPECT_EQ(overshoot.resolution.kind, Resolution::Kind::jumps);
  EXPECT_EQ(overshoot.summary.unresolved_name, "m.current");
  EXPECT_TRUE(run(motor(1e-2), 400).summary.is_resolved());
  for (const double inductance_H : {1e-6, 1e-4}) {  // by itself `auto` lets the current die
    EXPECT_TRUE(run(motor(inductance_H, "auto"), 400).summary.is_resolved()) << inductance_H;
  }
}

Scenario driven_mass(const std::string& force, const std::string& more_parts,
                     const std::string& coupling) {
  return parse_scenario(
      R"json({"name": "driven", "time": {"step_s": 1e-3, "steps": 200},
  "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": 1},
     "inputs": {"force": {"kind": "expression", "expression": ")json" +
          force + "\"}}}" + more_parts + R"json(],
  "couplings": [)json" +
          coupling + "]}",
      "driven.json", ".");
}

/// A sine with the period of the steps is taken for a constant.
TEST(Resolution, TellsInputsThatAreTooFastForTheSteps) {
  const std::string free = R"({"kind": "free", "ports": ["m.port"]})";
  for (const char* force : {"cos(2*pi*1000*t)", "sin(2*pi*990*t)", "sin(2*pi*(700 + 1000*t)*t)"}) {
    const Outcome own = run(driven_mass(force, "", free), 200);
    EXPECT_EQ(own.resolution.kind, Resolution::Kind::undersampled) << force;
    EXPECT_EQ(own.summary.unresolved_name, "m.force");
    EXPECT_FALSE(own.summary.is_all_well());
  }
  EXPECT_TRUE(run(driven_mass("sin(2*pi*50*t)", "", free), 200).summary.is_resolved());
  EXPECT_TRUE(run(driven_mass("5 + 0.2*cos(2*pi*1000*t)", "", free), 200).summary.is_resolved());
}

/// Blows far shorter than a step, at instants that no step looks at.
TEST(Resolution, TellsSmoothPulsesThatStepsPassOver) {
  const std::string free = R"({"kind": "free", "ports": ["m.port"]})";
  for (const char* force :
       {"5 + 1e6*exp(-((t - 0.1234321)/1e-7)^2)", "1e5*exp(-((t - 0.1234321)/1e-6)^2)",
        "0.1*sin(2*pi*5*t) + 1e5*exp(-((t - 0.0503)/2e-6)^2)", "-1/(1 + ((t - 0.1501234)/1e-7)^2)",
        "1e5*exp(-abs(t - 0.1234321)/1e-6)"}) {
    const Outcome own = run(driven_mass(force, "", free), 200);
    EXPECT_EQ(own.resolution.kind, Resolution::Kind::undersampled) << force;
    EXPECT_EQ(own.summary.unresolved_name, "m.force");
    EXPECT_FALSE(own.summary.is_all_well());
  }
  // Pulses that steps see, that come after the end, or that are little beside what else acts.
  for (const char* force :
       {"5 + 10*exp(-((mod(t, 1e-3) - 0.00031)/1e-6)^2)",
        "5 + 10*exp(-((mod(t, 0.77e-3) - 0.0003)/1e-5)^2)", "10*exp(-((t - 0.1234321)/1e-2)^2)",
        "10*exp(-((t - 0.21)/1e-6)^2)", "10*exp(-((t - 0.1234321)/2e-3)^2)",
        "sin(2*pi*20*t)*exp(-10*t)", "5 + cos(2*pi*50*t)^3 + 10*exp(-((t - 0.1234321)/1e-6)^2)"}) {
    EXPECT_TRUE(run(driven_mass(force, "", free), 200).summary.is_resolved()) << force;
  }
  // Between jumps, with the mean that the step takes.
  const Outcome blow =
      run(driven_mass("if(t < 0.1234, 0, if(t < 0.12341, 1e4, 0))", "", free), 200);
  EXPECT_NE(blow.resolution.kind, Resolution::Kind::undersampled);
}

/// Whatever the lengths of steps, no part of the time is passed over by the search.
TEST(Resolution, TellsSmoothPulsesAfterShortSteps) {
  const Scenario own = driven_mass("1e5*exp(-((t - 0.01925)/1e-6)^2)", "",
                                   R"({"kind": "free", "ports": ["m.port"]})");
  for (const double first : {1.0, 0.3, 0.7}) {
    Stepper stepper(own.system, own.options);
    stepper.step_by(first * 1e-3);
    for (int n = 0; n < 60; ++n) stepper.step();
    ASSERT_TRUE(stepper.resolution().has_value());
    EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::undersampled) << first;
  }
}

/// A parameter has the value of the middle of the step: smooth pulses in between are told, and more jumps than steps are
/// cut at; single switches and slow change not.
TEST(Resolution, TellsDrivenParametersThatAreTooFastForTheSteps) {
  const auto braked = [](const std::string& damping) {
    return parse_scenario(
        R"json({"name": "braked", "time": {"step_s": 1e-2, "steps": 500},
  "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": 10}, "initial_state": {"velocity": 2}},
    {"name": "d", "type": "damper", "parameters": {"damping_Ns_per_m": 1},
     "inputs": {"damping_Ns_per_m": {"kind": "expression", "expression": ")json" +
            damping + R"json("}}}],
  "couplings": [{"kind": "connection", "ports": ["d.left", "m.port"]}, {"kind": "fixed", "ports": ["d.right"]}]})json",
        "braked.json", ".");
  };
  // Where it jumps steps are cut: 2 m/s become 2 exp(-∫d/m).
  const struct {
    const char* damping;
    double decay;
  } pulses[] = {{"if(abs(mod(t, 1) - 0.5037) < 0.0004, 5000, 0)", 2.0},
                {"if(mod(t, 0.0025) < 0.001, 20, 0)", 4.0},
                {"if(mod(t, 0.1) < 0.004, 100, 0)", 2.0},
                {"if(mod(t, 0.08) < 0.004, 100, 0)", 2.52},
                {"if(mod(t + 0.003, 0.08) < 0.003, 100, 0)", 1.86}};
  for (const auto& own : pulses) {
    const Scenario scenario = braked(own.damping);
    Stepper stepper(scenario.system, scenario.options);
    for (int n = 0; n < 500; ++n) stepper.step();
    EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::resolved) << own.damping;
    EXPECT_NEAR(stepper.state("m")[1], 2.0 * std::exp(-own.decay), 0.1 * std::exp(-own.decay))
        << own.damping;
  }
  for (const char* damping :
       {"20*max(0, sin(2*pi*t/0.005))", "10 + 10*sin(2*pi*t/0.005)^2",
        "5000*exp(-((t - 0.5037)/1e-4)^2)", "if(mod(t, 1.7e-5) < 4e-6, 20, 0)"}) {
    const Outcome own = run(braked(damping), std::string(damping).starts_with("if") ? 10 : 500);
    EXPECT_EQ(own.resolution.kind, Resolution::Kind::undersampled) << damping;
    EXPECT_EQ(own.summary.unresolved_name, "d.damping_Ns_per_m");
    EXPECT_FALSE(own.summary.is_all_well()) << damping;
  }
  for (const char* damping : {"if(mod(t, 0.37) < 0.11, 20, 0)", "if(t < 4.9337, 1e-9, 1000)",
                              "10 + 10*sin(2*pi*t)", "5 + mod(t, 1)"}) {
    EXPECT_NE(run(braked(damping), 500).resolution.kind, Resolution::Kind::undersampled) << damping;
  }
}

/// Pulses of 10 N for a fifth of a step: their mean is 2 N, which does not move what 3 N hold.
TEST(Resolution, TellsPulsesWithinStepsBesideNonlinearParts) {
  const std::string pulses = "if(mod(t, 2e-5) < 4e-6, 10, 0)";
  const std::string brake =
      R"(, {"name": "d", "type": "coulomb_damper",
      "parameters": {"friction_N": 3, "creep_speed_m_per_s": 1e-6}})";
  const std::string on_brake = R"({"kind": "connection", "ports": ["d.end", "m.port"]})";
  const Outcome own = run(driven_mass(pulses, brake, on_brake), 200);
  EXPECT_EQ(own.resolution.kind, Resolution::Kind::pulses);
  EXPECT_EQ(own.summary.unresolved_name, "m.force");
  EXPECT_TRUE(run(driven_mass("2", brake, on_brake), 200).summary.is_resolved());
  // Steps are cut at a few of them.
  EXPECT_TRUE(run(driven_mass("if(mod(t, 1e-3) < 2e-4, 10, 0)", brake, on_brake), 200)
                  .summary.is_resolved());
  // A free mass has the right speed at the end of every step.
  const std::string free = R"({"kind": "free", "ports": ["m.port"]})";
  EXPECT_TRUE(run(driven_mass(pulses, "", free), 200).summary.is_resolved());
}

/// With two stages the integrals of an exponential energy are not exact, and its account closes in steps of any length.
TEST(Resolution, NoEnergyIsInNoAccount) {
  const auto cell = [](double step_s, double start) {
    return parse_scenario(
        fmt::format(R"json({{"name": "cell", "time": {{"step_s": {}, "steps": 10}},
  "subsystems": [{{"name": "q", "type": "port_hamiltonian", "parameters": {{
    "states": {{"x": "C"}}, "energy": "exp(5*x) - 5*x", "R": [[10]], "G": [[1]],
    "ports": [{{"name": "p", "causality": "flow_in", "domain": "electrical"}}]}},
    "initial_state": {{"x": {}}}}}],
  "couplings": [{{"kind": "fixed", "ports": ["q.p"]}}],
  "method": {{"kind": "auto", "stages": 2, "integrator": "damped"}}}})json",
                    step_s, start),
        "cell.json", ".");
  };
  for (const double step_s : {0.05, 1e-3, 1e-4})
    EXPECT_LT(run(cell(step_s, 1.5), 1).summary.missing_share(), 1e-9) << step_s;
}

/// What is looked at changes nothing of the run, and few steps of a long one are looked at.
TEST(Resolution, LooksSeldom) {
  const Scenario scenario = discharge(1e-3, 1, 20'000);
  const Outcome own = run(scenario, 20'000);
  EXPECT_LT(own.resolution.looks, 20'000 / 50);
}

}  // namespace
}  // namespace portwave::test_resolution
