#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

/// LU with partial pivoting of small matrices, real or complex with real and imaginary parts in arrays of their own.
/// Columns follow one another at a distance of `stride` ≥ n, a multiple of kLaneGroup; so long are right sides, too.
namespace small_lu {

/// Afterwards, row i of LU is row order[i] of the matrix. L and U are without their diagonals and 0 elsewhere.
struct Real {
  int n = 0, stride = 0;
  double *A, *L, *U;  ///< A is given, and is lost
  double* diagonal;   ///< of U
  int* order;
};

struct Complex {
  int n = 0, stride = 0;
  double *A, *A_imaginary, *L, *L_imaginary, *U, *U_imaginary;
  double *diagonal, *diagonal_imaginary;
  int* order;
};

struct Kernels {
  /// A singular matrix shows in solutions that are not finite.
  void (*factorise)(const Real& lu);
  /// b is in the order of the rows of LU, and becomes x.
  void (*solve)(const Real& lu, double* b);
  void (*factorise_complex)(const Complex& lu);
  void (*solve_complex)(const Complex& lu, double* b, double* b_imaginary);
};

const Kernels& kernels();

}  // namespace small_lu

PORTWAVE_DECLARE_KERNELS(const small_lu::Kernels kSmallLu)

}  // namespace portwave
