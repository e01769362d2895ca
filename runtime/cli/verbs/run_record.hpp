#pragma once

#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>

#include "line/commands.hpp"

namespace portwave::cli {

/// A run as it was begun: what a checkpoint needs beside the state, so that the run goes on as it was
/// asked for, whatever has become of the scenario file.
///
/// It permits nothing: a checkpoint may be made up to do harm. Which plugins are loaded, and which files
/// are read, is said by whoever goes on with the run.
struct RunRecord {
  /// Without options of the terminal. Reading it back gives neither permissions nor plugins.
  RunArguments arguments;
  /// As it is read back: the plugins that the run was begun with, which are named and not loaded.
  std::vector<std::string> plugins = {};
  std::string text;                      ///< of the scenario file
  std::filesystem::path folder;          ///< that its paths are relative to, absolute
  std::vector<ScenarioFile> files = {};  ///< what it read there

  std::string to_json() const;
  /// Errors: std::runtime_error unless it has the form that `to_json` writes.
  static RunRecord from_json(const std::string& text);
  /// The scenario as the run is begun with it. Errors: ScenarioError, ConfigError.
  Scenario scenario(const PhaseCallback& listener) const;
  /// The scenario once more, of a record that was read back from the folder `results`: with the
  /// permissions and plugins in `arguments` that were put there since. Errors: likewise, and ConfigError
  /// where plugins that the run was begun with have not been given.
  Scenario kept_scenario(const std::filesystem::path& results, const PhaseCallback& listener) const;
  /// Errors: std::runtime_error naming the files of the scenario that have changed.
  void expect_same_files(const Scenario& now) const;
};

}  // namespace portwave::cli
