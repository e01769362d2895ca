#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <portwave/runtime/scenario/scenario.hpp>

/// The scenario of a command line, for every program that reads one.
namespace portwave::cli {

class StatusLine;

/// Exit codes of the programs. An interrupted run ends with 128 + the signal.
enum ExitCode : int { kOk = 0, kViolated = 1, kBadInput = 2, kFailed = 3 };

// Largest numbers that the command line accepts.
inline constexpr std::int64_t kMostSteps = 9'000'000'000'000'000;
inline constexpr std::int64_t kMostParts = 1'000'000'000;
inline constexpr std::int64_t kMostRepetitions = 10'000;

/// The scenario of a command with the changes of the command line.
struct ScenarioArguments {
  std::string file;
  std::vector<Override> overrides;
  std::vector<std::filesystem::path> plugins;  ///< beside those of the scenario
  Plugins plugins_of_scenario = Plugins::refused;
  OutsideFiles outside_files = OutsideFiles::refused;
  std::optional<std::int64_t> steps;
};

/// Loads plugins named on the command line and returns the names of their types. Errors: ConfigError
/// with every defect.
std::vector<std::string> load_plugins(const std::vector<std::filesystem::path>& files);
/// Loads the plugins and the scenario of a command. `in_slices`: with several ranks, the slice of this one.
/// Errors: ConfigError, ScenarioError.
Scenario load(const ScenarioArguments& arguments, StatusLine& status, bool in_slices = false);

}  // namespace portwave::cli
