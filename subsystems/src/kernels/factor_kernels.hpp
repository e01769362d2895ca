#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/matrices/factor_block.hpp"

namespace portwave {

/// Cholesky factors that are dense blocks of columns: how they are made, passes through them, and products with dense
/// symmetric matrices.
namespace factor_columns {

/// What all blocks share; see FactorBlock.
struct Factors {
  const FactorBlock* blocks = nullptr;
  std::size_t count = 0;
  const int* rows = nullptr;
  const double* values = nullptr;
  const double* inverse = nullptr;  ///< of the diagonal; 0 where a pivot was skipped
};

/// A lower triangle, column-major; what stands above it is not read.
struct Triangle {
  const double* values = nullptr;
  int size = 0;
};

/// Columns that are to be factors: `width` of them, `height` ≥ `width` rows of a lower triangle, column-major.
struct Columns {
  double* values = nullptr;
  int height = 0, width = 0;
};

struct Kernels {
  /// w = L⁻¹w, less Y w in rows of the boundary. `scratch`: the height of the highest block.
  void (*reduce)(const Factors& factors, double* w, double* scratch);
  /// w = L⁻ᵀ(w − Yᵀw_T)
  void (*expand)(const Factors& factors, double* w, double* scratch);
  /// x = (L Lᵀ)⁻¹x of one dense factor.
  void (*solve)(const Triangle& L, const double* inverse, double* x);
  /// y += A x, of `width` columns of a symmetric matrix from its first on, `height` ≥ `width` rows of their lower
  /// triangle, and the rows above that mirror them.
  void (*multiply)(const double* columns, int width, int height, const double* x, double* y);
  /// Columns of A into columns of L, and `inverse` of its diagonal. `skips`: of a pivot that is not positive column and
  /// inverse are 0. Returns the smallest pivot; where that is refused, or no number, nothing beyond it has been made.
  double (*factorise)(const Columns& columns, bool skips, double* inverse);
  /// C −= L Lᵀ on and below the diagonal, of the rows of L from the width on; C has as many, column-major.
  void (*subtract_square)(const Columns& L, double* C);
};

const Kernels& kernels();

}  // namespace factor_columns

PORTWAVE_DECLARE_KERNELS(const factor_columns::Kernels kFactorColumns)

}  // namespace portwave
