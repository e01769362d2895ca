// portwave study budget

#include <ostream>
#include <string_view>

#include <fmt/core.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

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

std::string failures_of(const std::vector<BudgetRow>& rows) {
  return failure_lines(rows, [](const BudgetRow& row) {
    return fmt::format("{}, impedance {}, guard {}, {} iterations", to_string(row.method),
                       row.impedance, row.guard ? "on" : "off", row.iterations);
  });
}

}  // namespace

int run_command(const StudyBudgetArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    BudgetAxes axes = arguments.axes;
    axes.impedances = impedance_kinds(scenario, arguments.impedances, arguments.scenario.file);
    const std::vector<BudgetRow> rows =
        study_budget_axes(scenario, axes, arguments.threads, listener);
    return StudyOutput{.text = rows_table(rows),
                       .json = study_json(rows),
                       .table = study_csv(rows),
                       .failures = failures_of(rows),
                       .is_violated = is_any_violated(rows)};
  };
  return run_study(arguments, {"budget", "study.json", "budget.csv"}, arguments.threads, study, out,
                   err);
}

}  // namespace portwave::cli
