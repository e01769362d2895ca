// portwave study tolerance

#include <initializer_list>
#include <optional>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/tolerance_study.hpp>
#include <portwave/subsystems/base/printable.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "status_line.hpp"
#include "study_text.hpp"
#include "thread_allowance.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kFile = "study.json";
constexpr const char* kTable = "tolerance.csv";

Json study_json(const ToleranceStudy& study, const Scenario& scenario) {
  Json rows = Json::array();
  for (const ToleranceRow& row : study.rows) {
    rows.push_back({{"stages", row.stages},
                    {"tolerance", row.tolerance},
                    {"error", number(row.error)},
                    {"steps", row.steps},
                    {"rejected", row.rejected},
                    {"missed", row.missed},
                    {"smallest_s", number(row.smallest_s)},
                    {"largest_s", number(row.largest_s)},
                    {"evaluations", row.evaluations},
                    {"time_s", number(row.time_s)},
                    {"failure", row.failure.empty() ? Json(nullptr) : Json(row.failure)}});
  }
  return {{"study", "tolerance"},
          {"scenario", scenario.name},
          {"end_s", study.end_s},
          {"reference", study.reference},
          {"rows", std::move(rows)}};
}

std::string rows_table(const ToleranceStudy& study) {
  constexpr std::string_view kRowLine =
      "{:>6} {:>10} {:>11} {:>9} {:>9} {:>7} {:>11} {:>11} {:>11}\n";
  std::string text = fmt::format(kRowLine, "stages", "tolerance", "error", "steps", "rejected",
                                 "missed", "evaluations", "largest_s", "time_s");
  for (const ToleranceRow& row : study.rows) {
    if (!row.failure.empty()) {
      text += fmt::format("{:>6} {:>10.3g} {}\n", row.stages, row.tolerance,
                          printable(row.failure, 200));
      continue;
    }
    text += fmt::format(kRowLine, row.stages, fmt::format("{:.3g}", row.tolerance), cell(row.error),
                        row.steps, row.rejected, row.missed, row.evaluations,
                        fmt::format("{:.4g}", row.largest_s), fmt::format("{:.4g}", row.time_s));
  }
  return text + fmt::format("\nto {:g} s; errors of all states, relative, against {}\n",
                            study.end_s, study.reference);
}

std::string rows_csv(const ToleranceStudy& study) {
  std::string text =
      "stages,tolerance,error,steps,rejected,missed,smallest_s,largest_s,evaluations,time_s\n";
  for (const ToleranceRow& row : study.rows) {
    text +=
        fmt::format("{},{},{},{},{},{},{},{},{},{}\n", row.stages, row.tolerance, field(row.error),
                    row.steps, row.rejected, row.missed, field(row.smallest_s),
                    field(row.largest_s), row.evaluations, field(row.time_s));
  }
  return text;
}

int report_failures(const ToleranceStudy& study, std::ostream& err) {
  int exit_code = kOk;
  for (const ToleranceRow& row : study.rows) {
    if (row.failure.empty()) continue;
    exit_code = kFailed;
    err << fmt::format("portwave: {} stages, tolerance {:g}: {}\n", row.stages, row.tolerance,
                       row.failure);
  }
  return exit_code;
}

}  // namespace

int run_command(const StudyToleranceArguments& arguments, std::ostream& out, std::ostream& err) {
  expect_report(arguments.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(arguments.scenario, status);
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kFile, kTable, kReportPage},
                   scenario.recording.inputs);
  }
  const ThreadAllowance allowance(arguments.options.threads);
  const auto study_of = [&] {
    try {
      return study_tolerance(scenario, arguments.options, status.listener());
    } catch (const ConfigError& error) {
      throw ScenarioError(arguments.scenario.file, error.issues());
    }
  };
  const ToleranceStudy study = study_of();
  status.finish();
  allowance.tell(err);
  const std::string json = study_json(study, scenario).dump(2) + "\n";
  out << (arguments.json ? json : rows_table(study));
  const int exit_code = report_failures(study, err);
  if (folder) {
    write_file_atomically(folder->file(kFile), json);
    write_file_atomically(folder->file(kTable), rows_csv(study));
    folder->keep();
    err << fmt::format("written to {} and {}\n", folder->file(kFile).string(), kTable);
    if (arguments.report) {
      write_study_report(arguments.out, json, "tolerance", scenario.name, err);
    }
  }
  return exit_code;
}

}  // namespace portwave::cli
