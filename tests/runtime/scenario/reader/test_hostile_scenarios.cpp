// Scenarios and settings that somebody else has made up: they are read in the time and memory that
// they deserve, and read nothing but what lies beside them.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_hostile_scenarios {
namespace {

using testing::base_text;
using testing::issues_of;
using testing::lines_of;
using testing::TemporaryFolder;
using testing::write_text;
using Json = nlohmann::json;
using Lines = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

Json pair_scenario() {
  return Json::parse(R"({
    "name": "pair", "time": {"step_s": 0.01, "steps": 2}, "method": {"kind": "auto"},
    "subsystems": [
      {"name": "a", "type": "mass", "parameters": {"mass_kg": 1}},
      {"name": "b", "type": "mass", "parameters": {"mass_kg": 2}}],
    "couplings": [{"kind": "common_flow", "ports": ["a.port", "b.port"]}]})");
}

// What makes the text of an issue long, and what is wrong behind it, is told up to a limit; more of it
// costs nothing.
TEST(HostileScenario, WhatWouldNotBeToldIsNotRead) {
  Json scenario = pair_scenario();
  for (int i = 0; i < 20'000; ++i) scenario["subsystems"].push_back(Json::object());
  std::int64_t read = 0;
  const auto count = [&](const Phase& phase) { read = std::max(read, phase.item); };
  try {
    (void)parse_scenario(scenario.dump(), "many.json", ".", {}, count);
    ADD_FAILURE() << "accepted";
  } catch (const ScenarioError& error) {
    EXPECT_GE(error.issues().size(), 1000U);
  }
  EXPECT_GT(read, 300);
  EXPECT_LT(read, 2000);
}

TEST(HostileSettings, PointersLeadNoDeeperThanDocuments) {
  const auto told = [](int levels) {
    std::string pointer;
    for (int i = 0; i < levels; ++i) pointer += "/a";
    return lines_of(issues_of(base_text(), {{pointer, "1"}}));
  };
  const Lines deep = told(60'000);
  ASSERT_EQ(deep.size(), 1U);
  EXPECT_TRUE(deep[0].ends_with("leads deeper than 64 levels")) << deep[0];
  EXPECT_LT(deep[0].size(), 400U);
  // Control: at the limit it is the place that is wrong.
  const Lines shallow = told(64);
  ASSERT_EQ(shallow.size(), 1U);
  EXPECT_TRUE(contains(shallow[0], "does not fit: the file has no key \"a\"")) << shallow[0];
}

TEST(HostileSettings, AParameterThatNothingUsesIsNotMade) {
  Json scenario = pair_scenario();
  scenario["parameters"] = {{"weight", 3}};
  scenario["subsystems"][0]["parameters"]["mass_kg"] = {{"parameter", "weight"}};
  const auto told = [&](const std::string& pointer) {
    try {
      (void)parse_scenario(scenario.dump(), "pair.json", ".", {{pointer, "5"}});
    } catch (const ScenarioError& error) {
      return lines_of(error.issues());
    }
    return Lines{};
  };
  EXPECT_EQ(told("/parameters/wieght"),
            (Lines{"/parameters/wieght: --set does not fit: /parameters has no key \"wieght\". Did "
                   "you mean \"weight\"?"}));
  EXPECT_EQ(told("/parameters/weight"), Lines{});
  EXPECT_EQ(told("/description"), (Lines{"/description: must be a string, got 5"}));  // may be new
}

TEST(HostileScenario, NamesDoNotTakeTheMeaningOfNumbersAndFunctions) {
  Json scenario = pair_scenario();
  scenario["parameters"] = {{"pi", 3}, {"sin", 1}, {"pin", 2}};
  scenario["subsystems"][0]["parameters"]["mass_kg"] = {{"expression", "pi*pin"}};
  scenario["couplings"][0]["for"] = {{"exp", {0, 0}}};
  try {
    (void)parse_scenario(scenario.dump(), "pair.json", ".");
    ADD_FAILURE() << "accepted";
  } catch (const ScenarioError& error) {
    // In the order of the file, whose keys are sorted.
    EXPECT_EQ(lines_of(error.issues()),
              (Lines{"/couplings/0/for/exp: \"exp\" has a meaning of its own in expressions",
                     "/parameters/pi: \"pi\" has a meaning of its own in expressions",
                     "/parameters/sin: \"sin\" has a meaning of its own in expressions"}));
  }
}

TEST(HostileScenario, AssembliesThatNothingUsesAreNoted) {
  Json scenario = pair_scenario();
  const Json parts = Json::parse(R"([{"name": "m", "type": "no such type"}])");
  scenario["assemblies"] = {
      {"spare", {{"subsystems", parts}}},
      {"used", {{"subsystems", scenario["subsystems"]}, {"couplings", scenario["couplings"]}}}};
  scenario["subsystems"] = Json::parse(R"([{"name": "u", "assembly": "used"}])");
  scenario.erase("couplings");
  const auto notes_of_assemblies = [&scenario] {
    Lines notes = lines_of(parse_scenario(scenario.dump(), "pair.json", ".").notes);
    std::erase_if(notes, [](const std::string& note) { return !note.starts_with("/assemblies"); });
    return notes;
  };
  EXPECT_EQ(notes_of_assemblies(),
            (Lines{"/assemblies/spare: is not used, so its contents were not checked"}));
  scenario["assemblies"].erase("spare");
  EXPECT_EQ(notes_of_assemblies(), Lines{});
}

/// A folder with a scenario's folder in it, and a table in each.
struct Folders {
  TemporaryFolder outer;
  std::filesystem::path own = outer / "own";

  Folders() {
    std::filesystem::create_directory(own);
    std::filesystem::create_directory(own / "below");
    for (const std::filesystem::path& folder : {outer.path(), own, own / "below"}) {
      write_text(folder / "table.csv", "0,1\n1,2\n");
    }
    std::filesystem::create_symlink(outer / "table.csv", own / "link.csv");
    std::filesystem::create_directory_symlink(outer.path(), own / "up");
    std::filesystem::create_symlink(own / "table.csv", own / "inner.csv");
    std::filesystem::create_symlink(own / "round.csv", own / "round.csv");
  }

  /// What is wrong where an input is this table.
  Lines told(const std::string& name, OutsideFiles outside = OutsideFiles::refused) const {
    Json scenario = pair_scenario();
    scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", name}};
    try {
      (void)parse_scenario(scenario.dump(), "pair.json", own, {}, {}, Plugins::refused, outside);
    } catch (const ScenarioError& error) {
      return lines_of(error.issues());
    }
    return {};
  }
};

// Where nothing of a relative path is there, it is the file that is missing.
TEST(HostileScenario, AMissingTableIsMissingAndNotOutside) {
  Json scenario = pair_scenario();
  for (const char* const name : {"no_such_table.csv", "no_such_folder/table.csv"}) {
    for (const char* const folder : {"", ".", "no_such_place"}) {
      scenario["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"file", name}};
      Lines told;
      try {
        (void)parse_scenario(scenario.dump(), "pair.json", folder);
      } catch (const ScenarioError& error) {
        told = lines_of(error.issues());
      }
      ASSERT_EQ(told.size(), 1U) << name;
      EXPECT_TRUE(contains(told[0], "cannot be opened")) << told[0];
    }
  }
}

TEST(HostileScenario, FilesLieInItsFolder) {
  const Folders folders;
  const std::vector<std::string> inside = {"table.csv", "below/table.csv", "below/../table.csv",
                                           "inner.csv", (folders.own / "table.csv").string()};
  const std::vector<std::string> outside = {
      "../table.csv", "below/../../table.csv", "link.csv",
      "up/table.csv", "up/own/../table.csv",   (folders.outer / "table.csv").string()};
  for (const std::string& name : inside) EXPECT_EQ(folders.told(name), Lines{}) << name;
  for (const std::string& name : outside) {
    const Lines told = folders.told(name);
    ASSERT_EQ(told.size(), 1U) << name;
    EXPECT_TRUE(contains(told[0], "lies outside of the folder of the scenario")) << told[0];
    EXPECT_TRUE(contains(told[0], "--allow-outside-files")) << told[0];
    EXPECT_EQ(folders.told(name, OutsideFiles::allowed), Lines{}) << name;
  }
  for (const char* const name : {"/etc/passwd", "/dev/zero", "/proc/self/environ", "round.csv",
                                 "../../../../../../etc/passwd"}) {
    const Lines told = folders.told(name);
    ASSERT_EQ(told.size(), 1U) << name;
    EXPECT_TRUE(contains(told[0], "outside")) << told[0];
    EXPECT_FALSE(contains(told[0], "root:")) << told[0];
  }
}

TEST(HostileScenario, MatricesLieInItsFolderToo) {
  const Folders folders;
  write_text(folders.outer / "M.mtx", "%%MatrixMarket matrix array real general\n1 1\n2\n");
  Json scenario = pair_scenario();
  scenario["subsystems"][1] = Json::parse(R"({"name": "b", "type": "second_order_system",
    "parameters": {"coordinates": {"count": 1, "name": "q"}, "M": {"file": "../M.mtx"}, "K": [[1]],
      "B": [[1]], "ports": [{"name": "port", "domain": "translation", "causality": "effort_in"}]}})");
  const auto read = [&](OutsideFiles outside) {
    return parse_scenario(scenario.dump(), "pair.json", folders.own, {}, {}, Plugins::refused,
                          outside);
  };
  EXPECT_NO_THROW((void)read(OutsideFiles::allowed));
  EXPECT_THROW((void)read(OutsideFiles::refused), ScenarioError);
}

}  // namespace
}  // namespace portwave::test_hostile_scenarios
