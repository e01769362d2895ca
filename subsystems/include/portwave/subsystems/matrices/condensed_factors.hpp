#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/matrices/factor_block.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Cholesky factors of a symmetric matrix whose rows T, its boundary, come last and are left whole:
///   A = [A_II A_IT; A_TI A_TT],  A_II = L Lᵀ,  Y = A_TI L⁻ᵀ,  Σ = A_TT − Y Yᵀ.
/// The interior I is ordered by minimal degree. Factors are dense blocks of columns with one pattern
/// (supernodes), made by the multifrontal method.
///   A x = r  ⇔  w = L⁻¹ r_I,  Σ x_T = r_T − Y w (`reduce`),  x_I = L⁻ᵀ(w − Yᵀ x_T) (`expand`).
/// Cost     factorise: the fill; reduce and expand: one multiplication and addition per entry of the factors.
/// Source   Duff & Reid, ACM TOMS 9 (1983); supernodes joined as in Ashcraft & Grimes, ACM TOMS 15 (1989).
class CondensedFactors {
 public:
  /// What becomes of a pivot that is not positive.
  enum class Pivots {
    positive,     ///< the matrix is refused
    semidefinite  ///< its row and column of what is left are taken for 0
  };

  /// `A`: both triangles. `boundary`: rows T, each once. False: a pivot is not positive, or no number.
  bool factorise(const SparseMatrix& A, std::span<const int> boundary,
                 Pivots pivots = Pivots::positive);

  int interior() const { return interior_; }
  int boundary() const { return static_cast<int>(order_.size()) - interior_; }
  /// Row of A at each place: the interior in the order of elimination, then T as it was given.
  const std::vector<int>& order() const { return order_; }
  /// Σ, both triangles, rows in the order of `boundary`. Without an interior it is A, and is not formed.
  const Eigen::MatrixXd& schur() const { return schur_; }
  /// Of L and Y, zeros within blocks included.
  std::size_t entries() const { return values_.size(); }
  /// The smallest pivot, the square of a diagonal entry of L; infinite without an interior.
  double smallest_pivot() const { return smallest_pivot_; }
  /// Multiplications and additions of the last factorisation.
  double work() const { return work_; }
  std::size_t bytes() const;

  // `w` is by place; `scratch` as many doubles as scratch_size().
  std::size_t scratch_size() const { return longest_; }
  void reduce(double* w, double* scratch) const;
  void expand(double* w, double* scratch) const;
  /// y = Σ x
  void multiply_schur(const double* x, double* y) const;

 private:
  using Node = FactorBlock;
  struct Symbolic;

  void analyse(const SparseMatrix& A, std::span<const int> boundary, Symbolic& symbolic);
  bool eliminate(const SparseMatrix& A, const Symbolic& symbolic, Pivots pivots);
  bool eliminate_block(const Node& node, Pivots pivots);

  int interior_ = 0;
  std::vector<int> order_;
  std::vector<Node> nodes_;
  std::vector<int> rows_;
  AlignedVector values_;
  std::vector<double> inverse_;  ///< of the diagonal of L; 0 where a pivot was skipped
  Eigen::MatrixXd schur_;
  std::size_t longest_ = 0;
  double smallest_pivot_ = 0.0, work_ = 0.0;
};

}  // namespace portwave
