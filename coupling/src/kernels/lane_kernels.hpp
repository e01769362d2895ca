#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/lane_group.hpp"

// Blocks of one class are solved kLaneGroup at a time, side by side: arrays are [state][lane].

namespace portwave {

/// A sparse matrix line by line, entries [begin[i], begin[i + 1]) of line i; `offset` is kLaneGroup
/// times the number of the row or column across.
struct LaneLines {
  int count = 0;
  const int* begin = nullptr;
  const int* offset = nullptr;
  const double* value = nullptr;
};

/// A = L U line by line, in an order in which lines that do not need one another are neighbours:
///   y_i = b[source_i] − Σ L y,   x[target_i] = (y[from_i] − Σ U x) · inverse_diagonal_i.
struct LaneTriangles {
  LaneLines lower, upper;
  const int* source = nullptr;
  const int* from = nullptr;
  const int* target = nullptr;
  const double* inverse_diagonal = nullptr;
};

/// Every lane does the operations of the functions for one block, in their order
/// (linear_solver.hpp, SparseFactors): same bits.
struct LaneKernels {
  /// y = 0 + M x, by rows.
  void (*product)(const LaneLines& M, const double* x, double* y);
  /// y += M (factor x), by rows.
  void (*add_product)(const LaneLines& M, double factor, const double* x, double* y);
  /// x = A⁻¹ b; x may be b, y is scratch.
  void (*solve)(const LaneTriangles& A, const double* b, double* x, double* y);
  /// x = M b of a dense n×n matrix by columns of `stride` doubles; x is not b.
  void (*dense_product)(const double* M, int n, int stride, const double* b, double* x);
  /// x = M b of one block: dense, n×n by columns of `stride` doubles, a multiple of kLaneGroup ≥ n,
  /// what is beyond n being finite.
  void (*matrix_vector)(const double* M, int n, int stride, const double* b, double* x);
  /// sum[lane] = xᵀ M y, by columns.
  void (*bilinear)(const LaneLines& M, const double* x, const double* y, double* sum);
  /// x += factor · d
  void (*advance)(int n, double factor, const double* d, double* x);
  /// sum[lane] = Σ xᵢ, and Σ xᵢ²
  void (*sum)(int n, const double* x, double* sum);
  void (*sum_squares)(int n, const double* x, double* sum);
  /// y += M x by rows where mask has all bits, per entry of x; y stays as it is where it has none.
  void (*add_masked)(const LaneLines& M, const unsigned long long* mask, const double* x,
                     double* y);
  /// y = factor · x,   y += x,   y −= x
  void (*scale)(int n, double factor, const double* x, double* y);
  void (*add)(int n, const double* x, double* y);
  void (*subtract)(int n, const double* x, double* y);
  /// Of StageSolver: rhs[i][k] = g[k][i] + Ax[i], and X = x + d, x += Σ w d from increments
  /// d[i][k].
  void (*stage_rhs)(int n, int stages, const double* g, const double* Ax, double* rhs);
  void (*stage_end)(int n, int stages, const double* weights, const double* d, double* x,
                    double* X);
  /// Between kLaneGroup blocks of n states and [state][lane]; only `lanes` of them are written
  /// back.
  void (*gather)(int n, const double* const* from, double* to);
  void (*scatter)(int n, int lanes, const double* from, double* const* to);
};

const LaneKernels& lane_kernels();

PORTWAVE_DECLARE_KERNELS(const LaneKernels kLaneKernels)

}  // namespace portwave
