// Starts and jumps at odds, as people see them.
#ifdef PORTWAVE_CLI

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/cli_process.hpp"
#include "support/temporary_folder.hpp"
#include "support/text_file.hpp"

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
  const std::string scenario = file(shafts(2.0));
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

TEST_F(CliStarts, AJumpEndsTheRunBeforeItsStep) {
  const Json scenario = Json::parse(R"json({
    "name": "jump", "time": {"step_s": 0.01, "end_s": 1},
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
