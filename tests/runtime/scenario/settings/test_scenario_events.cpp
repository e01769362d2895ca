// "events" of scenario files, and what goes with them: every defect in its place.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::test_scenario_events {
namespace {

using Json = nlohmann::json;

Json watched() {
  return Json::parse(R"({
    "name": "watched",
    "time": {"step": {"kind": "adaptive", "tolerance": 1e-6, "event_tolerance_s": 1e-4},
             "end_s": 2},
    "subsystems": [
      {"name": "m", "type": "linear_oscillator",
       "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4},
       "inputs": {"force": {"kind": "signal", "signal": "drive"}}}],
    "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
    "method": {"kind": "auto"},
    "signals": {"every_s": 0.1, "blocks": [
      {"name": "drive", "kind": "step", "time_s": 0.5, "after": 1},
      {"name": "path", "kind": "trajectory", "waypoints": [[0, 0], [1, 1]]}]},
    "events": [
      {"name": "far", "of": "m.q2", "level": 0.25, "direction": "rising", "end_run": true},
      {"of": "drive", "level": 0.5},
      {"of": "path[1]", "direction": "falling"},
      {"of": "m.coupling.flow"}]
  })");
}

std::vector<std::string> defects_in(const Json& scenario) {
  try {
    (void)parse_scenario(scenario.dump(), "file", ".");
  } catch (const ScenarioError& error) {
    std::vector<std::string> out;
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
    return out;
  }
  return {};
}

TEST(ScenarioEvents, AreRead) {
  const Scenario scenario = parse_scenario(watched().dump(), "file", ".");
  const std::vector<Watch>& watches = scenario.options.watches;
  ASSERT_EQ(watches.size(), 4U);
  EXPECT_EQ(watches[0].name, "far");
  EXPECT_EQ(watches[0].of.kind, Sensor::Kind::state);
  EXPECT_EQ(watches[0].level, 0.25);
  EXPECT_EQ(watches[0].direction, Watch::Direction::rising);
  EXPECT_TRUE(watches[0].ends_run);
  EXPECT_EQ(watches[1].name, "drive");
  EXPECT_EQ(watches[1].signal, scenario.options.signals->find_signal("drive"));
  EXPECT_EQ(watches[2].signal, scenario.options.signals->find_signal("path[1]"));
  EXPECT_EQ(watches[2].direction, Watch::Direction::falling);
  EXPECT_EQ(watches[3].of.kind, Sensor::Kind::flow);
  EXPECT_EQ(scenario.options.sizes->event_tolerance_s, 1e-4);
  EXPECT_EQ(scenario.options.signals_every_s, 0.1);
}

TEST(ScenarioEvents, DefectsAreToldTogether) {
  Json scenario = watched();
  scenario["time"]["step"]["event_tolerance_s"] = 3;
  scenario["events"] = Json::parse(R"([
    {"of": "m.q3"}, {"of": "path[0]"}, {"of": "m.coupling.incident"}, {"level": 1},
    {"of": "m.q2", "level": "high", "direction": "up", "end_run": 1, "at": 3},
    {"of": "m.v2"}, {"name": "m.v2", "of": "m.q2"}, {"name": "", "of": "m.q2"}, 5])");
  EXPECT_EQ(
      defects_in(scenario),
      (std::vector<std::string>{
          "/events/0/of: subsystem \"m\" has nothing named \"q3\".\n  It has: m.q2, m.v2, "
          "m.coupling.effort, m.coupling.flow, m.coupling.incident, m.coupling.outgoing, "
          "m.storage. Did you mean \"m.q2\"?",
          "/events/2/of: waves cannot be measured: take the effort or the flow of the port",
          "/events/3/of: is required",
          "/events/4/at: unknown key \"at\".\nkeys: \"name\", \"of\", \"level\", \"direction\", "
          "\"end_run\".",
          "/events/4/direction: must be one of \"both\", \"rising\", \"falling\"; got the string "
          "\"up\".",
          "/events/4/end_run: must be true or false, got 1",
          "/events/4/level: must be a number, got the string \"high\"",
          "/events/6: \"m.v2\" is already the name of /events/5: give each a \"name\"",
          "/events/7/name: must not be empty", "/events/8: must be an object, got 5",
          "/time/step/event_tolerance_s: must be at most 0.25 s, the largest step, got 3"}));
  scenario["events"] = Json::object();
  scenario["time"]["step"]["event_tolerance_s"] = 0.1;
  EXPECT_EQ(defects_in(scenario),
            (std::vector<std::string>{"/events: must be an array of events, got an object"}));
  scenario["events"] = Json::parse(R"([{"of": "path"}])");
  EXPECT_EQ(
      defects_in(scenario),
      (std::vector<std::string>{"/events/0/of: \"path\" has several outputs: write \"path[0]\""}));
}

TEST(ScenarioEvents, SamplesByTimeComeEveryWholeNumberOfSteps) {
  Json scenario = watched();
  scenario["time"] = {{"step_s", 0.05}, {"end_s", 2}};
  Scenario built = parse_scenario(scenario.dump(), "file", ".");
  EXPECT_NO_THROW(Stepper(built.system, built.options));
  built.options.step_s = 0.03;
  try {
    const Stepper stepper(built.system, built.options);
    FAIL() << "a period of 3.33 steps";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues()[0].where, "/signals/every_s");
  }
  scenario = watched();
  scenario["signals"].erase("every_s");
  built = parse_scenario(scenario.dump(), "file", ".");
  EXPECT_THROW(Stepper(built.system, built.options), ConfigError);
}

}  // namespace
}  // namespace portwave::test_scenario_events
