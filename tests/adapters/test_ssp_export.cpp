// Scenarios of FMUs as packages of a system structure, and back: the same scenario, and the same bits.

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "adapters/structure_texts.hpp"
#include "portwave/runtime/export/ssp_export.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/cli_process.hpp"

namespace portwave::test_ssp_export {
namespace {

using namespace portwave::testing;

Json pair_scenario() {
  return Json::parse(R"({
    "name": "pair",
    "description": "A mass on a spring.",
    "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [
      {"name": "spring", "type": "fmu", "path": "spring.fmu",
       "ports": [{"name": "F_v", "effort": "F", "flow": "v", "input": "flow"}],
       "start": {"k": 100, "d": 0.5, "start.x": 0.2}, "outputs": ["F"]},
      {"name": "mass", "type": "fmu", "path": "mass.fmu",
       "ports": [{"name": "flange", "effort": "F", "flow": "v", "input": "effort", "integral": "x"}],
       "start": {"mass": 2, "d": 0.1, "start.x": 0.2, "label": "a < b"}, "outputs": ["x", "v"]}
    ],
    "couplings": [{"kind": "common_flow", "ports": ["spring.F_v", "mass.flange"]}],
    "method": {"kind": "auto", "iterations": 20, "tolerance": 1e-9, "tank": {"initial_J": 3.0}},
    "outputs": {"observe": ["mass.x", "spring.F"], "every": 2}
  })");
}

/// Signals between a part and blocks, with a gain, an input of the structure and a slower block.
Json signal_scenario() {
  Json out = pair_scenario();
  out["subsystems"][1]["inputs"] = {{"flag", {{"kind", "signal"}, {"signal", "turned"}}}};
  out["signals"]["every"] = 2;
  out["signals"]["blocks"] = Json::parse(R"([
    {"kind": "sine_product", "name": "push", "amplitude": 2, "sines": [{"frequency_Hz": 1.5}]},
    {"kind": "fmu", "name": "sensor", "path": "mass.fmu", "signals": {"F": "push", "flag": "mass.v"},
     "outputs": ["v", "x"], "start": {"mass": 3}, "every": 3},
    {"kind": "gain", "name": "turned", "signal": "sensor[0]", "factor": -2, "offset": 0.5}
  ])");
  out["outputs"]["observe"] = {"mass.x", "turned"};
  return out;
}

struct Written {
  Written(const FmuFolder& folder, const Json& json, Plugins plugins = Plugins::allowed)
      : file(folder.path() / "made.ssp"),
        done(export_ssp({.text = json.dump(), .file = "x.json", .folder = folder.path()}, plugins,
                        file)) {}
  std::filesystem::path file;
  SspExport done;
};

FmuFolder& folder_of_pair() {
  struct Filled : FmuFolder {
    Filled() {
      add("mass.fmu", FmuRecipe{.version = 3});
      add("spring.fmu", FmuRecipe{.version = 2, .library = "spring"});
    }
  };
  static Filled folder;
  return folder;
}

/// All states after some steps, and the recorded quantities.
std::vector<double> states_of(const Scenario& scenario) {
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(static_cast<int>(scenario.steps));
  std::vector<double> out;
  for (std::size_t i = 0; i < scenario.system.parts().size(); ++i) {
    const auto state = stepper.state(static_cast<int>(i));
    out.insert(out.end(), state.begin(), state.end());
  }
  return out;
}

/// What recorded signals are in the end.
double signal_at_end(const Scenario& scenario, const std::string& name) {
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(static_cast<int>(scenario.steps));
  const int at = scenario.options.signals->find_signal(name);
  return at < 0 ? std::nan("") : stepper.signals()[static_cast<std::size_t>(at)];
}

Scenario scenario_in(const FmuFolder& folder, const Json& json) {
  return parse_scenario(json.dump(), "x.json", folder.path(), {}, {}, Plugins::allowed);
}

/// Without paths, which differ.
Json without_paths(Json json) {
  for (Json& own : json["subsystems"]) own.erase("path");
  if (!json.contains("signals")) return json;
  for (Json& own : json["signals"]["blocks"]) own.erase("path");
  return json;
}

TEST(SspExport, ComesBackAsTheSameScenario) {
  const Written made(folder_of_pair(), pair_scenario());
  EXPECT_EQ(made.done.components, 2u);
  EXPECT_EQ(made.done.connections, 2u);
  EXPECT_TRUE(made.done.notes.empty());
  EXPECT_EQ(without_paths(scenario_of(made.file)).dump(1), [&] {
    Json wanted = without_paths(pair_scenario());
    // In the order in which it is written.
    Json ordered;
    for (const char* const key :
         {"name", "description", "time", "subsystems", "couplings", "outputs", "method"}) {
      ordered[key] = wanted[key];
    }
    for (Json& own : ordered["subsystems"]) {
      Json start = Json::object();
      const nlohmann::json sorted = own["start"];
      for (const auto& [name, value] : sorted.items()) {
        start[name] = value.is_number() ? Json(value.get<double>()) : Json(value);
      }
      own["start"] = start;
    }
    return ordered.dump(1);
  }());
  const auto before = states_of(scenario_in(folder_of_pair(), pair_scenario()));
  const auto after = states_of(load_scenario(made.file, {}, {}, Plugins::allowed));
  EXPECT_EQ(before, after);
}

TEST(SspExport, SignalsComeBackToo) {
  const Written made(folder_of_pair(), signal_scenario());
  ASSERT_EQ(made.done.notes.size(), 1u);
  EXPECT_TRUE(has(made.done.notes[0], "\"push\" is an input of the structure"));
  const Json back = scenario_of(made.file);
  EXPECT_EQ(back["signals"]["every"], 2) << back.dump(1);
  const Scenario first = scenario_in(folder_of_pair(), signal_scenario());
  const Scenario again = load_scenario(made.file, {}, {}, Plugins::allowed);
  EXPECT_EQ(states_of(first), states_of(again));
  ASSERT_EQ(again.recording.quantities.size(), 2u);
  // The control: another gain, other states.
  Json other = signal_scenario();
  other["signals"]["blocks"][0]["amplitude"] = 2.5;
  const double turned = signal_at_end(again, "turned");
  EXPECT_EQ(signal_at_end(first, "turned"), turned);
  EXPECT_NE(signal_at_end(scenario_in(folder_of_pair(), other), "turned"), turned);
  other["signals"]["blocks"][0]["amplitude"] = 2;
  other["signals"]["blocks"][1]["every"] = 5;
  EXPECT_NE(signal_at_end(scenario_in(folder_of_pair(), other), "turned"), turned);
}

/// Every kind of coupling of two ports, with FMUs that count in either direction.
TEST(SspExport, CouplingsAreConnectionsThereAndBack) {
  for (const char* const kind : {"connection", "common_effort", "common_flow", "transformer"}) {
    for (const bool mass_first : {true, false}) {
      Json json = pair_scenario();
      Json& coupling = json["couplings"][0];
      coupling["kind"] = kind;
      if (coupling["kind"] == "transformer") coupling["ratio"] = 0.3;
      if (mass_first) coupling["ports"] = {"mass.flange", "spring.F_v"};
      const Written made(folder_of_pair(), json);
      EXPECT_EQ(states_of(scenario_in(folder_of_pair(), json)),
                states_of(load_scenario(made.file, {}, {}, Plugins::allowed)))
          << kind << ' ' << mass_first;
    }
  }
}

/// What another tool has changed counts, and not what was noted.
TEST(SspExport, ChangedConnectionsAreTaken) {
  const Written made(folder_of_pair(), pair_scenario());
  const files::Archive archive(made.file);
  std::string text = archive.content("SystemStructure.ssd");
  const std::size_t at = text.find("factor=\"-1\"");
  ASSERT_NE(at, std::string::npos) << text;
  std::vector<ZipMember> members;
  for (const char* const name : {"resources/mass.fmu", "resources/spring.fmu",
                                 "parameters/mass.ssv", "parameters/spring.ssv"}) {
    members.push_back({name, archive.content(name)});
  }
  FmuFolder folder;
  const auto changed_to = [&](const std::string& description) {
    std::vector<ZipMember> all = members;
    all.push_back({"SystemStructure.ssd", description});
    return structure_of(folder.add("changed.ssp", all));
  };
  // The control: as it was.
  EXPECT_TRUE(has(changed_to(text).text, "common_flow"));
  std::string sign = text;
  sign.replace(at, 11, "factor=\"1\"");
  ASSERT_NE(sign, text);
  const StructureScenario turned = changed_to(sign);
  EXPECT_TRUE(has(notes_of(turned), "is not that of the connections: these are taken"))
      << notes_of(turned);
  EXPECT_FALSE(has(turned.text, "common_flow"));
  // Another connector: the spring is driven by where the mass is, and no bond is left.
  std::string elsewhere = text;
  const std::string from = "startConnector=\"v\"";
  const std::size_t start = elsewhere.find(from);
  ASSERT_NE(start, std::string::npos) << text;
  elsewhere.replace(start, from.size(), "startConnector=\"x\" suppressUnitConversion=\"true\"");
  const StructureScenario moved = changed_to(elsewhere);
  EXPECT_TRUE(has(notes_of(moved), "is not that of the connections: these are taken"))
      << notes_of(moved);
  EXPECT_FALSE(has(moved.text, "common_flow")) << moved.text;
}

std::string refusal_to_write(const Json& json, Plugins plugins = Plugins::allowed) {
  try {
    Written(folder_of_pair(), json, plugins);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "";
}

/// A force in N drives a block that counts in kN: a scenario sends numbers as they are, and so does the package.
TEST(SspExport, SignalsKeepTheirNumbers) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{.version = 3});
  folder.add("spring.fmu", FmuRecipe{.version = 2, .library = "spring"});
  folder.add("kilo.fmu", FmuRecipe{.version = 2, .units = "kilo"});
  for (const bool by_gain : {false, true}) {
    Json json = pair_scenario();
    json["signals"]["blocks"] = Json::parse(R"([
      {"kind": "gain", "name": "scaled", "signal": "spring.F", "factor": 0.001},
      {"kind": "gain", "name": "of_a_way", "signal": "mass.x", "factor": 3},
      {"kind": "fmu", "name": "driven", "path": "kilo.fmu", "outputs": ["x"]}])");
    json["signals"]["blocks"][2]["signals"]["F"] = by_gain ? "scaled" : "spring.F";
    json["outputs"]["observe"] = {"driven"};
    const Written made(folder, json);
    const Scenario first = scenario_in(folder, json);
    const Scenario again = load_scenario(made.file, {}, {}, Plugins::allowed);
    const double direct = signal_at_end(first, "driven");
    EXPECT_EQ(direct, signal_at_end(again, "driven")) << by_gain;
    EXPECT_GT(std::abs(direct), 1e-6);
    // Gains that nobody observes keep their names.
    EXPECT_EQ(signal_at_end(first, "of_a_way"), signal_at_end(again, "of_a_way"));
    // The control: a reader that converts finds something else.
    std::string text = files::Archive(made.file).content("SystemStructure.ssd");
    EXPECT_TRUE(has(text, "suppressUnitConversion=\"true\"")) << text;
  }
}

/// Two FMUs mean different things by one name of a unit, and a power bond is between them.
TEST(SspExport, UnitsOfOneNameStayApart) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{.version = 3, .units = "kilo"});
  folder.add("spring.fmu", FmuRecipe{.version = 2, .library = "spring"});
  Json json = pair_scenario();
  json["subsystems"][1]["start"] = {{"mass", 2e-6}, {"d", 1e-7}, {"start.x", 200}};
  const Written made(folder, json);
  EXPECT_EQ(states_of(scenario_in(folder, json)),
            states_of(load_scenario(made.file, {}, {}, Plugins::allowed)));
  const std::string text = files::Archive(made.file).content("SystemStructure.ssd");
  EXPECT_TRUE(has(text, "name=\"force\"")) << text;
  EXPECT_TRUE(has(text, "name=\"force_2\"")) << text;
}

TEST(SspExport, NothingIsLeftOutWithoutAWord) {
  // Gains of a rate of their own, units and files of blocks.
  Json json = signal_scenario();
  json["signals"]["blocks"][2]["every"] = 10;
  EXPECT_TRUE(
      has(refusal_to_write(json), "/signals/blocks/2/every: \"turned\" is sampled every 10 steps"))
      << refusal_to_write(json);
  json["signals"]["blocks"][2]["every"] = 2;  // as all others
  EXPECT_EQ(refusal_to_write(json), "");
  json["signals"]["blocks"][2]["unit"] = "N";
  EXPECT_TRUE(has(refusal_to_write(json), "/signals/blocks/2/unit: \"unit\" cannot go into"))
      << refusal_to_write(json);
  json = signal_scenario();
  write_text(folder_of_pair().path() / "drive.csv", "0,0\n1,1\n");
  json["signals"]["blocks"][0] = {{"kind", "table"}, {"name", "push"}, {"file", "drive.csv"}};
  EXPECT_TRUE(has(refusal_to_write(json), "/signals/blocks/0: \"push\" reads a file"))
      << refusal_to_write(json);
  // A part that is called as the one beside which blocks are stepped.
  json = pair_scenario();
  json["subsystems"].push_back(
      {{"name", "at_rest"}, {"type", "mass"}, {"parameters", {{"mass_kg", 7}}}});
  json["couplings"] = Json::parse(R"([
    {"kind": "common_flow", "ports": ["spring.F_v", "at_rest.port"]},
    {"kind": "free", "ports": ["mass.flange"]}])");
  EXPECT_TRUE(has(refusal_to_write(json), "\"at_rest\" is of the type \"mass\""))
      << refusal_to_write(json);
}

/// Blocks alone, with the part at rest that import writes.
TEST(SspExport, BlocksAloneComeBack) {
  Json json = Json::parse(R"({"name": "alone", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [{"name": "at_rest", "type": "mass", "parameters": {"mass_kg": 1}}],
    "couplings": [{"kind": "free", "ports": ["at_rest.port"]}],
    "signals": {"blocks": [
      {"kind": "constant", "name": "push", "value": 4, "unit": "N"},
      {"kind": "fmu", "name": "a+b", "path": "mass.fmu", "signals": {"F": "push"}, "outputs": ["x"],
       "start": {"mass": 3}, "unit": "m"},
      {"kind": "fmu", "name": "a_b", "path": "mass.fmu", "signals": {"F": "push"}, "outputs": ["x"],
       "start": {"mass": 5}}]}})");
  json["outputs"]["observe"] = {"a+b", "a_b"};
  const Written made(folder_of_pair(), json);
  const Json back = scenario_of(made.file);
  // Names that differ in signs alone have values of their own.
  ASSERT_EQ(back["signals"]["blocks"].size(), 3u) << back.dump(1);
  EXPECT_EQ(back["signals"]["blocks"][0], json["signals"]["blocks"][0]);
  EXPECT_EQ(back["signals"]["blocks"][1]["start"]["mass"], 3.0);
  EXPECT_EQ(back["signals"]["blocks"][1]["unit"], "m");
  EXPECT_EQ(back["signals"]["blocks"][2]["start"]["mass"], 5.0);
}

/// A domain that the units would not tell.
TEST(SspExport, DomainsOfPortsComeBack) {
  FmuFolder folder;
  folder.add("mass.fmu", FmuRecipe{.version = 3, .units = "none"});
  folder.add("spring.fmu", FmuRecipe{.version = 2, .library = "spring", .units = "none"});
  Json json = pair_scenario();
  for (Json& part : json["subsystems"]) part["ports"][0]["domain"] = "translation";
  const Json back = scenario_of(Written(folder, json).file);
  for (const Json& part : back["subsystems"]) {
    EXPECT_EQ(part["ports"][0]["domain"], "translation") << back.dump(1);
  }
}

TEST(SspExport, RefusesWhatConnectionsCannotSay) {
  EXPECT_TRUE(has(refusal_to_write(pair_scenario(), Plugins::refused), "give --allow-plugins"));
  Json json = pair_scenario();
  json["subsystems"].push_back(
      {{"name", "own"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}});
  json["couplings"].push_back({{"kind", "free"}, {"ports", {"own.port"}}});
  EXPECT_TRUE(has(refusal_to_write(json), "/subsystems/2: \"own\" is of the type \"mass\""))
      << refusal_to_write(json);
  json = pair_scenario();
  json["subsystems"].push_back(json["subsystems"][1]);
  json["subsystems"][2]["name"] = "other";
  json["couplings"][0]["ports"].push_back("other.flange");
  EXPECT_TRUE(has(refusal_to_write(json), "/couplings/0: a coupling \"common_flow\" of 3 ports"))
      << refusal_to_write(json);
  json["couplings"] = Json::parse(R"([
    {"kind": "connection", "ports": ["mass.flange", "other.flange"]},
    {"kind": "fixed", "ports": ["spring.F_v"]}])");
  EXPECT_TRUE(has(refusal_to_write(json), "/couplings/0: both ports take the effort"))
      << refusal_to_write(json);
  json = signal_scenario();
  json["signals"]["blocks"].push_back(
      {{"kind", "sum"}, {"name", "both"}, {"signals", {"push", "turned"}}});
  EXPECT_TRUE(
      has(refusal_to_write(json), "/signals/blocks/3: \"both\" is a block of the kind \"sum\""))
      << refusal_to_write(json);
}

/// Parts of ours as FMUs, in a package: the trajectory of the whole.
TEST(SspExport, OurPartsAsFmus) {
  FmuFolder folder;
  const auto part = [&](const std::string& name, const std::string& text, const std::string& port) {
    FmuExportOptions options;
    options.library = fmu_folder();
    options.ports = {port};
    options.fmi = name == "mass" ? 2 : 3;
    export_fmu({.text = text, .file = name, .folder = folder.path()}, options,
               folder.path() / (name + ".fmu"));
  };
  const std::string mass =
      R"({"name": "mass", "type": "mass", "parameters": {"mass_kg": 2}, "initial_state": {"position": 0.1}})";
  const std::string spring =
      R"({"name": "spring", "type": "spring", "parameters": {"stiffness_N_per_m": 400},
          "initial_state": {"elongation": 0.1}})";
  const std::string time = R"({"name": "n", "time": {"step_s": 0.01, "end_s": 2}, "subsystems": [)";
  part("mass", time + mass + "]}", "mass.port");
  part("spring",
       time + spring + R"(], "couplings": [{"kind": "fixed", "ports": ["spring.left"]}]})",
       "spring.right");
  const Json joined = Json::parse(R"({"name": "joined", "time": {"step_s": 0.01, "end_s": 2},
    "subsystems": [{"name": "mass", "type": "fmu", "path": "mass.fmu"},
                   {"name": "spring", "type": "fmu", "path": "spring.fmu"}],
    "couplings": [{"kind": "connection", "ports": ["mass.mass_port", "spring.spring_right"]}]})");
  const Written made(folder, joined);
  const auto cut = states_of(scenario_in(folder, joined));
  EXPECT_EQ(cut, states_of(load_scenario(made.file, {}, {}, Plugins::allowed)));
  // Without what portwave has noted the same couplings are found.
  std::string text = files::Archive(made.file).content("SystemStructure.ssd");
  for (std::size_t at = text.find("<ssd:Annotations>"); at != std::string::npos;
       at = text.find("<ssd:Annotations>")) {
    text.erase(at, text.find("</ssd:Annotations>", at) + 18 - at);
  }
  const auto bare =
      folder.add("bare.ssp", {{"SystemStructure.ssd", text},
                              {"resources/mass.fmu", read_text(folder.path() / "mass.fmu")},
                              {"resources/spring.fmu", read_text(folder.path() / "spring.fmu")}});
  const Scenario again =
      load_scenario(bare, {{"/time/step_s", "0.01"}, {"/time/end_s", "2"}}, {}, Plugins::allowed);
  const auto same = states_of(again);
  ASSERT_EQ(same.size(), cut.size());
  for (std::size_t i = 0; i < cut.size(); ++i) EXPECT_NEAR(same[i], cut[i], 1e-9) << i;
}

/// The program, from the package to results and to a scenario.
TEST(StructureProgram, RunsAndImports) {
  FmuFolder& folder = folder_of_pair();
  write_text(folder.path() / "pair.json", pair_scenario().dump());
  const std::string at = folder.path().string();
  const auto made =
      portwave_cli({"ssp", at + "/pair.json", "--allow-plugins", "--out", at + "/p.ssp"});
  EXPECT_EQ(made.exit_code, 0) << said(made);
  EXPECT_TRUE(has(made.err, "2 components, 2 connections")) << said(made);
  const auto run =
      portwave_cli({"run", at + "/p.ssp", "--allow-plugins", "--out", at + "/results"});
  EXPECT_EQ(run.exit_code, 0) << said(run);
  const auto direct =
      portwave_cli({"run", at + "/pair.json", "--allow-plugins", "--out", at + "/direct"});
  EXPECT_EQ(direct.exit_code, 0) << said(direct);
  EXPECT_EQ(read_text(at + "/results/trajectory.csv"), read_text(at + "/direct/trajectory.csv"));
  std::filesystem::create_directories(at + "/laid");
  const auto imported = portwave_cli(
      {"import", at + "/p.ssp", "--allow-plugins", "--out", at + "/laid/scenario.json"});
  EXPECT_EQ(imported.exit_code, 0) << said(imported);
  EXPECT_TRUE(std::filesystem::exists(at + "/laid/mass.fmu"));
  const auto last = portwave_cli(
      {"run", at + "/laid/scenario.json", "--allow-plugins", "--out", at + "/laid/results"});
  EXPECT_EQ(last.exit_code, 0) << said(last);
  EXPECT_EQ(read_text(at + "/laid/results/trajectory.csv"),
            read_text(at + "/direct/trajectory.csv"));
  // Refused: no permission; another file in the way; options of robots; checkpoints.
  const auto refused = portwave_cli({"run", at + "/p.ssp", "--out", at + "/none"});
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_TRUE(has(refused.err, "give --allow-plugins")) << said(refused);
  write_text(at + "/laid/mass.fmu", "another");
  const auto in_the_way = portwave_cli(
      {"import", at + "/p.ssp", "--allow-plugins", "--out", at + "/laid/scenario.json"});
  EXPECT_EQ(in_the_way.exit_code, 2);
  EXPECT_TRUE(has(in_the_way.err, "is another file")) << said(in_the_way);
  const auto robot = portwave_cli({"import", at + "/p.ssp", "--hold", "--out", at + "/x.json"});
  EXPECT_TRUE(has(robot.err, "--hold is for robots")) << said(robot);
  const auto kept = portwave_cli(
      {"run", at + "/p.ssp", "--allow-plugins", "--out", at + "/k", "--checkpoint-every", "10"});
  EXPECT_EQ(kept.exit_code, 2);
  EXPECT_TRUE(has(kept.err, "write one by portwave import")) << said(kept);
}

}  // namespace
}  // namespace portwave::test_ssp_export
