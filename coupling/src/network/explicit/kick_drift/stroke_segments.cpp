#include "network/explicit/kick_drift/stroke_segments.hpp"

#include <algorithm>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {
namespace stroke_segments {

template <class Row>
bool are_alike(const Row& a, const Row& b) {
  return a.is_damped == b.is_damped && a.is_bent == b.is_bent && a.is_mixed == b.is_mixed;
}

/// Whether both have their entries on the same diagonals.
template <class Row>
bool have_one_pattern(const Row& a, const Row& b) {
  if (!are_alike(a, b) || a.columns.size() != b.columns.size()) return false;
  for (std::size_t k = 0; k < a.columns.size(); ++k) {
    if (a.columns[k] - a.number != b.columns[k] - b.number) return false;
  }
  return true;
}

}  // namespace stroke_segments
}  // namespace

StrokeSegments::StrokeSegments(StrokeMap& map, std::span<const Row> rows, std::pair<int, int> block,
                               int columns)
    : map_(map), rows_(rows), columns_(columns), begin_(block.first), end_(block.second) {
  index_.assign(at(end_ - begin_), -1);
  for (int i = 0; i < static_cast<int>(rows.size()); ++i)
    index_[at(rows[at(i)].number - begin_)] = i;
  find_patterns();
  std::vector<char> is_in_run(rows.size(), 0);
  const int first_group = (begin_ + kLanes - 1) / kLanes * kLanes;
  for (int first = first_group; first + kLanes <= end_ && !patterns_.empty();) {
    const Row* const pattern = pattern_of(first);
    int end = first + kLanes;
    if (pattern != nullptr) {
      while (end + kLanes <= end_ && end - first < StrokeRun::kMostRows &&
             pattern_of(end) == pattern) {
        end += kLanes;
      }
      if (add_run(*pattern, first, end)) {
        for (int i = first; i < end; ++i) {
          if (index_[at(i - begin_)] >= 0) is_in_run[at(index_[at(i - begin_)])] = 1;
        }
      }
    }
    first = end;
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (is_in_run[i] == 0) rest_.push_back(rows[i]);
  }
}

void StrokeSegments::find_patterns() {
  constexpr std::size_t kLong = 24;
  for (std::size_t first = 0; first < rows_.size();) {
    std::size_t last = first + 1;
    while (last < rows_.size() && rows_[last].number == rows_[last - 1].number + 1 &&
           stroke_segments::have_one_pattern(rows_[first], rows_[last])) {
      ++last;
    }
    const Row& own = rows_[first];
    const auto terms = static_cast<int>(own.columns.size());
    const bool is_new = std::ranges::none_of(patterns_, [&](const Row* other) {
      return stroke_segments::have_one_pattern(*other, own);
    });
    if (last - first >= kLong && terms > 0 && terms <= kMostTerms && is_new) {
      patterns_.push_back(&own);
    }
    first = last;
  }
  std::ranges::stable_sort(patterns_, {}, [](const Row* row) { return row->columns.size(); });
}

const StrokeSegments::Row* StrokeSegments::row_at(int number) const {
  const int index = index_[at(number - begin_)];
  return index < 0 ? nullptr : &rows_[at(index)];
}

bool StrokeSegments::fits(const Row& pattern, int first) const {
  bool has_row = false;
  for (const int column : pattern.columns) {
    const int diagonal = column - pattern.number;
    if (first + diagonal < 0 || first + kLanes + diagonal > columns_) return false;
  }
  for (int i = first; i < first + kLanes; ++i) {
    const Row* const row = row_at(i);
    if (row == nullptr) continue;
    has_row = true;
    if (!stroke_segments::are_alike(*row, pattern)) return false;
    auto diagonal = pattern.columns.begin();
    for (const int column : row->columns) {
      const auto is_on_it = [&](int other) { return other - pattern.number == column - i; };
      diagonal = std::find_if(diagonal, pattern.columns.end(), is_on_it);
      if (diagonal == pattern.columns.end()) return false;
    }
  }
  return has_row;
}

const StrokeSegments::Row* StrokeSegments::pattern_of(int first) const {
  const auto found =
      std::ranges::find_if(patterns_, [&](const Row* own) { return fits(*own, first); });
  return found == patterns_.end() ? nullptr : *found;
}

std::vector<double> StrokeSegments::values_of(const Row& pattern, int first) const {
  const std::size_t terms = pattern.columns.size(), count = pattern.values.size();
  std::vector<double> values(count * at(kLanes), 0.0);
  for (int lane = 0; lane < kLanes; ++lane) {
    const Row* const row = row_at(first + lane);
    if (row == nullptr) continue;
    const std::size_t own = row->columns.size(), others = pattern.is_damped ? 2 * own : own;
    for (std::size_t k = 0, term = 0; k < own; ++k, ++term) {
      while (pattern.columns[term] - pattern.number != row->columns[k] - row->number) ++term;
      values[term * at(kLanes) + at(lane)] = row->values[k];
      if (pattern.is_damped) values[(terms + term) * at(kLanes) + at(lane)] = row->values[own + k];
    }
    for (std::size_t k = others; k < row->values.size(); ++k) {  // r and κ
      values[(count - row->values.size() + k) * at(kLanes) + at(lane)] = row->values[k];
    }
  }
  return values;
}

/// Not where most groups have values of their own: then values by row are as good.
bool StrokeSegments::add_run(const Row& pattern, int first, int end) {
  std::vector<StrokeSegment> segments;
  std::vector<double> values, before;
  const auto first_value = static_cast<int>(map_.values_.size());
  std::map<std::vector<double>, int> known;
  for (int i = first; i < end; i += kLanes) {
    std::vector<double> own = values_of(pattern, i);
    if (own == before) {
      ++segments.back().groups;
      continue;
    }
    const auto [found, is_new] =
        known.try_emplace(own, first_value + static_cast<int>(values.size()));
    if (is_new) values.insert(values.end(), own.begin(), own.end());
    segments.push_back({1, found->second});
    before = std::move(own);
  }
  const int groups = (end - first) / kLanes, count = static_cast<int>(segments.size());
  if (count > groups / 2 + 1) return false;
  map_.values_.insert(map_.values_.end(), values.begin(), values.end());
  const auto terms = static_cast<int>(pattern.columns.size()), middle = terms / 2;
  const auto diagonal = [&](int k) { return pattern.columns[at(k)] - pattern.number; };
  StrokeRun run{.row = first,
                .count = end - first,
                .terms = terms,
                .first_column = static_cast<int>(map_.columns_.size()),
                .first_value = segments.front().first_value,
                .is_damped = pattern.is_damped,
                .is_mixed = pattern.is_mixed,
                .is_bent = pattern.is_bent,
                .first_segment = static_cast<int>(map_.segments_.size()),
                .segments = count};
  run.slides = terms > 1 && terms % 2 == 1 && diagonal(middle) == 0 && diagonal(middle - 1) == -1 &&
               diagonal(middle + 1) == 1 && end + kLanes <= columns_;
  map_.runs_.push_back(run);
  for (int k = 0; k < terms; ++k) map_.columns_.push_back(first + diagonal(k));
  map_.segments_.insert(map_.segments_.end(), segments.begin(), segments.end());
  return true;
}

}  // namespace portwave
