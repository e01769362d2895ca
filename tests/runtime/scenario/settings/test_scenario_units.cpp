// The units of signals, and inputs that are the rate of a displacement, in scenario files.

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::test_scenario_units {
namespace {

using Json = nlohmann::json;

/// A shaft whose torque a signal drives.
Json shaft(const std::string& signal, const Json& blocks) {
  Json scenario = Json::parse(R"({
    "name": "shaft",
    "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [
      {"name": "j", "type": "inertia", "parameters": {"inertia_kgm2": 2}},
      {"name": "k", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 3}},
      {"name": "q", "type": "flow_source", "parameters": {"domain": "rotation"}}],
    "couplings": [{"kind": "connection", "ports": ["k.right", "j.shaft"]},
                  {"kind": "connection", "ports": ["k.left", "q.port"]}],
    "method": {"kind": "auto"}
  })");
  scenario["subsystems"][2]["inputs"]["flow"] = {{"kind", "signal"}, {"signal", signal}};
  scenario["signals"]["blocks"] = blocks;
  return scenario;
}

std::string defects_of(const Json& scenario) {
  try {
    (void)parse_scenario(scenario.dump(), "file", ".");
  } catch (const ScenarioError& error) {
    std::string out;
    for (const Issue& issue : error.issues()) out += issue.where + ": " + issue.what + "\n";
    return out;
  }
  return {};
}

Json block(const std::string& name, const std::string& kind, Json more) {
  more["name"] = name;
  more["kind"] = kind;
  return more;
}

TEST(ScenarioUnits, AnInputOfAnotherDimensionIsRefused) {
  const std::string told = defects_of(shaft("j.angle", Json::array()));
  EXPECT_EQ(told.find("/subsystems/2/inputs/flow/signal: \"j.angle\" is in rad, and the input "
                      "q.flow in rad/s. A block of kind gain"),
            0U)
      << told;
  EXPECT_EQ(defects_of(shaft("j.speed", Json::array())), "");
  // What a gain makes of it is not known.
  const Json gain = block("g", "gain", {{"signal", "j.angle"}, {"factor", -2}});
  EXPECT_EQ(defects_of(shaft("g", Json::array({gain}))), "");
}

TEST(ScenarioUnits, AnotherScaleIsToldWithItsFactor) {
  Json target = block("n", "step", {{"time_s", 1}, {"after", 3000}, {"unit", "rpm"}});
  const std::string told = defects_of(shaft("n", Json::array({target})));
  EXPECT_NE(
      told.find(
          "\"n\" is in rpm, and the input q.flow in rad/s: put a gain of 0.104719755 between"),
      std::string::npos)
      << told;
  target["unit"] = "rad/s";
  EXPECT_EQ(defects_of(shaft("n", Json::array({target}))), "");
  target.erase("unit");
  EXPECT_EQ(defects_of(shaft("n", Json::array({target}))), "")
      << "who gives no units is not asked for any";
  target["unit"] = "furlong";
  EXPECT_NE(defects_of(shaft("n", Json::array({target})))
                .find("/signals/blocks/0/unit: the unit \"furlong\""),
            std::string::npos);
}

TEST(ScenarioUnits, GoThroughBlocksThatKeepThem) {
  const Json slow =
      block("slow", "rate_limit", {{"signal", "late"}, {"rising_per_s", 1}, {"falling_per_s", 1}});
  const Json late = block("late", "delay", {{"signal", "j.angle"}});
  EXPECT_NE(defects_of(shaft("slow", Json::array({slow, late}))).find("\"slow\" is in rad, and"),
            std::string::npos);
  Json both = block("both", "sum", {{"signals", {"j.speed", "j.angle", 3}}});
  EXPECT_NE(
      defects_of(shaft("both", Json::array({both})))
          .find("/signals/blocks/0/signals/1: \"j.angle\" is in rad, and \"j.speed\" in rad/s"),
      std::string::npos);
  both["weights"] = {1, 57.3, 1};  // weights may convert
  EXPECT_EQ(defects_of(shaft("both", Json::array({both}))), "");
  const Json turns = block("n", "step", {{"time_s", 1}, {"after", 90}, {"unit", "deg"}});
  const Json pid = block("pid", "pid", {{"setpoint", "n"}, {"measurement", "j.angle"}});
  EXPECT_NE(defects_of(shaft("pid", Json::array({turns, pid})))
                .find("\"j.angle\" is in rad, and \"n\" in deg"),
            std::string::npos)
      << defects_of(shaft("pid", Json::array({turns, pid})));
}

TEST(ScenarioUnits, ALoopOfBlocksThatKeepThemEnds) {
  const Json a = block("a", "delay", {{"signal", "b"}}), b = block("b", "delay", {{"signal", "a"}});
  EXPECT_EQ(defects_of(shaft("a", Json::array({a, b}))), "");
}

Json followed(Json flow) {
  Json scenario = shaft("j.speed", Json::array());
  scenario["subsystems"][2]["inputs"]["flow"] = std::move(flow);
  return scenario;
}

TEST(ScenarioRates, FollowTheDisplacementOfAnExpressionOrATable) {
  for (const Json& of :
       {Json("0.5*sin(3*t)"), Json({{"kind", "expression"}, {"expression", "0.5*sin(3*t)"}})}) {
    const Json file = followed({{"kind", "rate_of"}, {"of", of}});
    ASSERT_EQ(defects_of(file), "");
    const Scenario scenario = parse_scenario(file.dump(), "file", ".");
    Stepper stepper(scenario.system, scenario.options);
    for (int n = 1; n <= 20; ++n) {
      stepper.step();
      EXPECT_NEAR(stepper.state("j")[0] - stepper.state("k")[0], 0.5 * std::sin(0.03 * n), 1e-12);
    }
  }
  const Json table = {{"kind", "table"}, {"knots", {{0, 0}, {0.1, 0}, {0.1, 0.05}}}};
  EXPECT_EQ(defects_of(followed({{"kind", "rate_of"}, {"of", table}})), "");
}

TEST(ScenarioRates, WhatHasNoRateIsRefusedWithTheRemedy) {
  const auto told = [](const Json& of) {
    return defects_of(followed({{"kind", "rate_of"}, {"of", of}}));
  };
  EXPECT_NE(told({{"kind", "settable"}}).find("give a table or an expression"), std::string::npos);
  EXPECT_NE(told({{"kind", "signal"}, {"signal", "j.angle"}}).find("has no rate"),
            std::string::npos);
  EXPECT_NE(told("sin(x)").find("/subsystems/2/inputs/flow/of: in the expression"),
            std::string::npos)
      << told("sin(x)");
  EXPECT_NE(told({{"kind", "constnt"}}).find("Did you mean \"constant\"?"), std::string::npos);
  EXPECT_NE(told(3).find("/subsystems/2/inputs/flow/of"), std::string::npos);
  EXPECT_NE(defects_of(followed({{"kind", "rate_of"}})).find("is required"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_scenario_units
