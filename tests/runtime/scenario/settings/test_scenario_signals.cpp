// "signals" of scenario files: what is read, and every defect in its place.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/block_kinds.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave::test_scenario_signals {
namespace {

using Json = nlohmann::json;

Json loop_scenario() {
  return Json::parse(R"({
    "name": "loop",
    "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [
      {"name": "m", "type": "linear_oscillator",
       "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4},
       "inputs": {"force": {"kind": "signal", "signal": "drive"}}}],
    "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
    "method": {"kind": "auto"},
    "signals": {
      "every": 2,
      "blocks": [
        {"name": "drive", "kind": "sum", "signals": ["pid", 0.5, "path[1]"]},
        {"name": "path", "kind": "trajectory", "waypoints": [[0, 0], [1, 1]], "shape": "cubic"},
        {"name": "pid", "kind": "pid", "setpoint": "path[0]", "measurement": "m.q2",
         "proportional": 3, "every": 4},
        {"name": "energy", "kind": "sensor", "of": "m.storage"},
        {"name": "tone", "kind": "chirp", "amplitude": 1, "from_Hz": 1, "to_Hz": 2, "duration_s": 1}]},
    "outputs": {"observe": ["m.q2", "drive", "path[1]", "energy"]}
  })");
}

std::vector<std::string> defects_of(const Json& scenario) {
  try {
    (void)parse_scenario(scenario.dump(), "file", ".");
  } catch (const ScenarioError& error) {
    std::vector<std::string> out;
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
    return out;
  }
  return {};
}

bool has(const std::vector<std::string>& defects, const std::string& text) {
  return std::ranges::any_of(
      defects, [&](const std::string& d) { return d.find(text) != std::string::npos; });
}

std::string all(const std::vector<std::string>& defects) {
  std::string text;
  for (const std::string& d : defects) text += d + '\n';
  return text;
}

TEST(ScenarioSignals, BuildAGraphThatDrivesAndIsObserved) {
  const Scenario scenario = parse_scenario(loop_scenario().dump(), "file", ".");
  ASSERT_NE(scenario.options.signals, nullptr);
  const SignalGraph& graph = *scenario.options.signals;
  EXPECT_EQ(graph.actuators().size(), 1U);
  for (const SignalGraph::Node& node : graph.nodes()) {
    if (node.name == "pid") {
      EXPECT_EQ(node.every, 4);
    } else if (node.name == "drive") {
      EXPECT_EQ(node.every, 2);
    }
  }
  Stepper stepper(scenario.system, scenario.options);
  for (int n = 0; n < 30; ++n) stepper.step();
  // At t = 0.3 the cubic has risen by 0.09(3 - 0.6) at a rate of 6·0.3·0.7. The sum is taken at
  // every second step, the sensor of the PID at every step, the PID at every fourth.
  const int rate = graph.find_signal("path[1]");
  ASSERT_GE(rate, 0);
  EXPECT_EQ(observe(stepper, scenario.recording.quantities[2]),
            stepper.signals()[static_cast<std::size_t>(rate)]);
  EXPECT_NEAR(observe(stepper, scenario.recording.quantities[2]), 6 * 0.3 * 0.7, 1e-12);
  EXPECT_EQ(observe(stepper, scenario.recording.quantities[3]), stepper.storage(0));
  EXPECT_EQ(observe(stepper, scenario.recording.quantities[1]), stepper.input(0, 0));
}

// What is too small for the one is not told to be in the range of the other.
TEST(ScenarioSignals, OneRangeIsSaidOfAnIntegerWhereverItIsWrong) {
  const Json schema = Json::parse(scenario_schema().dump());
  EXPECT_NE(schema.dump().find(R"("description":"number of samples")"), std::string::npos);
  for (const int samples : {0, -1, 2'000'000}) {
    Json scenario = loop_scenario();
    scenario["signals"]["blocks"].push_back(
        {{"name", "late"}, {"kind", "delay"}, {"signal", "pid"}, {"samples", samples}});
    EXPECT_EQ(all(defects_of(scenario)),
              "/signals/blocks/5/samples: must be an integer from 1 to 1000000, got " +
                  std::to_string(samples) + "\n");
  }
}

// Every field of a block that has a least value: the reader, not the block, tells what it may be.
TEST(ScenarioSignals, NumbersOutsideTheirRangeAreToldByTheRangeOfTheSchema) {
  int checked = 0;
  for (const BlockKind& kind : block_kinds()) {
    for (const BlockField& field : kind.fields) {
      if (field.kind != BlockField::Kind::number || !std::isfinite(field.range.minimum)) continue;
      Json block = {{"name", "own"}, {"kind", kind.name}};
      for (const BlockField& own : kind.fields) {
        if (own.kind == BlockField::Kind::signal) block[own.name] = "pid";
        if (own.kind == BlockField::Kind::number && own.required) block[own.name] = 1;
        if (own.kind == BlockField::Kind::text && own.required) block[own.name] = "a file";
      }
      block[field.name] = -1;
      Json scenario = loop_scenario();
      scenario["signals"]["blocks"].push_back(block);
      EXPECT_EQ(all(defects_of(scenario)), "/signals/blocks/5/" + field.name + ": must be " +
                                               field.range.describe() + ", got -1\n")
          << kind.name;
      ++checked;
    }
  }
  EXPECT_GE(checked, 8);
}

TEST(ScenarioSignals, ANameThatNoBlockMayHaveIsToldOnce) {
  Json scenario = loop_scenario();
  scenario["signals"]["blocks"][2]["name"] = "a.q2";
  scenario["signals"]["blocks"][0]["signals"][0] = "a.q2";
  const auto defects = defects_of(scenario);
  ASSERT_EQ(defects.size(), 1U) << all(defects);
  EXPECT_TRUE(has(defects, "/signals/blocks/2/name: must not contain dots")) << all(defects);
}

TEST(ScenarioSignals, EveryDefectIsToldInItsPlace) {
  Json scenario = loop_scenario();
  Json& blocks = scenario["signals"]["blocks"];
  scenario["signals"]["every"] = 0;
  scenario["subsystems"][0]["inputs"]["force"]["signal"] = "drve";
  blocks[0]["weights"] = {1, 2};
  blocks[1]["waypoints"] = {{0, 0}, {0, 1}};
  blocks[2]["measurement"] = "m.x";
  blocks[2]["minimum"] = 2;
  blocks[2]["maximum"] = 1;
  blocks[3]["of"] = "m.coupling.incident";
  blocks[4]["kind"] = "chrp";
  blocks.push_back({{"name", "pid"}, {"kind", "gain"}, {"signal", "path"}, {"factor", 1}});
  blocks.push_back({{"name", "late"}, {"kind", "delay"}, {"signal", true}, {"smples", 2}});
  const auto defects = defects_of(scenario);
  for (const char* const text : {
           "/signals/every: must be an integer",
           "/subsystems/0/inputs/force/signal: there is no signal \"drve\"",
           "Did you mean \"drive\"?",
           "/signals/blocks/0/weights: needs one number per signal: 3, got 2",
           "/signals/blocks/1/waypoints/1: first numbers must increase",
           "/signals/blocks/2/measurement: subsystem \"m\" has nothing named \"x\"",
           "/signals/blocks/3/of: waves cannot be measured",
           "Did you mean \"chirp\"?",
           "/signals/blocks/5/name: the name \"pid\" is already taken",
           "/signals/blocks/6/signal: must be the name of a signal",
           "/signals/blocks/6/smples: unknown key",
       }) {
    EXPECT_TRUE(has(defects, text)) << text << "\n--- in ---\n" << all(defects);
  }
}

TEST(ScenarioSignals, ADefectElsewhereSaysNothingOfDrivenInputs) {
  Json scenario = loop_scenario();
  scenario["couplings"][0]["ports"][0] = "m.copling";
  const auto defects = defects_of(scenario);
  EXPECT_EQ(defects.size(), 1U) << all(defects);
  EXPECT_TRUE(has(defects, "/couplings/0/ports/0: subsystem \"m\" has no port")) << all(defects);
}

TEST(ScenarioSignals, ExpressionsTakeNamedSignals) {
  Json scenario = loop_scenario();
  Json& blocks = scenario["signals"]["blocks"];
  blocks.push_back({{"name", "f"},
                    {"kind", "expression"},
                    {"expression", "2*x - y + 10*t"},
                    {"signals", {{"x", "m.q2"}, {"y", "path[0]"}}}});
  blocks.push_back({{"name", "g"},
                    {"kind", "expression"},
                    {"expression", "u1 + u2*u3"},
                    {"signals", {"f", 3, "m.v2"}},
                    {"every", 1}});
  blocks.push_back({{"name", "clock"}, {"kind", "expression"}, {"expression", "t"}, {"every", 1}});
  blocks[5]["every"] = 1;
  blocks[1]["every"] = 1;
  scenario["outputs"]["observe"] = {"f", "g", "clock", "m.q2", "m.v2", "path[0]"};
  const Scenario read = parse_scenario(scenario.dump(), "file", ".");
  Stepper stepper(read.system, read.options);
  for (int n = 0; n < 25; ++n) stepper.step();
  const auto value = [&](std::size_t i) { return observe(stepper, read.recording.quantities[i]); };
  EXPECT_NEAR(value(2), 0.25, 1e-15);
  EXPECT_EQ(value(0), 2.0 * value(3) - value(5) + 10.0 * value(2));
  EXPECT_EQ(value(1), value(0) + 3.0 * value(4));
  EXPECT_NE(value(4), 0.0);
}

TEST(ScenarioSignals, DefectsOfExpressionsAreToldInTheirPlaces) {
  Json scenario = loop_scenario();
  Json& blocks = scenario["signals"]["blocks"];
  const auto add = [&](const char* name, const Json& text, const Json& signals) {
    blocks.push_back({{"name", name}, {"kind", "expression"}, {"expression", text}});
    if (!signals.is_null()) blocks.back()["signals"] = signals;
  };
  add("a", "2*y", Json{{"x", "m.q2"}});
  add("b", "2*", nullptr);
  add("c", 3, nullptr);
  add("d", "t", 5);
  add("e", "t", Json{{"sin", "m.q2"}});
  add("f", "u1", Json{"m.qq"});
  add("g", "u1 + u2", Json{"g", 1});
  scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "expression"}, {"expression", "x"}};
  const auto defects = defects_of(scenario);
  for (const char* const text : {
           "/subsystems/0/inputs/force/expression: in the expression \"x\", column 1: there is no",
           "/signals/blocks/5/expression: in the expression \"2*y\", column 3: there is no \"y\"",
           "/signals/blocks/6/expression: in the expression \"2*\", column 3: a number",
           "/signals/blocks/7/expression: must be a string, got 3",
           "/signals/blocks/8/signals: must be an object or an array of signals, got 5",
           "/signals/blocks/9/signals: \"sin\" has a meaning of its own in expressions",
           "/signals/blocks/10/signals/0: subsystem \"m\" has nothing named \"qq\"",
           "algebraic loop",
       }) {
    EXPECT_TRUE(has(defects, text)) << text << "\n--- in ---\n" << all(defects);
  }
}

TEST(ScenarioSignals, AlgebraicLoopsAreNamed) {
  Json scenario = loop_scenario();
  scenario["signals"]["blocks"][0]["signals"].push_back("back");
  scenario["signals"]["blocks"].push_back(
      {{"name", "back"}, {"kind", "gain"}, {"signal", "drive"}, {"factor", 2}});
  const auto defects = defects_of(scenario);
  ASSERT_EQ(defects.size(), 1U) << all(defects);
  EXPECT_TRUE(has(defects, "/signals/blocks/0: algebraic loop: drive -> back -> drive"))
      << all(defects);
  scenario["signals"]["blocks"].back()["kind"] = "delay";
  scenario["signals"]["blocks"].back().erase("factor");
  EXPECT_TRUE(defects_of(scenario).empty());
}

TEST(ScenarioSignals, AnInputIsDrivenOnceAndSignalsMayBeAbsent) {
  Json scenario = loop_scenario();
  scenario.erase("signals");
  scenario["outputs"]["observe"] = {"m.q2"};
  EXPECT_TRUE(has(defects_of(scenario), "there is no signal \"drive\""));
  // A quantity drives an input without any block, and so does a number.
  scenario["subsystems"][0]["inputs"]["force"]["signal"] = "m.coupling.effort";
  EXPECT_TRUE(defects_of(scenario).empty()) << all(defects_of(scenario));
  scenario["subsystems"][0]["inputs"]["force"]["signal"] = 2.5;
  EXPECT_TRUE(defects_of(scenario).empty());
  scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "settable"}, {"initial", 1.5}};
  const Scenario settable = parse_scenario(scenario.dump(), "file", ".");
  const Stepper stepper(settable.system, settable.options);
  EXPECT_EQ(stepper.input(0, 0), 1.5);
}

TEST(ScenarioSignals, DamagedSectionsAreRefusedAndNeverCrash) {
  const Json whole = loop_scenario();
  const std::vector<Json> values = {nullptr,
                                    true,
                                    -1,
                                    1e300,
                                    "",
                                    "x.y.z",
                                    Json::array(),
                                    Json::object(),
                                    Json::array({Json::array()}),
                                    "path[7]",
                                    "path[-1]",
                                    "["};
  int refused = 0;
  const auto damage = [&](const Json::json_pointer& place) {
    for (const Json& value : values) {
      Json scenario = whole;
      scenario[place] = value;
      refused += defects_of(scenario).empty() ? 0 : 1;
    }
  };
  damage(Json::json_pointer("/signals"));
  damage(Json::json_pointer("/signals/blocks"));
  for (std::size_t i = 0; i < whole["signals"]["blocks"].size(); ++i) {
    const std::string block = "/signals/blocks/" + std::to_string(i);
    damage(Json::json_pointer(block));
    for (const auto& [key, value] : whole["signals"]["blocks"][i].items()) {
      damage(Json::json_pointer(block + "/" + key));
    }
  }
  damage(Json::json_pointer("/subsystems/0/inputs/force"));
  damage(Json::json_pointer("/subsystems/0/inputs/force/signal"));
  EXPECT_GT(refused, 250);
}

BlockKind doubles(double factor) {
  return {"doubling",
          "a kind of one's own",
          {{.name = "of", .kind = BlockField::Kind::signal, .summary = "what is doubled"},
           {.name = "offset", .unit = "m", .summary = "added", .required = false}},
          [factor](const BlockValues& values, int) {
            return block::gain(factor, values.number("offset"));
          }};
}

TEST(ScenarioSignals, AKindOfBlockOfOnesOwnIsReadLikeOthersAndCanBePutInPlaceOfTheOneBefore) {
  Json scenario = loop_scenario();
  scenario["signals"]["blocks"].push_back(
      {{"name", "twice"}, {"kind", "doubling"}, {"of", 3.0}, {"offset", 0.5}});
  EXPECT_FALSE(defects_of(scenario).empty());  // nobody knows it yet
  const auto twice = [&] {
    const Scenario read = parse_scenario(scenario.dump(), "file", ".");
    const Stepper stepper(read.system, read.options);
    return stepper.signals()[at(read.options.signals->find_signal("twice"))];
  };
  add_block_kind(doubles(2.0));
  EXPECT_EQ(twice(), 6.5);
  add_block_kind(doubles(3.0));
  EXPECT_EQ(twice(), 9.5);
  scenario["signals"]["blocks"].back()["offzet"] = 1.0;
  EXPECT_TRUE(has(defects_of(scenario), "offzet")) << all(defects_of(scenario));
}

TEST(ScenarioSignals, KindsOfOnesOwnThatCannotBeAreRefusedWithEveryDefect) {
  const std::size_t before = block_kinds().size();
  for (const char* const taken : {"pid", "sensor", "constant", ""}) {
    BlockKind kind = doubles(2.0);
    kind.name = taken;
    EXPECT_THROW(add_block_kind(kind), ConfigError) << taken;
  }
  BlockKind kind = doubles(2.0);
  kind.name = "new_one";
  kind.make = {};
  kind.fields.push_back({.name = "of"});
  kind.fields.push_back({.name = "every"});
  try {
    add_block_kind(kind);
    FAIL();
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 3U);
  }
  EXPECT_EQ(block_kinds().size(), before);
}

}  // namespace
}  // namespace portwave::test_scenario_signals
