// Steps of several stages in which a one-sided part changes over: damped ones overshoot, and are taken in pieces.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "runtime/method/states_of_stepper.hpp"

namespace portwave::test_steps_in_pieces {
namespace {

using testing::go_on;

Scenario scenario(const std::string& parts, const std::string& couplings, double step_s, int stages,
                  const std::string& integrator = "auto") {
  return parse_scenario(
      fmt::format(R"({{"name": "pieces", "time": {{"step_s": {:.17g}, "steps": 1000}},
    "subsystems": [{}], "couplings": [{}],
    "method": {{"kind": "auto", "integrator": "{}", "stages": {}}}}})",
                  step_s, parts, couplings, integrator, stages),
      "pieces.json", ".");
}

/// A capacitor of 5 V behind a diode: 3e49 A at the start.
Scenario discharge(double step_s, int stages, const std::string& integrator = "auto") {
  return scenario(
      R"({"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5},
       "initial_state": {"voltage": 5}},
      {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000, "gives": "current"}})",
      R"({"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "r.terminals"]})",
      step_s, stages, integrator);
}

/// A coil on 3.03 V behind a switch that is open, closes in the third millisecond, and opens again in the eighth.
Scenario breaker(double step_s, int stages, const std::string& off_S) {
  return scenario(
      fmt::format(
          R"json({{"name": "l", "type": "inductor", "parameters": {{"inductance_H": 0.00379, "resistance_ohm": 0.0103}},
       "initial_state": {{"current": 0.118}}}},
      {{"name": "s", "type": "electrical_switch", "parameters": {{"on_S": 16.8, "off_S": {}}},
       "inputs": {{"speed": "if(abs(t-0.003)<0.001,500,0)-if(abs(t-0.008)<0.001,500,0)"}},
       "initial_state": {{"travel": 0}}}},
      {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}}, "inputs": {{"effort": 3.03}}}})json",
          off_S),
      R"({"kind": "common_flow", "ports": ["v.port", "s.terminals", "l.terminals"]})", step_s,
      stages);
}

/// 2 kg at 3 m/s that 40 N of dry friction stop after 0.15 s.
Scenario sliding(double step_s, int stages, const std::string& integrator) {
  return scenario(
      R"({"name": "m", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"velocity": 3}},
      {"name": "f", "type": "coulomb_damper",
       "parameters": {"friction_N": 40, "creep_speed_m_per_s": 1e-4}})",
      R"({"kind": "connection", "ports": ["m.port", "f.end"]})", step_s, stages, integrator);
}

/// What is left open of a balance of energy.
double open_J(const StepLedger& e) {
  return e.changed_J - e.supplied_J + e.dissipated_J + e.numerical_dissipation_J + e.mismatch_J +
         e.impact_J;
}

// SciPy, Radau at 1e-11: C v' = -Is (exp(v/(n VT)) - 1) - v/R.
TEST(StepsInPieces, ACapacitorOnADiodeIsRightFromItsFirstStepOn) {
  const struct {
    double time_s, voltage_V;
  } golden[] = {{1e-3, 0.57337105}, {1e-2, 0.22553623}, {5e-2, 0.00412972}};
  for (const int stages : {2, 3}) {
    for (const double step_s : {1e-4, 1e-3}) {
      const Scenario own = discharge(step_s, stages);
      Stepper stepper(own.system, own.options);
      double least = 5.0, left_open_J = 0.0, before_V = 5.0;
      for (const auto& at : golden) {
        while (stepper.time_s() < at.time_s - 0.5 * step_s) {
          const StepReport report = stepper.step();
          EXPECT_EQ(report.step_s, step_s);
          EXPECT_EQ(stepper.time_s(), static_cast<double>(stepper.step_index()) * step_s);
          left_open_J = std::max(left_open_J, std::abs(open_J(report.energy)));
          // Energies of parts and the mean current are those of the whole step.
          double changed_J = 0.0;
          for (int part = 0; part < 3; ++part) {
            changed_J += stepper.waves()->energies_of(part).changed_J;
          }
          EXPECT_NEAR(changed_J, report.energy.changed_J, 1e-18);
          const double voltage = stepper.state("c")[0];
          EXPECT_NEAR(std::abs(step_s * stepper.flow(0)), 1e-5 * std::abs(voltage - before_V),
                      1e-13);
          before_V = voltage;
          least = std::min(least, stepper.state("c")[0]);
        }
        EXPECT_NEAR(stepper.state("c")[0], at.voltage_V, 5e-5) << stages << ", " << step_s;
      }
      EXPECT_GT(least, 0.0);
      EXPECT_LT(left_open_J, 1e-16);  // of 1.25e-4 J
      const RunSummary summary = summarize("test", own.options, stepper, 1.0);
      EXPECT_TRUE(summary.is_all_well());
      EXPECT_EQ(summary.iterations.steps, stepper.step_index());
      EXPECT_NE(summary.integrator.find("; 1 of "), std::string::npos) << summary.integrator;
      EXPECT_NE(summary.integrator.find("pieces"), std::string::npos) << summary.integrator;
    }
  }
}

// Control: section 15 of the method has -2.26 V and -2.63 V for whole steps.
TEST(StepsInPieces, WholeStepsOvershoot) {
  const double overshoot_V[] = {-2.26, -2.63};
  for (const int stages : {2, 3}) {
    Scenario own = discharge(1e-4, stages, "damped");
    own.options.method.waves().kind = WaveUpdate::interface;  // one that is given has no pieces
    Stepper stepper(own.system, own.options);
    stepper.step();
    EXPECT_NEAR(stepper.state("c")[0], overshoot_V[stages - 2], 0.005);
    stepper.step(9);
    EXPECT_FALSE(summarize("test", own.options, stepper, 1.0).is_all_well());
  }
}

// The current that the switch has let in, in closed form from 4 ms on, and none after it has opened.
TEST(StepsInPieces, ASwitchThatIsOpenAtTheStartClosesAndOpens) {
  for (const int stages : {1, 2, 3}) {
    for (const std::string off_S : {"0", "1e-9"}) {
      const Scenario own = breaker(4e-4, stages, off_S);
      Stepper stepper(own.system, own.options);
      double at_4ms = 0.0, at_6ms = 0.0;
      while (stepper.time_s() < 0.02 - 1e-6) {
        stepper.step();
        const double t = stepper.time_s(), current = stepper.state("l")[0];
        if (std::abs(t - 4e-3) < 1e-6) at_4ms = current;
        if (std::abs(t - 6e-3) < 1e-6) at_6ms = current;
        if (t > 9.3e-3) {
          EXPECT_LT(std::abs(current), 1e-6) << stages << ", " << off_S << ", " << t;
        }
      }
      const double resistance = 0.0103 + 1.0 / 16.8, rest = -3.03 / resistance;
      const double expected = rest + (at_4ms - rest) * std::exp(-2e-3 * resistance / 0.00379);
      EXPECT_NEAR(at_6ms, expected, (stages == 1 ? 1e-4 : 1e-7) * std::abs(expected));
      EXPECT_GT(std::abs(at_6ms), 1.0);
      EXPECT_TRUE(summarize("test", own.options, stepper, 1.0).is_all_well()) << stages << off_S;
    }
  }
}

TEST(StepsInPieces, AreTakenInOneExecutorAsInAnother) {
  for (const auto& own : {discharge(1e-4, 2), breaker(4e-4, 3, "0")}) {
    Stepper alone(own.system, own.options);
    const auto expected = go_on(alone, 40);
    for (const ExecutorKind kind : {ExecutorKind::graph, ExecutorKind::async}) {
      StepperOptions options = own.options;
      options.executor = kind;
      options.threads = 2;
      Stepper stepper(own.system, options);
      EXPECT_EQ(go_on(stepper, 40), expected);
    }
  }
}

TEST(StepsInPieces, SnapshotsBetweenThemGoOnWithTheSameBits) {
  for (const int stages : {2, 3}) {
    const Scenario own = breaker(4e-4, stages, "0");
    Stepper stepper(own.system, own.options);
    for (const int before :
         {0, 5, 3, 14}) {  // before the switch closes, while it does, and after it has opened
      if (before > 0) stepper.step(before);
      const Snapshot snapshot = stepper.snapshot();
      const auto expected = go_on(stepper, 30);
      stepper.restore(snapshot);
      EXPECT_EQ(go_on(stepper, 30), expected) << stages << ", " << before;
      Stepper fresh(own.system, own.options);
      fresh.restore(snapshot);
      EXPECT_EQ(go_on(fresh, 30), expected) << stages << ", " << before;
      stepper.restore(snapshot);
    }
  }
}

// Where no step is rough they are those of the same damped stages without pieces, bit by bit.
TEST(StepsInPieces, NoneAreWhereNothingIsRough) {
  for (const int stages : {2, 3}) {
    const Scenario own = sliding(1e-3, stages, "auto");
    const Scenario whole = sliding(1e-3, stages, "damped");
    Stepper stepper(own.system, own.options), other(whole.system, whole.options);
    EXPECT_EQ(go_on(stepper, 140), go_on(other, 140));
    EXPECT_EQ(stepper.waves()->integrator().find("pieces"), std::string::npos);
    // Where the mass stops within a coarse step it is taken in pieces, and the mass stays where it stops.
    const Scenario coarse = sliding(0.04, stages, "auto");
    Stepper stops(coarse.system, coarse.options);
    stops.step(100);
    EXPECT_NE(stops.waves()->integrator().find("pieces"), std::string::npos);
    EXPECT_NEAR(stops.state("m")[0], 0.225, 2e-3);  // v²/2a
    EXPECT_NEAR(stops.state("m")[1], 0.0, 1e-9);
  }
}

TEST(StepsInPieces, ReplicasAreSteppedAsTheyWouldBeAlone) {
  const Scenario own = discharge(1e-4, 2);
  Ensemble ensemble(
      3, [](int) { return discharge(1e-4, 2).system; }, own.options);
  ensemble.step(20);
  Stepper stepper(own.system, own.options);
  stepper.step(20);
  std::vector<double> state(static_cast<std::size_t>(ensemble.state_size()));
  for (int i = 0; i < 3; ++i) {
    ensemble.get_state(i, state);
    EXPECT_EQ(state[0], stepper.state("c")[0]);
  }
  EXPECT_NE(ensemble.execution().find("in pieces"), std::string::npos);
}

/// The discharge with a current that has no value from 0.35 ms on.
TEST(StepsInPieces, WhatFailsWithinPiecesLeavesTheStepBefore) {
  Scenario own = parse_scenario(R"json({"name": "pieces", "time": {"step_s": 1e-4, "steps": 100},
    "subsystems": [
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5}, "initial_state": {"voltage": -1}},
      {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
      {"name": "i", "type": "flow_source", "parameters": {"domain": "electrical"},
       "inputs": {"flow": "if(t < 0.00031, 0, if(t < 0.00035, -10, sqrt(0.00035 - t)))"}}],
    "couplings": [{"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "i.port"]}],
    "method": {"kind": "auto", "stages": 2}})json",
                                "pieces.json", ".");
  Stepper stepper(own.system, own.options);
  stepper.step(3);
  const auto before = testing::states_and_energies(stepper);
  EXPECT_THROW(stepper.step(), StepError);
  EXPECT_EQ(stepper.step_index(), 3);
  EXPECT_EQ(stepper.time_s(), 3 * 1e-4);
  EXPECT_EQ(testing::states_and_energies(stepper), before);
  EXPECT_THROW(stepper.step(), StepError);  // again, from the same state
  EXPECT_EQ(testing::states_and_energies(stepper), before);
}

/// Two capacitors joined by two resistors in a row, the first on a coil: no joint shows the sum of the resistors.
std::pair<std::string, std::string> two_in_a_row(double each_ohm = 1e-3, double start_V = 10.0,
                                                 double start_A = 0.0) {
  return {
      fmt::format(
          R"({{"name": "a", "type": "capacitor", "parameters": {{"capacitance_F": 1e-3}}, "initial_state": {{"voltage": {1}}}}},
      {{"name": "b", "type": "capacitor", "parameters": {{"capacitance_F": 2e-3}}}},
      {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": {0}}}}},
      {{"name": "s", "type": "resistor", "parameters": {{"resistance_ohm": {0}}}}},
      {{"name": "l", "type": "inductor", "parameters": {{"inductance_H": 0.1}}, "initial_state": {{"current": {2}}}}})",
          each_ohm, start_V, start_A),
      R"({"kind": "kernel",
      "ports": ["a.terminals", "r.terminals", "s.terminals", "b.terminals", "l.terminals"],
      "E": [[1,-1,-1,-1,0],[1,0,0,0,-1],[0,0,0,0,0],[0,0,0,0,0],[0,0,0,0,0]],
      "F": [[0,0,0,0,0],[0,0,0,0,0],[0,1,-1,0,0],[0,1,0,-1,0],[1,1,0,0,1]]})"};
}

/// Inertias on a damper behind a gear, the second on a spring.
std::pair<std::string, std::string> behind_a_gear() {
  return {
      R"({"name": "a", "type": "inertia", "parameters": {"inertia_kgm2": 0.01}, "initial_state": {"speed": 30}},
      {"name": "g", "type": "gear", "parameters": {"ratio": 3}},
      {"name": "d", "type": "rotational_damper", "parameters": {"damping_Nms_per_rad": 500}},
      {"name": "b", "type": "inertia", "parameters": {"inertia_kgm2": 0.2, "ports": 2}},
      {"name": "k", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 40}})",
      R"({"kind": "connection", "ports": ["a.shaft", "g.input"]},
      {"kind": "connection", "ports": ["g.output", "d.left"]},
      {"kind": "connection", "ports": ["d.right", "b.shaft_1"]},
      {"kind": "connection", "ports": ["b.shaft_2", "k.right"]},
      {"kind": "fixed", "ports": ["k.left"]})"};
}

/// A motor on a voltage that jumps: its winding has next to no energy beside the rotor.
std::pair<std::string, std::string> winding() {
  return {
      R"json({"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": "if(mod(t,0.04)<0.013,24,-6)"}},
      {"name": "m", "type": "dc_motor", "parameters": {"inductance_H": 1.3e-4, "resistance_ohm": 1,
       "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 2e-4}})json",
      R"({"kind": "connection", "ports": ["v.port", "m.terminals"]},
      {"kind": "free", "ports": ["m.shaft"]})"};
}

/// A motor whose rotor swings on a spring with two thousand times the energy of its winding, and a voltage that jumps
/// while its current is as large as the jump.
std::pair<std::string, std::string> winding_of_a_swing() {
  return {
      R"json({"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": "if(t < 0.06, 0, 30)"}},
      {"name": "m", "type": "dc_motor", "parameters": {"inductance_H": 1.3e-4, "resistance_ohm": 1,
       "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 2e-3}, "initial_state": {"speed": 300, "current": -15}},
      {"name": "k", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 5.5}})json",
      R"({"kind": "connection", "ports": ["v.port", "m.terminals"]},
      {"kind": "connection", "ports": ["m.shaft", "k.left"]},
      {"kind": "fixed", "ports": ["k.right"]})"};
}

struct Worst {
  double share = 0.0;  // the largest difference of a state over the largest value of its unit
  std::string text;    // of the summary
  bool is_resolved = false;
};

/// Beside steps of 1/128 of the size with three damped stages, at the end of each of 80 steps.
Worst worst_of(const std::pair<std::string, std::string>& network, double step_s, int stages,
               const std::string& integrator) {
  const Scenario own = scenario(network.first, network.second, step_s, stages, integrator);
  constexpr int kFiner = 128;
  const Scenario finer = scenario(network.first, network.second, step_s / kFiner, 3, "damped");
  Stepper stepper(own.system, own.options), beside(finer.system, finer.options);
  Worst out;
  std::vector<double> off(own.system.parts().size()), largest(off);
  for (int n = 0; n < 80; ++n) {
    const StepReport report = stepper.step();
    EXPECT_NEAR(open_J(report.energy), 0.0, 1e-9);
    beside.step(kFiner);
    for (std::size_t i = 0; i < off.size(); ++i) {
      const int part = static_cast<int>(i);
      if (stepper.state(part).empty()) continue;
      const std::size_t state =
          own.system.parts()[i].name == "m" ? 0 : stepper.state(part).size() - 1;
      const double there = beside.state(part)[state];
      off[i] = std::max(off[i], std::abs(stepper.state(part)[state] - there));
      largest[i] = std::max(largest[i], std::abs(there));
    }
  }
  for (std::size_t i = 0; i < off.size(); ++i) {
    if (largest[i] > 0.0) out.share = std::max(out.share, off[i] / largest[i]);
  }
  const RunSummary summary = summarize("test", own.options, stepper, 1.0);
  out.text = summary_text(summary);
  out.is_resolved = summary.is_resolved();
  return out;
}

// What decays within a step, without a joint or a state that shows it alone, is followed where it begins, and the
// swing behind it is conserved after that.
TEST(StepsInPieces, DecaysThatNothingDampsAreFollowedWhereTheyBegin) {
  const std::string in_pieces = "steps, in which motion began that dies within one, in ";
  for (const int stages : {1, 2, 3}) {
    for (const auto& [name, network, step_s] : {std::tuple("two in a row", two_in_a_row(), 1e-3),
                                                {"behind a gear", behind_a_gear(), 1e-2},
                                                {"winding", winding(), 1e-3},
                                                {"of a swing", winding_of_a_swing(), 1e-3}}) {
      const Worst own = worst_of(network, step_s, stages, "auto");
      EXPECT_LT(own.share, 0.02) << name << ", " << stages;
      EXPECT_TRUE(own.is_resolved) << name << ", " << stages << own.text;
      EXPECT_NE(own.text.find(in_pieces), std::string::npos) << own.text;
      const Worst conserving = worst_of(network, step_s, stages, "gauss");
      EXPECT_GT(conserving.share, 0.02) << name << ", " << stages;
      EXPECT_EQ(conserving.text.find(in_pieces), std::string::npos);
    }
  }
}

// What is rough in every step is no decay that begins: a coil that swings faster than the steps.
TEST(StepsInPieces, WhatIsRoughInEveryStepIsToldAfterSixteen) {
  const auto [parts, couplings] = two_in_a_row();
  std::string fast = parts;
  fast.replace(fast.find("\"inductance_H\": 0.1"), 19, "\"inductance_H\": 1e-4");
  const Worst own = worst_of({fast, couplings}, 1e-3, 1, "auto");
  EXPECT_NE(own.text.find("16 of 80 steps, in which motion began"), std::string::npos) << own.text;
  EXPECT_FALSE(own.is_resolved);
}

// Where nothing begins that a step throws, steps have the bits of conserving ones.
TEST(StepsInPieces, DecaysThatRestLeaveStepsAsTheyAre) {
  const auto [parts, couplings] = two_in_a_row(1e-6, 0.0, 1.0);
  for (const int stages : {1, 2, 3}) {
    const Scenario own = scenario(parts, couplings, 1e-4, stages);
    const Scenario conserving = scenario(parts, couplings, 1e-4, stages, "gauss");
    Stepper stepper(own.system, own.options), other(conserving.system, conserving.options);
    EXPECT_EQ(go_on(stepper, 200), go_on(other, 200)) << stages;
  }
}

/// After steps in pieces, all of them rough, come whole ones: their tolerance is not that of the pieces before them,
/// of which a clone knows nothing.
TEST(StepsInPieces, AClonedRunGoesOnWithTheSameBitsWherePiecesHaveEnded) {
  const Scenario own = parse_scenario(R"json({"name": "shafts",
    "time": {"step_s": 0.1, "steps": 60},
    "subsystems": [
      {"name": "m0", "type": "inertia", "parameters": {"inertia_kgm2": 1000, "damping_Nms_per_rad": 5e4}},
      {"name": "m1", "type": "inertia", "parameters": {"inertia_kgm2": 1000, "ports": 2},
       "initial_state": {"speed": -0.5}},
      {"name": "m2", "type": "inertia",
       "parameters": {"inertia_kgm2": 1000, "damping_Nms_per_rad": 500, "ports": 2}},
      {"name": "e0", "type": "torsional_spring_damper",
       "parameters": {"stiffness_Nm_per_rad": 1000, "damping_Nms_per_rad": 300}, "initial_state": {"twist": 0.3}},
      {"name": "e1", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 1e6}},
      {"name": "c", "type": "rotational_contact", "parameters":
       {"torque_Nm": 1000, "angle_rad": 1, "gap_rad": 0.1, "side": "both", "damping_s_per_rad": 0.3}}],
    "couplings": [
      {"kind": "connection", "ports": ["m0.shaft", "e0.left"]},
      {"kind": "connection", "ports": ["m1.shaft_1", "e0.right"]},
      {"kind": "connection", "ports": ["m1.shaft_2", "e1.left"]},
      {"kind": "connection", "ports": ["m2.shaft_1", "e1.right"]},
      {"kind": "connection", "ports": ["m2.shaft_2", "c.shaft"]}],
    "method": {"kind": "auto"}})json",
                                      "shafts.json", ".");
  Stepper one(own.system, own.options);
  one.step(14);
  EXPECT_NE(one.waves()->integrator().find("pieces"), std::string::npos) << "control";
  for (int n = 14; n < 30; ++n) {
    Stepper other = one.clone();
    one.step();
    other.step();
    for (const char* const part : {"m0", "m1", "m2"}) {
      EXPECT_EQ(other.state(part)[0], one.state(part)[0]) << part << " " << n;
    }
  }
}

}  // namespace
}  // namespace portwave::test_steps_in_pieces
