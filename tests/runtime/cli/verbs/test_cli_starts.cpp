// Starts and jumps at odds, as people see them.
#ifdef PORTWAVE_CLI

#include <cmath>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::test_cli_starts {
namespace {

using Json = nlohmann::json;
using testing::contains;
using testing::portwave_cli;
using testing::ProcessResult;
using testing::read_text;
using testing::said;
using testing::TemporaryFolder;
using testing::write_text;

Json shafts(double speed) {
  return Json::parse(R"({
    "name": "shafts", "time": {"step_s": 0.01, "steps": 20},
    "subsystems": [
      {"name": "a", "type": "inertia", "parameters": {"inertia_kgm2": 1}, "initial_state": {"speed": 10}},
      {"name": "b", "type": "inertia", "parameters": {"inertia_kgm2": 3}}],
    "couplings": [{"kind": "common_flow", "ports": ["a.shaft", "b.shaft"]}],
    "method": {"kind": "auto"}})")
      .patch(Json::array({{{"op", "add"},
                           {"path", "/subsystems/1/initial_state"},
                           {"value", {{"speed", speed}}}}}));
}

class CliStarts : public ::testing::Test {
 protected:
  std::string file(const Json& scenario) {
    const auto path = folder_ / "scenario.json";
    write_text(path, scenario.dump());
    return path.string();
  }
  TemporaryFolder folder_;
};

TEST_F(CliStarts, ValidateAndRunRefuseWithJointValuesAndRemedies) {
  Json refusing = shafts(2.0);
  refusing["time"]["start"] = "refuse";
  const std::string scenario = file(refusing);
  for (const char* verb : {"validate", "run"}) {
    const ProcessResult result = portwave_cli({verb, scenario});
    EXPECT_EQ(result.exit_code, 2) << said(result);
    EXPECT_TRUE(contains(result.err, "common_flow of a.shaft, b.shaft")) << said(result);
    EXPECT_TRUE(contains(result.err, "a.speed = 10 rad/s against b.speed = 2 rad/s"))
        << said(result);
    EXPECT_TRUE(contains(result.err, "a.speed 10 -> 4 rad/s")) << said(result);
    EXPECT_TRUE(contains(result.err, "\"start\": \"as_given\"")) << said(result);
  }
  EXPECT_EQ(portwave_cli({"run", file(shafts(10.0)), "--strict"}).exit_code, 0);
}

TEST_F(CliStarts, AsGivenRunsAndIsToldEverywhere) {
  Json scenario = shafts(2.0);
  scenario["time"]["start"] = "as_given";
  const std::string path = file(scenario), out = (folder_ / "out").string();
  const ProcessResult result = portwave_cli({"run", path, "--out", out});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "starts at odds: 1, first at 0 s: common_flow")) << said(result);
  const Json summary = Json::parse(read_text(folder_ / "out/summary.json"));
  EXPECT_EQ(summary["all_well"], false);
  EXPECT_EQ(summary["starts_at_odds"]["count"], 1);
  EXPECT_EQ(portwave_cli({"run", path, "--strict", "--quiet"}).exit_code, 1);
  const ProcessResult validated = portwave_cli({"validate", path});
  EXPECT_EQ(validated.exit_code, 0) << said(validated);
  EXPECT_TRUE(contains(validated.err, "note: /time/start: the start is at odds"))
      << said(validated);
}

/// The sum of a column of energy.csv over all rows but the first, which is the start.
double sum_of(const std::string& table, const std::string& column) {
  std::istringstream lines(table);
  std::string line, cell;
  std::getline(lines, line);
  std::istringstream head(line);
  int place = -1;
  for (int i = 0; std::getline(head, cell, ','); ++i) {
    if (cell.rfind(column, 0) == 0) place = i;
  }
  EXPECT_GE(place, 0) << column;
  double sum = 0.0;
  bool is_start = true;
  while (std::getline(lines, line)) {
    std::istringstream row(line);
    for (int i = 0; i <= place; ++i) std::getline(row, cell, ',');
    if (!is_start) sum += std::stod(cell);
    is_start = false;
  }
  return sum;
}

/// Of one row, by its number.
double cell_of(const std::string& table, const std::string& column, int row) {
  std::istringstream lines(table);
  std::string head, line;
  std::getline(lines, head);
  for (int i = 0; i <= row && std::getline(lines, line); ++i) {
  }
  return sum_of(head + "\n-\n" + line + "\n", column);
}

TEST_F(CliStarts, ByDefaultTheImpulseActsAndIsTold) {
  const std::string path = file(shafts(2.0)), out = (folder_ / "out").string();
  const ProcessResult result = portwave_cli({"run", path, "--out", out, "--strict"});
  EXPECT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err,
                       "an impulse at 0 s (the start) took 24 J: a.speed 10 -> 4 rad/s, b.speed 2 "
                       "-> 4 rad/s"))
      << said(result);
  const Json summary = Json::parse(read_text(folder_ / "out/summary.json"));
  EXPECT_EQ(summary["all_well"], true);
  EXPECT_EQ(summary["starts_at_odds"], nullptr);
  EXPECT_EQ(summary["impulses"]["count"], 1);
  EXPECT_NEAR(summary["impulses"]["first"][0]["impact_J"].get<double>(), 24.0, 1e-12);
  const Json& energy = summary["energy"];
  EXPECT_NEAR(energy["impact_J"].get<double>(), 24.0, 1e-12);
  EXPECT_NEAR(energy["initial_J"].get<double>(), 56.0, 1e-12);
  EXPECT_NEAR(energy["final_J"].get<double>(), 32.0, 1e-9);
  // The row of the start has the states after it, and what it took.
  const std::string rows = read_text(folder_ / "out/energy.csv");
  EXPECT_NEAR(cell_of(rows, "impact_J", 0), 24.0, 1e-12);
  EXPECT_NEAR(cell_of(rows, "stored_J", 0), 32.0, 1e-12);
  EXPECT_EQ(sum_of(rows, "impact_J"), 0.0);
  const ProcessResult validated = portwave_cli({"validate", path});
  EXPECT_EQ(validated.exit_code, 0) << said(validated);
  EXPECT_TRUE(contains(validated.err, "note: an impulse acts at the start, and takes 24 J"))
      << said(validated);
}

TEST_F(CliStarts, TheBalanceOfTheRowsClosesOverAnImpulse) {
  const Json scenario = Json::parse(R"json({
    "name": "jump", "time": {"step_s": 0.01, "end_s": 1},
    "subsystems": [
      {"name": "q", "type": "flow_source", "parameters": {"domain": "rotation"},
       "inputs": {"flow": {"kind": "expression", "expression": "if(t < 0.5, 1, 10 + 0.3*t)"}}},
      {"name": "j", "type": "inertia", "parameters": {"inertia_kgm2": 1}},
      {"name": "d", "type": "rotational_damper", "parameters": {"damping_Nms_per_rad": 0.2}}],
    "couplings": [{"kind": "common_flow", "ports": ["q.port", "j.shaft", "d.right"]},
                  {"kind": "fixed", "ports": ["d.left"]}],
    "outputs": {"energies": true},
    "method": {"kind": "auto"}})json");
  const std::string out = (folder_ / "out").string();
  const ProcessResult result = portwave_cli({"run", file(scenario), "--out", out});
  ASSERT_EQ(result.exit_code, 0) << said(result);
  EXPECT_TRUE(contains(result.err, "an impulse at 0.5 s (q.flow jumps from 1 to 10.15 rad/s)"))
      << said(result);
  const std::string rows = read_text(folder_ / "out/energy.csv");
  const double impact_J = sum_of(rows, "impact_J"), supplied_J = sum_of(rows, "supplied_J");
  EXPECT_NEAR(cell_of(rows, "impact_J", 0), 0.5, 1e-12) << "0 to 1 rad/s at the start";
  EXPECT_NEAR(cell_of(rows, "impact_J", 50), 0.0, 1e-12) << "at 0.5 s: before it";
  EXPECT_NEAR(cell_of(rows, "impact_J", 51), 0.5 * 9.15 * 9.15, 1e-9);
  const double change_J = cell_of(rows, "stored_J", 100) - cell_of(rows, "stored_J", 0);
  const double others_J = sum_of(rows, "dissipated_J") + sum_of(rows, "mismatch_J");
  EXPECT_NEAR(change_J, supplied_J - others_J - impact_J, 1e-12 * supplied_J);
  // The control: without the column it is open by what was lost.
  EXPECT_GT(std::abs(change_J - (supplied_J - others_J)), 40.0);
  // And part by part.
  const std::string parts = read_text(folder_ / "out/energy_parts.csv");
  for (const std::string name : {"q", "j", "d"}) {
    const double own_J =
        cell_of(parts, name + ".stored_J", 100) - cell_of(parts, name + ".stored_J", 0);
    EXPECT_NEAR(own_J,
                sum_of(parts, name + ".supplied_J") + sum_of(parts, name + ".through_ports_J") -
                    sum_of(parts, name + ".dissipated_J") - sum_of(parts, name + ".impact_J"),
                1e-11 * supplied_J)
        << name;
  }
}

TEST_F(CliStarts, AJumpEndsTheRunBeforeItsStepIfItIsToBeRefused) {
  const Json scenario = Json::parse(R"json({
    "name": "jump", "time": {"step_s": 0.01, "end_s": 1, "start": "refuse"},
    "subsystems": [
      {"name": "q", "type": "flow_source", "parameters": {"domain": "rotation"},
       "inputs": {"flow": {"kind": "expression", "expression": "if(t < 0.5, 0, 10)"}}},
      {"name": "j", "type": "inertia", "parameters": {"inertia_kgm2": 1}}],
    "couplings": [{"kind": "common_flow", "ports": ["q.port", "j.shaft"]}],
    "method": {"kind": "auto"}})json");
  const std::string out = (folder_ / "out").string();
  const ProcessResult result = portwave_cli({"run", file(scenario), "--out", out});
  EXPECT_EQ(result.exit_code, 3) << said(result);
  EXPECT_TRUE(
      contains(result.err, "step 50 cannot begin: q.flow jumps from 0 to 10 rad/s at 0.5 s"))
      << said(result);
  EXPECT_EQ(Json::parse(read_text(folder_ / "out/summary.json"))["steps"], 50);
}

}  // namespace
}  // namespace portwave::test_cli_starts

#endif  // PORTWAVE_CLI
