#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include <portwave/runtime/output/file_recorder.hpp>
#include <portwave/runtime/output/recorder.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/base/error.hpp>

namespace portwave::cli {

/// The files of a study in its folder.
struct StudyFiles {
  const char* json;
  const char* table = nullptr;  ///< null: none
};

/// Where the results of a study go, if the line says so. Checks before the work that they can.
class StudyResults {
 public:
  StudyResults(const std::optional<std::filesystem::path>& out, StudyFiles files,
               const Scenario& scenario);

  /// Writes the files and says so; `csv` goes to the table.
  void write(const std::string& json, const std::string& csv, std::ostream& err);
  /// Draws the page of a study of that kind.
  void draw(const std::string& json, const std::string& kind, std::ostream& err);

 private:
  StudyFiles files_;
  std::string scenario_;
  std::optional<OutputFolder> folder_;
};

/// What a study finds. Its errors are those of the scenario file.
template <class Study>
auto found_by(Study study, const std::string& file) {
  try {
    return study();
  } catch (const ConfigError& error) {
    throw ScenarioError(file, error.issues());
  }
}

}  // namespace portwave::cli
