// portwave study tolerance

#include <optional>
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

constexpr const char* kFile = "study.json";
constexpr const char* kTable = "tolerance.csv";

std::string rows_table(const ToleranceStudy& study) {
  constexpr std::string_view kRowLine =
      "{:>6} {:>10} {:>11} {:>9} {:>9} {:>7} {:>11} {:>11} {:>11}\n";
  std::string text = fmt::format(kRowLine, "stages", "tolerance", "error", "steps", "rejected",
                                 "missed", "evaluations", "largest_s", "time_s");
  for (const ToleranceRow& row : study.rows) {
    const std::string stages = row.stages > 0 ? fmt::format("{}", row.stages) : "-";
    if (!row.failure.empty()) {
      text +=
          fmt::format("{:>6} {:>10.3g} {}\n", stages, row.tolerance, printable(row.failure, 200));
      continue;
    }
    text += fmt::format(kRowLine, stages, fmt::format("{:.3g}", row.tolerance), cell(row.error),
                        row.steps, row.rejected, row.missed, row.evaluations,
                        fmt::format("{:.4g}", row.largest_s), fmt::format("{:.4g}", row.time_s));
  }
  return text + fmt::format("\n{} to {:g} s; errors of all states, relative, against {}\n",
                            study.method, study.end_s, study.reference);
}

int report_failures(const ToleranceStudy& study, std::ostream& err) {
  int exit_code = kOk;
  for (const ToleranceRow& row : study.rows) {
    if (row.failure.empty()) continue;
    exit_code = kFailed;
    const std::string method = row.stages > 0 ? fmt::format("{} stages", row.stages) : study.method;
    err << fmt::format("portwave: {}, tolerance {:g}: {}\n", method, row.tolerance, row.failure);
  }
  return exit_code;
}

}  // namespace

int run_command(const StudyToleranceArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  StudyResults results(arguments.out, {kFile, kTable}, scenario);
  const ThreadAllowance allowance(arguments.options.threads);
  const ToleranceStudy study =
      found_by([&] { return study_tolerance(scenario, arguments.options, status.listener()); },
               arguments.scenario.file);
  status.finish();
  allowance.tell(err);
  const std::string json = study_json(study, scenario);
  out << (arguments.json ? json : rows_table(study));  // before the files, which may fail
  const int exit_code = report_failures(study, err);
  results.write(json, study_csv(study), err);
  if (arguments.report) results.draw(json, "tolerance", err);
  return exit_code;
}

}  // namespace portwave::cli
