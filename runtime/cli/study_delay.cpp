// portwave study delay

#include <algorithm>
#include <initializer_list>
#include <ostream>
#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/study/delay_study.hpp>

#include "commands.hpp"
#include "report.hpp"
#include "status_line.hpp"
#include "study_text.hpp"

namespace portwave::cli {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kDelayFile = "delay.json";

std::string_view status_of(const DelayRow& row) {
  return row.failure.empty() ? to_string(row.status) : "failed";
}

Json rows_json(const std::vector<DelayRow>& rows) {
  Json json = Json::array();
  for (const DelayRow& row : rows) {
    json.push_back({{"delay", row.delay},
                    {"iterations", row.iterations},
                    {"status", std::string(status_of(row))},
                    {"rms", number(row.rms)},
                    {"max", number(row.max)},
                    {"final", number(row.final)},
                    {"guard_steps", row.guard_steps},
                    {"withheld_J", number(row.withheld_J)},
                    {"messages", row.messages},
                    {"failure", row.failure.empty() ? Json(nullptr) : Json(row.failure)}});
  }
  return json;
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

std::vector<DelayRow> rows_of(const Scenario& scenario, const StudyDelayArguments& arguments,
                              StatusLine& status) {
  try {
    return study_delay(scenario, arguments.options, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(arguments.scenario.file, error.issues());
  }
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
  std::optional<OutputFolder> folder;
  if (arguments.out) {
    folder.emplace(*arguments.out, std::initializer_list<const char*>{kDelayFile, kReportPage},
                   scenario.recording.inputs);
  }
  const std::vector<DelayRow> rows = rows_of(scenario, arguments, status);
  status.finish();
  const std::string json = rows_json(rows).dump(2) + "\n";
  out << (arguments.json ? json : rows_table(rows));
  for (const DelayRow& row : rows) {
    if (row.failure.empty()) continue;
    err << fmt::format("portwave: delay {}, {} iterations: {}\n", row.delay, row.iterations,
                       row.failure);
  }
  if (folder) {
    write_file_atomically(folder->file(kDelayFile), json);
    folder->keep();
    err << fmt::format("written to {}\n", folder->file(kDelayFile).string());
    if (arguments.report) write_study_report(arguments.out, json, "delay", scenario.name, err);
  }
  return exit_code_of(rows);
}

}  // namespace portwave::cli
