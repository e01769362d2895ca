#include "portwave/subsystems/base/name_search.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/few_of.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

// ASCII only, so that the result does not depend on the locale.
char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lowered(std::string_view word) {
  std::string result(word);
  std::transform(result.begin(), result.end(), result.begin(), lower);
  return result;
}

}  // namespace

NameSearch::NameSearch(std::vector<std::string> names, std::int64_t effort)
    : names_(std::move(names)), by_length_(names_.size()), effort_(effort) {
  lowered_.reserve(names_.size());
  for (const std::string& name : names_) lowered_.push_back(lowered(name));
  std::iota(by_length_.begin(), by_length_.end(), std::size_t{0});
  std::stable_sort(by_length_.begin(), by_length_.end(),
                   [this](auto a, auto b) { return names_[a].size() < names_[b].size(); });
}

std::string NameSearch::nearest(std::string_view word) {
  if (gave_up()) return {};
  word_ = lowered(word);
  const std::size_t limit = std::max<std::size_t>(1, word_.size() / 3);
  Nearest best;
  // Lengths that differ by n take n edits.
  for (std::size_t n = 0; n <= (best.found ? best.distance : limit) && !gave_up(); ++n) {
    compare_those_of_length(word_.size() + n, limit, best);
    if (n > 0 && n <= word_.size()) compare_those_of_length(word_.size() - n, limit, best);
  }
  if (gave_up()) return {};
  return best.found ? names_[best.place] : only_completion();
}

void NameSearch::compare_those_of_length(std::size_t length, std::size_t limit, Nearest& best) {
  const auto is_shorter = [this](std::size_t place, std::size_t than) {
    return names_[place].size() < than;
  };
  const std::size_t longer = std::max(length, word_.size());
  auto next = std::lower_bound(by_length_.begin(), by_length_.end(), length, is_shorter);
  for (; next != by_length_.end() && names_[*next].size() == length && !gave_up(); ++next) {
    ++spent_;
    // At most so many edits make this name the nearest: of equally near names the first wins.
    std::size_t most = limit;
    if (best.found) {
      if (best.distance == 0 && *next > best.place) return;
      most = *next < best.place ? best.distance : best.distance - 1;
    }
    // One edit turns any single letter into any other: that is no slip.
    if (longer == 0) continue;
    most = std::min(most, longer - 1);
    if (longer - std::min(length, word_.size()) > most) continue;
    const std::size_t distance = distance_up_to(most, lowered_[*next]);
    if (distance <= most) best = {distance, *next, true};
  }
}

// Insertions, deletions, substitutions and swaps of neighbours (optimal string alignment) that turn
// the word into `name`; something above `most` where there are more. Only entries of the table that
// are no farther than `most` from its diagonal can be small enough.
std::size_t NameSearch::distance_up_to(std::size_t most, std::string_view name) {
  ++comparisons_;
  const std::size_t beyond = most + 1;
  for (auto* row : {&before_, &previous_, &current_}) {
    if (row->size() < name.size() + 2) row->resize(name.size() + 2);
  }
  std::size_t* before = before_.data();
  std::size_t* previous = previous_.data();
  std::size_t* current = current_.data();
  const char* const a = word_.data();
  const char* const b = name.data();
  const std::size_t width = std::min(name.size(), most);
  for (std::size_t j = 0; j <= width; ++j) previous[j] = j;
  previous[width + 1] = beyond;
  std::size_t smallest_before = 0;
  for (std::size_t i = 1; i <= word_.size(); ++i) {
    const std::size_t first = i > most ? i - most : 1;
    const std::size_t last = std::min(name.size(), i + most);
    current[first - 1] = first == 1 ? std::min(i, beyond) : beyond;
    std::size_t smallest = current[first - 1];
    for (std::size_t j = first; j <= last; ++j) {
      const std::size_t substitution = previous[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      std::size_t edits = std::min(std::min(previous[j], current[j - 1]) + 1, substitution);
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) edits = std::min(edits, before[j - 2] + 1);
      current[j] = std::min(edits, beyond);
      smallest = std::min(smallest, current[j]);
    }
    current[last + 1] = beyond;
    spent_ += static_cast<std::int64_t>(last + 2 - first);
    // A swap goes on from the row before the last.
    if ((smallest > most && smallest_before >= most) || gave_up()) return beyond;
    smallest_before = smallest;
    std::swap(before, previous);
    std::swap(previous, current);
  }
  return previous[name.size()];
}

// The only name that goes on where the word stops, such as a name without its unit; "" if none.
std::string NameSearch::only_completion() {
  constexpr std::size_t kShortest = 3;
  if (word_.size() < kShortest) return {};
  spent_ += static_cast<std::int64_t>(names_.size());
  const std::string* completion = nullptr;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!lowered_[i].starts_with(word_)) continue;
    if (completion != nullptr) return {};
    completion = &names_[i];
  }
  return completion == nullptr ? std::string{} : *completion;
}

std::string NameSearch::did_you_mean(std::string_view word) {
  return suggestion(nearest(word), word);
}

std::string suggestion(std::string_view name, std::string_view word) {
  const std::string shown = in_quotes(name);
  return name.empty() || shown == in_quotes(word) ? "" : " Did you mean " + shown + "?";
}

std::string few_of(const std::vector<std::string>& names, std::size_t most) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), most); ++i) {
    text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  }
  return names.size() > most ? text + ", ... (" + std::to_string(names.size()) + " in all)" : text;
}

std::string nearest_name(std::string_view word, const std::vector<std::string>& candidates) {
  return NameSearch(candidates).nearest(word);
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  return NameSearch(candidates).did_you_mean(word);
}

}  // namespace portwave
