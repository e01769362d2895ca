#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/tape_program.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// Steps of parts with constant structure whose ∇²H changes by r states y alone. With the mean gradient V̄(y, δ) and
/// g = Qx + c + ½QΔ + V̄ at these states:
///   Δ = d⁰ + D a + N V̄,   b = b⁰ + B a + M V̄,   u = A a + B b at the ports,
///   d⁰ = K(Qx + c) + L ū,   b⁰ = F(Qx + c) + H d⁰ + M ū.
/// Where r = 1 and V̄ is exact, the step is one equation, δ = d⁰ + D a + N V̄ at y. V̄ is then a program of (y, δ)
/// (SplitEnergy::closed_mean), or, H being a polynomial in y, one in δ that is frozen with the state,
///   V̄(δ) = t₁ + t₂δ + … + t_d δ^{d−1},   t_m = V⁽ᵐ⁾(y)/m!.
namespace bent {

inline constexpr int kMostDegree = 10;
inline constexpr int kMostStates = 16, kMostPorts = 8, kMostBent = 4;
/// Lane groups for which programs run at once.
inline constexpr int kGroups = 4;

/// A number of a matrix, and its place among the coefficients.
struct Entry {
  int row, column, place;
};
struct Entries {
  const Entry* first = nullptr;
  int count = 0;
};

/// Where a lane group has what: places count values of it, W doubles each. Columns of a block follow one another.
struct Layout {
  int coefficient_count = 0, record_count = 0;
  int states = 0, ports = 0, inputs = 0, bent = 0;
  const int* bent_states = nullptr;
  // Coefficients.
  int Q = 0, constants = 0,
      weight = 0;  ///< the second: c; V̄ is `weight` times the mean that is given
  Entries R, P, S, outputs, through;  ///< the last two: y at the external inputs, of g and u
  int of_gradient = 0, of_input = 0, of_wave = 0, of_mean = 0;
  int b_of_gradient = 0, b_of_offset = 0, b_of_input = 0, b_of_wave = 0, b_of_mean = 0;
  int u_of_a = 0, u_of_b = 0;
  // Record.
  int state = 0, input = 0, offset = 0, b_offset = 0;
  int increment = 0;  ///< the last δ, or NaN
  /// What programs of y leave when the state is frozen: t₁ to t_d, or ∇V and ∇²V; and V.
  const TapeProgram* frozen[2];
  int frozen_to[2] = {0, 0};
  // Where the step is one equation:
  bool is_one = false;
  int degree = 0;  ///< 0: V̄ is a program
  int taylor =
      0;  ///< t₁ to t_d, then what roundings of y move in V̄, times 1/ε; with a program t₁ and t₂
  const TapeProgram* mean_of = nullptr;
};

struct Task {
  const Layout* layout = nullptr;
  const double* coefficients = nullptr;
  const int* block = nullptr;  ///< where those of a lane group begin
  double* record = nullptr;
  double* next = nullptr;
  const double* a = nullptr;
  double* b = nullptr;
  int stride = 0;
  int first = 0, last = 0;  ///< lane groups
  bool warm = false;        ///< starts from the last δ where there is one, and leaves its own
  double step_s = 0.0;
  double* registers = nullptr;            ///< of mean_of, for one group
  double* registers_of_frozen = nullptr;  ///< of both, for kGroups groups
  /// Null, or δ, V̄ and whether the lane has no solution here (1, else 0), of the last group. `commit` is given them.
  double* delta = nullptr;
  double* mean = nullptr;
  double* failed = nullptr;
  EnergyColumns energy;
};

struct Kernels {
  /// Where the step is one equation. Up to the first group where a lane failed, which is returned, or −1.
  int (*scatter)(const Task& task);
  /// The same with commit and freeze of the groups before. A group is failed too where a b is not finite.
  int (*advance)(const Task& task);
  /// x⁺ with inputs of 0 into the next record, and the energies where they are wanted, for δ and V̄ of one group.
  int (*commit)(const Task& task);
  /// Qx + c, d⁰, b⁰ and what programs leave, of the states and inputs in the record.
  int (*freeze)(const Task& task);
};

/// For lane groups of eight, or of one lane.
struct KernelsOfWidths {
  Kernels eight, one;
};

const KernelsOfWidths& kernels();

}  // namespace bent

PORTWAVE_DECLARE_KERNELS(const bent::KernelsOfWidths kBent)

}  // namespace portwave
