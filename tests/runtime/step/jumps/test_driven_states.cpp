// What states do where a parameter follows a function of time: momenta, charges and flux linkages stay, and joints that
// a ratio changes let an impulse act. And parts that are in no equation of joints.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_driven_states {
namespace {

Scenario scenario(const std::string& parts, const std::string& couplings, double step_s,
                  int stages = 1) {
  return parse_scenario(
      fmt::format(R"({{"name": "driven", "time": {{"step_s": {:.17g}, "steps": 10000}},
    "subsystems": [{}], "couplings": [{}], "method": {{"kind": "auto", "stages": {}}}}})",
                  step_s, parts, couplings, stages),
      "driven.json", ".");
}

// A part by itself: state, value of the parameter, and what does not change.
TEST(DrivenStates, KeepWhatTheyStore) {
  const struct {
    std::string type, parameters, start, parameter, port;
    double first, last, state;
    bool is_kept;  ///< the product of parameter and state; else the state
  } rows[] = {{"capacitor", R"("capacitance_F": 2)", R"("voltage": 100)", "capacitance_F",
               "terminals", 2, 1, 100, true},
              {"inductor", R"("inductance_H": 0.1)", R"("current": 3)", "inductance_H", "terminals",
               0.1, 0.4, 3, true},
              {"inertia", R"("inertia_kgm2": 4)", R"("speed": 3)", "inertia_kgm2", "shaft", 4, 1.5,
               3, true},
              {"mass", R"("mass_kg": 2)", R"("velocity": -5)", "mass_kg", "port", 2, 7, -5, true},
              {"spring", R"("stiffness_N_per_m": 10)", R"("elongation": 0.2)", "stiffness_N_per_m",
               "left", 10, 30, 0.2, false}};
  for (const auto& row : rows) {
    for (const int stages : {1, 3}) {
      const std::string others =
          row.type == "spring" ? R"(, {"kind": "fixed", "ports": ["x.right"]})" : "";
      // Ports that take a flow are held, those that take an effort are free: nothing acts on the part.
      const std::string end = row.type == "spring" || row.type == "capacitor" ? "fixed" : "free";
      const Scenario own = scenario(
          fmt::format(
              R"json({{"name": "x", "type": "{}", "parameters": {{{}}}, "initial_state": {{{}}},
            "inputs": {{"{}": "if(t < 0.05, {}, {})"}}}})json",
              row.type, row.parameters, row.start, row.parameter, row.first, row.last),
          fmt::format(R"({{"kind": "{}", "ports": ["x.{}"]}})", end, row.port) + others, 0.01,
          stages);
      Stepper stepper(own.system, own.options);
      stepper.step(20);
      const std::size_t place = row.type == "mass" || row.type == "inertia" ? 1 : 0;
      const double expected = row.is_kept ? row.state * row.first / row.last : row.state;
      EXPECT_NEAR(stepper.state("x")[place], expected, 1e-12 * std::abs(expected)) << row.type;
      // What that stores more is supplied, to round-off.
      const EnergyTotals e = stepper.energy();
      const double last_J = 0.5 * row.last * expected * expected;
      EXPECT_NEAR(e.final_J, last_J, 1e-12 * last_J) << row.type;
      EXPECT_NEAR(e.supplied_J, e.final_J - e.initial_J, 1e-12 * e.max_J) << row.type;
    }
  }
}

/// Two inertias on a gear whose ratio follows `ratio`: engine 0.1 kg m2, load 1.5.
Scenario gear(double first, const std::string& ratio, double engine, double load, double step_s,
              int stages) {
  return scenario(
      fmt::format(
          R"({{"name": "e", "type": "inertia", "parameters": {{"inertia_kgm2": 0.1}}, "initial_state": {{"speed": {}}}}},
      {{"name": "g", "type": "gear", "parameters": {{"ratio": {}}}, "inputs": {{"ratio": "{}"}}}},
      {{"name": "l", "type": "inertia", "parameters": {{"inertia_kgm2": 1.5}}, "initial_state": {{"speed": {}}}}})",
          engine, first, ratio, load),
      R"({"kind": "connection", "ports": ["e.shaft", "g.input"]},
      {"kind": "common_flow", "ports": ["g.output", "l.shaft"]})",
      step_s, stages);
}

// The impulse of the new ratio: 0.1 (e - 30) = -p, 1.5 (l - 10) = 2 p, e = 2 l.
TEST(DrivenStates, ARatioThatJumpsLetsAnImpulseAct) {
  for (const int stages : {1, 2, 3}) {
    const Scenario own = gear(3, "if(t < 0.1, 3, 2)", 30, 10, 0.01, stages);
    Stepper stepper(own.system, own.options);
    stepper.step(20);
    EXPECT_NEAR(stepper.state("l")[1], 21.0 / 1.9, 1e-9) << stages;
    EXPECT_NEAR(stepper.state("e")[1], 42.0 / 1.9, 1e-9) << stages;
    EXPECT_EQ(stepper.impulses().count, 1) << stages;
    EXPECT_NEAR(stepper.energy().impact_J,
                120.0 - 0.05 * std::pow(42.0 / 1.9, 2) - 0.75 * std::pow(21.0 / 1.9, 2), 1e-9);
    EXPECT_TRUE(summarize("test", own.options, stepper, 1.0).is_all_well()) << stages;
  }
}

// (J + n² j) l' + n n' j l = 0: l √(J + n² j) stays.
TEST(DrivenStates, ARatioThatMovesSmoothlyIsFollowed) {
  const auto error = [](double step_s, int stages, std::int64_t& impulses) {
    const Scenario own = gear(2, "2 + sin(t)", 20, 10, step_s, stages);
    Stepper stepper(own.system, own.options);
    double largest = 0.0;
    while (stepper.time_s() < 3.0 - 0.5 * step_s) {
      stepper.step();
      const double n = 2.0 + std::sin(stepper.time_s());
      const double expected = 10.0 * std::sqrt(1.9 / (1.5 + 0.1 * n * n));
      largest = std::max(largest, std::abs(stepper.state("l")[1] - expected));
    }
    impulses = stepper.impulses().count;
    EXPECT_TRUE(summarize("test", own.options, stepper, 1.0).is_all_well()) << stages;
    return largest;
  };
  std::int64_t impulses = 0;
  const double coarse = error(0.02, 1, impulses);
  EXPECT_EQ(impulses, 0);
  EXPECT_LT(coarse, 1e-3);
  EXPECT_NEAR(coarse / error(0.01, 1, impulses), 4.0, 0.5);
  // With more stages an impulse acts before each step; rows then have the ratio of half a step ago.
  EXPECT_LT(error(0.01, 2, impulses), 0.02);
  EXPECT_GT(impulses, 100);
}

// The impulse of the start and that of a ratio that has changed in the same instant: the second finds what the first left.
TEST(DrivenStates, AStartAtOddsIsInTheAccountOnce) {
  for (const int stages : {1, 2}) {
    const Scenario own = gear(2, "2 + 0.5*sin(2*t)", 20, -20, 0.01, stages);
    Stepper stepper(own.system, own.options);
    stepper.step(50);
    const double momentum = 0.1 * stepper.state("e")[1], load = 1.5 * stepper.state("l")[1];
    const EnergyTotals e = stepper.energy();
    EXPECT_NEAR(e.final_J, 0.5 * (momentum * momentum / 0.1 + load * load / 1.5), 1e-9 * e.max_J)
        << stages;
    EXPECT_NEAR(e.initial_J, 0.5 * (0.1 * 400 + 1.5 * 400), 1e-9);
    EXPECT_NEAR(e.final_J - e.initial_J - e.supplied_J + e.impact_J, 0.0, 1e-9 * e.max_J) << stages;
  }
}

// Two masses on one rigid joint, one of which changes: together they keep their momentum.
TEST(DrivenStates, OfPartsThatAreTiedKeepTheirMomentumTogether) {
  for (const int stages : {1, 2, 3}) {
    for (const double step_s : {0.01, 0.005}) {
      const Scenario own = scenario(
          R"json({"name": "a", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"velocity": 1},
        "inputs": {"mass_kg": "2 + 1.5*sin(4*t)"}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}})json",
          R"({"kind": "common_flow", "ports": ["a.port", "b.port"]})", step_s, stages);
      Stepper stepper(own.system, own.options);
      while (stepper.time_s() < 2.0) {
        stepper.step();
        const double mass = 3.0 + 1.5 * std::sin(4.0 * (stepper.time_s() - 0.5 * step_s));
        EXPECT_NEAR(stepper.state("a")[1], 3.0 / mass, 1e-6) << stages;
        EXPECT_NEAR(stepper.state("b")[1], 3.0 / mass, 1e-6) << stages;
      }
      EXPECT_TRUE(summarize("test", own.options, stepper, 1.0).is_all_well()) << stages;
    }
  }
}

/// A driven part whose ports lead nowhere beside an island that solves its interface equation.
TEST(DrivenStates, OfPartsInNoJointAreStepped) {
  for (const int stages : {1, 2}) {
    const Scenario own = scenario(
        R"json({"name": "c", "type": "mass", "parameters": {"mass_kg": 5}, "initial_state": {"velocity": 1}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 1}},
      {"name": "f", "type": "coulomb_damper", "parameters": {"friction_N": 3, "creep_speed_m_per_s": 1e-5}},
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 2, "damping_Ns_per_m": 1}, "initial_state": {"velocity": 4},
       "inputs": {"damping_Ns_per_m": "1 + 0.5*sin(t)"}})json",
        R"({"kind": "common_effort", "ports": ["c.port", "b.port", "f.end"]},
      {"kind": "free", "ports": ["m.port"]})",
        0.01, stages);
    Stepper stepper(own.system, own.options);
    stepper.step(200);
    // 2 v' = -(1 + sin(t)/2) v
    EXPECT_NEAR(stepper.state("m")[1], 4.0 * std::exp(-0.5 * (2.0 + 0.5 * (1.0 - std::cos(2.0)))),
                1e-4)
        << stages;
  }
}

/// The largest alternation of a state: of the second difference of its rows, beside its largest value.
double alternation(const Scenario& own, std::int64_t steps, const std::string& part,
                   std::size_t state, RunSummary& summary) {
  Stepper stepper(own.system, own.options);
  std::vector<double> rows;
  for (std::int64_t n = 0; n < steps; ++n) {
    stepper.step();
    rows.push_back(stepper.state(part)[state]);
  }
  summary = summarize("test", own.options, stepper, 1.0);
  double out = 0.0, largest = 0.0;
  for (std::size_t i = 3; i < rows.size(); ++i) {
    const double one = rows[i] - rows[i - 1], two = rows[i - 1] - rows[i - 2],
                 three = rows[i - 2] - rows[i - 3];
    if (one * two < 0.0 && two * three < 0.0)
      out = std::max(out, std::min(std::abs(one), std::abs(two)));
    largest = std::max(largest, std::abs(rows[i]));
  }
  return out / largest;
}

// A spring behind a slider of 5 N never has more than 5 N.
TEST(ChangeOverBehindJoints, ASpringBehindASliderStopsAtItsFriction) {
  const auto slider = [](const std::string& integrator) {
    Scenario own = scenario(
        R"json({"name": "m", "type": "mass", "parameters": {"mass_kg": 10, "damping_Ns_per_m": 5, "ports": 2},
        "inputs": {"force": "50*sin(2*pi*0.7*t)"}},
      {"name": "k", "type": "spring", "parameters": {"stiffness_N_per_m": 400}},
      {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 3000}},
      {"name": "f", "type": "coulomb_damper", "parameters": {"friction_N": 5, "creep_speed_m_per_s": 1e-4}})json",
        R"({"kind": "connection", "ports": ["m.port_2", "k.right"]}, {"kind": "fixed", "ports": ["k.left"]},
      {"kind": "connection", "ports": ["m.port_1", "s.right"]},
      {"kind": "common_flow", "ports": ["s.left", "f.end"]})",
        0.005);
    if (integrator == "gauss") own.options.method.waves().integrator = StageKind::gauss;
    return own;
  };
  RunSummary summary;
  EXPECT_LT(alternation(slider("auto"), 600, "s", 0, summary), 0.01);
  EXPECT_TRUE(summary.is_all_well());
  EXPECT_NE(summary.integrator.find("\"s\""), std::string::npos) << summary.integrator;
  EXPECT_GT(alternation(slider("gauss"), 600, "s", 0, summary), 0.01);  // control
  EXPECT_FALSE(summary.is_all_well());
}

// Four diodes between a coil and a capacitor: the coil sees two of them in series, through one junction of seven ports.
TEST(ChangeOverBehindJoints, ACoilIsSeenThroughABridgeOfDiodes) {
  const auto bridge = [](const std::string& integrator) {
    std::string parts =
        R"json({"name": "s", "type": "effort_source", "parameters": {"domain": "electrical"},
        "inputs": {"effort": "17*sin(2*pi*50*t)"}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 0.001, "resistance_ohm": 0.5}},)json";
    for (int i = 1; i <= 4; ++i) {
      parts += fmt::format(
          R"({{"name": "d{}", "type": "diode", "parameters": {{"saturation_current_A": 1e-9, "emission_coefficient": 1.5}}}},)",
          i);
    }
    parts +=
        R"({"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.0022, "leakage_S": 0.05}})";
    Scenario own = scenario(
        parts,
        R"({"kind": "kernel", "ports": ["s.port", "l.terminals", "d1.terminals", "d2.terminals", "d3.terminals", "d4.terminals",
        "c.terminals"],
      "E": [[1,-1,-1,1,0,0,0],[0,0,1,0,1,0,1],[0,0,0,1,0,1,1],[0,0,0,0,0,0,0],[0,0,0,0,0,0,0],[0,0,0,0,0,0,0],
        [0,0,0,0,0,0,0]],
      "F": [[0,0,0,0,0,0,0],[0,0,0,0,0,0,0],[0,0,0,0,0,0,0],[1,1,0,0,0,0,0],[0,1,-1,0,1,0,0],[0,0,1,1,0,0,-1],
        [0,0,0,0,1,1,-1]]})",
        1e-4);
    if (integrator == "gauss") own.options.method.waves().integrator = StageKind::gauss;
    Stepper stepper(own.system, own.options);
    stepper.step(600);
    return summarize("test", own.options, stepper, 1.0);
  };
  const RunSummary own = bridge("auto");
  EXPECT_TRUE(own.is_all_well());
  EXPECT_NE(own.integrator.find("\"l\""), std::string::npos) << own.integrator;
  EXPECT_FALSE(bridge("gauss").is_all_well());  // control: efforts alternate
}

// A capacitor with substeps meets the mean voltage of a diode, and is thrown across it.
TEST(ChangeOverBehindJoints, SubstepsThatAreThrownAcrossAreTold) {
  for (const int substeps : {1, 2, 10}) {
    const Scenario own = scenario(
        fmt::format(
            R"({{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 1e-5}}, "substeps": {},
        "initial_state": {{"voltage": 5}}}},
      {{"name": "d", "type": "diode", "parameters": {{"saturation_current_A": 1e-9, "emission_coefficient": 1.8}}}},
      {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": 1000, "gives": "current"}}}})",
            substeps),
        R"({"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "r.terminals"]})",
        1e-4);
    Stepper stepper(own.system, own.options);
    double least = 5.0;
    for (int n = 0; n < 100; ++n) {
      stepper.step();
      least = std::min(least, stepper.state("c")[0]);
    }
    const RunSummary summary = summarize("test", own.options, stepper, 1.0);
    EXPECT_EQ(summary.is_all_well(), substeps == 1) << substeps;
    EXPECT_EQ(least<0.0, substeps> 1) << substeps;
    if (substeps > 1) {
      EXPECT_EQ(summary.unresolved_part, "c");
      EXPECT_TRUE(summary.has_unresolved_substeps);
    }
  }
}

// A mass under a force that changes its sign: between the ends of its first steps it moves on parabolas.
TEST(RowsWithinSteps, FollowParabolasAfterARestart) {
  const Scenario own = parse_scenario(
      R"json({"name": "rows", "time": {"step": {"kind": "adaptive", "tolerance": 1e-4}, "end_s": 4},
    "subsystems": [{"name": "m", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"velocity": -0.5},
      "inputs": {"force": "if(mod(t, 1) < 0.5, 4, -4)"}}],
    "couplings": [{"kind": "free", "ports": ["m.port"]}], "method": {"kind": "auto", "stages": 1}})json",
      "rows.json", ".");
  Stepper stepper(own.system, own.options);
  double largest = 0.0, longest_s = 0.0;
  std::vector<double> x(2);
  while (stepper.time_s() < 4.0) {
    const double before_s = stepper.time_s();
    stepper.step_towards(4.0);
    longest_s = std::max(longest_s, stepper.time_s() - before_s);
    for (const double share : {0.25, 0.5, 0.75}) {
      const double t = before_s + share * (stepper.time_s() - before_s);
      stepper.state_at(0, t, x);
      const double k = std::floor(t), s = t - k;
      const double way = s < 0.5 ? s * s : 0.25 + (s - 0.5) - (s - 0.5) * (s - 0.5);
      largest = std::max(largest, std::abs(x[0] - (way + 0.5 * k - 0.5 * t)));
    }
  }
  EXPECT_LT(largest, 1e-12);
  EXPECT_GT(longest_s, 0.05);  // a chord of such a step is off by 6e-4 m
}

}  // namespace
}  // namespace portwave::test_driven_states
