#pragma once

#include <vector>

#include <Eigen/SparseCore>

#include "kernels/stroke_kernels.hpp"

namespace portwave {

using RowMatrix = Eigen::SparseMatrix<double, Eigen::RowMajor>;

/// A sparse matrix compiled for products: rows that follow one another and have their entries on the same
/// diagonals are one run.
class StrokeMap {
 public:
  StrokeMap() = default;
  explicit StrokeMap(const RowMatrix& matrix);
  /// With a second matrix (dampers) and a coefficient by row, for KickTask. `damped`, `bent`: by row.
  StrokeMap(const RowMatrix& matrix, const RowMatrix& dampers, const std::vector<char>& damped,
            const std::vector<double>& cubic);
  /// Only some rows of the matrix: `rows` by row.
  static StrokeMap of_rows(const RowMatrix& matrix, const std::vector<char>& rows);

  StrokeRuns view() const {
    return {runs_.data(), static_cast<int>(runs_.size()), columns_.data(), values_.data()};
  }
  bool empty() const { return runs_.empty(); }
  std::size_t bytes() const {
    return runs_.capacity() * sizeof(StrokeRun) + columns_.capacity() * sizeof(int) +
           values_.capacity() * sizeof(double);
  }

 private:
  struct Row {
    int number = 0;
    std::vector<int> columns;
    std::vector<double> values;  ///< of the matrix, of the dampers, of the cubic
    bool is_damped = false, is_bent = false;
  };
  void add_rows(const std::vector<Row>& rows);
  void join_single_rows();
  void add_run(const std::vector<Row>& rows, std::size_t first, std::size_t last, bool varies);

  std::vector<StrokeRun> runs_;
  std::vector<int> columns_;
  std::vector<double> values_;
};

}  // namespace portwave
