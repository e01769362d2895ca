// portwave study
#ifdef PORTWAVE_CLI

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <sstream>
#include <thread>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_study {
namespace {

using Json = nlohmann::json;
using testing::command;
using testing::contains;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::Subprocess;
using testing::TemporaryFolder;
using testing::with_files_of_at_most;
using testing::Words;
using testing::operator+;

TEST(CliStudy, PrintsAnAlignedTable) {
  const ProcessResult result = portwave_cli({"study", "budget", kPair, "--budgets", "0,3,20"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(result.err, "");
  std::istringstream in(result.out);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), 4u) << said(result);
  for (const std::string& line : lines) EXPECT_EQ(line.size(), lines[0].size()) << said(result);
  // Source: arXiv 2603.16424 benchmark, independently recomputed.
  EXPECT_TRUE(contains(lines[1], " 0.369612 ")) << said(result);
  EXPECT_TRUE(contains(lines[2], " 0.795971 ")) << said(result);
  EXPECT_TRUE(contains(lines[3], " 8.45320e-05 ")) << said(result);
}

TEST(CliStudy, WritesRowsAsJson) {
  const TemporaryFolder folder;
  const Words line = {"study",   "budget", kPair,    "--budgets", "0,3",
                      "--steps", "50",     "--json", "--out",     (folder / "out").string()};
  const ProcessResult result = portwave_cli(line);
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), (Words{"budget.csv", "study.json"}));
  EXPECT_EQ(read_text(folder / "out/study.json"), result.out);
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1]["status"], "holds");
  for (const char* key : {"iterations", "rms", "max", "final", "max_passivity_residual_J",
                          "max_augmented_residual_J", "min_fne_margin", "max_energy_ratio"}) {
    EXPECT_TRUE(rows[1][key].is_number()) << key;
  }
  EXPECT_EQ(rows[0]["iterations"], 0);
  EXPECT_EQ(rows[1]["iterations"], 3);

  const ProcessResult threaded = portwave_cli(line + Words{"--threads", "2"});
  EXPECT_EQ(threaded.out, result.out);
}

TEST(CliStudy, CombinesTheAxes) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli({"study", "budget", kPair, "--budgets", "2,4", "--steps", "20", "--json",
                    "--methods", "douglas-rachford,peaceman-rachford", "--impedances",
                    "uniform,matched", "--guard", "on,off", "--out", folder.path().string()});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  std::vector<std::string> seen;
  for (const Json& row : Json::parse(result.out)) {
    seen.push_back(row["method"].get<std::string>() + " " + row["impedance"].get<std::string>() +
                   (row["guard"].get<bool>() ? " on " : " off ") + row["iterations"].dump());
  }
  std::vector<std::string> expected;
  for (const std::string method : {"douglas-rachford", "peaceman-rachford"}) {
    for (const std::string impedance : {"uniform", "matched"}) {
      for (const std::string guard : {"on", "off"}) {
        for (const std::string budget : {"2", "4"}) {
          expected.push_back(method + " " + impedance + " " + guard + " " + budget);
        }
      }
    }
  }
  EXPECT_EQ(seen, expected);

  std::istringstream table(read_text(folder / "budget.csv"));
  std::vector<std::string> lines;
  for (std::string line; std::getline(table, line);) lines.push_back(line);
  ASSERT_EQ(lines.size(), expected.size() + 1);
  for (const std::string& line : lines) {
    EXPECT_EQ(std::count(line.begin(), line.end(), ','), 13) << line;
  }
  EXPECT_TRUE(lines[1].starts_with("douglas-rachford,uniform,on,2,")) << lines[1];
}

TEST(CliStudy, AnAxisThatIsNotGivenIsTheScenarios) {
  const Words line = {"study", "budget", kPair, "--budgets", "3", "--steps", "20", "--json"};
  const ProcessResult plain = portwave_cli(line);
  const ProcessResult spelt_out = portwave_cli(
      line + Words{"--methods", "douglas-rachford", "--impedances", "uniform", "--guard", "off"});
  EXPECT_EQ(plain.out, spelt_out.out);
  const Json rows = Json::parse(plain.out);
  EXPECT_EQ(rows[0]["guard"], false);
  EXPECT_EQ(rows[0]["impedance"], "uniform");
}

TEST(CliStudy, RefusesAxesThatSayNothing) {
  const Words line = {"study", "budget", kPair, "--budgets", "3", "--steps", "5"};
  const ProcessResult words = portwave_cli(
      line + Words{"--methods", "douglas,auto", "--impedances", "machted", "--guard", "on,"});
  EXPECT_EQ(words.exit_code, 2) << said(words);
  for (const char* part : {"--methods: \"douglas\" is not one of", "Did you mean \"matched\"?",
                           "--guard: \"\" is not one of on, off"}) {
    EXPECT_TRUE(contains(words.err, part)) << part << "\n" << said(words);
  }
  const ProcessResult chosen =
      portwave_cli(line + Words{"--methods", "auto", "--impedances", "matched"});
  EXPECT_EQ(chosen.exit_code, 2) << said(chosen);
  EXPECT_TRUE(contains(chosen.err, "chooses the impedances itself")) << said(chosen);
  const ProcessResult none = portwave_cli(line + Words{"--impedances", "per_port"});
  EXPECT_EQ(none.exit_code, 2) << said(none);
  EXPECT_TRUE(contains(none.err, "/method/impedance/kind: is \"uniform\"")) << said(none);
}

TEST(CliStudy, ViolatedCertificateIsExitCodeOneWithRows) {
  const TemporaryFolder folder;
  const Words active = {
      "study", "budget", kPair, "--budgets", "3,8", "--set", "/subsystems/0/allow_active=true"};
  const Words negative = {"--set", "/subsystems/0/parameters/coupling_damping_Ns_per_m=-0.05"};
  const ProcessResult table = portwave_cli(active + negative);
  EXPECT_EQ(table.exit_code, 1) << said(table);
  EXPECT_TRUE(contains(table.out, " violated\n")) << said(table);

  const Words as_file = {"--json", "--out", folder.path().string()};
  const ProcessResult json = portwave_cli(active + negative + as_file);
  EXPECT_EQ(json.exit_code, 1) << said(json);
  EXPECT_EQ(Json::parse(read_text(folder / "study.json"))[0]["status"], "violated");

  // Control: the permission alone violates nothing.
  const ProcessResult passive = portwave_cli(active);
  EXPECT_EQ(passive.exit_code, 0) << said(passive);
  EXPECT_FALSE(contains(passive.out, "violated")) << said(passive);
}

TEST(CliStudy, RunsEachBudgetOnceInTheOrderGiven) {
  const ProcessResult result = portwave_cli({"study", "budget", kPair, "--steps", "5", "--json",
                                             "--budgets", "8,3,8", "--budgets", "0,3"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  std::vector<int> budgets;
  for (const Json& row : Json::parse(result.out)) budgets.push_back(row["iterations"]);
  EXPECT_EQ(budgets, (std::vector<int>{8, 3, 0}));
}

TEST(CliStudy, SpendsTheBudgetWhateverTheTolerances) {
  const Words line = {"study", "budget", kPair, "--steps", "20", "--json", "--budgets", "8"};
  const ProcessResult plain = portwave_cli(line);
  ASSERT_EQ(plain.exit_code, 0) << said(plain);
  for (const char* setting : {"/method/tolerance=0.5", "/method/energy_tolerance_J=1e9"}) {
    EXPECT_EQ(portwave_cli(line + Words{"--set", setting}).out, plain.out) << setting;
  }
}

TEST(CliStudy, FindsOutFirstWhetherItCanWrite) {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder / "study.json");
  // So many rows that it could not compute them first.
  std::string many = "0";
  for (int i = 1; i < 1000; ++i) many += "," + std::to_string(i);
  Subprocess process(command({"study", "budget", kPair, "--steps", "100000", "--budgets", many,
                              "--out", folder.path().string()}));
  for (int i = 0; i < 1000 && !process.has_ended(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ASSERT_TRUE(process.has_ended());
  const ProcessResult result = process.wait();
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, (folder / "study.json").string())) << said(result);
}

TEST(CliStudy, PrintsTheTableWhenTheFileFails) {
  const TemporaryFolder folder;
  const ProcessResult result =
      with_files_of_at_most(100, {"study", "budget", kPair, "--steps", "5", "--budgets", "0,3",
                                  "--out", (folder / "out").string()});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(contains(result.err, "study.json")) << said(result);
  EXPECT_TRUE(contains(result.err, "File too large")) << said(result);
  EXPECT_TRUE(contains(result.out, "fne_margin")) << said(result);
  EXPECT_EQ(names_in(folder.path()), Words{});
}

TEST(CliStudy, TellsHowManySamplesDoNotFit) {
  for (const std::string steps : {"8999999999999999", "1000000000000"}) {
    const ProcessResult result = portwave_cli({"study", "budget", kPair, "--steps", steps});
    EXPECT_EQ(result.exit_code, 3) << said(result);
    for (const std::string& word : {std::string("not enough memory"), std::string("samples"),
                                    std::to_string(std::stoll(steps) + 1)}) {
      EXPECT_TRUE(contains(result.err, word)) << word << "\n" << said(result);
    }
    EXPECT_EQ(result.out, "");
  }
}

TEST(CliStudy, ComparesStatesOnly) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli({"study", "budget", kPair, "--out", (folder / "out").string(), "--set",
                    "/outputs/observe=[\"A.q1\", \"A.coupling.effort\"]"});
  EXPECT_EQ(result.exit_code, 2) << said(result);
  EXPECT_TRUE(contains(result.err, "this study compares states")) << said(result);
  EXPECT_TRUE(contains(result.err, "A.coupling.effort")) << said(result);
  EXPECT_EQ(names_in(folder.path()), Words{});
}

TEST(CliStudy, TellsHowLateWavesMayBe) {
  const TemporaryFolder folder;
  const ProcessResult result =
      portwave_cli({"study", "delay", kPair, "--delays", "0,2", "--budgets", "4", "--steps", "50",
                    "--out", (folder / "out").string(), "--json"});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_EQ(names_in(folder / "out"), Words{"delay.json"});
  EXPECT_EQ(read_text(folder / "out/delay.json"), result.out);
  const Json rows = Json::parse(result.out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1]["delay"], 2);
  EXPECT_NE(rows[0]["rms"], rows[1]["rms"]);

  const ProcessResult bad =
      portwave_cli({"study", "delay", kPair, "--delays", "65,x", "--budgets", "-1"});
  EXPECT_EQ(bad.exit_code, 2);
  EXPECT_TRUE(contains(bad.err, "--delays")) << said(bad);
  EXPECT_TRUE(contains(bad.err, "--budgets")) << said(bad);
}

}  // namespace
}  // namespace portwave::test_cli_study

#endif
