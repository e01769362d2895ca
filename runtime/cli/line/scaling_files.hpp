#pragma once

#include <filesystem>
#include <iosfwd>
#include <optional>
#include <string>

#include <portwave/runtime/study/scaling.hpp>
#include <portwave/subsystems/base/error.hpp>

#include "line/verb.hpp"

namespace portwave::cli {

/// The files of a study of scaling beside those of --out.
struct ScalingFiles {
  std::optional<std::filesystem::path> csv;
  std::optional<std::filesystem::path> plot;  ///< .pdf or .svg

  void add_to(Verb& verb);
  /// Folders that are missing or in the way.
  Issues defects() const;
  /// Says what was written. Errors: std::runtime_error of a file.
  void write(const ScalingStudy& figure, const std::string& rows, std::ostream& err) const;
};

}  // namespace portwave::cli
