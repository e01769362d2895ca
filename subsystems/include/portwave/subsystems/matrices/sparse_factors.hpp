#pragma once

#include <cstddef>
#include <vector>

#include <Eigen/SparseLU>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// A sparse LU, Pr A Pcᵀ = L U, kept in flat arrays so that a solve allocates nothing. Eigen's
/// SparseLU factorises; its own solve takes work arrays from the heap every time.
class SparseFactors {
 public:
  /// Errors: false when A is singular to working precision.
  bool factorise(const SparseMatrix& A);

  int size() const { return static_cast<int>(row_of_.size()); }
  /// Entries of L and U, with the diagonal of U.
  std::size_t nonzeros() const {
    return lower_.value.size() + upper_.value.size() + inverse_diagonal_.size();
  }
  /// Doubles that solve needs as scratch.
  int scratch_size() const { return size(); }
  /// x = A⁻¹ b; x may be b.
  void solve(const double* b, double* x, double* scratch) const;
  /// x = A⁻ᵀ b. Set-up only.
  Eigen::VectorXd solve_transposed(const Eigen::VectorXd& b) const;

  struct Triangle {  ///< compressed columns, without the diagonal
    std::vector<int> begin;
    std::vector<int> row;
    std::vector<double> value;
  };
  // The factors, for other ways to solve.
  const Triangle& lower() const { return lower_; }
  const Triangle& upper() const { return upper_; }
  const std::vector<double>& inverse_diagonal() const { return inverse_diagonal_; }  ///< of U
  const std::vector<int>& row_of() const { return row_of_; }        ///< by row of b
  const std::vector<int>& column_of() const { return column_of_; }  ///< by unknown

 private:
  Triangle lower_;
  Triangle upper_;
  std::vector<double> inverse_diagonal_;
  std::vector<int> row_of_;     // place of row i of b in the permuted right-hand side
  std::vector<int> column_of_;  // place of unknown j in the permuted solution
};

}  // namespace portwave
