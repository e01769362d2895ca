// Defects of assemblies, arrays and indexed couplings: each in its place, once, and soon.

#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "runtime/scenario/templates/assembled_scenarios.hpp"

namespace portwave::test_assembly_defects {
namespace {

using testing::all;
using testing::defects_of;
using testing::Json;
using testing::kCell;
using testing::line_of_cells;
using testing::one_begins;
using testing::only_defect;
using testing::read;
using testing::scenario_with;

TEST(AssemblyDefects, OneInsideIsToldOnceInItsPlaceWithAUse) {
  Json scenario = line_of_cells();
  scenario["subsystems"][0]["count"] = 1000;
  scenario["couplings"][1]["for"]["i"] = {0, 998};
  scenario["couplings"][2]["ports"] = {"cell_999.right"};
  scenario["assemblies"]["cell"]["subsystems"][0]["parameters"]["damping"] = 3;
  scenario["assemblies"]["cell"]["subsystems"][1]["parameters"]["stiffness_N_per_m"] = -1;
  scenario["assemblies"]["cell"]["couplings"][0]["ports"][1] = "sprng.left";
  const auto defects = defects_of(scenario);
  EXPECT_TRUE(one_begins(defects,
                         "/assemblies/cell/subsystems/0/parameters/damping: mass has no "
                         "parameter \"damping\" (in \"cell_0/mass\")"));
  EXPECT_TRUE(one_begins(defects,
                         "/assemblies/cell/subsystems/1/parameters/stiffness_N_per_m: "
                         "must be > 0 N/m, got -1 (in \"cell_0/spring\")"));
  EXPECT_TRUE(one_begins(defects,
                         "/assemblies/cell/couplings/0/ports/1: there is no subsystem "
                         "\"cell_0/sprng\""));
  EXPECT_EQ(defects.size(), 3U) << all(defects);
}

TEST(AssemblyDefects, ThoseOfOneUseAloneNameIt) {
  Json scenario = line_of_cells();
  scenario["subsystems"][0]["parameters"]["mass_kg"] = {{"expression", "1/(i - 3)"}};
  EXPECT_TRUE(
      one_begins(defects_of(scenario),
                 "/subsystems/0/parameters/mass_kg: the expression \"1/(i - 3)\" is inf (in "
                 "\"cell_3\")"));
  scenario["subsystems"][0]["parameters"]["mass_kg"] = {{"expression", "i - 3"}};
  EXPECT_TRUE(one_begins(defects_of(scenario),
                         "/assemblies/cell/subsystems/0/parameters/mass_kg: must be > 0 kg, got -3 "
                         "(in \"cell_0/mass\")"));
}

TEST(AssemblyDefects, EveryOneIsToldInItsPlace) {
  const Json scenario = scenario_with(R"json({
    "time": {"step_s": -1, "steps": 10},
    "assemblies": {
      "leg": {
        "parameters": {"m": null, "k": 5, "word": "a"},
        "subsystems": [
          {"name": "thigh", "type": "mass", "parameters": {"mass_kg": {"parameter": "mm"}, "ports": 2}},
          {"name": "shin", "type": "spring", "parameters": {"stiffness_N_per_m": {"expression": "k/0"}}},
          {"name": "foot", "type": "spring", "parameters": {"stiffness_N_per_m": {"expression": "k*"}}},
          {"name": "toe_{", "type": "spring", "parameters": {"stiffness_N_per_m": 1}},
          {"name": "hair_{k/2}", "type": "spring", "parameters": {"stiffness_N_per_m": 1}},
          {"name": "nail", "type": "spring", "parameters": {"stiffness_N_per_m": {"expression": "2*word"}}}],
        "couplings": [{"kind": "conection", "ports": ["thigh.port_2", "shin.left"]}],
        "ports": {"hip": "thig.port_1", "bad name": "x.y", "n": 4, "whole": "thigh"}},
      "loop": {"subsystems": [{"name": "a", "assembly": "other"}]},
      "other": {"subsystems": [{"name": "a", "assembly": "loop"}]},
      "shape": {"subsystems": {}, "portz": 3, "parameters": {"a b": 1}},
      "none": {},
      "text": "leg"},
    "subsystems": [
      {"name": "leg", "assembly": "leg", "count": 100, "parameters": {"m": 1}},
      {"name": "one", "assembly": "leg", "parameters": {"k": 1, "q": 3}, "initial_state": 3},
      {"name": "two", "assembly": "legg"},
      {"name": "three", "assembly": "loop"},
      {"name": "zero", "type": "mass", "count": 0},
      {"name": "half", "type": "mass", "count": 2.5},
      {"name": "minus", "type": "mass", "count": -3},
      {"name": "huge", "type": "mass", "count": 1e12},
      {"name": "word", "type": "mass", "count": "three"},
      {"name": "leg_0", "type": "mass", "parameters": {"mass_kg": 1}},
      {"type": "mass", "count": 2},
      {"name": "", "type": "mass", "count": 2},
      {"name": "four", "assembly": 4},
      {"name": "a b", "assembly": "leg", "parameters": {"m": 1}},
      {"name": "five", "assembly": "leg", "parameters": 7},
      {"name": "six", "type": "mass", "parameters": {"mass_kg": {"parameter": "m"}}},
      {"name": "seven", "assembly": "leg", "parameters": {"m": null}}],
    "couplings": [
      {"kind": "free", "ports": ["leg_0.hip"], "for": {"i": [5, 0]}},
      {"kind": "free", "ports": ["leg_0.hip"], "for": {"i": [0, 1.5]}},
      {"kind": "free", "ports": ["leg_0.hip"], "for": 3},
      {"kind": "free", "ports": ["leg_0.hip"], "for": {}},
      {"kind": "free", "ports": ["leg_0.hip"], "for": {"a b": [0, 1]}},
      {"kind": "free", "ports": ["leg_{i/2}.hip"], "for": {"i": [0, 10]}}],
    "method": {"kind": "auto", "tolernce": 3},
    "outputs": {"evry": 1}})json");
  const auto defects = defects_of(scenario);
  for (const char* const begin : {
           "/time/step_s: must be a number > 0, got -1",
           "/assemblies/leg/subsystems/0/parameters/mass_kg: there is no parameter \"mm\" (in "
           "\"leg_0/thigh\").\nparameters: \"m\", \"k\", \"word\". Did you mean \"m\"?",
           "/assemblies/leg/subsystems/1/parameters/stiffness_N_per_m: the expression \"k/0\" is "
           "inf (in \"leg_0/shin\")",
           "/assemblies/leg/subsystems/2/parameters/stiffness_N_per_m: in the expression \"k*\", "
           "column 3:",
           "/assemblies/leg/subsystems/3/name: \"{\" without \"}\" in \"toe_{\"",
           "/assemblies/leg/subsystems/4/name: \"{k/2}\" in a text must be a whole number, got 2.5",
           "/assemblies/leg/subsystems/5/parameters/stiffness_N_per_m: in the expression "
           "\"2*word\": \"word\" is no number but the string \"a\"",
           "/assemblies/leg/couplings/0/kind: must be one of",
           "/assemblies/leg/ports/hip: there is no part \"thig\" in the assembly",
           "/assemblies/leg/ports/bad name: the name of a port must not",
           "/assemblies/leg/ports/n: must be a port \"part.port\" of a part inside, got 4",
           "/assemblies/leg/ports/whole: must be a port \"part.port\" of a part inside, got "
           "\"thigh\"",
           "/assemblies/other/subsystems/0/assembly: the assembly \"loop\" contains itself: loop "
           "-> other -> loop",
           "/assemblies/shape/subsystems: must be an array of at least one subsystem",
           "/assemblies/shape/portz: unknown key \"portz\"",
           "/assemblies/shape/parameters/a b: the name of a parameter must have letters",
           "/assemblies/none/subsystems: is required",
           "/assemblies/text: must be an object",
           "/subsystems/1/parameters/m: is required: the assembly \"leg\" has no default for it",
           "/subsystems/1/parameters/q: the assembly \"leg\" has no parameter \"q\"",
           "/subsystems/1/initial_state: unknown key \"initial_state\" of an assembly in use",
           "/subsystems/2/assembly: there is no assembly \"legg\".\nassemblies: ",
           "/subsystems/4/count: must be an integer from 1 to 1000000, got 0",
           "/subsystems/5/count: must be an integer from 1 to 1000000, got 2.5",
           "/subsystems/6/count: must be an integer from 1 to 1000000, got -3",
           "/subsystems/7/count: must be an integer from 1 to 1000000, got 1",
           "/subsystems/8/count: must be an integer from 0 to 1000000, got the string \"three\"",
           "/subsystems/9/name: the name \"leg_0\" is already taken by an assembly in use",
           "/subsystems/10/name: is required",
           "/subsystems/11/name: must not be empty",
           "/subsystems/12/assembly: must be the name of an assembly, got 4",
           "/subsystems/13/name: must not be empty nor contain dots, brackets, blanks",
           "/subsystems/14/parameters: must be an object of parameters, got 7",
           "/subsystems/15/parameters/mass_kg: there is no parameter \"m\": parameters are those "
           "of assemblies, and indices",
           "/subsystems/16/parameters/m: is required",
           "/couplings/0/for/i: is empty: the first index 5 is after the last, 0",
           "/couplings/1/for/i: must be [first, last], two integers",
           "/couplings/2/for: must be an object such as {\"i\": [0, 9]}",
           "/couplings/3/for: must be an object such as {\"i\": [0, 9]}",
           "/couplings/4/for/a b: the name of an index must have letters",
           "/couplings/5/ports/0: \"{i/2}\" in a text must be a whole number, got 0.5",
           "/method/tolernce: unknown key",
           "/outputs/evry: unknown key",
       }) {
    EXPECT_TRUE(one_begins(defects, begin));
  }
}

TEST(AssemblyDefects, NamesAreCheckedWhereNothingElseIsWrong) {
  const auto with = [](const std::function<void(Json&)>& change) {
    Json scenario = line_of_cells();
    change(scenario);
    return only_defect(scenario);
  };
  EXPECT_EQ(with([](Json& s) { s["couplings"][0]["ports"][0] = "cell_0.lft"; }).substr(0, 120),
            std::string("/couplings/0/ports/0: \"cell_0\" is an assembly in use and has no port "
                        "\"lft\".\nports: \"left\", \"right\". Did you mean \"left\"?")
                .substr(0, 120));
  EXPECT_TRUE(
      with([](Json& s) { s["outputs"]["observe"] = {"cell_0.velocity"}; })
          .starts_with("/outputs/observe/0: \"cell_0\" is an assembly in use and has no port "
                       "\"velocity\""));
  EXPECT_TRUE(with([](Json& s) {
                s["outputs"]["observe"] = {"cell_0/mas.velocity"};
              }).starts_with("/outputs/observe/0: there is no subsystem \"cell_0/mas\""));
  EXPECT_TRUE(
      with([](Json& s) { s["subsystems"].push_back(s["subsystems"][0]); })
          .starts_with("/subsystems/1/name: the name \"cell_0\" is already taken by an assembly "
                       "in use (in \"cell_0\")"));
  EXPECT_TRUE(with([](Json& s) {
                s["subsystems"].push_back(
                    {{"name", "cell_1/mass"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}});
              })
                  .starts_with("/subsystems/1/name: the name \"cell_1/mass\" is already taken by "
                               "/assemblies/cell/subsystems/0"));
  // A port of a part is known only when that is read.
  Json wrong = line_of_cells();
  wrong["assemblies"]["cell"]["ports"]["left"] = "mass.port_3";
  const auto defects = defects_of(wrong);
  EXPECT_TRUE(one_begins(defects, "/couplings/0/ports/0: subsystem \"cell_0/mass\" has no port "));
  EXPECT_TRUE(one_begins(defects, "/couplings/1/ports/1: subsystem \"cell_1/mass\" has no port "));
}

TEST(AssemblyDefects, DefectsAsJsonAreToldBesideThem) {
  std::string text = line_of_cells().dump();
  const std::string from = R"json("damping_Ns_per_m":0.3)json";
  text.replace(text.find(from), from.size(), R"json("damping_Ns_per_m":NaN,"x":1)json");
  try {
    (void)parse_scenario(text, "file", ".");
    FAIL();
  } catch (const ScenarioError& error) {
    ASSERT_EQ(error.issues().size(), 2U) << error.report();
    EXPECT_EQ(error.issues()[0].where, "/assemblies/cell/subsystems/0/parameters/damping_Ns_per_m");
    EXPECT_EQ(error.issues()[1].where, "/assemblies/cell/subsystems/0/parameters/x");
  }
}

// Hostile files end in an answer, and soon: what they make is counted, not timed.

constexpr const char* kTooMuch = "with this the scenario has more than 20000000 values";

TEST(HostileAssemblies, UsesThatMultiplyAreCounted) {
  // Ten of the next in each of thirty: 10^30 parts.
  Json scenario = scenario_with(
      R"json({"assemblies": {}, "subsystems": [{"name": "a", "assembly": "a0"}]})json");
  for (int k = 0; k < 30; ++k) {
    scenario["assemblies"]["a" + std::to_string(k)]["subsystems"] = {
        {{"name", "x"}, {"assembly", "a" + std::to_string(k + 1)}, {"count", 10}}};
  }
  scenario["assemblies"]["a30"]["subsystems"] =
      Json::array({{{"name", "m"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}}});
  const auto defects = defects_of(scenario);
  EXPECT_NE(all(defects).find(kTooMuch), std::string::npos) << all(defects).substr(0, 500);
}

TEST(HostileAssemblies, ValuesThatMultiplyAreCounted) {
  // Each passes on twice what it was given: 2^30 values; and the same as a text.
  for (const bool is_text : {false, true}) {
    Json scenario = scenario_with(
        R"json({"assemblies": {}, "subsystems": [{"name": "a", "assembly": "a0"}]})json");
    const Json twice =
        is_text ? Json("{p}{p}") : Json::array({{{"parameter", "p"}}, {{"parameter", "p"}}});
    for (int k = 0; k < 30; ++k) {
      Json& own = scenario["assemblies"]["a" + std::to_string(k)];
      own["parameters"]["p"] = "ab";
      own["subsystems"] = {{{"name", "x"},
                            {"assembly", "a" + std::to_string(k + 1)},
                            {"parameters", {{"p", twice}}}}};
    }
    scenario["assemblies"]["a30"]["parameters"]["p"] = 1;
    scenario["assemblies"]["a30"]["subsystems"] =
        Json::array({{{"name", "m"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}}});
    const std::string said = all(defects_of(scenario));
    EXPECT_NE(said.find(is_text ? "this text has more than 10000 characters" : kTooMuch),
              std::string::npos)
        << said.substr(0, 500);
  }
}

TEST(HostileAssemblies, EmptyLoopsAreCounted) {
  Json scenario = line_of_cells();
  scenario["couplings"][1]["for"] = Json::parse(
      R"json({"i": [0, 9999999], "j": [0, 9999999], "k": [1, {"expression": "0"}]})json");
  EXPECT_NE(all(defects_of(scenario)).find(kTooMuch), std::string::npos);
}

TEST(HostileAssemblies, DepthIsBounded) {
  Json scenario = scenario_with(
      R"json({"assemblies": {}, "subsystems": [{"name": "a", "assembly": "a0"}]})json");
  for (int k = 0; k < 40; ++k) {
    scenario["assemblies"]["a" + std::to_string(k)]["subsystems"] = {
        {{"name", "x"}, {"assembly", "a" + std::to_string(k + 1)}}};
  }
  scenario["assemblies"]["a40"]["subsystems"] =
      Json::array({{{"name", "m"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}}});
  EXPECT_NE(all(defects_of(scenario)).find("more than 32 assemblies within one another"),
            std::string::npos);
}

TEST(HostileAssemblies, AnyValueInAnyPlaceEndsInAnAnswer) {
  const Json base = line_of_cells();
  const Json values = Json::parse(
      R"json([null, true, 3, -1, 1e300, "", "{", "{i}", "cell", [], {}, [1], {"parameter": "i"},
          {"expression": "1/0"}, {"expression": "i"}, {"parameter": 3}, {"a": 1}])json");
  int tried = 0;
  const std::function<void(const Json::json_pointer&, const Json&)> visit =
      [&](const Json::json_pointer& place, const Json& value) {
        for (const Json& other : values) {
          Json changed = base;
          changed[place] = other;
          try {
            (void)read(changed);
          } catch (const ScenarioError& error) {
            EXPECT_FALSE(error.issues().empty());
            for (const Issue& issue : error.issues()) {
              EXPECT_FALSE(issue.what.empty()) << changed.dump();
            }
          }
          ++tried;
        }
        if (value.is_object()) {
          for (const auto& [key, member] : value.items()) visit(place / key, member);
        } else if (value.is_array()) {
          for (std::size_t i = 0; i < value.size(); ++i) visit(place / i, value[i]);
        }
      };
  for (const char* const section : {"assemblies", "subsystems", "couplings"}) {
    visit(Json::json_pointer("/") / section, base[section]);
  }
  EXPECT_GT(tried, 1000);
}

}  // namespace
}  // namespace portwave::test_assembly_defects
