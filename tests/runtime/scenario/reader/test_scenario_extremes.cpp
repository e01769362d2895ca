// Scenarios at the edge of what makes sense: told as such, not computed into nonsense.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::test_scenario_extremes {
namespace {

using Json = nlohmann::json;

Scenario read(const std::string& subsystems, const std::string& couplings,
              const std::string& time = R"({"step_s": 0.01, "steps": 20})") {
  return parse_scenario(R"({"name": "extreme", "time": )" + time + R"(, "subsystems": )" +
                            subsystems + R"(, "couplings": )" + couplings +
                            R"(, "method": {"kind": "auto"}})",
                        "extreme.json", ".");
}

std::string source(const char* name, double volts) {
  return std::string(R"({"name": ")") + name +
         R"(", "type": "effort_source", "parameters": {"domain": "electrical"},
            "inputs": {"effort": {"kind": "constant", "value": )" +
         std::to_string(volts) + "}}}";
}

TEST(Extremes, SourcesThatContradictOneAnotherNeverMeetTheTolerance) {
  const char* const joined = R"([{"kind": "connection", "ports": ["a.port", "b.port"]}])";
  Scenario contradictory = read("[" + source("a", 1.0) + ", " + source("b", 2.0) + "]", joined);
  EXPECT_THROW(Stepper(contradictory.system, contradictory.options), ConfigError);
  contradictory.options.start = Start::as_given;
  Stepper stepper(contradictory.system, contradictory.options);
  for (int n = 0; n < 20; ++n) EXPECT_FALSE(stepper.step().converged) << n;
  EXPECT_EQ(stepper.certificate().missed.steps, 20);
  EXPECT_LT(std::abs(stepper.flow(0)), 1e6);
  // Control: equal ones agree.
  const Scenario equal = read("[" + source("a", 2.0) + ", " + source("b", 2.0) + "]", joined);
  Stepper agreeing(equal.system, equal.options);
  agreeing.step(20);
  EXPECT_EQ(agreeing.certificate().missed.steps, 0);
}

TEST(Extremes, EnergiesBeyondNumbersEndTheStep) {
  const Scenario scenario =
      read(R"([{"name": "p", "type": "resistor", "parameters": {"resistance_ohm": 1e307}}])",
           R"([{"kind": "resistive", "ports": ["p.terminals"], "resistance": 1}])");
  Stepper stepper(scenario.system, scenario.options);
  try {
    stepper.step(20);
    EXPECT_TRUE(std::isfinite(stepper.energy().dissipated_J));
  } catch (const StepError& error) {
    EXPECT_EQ(error.fault(), StepFault::not_finite) << error.what();
  }
}

TEST(Extremes, RunsOfDenormalLengthEnd) {
  const char* const parts =
      R"([{"name": "a", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"velocity": 1}},
          {"name": "s", "type": "spring_damper",
           "parameters": {"stiffness_N_per_m": 40, "damping_Ns_per_m": 0.5}},
          {"name": "b", "type": "mass", "parameters": {"mass_kg": 3}}])";
  const char* const joined = R"([{"kind": "connection", "ports": ["a.port", "s.left"]},
                                 {"kind": "connection", "ports": ["s.right", "b.port"]}])";
  for (const char* end : {"1e-310", "1e-315", "1e-320"}) {
    const std::string time =
        std::string(R"({"step": {"kind": "adaptive", "tolerance": 0.001}, "end_s": )") + end + "}";
    try {
      const Scenario scenario = read(parts, joined, time);
      Stepper stepper(scenario.system, scenario.options);
      stepper.run_until(scenario.end_s);
    } catch (const ConfigError&) {
    } catch (const StepError&) {
    }
  }
}

/// Masses in a row, the first held by a spring.
Json chain(int size, int pieces) {
  Json M = Json::array(), K = Json::array();
  for (int i = 0; i < size; ++i) {
    M.push_back(Json::array({i, i, 1.0 + 0.1 * i}));
    K.push_back(Json::array({i, i, i + 1 == size ? 30.0 : 60.0}));
    if (i + 1 == size) continue;
    K.push_back(Json::array({i, i + 1, -30.0}));
    K.push_back(Json::array({i + 1, i, -30.0}));
  }
  Json part = {
      {"name", "chain"},
      {"type", "second_order_system"},
      {"parameters",
       {{"coordinates", {{"count", size}, {"name", "q"}}},
        {"ports", {{{"name", "tip"}, {"domain", "translation"}, {"causality", "effort_in"}}}},
        {"M", {{"entries", M}}},
        {"K", {{"entries", K}}},
        {"B", {{"entries", {{size - 1, 0, 1.0}}}}}}},
      {"initial_state", {{"q1", 0.1}}}};
  if (pieces > 0) part["cut"] = {{"parts", pieces}};
  return {{"name", "chain"},
          {"time", {{"step_s", 0.01}, {"steps", 100}}},
          {"method", {{"kind", "auto"}, {"tolerance", 1e-12}}},
          {"subsystems", {part}},
          {"couplings", {{{"kind", "free"}, {"ports", {"chain.tip"}}}}},
          {"outputs", {{"observe", {"chain.q1", "chain.q2"}}}}};
}

TEST(Extremes, SmallSystemsAreCutIntoAsManyPiecesAsTheyHaveCoordinates) {
  for (const int size : {2, 3, 6, 20}) {
    const Scenario whole = parse_scenario(chain(size, 0).dump(), "chain.json", ".");
    Stepper expected(whole.system, whole.options);
    expected.step(100);
    for (int pieces = 2; pieces <= size; pieces += size > 6 ? 3 : 1) {
      const Scenario cut = parse_scenario(chain(size, pieces).dump(), "chain.json", ".");
      Stepper stepper(cut.system, cut.options);
      stepper.step(100);
      for (std::size_t i = 0; i < whole.recording.quantities.size(); ++i) {
        EXPECT_NEAR(observe(stepper, cut.recording.quantities[i]),
                    observe(expected, whole.recording.quantities[i]), 1e-9)
            << size << " coordinates in " << pieces << " pieces";
      }
    }
  }
}

}  // namespace
}  // namespace portwave::test_scenario_extremes
