// Scenarios of FMUs as packages of a system structure, and back: the same scenario, and the same bits.

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/exported_fmus.hpp"
#include "adapters/structure_texts.hpp"
#include "portwave/runtime/export/ssp_export.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/cli_process.hpp"

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
    {"kind": "sine", "name": "push", "amplitude": 2, "frequency_Hz": 1},
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
      for (const auto& [name, value] : nlohmann::json(own["start"]).items()) {
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
  EXPECT_NE(states_of(scenario_in(folder_of_pair(), other)), states_of(again));
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
  const fmi::FmuArchive archive(made.file);
  std::string text = archive.content("SystemStructure.ssd");
  const std::size_t at = text.find("factor=\"-1\"");
  ASSERT_NE(at, std::string::npos) << text;
  std::vector<ZipMember> members;
  for (const char* const name : {"resources/mass.fmu", "resources/spring.fmu",
                                 "parameters/mass.ssv", "parameters/spring.ssv"}) {
    members.push_back({name, archive.content(name)});
  }
  text.replace(at, 11, "factor=\"1\"");
  text.replace(text.find("startConnector=\"v\""), 0, "");
  members.push_back({"SystemStructure.ssd", text});
  FmuFolder folder;
  const StructureScenario changed = structure_of(folder.add("changed.ssp", members));
  EXPECT_TRUE(has(notes_of(changed), "is not that of the connections: these are taken"))
      << notes_of(changed);
  EXPECT_FALSE(has(changed.text, "common_flow"));
}

TEST(SspExport, RefusesWhatConnectionsCannotSay) {
  const auto refusal = [](const Json& json, Plugins plugins = Plugins::allowed) {
    try {
      Written(folder_of_pair(), json, plugins);
    } catch (const ScenarioError& error) {
      return error.report();
    }
    return std::string();
  };
  EXPECT_TRUE(has(refusal(pair_scenario(), Plugins::refused), "give --allow-plugins"));
  Json json = pair_scenario();
  json["subsystems"].push_back(
      {{"name", "own"}, {"type", "mass"}, {"parameters", {{"mass_kg", 1}}}});
  json["couplings"].push_back({{"kind", "free"}, {"ports", {"own.port"}}});
  EXPECT_TRUE(has(refusal(json), "/subsystems/2: \"own\" is of the type \"mass\""))
      << refusal(json);
  json = pair_scenario();
  json["subsystems"].push_back(json["subsystems"][1]);
  json["subsystems"][2]["name"] = "other";
  json["couplings"][0]["ports"].push_back("other.flange");
  EXPECT_TRUE(has(refusal(json), "/couplings/0: a coupling \"common_flow\" of 3 ports"))
      << refusal(json);
  json["couplings"] = Json::parse(R"([
    {"kind": "connection", "ports": ["mass.flange", "other.flange"]},
    {"kind": "fixed", "ports": ["spring.F_v"]}])");
  EXPECT_TRUE(has(refusal(json), "/couplings/0: both ports take the effort")) << refusal(json);
  json = signal_scenario();
  json["signals"]["blocks"].push_back(
      {{"kind", "sum"}, {"name", "both"}, {"signals", {"push", "turned"}}});
  EXPECT_TRUE(has(refusal(json), "/signals/blocks/3: \"both\" is a block of the kind \"sum\""))
      << refusal(json);
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
  std::string text = fmi::FmuArchive(made.file).content("SystemStructure.ssd");
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
