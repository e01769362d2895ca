#pragma once

#include <cmath>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// y += sign · A x, or |A| x for magnitudes.
template <bool kMagnitudes>
void add_product(const SparseMatrix& A, double sign, const Eigen::VectorXd& x, Eigen::VectorXd& y) {
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      y[it.row()] += (kMagnitudes ? std::abs(it.value()) : sign * it.value()) * x[j];
    }
  }
}

/// y += Aᵀ x, or |A|ᵀ x for magnitudes.
template <bool kMagnitudes>
void add_transposed_product(const SparseMatrix& A, const Eigen::VectorXd& x, Eigen::VectorXd& y) {
  for (int j = 0; j < A.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
      y[j] += (kMagnitudes ? std::abs(it.value()) : it.value()) * x[it.row()];
    }
  }
}

}  // namespace portwave
