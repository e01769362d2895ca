#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

namespace portwave::cli {

/// The page of a run or study, in the folder of its results.
inline constexpr const char* kReportPage = "report.html";

/// Errors: std::runtime_error where this program makes no reports; before the work.
void expect_report(bool is_wanted);

/// Writes report.html into the folder of a run, and says so unless `quiet`.
void write_run_report(const std::filesystem::path& folder, bool quiet, std::ostream& err);

/// The same for a study, from its JSON; does nothing without `folder`.
void write_study_report(const std::optional<std::filesystem::path>& folder, const std::string& json,
                        const std::string& kind, const std::string& scenario, std::ostream& err);

}  // namespace portwave::cli
