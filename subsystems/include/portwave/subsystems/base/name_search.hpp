#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace portwave {

/// Finds the name that a misspelt word was probably meant to be, for many words among the same
/// names: the result of nearest_name (error.hpp) for each.
/// Cost: Names are compared by length, those of the same length first, and each only up to the
/// distance of the best one so far. All words together may take `effort` entries of the table of
/// edit distances (a fraction of a second); then the search gives up and finds nothing more, so
/// that no report of errors takes long.
/// Threads: One at a time: a search counts what it does.
class NameSearch {
 public:
  static constexpr std::int64_t kEffort = 100'000'000;

  explicit NameSearch(std::vector<std::string> names, std::int64_t effort = kEffort);

  const std::vector<std::string>& names() const { return names_; }

  /// The name nearest to `word`, as defined by nearest_name; "" when none is near enough to be a slip, or
  /// when the search gave up.
  std::string nearest(std::string_view word);
  /// " Did you mean \"x\"?" or "".
  std::string did_you_mean(std::string_view word);

  bool gave_up() const { return spent_ > effort_; }
  /// Names that were compared with a word letter by letter.
  std::int64_t comparisons() const { return comparisons_; }

 private:
  struct Nearest {
    std::size_t distance = 0;
    std::size_t place = 0;
    bool found = false;
  };

  void compare_those_of_length(std::size_t length, std::size_t limit, Nearest& best);
  std::size_t distance_up_to(std::size_t most, std::string_view name);
  std::string only_completion();

  std::vector<std::string> names_;
  std::vector<std::string> lowered_;
  std::vector<std::size_t> by_length_;  ///< places of names, the shortest first
  std::int64_t effort_;
  std::int64_t spent_ = 0;
  std::int64_t comparisons_ = 0;
  std::string word_;  ///< that is searched for, lowered
  std::vector<std::size_t> before_, previous_, current_;
};

/// " Did you mean \"x\"?"; "" for an empty name, and for one that looks like the rejected word, which would
/// not help.
std::string suggestion(std::string_view name, std::string_view word);

}  // namespace portwave
