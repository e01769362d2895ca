#pragma once

#include <optional>
#include <vector>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// A connected component of a symmetric matrix that has a negative eigenvalue beyond round-off.
struct NegativeBlock {
  std::vector<int> indices;                   ///< rows of the component, ascending
  std::optional<double> smallest_eigenvalue;  ///< of the component; absent for large ones
};

/// The worst negative component of a symmetric, finite matrix; nothing when the matrix is positive
/// semidefinite (see is_positive_semidefinite). Components of up to 400 rows are judged pivot by
/// pivot of LDLᵀ, each beside its own diagonal entry; larger ones by a sparse LDLᵀ of the shifted
/// component.
std::optional<NegativeBlock> find_negative_block(const SparseMatrix& M, double relative_tolerance);

}  // namespace portwave
