#include "study/results.hpp"

#include <initializer_list>
#include <ostream>

#include <fmt/format.h>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/report_page.hpp"
#include "line/thread_allowance.hpp"
#include "live/status_line.hpp"

namespace portwave::cli {
namespace {

void write_files(OutputFolder& folder, const StudyKind& kind, const StudyOutput& found,
                 std::ostream& err) {
  write_file_atomically(folder.file(kind.json), found.json);
  if (kind.table != nullptr) write_file_atomically(folder.file(kind.table), found.table);
  folder.keep();
  err << fmt::format("written to {}{}\n", folder.file(kind.json).string(),
                     kind.table != nullptr ? fmt::format(" and {}", kind.table) : "");
}

}  // namespace

int run_study(const StudyOfScenario& given, const StudyKind& kind, std::optional<int> threads,
              const std::function<StudyOutput(const Scenario&, const PhaseCallback&)>& study,
              std::ostream& out, std::ostream& err) {
  expect_report(given.report);
  StatusLine status(err, stderr_is_terminal());
  const Scenario scenario = load(given.scenario, status);
  std::optional<OutputFolder> folder;
  if (given.out) {
    folder.emplace(*given.out,
                   std::initializer_list<const char*>{
                       kind.json, kind.table != nullptr ? kind.table : kReportPage, kReportPage},
                   scenario.recording.inputs);
  }
  std::optional<ThreadAllowance> allowance;
  if (threads) allowance.emplace(*threads);
  StudyOutput found;
  try {
    found = study(scenario, status.listener());
  } catch (const ConfigError& error) {
    throw ScenarioError(given.scenario.file, error.issues());
  }
  status.finish();
  if (allowance) allowance->tell(err);
  out << (given.json ? found.json : found.text);  // before the files, which may fail
  err << found.failures;
  if (folder) {
    write_files(*folder, kind, found, err);
    if (given.report) write_study_report(given.out, found.json, kind.name, scenario.name, err);
  }
  if (!found.failures.empty()) return kFailed;
  return found.is_violated ? kViolated : kOk;
}

}  // namespace portwave::cli
