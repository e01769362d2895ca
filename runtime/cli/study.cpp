// portwave study budget

#include "portwave/runtime/study/study.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "status_line.hpp"
#include "study_text.hpp"
#include "thread_allowance.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kBudgetFile = "study.json";
constexpr const char* kBudgetTable = "budget.csv";

std::string_view status_of(const BudgetRow& row) {
  return row.failure.empty() ? to_string(row.status) : "failed";
}

Json rows_json(const std::vector<BudgetRow>& rows) {
  Json json = Json::array();
  for (const BudgetRow& row : rows) {
    json.push_back({{"method", std::string(to_string(row.method))},
                    {"impedance", row.impedance},
                    {"guard", row.guard},
                    {"iterations", row.iterations},
                    {"status", std::string(status_of(row))},
                    {"rms", number(row.rms)},
                    {"max", number(row.max)},
                    {"final", number(row.final)},
                    {"max_passivity_residual_J", number(row.max_passivity_residual_J)},
                    {"max_augmented_residual_J", number(row.max_augmented_residual_J)},
                    {"min_fne_margin", number(row.min_fne_margin)},
                    {"min_nonexpansiveness_margin", number(row.min_nonexpansiveness_margin)},
                    {"max_energy_ratio", number(row.max_energy_ratio)},
                    {"guard_steps", row.guard_steps},
                    {"failure", row.failure.empty() ? Json(nullptr) : Json(row.failure)}});
  }
  return json;
}

/// Six significant digits, columns aligned to the right.
std::string rows_table(const std::vector<BudgetRow>& rows) {
  constexpr std::string_view kLine =
      "{:>10} {:>12} {:>12} {:>12} {:>13} {:>13} {:>13} {:>12} {:>13} {:>17} {:>9} {:>5} {:>11} "
      "{:>11}\n";
  std::string text = fmt::format(kLine, "iterations", "rms", "max", "final", "passivity_J",
                                 "augmented_J", "fne_margin", "energy_ratio", "ne_margin", "method",
                                 "impedance", "guard", "guard_steps", "status");
  for (const BudgetRow& row : rows) {
    text += fmt::format(kLine, row.iterations, cell(row.rms), cell(row.max), cell(row.final),
                        cell(row.max_passivity_residual_J), cell(row.max_augmented_residual_J),
                        cell(row.min_fne_margin), cell(row.max_energy_ratio),
                        cell(row.min_nonexpansiveness_margin), to_string(row.method), row.impedance,
                        row.guard ? "on" : "off", row.guard_steps, status_of(row));
  }
  return text;
}

/// For plotting: a header, then a line per row.
std::string rows_csv(const std::vector<BudgetRow>& rows) {
  std::string text =
      "method,impedance,guard,iterations,rms,max,final,max_passivity_residual_J,"
      "max_augmented_residual_J,min_fne_margin,min_nonexpansiveness_margin,max_energy_ratio,guard_"
      "steps,status\n";
  for (const BudgetRow& row : rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", to_string(row.method),
                        row.impedance, row.guard ? "on" : "off", row.iterations, field(row.rms),
                        field(row.max), field(row.final), field(row.max_passivity_residual_J),
                        field(row.max_augmented_residual_J), field(row.min_fne_margin),
                        field(row.min_nonexpansiveness_margin), field(row.max_energy_ratio),
                        row.guard_steps, status_of(row));
  }
  return text;
}

std::vector<BudgetRow> rows_of(const Scenario& scenario, const StudyBudgetArguments& arguments,
                               StatusLine& status) {
  BudgetAxes axes = arguments.axes;
  axes.impedances = impedance_kinds(scenario, arguments.impedances, arguments.scenario.file);
  try {
    return study_budget_axes(scenario, axes, arguments.threads, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
}

/// Says what failed, a line each.
void report_failures(const std::vector<BudgetRow>& rows, std::ostream& err) {
  for (const BudgetRow& row : rows) {
    if (row.failure.empty()) continue;
    err << fmt::format("portwave: {}, impedance {}, guard {}, {} iterations: {}\n",
                       to_string(row.method), row.impedance, row.guard ? "on" : "off",
                       row.iterations, row.failure);
  }
}

int exit_code_of(const std::vector<BudgetRow>& rows) {
  const auto some = [&](auto&& is_so) { return std::any_of(rows.begin(), rows.end(), is_so); };
  if (some([](const BudgetRow& row) { return !row.failure.empty(); })) return kFailed;
  const auto is_violated = [](const BudgetRow& row) {
    return row.status == CertificateStatus::violated;
  };
  return some(is_violated) ? kViolated : kOk;
}

}  // namespace

int run_command(const StudyBudgetArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out,
                   std::initializer_list<const char*>{kBudgetFile, kBudgetTable, kReportPage},
                   scenario.recording.inputs);
  }
  const ThreadAllowance allowance(arguments.threads);

  const std::vector<BudgetRow> rows = rows_of(scenario, arguments, status);
  status.finish();
  allowance.tell(err);
  const std::string json = rows_json(rows).dump(2) + "\n";
  out << (arguments.json ? json : rows_table(rows));  // before the file, which may fail
  report_failures(rows, err);
  if (folder) {
    write_file_atomically(folder->file(kBudgetFile), json);
    write_file_atomically(folder->file(kBudgetTable), rows_csv(rows));
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kBudgetFile).string(), kBudgetTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "budget", scenario.name, err);
    }
  }
  return exit_code_of(rows);
}

}  // namespace portwave::cli
