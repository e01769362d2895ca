// portwave report

#include <ostream>

#include <fmt/core.h>

#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/report/report.hpp>

#include "line/commands.hpp"
#include "line/report_page.hpp"

namespace portwave::cli {
namespace {

constexpr const char* kPageOfTwo = "comparison.html";

/// All files there but pages, which nobody reads.
std::vector<std::filesystem::path> results_in(const std::vector<std::filesystem::path>& folders) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const std::filesystem::path& folder : folders) {
    for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
      if (entry.path().extension() != ".html") out.push_back(entry.path());
    }
  }
  return out;
}

}  // namespace

int run_command(const ReportArguments& arguments, std::ostream&, std::ostream& err) {
  expect_report(true);
  const std::filesystem::path path =
      arguments.out
          ? *arguments.out
          : arguments.folders.front() / (arguments.folders.size() == 1 ? kReportPage : kPageOfTwo);
  refuse_to_overwrite(results_in(arguments.folders), path);
  const std::string page = run_report(arguments.folders);
  write_file_atomically(path, page);
  err << fmt::format("report: {}\n", path.string());
  return kOk;
}

}  // namespace portwave::cli
