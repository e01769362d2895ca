#pragma once

#include <cstddef>

namespace portwave {

/// Columns [first, last) of a Cholesky factor, one dense block with one pattern, column-major: their own rows, and
/// those below. Kernels read it, so that it has no functions.
struct FactorBlock {
  int first = 0, last = 0;
  int parent = -1;         ///< block; −1: what is left goes to Σ
  int below_count = 0;     ///< rows below
  std::size_t below = 0;   ///< where their numbers begin
  std::size_t values = 0;  ///< where the entries begin
};

}  // namespace portwave
