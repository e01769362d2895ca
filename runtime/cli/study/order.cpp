// portwave study order

#include <algorithm>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

constexpr const char* kOrderFile = "study.json";
constexpr const char* kOrderTable = "order.csv";

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

/// Says what failed, a line each. The exit code.
int report_failures(const OrderStudy& study, std::ostream& err) {
  int exit_code = kOk;
  for (const OrderRow& row : study.rows) {
    if (row.failure.empty()) continue;
    exit_code = kFailed;
    err << fmt::format("portwave: {}, step {} s: {}\n", row.method, row.step_s, row.failure);
  }
  return exit_code;
}

}  // namespace

int run_command(const StudyOrderArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  StudyResults results(arguments.out, {kOrderFile, kOrderTable}, scenario);
  const ThreadAllowance allowance(arguments.options.threads);
  const OrderStudy study =
      found_by([&] { return study_order(scenario, arguments.options, status.listener()); },
               arguments.scenario.file);
  status.finish();
  allowance.tell(err);
  const std::string json = study_json(study, scenario);
  out << (arguments.json
              ? json
              : rows_table(study) + costs_text(study));  // before the files, which may fail
  const int exit_code = report_failures(study, err);
  results.write(json, study_csv(study), err);
  if (arguments.report) results.draw(json, "order", err);
  return exit_code;
}

}  // namespace portwave::cli
