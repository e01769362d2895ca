#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include <Eigen/Core>

namespace portwave {

/// LU with partial pivoting in any precision. Plain loops: what is solved for is refined, and a
/// blocked LU takes long to compile.
template <class Scalar>
class PlainLu {
 public:
  using Dense = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic>;

  explicit PlainLu(Eigen::Index n) : order_(static_cast<std::size_t>(n)) {}

  void compute(const Dense& A) {
    lu_ = A;
    const Eigen::Index n = A.rows();
    for (Eigen::Index k = 0; k < n; ++k) {
      Eigen::Index pivot = k;
      for (Eigen::Index i = k + 1; i < n; ++i) {
        if (magnitude(lu_(i, k)) > magnitude(lu_(pivot, k))) pivot = i;
      }
      order_[static_cast<std::size_t>(k)] = pivot;
      for (Eigen::Index j = 0; j < n; ++j) std::swap(lu_(k, j), lu_(pivot, j));
      for (Eigen::Index i = k + 1; i < n; ++i) lu_(i, k) /= lu_(k, k);
      for (Eigen::Index j = k + 1; j < n; ++j) {
        for (Eigen::Index i = k + 1; i < n; ++i) lu_(i, j) -= lu_(i, k) * lu_(k, j);
      }
    }
  }

  void solve(const Dense& B, Dense& X) const {
    X = B;
    const Eigen::Index n = lu_.rows();
    for (Eigen::Index c = 0; c < X.cols(); ++c) {
      for (Eigen::Index k = 0; k < n; ++k) {
        std::swap(X(k, c), X(order_[static_cast<std::size_t>(k)], c));
      }
      for (Eigen::Index k = 0; k < n; ++k) {
        for (Eigen::Index i = k + 1; i < n; ++i) X(i, c) -= lu_(i, k) * X(k, c);
      }
      for (Eigen::Index k = n - 1; k >= 0; --k) {
        X(k, c) /= lu_(k, k);
        for (Eigen::Index i = 0; i < k; ++i) X(i, c) -= lu_(i, k) * X(k, c);
      }
    }
  }

  Dense inverse() const {
    Dense X;
    solve(Dense::Identity(lu_.rows(), lu_.rows()), X);
    return X;
  }

 private:
  static Scalar magnitude(Scalar value) { return value < Scalar(0) ? -value : value; }

  Dense lu_;
  std::vector<Eigen::Index> order_;
};

}  // namespace portwave
