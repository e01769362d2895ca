#pragma once

#include <algorithm>
#include <functional>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <portwave/coupling/energy/certificate.hpp>

#include "line/commands.hpp"

namespace portwave::cli {

/// What tells the studies of a scenario apart.
struct StudyKind {
  const char* name;             ///< of its page; null: it has none
  const char* json;             ///< its file in the folder of --out
  const char* table = nullptr;  ///< the same of its table; null: none
};

/// What a study has found.
struct StudyOutput {
  std::string text;  ///< for people
  std::string json;
  std::string table = {};     ///< CSV
  std::string failures = {};  ///< of its runs, a line each
  bool is_violated = false;   ///< a certificate
};

/// Loads the scenario, runs `study` and gives out what it finds: to `out`, and to the files of --out, of which
/// is known before the work that they can be written. `threads`: for which the study asks. The exit code.
/// Errors: ScenarioError, also for what is wrong with the options; std::runtime_error of a file.
int run_study(const StudyOfScenario& given, const StudyKind& kind, std::optional<int> threads,
              const std::function<StudyOutput(const Scenario&, const PhaseCallback&)>& study,
              std::ostream& out, std::ostream& err);

/// The status of a run, for a cell of a table.
template <class Row>
std::string_view status_of(const Row& row) {
  return row.failure.empty() ? to_string(row.status) : "failed";
}

template <class Row>
bool is_any_violated(const std::vector<Row>& rows) {
  return std::ranges::any_of(
      rows, [](const Row& row) { return row.status == CertificateStatus::violated; });
}

/// A line for each row that has failed: `place` says which it is.
template <class Row, class Place>
std::string failure_lines(const std::vector<Row>& rows, const Place& place) {
  std::string lines;
  for (const Row& row : rows) {
    if (!row.failure.empty()) lines += "portwave: " + place(row) + ": " + row.failure + "\n";
  }
  return lines;
}

}  // namespace portwave::cli
