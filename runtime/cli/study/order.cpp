// portwave study order

#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

double time_per_step(const OrderRow& row) { return row.time_s / static_cast<double>(row.steps); }

std::string count_cell(std::optional<double> count) {
  return count ? fmt::format("{:.4g}", *count) : "-";
}

std::string rows_table(const OrderStudy& study) {
  constexpr std::string_view kLine = "{:<18} {:>12} {:>12} {:>6} {:>11} {:>17} {:>11} {:>12}\n";
  std::string text = fmt::format(kLine, "method", "step_s", "error", "order", "operations",
                                 "operations_sparse", "time_s", "step_us");
  for (const OrderRow& row : study.rows) {
    if (!row.failure.empty()) {
      text +=
          fmt::format("{:<18} {:>12.6g} {}\n", row.method, row.step_s, printable(row.failure, 200));
      continue;
    }
    text +=
        fmt::format(kLine, row.method, fmt::format("{:.6g}", row.step_s), cell(row.error),
                    row.order ? fmt::format("{:.3f}", *row.order) : "-", count_cell(row.operations),
                    count_cell(row.operations_sparse), fmt::format("{:.4g}", row.time_s),
                    fmt::format("{:.4g}", 1e6 * time_per_step(row)));
  }
  return text;
}

std::string costs_text(const OrderStudy& study) {
  std::string text = fmt::format("\n{} states to {:g} s; errors against {}\n", study.states,
                                 study.end_s, study.reference);
  for (const EqualErrorCost& cost : study.equal_error) {
    const std::string operations =
        cost.operations ? fmt::format("{:.3g} of {} in operations and {:.3g} in time",
                                      *cost.operations, cost.baseline, cost.time)
                        : fmt::format("{:.3g} of {} in time", cost.time, cost.baseline);
    text += fmt::format("at equal error, {:.2e}, {} costs {}{}\n", cost.error, cost.method,
                        operations, cost.extrapolated ? " (extrapolated)" : "");
  }
  return text;
}

std::string failures_of(const OrderStudy& study) {
  return failure_lines(study.rows, [](const OrderRow& row) {
    return fmt::format("{}, step {} s", row.method, row.step_s);
  });
}

}  // namespace

int run_command(const StudyOrderArguments& arguments, std::ostream& out, std::ostream& err) {
  const auto study = [&](const Scenario& scenario, const PhaseCallback& listener) {
    const OrderStudy found = study_order(scenario, arguments.options, listener);
    return StudyOutput{.text = rows_table(found) + costs_text(found),
                       .json = study_json(found, scenario),
                       .table = study_csv(found),
                       .failures = failures_of(found)};
  };
  return run_study(arguments, {"order", "study.json", "order.csv"}, arguments.options.threads,
                   study, out, err);
}

}  // namespace portwave::cli
