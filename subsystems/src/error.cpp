#include "portwave/subsystems/error.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "portwave/subsystems/printable.hpp"

namespace portwave {
namespace {

std::string describe(const Issues& issues) {
  std::string text;
  for (const Issue& issue : issues) {
    if (!text.empty()) text += '\n';
    if (!issue.where.empty()) text += printable(issue.where, issue.where.size()) + ": ";
    text += issue.what;
  }
  return text;
}

// ASCII only, so that the result does not depend on the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), previous(b.size() + 1), current(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) previous[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    current[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      current[j] = std::min({previous[j] + 1, current[j - 1] + 1, substitution});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) current[j] = std::min(current[j], before[j - 2] + 1);
    }
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[b.size()];
}

// The only candidate that goes on where `word` stops, such as a name without its unit; "" if none.
std::string only_completion(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kShortest = 3;
  if (word.size() < kShortest) return {};
  const std::string* completion = nullptr;
  for (const std::string& candidate : candidates) {
    if (!lowered(candidate).starts_with(word)) continue;
    if (completion != nullptr) return {};
    completion = &candidate;
  }
  return completion == nullptr ? std::string{} : *completion;
}

}  // namespace

void append(Issues& issues, std::string_view prefix, const Issues& more) {
  for (const Issue& issue : more) issues.push_back({std::string(prefix) + issue.where, issue.what});
}

ConfigError::ConfigError(Issues issues)
    : std::runtime_error(describe(issues)), issues_(std::move(issues)) {}

ConfigError::ConfigError(std::string where, std::string what)
    : ConfigError(Issues{{std::move(where), std::move(what)}}) {}

void throw_if_any(Issues issues) {
  if (!issues.empty()) throw ConfigError(std::move(issues));
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = lowered(word);
  const std::size_t limit = std::max<std::size_t>(1, wanted.size() / 3);
  const std::string* nearest = nullptr;
  std::size_t smallest = limit + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t longer = std::max(wanted.size(), candidate.size());
    if (longer - std::min(wanted.size(), candidate.size()) > limit) continue;
    const std::size_t distance = edit_distance(wanted, lowered(candidate));
    // One edit turns any single letter into any other: that is no slip.
    if (distance >= smallest || distance >= longer) continue;
    smallest = distance;
    nearest = &candidate;
  }
  return nearest == nullptr ? only_completion(wanted, candidates) : *nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string name = nearest_name(word, candidates);
  return name.empty() ? std::string{} : " Did you mean " + in_quotes(name) + "?";
}

}  // namespace portwave
