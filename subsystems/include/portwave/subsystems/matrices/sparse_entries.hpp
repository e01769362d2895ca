#pragma once

#include <vector>

#include <Eigen/SparseCore>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Entries that a sparse matrix is made of; equal places add up.
using SparseEntries = std::vector<Eigen::Triplet<double>>;

inline SparseMatrix sparse_matrix(Eigen::Index rows, Eigen::Index columns,
                                  const SparseEntries& entries) {
  SparseMatrix out(rows, columns);
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

/// Appends the entries of factor · M, with the first of them at (row, column).
inline void append_block(const SparseMatrix& M, int row, int column, SparseEntries& entries,
                         double factor = 1.0) {
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      entries.emplace_back(row + static_cast<int>(it.row()), column + j, factor * it.value());
    }
  }
}

}  // namespace portwave
