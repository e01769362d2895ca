#pragma once

#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/sparse_factors.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Powers of two that bring the largest entry of every row and column near 1; 1 where there is
/// none. Source: Ruiz, A scaling algorithm to equilibrate both rows and columns norms,
/// RAL-TR-2001-034.
struct EvenScaling {
  Eigen::VectorXd rows, columns;

  explicit EvenScaling(const SparseMatrix& M);
  SparseMatrix apply(const SparseMatrix& M) const;
};

/// A B without the entries that only rounding has made, those below `relative` of their terms.
SparseMatrix clean_product(const SparseMatrix& A, const SparseMatrix& B, double relative = 1e-13);

/// Rank and kernels of a sparse matrix of any shape, by the connected components of its rows and
/// columns, after scaling. Singular values below 1e-12 of the largest count as zero.
class SparseRank {
 public:
  explicit SparseRank(const SparseMatrix& M);

  int rank() const { return rank_; }
  bool is_regular() const { return rank_ == rows_ && rank_ == columns_; }
  /// N with NᵀM = 0, rows × (rows − rank). Every column has a largest entry of 1, and one ≠ 0 where
  /// the others are 0.
  const SparseMatrix& left_kernel() const { return left_; }
  /// N with MN = 0, columns × (columns − rank).
  const SparseMatrix& right_kernel() const { return right_; }

 private:
  int rows_;
  int columns_;
  int rank_ = 0;
  SparseMatrix left_;
  SparseMatrix right_;
};

/// X with MX = B where B lies in the range of M (the nearest otherwise, in scaled rows).
SparseMatrix solve_in_range(const SparseMatrix& M, const SparseMatrix& B);

/// An orthonormal basis of the span of the columns.
SparseMatrix orthonormalised(const SparseMatrix& basis);

/// A sparse LU of the scaled matrix.
class ScaledFactors {
 public:
  /// Errors: false when M is singular to working precision.
  bool factorise(const SparseMatrix& M);

  int size() const { return lu_.size(); }
  int scratch_size() const { return lu_.scratch_size(); }
  /// x = M⁻¹b; x may be b.
  void solve(const double* b, double* x, double* scratch) const;
  /// x = M⁻ᵀb. Set-up only.
  Eigen::VectorXd solve_transposed(const Eigen::VectorXd& b) const;
  /// An estimate of ‖M̂‖₁‖M̂⁻¹‖₁ of the scaled M̂. Set-up only.
  double condition() const;

 private:
  SparseFactors lu_;
  Eigen::VectorXd rows_, columns_;
  double norm_ = 0.0;
};

}  // namespace portwave
