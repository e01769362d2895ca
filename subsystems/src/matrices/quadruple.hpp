#pragma once

#include <algorithm>
#include <cmath>
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

/// b − Σ aᵢ xᵢ as if in twice the digits of a double: errors of products and sums are exact, and are summed up
/// beside it (Ogita, Rump, Oishi: Accurate sum and dot product, SIAM J. Sci. Comput. 26, 2005).
class LongDifference {
 public:
  LongDifference(double b = 0.0) : sum_(b) {}  // NOLINT(google-explicit-constructor): a number

  void subtract(double a, double x) {
    const double product = a * x, of_product = std::fma(a, x, -product);
    const double sum = sum_ - product, taken = sum - sum_;
    errors_ += ((sum_ - (sum - taken)) - (product + taken)) - of_product;
    sum_ = sum;
  }
  double value() const { return sum_ + errors_; }

 private:
  double sum_, errors_ = 0.0;
};

/// Solves that set up step maps: refined with residuals of twice the digits, so that a map is as exact as its own
/// rounding even where the equations of the step are ill-conditioned. `Factors` is a factorisation of `matrix`,
/// which must outlive this.
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
    std::vector<LongDifference> residual(static_cast<std::size_t>(b.size()));
    for (int sweep = 0; sweep < kSweeps && x.allFinite(); ++sweep) {
      std::copy_n(b.data(), b.size(), residual.begin());
      for (int j = 0; j < matrix.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(matrix, j); it; ++it) {
          residual[static_cast<std::size_t>(it.row())].subtract(it.value(), x[j]);
        }
      }
      Eigen::VectorXd rhs(b.size());
      for (Eigen::Index i = 0; i < b.size(); ++i) {
        rhs[i] = residual[static_cast<std::size_t>(i)].value();
      }
      const Eigen::VectorXd correction = solve(rhs);
      if (!correction.allFinite()) break;
      const Eigen::VectorXd before = x;
      x += correction;
      if (x == before) break;  // as would all further sweeps
    }
    return x;
  }

  const Factors& factors_;
  const SparseMatrix& matrix_;
  SparseMatrix transposed_;
};

}  // namespace portwave
