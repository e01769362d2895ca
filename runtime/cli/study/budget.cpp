// portwave study budget

#include <algorithm>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/core.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

constexpr const char* kBudgetFile = "study.json";
constexpr const char* kBudgetTable = "budget.csv";

std::string_view status_of(const BudgetRow& row) {
  return row.failure.empty() ? to_string(row.status) : "failed";
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
  StudyResults results(arguments.out, {kBudgetFile, kBudgetTable}, scenario);
  const ThreadAllowance allowance(arguments.threads);
  BudgetAxes axes = arguments.axes;
  axes.impedances = impedance_kinds(scenario, arguments.impedances, arguments.scenario.file);
  const auto study = [&] {
    return study_budget_axes(scenario, axes, arguments.threads, status.listener());
  };
  const std::vector<BudgetRow> rows = found_by(study, arguments.scenario.file);
  status.finish();
  allowance.tell(err);
  const std::string json = study_json(rows);
  out << (arguments.json ? json : rows_table(rows));  // before the files, which may fail
  report_failures(rows, err);
  results.write(json, study_csv(rows), err);
  if (arguments.report) results.draw(json, "budget", err);
  return exit_code_of(rows);
}

}  // namespace portwave::cli
