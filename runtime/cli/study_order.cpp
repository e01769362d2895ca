// portwave study order

#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/order_study.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "status_line.hpp"
#include "study_text.hpp"
#include "thread_allowance.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kOrderFile = "study.json";
constexpr const char* kOrderTable = "order.csv";

double time_per_step(const OrderRow& row) { return row.time_s / static_cast<double>(row.steps); }

Json study_json(const OrderStudy& study, const Scenario& scenario) {
  Json rows = Json::array();
  for (const OrderRow& row : study.rows) {
    rows.push_back({{"method", row.method},
                    {"step_s", row.step_s},
                    {"steps", row.steps},
                    {"error", number(row.error)},
                    {"order", number(row.order)},
                    {"operations", number(row.operations)},
                    {"operations_sparse", number(row.operations_sparse)},
                    {"time_s", number(row.time_s)},
                    {"time_per_step_s", number(time_per_step(row))},
                    {"failure", row.failure.empty() ? Json(nullptr) : Json(row.failure)}});
  }
  Json costs = Json::array();
  for (const EqualErrorCost& cost : study.equal_error) {
    costs.push_back({{"method", cost.method},
                     {"baseline", cost.baseline},
                     {"error", cost.error},
                     {"extrapolated", cost.extrapolated},
                     {"operations", number(cost.operations)},
                     {"time", number(cost.time)}});
  }
  return {{"study", "order"},
          {"scenario", scenario.name},
          {"states", study.states},
          {"end_s", study.end_s},
          {"reference", study.reference},
          {"rows", std::move(rows)},
          {"equal_error", std::move(costs)}};
}

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

/// For plotting: a header, then a line per row.
std::string rows_csv(const OrderStudy& study) {
  std::string text =
      "method,step_s,steps,error,order,operations,operations_sparse,time_s,time_per_step_s\n";
  for (const OrderRow& row : study.rows) {
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", row.method, row.step_s, row.steps,
                        field(row.error), field(row.order), field(row.operations),
                        field(row.operations_sparse), field(row.time_s), field(time_per_step(row)));
  }
  return text;
}

OrderStudy study_of(const Scenario& scenario, const StudyOrderArguments& arguments,
                    StatusLine& status) {
  try {
    return study_order(scenario, arguments.options, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
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
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out,
                   std::initializer_list<const char*>{kOrderFile, kOrderTable, kReportPage},
                   scenario.recording.inputs);
  }
  const ThreadAllowance allowance(arguments.options.threads);

  const OrderStudy study = study_of(scenario, arguments, status);
  status.finish();
  allowance.tell(err);
  const std::string json = study_json(study, scenario).dump(2) + "\n";
  out << (arguments.json ? json : rows_table(study) + costs_text(study));
  const int exit_code = report_failures(study, err);
  if (folder) {
    write_file_atomically(folder->file(kOrderFile), json);
    write_file_atomically(folder->file(kOrderTable), rows_csv(study));
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kOrderFile).string(), kOrderTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "order", scenario.name, err);
    }
  }
  return exit_code;
}

}  // namespace portwave::cli
