#pragma once

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

}  // namespace portwave
