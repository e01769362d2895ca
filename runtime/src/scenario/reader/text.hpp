#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "scenario/reader/limits.hpp"

namespace portwave::scenario_file {

/// Offset of the first byte that is not part of well-formed UTF-8.
std::optional<std::size_t> find_invalid_utf8(std::string_view text);

/// "line 3, column 7" of a byte offset, both from 1, columns in characters.
std::string line_and_column(std::string_view text, std::size_t offset);
/// The line of a byte offset, from 1.
std::size_t line_of(std::string_view text, std::size_t offset);

/// What read_text_file found: the text, or why there is none.
struct FileText {
  std::string text;
  std::string problem;  ///< empty: `text` holds the file

  bool ok() const { return problem.empty(); }
};

/// Whether a pipe may stand for a file: it may when the shell handed it over, as /dev/fd/N for
/// <(...) or as /dev/stdin. A pipe by name has no end, or may wait for a writer forever.
enum class Pipes { refused, handed_over };

/// While alive, notes the files that are read in this thread, and refuses those outside of a folder.
/// Readers are many calls deep, and none of them but this has to know.
class FilesRead {
 public:
  /// `folder`: empty for the present one. `whose`: what it is the folder of, for people.
  FilesRead(const std::filesystem::path& folder, OutsideFiles outside,
            std::string whose = "scenario");
  ~FilesRead();
  FilesRead(const FilesRead&) = delete;
  FilesRead& operator=(const FilesRead&) = delete;

  std::vector<ScenarioFile> files;
  std::vector<std::filesystem::path> plugins;

  /// Notes a plugin that was loaded.
  static void note_plugin(const std::filesystem::path& path);

  /// Why a file may not be read: it lies outside, wherever links lead. Empty where it may.
  std::string refusal_of(const std::filesystem::path& path) const;

 private:
  std::filesystem::path folder_;  ///< without links; empty: any will do
  std::string whose_;
  FilesRead* outer_;
};

/// Reads a whole regular file of at most `most_bytes`.
FileText read_text_file(const std::filesystem::path& path, Pipes pipes = Pipes::refused,
                        std::size_t most_bytes = scenario_limits::kFileBytes);

}  // namespace portwave::scenario_file
