#pragma once

#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>

#include "commands.hpp"

namespace portwave::cli {

/// A run as it was begun: what a checkpoint needs beside the state, so that the run goes on as it was
/// asked for, whatever has become of the scenario file.
struct RunRecord {
  RunArguments arguments;                ///< but for what concerns the terminal
  std::string text;                      ///< of the scenario file
  std::filesystem::path folder;          ///< that its paths are relative to, absolute
  std::vector<ScenarioFile> files = {};  ///< what it read there

  std::string to_json() const;
  /// Errors: std::runtime_error where it is not what `to_json` writes.
  static RunRecord from_json(const std::string& text);
  /// The scenario once more. Errors: ScenarioError.
  Scenario scenario(const PhaseCallback& listener) const;
  /// Errors: std::runtime_error naming the files of the scenario that are not what they were.
  void expect_same_files(const Scenario& now) const;
};

}  // namespace portwave::cli
