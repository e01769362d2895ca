#include "line/scenario_file.hpp"

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/scenario/plugins.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/ranks.hpp"
#include "live/status_line.hpp"

namespace portwave::cli {

std::vector<std::string> load_plugins(const std::vector<std::filesystem::path>& files) {
  Issues issues;
  std::vector<std::string> types;
  for (const std::filesystem::path& file : files) {
    try {
      const LoadedPlugin& plugin = load_plugin(file);
      types.insert(types.end(), plugin.types.begin(), plugin.types.end());
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) {
        const std::string type = issue.where.empty() ? "" : fmt::format("type {}: ", issue.where);
        const std::string_view gap = type.empty() ? " " : ": ";
        issues.push_back(
            {"", fmt::format("plugin {}{}{}{}", in_quotes(file.string()), gap, type, issue.what)});
      }
    }
  }
  throw_if_any(std::move(issues));
  return types;
}

Scenario load(const ScenarioArguments& arguments, StatusLine& status, bool in_slices) {
  load_plugins(arguments.plugins);
  const bool is_slice = in_slices && ranks() != nullptr;
  Scenario scenario =
      is_slice
          ? load_scenario_slice(arguments.file, *ranks(), arguments.overrides, status.listener(),
                                arguments.plugins_of_scenario, arguments.outside_files)
          : load_scenario(arguments.file, arguments.overrides, status.listener(),
                          arguments.plugins_of_scenario, arguments.outside_files);
  if (is_slice) scenario.recording.per_rank = false;  // each slice has files of its own anyway
  if (arguments.steps) scenario.steps = *arguments.steps;
  scenario.recording.inputs.insert(scenario.recording.inputs.end(), arguments.plugins.begin(),
                                   arguments.plugins.end());
  return scenario;
}

}  // namespace portwave::cli
