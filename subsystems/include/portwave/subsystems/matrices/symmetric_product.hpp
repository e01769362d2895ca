#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Products with a symmetric matrix, from its diagonal and the entries below it. A block of rows and columns
/// that is mostly full may be kept dense.
class SymmetricProduct {
 public:
  SymmetricProduct() = default;
  /// `block`: rows that may meet in such a block; kept dense if half of it is entries.
  explicit SymmetricProduct(const SparseMatrix& M, std::span<const int> block = {});

  /// Doubles that `add` needs as scratch.
  std::size_t scratch_size() const { return 2 * block_.size(); }
  /// y += factor · M x
  void add(double factor, const double* x, double* y, double* scratch) const;
  std::size_t bytes() const {
    return 12 * value_.size() + 12 * diagonal_.size() + 8 * static_cast<std::size_t>(dense_.size());
  }

 private:
  std::vector<double> diagonal_, value_;
  std::vector<int> begin_, row_;
  std::vector<int> block_;
  Eigen::MatrixXd dense_;  // lower triangle; its diagonal is in diagonal_
};

}  // namespace portwave
