// Arrays of FMI 3: elements as parameters, inputs, outputs and ports, of every type, with sizes that structural
// parameters say.

#include <cmath>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/discrete_fmu.hpp"
#include "adapters/fmi/fmu_program.hpp"
#include "adapters/fmi/fmu_setup.hpp"

namespace portwave::test_fmu_arrays {
namespace {

using testing::add_discrete;
using testing::DiscreteRecipe;
using testing::failure_of;
using testing::FmuFolder;
using testing::has;
using testing::Json;

/// y = A w, with w driven by signals.
Json block_scenario() {
  return Json::parse(R"({
    "name": "arrays",
    "time": {"step_s": 0.02, "steps": 10},
    "subsystems": [
      {"name": "seen", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1}}
    ],
    "couplings": [{"kind": "free", "ports": ["seen.coupling"]}],
    "signals": {"blocks": [
      {"kind": "constant", "name": "one", "value": 1},
      {"kind": "constant", "name": "ten", "value": 10},
      {"kind": "fmu", "name": "own", "path": "discrete.fmu", "signals": {"w[1]": "one", "w[3]": "ten"},
       "outputs": ["y", "fixed[2,1]"], "start": {"w[2]": 100}}
    ]}
  })");
}

std::vector<double> signals_after(const FmuFolder& folder, const Json& json, int steps) {
  const Scenario scenario = read(folder, json);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(steps);
  std::vector<double> out;
  for (int i = 0;; ++i) {
    const int at = scenario.options.signals->find_signal("own[" + std::to_string(i) + "]");
    if (at < 0) return out;
    out.push_back(stepper.signals()[static_cast<std::size_t>(at)]);
  }
}

TEST(FmuArrays, AreSignalsByElements) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder);
    Json json = block_scenario();
    json["signals"]["blocks"][2]["process"] = in_process;
    // A = 1 2 3; 4 5 6 and w = 1 100 10; before the first input, w = 0 100 0.
    EXPECT_EQ(signals_after(folder, json, 0), (std::vector<double>{200, 500, 3}));
    EXPECT_EQ(signals_after(folder, json, 2), (std::vector<double>{231, 564, 3}));
  }
}

TEST(FmuArrays, AreOfTheSizeThatStructuralParametersSay) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder);
    Json json = block_scenario();
    Json& block = json["signals"]["blocks"][2];
    block["process"] = in_process;
    block["start"] =
        Json::parse(R"({"n": 4, "A": [[1,0,0],[0,1,0],[0,0,1],[1,1,1]], "w[2]": 100})");
    EXPECT_EQ(signals_after(folder, json, 2), (std::vector<double>{1, 100, 10, 111, 3}));
    block["start"]["A"] = {1, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 0};  // by rows
    EXPECT_EQ(signals_after(folder, json, 2), (std::vector<double>{1, 100, 20, 101, 3}));
    block["start"] = Json::parse(R"({"n": 1, "A": [[2,2,2]]})");
    EXPECT_EQ(signals_after(folder, json, 2), (std::vector<double>{22, 3}));
  }
}

TEST(FmuArrays, OtherElementsKeepTheirStartValues) {
  FmuFolder folder;
  add_discrete(folder);
  Json json = block_scenario();
  json["signals"]["blocks"][2]["start"] = Json::parse(R"({"A[2,1]": 7})");
  EXPECT_EQ(signals_after(folder, json, 2), (std::vector<double>{31, 67, 3}));
}

/// Every type as an array of two, each set by elements and as a whole.
TEST(FmuArrays, AreOfEveryType) {
  FmuFolder folder;
  add_discrete(folder);
  for (const bool in_process : {false, true}) {
    for (const std::string type : testing::kFmi3Types) {
      const bool is_truth = type == "Boolean";
      Json json = block_scenario();
      json["signals"]["blocks"][2] = Json::parse(
          R"({"kind": "fmu", "name": "own", "path": "discrete.fmu", "signals": {}, "outputs": []})");
      Json& block = json["signals"]["blocks"][2];
      block["process"] = in_process;
      block["outputs"] = {"out_" + type, "in_" + type + "[2]"};
      block["start"] = {{"in_" + type, is_truth ? Json{true, false} : Json{41, 7}}};
      const std::vector<double> at_start =
          is_truth ? std::vector<double>{0, 1, 0} : std::vector<double>{42, 8, 7};
      EXPECT_EQ(signals_after(folder, json, 1), at_start) << type;
      block["signals"] = {{"in_" + type + "[2]", "one"}};
      const std::vector<double> driven =
          is_truth ? std::vector<double>{0, 0, 1} : std::vector<double>{42, 2, 1};
      EXPECT_EQ(signals_after(folder, json, 2), driven) << type;
    }
  }
}

/// An element as the force of a port: the other one stays.
TEST(FmuArrays, ElementsAreWorkVariables) {
  FmuFolder folder;
  const auto file = add_discrete(folder);
  const auto run = [&](const std::string& effort, std::map<std::string, FmuValue> start) {
    FmuPort port = testing::takes_force();
    port.effort = effort;
    FmuPartOptions part = testing::part_options(file, port, std::move(start), 0.02);
    part.outputs = {"x"};
    const auto other = folder.add("spring.fmu", {.version = 3, .library = "spring"});
    FmuPartOptions spring = testing::part_options(
        other, testing::takes_speed(), {{"k", 50.0}, {"d", 0.5}, {"start.x", 0.1}}, 0.02);
    SystemBuilder builder;
    builder.add("own", make_fmu_part(part).component);
    builder.add("spring", make_fmu_part(spring).component);
    builder.join(joint::CommonFlow{}, {"own.port", "spring.port"});
    const System system = builder.build();
    Stepper stepper(system, testing::options(0.02, 20, 1e-11));
    stepper.step(50);
    return stepper.state(0)[0];
  };
  const double by_force = run("F", {{"x0", 0.1}});
  EXPECT_NEAR(run("pushes[2]", {{"x0", 0.1}}), by_force, 1e-12);
  EXPECT_NEAR(run("pushes[1]", {{"x0", 0.1}}), by_force, 1e-12);
  // The other element pushes on.
  EXPECT_NEAR(run("pushes[2]", {{"x0", 0.1}, {"pushes[1]", 1.0}}),
              run("F", {{"x0", 0.1}, {"pushes[2]", 1.0}}), 1e-12);
  EXPECT_GT(std::abs(run("pushes[2]", {{"x0", 0.1}, {"pushes[1]", 1.0}}) - by_force), 1e-3);
}

TEST(FmuArrays, ElementsAreInputsOfParts) {
  const auto way = [](const Json& inputs, const Json& start) {
    FmuFolder folder;
    add_discrete(folder);
    Json json = Json::parse(R"({
      "name": "pushed", "time": {"step_s": 0.05, "steps": 10},
      "subsystems": [
        {"name": "own", "type": "fmu", "path": "discrete.fmu", "outputs": ["x"],
         "ports": [{"name": "port", "effort": "F", "flow": "v", "input": "effort", "integral": "x"}]}
      ],
      "couplings": [{"kind": "free", "ports": ["own.port"]}],
      "method": {"kind": "auto", "iterations": 20, "tolerance": 1e-12, "tank": {"initial_J": 100}}
    })");
    json["subsystems"][0]["inputs"] = inputs;
    json["subsystems"][0]["start"] = start;
    const Scenario scenario = read(folder, json);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(10);
    return stepper.state(0)[0];
  };
  const Json two = {{"kind", "constant"}, {"value", 2}};
  // x = F t^2 / 2m
  EXPECT_NEAR(way({{"pushes[2]", two}}, Json::object()), 0.25, 1e-12);
  EXPECT_NEAR(way({{"pushes[2]", two}}, {{"pushes[1]", 4}}), 0.75, 1e-12);
  EXPECT_NEAR(way({{"pushes[1]", two}, {"pushes[2]", two}}, Json::object()), 0.5, 1e-12);
}

TEST(FmuArrays, AreShownAsStatesByElements) {
  FmuFolder folder;
  FmuPartOptions part = testing::part_options(add_discrete(folder), testing::takes_force(), {});
  const auto names = [&] {
    std::vector<std::string> out;
    const auto component = make_fmu_part(part).component;
    for (const auto& own : component->signature().states) out.push_back(own.name);
    return out;
  };
  part.outputs = {"y", "fixed[2,2]"};
  EXPECT_EQ(names(), (std::vector<std::string>{"y_1_", "y_2_", "fixed_2_2_"}));
  part.outputs.reset();
  EXPECT_GT(names().size(), 20u);  // two of each type among them
}

TEST(FmuArrays, DefectsAreToldInTheirPlace) {
  FmuFolder folder;
  add_discrete(folder);
  const auto report = [&](const char* start, const char* outputs = R"(["y"])") {
    Json json = block_scenario();
    json["signals"]["blocks"][2]["start"] = Json::parse(start);
    json["signals"]["blocks"][2]["outputs"] = Json::parse(outputs);
    return report_of(folder, json);
  };
  EXPECT_EQ(report("{}"), "");
  const std::pair<std::string, std::string> cases[] = {
      {report(R"({"A": [1, 2]})"), "/start/A: \"A\" is an array of 2 x 3, and 2 numbers are given"},
      {report(R"({"A": [[1, 2], [3, 4], [5, 6]]})"), "6 numbers are given as 3 x 2"},
      {report(R"({"A": [[1, 2, 3], [4, 5]]})"), "must have 3 elements, as those before it, got 2"},
      {report(R"({"A": [[1, 2, 3], 4]})"), "must be a number where the others are"},
      {report(R"({"A": [1, 2, "x", 4, 5, 6]})"), "/start/A/2"},
      {report(R"({"A": 1})"), "is an array of 2 x 3: give an array of numbers"},
      {report(R"({"A[3,1]": 1})"), "\"A[3,1]\" is no element of \"A\", which has 2 x 3"},
      {report(R"({"A[0,1]": 1})"), "indices count from 1"},
      {report(R"({"A[1]": 1})"), "\"A[1]\" is no element of \"A\", which has 2 x 3"},
      {report(R"({"n": 4, "A[1,1]": 1})"), "has 12 elements, and the FMU gives start values of 6"},
      {report(R"({"n": -1})"), "is a structural parameter: it takes a whole number"},
      {report(R"({"n": 2.5})"), "is a structural parameter: it takes a whole number"},
      {report(R"({"n": 1e7})"), "is a structural parameter: it takes a whole number"},
      {report(R"({"m": [1]})"), "\"m\" takes a number"},
      {report("{}", R"(["y[3]"])"), "\"y[3]\" is no element of \"y\", which has 2"},
  };
  for (const auto& [text, words] : cases) EXPECT_TRUE(has(text, words)) << words << '\n' << text;
  Json json = block_scenario();
  json["signals"]["blocks"][2]["signals"] = {{"w", "one"}};
  EXPECT_TRUE(has(report_of(folder, json), "is an array of 3: name an element, such as \"w[1]\""));
}

TEST(FmuArrays, WholeNumbersThatAreRoundedAreRefused) {
  FmuFolder folder;
  add_discrete(folder);
  Json json = block_scenario();
  json["signals"]["blocks"][2]["start"] = Json::parse(R"({"in_Int64": [9007199254740993, 1]})");
  EXPECT_TRUE(has(report_of(folder, json), "must be below 2^53")) << report_of(folder, json);
  json["signals"]["blocks"][2]["start"] = Json::parse(R"({"in_Int64": [9007199254740991, 1]})");
  EXPECT_EQ(report_of(folder, json), "");
}

TEST(FmuArrays, NumbersThatAreGivenTwiceAreRefused) {
  FmuFolder folder;
  add_discrete(folder);
  const auto report = [&](const char* start) {
    Json json = block_scenario();
    json["signals"]["blocks"][2]["start"] = Json::parse(start);
    return report_of(folder, json);
  };
  std::string text = report(R"({"A": [10, 20, 30, 40, 50, 60], "A[1,1]": 7})");
  EXPECT_TRUE(has(text, "is given with all of \"A\" too: write its number there")) << text;
  text = report(R"({"A[1,1]": 7, "A[1, 1]": 8, "A[2,1]": 9})");
  EXPECT_TRUE(has(text, "/start/A[1,1]: is given twice")) << text;
  EXPECT_FALSE(has(text, "A[2,1]")) << text;
  EXPECT_EQ(report(R"({"A[1,1]": 7, "A[1, 2]": 8})"), "");
}

/// What the FMU gives in its description is set again beside an element, and must stay what it was.
TEST(FmuArrays, StartValuesBesideAnElementAreExactOrRefused) {
  const auto report = [](const std::string& type, const std::string& values) {
    FmuFolder folder;
    add_discrete(folder, {.more_variables = "<" + type +
                                            R"( name="more" valueReference="24" )"
                                            R"(causality="parameter" start=")" +
                                            values + R"("><Dimension start="2"/></)" + type + ">"});
    Json json = block_scenario();
    json["signals"]["blocks"][2]["start"] = {{"more[2]", 5}};
    return report_of(folder, json);
  };
  for (const auto& [type, values] :
       {std::pair<std::string, std::string>{"Float64", "1,5 1"}, {"Float64", "x 1"}}) {
    EXPECT_TRUE(has(report(type, values), "start of <Float64> must be a number"))
        << report(type, values);
  }
  EXPECT_TRUE(has(report("Int64", "9007199254740993 1"), "give all elements"));
  EXPECT_FALSE(has(report("Float64", "+1.5e-3 INF"), "give all elements"));
}

TEST(FmuArrays, StructuralParametersAreSingleNumbers) {
  const std::string of = R"(causality="structuralParameter" variability="fixed" )";
  FmuFolder folder;
  add_discrete(folder, {.more_variables = R"(<String name="kind" valueReference="92" )" + of +
                                          R"(><Start value="a"/></String>)" +
                                          R"(<UInt64 name="sizes" valueReference="93" )" + of +
                                          R"(start="1 2"><Dimension start="2"/></UInt64>)"});
  const auto report = [&](const char* start) {
    Json json = block_scenario();
    json["signals"]["blocks"][2]["start"] = Json::parse(start);
    return report_of(folder, json);
  };
  std::string text = report(R"({"kind": "b"})");
  EXPECT_TRUE(has(text, "\"kind\" is a structural parameter that is a text, which")) << text;
  text = report(R"({"sizes[1]": 3})");
  EXPECT_TRUE(has(text, "is a structural parameter that is an array, which")) << text;
}

/// Elements are made where somebody wants them, and without the start values of all.
TEST(FmuArrays, LargeOnesTakeNoMoreThanIsShown) {
  std::string more;
  for (int k = 0; k < 3; ++k) {
    const std::string own = std::to_string(k);
    more += R"(<Float64 name="large)" + own + R"(" valueReference="30)" + own +
            R"(" causality="output" start="1 2 3"><Dimension start="1000000"/></Float64>)";
  }
  FmuFolder folder;
  const std::shared_ptr<const fmi::Fmu> fmu =
      fmi::Fmu::open(add_discrete(folder, {.more_variables = more}));
  Issues issues;
  fmi::FmuVariables variables(fmu, {}, issues);
  EXPECT_EQ(fmi::find_outputs(variables, std::nullopt, issues).size(), 1000u);
  EXPECT_EQ(variables.elements_of(*fmu->description().find("large2"), 3).size(), 3u);
  EXPECT_TRUE(variables.find("large1[1000000]")->start.empty());
  EXPECT_TRUE(issues.empty());
}

TEST(FmuArrays, ClocksThatNobodyTicksAreNoted) {
  const auto notes = [](const char* clock) {
    FmuFolder folder;
    const auto file = add_discrete(folder, {.clock = clock});
    FmuPartOptions part = testing::part_options(file, testing::takes_force(), {});
    part.outputs = {"x"};
    std::string out;
    for (const std::string& note : make_fmu_part(part).notes) out += note + '\n';
    return out;
  };
  const char* const words = "the clock \"clock\" is triggered from outside: it never ticks";
  EXPECT_TRUE(has(notes(R"(intervalVariability="triggered")"), words));
  EXPECT_FALSE(has(notes(R"(intervalVariability="constant" intervalDecimal="0.1")"), words));
}

TEST(FmuArrays, WhatIsNotFixedIsRefused) {
  for (const auto& [size, words] :
       {std::pair<std::string, std::string>{R"(<Dimension valueReference="5"/>)",
                                            "which is no structural parameter with a start value"},
        {R"(<Dimension start="1000000"/><Dimension start="1000000"/>)", "more than 1000000"}}) {
    FmuFolder folder;
    add_discrete(folder, {.size_of_a = size});
    Json json = block_scenario();
    EXPECT_EQ(report_of(folder, json), "");  // it is not used
    json["signals"]["blocks"][2]["outputs"] = {"A"};
    EXPECT_TRUE(has(report_of(folder, json), "\"A\" cannot be used: ")) << report_of(folder, json);
    EXPECT_TRUE(has(report_of(folder, json), words)) << report_of(folder, json);
  }
  FmuFolder folder;
  add_discrete(folder, {.size_of_a = "<Dimension/>"});
  EXPECT_TRUE(has(report_of(folder, block_scenario()), "a dimension of variable \"A\" must have"));
}

TEST(FmuArrays, TextsClocksAndBinariesAreNoNumbers) {
  FmuFolder folder;
  add_discrete(folder, {.more_variables =
                            R"(<Binary name="blob" valueReference="90" causality="output"/>)"
                            R"(<String name="words" valueReference="91" causality="parameter">)"
                            R"(<Dimension start="2"/></String>)"});
  Json json = block_scenario();
  EXPECT_EQ(report_of(folder, json), "");  // they are not used
  json["signals"]["blocks"][2]["outputs"] = {"blob"};
  EXPECT_TRUE(has(report_of(folder, json), "\"blob\" must be a single number, and is binary data"));
  json = block_scenario();
  json["signals"]["blocks"][2]["start"] = {{"words", Json{1, 2}}};
  EXPECT_TRUE(has(report_of(folder, json), "\"words\" cannot be set: it is an array of texts"));
  json["signals"]["blocks"][2]["start"] = {{"words[1]", "x"}};
  EXPECT_TRUE(has(report_of(folder, json), "an element of an array of texts"));
}

/// What the FMU answers is not of the size that its description says.
TEST(FmuArrays, LiesAboutTheirSizeAreFaults) {
  for (const bool in_process : {false, true}) {
    const auto fault = [&](const std::string& defect, const char* start = "{}") {
      FmuFolder folder;
      add_discrete(folder, {.defect = defect});
      Json json = block_scenario();
      json["signals"]["blocks"][2]["process"] = in_process;
      json["signals"]["blocks"][2]["start"] = Json::parse(start);
      return failure_of([&] { signals_after(folder, json, 3); });
    };
    EXPECT_EQ(fault("none"), "");
    std::string text = fault("short_array");
    EXPECT_TRUE(has(text, "gave no value for element 2 of the 2 of its array \"y\"")) << text;
    text = fault("long_array");
    EXPECT_TRUE(has(text, "wrote more than the 2 elements of its array \"y\"")) << text;
    text = fault("other_size", R"({"n": 4, "A": [0,0,0,0,0,0,0,0,0,0,0,0]})");
    EXPECT_TRUE(has(text, "has 2 where a structural parameter was set to 4")) << text;
    text =
        fault("none", R"({"n": 9, "A": [0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]})");
    EXPECT_TRUE(has(text, "n is at most 8")) << text;
  }
}

}  // namespace
}  // namespace portwave::test_fmu_arrays
