// A run beside the same with finer steps: what is compared, what counts as far, and when nothing is.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/study/step_comparison.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_step_comparison {
namespace {

using Extent = StepComparison::Extent;

Scenario scenario_of(const std::string& text) {
  return parse_scenario(text, "test.json", testing::source_folder());
}

/// A mass of 1 kg on a spring, ω = 1 rad/s, that starts at 1 m/s.
Scenario oscillator(double step_s, double end_s) {
  return scenario_of(R"({"name": "oscillator", "time": {"step_s": )" + std::to_string(step_s) +
                     R"(, "end_s": )" + std::to_string(end_s) + R"(}, "subsystems": [
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}},
      {"name": "k", "type": "spring", "parameters": {"stiffness_N_per_m": 1}}],
    "couplings": [{"kind": "connection", "ports": ["k.right", "m.port"]},
                  {"kind": "fixed", "ports": ["k.left"]}]})");
}

/// Told every step, as by a program that runs the scenario.
StepAgreement agreement(const Scenario& scenario, Extent extent = Extent::beginning) {
  StepComparison comparison(scenario, scenario.options, extent);
  Stepper stepper(scenario.system, scenario.options);
  while (stepper.step_index() < scenario.steps || stepper.time_s() < scenario.end_s) {
    if (scenario.options.sizes) {
      stepper.step_towards(scenario.end_s);
    } else {
      if (stepper.step_index() == scenario.steps) break;
      stepper.step();
    }
    comparison.record(stepper);
  }
  return comparison.finish(stepper.step_index()).value();
}

// The implicit midpoint rule turns by 2 atan(ωh/2) in a step: both runs are known in closed form.
TEST(StepComparison, TheShareIsThatOfTheClosedForms) {
  constexpr double kStep = 0.25, kEnd = 30.0;
  const StepAgreement own = agreement(oscillator(kStep, kEnd));
  const auto turned = [](double h, double t) { return t / h * 2.0 * std::atan(0.5 * h); };
  double share = 0.0;
  for (const bool is_velocity : {true, false}) {
    std::vector<double> differences;
    double least = is_velocity ? 1.0 : 0.0, most = least;
    for (double t = kStep; t < kEnd + 0.5 * kStep; t += kStep) {
      const auto value = [&](double h) {
        return is_velocity ? std::cos(turned(h, t)) : std::sin(turned(h, t));
      };
      differences.push_back(std::abs(value(kStep) - value(0.5 * kStep)));
      least = std::min(least, value(kStep));
      most = std::max(most, value(kStep));
    }
    // Of 120 instants two of three in a row.
    for (std::size_t i = 2; i < differences.size(); ++i) {
      std::vector<double> window(differences.begin() + static_cast<std::ptrdiff_t>(i) - 2,
                                 differences.begin() + static_cast<std::ptrdiff_t>(i) + 1);
      std::ranges::sort(window, std::greater<>());
      share = std::max(share, window[1] / (most - least));
    }
  }
  EXPECT_NEAR(own.share, share, 1e-9);
  EXPECT_GT(own.share, 0.05);
  EXPECT_EQ(own.finer, 0.5 * kStep);
  EXPECT_EQ(own.instants, 120);
  EXPECT_TRUE(own.is_whole);
  EXPECT_EQ(own.until_s, kEnd);
}

TEST(StepComparison, LongStepsAreFarAndShortOnesAreNot) {
  EXPECT_TRUE(agreement(oscillator(0.5, 30.0)).is_far());
  const StepAgreement fine = agreement(oscillator(0.05, 30.0));
  EXPECT_FALSE(fine.is_far());
  EXPECT_GT(fine.share, 1e-3);
}

// Three steps per impact: no step is far off by its own estimate, and the stop gives back too much or too little.
TEST(StepComparison, CoarseImpactsAreFar) {
  const auto stops = [](const std::string& step_s, const std::string& end_s) {
    return scenario_of(R"({"name": "stops", "time": {"step_s": )" + step_s + R"(, "end_s": )" +
                       end_s + R"(}, "subsystems": [
        {"name": "m", "type": "mass", "parameters": {"mass_kg": 1, "ports": 2},
         "initial_state": {"velocity": 2}},
        {"name": "k", "type": "spring", "parameters": {"stiffness_N_per_m": 20}},
        {"name": "s", "type": "contact",
         "parameters": {"force_N": 1000, "compression_m": 0.001, "gap_m": 0.2, "side": "both",
                        "damping_s_per_m": 0.2}}],
      "couplings": [{"kind": "connection", "ports": ["k.right", "m.port_1"]},
                    {"kind": "connection", "ports": ["s.face", "m.port_2"]},
                    {"kind": "fixed", "ports": ["k.left"]}]})");
  };
  EXPECT_TRUE(agreement(stops("0.001", "3")).is_far());
  EXPECT_FALSE(agreement(stops("0.00002", "0.5")).is_far());
}

TEST(StepComparison, UniformMotionAndRestAgree) {
  for (const std::string velocity : {"0", "3", "-1e9"}) {
    const StepAgreement own = agreement(scenario_of(
        R"({"name": "free", "time": {"step_s": 0.1, "end_s": 10}, "subsystems": [
        {"name": "m", "type": "mass", "parameters": {"mass_kg": 1},
         "initial_state": {"velocity": )" +
        velocity + R"(}}], "couplings": [{"kind": "free", "ports": ["m.port"]}]})"));
    EXPECT_LT(own.share, 1e-9) << velocity;
    EXPECT_FALSE(own.is_far());
  }
}

// A step input comes within a step for one run and between two for the other: the two differ at one
// instant, which says nothing about the steps.
TEST(StepComparison, OneInstantIsNoError) {
  const StepAgreement own = agreement(scenario_of(
      R"({"name": "decay", "time": {"step_s": 0.1, "end_s": 3}, "subsystems": [
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1},
       "initial_state": {"voltage": 1}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 0.02}}],
    "couplings": [{"kind": "connection", "ports": ["c.terminals", "r.terminals"]}]})"));
  EXPECT_FALSE(own.is_far());
  EXPECT_LT(own.share, 0.03);
}

TEST(StepComparison, ARunThatWasNotToldWholeIsSteppedAgain) {
  const Scenario scenario = oscillator(0.25, 30.0);
  const StepAgreement told = agreement(scenario);
  StepComparison comparison(scenario, scenario.options, Extent::beginning);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(7);
  while (stepper.step_index() < scenario.steps) {
    stepper.step();
    comparison.record(stepper);
  }
  const StepAgreement again = comparison.finish(scenario.steps).value();
  EXPECT_EQ(again.share, told.share);
  EXPECT_EQ(again.state, told.state);
  EXPECT_EQ(again.instants, told.instants);
}

TEST(StepComparison, ChosenStepsAreComparedWithATenthOfTheTolerance) {
  Scenario scenario = oscillator(0.5, 30.0);
  scenario.steps = 0;
  scenario.options.sizes = StepSizes{.tolerance = 1e-4};
  const StepAgreement own = agreement(scenario);
  EXPECT_TRUE(own.is_chosen);
  EXPECT_DOUBLE_EQ(own.finer, 1e-5);
  EXPECT_TRUE(own.is_whole);
  EXPECT_GT(own.share, 1e-6);
  EXPECT_LT(own.share, 1e-2);
  scenario.options.sizes->tolerance = 1e-13;
  StepComparison finest(scenario, scenario.options, Extent::whole);
  EXPECT_FALSE(finest.finish(10).has_value()) << "no tolerance is finer";
}

// Steps that end at samples are no shorter with a finer tolerance.
TEST(StepComparison, ChosenStepsThatSamplesBoundAreComparedWithHalfOfThem) {
  const StepAgreement own = agreement(scenario_of(
      R"({"name": "sampled", "time": {"step": {"kind": "adaptive", "tolerance": 1e-2}, "end_s": 6},
      "subsystems": [
        {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1},
         "inputs": {"force": {"kind": "signal", "signal": "u"}}},
        {"name": "k", "type": "spring", "parameters": {"stiffness_N_per_m": 4}}],
      "couplings": [{"kind": "connection", "ports": ["k.right", "m.port"]},
                    {"kind": "fixed", "ports": ["k.left"]}],
      "signals": {"every_s": 0.2, "blocks": [
        {"name": "u", "kind": "gain", "signal": "m.velocity", "factor": -0.5}]},
      "method": {"kind": "kick-drift", "order": 4}})"));
  EXPECT_EQ(own.instants, 30);
  EXPECT_GT(own.share, 1e-8);
  EXPECT_LT(own.share, 1e-6);
}

/// A free chain of 50 masses, 100 states, that is pushed at one end.
Scenario chain(const std::string& end_s) {
  return scenario_of(R"({"name": "chain", "time": {"step_s": 0.01, "end_s": )" + end_s +
                     R"(}, "subsystems": [
      {"name": "c", "type": "mass_spring_damper_chain",
       "parameters": {"masses": 50, "mass_kg": 1, "stiffness_N_per_m": 10, "right_end": "mass"},
       "inputs": {"force_1": {"kind": "constant", "value": 1}}}],
    "couplings": [{"kind": "free", "ports": ["c.left"]}, {"kind": "free", "ports": ["c.right"]}]})");
}

TEST(StepComparison, OfLongRunsFewerRowsAreKept) {
  const StepAgreement own = agreement(chain("100"));
  EXPECT_TRUE(own.is_whole);
  EXPECT_EQ(own.instants, 5000);
  EXPECT_NEAR(own.until_s, 100.0, 1e-9);
}

TEST(StepComparison, OnlyTheBeginningOfAVeryLongRunIsCompared) {
  const Scenario scenario = chain("600");
  const StepAgreement own = agreement(scenario);
  EXPECT_FALSE(own.is_whole);
  EXPECT_NEAR(own.until_s, 500.0, 0.2);
  EXPECT_TRUE(own.grows);
  EXPECT_NEAR(own.expected, own.share * 600.0 / own.until_s, 1e-9);
  StepComparison none(scenario, scenario.options, Extent::none);
  EXPECT_FALSE(none.finish(10).has_value());
}

// What hangs at rest moves by rounding, by far more than an eighth of itself.
TEST(StepComparison, RestUnderALoadIsNoMotion) {
  Scenario scenario = scenario_of(R"({"name": "rest", "time": {"step_s": 0.01, "end_s": 3},
    "subsystems": [
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 0.7},
       "inputs": {"force": {"kind": "constant", "value": 6.867}}},
      {"name": "k", "type": "spring", "parameters": {"stiffness_N_per_m": 123.4},
       "initial_state": {"elongation": 0.05564829821717990}}],
    "couplings": [{"kind": "connection", "ports": ["k.right", "m.port"]},
                  {"kind": "fixed", "ports": ["k.left"]}]})");
  const StepAgreement own = agreement(scenario);
  EXPECT_EQ(own.state, "");
  EXPECT_FALSE(own.is_far());
}

// A circuit of 5 V beside one of 100 kV that it is not joined to.
TEST(StepComparison, IslandsAreJudgedByThemselves) {
  const auto circuits = [](const std::string& small_F) {
    return scenario_of(R"({"name": "two", "time": {"step_s": 1e-4, "end_s": 0.2}, "subsystems": [
      {"name": "C", "type": "capacitor", "parameters": {"capacitance_F": 1e-2},
       "initial_state": {"voltage": 1e5}},
      {"name": "L", "type": "inductor", "parameters": {"inductance_H": 1}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": )" +
                       small_F + R"(}, "initial_state": {"voltage": 5}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 1e-3}}],
    "couplings": [{"kind": "connection", "ports": ["C.terminals", "L.terminals"]},
                  {"kind": "connection", "ports": ["c.terminals", "l.terminals"]}]})");
  };
  EXPECT_TRUE(agreement(circuits("1e-4")).is_far());
  EXPECT_FALSE(agreement(circuits("1e-2")).is_far());
}

TEST(StepComparison, OfFewInstantsEachCounts) {
  EXPECT_TRUE(agreement(oscillator(1.5, 3.0)).is_far());
  EXPECT_FALSE(agreement(oscillator(0.05, 0.1)).is_far());
}

// Where the largest step is what bounds chosen steps, a tolerance alone would change nothing.
TEST(StepComparison, TheLargestStepIsHalvedToo) {
  Scenario scenario = oscillator(0.2, 300.0);
  scenario.steps = 0;
  scenario.options.sizes = StepSizes{.tolerance = 1e-1};
  scenario.options.method.waves().stages = 1;
  EXPECT_TRUE(agreement(scenario).is_far());
}

// A controller keeps its instants when steps are halved: another rate would be another controller.
TEST(StepComparison, SignalsKeepTheirInstants) {
  const Scenario scenario =
      load_scenario(testing::source_folder() / "examples" / "drive_pid.json", {});
  const StepAgreement own = agreement(scenario);
  EXPECT_LT(own.share, 1e-4);
}

// A spring made of a signal that nobody gave a rate: held over steps it pushes half a step late, and gains energy by
// that. With half the steps it gains half as much.
TEST(StepComparison, ControllersThatNobodyGaveARateAreSampledFaster) {
  const auto spring = [](const std::string& rate) {
    return scenario_of(R"({"name": "s", "time": {"step_s": 0.02, "end_s": 90}, "subsystems": [
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1},
       "inputs": {"force": {"kind": "signal", "signal": "pull"}}}],
      "couplings": [{"kind": "free", "ports": ["m.port"]}], "signals": {)" +
                       rate + R"("blocks": [{"name": "pull", "kind": "gain",
        "signal": "m.position", "factor": -1}]}})");
  };
  const StepAgreement unasked = agreement(spring(""));
  EXPECT_TRUE(unasked.samples_faster);
  EXPECT_TRUE(unasked.is_far());
  for (const std::string rate : {R"("every_s": 0.02, )", R"("every": 2, )"}) {
    const StepAgreement asked = agreement(spring(rate));
    EXPECT_FALSE(asked.samples_faster) << rate;
    EXPECT_LT(asked.share, 0.01) << rate;
  }
}

// A block that logs at a rate of its own says nothing about the one that drives.
TEST(StepComparison, ABlockWithARateLeavesOthersWithoutOne) {
  const auto spring = [](const std::string& rate, const std::string& of_log) {
    return scenario_of(R"({"name": "s", "time": {"step_s": 0.02, "end_s": 90}, "subsystems": [
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1},
       "inputs": {"force": {"kind": "signal", "signal": "pull"}}}],
      "couplings": [{"kind": "free", "ports": ["m.port"]}], "signals": {"blocks": [
        {"name": "pull", "kind": "gain", "signal": "m.position", "factor": -1)" +
                       rate + R"(},
        {"name": "log", "kind": "gain", "signal": "m.velocity", "factor": 1)" +
                       of_log + "}]}}");
  };
  const StepAgreement unasked = agreement(spring("", R"(, "every": 50)"));
  EXPECT_TRUE(unasked.samples_faster);
  EXPECT_TRUE(unasked.is_far());
  const StepAgreement asked = agreement(spring(R"(, "every": 2)", R"(, "every": 50)"));
  EXPECT_FALSE(asked.samples_faster);
}

// A stiffness that is a function of time, seen five times in its period: finer steps see it ten times.
TEST(StepComparison, FunctionsThatParametersFollowAreSeenMoreOften) {
  const auto swing = [](const std::string& step_s) {
    return scenario_of(R"({"name": "mathieu", "time": {"step_s": )" + step_s +
                       R"(, "end_s": 100}, "subsystems": [
      {"name": "m", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4,
       "damping_Ns_per_m": 0.1}, "initial_state": {"q2": 1},
       "inputs": {"stiffness_N_per_m": "4 + 1.2*sin(4*t) + 0"}}],
      "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
      "method": {"kind": "auto", "stages": 2}})");
  };
  const StepAgreement coarse = agreement(swing("0.25"));
  EXPECT_FALSE(coarse.samples_faster);
  EXPECT_GT(coarse.share, 0.05);
  EXPECT_LT(agreement(swing("0.01")).share, 1e-3);  // control
}

// An oscillation with ωh = 0.8 that dies within two hundred steps is as wrong where much rest follows.
TEST(StepComparison, RestAfterATransientChangesNothing) {
  const auto ring = [](const std::string& step_s, const std::string& steps) {
    return scenario_of(R"({"name": "ring", "time": {"step_s": )" + step_s + R"(, "steps": )" +
                       steps +
                       R"(}, "subsystems": [
      {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}},
      {"name": "k", "type": "spring_damper",
       "parameters": {"stiffness_N_per_m": 1, "damping_Ns_per_m": 0.04}}],
    "couplings": [{"kind": "connection", "ports": ["k.right", "m.port"]},
                  {"kind": "fixed", "ports": ["k.left"]}]})");
  };
  const StepAgreement own = agreement(ring("0.8", "600")), tail = agreement(ring("0.8", "20000"));
  EXPECT_TRUE(own.is_far());
  EXPECT_TRUE(tail.is_far());
  EXPECT_GT(tail.share, 0.5 * own.share);
  EXPECT_LT(tail.time_s, 160.0);
  EXPECT_FALSE(agreement(ring("0.05", "20000")).is_far());  // control
}

// A millionth of a millionth of all energy, in an island of its own.
TEST(StepComparison, SmallIslandsBesideLargeOnesAreNoRounding) {
  const auto beside = [](const std::string& inertia) {
    return scenario_of(R"({"name": "two", "time": {"step_s": 1e-6, "end_s": 1e-3}, "subsystems": [
      {"name": "J", "type": "inertia", "parameters": {"inertia_kgm2": )" +
                       inertia + R"(}, "initial_state": {"speed": 314}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-9},
       "initial_state": {"voltage": 0.1}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 2e-3}}],
    "couplings": [{"kind": "free", "ports": ["J.shaft"]},
                  {"kind": "connection", "ports": ["c.terminals", "l.terminals"]}]})");
  };
  for (const std::string inertia : {"1", "1e6", "1e12"}) {
    EXPECT_TRUE(agreement(beside(inertia)).is_far()) << inertia;
  }
}

// A circuit of 100 pF at a battery of 400 V. Its waves are 1e-10 of those of the battery, so that steps end by the
// first evaluation and nothing moves, with steps of any size.
TEST(StepComparison, WhatMovesBeneathTheWavesOfOthersIsSeen) {
  const auto circuit = [](const std::string& battery_F, const std::string& method) {
    return scenario_of(
        R"json({"name": "ev", "time": {"step_s": 1e-7, "end_s": 5e-4}, "subsystems": [
      {"name": "b", "type": "capacitor", "parameters": {"capacitance_F": )json" +
        battery_F + R"json(}, "initial_state": {"voltage": 400}},
      {"name": "load", "type": "resistor", "parameters": {"resistance_ohm": 10}},
      {"name": "g", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "if(t<1e-4,0,1)"}}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 0.01, "resistance_ohm": 1000}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-10}},
      {"name": "leak", "type": "resistor", "parameters": {"resistance_ohm": 1e9}}],
    "couplings": [{"kind": "kernel", "ports": ["b.terminals", "load.terminals", "g.port", "l.terminals",
        "c.terminals", "leak.terminals"],
      "E": [[0,0,0,0,0,0], [0,0,0,0,0,0], [0,0,0,0,0,0], [-1,1,0,0,0,0], [0,0,-1,1,1,0], [1,0,-1,1,0,1]],
      "F": [[1,1,0,0,0,-1], [0,0,1,1,0,0], [0,0,0,-1,1,1], [0,0,0,0,0,0], [0,0,0,0,0,0], [0,0,0,0,0,0]]}],
    "method": {"kind": "auto")json" +
        method + "}}");
  };
  const StepAgreement own = agreement(circuit("2700", ""));
  EXPECT_TRUE(own.is_far());
  EXPECT_TRUE(own.is_beneath_waves);
  EXPECT_EQ(own.state, "c.voltage");
  EXPECT_GT(own.share, 0.5);
  EXPECT_TRUE(own.unjudged.empty()) << own.unjudged;
  // Controls: what the remedy asks for, and a battery of which the circuit is no small part.
  const StepAgreement by_part = agreement(circuit("2700", R"(, "tolerance_per_part": true)"));
  EXPECT_FALSE(by_part.is_far()) << by_part.state << ' ' << by_part.share;
  const StepAgreement small = agreement(circuit("1e-6", ""));
  EXPECT_FALSE(small.is_far()) << small.state << ' ' << small.share;
  EXPECT_FALSE(small.is_beneath_waves);
}

// An encoder on a heavy rotor: neither the errors of chosen steps nor the tolerance of their iteration see it.
TEST(StepComparison, WhatChosenStepsDoNotSeeIsJudged) {
  const auto encoder = [](const std::string& step, const std::string& method) {
    return scenario_of(R"json({"name": "encoder", "time": {)json" + step +
                       R"json(, "end_s": 0.5}, "subsystems": [
      {"name": "t", "type": "inertia", "parameters": {"inertia_kgm2": 1e5}, "initial_state": {"speed": 314},
       "inputs": {"torque": {"kind": "expression", "expression": "if(t<0.125,0,5000)"}}},
      {"name": "s", "type": "torsional_spring_damper",
       "parameters": {"stiffness_Nm_per_rad": 9.8696, "damping_Nms_per_rad": 1.2566e-3}},
      {"name": "p", "type": "inertia", "parameters": {"inertia_kgm2": 1e-4}, "initial_state": {"speed": 314}}],
    "couplings": [{"kind": "connection", "ports": ["t.shaft", "s.left"]},
                  {"kind": "connection", "ports": ["p.shaft", "s.right"]}],
    "method": {"kind": "auto")json" +
                       method + "}}");
  };
  const std::string chosen = R"("step": {"kind": "adaptive", "tolerance": 1e-4})";
  const StepAgreement own = agreement(encoder(chosen, ""));
  EXPECT_TRUE(own.is_far()) << own.share;
  EXPECT_EQ(own.state, "s.twist");
  EXPECT_TRUE(own.unjudged.empty()) << own.unjudged;
  // Controls: what the remedy asks for, and steps that resolve it.
  const std::string by_part = R"(, "tolerance_per_part": true)";
  const StepAgreement remedied = agreement(encoder(chosen, by_part));
  EXPECT_FALSE(remedied.is_far()) << remedied.state << ' ' << remedied.share;
  EXPECT_TRUE(remedied.unjudged.empty()) << remedied.unjudged;
  const StepAgreement small = agreement(encoder(R"("step_s": 2e-4)", by_part));
  EXPECT_FALSE(small.is_far()) << small.state << ' ' << small.share;
}

// Taylor series have no tolerance of parts: two finer runs that agree judge what is too small for one.
TEST(StepComparison, SmallPartsAreJudgedWithoutWaves) {
  const auto encoder = [](const std::string& tolerance) {
    return scenario_of(
        R"json({"name": "encoder", "time": {"step": {"kind": "adaptive", "tolerance": )json" +
        tolerance + R"json(}, "end_s": 0.5}, "subsystems": [
      {"name": "t", "type": "inertia", "parameters": {"inertia_kgm2": 1e5}, "initial_state": {"speed": 314},
       "inputs": {"torque": {"kind": "expression", "expression": "if(t<0.125,0,5000)"}}},
      {"name": "s", "type": "torsional_spring_damper",
       "parameters": {"stiffness_Nm_per_rad": 0.098696, "damping_Nms_per_rad": 1.2566e-5}},
      {"name": "p", "type": "inertia", "parameters": {"inertia_kgm2": 1e-6}, "initial_state": {"speed": 314}}],
    "couplings": [{"kind": "connection", "ports": ["t.shaft", "s.left"]},
                  {"kind": "connection", "ports": ["p.shaft", "s.right"]}],
    "method": {"kind": "taylor"}})json");
  };
  const StepAgreement own = agreement(encoder("1e-4"));
  EXPECT_TRUE(own.is_far()) << own.share;
  EXPECT_EQ(own.state, "s.twist");
  EXPECT_FALSE(own.is_beneath_waves) << "it has no tolerance of parts";
  EXPECT_FALSE(agreement(encoder("1e-6")).is_far());  // control: right to 0.7 %
}

// A light end on a damper: kicks and drifts halve every step, and steps of half the size would be halved to the same
// ones.
TEST(StepComparison, HalvedStepsAreComparedWithShorterOnes) {
  const auto damped_end = [](const std::string& damping) {
    return scenario_of(R"json({"name": "end", "time": {"step_s": 0.05, "end_s": 6}, "subsystems": [
      {"name": "a", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 1}},
      {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 30}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 0.01, "damping_Ns_per_m": )json" +
                       damping + R"json(},
       "inputs": {"force": {"kind": "expression", "expression": "3*sin(2*t)"}}}],
    "couplings": [{"kind": "connection", "ports": ["a.port", "s.left"]},
                  {"kind": "connection", "ports": ["s.right", "b.port"]}],
    "method": {"kind": "kick-drift", "order": 4}})json");
  };
  EXPECT_GT(agreement(damped_end("200")).share, 1e-6);  // h times the damping is 1000
  EXPECT_GT(agreement(damped_end("0.2")).share, 1e-6) << "control: no step is halved";
}

// A bridge in balance: what flows across it is rounding of what flows beside it, in all runs alike.
TEST(StepComparison, RoundingThatRunsAgreeOnIsNoMotion) {
  const auto bridge = [](const std::string& c2_F) {
    return scenario_of(
        R"json({"name": "bridge", "time": {"step": {"kind": "adaptive", "tolerance": 1e-3},
    "end_s": 0.1}, "subsystems": [
      {"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "100*sin(50*t)"}}},
      {"name": "c1", "type": "capacitor", "parameters": {"capacitance_F": 1e-4}},
      {"name": "c2", "type": "capacitor", "parameters": {"capacitance_F": )json" +
        c2_F + R"json(}},
      {"name": "r1", "type": "resistor", "parameters": {"resistance_ohm": 10}},
      {"name": "r2", "type": "resistor", "parameters": {"resistance_ohm": 10}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 1e-3}}],
    "couplings": [{"kind": "kernel", "ports": ["v.port", "c1.terminals", "c2.terminals", "r1.terminals",
        "r2.terminals", "l.terminals"],
      "E": [[0,0,0,0,0,0], [0,0,0,0,0,0], [0,0,0,0,0,0], [-1,1,0,1,0,0], [-1,0,1,0,1,0], [0,1,-1,0,0,1]],
      "F": [[1,1,1,0,0,0], [0,-1,0,1,0,1], [0,0,-1,0,1,-1], [0,0,0,0,0,0], [0,0,0,0,0,0], [0,0,0,0,0,0]]}]})json");
  };
  const StepAgreement balanced = agreement(bridge("1e-4"));
  EXPECT_FALSE(balanced.is_far()) << balanced.state << ' ' << balanced.share;
  EXPECT_NE(balanced.state, "l.current");
  // Control: with an imbalance of a millionth it moves, and is judged.
  EXPECT_EQ(agreement(bridge("1.000001e-4")).state, "l.current");
}

// A square wave drives an oscillator: rates jump with it, which two conserving stages follow.
TEST(StepComparison, DampedStagesTellWhatStandsFromWhatMoves) {
  const auto holds = [](const Scenario& scenario) {
    StepComparison comparison(scenario, scenario.options, StepComparison::Extent::beginning);
    const auto own = comparison.finish(scenario.steps);
    EXPECT_TRUE(own && own->is_whole && own->share < 0.005) << scenario.name;
    return comparison.holds_with_damped_stages();
  };
  EXPECT_TRUE(holds(
      scenario_of(R"json({"name": "driven", "time": {"step_s": 0.05, "end_s": 20}, "subsystems": [
      {"name": "m", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 9,
       "damping_Ns_per_m": 0.3}, "inputs": {"force": {"kind": "expression",
       "expression": "if(mod(t,0.13)<0.0481,1,-1)"}}}],
      "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
      "method": {"kind": "auto", "stages": 2}})json")));
  // Control: a capacitor that should be on a slow sine within a thousandth of a step keeps its first volt.
  EXPECT_FALSE(holds(
      scenario_of(R"json({"name": "stands", "time": {"step_s": 0.05, "end_s": 2}, "subsystems": [
      {"name": "g", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "10*sin(t)"}}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1e-3}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-4}, "initial_state": {"voltage": 1}}],
    "couplings": [{"kind": "common_flow", "ports": ["g.port", "r.terminals", "c.terminals"]}],
    "method": {"kind": "auto", "stages": 2, "integrator": "gauss"}})json")));
}

// A mass at rest in a train that coasts: what it moves by is rounding, on which no two runs agree.
TEST(StepComparison, NoiseBeneathTheWavesOfOthersIsNoMotion) {
  const Scenario train =
      scenario_of(R"({"name": "train", "time": {"step_s": 1e-4, "end_s": 0.2}, "subsystems": [
      {"name": "t", "type": "mass", "parameters": {"mass_kg": 4e5}, "initial_state": {"velocity": 30}},
      {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 1}},
      {"name": "p", "type": "mass", "parameters": {"mass_kg": 1e-5}, "initial_state": {"velocity": 30}}],
    "couplings": [{"kind": "connection", "ports": ["s.left", "t.port"]},
                  {"kind": "connection", "ports": ["s.right", "p.port"]}]})");
  const StepAgreement own = agreement(train);
  EXPECT_FALSE(own.is_far()) << own.state << ' ' << own.share;
}

/// A motor whose winding decays within a step, on a voltage that jumps to and fro, without steps in pieces.
Scenario motor(double h_lambda, int stages, const std::string& integrator) {
  return scenario_of(R"json({"name": "motor", "time": {"step_s": 1e-3, "end_s": 1}, "subsystems": [
      {"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": "if(mod(t,0.04)<0.013,24,-6)"}},
      {"name": "m", "type": "dc_motor", "parameters": {"inductance_H": )json" +
                     std::to_string(1e6 * 1e-3 / h_lambda) + R"json(e-6, "resistance_ohm": 1,
       "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 2e-4, "damping_Nms_per_rad": 1e-4}}],
    "couplings": [{"kind": "connection", "ports": ["v.port", "m.terminals"]},
                  {"kind": "free", "ports": ["m.shaft"]}],
    "method": {"kind": "peaceman-rachford", "impedance": {"kind": "matched"}, "stages": )json" +
                     std::to_string(stages) + R"(, "integrator": ")" + integrator + R"("}})");
}

// With half the step the winding's decay is one that `auto` leaves to conserving steps.
TEST(StepComparison, WhatDampedStepsLetDieIsComparedWithRunsInWhichItDies) {
  for (const int stages : {2, 3}) {
    for (const double h_lambda : {34.0, 60.0}) {
      const StepAgreement own = agreement(motor(h_lambda, stages, "auto"));
      EXPECT_FALSE(own.is_far()) << stages << ", " << h_lambda << ": " << own.share;
      EXPECT_TRUE(own.failure.empty());
    }
    // Control: conserving steps keep it alive.
    EXPECT_TRUE(agreement(motor(60.0, stages, "gauss")).is_far());
  }
}

// All that moves is what rounding makes of the waves of the source.
TEST(StepComparison, ASourceThatADiodeBlocksMovesNothing) {
  const auto circuit = [](int volts) {
    return scenario_of(
        R"({"name": "blocked", "time": {"step_s": 1e-4, "end_s": 0.02}, "subsystems": [
      {"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": )" +
        std::to_string(volts) + R"(}},
      {"name": "d", "type": "ideal_diode"},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 1e-2}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-4}}],
    "couplings": [{"kind": "common_flow",
                   "ports": ["v.port", "d.terminals", "l.terminals", "c.terminals"]}]})");
  };
  const Scenario blocked = circuit(10);
  const StepAgreement own = agreement(blocked);
  EXPECT_FALSE(own.is_far()) << own.state << ' ' << own.share;
  EXPECT_EQ(own.state, "");
  Stepper stepper(blocked.system, blocked.options);
  stepper.step(blocked.steps);
  EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::resolved);
  EXPECT_NE(agreement(circuit(-10)).state, "");  // the other way round it conducts
}

TEST(StepComparison, FinerStepsThatFailAreToldAsFar) {
  StepAgreement own;
  EXPECT_FALSE(own.is_far());
  own.failure = "step 3";
  EXPECT_TRUE(own.is_far());
}

}  // namespace
}  // namespace portwave::test_step_comparison
