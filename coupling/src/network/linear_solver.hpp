#pragma once

#include <cmath>
#include <optional>
#include <vector>

#include "kernels/lane_kernels.hpp"
#include "portwave/subsystems/matrices/sparse_factors.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// A sparse matrix as lane kernels take it.
class LaneMatrix {
 public:
  enum class By { rows, columns };

  LaneMatrix() = default;
  LaneMatrix(const SparseMatrix& M, By by);
  LaneLines lines() const {
    return {static_cast<int>(begin_.size()) - 1, begin_.data(), offset_.data(), value_.data()};
  }

 private:
  std::vector<int> begin_{0}, offset_;
  std::vector<double> value_;
};

/// Factors as lane kernels take them.
class LaneFactors {
 public:
  LaneFactors() = default;
  explicit LaneFactors(const SparseFactors& factors);
  LaneTriangles triangles() const;

 private:
  struct Triangle {
    std::vector<int> begin{0}, offset;
    std::vector<double> value;
    LaneLines lines() const {
      return {static_cast<int>(begin.size()) - 1, begin.data(), offset.data(), value.data()};
    }
  };
  Triangle lower_, upper_;
  std::vector<int> source_, from_, target_;
  std::vector<double> inverse_diagonal_;
};

/// y += factor · M x, of a sparse matrix.
inline void add_product(const SparseMatrix& M, double factor, const double* x, double* y) {
  const int* outer = M.outerIndexPtr();
  const int* inner = M.innerIndexPtr();
  const double* value = M.valuePtr();
  for (Eigen::Index j = 0; j < M.cols(); ++j) {
    const double xj = factor * x[j];
    for (int k = outer[j]; k < outer[j + 1]; ++k) y[inner[k]] += value[k] * xj;
  }
}

/// xᵀ M y
inline double bilinear(const SparseMatrix& M, const double* x, const double* y) {
  const int* outer = M.outerIndexPtr();
  const int* inner = M.innerIndexPtr();
  const double* value = M.valuePtr();
  double sum = 0.0;
  for (Eigen::Index j = 0; j < M.cols(); ++j) {
    double column = 0.0;
    for (int k = outer[j]; k < outer[j + 1]; ++k) column += value[k] * x[inner[k]];
    sum += column * y[j];
  }
  return sum;
}

/// Σ|xᵢ Mᵢⱼ xⱼ|: the size of the terms of a quadratic form, which rounding errors of it go by.
inline double term_size(const SparseMatrix& M, const double* x) {
  double sum = 0.0;
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      sum += std::abs(it.value() * x[it.row()] * x[j]);
    }
  }
  return sum;
}

/// The columns of a sparse matrix as flat lists of places and values, for loops over few entries.
struct ColumnList {
  std::vector<int> begin, row;
  std::vector<double> value;

  ColumnList() = default;
  explicit ColumnList(const SparseMatrix& M);
  int columns() const { return static_cast<int>(begin.size()) - 1; }
  double dot(int column, const double* x) const {
    double sum = 0.0;
    for (int k = begin[column]; k < begin[column + 1]; ++k) sum += value[k] * x[row[k]];
    return sum;
  }
  void add(int column, double factor, double* x) const {
    for (int k = begin[column]; k < begin[column + 1]; ++k) x[row[k]] += value[k] * factor;
  }
};

/// x = L⁻¹b for one L and many b: the inverse of small matrices, sparse factors of others,
/// whichever takes fewer operations, vectors counted fourfold.
class LinearSolver {
 public:
  LinearSolver() = default;
  /// Errors: false when L is singular.
  bool factorise(const SparseMatrix& L);

  int size() const { return size_; }
  /// L⁻¹ by columns; null where there are factors instead.
  const double* inverse() const { return dense_ ? inverse_.data() : nullptr; }
  int scratch_size() const { return size_; }
  /// x is not b.
  void solve(const double* b, double* x, double* scratch) const;
  /// The same for kLaneGroup at once, arrays [row][lane]; after `prepare_lanes`.
  void prepare_lanes();
  void solve_lanes(const double* b, double* x, double* scratch) const;
  Eigen::MatrixXd solve(const SparseMatrix& columns) const;
  /// Multiplications and additions of a solve, as pairs.
  double operations() const;

 private:
  int size_ = 0;
  bool dense_ = false;
  Eigen::MatrixXd inverse_;
  SparseFactors factors_;
  std::optional<LaneFactors> lanes_;
};

}  // namespace portwave
