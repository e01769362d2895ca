#include "study/results.hpp"

#include <ostream>

#include <fmt/format.h>

#include <portwave/runtime/report/report.hpp>

#include "line/report_page.hpp"

namespace portwave::cli {

StudyResults::StudyResults(const std::optional<std::filesystem::path>& out, StudyFiles files,
                           const Scenario& scenario)
    : files_(files), scenario_(scenario.name) {
  if (!out) return;
  const char* const table = files.table != nullptr ? files.table : kReportPage;
  folder_.emplace(*out, std::initializer_list<const char*>{files.json, table, kReportPage},
                  scenario.recording.inputs);
}

void StudyResults::write(const std::string& json, const std::string& csv, std::ostream& err) {
  if (!folder_) return;
  write_file_atomically(folder_->file(files_.json), json);
  if (files_.table != nullptr) write_file_atomically(folder_->file(files_.table), csv);
  folder_->keep();
  err << fmt::format("written to {}{}\n", folder_->file(files_.json).string(),
                     files_.table != nullptr ? fmt::format(" and {}", files_.table) : "");
}

void StudyResults::draw(const std::string& json, const std::string& kind, std::ostream& err) {
  if (!folder_) return;
  const std::filesystem::path page = folder_->file(kReportPage);
  write_file_atomically(page, study_report(json, kind, scenario_));
  err << fmt::format("report: {}\n", page.string());
}

}  // namespace portwave::cli
