#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// One defect of the input: where it is and what was expected there.
/// `where` is a JSON pointer relative to the object that reports it, e.g. "/parameters/mass_kg";
/// it is empty when the object as a whole is at fault.
struct Issue {
  std::string where;
  std::string what;
};

using Issues = std::vector<Issue>;

/// A name as a part of `Issue::where`: JSON pointers write "~" and "/" as "~0" and "~1".
std::string escape_key(std::string_view key);

/// Appends `more` to `issues`, each `where` prefixed by `prefix`.
void append(Issues& issues, std::string_view prefix, const Issues& more);

/// Thrown at set-up, never while stepping. Carries every defect that was found, not just the first.
class ConfigError : public std::runtime_error {
 public:
  explicit ConfigError(Issues issues);
  ConfigError(std::string where, std::string what);

  const Issues& issues() const { return issues_; }

 private:
  Issues issues_;
};

/// Throws ConfigError when `issues` is not empty.
void throw_if_any(Issues issues);

/// The candidate nearest to `word` by edit distance (case does not count, the first wins a tie),
/// else the only one that begins with `word`, such as a name written without its unit; "" when none
/// is near enough to be a slip.
std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates);

/// " Did you mean \"x\"?" or "" (see nearest_name).
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace portwave
