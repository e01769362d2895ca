// Assemblies, arrays, indexed couplings and computed values: equal to the scenario written
// out.

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "runtime/scenario/templates/assembled_scenarios.hpp"
#include "support/files/schema_checker.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_scenario_assemblies {
namespace {

using testing::all;
using testing::defects_of;
using testing::Json;
using testing::kCell;
using testing::line_of_cells;
using testing::one_begins;
using testing::read;
using testing::scenario_with;

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
}  // namespace portwave::test_scenario_assemblies
