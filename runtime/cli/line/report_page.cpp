#include "line/report_page.hpp"

#include <ostream>
#include <stdexcept>

#include <fmt/core.h>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/report/report.hpp>

namespace portwave::cli {

void expect_report(bool is_wanted) {
  if (is_wanted && !has_report()) {
    throw std::runtime_error(
        "this program was built without uPlot, which draws the charts of reports; with it after "
        "\"npm ci\" in runtime/report");
  }
}

void write_run_report(const std::filesystem::path& folder, bool quiet, std::ostream& err) {
  const std::filesystem::path path = folder / kReportPage;
  write_file_atomically(path, run_report({folder}));
  if (!quiet) err << fmt::format("  report       {}\n", path.string());
}

void write_study_report(const std::optional<std::filesystem::path>& folder, const std::string& json,
                        const std::string& kind, const std::string& scenario, std::ostream& err) {
  if (!folder) return;
  const std::filesystem::path path = *folder / kReportPage;
  write_file_atomically(path, study_report(json, kind, scenario));
  err << fmt::format("report: {}\n", path.string());
}

}  // namespace portwave::cli
