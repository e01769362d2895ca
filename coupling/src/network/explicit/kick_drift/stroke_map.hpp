#pragma once

#include <initializer_list>
#include <span>
#include <vector>

#include <Eigen/SparseCore>

#include "kernels/stroke_kernels.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

using RowMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

/// A sparse matrix compiled for products: rows that follow one another and have their entries on the same
/// diagonals are one run. Where long runs are interrupted by a few rows that have less of these diagonals, as at the
/// ends of the rows of a grid, and by gaps, all of these are one run of segments, with values of 0 for what is missing.
class StrokeMap {
 public:
  StrokeMap() = default;
  explicit StrokeMap(const RowMatrix& matrix);

  /// First rows of blocks, increasing from 0. No run reaches from one into another.
  using Blocks = std::span<const int>;
  /// By row: whether it is wanted, whether it has dampers, and its cubic's coefficient.
  struct KickRows {
    const std::vector<char>& real;
    const std::vector<char>& damped;
    const AlignedVector& cubic;
    Blocks blocks;
    bool has_room = false;  ///< as in `of_rows`
  };
  /// With a second matrix (dampers) and a coefficient by row, for KickTask.
  StrokeMap(const RowMatrix& matrix, const RowMatrix& dampers, const KickRows& rows);
  /// For MixedKickTask: `stiffness` is r, by row.
  static StrokeMap mixed(const RowMatrix& dampers, std::span<const double> stiffness,
                         const KickRows& rows);
  /// Only some rows of the matrix: `rows` by row. `has_room`: kernels may write 0 to other rows of the same groups of
  /// eight, so that there may be segments.
  static StrokeMap of_rows(const RowMatrix& matrix, const std::vector<char>& rows,
                           Blocks blocks = {}, bool has_room = false);

  /// Marks runs in all of whose rows each of these arrays, which are by row, has one value.
  void mark_even(std::initializer_list<std::span<const double>> by_row);

  StrokeRuns view() const {
    return {runs_.data(), static_cast<int>(runs_.size()), columns_.data(), values_.data(),
            segments_.data()};
  }
  /// The rows of one block.
  StrokeRuns view(int block) const {
    const int first = first_run_[static_cast<std::size_t>(block)];
    return {runs_.data() + first, first_run_[static_cast<std::size_t>(block) + 1] - first,
            columns_.data(), values_.data(), segments_.data()};
  }
  bool empty() const { return runs_.empty(); }
  /// body(row, column) for all entries.
  template <class Body>
  void for_entries(const Body& body) const {
    for (const StrokeRun& run : runs_) {
      for (int i = 0; i < run.count * run.stride; i += run.stride) {
        for (int k = 0; k < run.terms; ++k) {
          body(run.row + i, columns_[static_cast<std::size_t>(run.first_column + k)] + i);
        }
      }
    }
  }
  std::size_t bytes() const {
    return runs_.capacity() * sizeof(StrokeRun) + columns_.capacity() * sizeof(int) +
           values_.capacity() * sizeof(double) + segments_.capacity() * sizeof(StrokeSegment);
  }

 private:
  struct Row {
    int number = 0;
    std::vector<int> columns;
    std::vector<double> values;  ///< of the matrix, of the dampers or r, of the cubic
    bool is_damped = false, is_mixed = false, is_bent = false;
  };
  friend class StrokeSegments;
  void add_blocks(const std::vector<Row>& rows, Blocks blocks, const RowMatrix& matrix,
                  bool has_room);
  void add_rows(std::span<const Row> rows);
  void join_single_rows(std::size_t first_run);
  void add_run(std::span<const Row> rows, std::size_t first, std::size_t last, bool varies);

  std::vector<StrokeRun> runs_;
  std::vector<int> first_run_;  ///< by block, and the number of runs
  std::vector<int> columns_;
  std::vector<double> values_;
  std::vector<StrokeSegment> segments_;
};

}  // namespace portwave
