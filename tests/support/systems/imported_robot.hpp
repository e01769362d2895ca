#pragma once

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "support/files/cli_process.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

/// Robots through `portwave import` and `portwave run`. Skipped where the program cannot read XML.
class ImportedRobot : public ::testing::Test {
 protected:
  void SetUp() override {
    if (contains(import("<robot/>").err, "built without tinyxml2"))
      GTEST_SKIP() << "built without tinyxml2";
  }

  ProcessResult import(const std::string& robot, const Words& options = {}) {
    const std::string file = (folder_ / "robot.urdf").string();
    write_text(file, robot);
    return portwave_cli(Words{"import", file} + options);
  }
  nlohmann::json scenario(const std::string& robot, const Words& options = {}) {
    const ProcessResult made = import(robot, options);
    EXPECT_EQ(made.exit_code, 0) << said(made);
    return nlohmann::json::parse(made.out);
  }
  /// The trajectory of all its states, in a run that is resolved.
  CsvTable run(const std::string& robot, const Words& options = {}) {
    return run_scenario(scenario(robot, options));
  }
  /// Of a run at rest, in which rounding is all that moves, nothing is resolved.
  CsvTable run_at_rest(const std::string& robot, const Words& options = {}) {
    return run_scenario(scenario(robot, options), {});
  }
  CsvTable run_scenario(const nlohmann::json& scenario, const Words& strictly = {"--strict"}) {
    const std::string file = (folder_ / "robot.json").string(), out = (folder_ / "out").string();
    write_text(file, scenario.dump());
    const ProcessResult result = portwave_cli(Words{"run", file, "--out", out} + strictly);
    EXPECT_EQ(result.exit_code, 0) << said(result);
    return read_csv(folder_ / "out" / "trajectory.csv");
  }
  static nlohmann::json part(const nlohmann::json& scenario, const std::string& name) {
    for (const auto& own : scenario["subsystems"]) {
      if (own["name"] == name) return own;
    }
    return nullptr;
  }

  TemporaryFolder folder_;
};

}  // namespace portwave::testing
