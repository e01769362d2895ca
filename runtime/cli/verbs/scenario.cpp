// From a scenario and a command line: the rules of the impedances that it names, and a stepper.

#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <portwave/runtime/study/tune.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/commands.hpp"
#include "live/status_line.hpp"

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
