// Assemblies, arrays, indexed couplings and computed values: equal to the scenario written out, and
// every defect in its place, once.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/schema_checker.hpp"
#include "support/source_folder.hpp"
#include "support/text_file.hpp"

namespace portwave {
namespace {

using Json = nlohmann::ordered_json;

/// A frame, to which the tests add what they are about.
Json scenario_with(const std::string& sections) {
  Json scenario = Json::parse(R"json({
    "name": "assembled",
    "time": {"step_s": 0.01, "steps": 40},
    "method": {"kind": "auto"}
  })json");
  scenario.update(Json::parse(sections));
  return scenario;
}

constexpr const char* kCell = R"json("cell": {
    "parameters": {"mass_kg": null, "frequency_Hz": 2,
                   "stiffness_N_per_m": {"expression": "mass_kg*(2*pi*frequency_Hz)^2"},
                   "elongation_m": 0, "force": {"kind": "constant", "value": 0}},
    "subsystems": [
      {"name": "mass", "type": "mass",
       "parameters": {"mass_kg": {"parameter": "mass_kg"}, "damping_Ns_per_m": 0.3, "ports": 2},
       "inputs": {"force": {"parameter": "force"}}},
      {"name": "spring", "type": "spring",
       "parameters": {"stiffness_N_per_m": {"parameter": "stiffness_N_per_m"}},
       "initial_state": {"elongation": {"parameter": "elongation_m"}}}],
    "couplings": [{"kind": "connection", "ports": ["mass.port_2", "spring.left"]}],
    "ports": {"left": "mass.port_1", "right": "spring.right"}})json";

Json line_of_cells() {
  return scenario_with(std::string(R"json({"assemblies": {)json") + kCell + R"json(},
    "subsystems": [
      {"name": "cell", "assembly": "cell", "count": 5,
       "parameters": {"mass_kg": {"expression": "1 + i/4"},
                      "elongation_m": {"expression": "if(i == 2, 0.1, 0)"},
                      "force": {"kind": "expression",
                                "expression": "sin({i}*t) + {0.5*i - 1}"}}}],
    "couplings": [
      {"kind": "free", "ports": ["cell_0.left"]},
      {"kind": "connection", "ports": ["cell_{i}.right", "cell_{i+1}.left"], "for": {"i": [0, 3]}},
      {"kind": "resistive", "ports": ["cell_4.right"], "resistance": {"expression": "1/2"}}]})json");
}

/// The same by hand.
Json line_written_out() {
  Json scenario = scenario_with(R"json({"subsystems": [], "couplings": []})json");
  const char* const forces[] = {"sin(0*t) + (-1)", "sin(1*t) + (-0.5)", "sin(2*t) + 0",
                                "sin(3*t) + 0.5", "sin(4*t) + 1"};
  for (int i = 0; i < 5; ++i) {
    const double mass = 1.0 + i / 4.0;
    const std::string cell = "cell_" + std::to_string(i);
    const double w = 2.0 * 3.14159265358979323846 * 2.0;
    scenario["subsystems"].push_back(
        {{"name", cell + "/mass"},
         {"type", "mass"},
         {"parameters", {{"mass_kg", mass}, {"damping_Ns_per_m", 0.3}, {"ports", 2}}},
         {"inputs", {{"force", {{"kind", "expression"}, {"expression", forces[i]}}}}}});
    scenario["subsystems"].push_back(
        {{"name", cell + "/spring"},
         {"type", "spring"},
         {"parameters", {{"stiffness_N_per_m", mass * std::pow(w, 2.0)}}},
         {"initial_state", {{"elongation", i == 2 ? 0.1 : 0.0}}}});
    scenario["couplings"].push_back(
        {{"kind", "connection"}, {"ports", {cell + "/mass.port_2", cell + "/spring.left"}}});
  }
  scenario["couplings"].push_back({{"kind", "free"}, {"ports", {"cell_0/mass.port_1"}}});
  for (int i = 0; i < 4; ++i) {
    scenario["couplings"].push_back({{"kind", "connection"},
                                     {"ports",
                                      {"cell_" + std::to_string(i) + "/spring.right",
                                       "cell_" + std::to_string(i + 1) + "/mass.port_1"}}});
  }
  scenario["couplings"].push_back(
      {{"kind", "resistive"}, {"ports", {"cell_4/spring.right"}}, {"resistance", 0.5}});
  return scenario;
}

Scenario read(const Json& scenario, const std::vector<Override>& overrides = {}) {
  return parse_scenario(scenario.dump(), "file", ".", overrides);
}

/// All states, and the stored energy, after every step.
std::vector<std::vector<double>> trajectory(const Scenario& scenario, int threads = 1) {
  StepperOptions options = scenario.options;
  options.threads = threads;
  Stepper stepper(scenario.system, options);
  std::vector<std::vector<double>> rows;
  for (int n = 0; n < static_cast<int>(scenario.steps); ++n) {
    stepper.step();
    std::vector<double> row = {stepper.energy().final_J};
    for (int part = 0; part < static_cast<int>(scenario.system.parts().size()); ++part) {
      const auto x = stepper.state(part);
      row.insert(row.end(), x.begin(), x.end());
    }
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::string> part_names(const Scenario& scenario) {
  std::vector<std::string> names;
  for (const auto& part : scenario.system.parts()) names.push_back(part.name);
  return names;
}

void expect_equal(const Json& short_one, const Json& written_out) {
  const Scenario a = read(short_one), b = read(written_out);
  EXPECT_EQ(part_names(a), part_names(b));
  EXPECT_EQ(trajectory(a), trajectory(b));
}

std::vector<std::string> defects_of(const Json& scenario,
                                    const std::vector<Override>& overrides = {}) {
  try {
    (void)read(scenario, overrides);
  } catch (const ScenarioError& error) {
    std::vector<std::string> out;
    for (const Issue& issue : error.issues()) out.push_back(issue.where + ": " + issue.what);
    return out;
  }
  return {};
}

std::string all(const std::vector<std::string>& defects) {
  std::string text;
  for (const std::string& d : defects) text += d + '\n';
  return text;
}

/// True when exactly one defect begins like this.
::testing::AssertionResult one_begins(const std::vector<std::string>& defects,
                                      const std::string& begin) {
  const auto count =
      std::ranges::count_if(defects, [&](const std::string& d) { return d.starts_with(begin); });
  if (count == 1) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << count << " begin with\n  " << begin << "\nof\n"
                                       << all(defects);
}

/// The only defect of a scenario.
std::string only_defect(const Json& scenario) {
  const auto defects = defects_of(scenario);
  return defects.size() == 1 ? defects[0] : std::to_string(defects.size()) + "\n" + all(defects);
}

// Equal to what is written out

TEST(Assemblies, AnArrayWithNeighboursIsTheScenarioWrittenOutBitByBit) {
  expect_equal(line_of_cells(), line_written_out());
  EXPECT_EQ(trajectory(read(line_of_cells()), 2), trajectory(read(line_written_out()), 1));
}

TEST(AssembliesControl, AnotherParameterIsAnotherTrajectory) {
  Json other = line_of_cells();
  other["assemblies"]["cell"]["parameters"]["frequency_Hz"] = 2.0000001;
  EXPECT_NE(trajectory(read(other)), trajectory(read(line_written_out())));
}

TEST(Assemblies, NestAndExposePortsOfWhatTheyContain) {
  const Json nested = scenario_with(std::string(R"json({"assemblies": {)json") + kCell + R"json(,
      "pair": {
        "parameters": {"mass_kg": 2, "names": "cell"},
        "subsystems": [
          {"name": {"parameter": "names"}, "assembly": "cell", "count": 2,
           "parameters": {"mass_kg": {"expression": "mass_kg + i"}}}],
        "couplings": [{"kind": "connection", "ports": ["cell_0.right", "cell_1.left"]}],
        "ports": {"left": "{names}_0.left", "right": "{names}_{1}.right"}},
      "whole": {
        "subsystems": [
          {"name": "pair", "assembly": "pair", "count": 2,
           "parameters": {"mass_kg": {"expression": "3 - i"}}},
          {"name": "end", "type": "mass", "parameters": {"mass_kg": 1},
           "initial_state": {"position": 0, "velocity": 2}}],
        "couplings": [
          {"kind": "connection", "ports": ["pair_{i}.right", "pair_{i+1}.left"], "for": {"i": [0, 0]}},
          {"kind": "connection", "ports": ["pair_1.right", "end.port"]}],
        "ports": {"left": "pair_0.left"}}},
    "subsystems": [{"name": "whole", "assembly": "whole"}],
    "couplings": [{"kind": "free", "ports": ["whole.left"]}]})json");
  Json flat = scenario_with(R"json({"subsystems": [], "couplings": []})json");
  const double w = 2.0 * 3.14159265358979323846 * 2.0;
  const auto join = [&](const std::string& a, const std::string& b) {
    flat["couplings"].push_back({{"kind", "connection"}, {"ports", {a, b}}});
  };
  const std::string root = "whole/pair_";
  for (int pair = 0; pair < 2; ++pair) {
    for (int cell = 0; cell < 2; ++cell) {
      const double mass = 3.0 - pair + cell;
      const std::string name = root + std::to_string(pair) + "/cell_" + std::to_string(cell);
      flat["subsystems"].push_back(
          {{"name", name + "/mass"},
           {"type", "mass"},
           {"parameters", {{"mass_kg", mass}, {"damping_Ns_per_m", 0.3}, {"ports", 2}}}});
      flat["subsystems"].push_back(
          {{"name", name + "/spring"},
           {"type", "spring"},
           {"parameters", {{"stiffness_N_per_m", mass * std::pow(w, 2.0)}}}});
      join(name + "/mass.port_2", name + "/spring.left");
    }
    const std::string name = root + std::to_string(pair);
    join(name + "/cell_0/spring.right", name + "/cell_1/mass.port_1");
  }
  flat["subsystems"].push_back({{"name", "whole/end"},
                                {"type", "mass"},
                                {"parameters", {{"mass_kg", 1}}},
                                {"initial_state", {{"position", 0}, {"velocity", 2}}}});
  join("whole/pair_0/cell_1/spring.right", "whole/pair_1/cell_0/mass.port_1");
  join("whole/pair_1/cell_1/spring.right", "whole/end.port");
  flat["couplings"].push_back({{"kind", "free"}, {"ports", {"whole/pair_0/cell_0/mass.port_1"}}});
  expect_equal(nested, flat);
}

TEST(Assemblies, SignalBlocksMayBeArraysAndDriveWhatIsInside) {
  const Json array = scenario_with(R"json({
    "subsystems": [
      {"name": "m", "type": "linear_oscillator", "count": 3,
       "parameters": {"mass_kg": {"expression": "1 + i"}, "stiffness_N_per_m": 4},
       "initial_state": {"q2": {"expression": "0.1*(i + 1)"}},
       "inputs": {"force": {"kind": "signal", "signal": "damp_{i}"}}}],
    "couplings": [{"kind": "free", "ports": ["m_{i}.coupling"], "for": {"i": [0, 2]}}],
    "signals": {"every": 2, "blocks": [
      {"name": "damp", "kind": "expression", "count": 3,
       "expression": "-{0.25*(i+1)}*v + sin(t)*next", 
       "signals": {"v": "m_{i}.v2", "next": "m_{mod(i+1, 3)}.q2"}}]},
    "outputs": {"observe": ["m_1.q2", "damp_2"]}})json");
  Json flat = scenario_with(R"json({"subsystems": [], "couplings": [],
    "signals": {"every": 2, "blocks": []}, "outputs": {"observe": ["m_1.q2", "damp_2"]}})json");
  const char* const gains[] = {"0.25", "0.5", "0.75"};
  for (int i = 0; i < 3; ++i) {
    const std::string m = "m_" + std::to_string(i), block = "damp_" + std::to_string(i);
    flat["subsystems"].push_back(
        {{"name", m},
         {"type", "linear_oscillator"},
         {"parameters", {{"mass_kg", 1 + i}, {"stiffness_N_per_m", 4}}},
         {"initial_state", {{"q2", 0.1 * (i + 1)}}},
         {"inputs", {{"force", {{"kind", "signal"}, {"signal", block}}}}}});
    flat["couplings"].push_back({{"kind", "free"}, {"ports", {m + ".coupling"}}});
    flat["signals"]["blocks"].push_back(
        {{"name", block},
         {"kind", "expression"},
         {"expression", std::string("-") + gains[i] + "*v + sin(t)*next"},
         {"signals", {{"v", m + ".v2"}, {"next", "m_" + std::to_string((i + 1) % 3) + ".q2"}}}});
  }
  expect_equal(array, flat);
}

TEST(Assemblies, InnerNamesAndPortsAreObservedAndMeasured) {
  Json scenario = line_of_cells();
  scenario["outputs"]["observe"] = {"cell_2/mass.velocity", "cell_1.right.effort", "copy"};
  scenario["signals"]["blocks"] =
      Json::parse(R"json([{"name": "copy", "kind": "sensor", "of": "cell_3.left.flow"}])json");
  scenario["method"] = Json::parse(R"json({"kind": "peaceman-rachford", "iterations": 5,
      "impedance": {"kind": "per_port", "value": 2, "ports": {"cell_0.right": 7}}})json");
  const Scenario read_one = read(scenario);
  ASSERT_EQ(read_one.recording.quantities.size(), 3U);
  EXPECT_EQ(read_one.recording.quantities[0].label, "cell_2/mass.velocity");
  EXPECT_EQ(read_one.recording.quantities[1].label, "cell_1/spring.right.effort");
  Json wrong = scenario;
  wrong["method"]["impedance"]["ports"] = {{"cell_0.rigt", 7}};
  wrong["method"]["initial_waves"] = {{"cell_0.right", 0.1}, {"cell_0.lft", 0.1}};
  wrong["signals"]["blocks"][0]["of"] = "cell_3.lft.flow";
  const auto defects = defects_of(wrong);
  EXPECT_EQ(defects.size(), 3U) << all(defects);
  EXPECT_TRUE(
      one_begins(defects, "/method/impedance/ports/cell_0.rigt: \"cell_0\" is an assembly"));
  EXPECT_TRUE(one_begins(defects, "/method/initial_waves/cell_0.lft: \"cell_0\" is an assembly"));
  EXPECT_TRUE(one_begins(defects, "/signals/blocks/0/of: \"cell_3\" is an assembly in use"));
}

TEST(Assemblies, ComputedValuesStandWhereverValuesMay) {
  Json computed = line_written_out();
  computed["subsystems"][0]["parameters"]["mass_kg"] = {{"expression", "4 - 3"}};
  computed["subsystems"][1]["initial_state"] = Json::array({{{"expression", "0*pi"}}});
  expect_equal(computed, line_written_out());
}

TEST(Assemblies, RangesMayDependOnIndicesBeforeThemAndBeEmptyWhenComputed) {
  Json scenario = scenario_with(R"json({
    "assemblies": {"pairs": {
      "parameters": {"n": 4},
      "subsystems": [
        {"name": "m", "type": "mass", "count": {"parameter": "n"},
         "parameters": {"mass_kg": 1, "ports": {"expression": "max(n - 1, 1)"}}},
        {"name": "s", "type": "spring", "count": {"expression": "n*(n-1)/2"},
         "parameters": {"stiffness_N_per_m": 1}}],
      "couplings": [
        {"kind": "connection", 
         "for": {"i": [0, {"expression": "n-1"}],
                 "j": [{"expression": "i+1"}, {"expression": "n-1"}]},
         "ports": ["m_{i}.port_{j}", "s_{i*n - i*(i+1)/2 + j - i - 1}.left"]},
        {"kind": "connection", 
         "for": {"i": [0, {"expression": "n-1"}],
                 "j": [{"expression": "i+1"}, {"expression": "n-1"}]},
         "ports": ["m_{j}.port_{i + 1}", "s_{i*n - i*(i+1)/2 + j - i - 1}.right"]}]}},
    "subsystems": [{"name": "p", "assembly": "pairs"}]})json");
  // Every mass with every other by a spring.
  const Scenario all_pairs = read(scenario);
  EXPECT_EQ(all_pairs.system.parts().size(), 4U + 6U);
  EXPECT_EQ(all_pairs.system.junctions().size(), 12U);
  // With one mass there is no pair, and no spring.
  scenario["subsystems"][0]["parameters"] = {{"n", 1}};
  scenario["couplings"] = Json::parse(R"json([{"kind": "free", "ports": ["p/m_0.port"]}])json");
  EXPECT_EQ(read(scenario).system.parts().size(), 1U);
}

TEST(Assemblies, ParametersOfTheScenarioAreSeenOutsideOfAssemblies) {
  Json scenario = line_of_cells();
  scenario["parameters"] = Json::parse(R"json(
      {"n": 5, "last": {"expression": "n - 1"}, "end": "right", "r": 0.5})json");
  scenario["subsystems"][0]["count"] = {{"parameter", "n"}};
  scenario["couplings"][1]["for"]["i"] = {0, {{"expression", "last - 1"}}};
  scenario["couplings"][2]["ports"] = {"cell_{last}.{end}"};
  scenario["couplings"][2]["resistance"] = {{"parameter", "r"}};
  scenario["outputs"]["observe"] = {"cell_{last}/mass.velocity"};
  EXPECT_EQ(trajectory(read(scenario)), trajectory(read(line_written_out())));
  EXPECT_EQ(read(scenario).recording.quantities[0].label, "cell_4/mass.velocity");
  EXPECT_EQ(read(scenario, {{"/parameters/n", "9"}}).system.parts().size(), 19U);
  // Not inside: an assembly sees its own.
  scenario["assemblies"]["cell"]["subsystems"][0]["parameters"]["damping_Ns_per_m"] = {
      {"parameter", "r"}};
  scenario["parameters"]["none"] = nullptr;
  scenario["parameters"]["2x"] = 1;
  scenario["parameters"]["bad"] = {{"expression", "later"}};
  scenario["parameters"]["later"] = 1;
  const auto defects = defects_of(scenario);
  EXPECT_TRUE(one_begins(defects, "/parameters/none: must have a value, got null"));
  EXPECT_TRUE(one_begins(defects, "/parameters/2x: the name of a parameter must"));
  EXPECT_TRUE(one_begins(defects, "/parameters/bad: in the expression \"later\""));
  EXPECT_TRUE(one_begins(defects,
                         "/assemblies/cell/subsystems/0/parameters/damping_Ns_per_m: "
                         "there is no parameter \"r\" (in \"cell_0/mass\")"));
  EXPECT_EQ(defects.size(), 4U) << all(defects);
}

TEST(Assemblies, NothingIsAddedWhereThereIsNothing) {
  // Without "couplings" and without "signals" there are none afterwards.
  const Json lone = scenario_with(R"json({
    "assemblies": {"a": {"subsystems": [
      {"name": "r", "type": "linear_port_hamiltonian",
       "parameters": {"states": ["x", "y"], "ports": [], "G": [[], []], "Q": [[1, 0], [0, 1]],
                      "J": [[0, {"parameter": "w"}], [{"expression": "-w"}, 0]]}}],
      "parameters": {"w": 3}}},
    "subsystems": [{"name": "a", "assembly": "a"}]})json");
  const Scenario scenario = read(lone);
  EXPECT_EQ(scenario.system.parts()[0].name, "a/r");
  EXPECT_TRUE(scenario.system.junctions().empty());
  EXPECT_EQ(scenario.options.signals, nullptr);
}

TEST(Assemblies, SettingsOfTheCommandLineComeFirst) {
  const std::vector<Override> settings = {{"/subsystems/0/count", "3"},
                                          {"/assemblies/cell/parameters/frequency_Hz", "5"},
                                          {"/couplings/1/for/i", "[0, 1]"},
                                          {"/couplings/2/ports/0", "\"cell_2.right\""}};
  EXPECT_EQ(read(line_of_cells(), settings).system.parts().size(), 7U);  // and the resistor
  EXPECT_TRUE(one_begins(defects_of(line_of_cells(), {{"/subsystems/0/parameters/mass", "3"}}),
                         "/subsystems/0/parameters/mass: the assembly \"cell\" has no parameter"));
}

TEST(Assemblies, TenThousandSectionsAreALine) {
  Json scenario = line_of_cells();
  scenario["subsystems"][0]["count"] = 10000;
  scenario["subsystems"][0]["parameters"]["mass_kg"] = 2;
  scenario["subsystems"][0]["parameters"].erase("force");
  scenario["couplings"][1]["for"]["i"] = {0, 9998};
  scenario["couplings"][2]["ports"] = {"cell_9999.right"};
  EXPECT_EQ(read(scenario).system.parts().size(), 20001U);
}

// Defects

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

// The schema

TEST(AssemblySchema, AcceptsWhatIsValidAndCatchesMisspeltKeys) {
  const testing::SchemaChecker schema(scenario_schema());
  Json scenario = line_of_cells();
  scenario["signals"]["blocks"] = Json::parse(R"json([
    {"name": "u", "kind": "expression", "count": 5, "expression": "2*v",
     "signals": {"v": "cell_{i}/mass.velocity"}},
    {"name": "w", "kind": "expression", "expression": "2*u1 - t", "signals": ["u_0"]},
    {"name": "g", "kind": "gain", "signal": "w", "factor": {"expression": "1/3"}},
    {"name": "x", "kind": "expression", "expression": "t^2"}])json");
  EXPECT_EQ(defects_of(scenario), std::vector<std::string>());
  EXPECT_TRUE(schema.accepts(scenario.dump()));
  const auto misspelt = [&](const std::string& parent, const std::string& from,
                            const std::string& to) {
    Json changed = scenario;
    Json& object = changed[Json::json_pointer(parent)];
    const Json value = object.at(from);
    object.erase(from);
    object[to] = value;
    EXPECT_FALSE(defects_of(changed).empty()) << parent << " " << to;
    return !schema.accepts(changed.dump());
  };
  EXPECT_TRUE(misspelt("", "assemblies", "assemblys"));
  EXPECT_TRUE(misspelt("/assemblies/cell", "ports", "port"));
  EXPECT_TRUE(misspelt("/assemblies/cell", "subsystems", "parts"));
  EXPECT_TRUE(misspelt("/assemblies/cell/subsystems/0", "inputs", "input"));
  EXPECT_TRUE(misspelt("/assemblies/cell/subsystems/0/parameters", "mass_kg", "mass"));
  EXPECT_TRUE(
      misspelt("/assemblies/cell/subsystems/0/parameters/mass_kg", "parameter", "paramter"));
  EXPECT_TRUE(misspelt("/subsystems/0", "assembly", "asembly"));
  EXPECT_TRUE(misspelt("/subsystems/0", "count", "cuont"));
  EXPECT_TRUE(misspelt("/couplings/1", "for", "fro"));
  EXPECT_TRUE(misspelt("/couplings/2", "resistance", "resistanse"));
  EXPECT_TRUE(misspelt("/signals/blocks/0", "count", "counts"));
  EXPECT_TRUE(misspelt("/signals/blocks/0", "expression", "expresion"));
}

}  // namespace
}  // namespace portwave
