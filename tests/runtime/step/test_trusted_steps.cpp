// Steps that choose their size, where an estimate by comparing is blind: starts and jumps that all attempts
// get wrong alike, inputs that change between samples, and rows between the ends of steps. Right values are
// closed forms.

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_trusted_steps {
namespace {

Scenario diode(double tolerance, const std::string& stages) {
  return parse_scenario(R"({"name": "diode", "time": {"step": {"kind": "adaptive", "tolerance": )" +
                            std::to_string(tolerance) + R"(}, "end_s": 0.05},
  "subsystems": [
    {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5},
     "initial_state": {"voltage": 5}},
    {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
    {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000, "gives": "current"}}],
  "couplings": [{"kind": "common_effort", "ports": ["c.terminals", "d.terminals", "r.terminals"]}],
  "method": {"kind": "auto")" +
                            stages + "}}",
                        "diode.json", ".");
}

/// Right values: u' = −(u/R + Is(exp(u/nV) − 1))/C, by two integrators at 1e-12.
TEST(TrustedSteps, AStartFarAboveADiodeIsNotThrownBelowZero) {
  for (const std::string stages :
       {"", R"(, "stages": 1)", R"(, "stages": 2)", R"(, "stages": 3)"}) {
    for (const double tolerance : {1e-3, 1e-5}) {
      const Scenario scenario = diode(tolerance, stages);
      Stepper stepper(scenario.system, scenario.options);
      double least = 5.0;
      stepper.on_step(
          [&](const Stepper& s, const StepReport&) { least = std::min(least, s.state("c")[0]); });
      stepper.run_until(0.001);
      EXPECT_NEAR(stepper.state("c")[0], 0.57337105, 10.0 * tolerance * 5.0) << stages;
      stepper.run_until(0.05);
      EXPECT_NEAR(stepper.state("c")[0], 0.0041297186, 10.0 * tolerance * 5.0) << stages;
      EXPECT_GE(least, -10.0 * tolerance * 5.0) << stages;
      EXPECT_LT(stepper.step_sizes()->smallest_s, 1e-15);  // which the diode needs
    }
  }
}

/// 1 kg at 1 m/s against 1 N of friction stops after 1 s. The first steps have a size with which it does so in the last
/// tenth of one of them, behind the last stage.
TEST(TrustedSteps, AStopBehindTheLastStageIsNotOvershot) {
  for (const int whole : {1, 2, 3, 5}) {
    for (const double tolerance : {1e-3, 1e-6, 1e-8}) {
      const Scenario scenario =
          parse_scenario(fmt::format(R"({{"name": "stop", "time": {{"end_s": 1.5,
     "step": {{"kind": "adaptive", "tolerance": {}, "largest_s": {:.17g}}}}},
  "subsystems": [
    {{"name": "m", "type": "mass", "parameters": {{"mass_kg": 1}}, "initial_state": {{"velocity": 1}}}},
    {{"name": "d", "type": "coulomb_damper",
     "parameters": {{"friction_N": 1, "creep_speed_m_per_s": 1e-5}}}}],
  "couplings": [{{"kind": "connection", "ports": ["d.end", "m.port"]}}]}})",
                                     tolerance, 1.0 / (whole + 0.9)),
                         "stop.json", ".");
      Stepper stepper(scenario.system, scenario.options);
      double least = 1.0;
      stepper.on_step(
          [&](const Stepper& s, const StepReport&) { least = std::min(least, s.state("m")[1]); });
      stepper.run_until(1.5);
      // Friction never turns a body back.
      EXPECT_GT(least, -10.0 * tolerance) << whole << ", " << tolerance;
      EXPECT_NEAR(stepper.state("m")[0], 0.5, 10.0 * tolerance) << whole << ", " << tolerance;
    }
  }
}

/// A free mass under a force that is an expression.
Scenario pushed(const std::string& force, double mass_kg, double tolerance, double end_s) {
  const std::string text =
      R"json({"name": "pushed", "time": {"step": {"kind": "adaptive", "tolerance": )json" +
      std::to_string(tolerance * 1e9) + R"json(e-9}, "end_s": )json" + std::to_string(end_s) +
      R"json(}, "subsystems": [{"name": "m", "type": "mass", "parameters": {"mass_kg": )json" +
      std::to_string(mass_kg) +
      R"json(}, "inputs": {"force": {"kind": "expression", "expression": ")json" + force +
      R"json("}}}], "couplings": [{"kind": "free", "ports": ["m.port"]}],
  "method": {"kind": "auto"}})json";
  return parse_scenario(text, "pushed.json", ".");
}

/// A mass that a force pushes for a microsecond, in a hundred seconds: its speed is a momentum over the mass.
TEST(TrustedSteps, APulseOfAMicrosecondIsSeen) {
  for (const double begin_s : {0.0, 1.0, 31.415926, 50.0, 99.0}) {
    const std::string begin = std::to_string(begin_s), end = std::to_string(begin_s + 1e-6);
    const Scenario scenario =
        pushed("if(t < " + begin + ", 0, if(t < " + end + ", 4e6, 0))", 2.0, 1e-6, 100.0);
    Stepper stepper(scenario.system, scenario.options);
    stepper.run_until(100.0);
    const double width_s = std::stod(end) - std::stod(begin);
    EXPECT_NEAR(stepper.state("m")[1], 2e6 * width_s, 1e-8) << begin;
    EXPECT_LT(stepper.step_index(), 400) << begin;
  }
}

/// A square wave of an expression: the way of a mass under such a force is known.
TEST(TrustedSteps, EndWhereAnExpressionChangesOver) {
  const Scenario scenario = pushed("if(mod(t, 0.2) < 0.05, 3, -1)", 1.0, 1e-8, 1.0);
  Stepper stepper(scenario.system, scenario.options);
  stepper.run_until(1.0);
  EXPECT_NEAR(stepper.state("m")[1], 0.0, 1e-12);  // 3 · 0.05 = 0.15
  // Of each period of 0.2 s: ½·3·.05² + .15·.15 − ½·.15².
  EXPECT_NEAR(stepper.state("m")[0], 5 * (0.5 * 3 * 0.0025 + 0.0225 - 0.5 * 0.0225), 1e-9);
}

/// Steps of one size take an expression that changes over within them by its mean.
TEST(TrustedSteps, StepsOfOneSizeTakeTheMeanOfAnExpression) {
  for (const int stages : {1, 2, 3}) {
    Scenario scenario = pushed("if(t < 1.2345, 0, if(t < 1.2349, 1000, 0))", 2.0, 1e-6, 3.0);
    scenario.options.sizes.reset();
    scenario.options.step_s = 0.01;
    scenario.options.method.waves().stages = stages;
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(300);
    EXPECT_NEAR(stepper.state("m")[1], 1000 * 0.0004 / 2, 1e-12) << stages;
  }
}

/// An oscillator that is looked at between the ends of steps.
TEST(TrustedSteps, AreAsAccurateBetweenTheirEnds) {
  for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
    const Scenario scenario =
        parse_scenario(R"({"name": "swing", "time": {"step": {"kind": "adaptive", "tolerance": )" +
                           std::to_string(tolerance * 1e9) + R"(e-9}, "end_s": 3},
  "subsystems": [{"name": "m", "type": "linear_oscillator",
    "parameters": {"mass_kg": 1, "stiffness_N_per_m": 25}, "initial_state": {"v2": 5}}],
  "couplings": [{"kind": "free", "ports": ["m.coupling"]}], "method": {"kind": "auto"}})",
                       "swing.json", ".");
    Stepper stepper(scenario.system, scenario.options);
    double worst = 0.0;
    std::vector<double> x(stepper.state(0).size());
    double before_s = 0.0;
    while (stepper.step_if_before(3.0)) {
      for (int k = 1; k < 5; ++k) {
        const double time_s = before_s + 0.2 * k * (stepper.time_s() - before_s);
        stepper.state_at(0, time_s, x);
        worst = std::max(worst, std::abs(x[0] - std::sin(5.0 * time_s)));
      }
      before_s = stepper.time_s();
    }
    EXPECT_LT(worst, 10.0 * tolerance);
    EXPECT_GT(worst, 0.0);
  }
}

/// Nobody has to choose the number of stages.
TEST(TrustedSteps, TakeAsManyStagesAsSuitTheTolerance) {
  const auto stages_for = [](double tolerance) {
    const Scenario scenario = diode(tolerance, "");
    return Stepper(scenario.system, scenario.options).waves()->stages();
  };
  EXPECT_EQ(stages_for(0.05), 1);
  EXPECT_EQ(stages_for(1e-3), 3);
  EXPECT_EQ(stages_for(1e-5), 3);
}

/// What cannot be stepped is told with the part, the reason and the keys that help.
TEST(TrustedSteps, SayWhatStandsInTheWay) {
  Scenario scenario = diode(1e-6, "");
  scenario.options.sizes->smallest_s = 1e-6;
  Stepper stepper(scenario.system, scenario.options);
  try {
    stepper.run_until(0.05);
    FAIL();
  } catch (const StepError& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.part(), "c");
    for (const char* part :
         {"one-sided part", "/time/step/smallest_s is 1e-06", "/time/step/tolerance"}) {
      EXPECT_NE(text.find(part), std::string::npos) << text;
    }
  }
  EXPECT_EQ(stepper.time_s(), 0.0);
}

}  // namespace
}  // namespace portwave::test_trusted_steps
