// Loading a scenario as the command line asks for it.

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/scenario/plugins.hpp>
#include <portwave/runtime/study/tune.hpp>
#include <portwave/subsystems/base/error.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "live/status_line.hpp"
#include "verbs/ranks.hpp"

namespace portwave::cli {
namespace {

/// The longest phase of the construction of a stepper.
std::string_view what_is_prepared(const CouplingMethod& method) {
  if (method.kind() == WaveUpdate::automatic) return "choosing the method";
  if (!method.couples_by_waves()) return "preparing the method";
  return method.waves().impedance_kind == ImpedanceKind::given ? "preparing the steps"
                                                               : "choosing the impedances";
}

}  // namespace

const std::vector<std::string>& impedance_words() {
  static const std::vector<std::string> words = [] {
    std::vector<std::string> all = {"uniform", "per_port"};
    for (const ImpedanceKind kind : kTunedImpedances) all.emplace_back(to_string(kind));
    return all;
  }();
  return words;
}

std::vector<ImpedanceKind> impedance_kinds(const Scenario& scenario,
                                           const std::vector<std::string>& words,
                                           const std::string& file) {
  const std::string own = impedance_rule(scenario.options.method);
  std::vector<ImpedanceKind> kinds;
  Issues issues;
  for (const std::string& word : words) {
    ImpedanceKind kind = ImpedanceKind::given;
    for (const ImpedanceKind tuned : kTunedImpedances)
      kind = to_string(tuned) == word ? tuned : kind;
    if (kind == ImpedanceKind::given && word != own) {
      issues.push_back(
          {"/method/impedance/kind",
           fmt::format("is \"{}\"; there are no values for the impedances \"{}\"", own, word)});
    }
    kinds.push_back(kind);
  }
  if (!issues.empty()) throw ScenarioError(file, std::move(issues));
  return kinds;
}

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
  if (is_slice) scenario.recording.per_rank = false;  // each has files of its own as it is
  if (arguments.steps) scenario.steps = *arguments.steps;
  scenario.recording.inputs.insert(scenario.recording.inputs.end(), arguments.plugins.begin(),
                                   arguments.plugins.end());
  return scenario;
}

Stepper make_stepper(const Scenario& scenario, const StepperOptions& options,
                     const std::string& file, StatusLine& status) {
  status.show({what_is_prepared(options.method)});
  try {
    return Stepper(scenario.system, options);
  } catch (const ConfigError& error) {
    throw ScenarioError(file, error.issues());
  }
}

}  // namespace portwave::cli
