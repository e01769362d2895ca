#pragma once

#include <memory>
#include <optional>
#include <string>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/structure.hpp"

/// Eigen's decompositions behind plain functions. Their templates take up to half a minute to
/// compile; here they are compiled once. For set-up: all but DenseLu allocate.
namespace portwave {

struct SymmetricEigen {
  Eigen::VectorXd values;   ///< n, increasing
  Eigen::MatrixXd vectors;  ///< n×n, orthonormal columns
};

/// Eigenvalues and eigenvectors of a symmetric n×n matrix; its lower triangle is read.
SymmetricEigen symmetric_eigen(const Eigen::MatrixXd& M);
/// The same eigenvalues without vectors, increasing.
Eigen::VectorXd symmetric_eigenvalues(const Eigen::MatrixXd& M);

struct SingularValues {
  Eigen::MatrixXd left;    ///< U, m×m
  Eigen::VectorXd values;  ///< min(m, n), decreasing
  Eigen::MatrixXd right;   ///< V, n×n
};

/// M = U Σ Vᵀ of an m×n matrix.
SingularValues singular_values(const Eigen::MatrixXd& M);
double largest_singular_value(const Eigen::MatrixXd& M);
/// The shortest X with the least |MX − B|; singular values up to `threshold` times the largest
/// count as 0.
Eigen::MatrixXd least_squares(const Eigen::MatrixXd& M, const Eigen::MatrixXd& B, double threshold);

/// A⁻¹B by LU with partial pivoting. Not finite where A is singular.
Eigen::MatrixXd lu_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B);
/// A⁻¹, likewise.
Eigen::MatrixXd lu_inverse(const Eigen::MatrixXd& A);
/// A⁻¹ by LU with full pivoting; empty where A is singular to working precision.
std::optional<Eigen::MatrixXd> pivoted_inverse(const Eigen::MatrixXd& A);

/// A⁻¹B, likewise. Not finite where A is singular.
Eigen::MatrixXd pivoted_solve(const Eigen::MatrixXd& A, const Eigen::MatrixXd& B);

/// Q R Pᵀ of an m×n matrix, Householder with column pivoting.
struct PivotedQr {
  Eigen::MatrixXd Q;         ///< m×m
  Eigen::VectorXd diagonal;  ///< of R
};
PivotedQr pivoted_qr(const Eigen::MatrixXd& M);
/// Pivots above `threshold` times the largest, of the same decomposition.
Eigen::Index pivoted_rank(const Eigen::MatrixXd& M, double threshold);
/// The first n columns of Q of an m×n matrix, m ≥ n, without pivoting.
Eigen::MatrixXd orthonormal_columns(const Eigen::MatrixXd& M);

/// The rank of a sparse matrix by QR: pivots up to `threshold` count as 0. Empty where QR fails.
std::optional<Eigen::Index> sparse_rank(const SparseMatrix& M, double threshold);

/// LU with partial pivoting of one n×n matrix after another, without allocating.
class DenseLu {
 public:
  explicit DenseLu(Eigen::Index n);
  ~DenseLu();
  DenseLu(DenseLu&&) noexcept;
  DenseLu& operator=(DenseLu&&) noexcept;

  void compute(const Eigen::MatrixXd& A);
  /// x = A⁻¹b; both of n entries, and not the same.
  void solve(const Eigen::VectorXd& b, Eigen::VectorXd& x) const;
  /// X = A⁻¹B, likewise.
  void solve(const Eigen::MatrixXd& B, Eigen::MatrixXd& X) const;
  Eigen::MatrixXd inverse() const;
  /// L below the diagonal, U on and above it.
  const Eigen::MatrixXd& factors() const;
  /// Row i of A is row order[i] of LU.
  const int* order() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// LU of a sparse matrix, for set-up. (SparseFactors solves without allocating.)
class SparseLu {
 public:
  SparseLu();
  ~SparseLu();
  SparseLu(SparseLu&&) noexcept;
  SparseLu& operator=(SparseLu&&) noexcept;

  /// Chooses the order of elimination for the pattern of A.
  void analyse(const SparseMatrix& A);
  /// Precondition: `analyse` was called with the same pattern. False where A is singular.
  bool factorise(const SparseMatrix& A);
  /// Why `factorise` failed.
  std::string error() const;
  Eigen::VectorXd solve(const Eigen::VectorXd& b) const;
  Eigen::MatrixXd solve(const Eigen::MatrixXd& B) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
