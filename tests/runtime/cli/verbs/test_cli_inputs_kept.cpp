// No command writes over what it has read: it says so before anything is run or written.
#ifdef PORTWAVE_CLI

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/report/report.hpp"
#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_inputs_kept {
namespace {

namespace fs = std::filesystem;
using testing::contains;
using testing::kPair;
using testing::names_in;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::Words;
using testing::write_text;
using testing::operator+;

/// Refuses, and leaves the folder and the file as they are.
void expect_kept(const Words& line, const fs::path& folder, const fs::path& input) {
  const auto names = names_in(folder);
  const std::string before = read_text(input);
  const ProcessResult result = portwave_cli(line);
  EXPECT_EQ(result.exit_code, 2) << line[0] << ' ' << line[1] << ": " << said(result);
  EXPECT_TRUE(contains(result.err, "is a file that this run reads")) << said(result);
  EXPECT_TRUE(contains(result.err, input.filename().string())) << said(result);
  EXPECT_EQ(result.out, "") << line[0];
  EXPECT_EQ(names_in(folder), names) << line[0] << ' ' << line[1];
  EXPECT_EQ(read_text(input), before) << line[0] << ' ' << line[1];
}

TEST(CliInputsKept, ARunSparesItsScenario) {
  for (const char* name : {"summary.json", "network.json", "trace.json", "report.html"}) {
    const TemporaryFolder folder;
    const auto input = folder / name;
    fs::copy_file(kPair, input);
    const std::string out = folder.path().string();
    for (const Words& more : std::vector<Words>{
             {}, {"--checkpoint-every", "10"}, {"--profile"}, {"--json", "--quiet"}}) {
      expect_kept(Words{"run", input.string(), "--steps", "3", "--out", out} + more, folder.path(),
                  input);
    }
    // The control: elsewhere it runs.
    const ProcessResult elsewhere =
        portwave_cli({"run", input.string(), "--steps", "3", "--out", (folder / "out").string()});
    EXPECT_EQ(elsewhere.exit_code, 0) << said(elsewhere);
  }
}

TEST(CliInputsKept, WhateverLeadsToIt) {
  const TemporaryFolder folder;
  const auto out = folder / "out";
  fs::create_directory(out);
  fs::copy_file(kPair, folder / "case.json");
  fs::create_symlink(folder / "case.json", out / "summary.json");
  expect_kept({"run", (folder / "case.json").string(), "--out", out.string()}, out,
              folder / "case.json");
  fs::remove(out / "summary.json");
  fs::create_hard_link(folder / "case.json", out / "network.json");
  expect_kept({"run", (folder / "case.json").string(), "--out", out.string()}, out,
              folder / "case.json");
  fs::remove(out / "network.json");
  fs::rename(folder / "case.json", out / "summary.json");
  fs::create_symlink(out / "summary.json", folder / "case.json");
  fs::create_directory_symlink(out, folder / "same");
  expect_kept({"run", (folder / "case.json").string(), "--out", (folder / "same").string()}, out,
              folder / "case.json");
}

TEST(CliInputsKept, ARunSparesTablesAndMatrices) {
  const TemporaryFolder folder;
  write_text(folder / "trajectory.csv", "0,1\n1,2\n");
  write_text(folder / "case.json", R"({
    "name": "c", "time": {"step_s": 0.01, "steps": 2}, "method": {"kind": "auto"},
    "subsystems": [{"name": "a", "type": "mass", "parameters": {"mass_kg": 1},
      "inputs": {"force": {"kind": "table", "file": "trajectory.csv"}}}],
    "couplings": [{"kind": "free", "ports": ["a.port"]}]})");
  const std::string file = (folder / "case.json").string(), out = folder.path().string();
  expect_kept({"run", file, "--out", out}, folder.path(), folder / "trajectory.csv");
  expect_kept({"run", file, "--out", out, "--checkpoint-every", "1"}, folder.path(),
              folder / "trajectory.csv");
  const ProcessResult elsewhere = portwave_cli({"run", file, "--out", (folder / "out").string()});
  EXPECT_EQ(elsewhere.exit_code, 0) << said(elsewhere);
}

TEST(CliInputsKept, ARunSparesWhatLiesWhereItsCheckpointsGo) {
  const TemporaryFolder folder;
  fs::create_directory(folder / "checkpoint");
  write_text(folder / "checkpoint" / "lock", "");  // as if it were of an earlier run
  const auto input = folder / "checkpoint" / "case.json";
  fs::copy_file(kPair, input);
  const Words line = {"run", input.string(), "--steps", "3", "--out", folder.path().string()};
  expect_kept(line + Words{"--checkpoint-every", "1"}, folder / "checkpoint", input);
  // The control: without checkpoints nothing happens there.
  EXPECT_EQ(portwave_cli(line).exit_code, 0);
  EXPECT_TRUE(fs::exists(input));
}

TEST(CliInputsKept, StudiesAndTuneSpareTheirScenario) {
  const std::vector<std::pair<std::string, Words>> studies = {
      {"study.json", {"study", "budget"}},
      {"budget.csv", {"study", "budget"}},
      {"rate.json", {"study", "rate"}},
      {"study.json", {"study", "order", "--steps", "0.01,0.005"}},
      {"order.csv", {"study", "order", "--steps", "0.01,0.005"}},
      {"study.json", {"study", "tolerance"}},
      {"tolerance.csv", {"study", "tolerance"}},
      {"iteration.csv", {"study", "iteration"}},
      {"study.json", {"study", "iteration"}},
      {"delay.json", {"study", "delay"}},
      {"scaling.json", {"study", "scaling", "--threads", "1", "--repetitions", "1"}},
      {"tune.json", {"tune"}},
      {"report.html", {"study", "budget"}},
      {"report.html", {"study", "scaling", "--threads", "1"}}};
  for (const auto& [name, words] : studies) {
    const TemporaryFolder folder;
    const auto input = folder / name;
    fs::copy_file(kPair, input);
    expect_kept(words + Words{input.string(), "--out", folder.path().string()}, folder.path(),
                input);
  }
}

TEST(CliInputsKept, AReportSparesTheResultsItIsMadeOf) {
  if (!has_report()) GTEST_SKIP() << "no reports in this build";
  const TemporaryFolder folder;
  const auto out = folder / "out";
  ASSERT_EQ(portwave_cli({"run", kPair, "--steps", "5", "--out", out.string()}).exit_code, 0);
  for (const char* name : {"summary.json", "network.json", "trajectory.csv", "energy.csv"}) {
    expect_kept({"report", out.string(), "--out", (out / name).string()}, out, out / name);
  }
  fs::create_hard_link(out / "summary.json", folder / "page.html");
  expect_kept({"report", out.string(), "--out", (folder / "page.html").string()}, out,
              folder / "page.html");
  // The control: a page may take the place of a page.
  for (int i = 0; i < 2; ++i) EXPECT_EQ(portwave_cli({"report", out.string()}).exit_code, 0);
}

}  // namespace
}  // namespace portwave::test_cli_inputs_kept

#endif  // PORTWAVE_CLI
