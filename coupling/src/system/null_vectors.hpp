#pragma once

#include <utility>
#include <vector>

#include <Eigen/SparseCore>

namespace portwave {

/// Places and values ≠ 0, by increasing place.
using SparseVector = std::vector<std::pair<int, double>>;

/// Of a sparse matrix M: bases of nᵀM = 0 and Mv = 0.
struct NullVectors {
  std::vector<SparseVector> left, right;
};

/// Equal places of `entries` add up. Rows and columns with one entry are eliminated first, in time
/// proportional to the entries; a sparse rank-revealing factorisation has what is left, which of networks
/// is little or nothing.
NullVectors null_vectors(int rows, int columns, const std::vector<Eigen::Triplet<double>>& entries);

}  // namespace portwave
