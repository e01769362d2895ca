// The export of scenarios as FMUs: what is refused, and systems that are cut into FMUs.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "adapters/exported_fmus.hpp"
#include "adapters/fmi/file/fmu.hpp"
#include "adapters/fmu_scenario.hpp"
#include "export/fmu/fmu_contents.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "support/files/cli_process.hpp"
#include "support/files/subprocess.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_fmu_export {
namespace {

using fmi::kDiscard;
using fmi::kOk;
using testing::Exported;
using testing::has;
using testing::oscillators;
using testing::TemporaryFolder;
using Json = nlohmann::ordered_json;

FmuExportOptions options_with(int fmi = 2) {
  FmuExportOptions options;
  options.fmi = fmi;
  options.library = testing::fmu_folder();
  return options;
}

/// What export_fmu refuses, one issue a line; "" if nothing.
std::string issues_of(const ScenarioText& scenario, const FmuExportOptions& options,
                      const std::filesystem::path& out) {
  std::string refusal;
  try {
    export_fmu(scenario, options, out);
  } catch (const ConfigError& error) {
    for (const Issue& issue : error.issues()) refusal += issue.where + ": " + issue.what + "\n";
  }
  return refusal;
}

/// The same in a folder of its own, where nothing is left beside the FMU.
std::string refusal_of(const std::string& text, const FmuExportOptions& options) {
  const TemporaryFolder folder;
  const auto out = folder.path() / "x.fmu";
  std::string refusal = issues_of({text, "test", folder.path()}, options, out);
  EXPECT_EQ(std::filesystem::exists(out), refusal.empty());
  EXPECT_EQ(std::ranges::distance(std::filesystem::directory_iterator(folder.path())),
            refusal.empty() ? 1 : 0);
  return refusal;
}

/// One part of the oscillators by itself, its port open.
std::string half(int part) {
  Json whole = Json::parse(oscillators());
  Json out = {{"name", part == 0 ? "left" : "right"}, {"time", whole["time"]}};
  out["subsystems"] = Json::array({whole["subsystems"][static_cast<std::size_t>(part)]});
  return out.dump();
}

TEST(FmuExport, TellsAllThatIsWrongAtOnce) {
  FmuExportOptions options = options_with();
  options.inputs = {"B.forse", "A.force", "A.force"};
  options.outputs = {"A.q1", "A.q7", "energy.storred"};
  options.parameters = {"A.mass", "C.mass_kg"};
  const std::string text = refusal_of(oscillators(), options);
  EXPECT_TRUE(
      has(text, "/inputs/0: the scenario has no input \"B.forse\". Did you mean \"B.force\"?"))
      << text;
  EXPECT_TRUE(has(text, "/inputs/2: \"A.force\" is named twice")) << text;
  EXPECT_TRUE(has(text, "/outputs/1: subsystem \"A\" has nothing named \"q7\"")) << text;
  EXPECT_TRUE(has(text, "/outputs/2: there is no subsystem \"energy\"")) << text;
  EXPECT_TRUE(has(text, "/parameters/0: \"A\" (duffing_oscillator): has no parameter")) << text;
  EXPECT_TRUE(has(text, "/parameters/1: ")) << text;
}

TEST(FmuExport, RefusesPortsThatAreNotOpen) {
  FmuExportOptions options = options_with();
  options.ports = {"A.coupling", "B.coupling=torque"};
  options.fmi = 1;
  const std::string text = refusal_of(oscillators(), options);
  EXPECT_TRUE(has(text, "/ports/0: \"A.coupling\" is joined by a connection")) << text;
  EXPECT_TRUE(has(text, "/ports/1: what the FMU takes is \"effort\" or \"flow\", got \"torque\""))
      << text;
  EXPECT_TRUE(has(text, "/fmi: must be 2 or 3, got 1")) << text;
}

TEST(FmuExport, TellsOfPortsThatThereAreNotWithAllElse) {
  FmuExportOptions options = options_with();
  options.ports = {"A.coupling", "A.copling", "C.end"};
  options.fmi = 5;
  const std::string text = refusal_of(half(0), options);
  EXPECT_TRUE(has(text, "/ports/1: subsystem \"A\" has no port \"copling\"")) << text;
  EXPECT_TRUE(has(text, "/ports/2: ")) << text;
  EXPECT_FALSE(has(text, "/ports/0")) << text;
  EXPECT_TRUE(has(text, "/fmi: ")) << text;
}

TEST(FmuExport, SaysWhereItCannotWrite) {
  const std::string text =
      issues_of({oscillators(), "test", "."}, options_with(), "/nowhere/x.fmu");
  EXPECT_TRUE(text.starts_with("/out: \"/nowhere/x.fmu\" cannot be written")) << text;
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << text;
  // A folder is told at once, with all else.
  const TemporaryFolder folder;
  FmuExportOptions options = options_with(7);
  const std::string other = issues_of({oscillators(), "test", "."}, options, folder.path());
  EXPECT_TRUE(
      has(other, "/out: \"" + folder.path().string() + "\" cannot be written: it is a folder"))
      << other;
  EXPECT_TRUE(has(other, "/fmi: must be 2 or 3")) << other;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FmuExport, SaysThatNoRoomIsLeftForAFirstStart) {
  const TemporaryFolder folder;
  const testing::ProcessResult result = testing::with_files_of_at_most(
      1000, {"fmu", testing::source_file("tests/fixtures/fmu/oscillators.json"), "--outputs", "A,B",
             "--out", (folder / "x.fmu").string()});
  EXPECT_EQ(result.exit_code, 2) << result.err;
  EXPECT_TRUE(has(result.err, "resources/model.json\" cannot be written: ")) << result.err;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(FmuExport, RefusesNamesThatNoDescriptionHolds) {
  for (const char* bad : {"one\x01two", "one\ntwo", "one\xff"}) {
    FmuExportOptions options = options_with();
    options.name = bad;
    options.outputs = {"A.q1", bad};
    options.ports = {bad};
    const std::string text = refusal_of(oscillators(), options);
    for (const char* where : {"/name: ", "/outputs/1: ", "/ports/0: "}) {
      EXPECT_TRUE(has(text, std::string(where) + "\"one")) << where << text;
    }
    EXPECT_FALSE(has(text, "/outputs/0")) << text;
  }
  FmuExportOptions options = options_with();
  options.name = "Zwei Schwinger, größer \"<&>\"";
  options.outputs = {"A.q1"};
  const Exported fmu(
      {oscillators(R"(, "description": "one\u0001two\nthree\u001b <&>")"), "test", "."}, options);
  EXPECT_EQ(fmu.description.name, options.name);
  EXPECT_TRUE(has(fmu.xml, "description=\"one two three  &lt;&amp;>\"")) << fmu.xml;
}

TEST(FmuExport, RefusesParametersThatDecideHowAPartIsBuilt) {
  const std::string text = R"({"name": "string", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [{"name": "s", "type": "string", "parameters": {"cells": 3, "length_m": 1.5,
      "tension_N": 20, "density_kg_per_m": 0.8}}],
    "couplings": [{"kind": "fixed", "ports": ["s.left"]}, {"kind": "fixed", "ports": ["s.right"]}]})";
  FmuExportOptions options = options_with();
  options.outputs = {"s.q1"};
  options.parameters = {"s.tension_N", "s.cells"};
  const std::string refusal = refusal_of(text, options);
  EXPECT_TRUE(has(refusal,
                  "/parameters/1: \"s.cells\" decides how the part is built: only numbers "
                  "that may change in a run can be parameters"))
      << refusal;
  EXPECT_FALSE(has(refusal, "/parameters/0")) << refusal;
  options.parameters.pop_back();
  EXPECT_EQ(refusal_of(text, options), "");
}

TEST(FmuExport, RefusesASignalWithTheNameOfTheTime) {
  const std::string text = oscillators(
      R"(, "signals": {"blocks": [{"name": "time", "kind": "expression", "expression": "-3*x",
          "signals": {"x": "A.q1"}}]})");
  FmuExportOptions options = options_with();
  options.outputs = {"A.q1", "time"};
  const std::string refusal = refusal_of(text, options);
  EXPECT_TRUE(has(refusal, "/outputs/1: \"time\" is the FMU's own name")) << refusal;
  options.outputs.pop_back();
  EXPECT_EQ(refusal_of(text, options), "");
}

TEST(FmuExport, FindsALibraryThatIsLoadedUnderAnotherName) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer has to be loaded first";
#endif
  const TemporaryFolder folder;
  const auto needed = exported::Engine(testing::fmu_folder() / "portwave_fmu.so").companions();
  ASSERT_FALSE(needed.empty());
  std::filesystem::copy_file(needed[0].file, folder / "another_name.so");
  const std::filesystem::path out = folder / "x.fmu";
  const testing::ProcessResult result = testing::run_process(
      {"/usr/bin/env", "LD_PRELOAD=" + (folder / "another_name.so").string(), PORTWAVE_CLI, "fmu",
       testing::source_file("tests/fixtures/fmu/oscillators.json"), "--out", out.string()});
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const files::Archive archive(out);
  for (const exported::Member& own : needed) {
    const std::string name = "binaries/" + fmi::platform_of(fmi::Version::v2) + "/" + own.name;
    EXPECT_EQ(archive.content(name).size(), std::filesystem::file_size(own.file)) << name;
  }
}

TEST(FmuExport, RefusesWhatNoFmuCanHold) {
  FmuExportOptions options = options_with();
  const std::string fmu = R"({"name": "x", "time": {"step_s": 0.1, "end_s": 1},
    "subsystems": [{"name": "a", "type": "fmu", "path": "a.fmu"}], "plugins": ["b.so"],
    "signals": {"blocks": [{"name": "c", "kind": "fmu", "path": "c.fmu"}]}})";
  options.ports = {"a.F_v"};
  const std::string text = refusal_of(fmu, options);
  EXPECT_TRUE(has(text, "/plugins: plugins cannot go into an FMU")) << text;
  EXPECT_TRUE(has(text, "/subsystems/0: an FMU cannot hold another FMU")) << text;
  EXPECT_TRUE(has(text, "/signals/blocks/0: an FMU cannot hold another FMU")) << text;
}

TEST(FmuExport, TellsDefectsOfTheScenarioAsOthersDo) {
  std::string text = oscillators();
  text.replace(text.find("\"mass_kg\": 8"), 12, "\"mass_kg\": -8");
  EXPECT_TRUE(has(refusal_of(text, options_with()), "/subsystems/0/parameters/mass_kg")) << text;
  EXPECT_TRUE(has(refusal_of("{", options_with()), ": ")) << text;
}

TEST(FmuExport, NeedsItsLibrary) {
  FmuExportOptions options = options_with();
  options.library = "/nowhere";
  EXPECT_TRUE(has(refusal_of(oscillators(), options),
                  "/library: portwave_fmu.so was not found in \"/nowhere\""));
  const TemporaryFolder folder;
  testing::write_text(folder / "portwave_fmu.so", "no library");
  options.library = folder.path();
  EXPECT_TRUE(has(refusal_of(oscillators(), options), "/library: "))
      << refusal_of(oscillators(), options);
  EXPECT_TRUE(has(refusal_of(oscillators(), options), "cannot be loaded"));
}

TEST(FmuExport, TakesFilesAlongAndRefusesThoseElsewhere) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "tables");
  testing::write_text(folder / "tables/force.csv", "time_s,value\n0,0\n1,5\n");
  std::string text = oscillators();
  const std::string constant = R"({"kind": "constant", "value": 1.5})";
  const auto with = [&](const std::string& input) {
    return std::string(text).replace(text.find(constant), constant.size(), input);
  };
  FmuExportOptions options = options_with();
  options.outputs = {"B.q2"};
  const std::string table = with(R"({"kind": "table", "file": "tables/force.csv"})");
  const Exported fmu({table, "test", folder.path()}, options);
  EXPECT_EQ(fmu.done.outputs, 1U);
  EXPECT_EQ(fmu.done.inputs, 0U);
  EXPECT_TRUE(fmu.done.notes.empty());
  const auto raw = fmu.started();
  const Scenario scenario = parse_scenario(table, "test", folder.path());
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(100);
  ASSERT_EQ(raw->step(0.0, 1.0), kOk) << raw->log;
  EXPECT_EQ(raw->value(fmu["B.q2"]), observe(stepper, find_quantity(stepper, "B.q2")));
  EXPECT_GT(std::abs(raw->value(fmu["B.q2"])), 1e-3);
  // The importer may drive it in its place.
  options.inputs = {"B.force"};
  const Exported driven(
      {table, "test", folder.path(), {{"/time/start_s", "0.5"}, {"/time/end_s", "10.5"}}}, options);
  EXPECT_TRUE(has(driven.xml, "start=\"2.5\"")) << driven.xml;
}

TEST(FmuExport, RefusesFilesThatItsResourcesCouldNotName) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "tables");
  for (const char* name : {"tables/force.csv", "..force.csv", "back\\slash.csv"}) {
    testing::write_text(folder / name, "time_s,value\n0,0\n1,5\n");
  }
  const std::string constant = R"({"kind": "constant", "value": 1.5})";
  const auto refusal = [&](const std::string& file) {
    std::string text = oscillators();
    const Json table = {{"kind", "table"}, {"file", file}};
    text.replace(text.find(constant), constant.size(), table.dump());
    return issues_of({text, "test", folder.path()}, options_with(), folder / "x.fmu");
  };
  const std::string place = "/subsystems/1/inputs/force/file: ";
  for (const std::string& bad :
       {(folder / "tables/force.csv").string(), std::string("tables/../tables/force.csv"),
        std::string("../elsewhere.csv"), std::string("/dev/null")}) {
    const std::string text = refusal(bad);
    EXPECT_TRUE(text.starts_with(place)) << text;
    EXPECT_TRUE(has(text, "give its path relative to the folder of the scenario")) << text;
    EXPECT_FALSE(has(text, "--allow")) << text;
  }
  EXPECT_TRUE(has(refusal("back\\slash.csv"), place)) << refusal("back\\slash.csv");
  EXPECT_FALSE(std::filesystem::exists(folder / "x.fmu"));
  for (const char* good : {"tables/force.csv", "./tables/force.csv", "..force.csv"}) {
    EXPECT_EQ(refusal(good), "") << good;
  }
}

TEST(FmuExport, TakesThePlaceOfNoFileThatGoesIntoIt) {
  const TemporaryFolder folder;
  const std::string table = "time_s,value\n0,0\n1,5\n";
  testing::write_text(folder / "force.csv", table);
  std::filesystem::create_hard_link(folder / "force.csv", folder / "same.csv");
  std::string text = oscillators();
  const std::string constant = R"({"kind": "constant", "value": 1.5})";
  text.replace(text.find(constant), constant.size(), R"({"kind": "table", "file": "force.csv"})");
  for (const char* name : {"force.csv", "same.csv"}) {
    const std::string refusal =
        issues_of({text, "test", folder.path()}, options_with(), folder / name);
    EXPECT_TRUE(refusal.starts_with("/out: ")) << refusal;
    EXPECT_TRUE(has(refusal, "it is a file that goes into the FMU")) << refusal;
    EXPECT_EQ(testing::read_text(folder / name), table);
  }
  EXPECT_EQ(issues_of({text, "test", folder.path()}, options_with(), folder / "x.fmu"), "");
}

TEST(FmuExport, IsTheSameTwice) {
  const TemporaryFolder folder;
  for (const char* name : {"a.fmu", "b.fmu"}) {
    export_fmu({oscillators(), "test", "."}, options_with(3), folder / name);
  }
  EXPECT_TRUE(testing::read_text(folder / "a.fmu") == testing::read_text(folder / "b.fmu"));
  // Of no date: midnight of 1 January 1980 in the first header, behind signature, version, flags and method.
  EXPECT_EQ(testing::read_text(folder / "a.fmu").substr(10, 4), std::string("\0\0\x21\0", 4));
}

/// With a controller that drives the force.
std::string controlled() {
  std::string text = oscillators(
      R"(, "signals": {"every": 2, "blocks": [{"name": "law", "kind": "expression", "expression": "-3*x",
          "signals": {"x": "A.q1"}}]})");
  const std::string constant = R"({"kind": "constant", "value": 1.5})";
  return text.replace(text.find(constant), constant.size(),
                      R"({"kind": "signal", "signal": "law"})");
}

TEST(FmuExport, StepsWithSignalsByWholeSteps) {
  FmuExportOptions options = options_with();
  options.outputs = {"law", "A.q1", "B.q2"};
  const Exported fmu({controlled(), "test", "."}, options);
  EXPECT_FALSE(fmu.description.takes_any_step);
  ASSERT_EQ(fmu.done.notes.size(), 1U);
  EXPECT_TRUE(has(fmu.done.notes[0], "whole numbers of the macro-step, 0.01 s"))
      << fmu.done.notes[0];
  EXPECT_EQ(fmu.done.inputs, 0U);  // the force is driven
  const auto raw = fmu.started();
  EXPECT_EQ(raw->step(0.0, 0.005), kDiscard);
  EXPECT_TRUE(has(raw->log, "whole numbers of macro-steps of 0.01 s")) << raw->log;
  EXPECT_EQ(raw->step(0.0, 0.04), kOk);
  const Scenario scenario = parse_scenario(controlled(), "test", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(4);
  for (const char* name : {"law", "B.q2"}) {
    EXPECT_EQ(raw->value(fmu[name]), observe(stepper, find_quantity(stepper, name))) << name;
  }
}

TEST(FmuExport, LetsTheImporterDriveWhatAControllerDrove) {
  FmuExportOptions options = options_with();
  options.inputs = {"B.force"};
  options.outputs = {"B.v2"};
  const Exported fmu({controlled(), "test", "."}, options);
  const auto pushed = fmu.started(), left = fmu.started();
  ASSERT_EQ(pushed->set({fmu["B.force"]}, {100.0}), kOk);
  ASSERT_EQ(pushed->step(0.0, 0.02), kOk);
  ASSERT_EQ(left->step(0.0, 0.02), kOk);
  EXPECT_NEAR(pushed->value(fmu["B.v2"]) - left->value(fmu["B.v2"]), 100.0 * 0.02 / 4.0, 1e-2);
}

TEST(FmuExport, AStepThatFailsMidwayStandsAsTheStandardSays) {
  // The force of A is without bounds from 40 ms on.
  std::string text = oscillators();
  const std::string start = "\"initial_state\"";
  text.insert(text.find(start), R"("inputs": {"force": {"kind": "table",
      "knots": [[0, 0], [0.04, 0], [0.04, 1e300], [1, 1e300]]}}, )");
  for (const int fmi : {2, 3}) {
    FmuExportOptions options = options_with(fmi);
    options.outputs = {"A.q1", "energy.stored"};
    const Exported fmu({text, "test", "."}, options);
    const auto raw = fmu.started(), other = fmu.started();
    ASSERT_EQ(raw->step(0.0, 0.02), kOk);
    ASSERT_EQ(other->step(0.0, fmi == 2 ? 0.04 : 0.02), kOk);
    EXPECT_EQ(raw->step(0.02, 0.05), kDiscard);
    EXPECT_TRUE(has(raw->log, "failed in step 4")) << raw->log;
    // FMI 2 goes on from the last time that succeeded; by FMI 3 the step has not happened.
    for (const char* name : {"time", "A.q1", "energy.stored"}) {
      EXPECT_EQ(raw->value(fmu[name]), other->value(fmu[name])) << fmi << ' ' << name;
    }
    EXPECT_EQ(raw->value(fmu["time"]), fmi == 2 ? 0.04 : 0.02);
    EXPECT_EQ(raw->last_s, fmi == 3 ? 0.02 : -1.0);
  }
}

TEST(FmuExport, StepsOfChosenSizeEndWhereTheImporterSays) {
  std::string text = oscillators();
  const std::string time = R"({"step_s": 0.01, "end_s": 10})";
  text.replace(text.find(time), time.size(),
               R"({"step": {"kind": "adaptive", "tolerance": 1e-8}, "end_s": 10})");
  FmuExportOptions options = options_with(3);
  options.outputs = {"A.q1"};
  const Exported fmu({text, "test", "."}, options);
  EXPECT_TRUE(fmu.description.takes_any_step);
  const Scenario scenario = parse_scenario(text, "test", ".");
  Stepper stepper(scenario.system, scenario.options);
  const auto raw = fmu.started();
  for (const double end_s : {0.3, 0.37, 2.0}) {
    ASSERT_EQ(raw->step(stepper.time_s(), end_s - stepper.time_s()), kOk) << raw->log;
    stepper.run_until(end_s);
    EXPECT_EQ(raw->value(fmu["A.q1"]), observe(stepper, find_quantity(stepper, "A.q1")));
    EXPECT_EQ(raw->value(fmu["time"]), end_s);
  }
  // Beyond the scenario's end, too.
  EXPECT_EQ(raw->step(2.0, 10.0), kOk) << raw->log;
}

// Cuts.

std::string coupled(const std::string& first, const std::string& second) {
  return R"({"name": "coupled", "time": {"step_s": 0.01, "end_s": 10},
    "subsystems": [{"name": "A", "type": "fmu", "path": ")" +
         first + R"("}, {"name": "B", "type": "fmu", "path": ")" + second + R"("}],
    "couplings": [{"kind": "connection", "ports": ["A.A_coupling", "B.B_coupling"]}],
    "method": {"kind": "auto", "tolerance": 1e-10}})";
}

struct Worst {
  double q1 = 0.0, q2 = 0.0;
};

void write_half(const std::string& text, const char* port, int fmi,
                const std::filesystem::path& to) {
  FmuExportOptions options = options_with(fmi);
  options.ports = {port};
  export_fmu({text, "test", "."}, options, to);
}

/// How far two FMUs in a folder are from the whole system over 5 s.
Worst distance_from_whole(const TemporaryFolder& folder, const std::string& left,
                          const std::string& right) {
  const Scenario cut =
      parse_scenario(coupled(left, right), "cut", folder.path(), {}, {}, Plugins::allowed);
  const Scenario whole = parse_scenario(
      oscillators(R"(, "method": {"kind": "auto", "tolerance": 1e-10})"), "whole", ".");
  Stepper a(cut.system, cut.options), b(whole.system, whole.options);
  const Quantity q1 = find_quantity(a, "A.A_q1"), q2 = find_quantity(a, "B.B_q2");
  Worst worst;
  for (int n = 0; n < 500; ++n) {
    a.step();
    b.step();
    worst.q1 = std::max(worst.q1, std::abs(observe(a, q1) - b.state(0)[0]));
    worst.q2 = std::max(worst.q2, std::abs(observe(a, q2) - b.state(1)[0]));
  }
  EXPECT_EQ(a.iterations().not_converged, 0);
  return worst;
}

TEST(FmuCut, GivesTheTrajectoryOfTheWhole) {
  const TemporaryFolder folder;
  for (const int fmi : {2, 3}) {
    write_half(half(0), "A.coupling", fmi, folder / ("left" + std::to_string(fmi)));
    write_half(half(1), "B.coupling", fmi, folder / ("right" + std::to_string(fmi)));
  }
  // The same equations of the step, solved to the tolerance of the coupling.
  for (const auto& [left, right] :
       {std::pair{"left2", "right2"}, {"left3", "right3"}, {"left2", "right3"}}) {
    const Worst worst = distance_from_whole(folder, left, right);
    EXPECT_LT(worst.q1, 1e-6) << left << ' ' << right;
    EXPECT_LT(worst.q2, 1e-6) << left << ' ' << right;
  }
  // A mass that is a four-hundredth larger is noticed.
  std::string other = half(1);
  const std::string mass = "\"mass_kg\":4";
  other.replace(other.find(mass), mass.size(), "\"mass_kg\":4.01");
  write_half(other, "B.coupling", 2, folder / "other");
  EXPECT_GT(distance_from_whole(folder, "left2", "other").q2, 1e-5);
}

TEST(FmuPort, IsDeclaredAsAPowerPort) {
  FmuExportOptions options = options_with(3);
  options.ports = {"A.coupling"};
  const Exported fmu({half(0), "test", "."}, options);
  const files::Archive archive(fmu.file);
  const auto terminals =
      fmi::read_terminals(archive.content("terminalsAndIcons/terminalsAndIcons.xml"));
  ASSERT_EQ(terminals.size(), 1U);
  EXPECT_EQ(terminals[0].name, "A.coupling");
  // In mechanics the flow of a terminal is the force.
  EXPECT_EQ(terminals[0].flow, "A.coupling.effort");
  EXPECT_EQ(terminals[0].effort, "A.coupling.flow");
  const fmi::Variable* const integral =
      fmu.description.integral_of(*fmu.description.find("A.coupling.effort"));
  const fmi::Variable* const other =
      fmu.description.integral_of(*fmu.description.find("A.coupling.flow"));
  ASSERT_NE(integral != nullptr, other != nullptr);
  EXPECT_EQ((integral != nullptr ? integral : other)->role, fmi::Role::output);
}

TEST(FmuPort, HasUnitsOfItsIntegralsInAllDomains) {
  using exported::Variable;
  for (const Domain domain :
       {Domain::generic, Domain::translation, Domain::rotation, Domain::electrical,
        Domain::magnetic, Domain::hydraulic, Domain::thermal}) {
    for (const bool is_effort : {true, false}) {
      const std::string unit(is_effort ? units(domain).effort : units(domain).flow);
      const std::string integral = exported::integral_unit(unit);
      ASSERT_EQ(integral.empty(), unit.empty());
      if (unit.empty()) continue;
      exported::ExportedModel model;
      model.name = "units";
      model.step_s = 0.1;
      model.variables = {{.kind = Variable::Kind::time, .name = "time", .unit = "s"},
                         {.name = "rate", .unit = unit},
                         {.name = "integral", .unit = integral}};
      const fmi::ModelDescription description =
          fmi::read_model_description(exported::model_description(model, {}));
      const fmi::Unit* const rate = description.unit_of(*description.find("rate"));
      const fmi::Unit* const sum = description.unit_of(*description.find("integral"));
      ASSERT_TRUE(rate != nullptr && sum != nullptr) << unit << " and " << integral;
      auto powers = rate->powers;
      powers[2] += 1;  // s
      EXPECT_EQ(sum->powers, powers) << unit << " and " << integral;
    }
  }
}

TEST(FmuPort, IsTellingWhereNoDescriptionKnowsIt) {
  const auto notes = [](const char* domain, int fmi) {
    FmuExportOptions options = options_with(fmi);
    options.ports = {"source.port"};
    const std::string text =
        R"({"name": "source", "time": {"step_s": 0.01, "end_s": 1}, "subsystems": [
          {"name": "source", "type": "effort_source", "parameters": {"domain": ")" +
        std::string(domain) + R"("}}]})";
    return Exported({text, "test", "."}, options).done.notes;
  };
  for (const char* domain : {"thermal", "magnetic", "generic"}) {
    const auto of_2 = notes(domain, 2);
    ASSERT_EQ(of_2.size(), 1U) << domain;
    EXPECT_TRUE(has(of_2[0], "the port source.port (" + std::string(domain) + ") is not declared"))
        << of_2[0];
    EXPECT_TRUE(notes(domain, 3).empty()) << domain;
  }
  EXPECT_TRUE(notes("electrical", 2).empty());
}

TEST(FmuPort, TakesWhatItsEndLeavesOpen) {
  const auto with_end = [](const char* kind) {
    return R"({"name": "end", "time": {"step_s": 0.01, "end_s": 1}, "subsystems":
      [{"name": "m", "type": "mass", "parameters": {"mass_kg": 2}}],
      "couplings": [{"kind": ")" +
           std::string(kind) + R"(", "ports": ["m.port"]}]})";
  };
  FmuExportOptions options = options_with();
  options.ports = {"m.port"};
  options.outputs = {"m.velocity"};
  // A force of 3 N on 2 kg for 1 s. The flow of the port of a mass is minus its velocity.
  const Exported force({with_end("free"), "test", "."}, options);
  const auto pushed = force.started();
  ASSERT_EQ(pushed->set({force["m.port.effort"]}, {3.0}), kOk);
  ASSERT_EQ(pushed->step(0.0, 1.0), kOk) << pushed->log;
  EXPECT_NEAR(pushed->value(force["m.velocity"]), -1.5, 1e-12);
  EXPECT_NEAR(pushed->value(force["m.port.flow_integral"]), 0.75, 1e-12);
  EXPECT_NEAR(pushed->value(force["m.port.flow"]), 1.4925,
              1e-12);  // in the middle of the last step
  // A velocity: what is asked for goes before the end.
  options.ports = {"m.port=flow"};
  const Exported velocity({with_end("free"), "test", "."}, options);
  const auto led = velocity.started();
  ASSERT_EQ(led->set({velocity["m.port.flow"]}, {0.5}), kOk);
  ASSERT_EQ(led->step(0.0, 0.5), kOk) << led->log;
  EXPECT_NEAR(led->value(velocity["m.velocity"]), -0.5, 1e-12);
  EXPECT_EQ(velocity.description.find("m.port.effort")->role, fmi::Role::output);
}

}  // namespace
}  // namespace portwave::test_fmu_export
