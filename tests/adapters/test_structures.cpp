// System structures of SSP as scenarios: their bonds become couplings by waves, all else signals.

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "adapters/discrete_fmu.hpp"
#include "adapters/structure_texts.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_structures {
namespace {

using namespace portwave::testing;

TEST(Ssp, ConnectionsThereAndBackAreWaves) {
  for (const std::string version : {"1.0", "2.0"}) {
    for (const auto& [mass, spring] : {std::pair(2, 3), std::pair(3, 2)}) {
      SspFolder folder;
      const auto file =
          folder.package(ssd(pair_elements() + pair_connections(), pair_experiment(), version),
                         pair_fmus(mass, spring));
      const Json made = scenario_of(file);
      EXPECT_EQ(made["couplings"].size(), 1u) << made.dump(1);
      EXPECT_EQ(made["couplings"][0]["kind"], "common_flow");
      EXPECT_FALSE(made.contains("signals"));
      EXPECT_EQ(made["time"]["step_s"], 0.01);
      EXPECT_NEAR(end_of(file), FmuPair().whole(0.01, 200), kWhole) << version;
    }
  }
}

/// The control: as samples, the same connections drift.
TEST(Ssp, SamplesDriftWhereWavesDoNot) {
  SspFolder folder;
  const auto file =
      folder.package(ssd(pair_elements() + pair_connections(), pair_experiment()), pair_fmus());
  const StructureScenario made = structure_of(file, {.finds_bonds = false});
  const Json json = Json::parse(made.text);
  EXPECT_EQ(block_named(json, "mass")["kind"], "fmu");
  EXPECT_EQ(block_named(json, "to_mass_F")["factor"], -1.0) << json.dump(1);
  const Scenario scenario = parse_scenario(made.text, "x", folder.path(), {}, {}, Plugins::allowed);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(200);
  const int x = scenario.options.signals->find_signal("mass_x");
  ASSERT_GE(x, 0);
  const double whole = FmuPair().whole(0.01, 200);
  EXPECT_GT(std::abs(stepper.signals()[static_cast<std::size_t>(x)] - whole), 1e-2);
  EXPECT_LT(std::abs(stepper.signals()[static_cast<std::size_t>(x)]), 10.0);  // but it runs
}

/// A force that pushes where it should hold is no bond: both ends would take power from nowhere.
TEST(Ssp, AMissingSignIsTold) {
  SspFolder folder;
  const auto file =
      folder.package(ssd(pair_elements() + pair_connections("1"), pair_experiment()), pair_fmus());
  const StructureScenario made = structure_of(file);
  EXPECT_TRUE(has(notes_of(made), "Is a sign missing?")) << notes_of(made);
  EXPECT_FALSE(Json::parse(made.text).contains("couplings") && has(made.text, "common_flow"));
}

/// Either side may have the sign.
TEST(Ssp, SignsDecideTheCoupling) {
  SspFolder folder;
  const std::string joined = connections(connection("spring.F", "mass.F") +
                                         connection("mass.v", "spring.v", linear("-1")));
  const auto file = folder.package(ssd(pair_elements() + joined, pair_experiment()), pair_fmus());
  EXPECT_EQ(scenario_of(file)["couplings"][0]["kind"], "connection");
  // Both count the other way: from a spring that starts with x = −0.2.
  EXPECT_NEAR(end_of(file, "mass", {{"/subsystems/1/start/start.x", "-0.2"}}),
              FmuPair().whole(0.01, 200), kWhole);
}

/// A lever: the spring moves half as much, and its force is halved.
TEST(Ssp, RatiosAreTransformers) {
  SspFolder folder;
  const std::string joined = connections(connection("mass.v", "spring.v", linear("0.5")) +
                                         connection("spring.F", "mass.F", linear("-0.5")));
  const auto file = folder.package(ssd(pair_elements() + joined, pair_experiment()), pair_fmus());
  const Json made = scenario_of(file);
  EXPECT_EQ(made["couplings"][0]["kind"], "transformer") << made.dump(1);
  FmuPair same;
  same.k *= 0.25;
  same.d *= 0.25;
  EXPECT_NEAR(end_of(file, "mass", {{"/subsystems/1/start/start.x", "0.1"}}), same.whole(0.01, 200),
              kWhole);
  // Not of one ratio: no power.
  const std::string uneven = connections(connection("mass.v", "spring.v", linear("0.5")) +
                                         connection("spring.F", "mass.F", linear("-0.25")));
  const StructureScenario other =
      structure_of(folder.package(ssd(pair_elements() + uneven, pair_experiment()), pair_fmus()));
  EXPECT_TRUE(has(notes_of(other), "is scaled by")) << notes_of(other);
}

/// A mass in kN and km/h joins a spring in N and m/s.
TEST(Ssp, UnitsAreConvertedInBondsAndSignals) {
  SspFolder folder;
  auto fmus = pair_fmus(3, 3);
  fmus[0].second.units = "kilo";
  std::string system = pair_elements();
  // kN and mm/s: masses are then in 1000 t.
  const auto at = system.find(real("2"));
  system.replace(at, real("2").size(), real("2e-6"));
  system.replace(system.find(real("0.1")), real("0.1").size(), real("1e-7"));
  system.replace(system.find(real("0.2")), real("0.2").size(), real("200"));
  const auto file = folder.package(ssd(system + pair_connections(), pair_experiment()), fmus);
  EXPECT_EQ(scenario_of(file)["couplings"][0]["kind"], "common_flow");
  EXPECT_NEAR(end_of(file) * 1e-3, FmuPair().whole(0.01, 200), kWhole);
  // As a signal the factor is in a gain, unless conversions are suppressed.
  const auto gain = [&](const std::string& more) {
    const auto made = scenario_of(folder.package(
        ssd(system + connections(connection("mass.v", "spring.v", "", more)), pair_experiment()),
        fmus));
    const Json block = block_named(made, "to_spring_v");
    return block.is_null() ? 1.0 : block["factor"].get<double>();
  };
  EXPECT_DOUBLE_EQ(gain(""), 1e-3);
  EXPECT_EQ(gain("suppressUnitConversion=\"true\""), 1.0);
}

/// Systems within systems, with connectors of their own, and values from all levels.
std::string nested_system(const std::string& outer_bindings) {
  const std::string inner =
      "<ssd:System name=\"drive\">" +
      connectors(connector("force", "input") + connector("speed", "output")) +
      bindings(bound(parameters({{"block.mass", real("3")}, {"block.k", real("7")}}))) +
      elements(component("block", "resources/mass.fmu",
                         bindings(bound(parameters({{"mass", real("1")}, {"d", real("0.1")}}))))) +
      connections(connection("force", "block.F") + connection("block.v", "speed")) +
      "</ssd:System>\n";
  return outer_bindings +
         elements(inner + component("spring", "resources/spring.fmu",
                                    bindings(binding("", "source=\"spring.ssv\"")))) +
         connections(connection("drive.speed", "spring.v") +
                     connection("spring.F", "drive.force", linear("-1")));
}

TEST(Ssp, SystemsAreNestedAndOuterValuesWin) {
  SspFolder folder;
  const std::string outer = bindings(
      bound(parameters({{"mass", real("2000")}, {"start.x", real("0.2")}}),
            "prefix=\"drive.block.\"") +
      bound(parameters({{"m", real("1")}, {"x", real("200")}}) +
            "</ssd:ParameterValues><ssd:ParameterMapping><ssm:ParameterMapping version=\"1.0\">"
            "<ssm:MappingEntry source=\"m\" target=\"drive.block.mass\">" +
            linear("1", "1") +
            "</ssm:MappingEntry></ssm:ParameterMapping></ssd:ParameterMapping>"
            "<ssd:ParameterValues>"));
  // The text above closes and opens <ParameterValues> again: take the second, empty one out.
  std::string text = outer;
  const std::string empty = "<ssd:ParameterValues></ssd:ParameterValues>";
  text.erase(text.find(empty), empty.size());
  const auto file = folder.package(
      ssd(nested_system(text), pair_experiment()), pair_fmus(),
      {{"spring.ssv",
        parameters({{"k", real("100")}, {"d", real("0.5")}, {"start.x", real("0.2")}})}});
  const Json made = scenario_of(file);
  const Json& part = made["subsystems"][0];
  EXPECT_EQ(part["name"], "drive_block");
  EXPECT_EQ(part["start"]["mass"], 2.0) << made.dump(1);  // mapped, and the last one on top
  EXPECT_EQ(part["start"]["k"], 7.0);                     // of the level between
  EXPECT_EQ(part["start"]["d"], 0.1);                     // its own
  EXPECT_EQ(made["subsystems"][1]["start"]["k"], 100.0);
  EXPECT_EQ(made["couplings"][0]["kind"], "common_flow");
  EXPECT_NEAR(end_of(file, "drive_block"), FmuPair().whole(0.01, 200), kWhole);
}

/// An inner structure may be a file or a package of its own.
TEST(Ssp, StructuresAreComponents) {
  SspFolder folder;
  const std::string inner =
      ssd(connectors(connector("force", "input") + connector("speed", "output")) +
          elements(component("block", "../resources/mass.fmu")) +
          connections(connection("force", "block.F") + connection("block.v", "speed")));
  const std::string values = bindings(bound(parameters(
      {{"block.mass", real("2")}, {"block.d", real("0.1")}, {"block.start.x", real("0.2")}})));
  const std::string spring = component(
      "spring", "resources/spring.fmu",
      bindings(
          bound(parameters({{"k", real("100")}, {"d", real("0.5")}, {"start.x", real("0.2")}}))));
  const std::string joined = connections(connection("drive.speed", "spring.v") +
                                         connection("spring.F", "drive.force", linear("-1")));
  const auto file = folder.package(ssd(elements(component("drive", "sub/drive.ssd", values,
                                                          "type=\"application/x-ssp-definition\"") +
                                                spring) +
                                           joined,
                                       pair_experiment()),
                                   pair_fmus(), {{"sub/drive.ssd", inner}});
  EXPECT_NEAR(end_of(file, "drive_block"), FmuPair().whole(0.01, 200), kWhole);
  // A package in the package, whose paths are its own.
  std::string own = inner;
  own.replace(own.find("../resources"), 12, "resources");
  SspFolder within;
  const auto package = within.package(own, {{"mass.fmu", {.version = 2}}});
  const auto outer = folder.package(ssd(elements(component("drive", "resources/drive.ssp", values,
                                                           "type=\"application/x-ssp-package\"") +
                                                 spring) +
                                            joined,
                                        pair_experiment()),
                                    pair_fmus(), {{"resources/drive.ssp", read_text(package)}});
  EXPECT_NEAR(end_of(outer, "drive_block"), FmuPair().whole(0.01, 200), kWhole);
}

/// Signals by name, between systems.
TEST(Ssp, SignalDictionariesJoin) {
  SspFolder folder;
  const std::string system =
      elements(component("mass", "resources/mass.fmu") + component("other", "resources/mass.fmu") +
               "<ssd:SignalDictionaryReference name=\"bus\" dictionary=\"can\"/>"
               "<ssd:System name=\"inner\">" +
               elements("<ssd:SignalDictionaryReference name=\"here\" dictionary=\"can\"/>" +
                        component("third", "resources/mass.fmu")) +
               connections(connection("here.force", "third.F")) + "</ssd:System>") +
      connections(connection("mass.v", "bus.force") + connection("bus.force", "other.F")) +
      "<ssd:SignalDictionaries><ssd:SignalDictionary name=\"can\">"
      "<ssb:SignalDictionary version=\"1.0\"><ssb:DictionaryEntry name=\"force\"><ssc:Real/>"
      "</ssb:DictionaryEntry></ssb:SignalDictionary></ssd:SignalDictionary>"
      "</ssd:SignalDictionaries>\n";
  auto fmus = pair_fmus();
  fmus[0].second.units = "none";
  const Json made = scenario_of(folder.package(ssd(system, pair_experiment()), fmus));
  EXPECT_EQ(block_named(made, "other")["signals"]["F"], "mass[0]") << made.dump(1);
  EXPECT_EQ(block_named(made, "inner_third")["signals"]["F"], "mass[0]");
}

/// Connectors of the outermost system are blocks, which a user may replace by functions of time.
TEST(Ssp, TheSystemHasInputsAndOutputs) {
  SspFolder folder;
  const std::string system =
      connectors(connector("push", "input") + connector("pull", "input") +
                 connector("seen", "output")) +
      bindings(bound(parameters({{"push", real("5")}}))) +
      elements(component("mass", "resources/mass.fmu",
                         bindings(bound(parameters({{"mass", real("4")}, {"d", real("0")}})))) +
               component("other", "resources/mass.fmu",
                         bindings(bound(parameters({{"F", real("1.5")}}))))) +
      connections(connection("push", "mass.F", linear("2")) +
                  connection("mass.v", "seen", linear("10", "1")) + connection("pull", "other.F"));
  const auto file = folder.package(ssd(system, pair_experiment()), pair_fmus());
  const Json made = scenario_of(file);
  EXPECT_EQ(block_named(made, "push")["value"], 5.0) << made.dump(1);
  EXPECT_EQ(block_named(made, "pull")["value"], 1.5);  // of what it goes to
  const Scenario scenario = load_scenario(file, {}, {}, Plugins::allowed);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(100);
  const int seen = scenario.options.signals->find_signal("seen");
  ASSERT_GE(seen, 0);
  // v = F t/m
  EXPECT_NEAR(stepper.signals()[static_cast<std::size_t>(seen)], 1.0 + 10.0 * 2.5, 1e-9);
}

/// Elements of arrays are connected by their names, of either format.
TEST(Structure, TakesElementsOfArrays) {
  SspFolder folder;
  const std::string fmu = read_text(add_discrete(folder));
  const std::string system =
      connectors(connector("push", "input") + connector("seen", "output")) +
      bindings(bound(parameters({{"push", real("5")}}))) +
      elements(component(
          "own", "resources/discrete.fmu",
          connectors(connector("w[1]", "input") + connector("y[2]", "output")) +
              bindings(bound(parameters({{"w[2]", real("100")}, {"A[2,1]", real("7")}}))))) +
      connections(connection("push", "own.w[1]", linear("2")) +
                  connection("own.y[2]", "seen", linear("10")));
  const auto package = [&](const std::string& text) {
    return folder.package(ssd(text, pair_experiment()), {}, {{"resources/discrete.fmu", fmu}});
  };
  const auto last = [](const std::filesystem::path& file, const char* signal) {
    const Scenario scenario = load_scenario(file, {}, {}, Plugins::allowed);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(4);
    const int at = scenario.options.signals->find_signal(signal);
    return at < 0 ? std::nan("") : stepper.signals()[static_cast<std::size_t>(at)];
  };
  EXPECT_EQ(last(package(system), "seen"), 10.0 * (7.0 * 10.0 + 5.0 * 100.0));
  EXPECT_TRUE(has(refusal_of(package(elements(component("own", "resources/discrete.fmu")) +
                                     connections(connection("own.y[3]", "own.w[1]")))),
                  "\"y[3]\" is no element of \"y\", which has 2"));
  EXPECT_TRUE(has(refusal_of(package(elements(component("own", "resources/discrete.fmu")) +
                                     connections(connection("own.y", "own.w[1]")))),
                  "an array, whose elements are named as in \"y[1]\""));
  // y = A w, and w[1] is what y[2] was before: 4 · 1 at first.
  const auto file = folder.path() / "OspSystemStructure.xml";
  write_text(file, osp("<Simulator name=\"own\" source=\"discrete.fmu\"><InitialValues>"
                       "<InitialValue variable=\"w[1]\"><Real value=\"1\"/></InitialValue>"
                       "</InitialValues></Simulator>",
                       "<VariableConnection><Variable simulator=\"own\" name=\"y[2]\"/>"
                       "<Variable simulator=\"own\" name=\"w[1]\"/></VariableConnection>",
                       "", "<EndTime>1</EndTime><BaseStepSize>0.1</BaseStepSize>"));
  EXPECT_EQ(last(file, "own_y_2_"), std::pow(4.0, 5));
}

/// Whole numbers are looked up, truth values are mapped.
TEST(Ssp, MappingsOfNumbers) {
  SspFolder folder;
  const auto transformed = [&](const std::string& inside) {
    return scenario_of(
        folder.package(ssd(elements(component("mass", "resources/mass.fmu") +
                                    component("other", "resources/mass.fmu")) +
                               connections(connection("mass.steps", "other.flag", inside)),
                           pair_experiment()),
                       pair_fmus()));
  };
  const Json looked_up = transformed(
      "<ssc:IntegerMappingTransformation><ssc:MapEntry source=\"2\" target=\"20\"/>"
      "<ssc:MapEntry source=\"1\" target=\"10\"/></ssc:IntegerMappingTransformation>");
  EXPECT_EQ(block_named(looked_up, "mapped_1")["points"], Json::parse("[[1.0,10.0],[2.0,20.0]]"));
  const Json turned = transformed(
      "<ssc:BooleanMappingTransformation><ssc:MapEntry source=\"true\" target=\"false\"/>"
      "<ssc:MapEntry source=\"false\" target=\"true\"/></ssc:BooleanMappingTransformation>");
  EXPECT_EQ(block_named(turned, "to_other_flag")["factor"], -1.0);
  EXPECT_EQ(block_named(turned, "to_other_flag")["offset"], 1.0);
}

/// Without units nothing says that a pair is one of power, unless terminals, or notes of ours, do.
TEST(Ssp, BondsWithoutUnitsAreDeclared) {
  SspFolder folder;
  auto fmus = pair_fmus(3, 3);
  for (auto& [name, recipe] : fmus) recipe.units = "none";
  const std::string system = pair_elements() + pair_connections();
  EXPECT_FALSE(
      has(structure_of(folder.package(ssd(system, pair_experiment()), fmus)).text, "common_flow"));
  const auto listed = folder.package(
      ssd(system, pair_experiment() + note_of_ours("{\"bonds\": [[\"mass.v\", \"spring.F\"]]}")),
      fmus);
  EXPECT_EQ(scenario_of(listed)["couplings"].size(), 1u);
  EXPECT_NEAR(end_of(listed), FmuPair().whole(0.01, 200), kWhole);
  fmus[1].second.terminals =
      "<fmiTerminalsAndIcons fmiVersion=\"3.0\"><Terminals><Terminal name=\"end\" "
      "matchingRule=\"bus\"><TerminalMemberVariable variableName=\"F\" memberName=\"F\" "
      "variableKind=\"signal\"/><TerminalMemberVariable variableName=\"v\" memberName=\"v\" "
      "variableKind=\"inflow\"/></Terminal></Terminals></fmiTerminalsAndIcons>";
  const auto told = folder.package(ssd(system, pair_experiment()), fmus);
  const Json made = scenario_of(told);
  EXPECT_EQ(made["subsystems"][1]["ports"][0]["name"], "end") << made.dump(1);
  EXPECT_NEAR(end_of(told), FmuPair().whole(0.01, 200), kWhole);
}

TEST(Ssp, WhatCannotGoBackIsABondToo) {
  SspFolder folder;
  auto fmus = pair_fmus();
  fmus[1].second.saves_state = false;
  const auto file =
      folder.package(ssd(pair_elements() + pair_connections(), pair_experiment()), fmus);
  const StructureScenario made = structure_of(file);
  EXPECT_TRUE(has(made.text, "common_flow")) << notes_of(made);
  EXPECT_NEAR(end_of(file), FmuPair().whole(0.01, 200), kWhole);
}

TEST(Ssp, UnpackedStructuresAreRead) {
  SspFolder folder;
  std::filesystem::create_directories(folder.path() / "resources");
  for (const auto& [name, recipe] : pair_fmus()) {
    std::filesystem::copy_file(folder.add(name, recipe), folder.path() / "resources" / name);
  }
  write_text(folder.path() / "SystemStructure.ssd",
             ssd(pair_elements() + pair_connections(), pair_experiment()));
  EXPECT_NEAR(end_of(folder.path() / "SystemStructure.ssd"), FmuPair().whole(0.01, 200), kWhole);
}

TEST(Structure, NeedsPermission) {
  SspFolder folder;
  const auto file =
      folder.package(ssd(pair_elements() + pair_connections(), pair_experiment()), pair_fmus());
  try {
    load_scenario(file);
    FAIL() << "it was loaded";
  } catch (const ScenarioError& error) {
    EXPECT_TRUE(has(error.report(), "give --allow-plugins")) << error.report();
  }
}

/// Steps and ends that nobody says are chosen, and told.
TEST(Structure, StepsAreChosenWhereNothingIsSaid) {
  SspFolder folder;
  const std::string system = pair_elements() + pair_connections();
  const StructureScenario made = structure_of(folder.package(ssd(system), pair_fmus()));
  EXPECT_TRUE(has(notes_of(made), "no step size is said: steps are of 0.001 s")) << notes_of(made);
  EXPECT_TRUE(has(notes_of(made), "no end is said"));
  const Json given =
      scenario_of(folder.package(ssd(system), pair_fmus()), {.step_s = 0.02, .duration_s = 1.0});
  EXPECT_EQ(given["time"]["step_s"], 0.02);
  EXPECT_EQ(given["time"]["end_s"], 1.0);
}

/// OMSimulator notes its step size at systems.
TEST(Ssp, StepsOfOMSimulatorAreTaken) {
  SspFolder folder;
  const std::string note =
      "<ssd:Annotations><ssc:Annotation type=\"org.openmodelica\"><oms:Annotations "
      "xmlns:oms=\"urn:oms\"><oms:SimulationInformation><oms:FixedStepMaster "
      "description=\"oms-ma\" "
      "stepSize=\"0.004\"/></oms:SimulationInformation></oms:Annotations></ssc:Annotation>"
      "</ssd:Annotations>";
  const StructureScenario made = structure_of(folder.package(
      ssd(pair_elements() + pair_connections() + note, experiment("stopTime=\"2\"")), pair_fmus()));
  EXPECT_EQ(Json::parse(made.text)["time"]["step_s"], 0.004);
  EXPECT_FALSE(has(notes_of(made), "no step size is said")) << notes_of(made);
}

}  // namespace
}  // namespace portwave::test_structures
