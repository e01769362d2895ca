#pragma once

#include <span>
#include <utility>
#include <vector>

#include "network/explicit/kick_drift/stroke_map.hpp"

namespace portwave {

/// Finds the rows of a block that are one run of segments, whole groups of eight of them, and adds these runs. Values of
/// what rows lack of the run's diagonals, and of gaps, are 0.
class StrokeSegments {
 public:
  using Row = StrokeMap::Row;

  /// `rows`: those of the block, rows [first, second) of the matrix, increasing; without its gaps.
  StrokeSegments(StrokeMap& map, std::span<const Row> rows, std::pair<int, int> block, int columns);
  /// Rows that are in no segment.
  const std::vector<Row>& rest() const { return rest_; }

 private:
  static constexpr int kLanes = 8;
  static constexpr int kMostTerms = 5;  ///< that kernels take by segments

  void find_patterns();
  const Row* row_at(int number) const;
  /// Whether all rows from `first` on fit into a run like `pattern`.
  bool fits(const Row& pattern, int first) const;
  const Row* pattern_of(int first) const;
  /// By value of a row and lane.
  std::vector<double> values_of(const Row& pattern, int first) const;
  bool add_run(const Row& pattern, int first, int end);

  StrokeMap& map_;
  std::span<const Row> rows_;
  int columns_, begin_, end_;
  std::vector<int> index_;            ///< of a row, by its number after `begin_`; -1: a gap
  std::vector<const Row*> patterns_;  ///< of long stretches of rows, those with few terms first
  std::vector<Row> rest_;
};

}  // namespace portwave
