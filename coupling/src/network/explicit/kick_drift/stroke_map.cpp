#include "network/explicit/kick_drift/stroke_map.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

#include "network/explicit/kick_drift/stroke_segments.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

StrokeMap::StrokeMap(const RowMatrix& matrix)
    : StrokeMap(of_rows(matrix, std::vector<char>(at(static_cast<int>(matrix.rows())), 1))) {}

StrokeMap StrokeMap::of_rows(const RowMatrix& matrix, const std::vector<char>& rows, Blocks blocks,
                             bool has_room) {
  std::vector<Row> own;
  for (int i = 0; i < matrix.outerSize(); ++i) {
    if (rows[at(i)] == 0) continue;
    Row row{.number = i, .columns = {}, .values = {}};
    for (RowMatrix::InnerIterator it(matrix, i); it; ++it) {
      if (it.value() == 0.0) continue;
      row.columns.push_back(static_cast<int>(it.col()));
      row.values.push_back(it.value());
    }
    own.push_back(std::move(row));
  }
  StrokeMap map;
  map.add_blocks(own, blocks, matrix, has_room);
  return map;
}

StrokeMap::StrokeMap(const RowMatrix& matrix, const RowMatrix& dampers, const KickRows& by_row) {
  std::vector<Row> rows;
  for (int i = 0; i < matrix.outerSize(); ++i) {
    if (by_row.real[at(i)] == 0) continue;
    Row row{.number = i, .columns = {}, .values = {}};
    row.is_damped = by_row.damped[at(i)] != 0;
    row.is_bent = by_row.cubic[at(i)] != 0.0;
    const auto collect = [&](const RowMatrix& m) {
      for (RowMatrix::InnerIterator it(m, i); it; ++it) {
        if (it.value() != 0.0) row.columns.push_back(static_cast<int>(it.col()));
      }
    };
    collect(matrix);
    if (row.is_damped) collect(dampers);
    std::ranges::sort(row.columns);
    const auto [again, end] = std::ranges::unique(row.columns);
    row.columns.erase(again, end);
    for (const int column : row.columns) row.values.push_back(matrix.coeff(i, column));
    for (const int column : row.columns) {
      if (row.is_damped) row.values.push_back(dampers.coeff(i, column));
    }
    if (row.is_bent) row.values.push_back(by_row.cubic[at(i)]);
    rows.push_back(std::move(row));
  }
  add_blocks(rows, by_row.blocks, matrix, by_row.has_room);
}

StrokeMap StrokeMap::mixed(const RowMatrix& dampers, std::span<const double> stiffness,
                           const KickRows& by_row) {
  std::vector<Row> rows;
  for (int i = 0; i < dampers.outerSize(); ++i) {
    if (by_row.real[at(i)] == 0) continue;
    Row row{.number = i, .columns = {}, .values = {}};
    row.is_bent = by_row.cubic[at(i)] != 0.0;
    for (RowMatrix::InnerIterator it(dampers, i); it; ++it) {
      if (it.value() == 0.0) continue;
      row.columns.push_back(static_cast<int>(it.col()));
      row.values.push_back(it.value());
    }
    row.values.push_back(stiffness[at(i)]);
    if (row.is_bent) row.values.push_back(by_row.cubic[at(i)]);
    row.is_mixed = true;
    rows.push_back(std::move(row));
  }
  StrokeMap map;
  map.add_blocks(rows, by_row.blocks, dampers, by_row.has_room);
  return map;
}

void StrokeMap::add_blocks(const std::vector<Row>& rows, Blocks blocks, const RowMatrix& matrix,
                           bool has_room) {
  std::size_t first = 0;
  const auto all_rows = static_cast<int>(matrix.rows());
  for (std::size_t b = 0; b < std::max<std::size_t>(blocks.size(), 1); ++b) {
    first_run_.push_back(static_cast<int>(runs_.size()));
    const int begin = b < blocks.size() ? blocks[b] : 0;
    const int end = b + 1 < blocks.size() ? blocks[b + 1] : all_rows;
    std::size_t last = first;
    while (last < rows.size() && rows[last].number < end) ++last;
    const std::span<const Row> own = std::span(rows).subspan(first, last - first);
    if (has_room) {
      add_rows(StrokeSegments(*this, own, {begin, end}, static_cast<int>(matrix.cols())).rest());
    } else {
      add_rows(own);
    }
    first = last;
  }
  first_run_.push_back(static_cast<int>(runs_.size()));
  // The last rows of a run are read a group of lanes at a time.
  values_.insert(values_.end(), 8, 0.0);
}

/// A stretch of equal values is worth a run of its own from some rows on.
void StrokeMap::add_rows(std::span<const Row> rows) {
  const std::size_t first_run = runs_.size();
  constexpr std::size_t kWorth = 16;
  const auto follows = [&rows](std::size_t i) {
    const Row &before = rows[i - 1], &row = rows[i];
    if (row.number != before.number + 1 || row.columns.size() != before.columns.size() ||
        row.is_damped != before.is_damped || row.is_bent != before.is_bent) {
      return false;
    }
    for (std::size_t k = 0; k < row.columns.size(); ++k) {
      if (row.columns[k] != before.columns[k] + 1) return false;
    }
    return true;
  };
  for (std::size_t first = 0; first < rows.size();) {
    std::size_t last = first + 1;
    while (last < rows.size() && follows(last)) ++last;
    const auto equal_until = [&](std::size_t i) {
      std::size_t end = i + 1;
      while (end < last && rows[end].values == rows[i].values) ++end;
      return end;
    };
    std::size_t unlike = first;
    for (std::size_t i = first; i < last;) {
      const std::size_t end = equal_until(i);
      if (end - i >= kWorth || end - i == last - first) {
        if (unlike < i) add_run(rows, unlike, i, true);
        add_run(rows, i, end, false);
        unlike = end;
      }
      i = end;
    }
    if (unlike < last) add_run(rows, unlike, last, last - unlike > 1);
    first = last;
  }
  join_single_rows(first_run);
}

void StrokeMap::mark_even(std::initializer_list<std::span<const double>> by_row) {
  for (StrokeRun& run : runs_) {
    run.is_even = true;
    for (const std::span<const double> values : by_row) {
      for (int k = 0; k < run.count && run.is_even; ++k) {
        run.is_even = values[at(run.row + k * run.stride)] == values[at(run.row)];
      }
    }
  }
}

/// Rows of equal values at equal distances, such as those at the edges of a grid, become one run.
void StrokeMap::join_single_rows(std::size_t first_run) {
  std::vector<StrokeRun> joined;
  std::map<std::vector<double>, std::size_t> open;  // by columns beside the row, and values
  for (const StrokeRun& run : std::span(runs_).subspan(first_run)) {
    if (run.count > 1) {
      joined.push_back(run);
      continue;
    }
    const int values =
        run.terms * (run.is_damped ? 2 : 1) + (run.is_bent ? 1 : 0) + (run.is_mixed ? 1 : 0);
    std::vector<double> key = {run.is_damped ? 1.0 : 0.0, run.is_bent ? 1.0 : 0.0};
    for (int k = 0; k < run.terms; ++k) key.push_back(columns_[at(run.first_column + k)] - run.row);
    key.insert(key.end(), values_.begin() + run.first_value,
               values_.begin() + run.first_value + values);
    const auto [found, is_new] = open.try_emplace(std::move(key), joined.size());
    if (!is_new) {
      StrokeRun& like = joined[found->second];
      const int stride = like.count == 1 ? run.row - like.row : like.stride;
      if (run.row == like.row + like.count * stride && like.count < StrokeRun::kMostRows) {
        like.stride = stride;
        ++like.count;
        continue;
      }
      found->second = joined.size();
    }
    joined.push_back(run);
  }
  runs_.resize(first_run);
  runs_.insert(runs_.end(), joined.begin(), joined.end());
}

void StrokeMap::add_run(std::span<const Row> rows, std::size_t first, std::size_t last,
                        bool varies) {
  constexpr std::size_t kMost = StrokeRun::kMostRows;
  for (; first < last; first += kMost) {
    const std::size_t end = std::min(first + kMost, last);
    const Row& row = rows[first];
    runs_.push_back({.row = row.number,
                     .count = static_cast<int>(end - first),
                     .terms = static_cast<int>(row.columns.size()),
                     .first_column = static_cast<int>(columns_.size()),
                     .first_value = static_cast<int>(values_.size()),
                     .varies = varies && end - first > 1,
                     .is_damped = row.is_damped,
                     .is_mixed = row.is_mixed,
                     .is_bent = row.is_bent});
    columns_.insert(columns_.end(), row.columns.begin(), row.columns.end());
    if (!varies) {
      values_.insert(values_.end(), row.values.begin(), row.values.end());
      continue;
    }
    for (std::size_t k = 0; k < row.values.size(); ++k) {
      for (std::size_t i = first; i < end; ++i) values_.push_back(rows[i].values[k]);
    }
  }
}

}  // namespace portwave
