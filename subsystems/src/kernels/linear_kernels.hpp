#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// One entry of a matrix whose values lie, lane by lane, in a group's `energy` block.
struct LinearEntry {
  int row;
  int column;
};

/// The same as kernels read it: offsets of row and column in arrays of a lane group, in doubles.
struct LinearOffsets {
  long row;
  long column;
};

/// A state with a row of the step map, and an integral of it alone, or −1: offsets as above.
struct LinearRow {
  long state;
  long integral;
};

/// What all lanes of a dense linear batch share. Counts are of entries in the energy block, which
/// holds, one after another: ½Q_ii of every state; the upper triangle of Q without its diagonal
/// (storage); rows of ½Q that the rest refers to (gradient);
/// h[R P; Pᵀ S] (dissipation); h[(G+P)ᵀ, S+N] of the external inputs (output); per port the
/// factor c of u = c(a ± b); and of each row of w that follows from z, the factor of x and those of its entries (derived). Rows and columns from z on are ports and inputs; before it they are
/// co-energy variables, n of them, or with stages n for each.
///
/// A state whose equation is ẋᵢ = Σⱼ kⱼ xⱼ, without ports and inputs, is an integral of those states:
/// xᵢ⁺ = xᵢ + Σⱼ ½h kⱼ(xⱼ + xⱼ⁺), as a position is the integral of a velocity. The others are advanced
/// by rows of the step map, in blocks of up to kRowsAtOnce.
struct LinearShape {
  int n = 0;  ///< states
  int z = 0;  ///< co-energy variables
  int p = 0;  ///< scalar ports
  int q = 0;  ///< external inputs
  int storage_count = 0;
  int gradient_count = 0;
  int mapped_count = 0;  ///< rows of z by maps of (x, a, ū): with stages all that are wanted
  int dissipation_count = 0;
  int output_count = 0;
  bool ports_dissipate = false;  ///< dissipation or output entries refer to ports
  int row_count = 0;             ///< states advanced by rows of the step map
  const LinearRow* rows = nullptr;
  const unsigned char* block_rows = nullptr;  ///< how many of them in each block
  int block_count = 0;
  int integral_count = 0;                    ///< entries of integrals that go with no row
  const LinearOffsets* integrals = nullptr;  ///< by rows; columns are no integrals
  /// Integrals have rows too, because in some lanes they are not advanced as such; elsewhere these are zero.
  bool integrals_have_rows = false;
  const LinearOffsets* storage = nullptr;
  const LinearOffsets* gradient = nullptr;
  const int* mapped = nullptr;
  const LinearOffsets* dissipation = nullptr;
  const LinearOffsets* output = nullptr;
  /// 1 where ∂H/∂xᵢ = Q_ii xᵢ is wanted: those rows are in none of the gradient's entries.
  const unsigned char* diagonal_gradient = nullptr;
  const double* input_sign = nullptr;  ///< p: +1 effort-in, −1 flow-in
  /// √(2δθ) of damped stages, 0 for others: w is that times Σᵢ √bᵢ P̂(cᵢ)δᵢ, and their numerical dissipation
  /// H(w), or the sum of those of substeps. With one stage δ is x⁺ − x; else w has rows of its own.
  double damping = 0.0;
  /// With one stage, where lanes differ in it: that of each, and `damping` the largest.
  const double* lane_damping = nullptr;
  int damped_count = 0;  ///< those rows: n for every substep, but for those that no part has, or 0
  /// With several stages, the terms that sums of x and rows of z add to w (DerivedDamping), and by state whether it has
  /// a row, too; without such terms all have.
  const unsigned char* has_damped_row = nullptr;
  const LinearOffsets* derived = nullptr;
  int derived_count = 0;
  int w = 0;  ///< room for w beside z: n where there may be such terms

  /// Doubles per lane that the account of a step works in.
  int work_size() const { return z + p + q + w; }
};

/// The step maps of one lane group: every coefficient W times side by side, or once if `shared`.
///   scatter  [σ (p) | D − σ (p×p)]
///   step     [Φ − I | Ψ | ½h k of the row's integral] of the states that have rows, ½h k of other
///            integrals' entries, C (p×n)
///   input    Ψ_u of the states that have rows, C_u (p×q)
/// Matrices of step and input lie block of rows by block, each column by column: in the order of a
/// sweep. Those of C and C_u are two rows each, and the last one alone where ports are odd.
///   mapped   rows of z (mapped_count × (n + p + q))
struct LinearGroup {
  const double* scatter = nullptr;
  const double* step = nullptr;
  const double* input = nullptr;
  const double* energy = nullptr;
  const double* mapped = nullptr;
  const double* increments = nullptr;  ///< rows of √bᵢ h ẋᵢ (z × (n + p + q)), where they are kept
  const double* damped = nullptr;  ///< rows of w (damped_count × (n + p + q))
  bool shared = false;
};

/// The groups [first, last) of a batch and its arrays, all from the beginning of the batch.
struct LinearTask {
  const LinearShape* shape = nullptr;
  const LinearGroup* groups = nullptr;
  int first = 0;
  int last = 0;
  int width = kLaneGroup;  ///< W: lanes per group, kLaneGroup or 1
  int stride = 0;          ///< of a and b
  const double* a = nullptr;
  double* b = nullptr;
  /// b⁰ (p) of all groups, then per group [x (n) | ū (q)] from `states` on: the inner iteration
  /// reads what lies together.
  double* record = nullptr;
  long states = 0;
  double* next = nullptr;     ///< advance: the record to write
  double* work = nullptr;     ///< advance: work_size()·W per group, where that exceeds kOnStack·W
  EnergyColumns energy;       ///< advance
  bool driven = false;        ///< freeze: ū is to be applied
  bool may_be_driven = true;  ///< advance, increments: else ū is zero in every record

  static constexpr int kOnStack = 96;
};

/// Rows of a map that are summed in one pass over its arguments: as many as there are registers.
inline constexpr int kRowsAtOnce = 6;
/// The same of C: ports are few.
inline constexpr int kPortsAtOnce = 2;

struct LinearKernels {
  /// b = σa + (b⁰ + (D − σ)a)
  void (*scatter)(const LinearTask&);
  /// The function that does the same for tasks of this width and number of ports, given a
  /// LinearTask; it returns −1.
  int (*(*scatter_of)(int width, int ports))(const void*);
  /// The function for tasks of this width and number of ports and states that, given a LinearTask, makes
  /// x⁺ = x + ((Φ − I)x + Ψa + Ψ_u ū), b⁰⁺ = Cx⁺, b and the energies. It returns the first lane
  /// whose x⁺ or b is not finite, or −1.
  int (*(*advance_of)(int width, int ports, int states))(const void*);
  /// b⁰ = Cx + C_u ū in `record`.
  void (*freeze)(const LinearTask&);
  /// The increments of the stages, which are kept, in the step that `a` made of `record`.
  void (*increments)(const LinearTask&, double* out);
};

/// The kernels for the instruction set in use.
const LinearKernels& linear_kernels();

PORTWAVE_DECLARE_KERNELS(const LinearKernels kLinearKernels)

}  // namespace portwave
