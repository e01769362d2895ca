#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// More digits than long double where the compiler has such a type. For set-up only: it is
/// emulated.
#ifdef __SIZEOF_FLOAT128__
__extension__ typedef __float128 Quadruple;  // NOLINT(modernize-use-using): takes no __extension__
#else
using Quadruple = long double;
#endif

/// Solves that set up step maps: refined with residuals in quadruple precision, so that a map is as
/// exact as its own rounding even where the equations of the step are ill-conditioned. `Factors` is
/// a factorisation of `matrix`, which must outlive this.
template <class Factors>
class RefinedSolves {
 public:
  RefinedSolves(const Factors& factors, const SparseMatrix& matrix)
      : factors_(factors), matrix_(matrix), transposed_(matrix.transpose()) {}

  /// matrix⁻¹ b.
  Eigen::VectorXd solve(const Eigen::VectorXd& b) {
    return refined(matrix_, b, [this](const Eigen::VectorXd& rhs) {
      Eigen::VectorXd x(rhs.size()), scratch(factors_.scratch_size());
      factors_.solve(rhs.data(), x.data(), scratch.data());
      return x;
    });
  }
  /// matrix⁻ᵀ b.
  Eigen::VectorXd solve_transposed(const Eigen::VectorXd& b) {
    return refined(transposed_, b,
                   [this](const Eigen::VectorXd& rhs) { return factors_.solve_transposed(rhs); });
  }

 private:
  template <class Solve>
  Eigen::VectorXd refined(const SparseMatrix& matrix, const Eigen::VectorXd& b,
                          const Solve& solve) {
    constexpr int kSweeps = 5;
    Eigen::VectorXd x = solve(b);
    std::vector<Quadruple> residual(static_cast<std::size_t>(b.size()));
    for (int sweep = 0; sweep < kSweeps && x.allFinite(); ++sweep) {
      for (Eigen::Index i = 0; i < b.size(); ++i) residual[static_cast<std::size_t>(i)] = b[i];
      for (int j = 0; j < matrix.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(matrix, j); it; ++it) {
          residual[static_cast<std::size_t>(it.row())] -= static_cast<Quadruple>(it.value()) * x[j];
        }
      }
      Eigen::VectorXd rhs(b.size());
      for (Eigen::Index i = 0; i < b.size(); ++i) {
        rhs[i] = static_cast<double>(residual[static_cast<std::size_t>(i)]);
      }
      const Eigen::VectorXd correction = solve(rhs);
      if (!correction.allFinite()) break;
      const double size = x.cwiseAbs().maxCoeff();
      x += correction;
      if (correction.cwiseAbs().maxCoeff() <= 1e-17 * size) break;
    }
    return x;
  }

  const Factors& factors_;
  const SparseMatrix& matrix_;
  SparseMatrix transposed_;
};

}  // namespace portwave
