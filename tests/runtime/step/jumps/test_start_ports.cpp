// Efforts and flows before the first step: those of the initial states and inputs, by closed forms.

#include <cmath>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_start_ports {
namespace {

using Json = nlohmann::json;

Scenario scenario_of(const std::string& parts, const std::string& couplings,
                     const std::string& time = R"({"step_s": 0.01, "steps": 5})",
                     const std::string& method = R"({"kind": "auto"})") {
  return parse_scenario(R"({"name": "start", "time": )" + time + R"(, "subsystems": [)" + parts +
                            R"(], "couplings": [)" + couplings + R"(], "method": )" + method + "}",
                        "file", ".");
}

double at_start(const Stepper& stepper, const std::string& label) {
  return observe(stepper, find_quantity(stepper, label));
}

constexpr const char* kMassOnSpring = R"(
  {"name": "m", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"velocity": 0.5}},
  {"name": "s", "type": "spring_damper", "initial_state": {"elongation": 0.1},
   "parameters": {"stiffness_N_per_m": 30, "damping_Ns_per_m": 4}})";
constexpr const char* kToWall = R"(
  {"kind": "connection", "ports": ["m.port", "s.left"]}, {"kind": "fixed", "ports": ["s.right"]})";

TEST(StartPorts, AreThoseOfTheInitialStates) {
  for (
      const char* method :
      {R"({"kind": "auto"})", R"({"kind": "strang"})",
       R"({"kind": "douglas-rachford", "impedance": {"kind": "uniform", "value": 7}, "iterations": 3, "stages": 2})"}) {
    const Scenario scenario =
        scenario_of(kMassOnSpring, kToWall, R"({"step_s": 0.01, "steps": 5})", method);
    const Stepper stepper(scenario.system, scenario.options);
    // The left end goes with the mass, which shortens the spring: d' = -v.
    EXPECT_NEAR(at_start(stepper, "s.right.effort"), 30 * 0.1 - 4 * 0.5, 1e-13) << method;
    EXPECT_NEAR(at_start(stepper, "m.port.effort"), -(30 * 0.1 - 4 * 0.5), 1e-13) << method;
    EXPECT_NEAR(at_start(stepper, "m.port.flow"), -0.5, 1e-15) << method;
  }
}

TEST(StartPorts, OfRigidJointsAreThoseThatKeepThemTogether) {
  const Scenario scenario =
      scenario_of(R"(
      {"name": "a", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 2},
       "inputs": {"force": {"kind": "constant", "value": 8}}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 3}, "initial_state": {"velocity": 2}})",
                  R"({"kind": "common_flow", "ports": ["a.port", "b.port"]})");
  const Stepper stepper(scenario.system, scenario.options);
  EXPECT_NEAR(at_start(stepper, "a.port.effort"), 6.0, 1e-12);
  EXPECT_NEAR(at_start(stepper, "b.port.effort"), -6.0, 1e-12);
  EXPECT_NEAR(at_start(stepper, "b.port.flow"), -2.0, 1e-14);
}

TEST(StartPorts, OfACapacitorOnASourceFollowTheSource) {
  const Scenario scenario =
      scenario_of(R"(
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.01},
       "initial_state": {"voltage": 0}},
      {"name": "u", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "sine_product", "amplitude": 5,
                             "sines": [{"frequency_Hz": 3}]}}})",
                  R"({"kind": "connection", "ports": ["c.terminals", "u.port"]})",
                  R"({"start_s": 2, "step_s": 0.001, "steps": 5})");
  const Stepper stepper(scenario.system, scenario.options);
  EXPECT_NEAR(at_start(stepper, "c.terminals.flow"), 0.01 * 5 * 6 * std::numbers::pi, 1e-6);
}

TEST(StartPorts, OfNonlinearPartsSolveTheirLaws) {
  const Scenario scenario =
      scenario_of(R"(
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.01},
       "initial_state": {"voltage": 0.6}},
      {"name": "d", "type": "diode", "parameters": {"saturation_current_A": 1e-9}})",
                  R"({"kind": "connection", "ports": ["c.terminals", "d.terminals"]})");
  const Stepper stepper(scenario.system, scenario.options);
  const double current = 1e-9 * std::expm1(0.6 / 0.025852) + 1e-12 * 0.6;
  EXPECT_NEAR(std::abs(at_start(stepper, "d.terminals.flow")), current, 1e-9 * current);
  EXPECT_NEAR(at_start(stepper, "d.terminals.effort"), 0.6, 1e-14);
}

// Where the velocities of a joint differ nothing is determined: then it is what the first step makes of it.
TEST(StartPorts, AtOddsAreTheMeansOfTheFirstStep) {
  const Scenario scenario =
      scenario_of(R"(
      {"name": "a", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": 2}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 3}, "initial_state": {"velocity": 1}})",
                  R"({"kind": "common_flow", "ports": ["a.port", "b.port"]})",
                  R"({"step_s": 0.01, "steps": 5, "start": "as_given"})", R"({"kind": "auto"})");
  Stepper stepper(scenario.system, scenario.options);
  const double before = at_start(stepper, "a.port.effort");
  EXPECT_TRUE(std::isfinite(before));
  stepper.step();
  EXPECT_EQ(before, at_start(stepper, "a.port.effort"));
}

TEST(StartPorts, TheRunDoesNotDependOnThem) {
  const Scenario scenario = scenario_of(kMassOnSpring, kToWall);
  Stepper looked_at(scenario.system, scenario.options),
      left_alone(scenario.system, scenario.options);
  const Snapshot start = looked_at.snapshot();
  const double first = at_start(looked_at, "s.right.effort");
  looked_at.step(5);
  left_alone.step(5);
  EXPECT_EQ(looked_at.state("m")[1], left_alone.state("m")[1]);
  EXPECT_NE(at_start(looked_at, "s.right.effort"), first);
  looked_at.restore(start);
  EXPECT_EQ(at_start(looked_at, "s.right.effort"), first) << "back at the start";
}

TEST(StartPorts, FollowInputsThatAreSet) {
  const Scenario scenario =
      scenario_of(R"({"name": "a", "type": "mass", "parameters": {"mass_kg": 1},
                      "inputs": {"force": {"kind": "settable", "initial": 4}}},
                     {"name": "b", "type": "mass", "parameters": {"mass_kg": 3}})",
                  R"({"kind": "common_flow", "ports": ["a.port", "b.port"]})");
  Stepper stepper(scenario.system, scenario.options);
  EXPECT_NEAR(at_start(stepper, "a.port.effort"), 3.0, 1e-12);
  stepper.set_input(stepper.find_input("a.force"), 8.0);
  EXPECT_NEAR(at_start(stepper, "a.port.effort"), 6.0, 1e-12);
}

TEST(StartPorts, SensorsSeeThem) {
  const Scenario scenario =
      parse_scenario(R"({"name": "loop", "time": {"step_s": 0.01, "steps": 5}, "subsystems": [)" +
                         std::string(kMassOnSpring) + R"(], "couplings": [)" + kToWall +
                         R"(], "method": {"kind": "auto"}, "signals": {"blocks": [
            {"name": "force", "kind": "sensor", "of": "s.right.effort"}]}})",
                     "file", ".");
  const Stepper stepper(scenario.system, scenario.options);
  EXPECT_NEAR(stepper.signals()[0], 1.0, 1e-13);
}

}  // namespace
}  // namespace portwave::test_start_ports
