// "tolerance_per_part": parts that rest meet it.

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/source_folder.hpp"

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

}  // namespace
}  // namespace portwave::test_tolerance_per_part
