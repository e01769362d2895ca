// portwave study budget

#include "portwave/runtime/study.hpp"

#include <cmath>
#include <ostream>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "commands.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

Json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}

Json rows_json(const std::vector<BudgetRow>& rows) {
  Json json = Json::array();
  for (const BudgetRow& row : rows) {
    json.push_back({{"iterations", row.iterations},
                    {"rms", number(row.rms)},
                    {"max", number(row.max)},
                    {"final", number(row.final)},
                    {"max_passivity_residual_J", number(row.max_passivity_residual_J)},
                    {"max_augmented_residual_J", number(row.max_augmented_residual_J)},
                    {"min_fne_margin", number(row.min_fne_margin)},
                    {"max_energy_ratio", number(row.max_energy_ratio)}});
  }
  return json;
}

std::string cell(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{:#.6g}", *value) : "-";
}

/// Six significant digits, columns aligned to the right.
std::string rows_table(const std::vector<BudgetRow>& rows) {
  constexpr std::string_view kLine = "{:>10} {:>12} {:>12} {:>12} {:>13} {:>13} {:>13} {:>12}\n";
  std::string text = fmt::format(kLine, "iterations", "rms", "max", "final", "passivity_J",
                                 "augmented_J", "fne_margin", "energy_ratio");
  for (const BudgetRow& row : rows) {
    text += fmt::format(kLine, row.iterations, cell(row.rms), cell(row.max), cell(row.final),
                        cell(row.max_passivity_residual_J), cell(row.max_augmented_residual_J),
                        cell(row.min_fne_margin), cell(row.max_energy_ratio));
  }
  return text;
}

std::vector<BudgetRow> rows_of(const Scenario& scenario, const StudyBudgetArguments& arguments) {
  try {
    return study_budget(scenario, arguments.budgets, arguments.threads);
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
}

void write_study(const std::filesystem::path& folder, const std::string& json) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("cannot create folder \"{}\": {}", folder.string(), error.message()));
  }
  write_file_atomically(folder / "study.json", json);
}

}  // namespace

int run_command(const StudyBudgetArguments& arguments, std::ostream& out, std::ostream& err) {
  const Scenario scenario = load(arguments.scenario);
  const std::vector<BudgetRow> rows = rows_of(scenario, arguments);
  const std::string json = rows_json(rows).dump(2) + "\n";
  if (arguments.out) {
    write_study(*arguments.out, json);
    err << fmt::format("written to {}\n", (*arguments.out / "study.json").string());
  }
  out << (arguments.json ? json : rows_table(rows));
  return kOk;
}

}  // namespace portwave::cli
