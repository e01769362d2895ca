#pragma once

#include <optional>
#include <string>
#include <unordered_set>
#include <utility>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/base/name_search.hpp"

namespace portwave::scenario_file {

/// The names that "method" and "outputs" may use.
class Names {
 public:
  explicit Names(const System& system) : system_(system) {}
  /// Of a system that lacks the terminations and these subsystems, which have defects of their own.
  Names(const System& system, std::unordered_set<std::string> missing)
      : system_(system), is_complete_(false), missing_(std::move(missing)) {}

  const System& system() const { return system_; }
  /// True when a path leads to what is lacking, so that nothing can be said about it.
  bool is_missing(const std::string& path) const;

  /// To find what misspelt names mean: subsystems, and paths "part.port".
  NameSearch& parts();
  NameSearch& ports();

 private:
  const System& system_;
  bool is_complete_ = true;
  std::unordered_set<std::string> missing_;
  std::optional<NameSearch> parts_, ports_;
};

}  // namespace portwave::scenario_file
