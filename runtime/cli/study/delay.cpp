// portwave study delay

#include <algorithm>
#include <ostream>
#include <string_view>

#include <fmt/format.h>

#include <portwave/runtime/study/study_json.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"
#include "study/results.hpp"

namespace portwave::cli {
namespace {

constexpr const char* kDelayFile = "delay.json";

std::string_view status_of(const DelayRow& row) {
  return row.failure.empty() ? to_string(row.status) : "failed";
}

std::string rows_table(const std::vector<DelayRow>& rows) {
  constexpr std::string_view kLine = "{:>10} {:>6} {:>12} {:>12} {:>12} {:>12} {:>12} {:>11}\n";
  std::string text = fmt::format(kLine, "iterations", "delay", "rms", "max", "final", "guard_steps",
                                 "withheld_J", "status");
  for (const DelayRow& row : rows) {
    text += fmt::format(kLine, row.iterations, row.delay, cell(row.rms), cell(row.max),
                        cell(row.final), row.guard_steps, cell(row.withheld_J), status_of(row));
  }
  return text;
}

int exit_code_of(const std::vector<DelayRow>& rows) {
  if (std::ranges::any_of(rows, [](const DelayRow& row) { return !row.failure.empty(); })) {
    return kFailed;
  }
  const bool is_violated = std::ranges::any_of(
      rows, [](const DelayRow& row) { return row.status == CertificateStatus::violated; });
  return is_violated ? kViolated : kOk;
}

}  // namespace

int run_command(const StudyDelayArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  StudyResults results(arguments.out, {kDelayFile}, scenario);
  const auto study = [&] { return study_delay(scenario, arguments.options, status.listener()); };
  const std::vector<DelayRow> rows = found_by(study, arguments.scenario.file);
  status.finish();
  const std::string json = study_json(rows);
  out << (arguments.json ? json : rows_table(rows));  // before the files, which may fail
  for (const DelayRow& row : rows) {
    if (row.failure.empty()) continue;
    err << fmt::format("portwave: delay {}, {} iterations: {}\n", row.delay, row.iterations,
                       row.failure);
  }
  results.write(json, "", err);
  if (arguments.report) results.draw(json, "delay", err);
  return exit_code_of(rows);
}

}  // namespace portwave::cli
