#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "portwave/runtime/scenario/plugins.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// What FMUs that a scenario names need to know of it, while it is read: one for the thread, as FilesRead.
class ForeignCode {
 public:
  ForeignCode(std::filesystem::path folder, Plugins permission);
  ~ForeignCode();
  ForeignCode(const ForeignCode&) = delete;
  ForeignCode& operator=(const ForeignCode&) = delete;

  double start_s = 0.0;
  double step_s = 0.0;  ///< 0: not known

  /// That of the scenario that is read; null: none is.
  static const ForeignCode* current();
  /// The file of an FMU, relative to the scenario. Nothing, and `refuse` told why, where it may not be loaded.
  static std::optional<std::filesystem::path> allowed_file(const std::string& name,
                                                           std::string& refusal);

 private:
  std::filesystem::path folder_;
  Plugins permission_;
  ForeignCode* outer_;
};

}  // namespace portwave::scenario_file
