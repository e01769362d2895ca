#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/base/tape_program.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// Steps of parts with one state y by which ∇²H changes, and whose mean gradient V̄ along the step is exact. It is a
/// program of (y, δ) (SplitEnergy::closed_mean), or, H being a polynomial in y, one in δ,
///   V̄(δ) = t₁ + t₂δ + … + t_d δ^{d−1},   t_m = V⁽ᵐ⁾(y)/m!,
/// frozen with the state, and the step one equation: δ = e + N V̄(δ), e = d⁰ + D a; b = b⁰ + B a + M V̄.
namespace bent {

inline constexpr int kMostDegree = 10;

/// Places count values of a lane group, W doubles each.
struct Task {
  const double* coefficients = nullptr;
  long coefficient_size = 0;  ///< of a lane group
  double* record = nullptr;
  long record_size = 0;
  const double* a = nullptr;
  double* b = nullptr;
  int stride = 0, ports = 0, degree = 0;
  int first = 0, last = 0;  ///< lane groups
  bool warm = false;        ///< starts from the last δ where there is one, and leaves its own
  int own_of_wave = 0, own_of_wave_step = 0;  ///< D, and the distance of its columns
  int gain = 0;                               ///< N
  int b_of_wave = 0, b_of_mean = 0;           ///< B by columns, M
  int offset = 0, b_offset = 0;               ///< d⁰, b⁰
  int taylor =
      0;  ///< t₁ to t_d, then what roundings of y move in V̄, times 1/ε; with a program t₁ and t₂
  const TapeProgram* mean_of = nullptr;  ///< null: V̄ is a polynomial
  double* registers = nullptr;           ///< of the program
  int own_state = 0;                     ///< y, for the program
  int increment = 0, is_warm = 0;        ///< the last δ
  /// δ, V̄ and whether the lane has no solution here (1, else 0), of the last group.
  double* delta = nullptr;
  double* mean = nullptr;
  double* failed = nullptr;
};

inline constexpr int kMostStates = 16, kMostPorts = 8;

/// A number of a matrix, and its place among the coefficients.
struct Entry {
  int row, column, place;
};
struct Entries {
  const Entry* first = nullptr;
  int count = 0;
};

/// What is linear in a step of one lane group. With g = Qx + c + ½QΔ + V̄ at the bent states:
///   Δ = d⁰ + D a + N V̄,   u = A a + B b at the ports,   d⁰ = K(Qx + c) + L ū,   b⁰ = F(Qx + c) + H d⁰ + M ū.
/// Places count values of the group, columns of a block follow one another.
struct LinearTask {
  int states = 0, ports = 0, inputs = 0, bent = 0;
  const int* bent_states = nullptr;
  Entries Q, R, P, S, outputs, through;  ///< the last two: y at the external inputs, of g and u
  int constants = 0, weight = 0;         ///< c; V̄ is that many times the mean that is given
  int of_gradient = 0, of_input = 0, of_wave = 0, of_mean = 0;
  int b_of_gradient = 0, b_of_offset = 0, b_of_input = 0, u_of_a = 0, u_of_b = 0;
  int state = 0, input = 0, slope = 0, offset = 0, b_offset = 0;
  double step_s = 0.0;

  const double* coefficients = nullptr;  ///< of this group, as all below
  double* record = nullptr;
  double* next = nullptr;
  const double *waves = nullptr, *outgoing = nullptr, *mean = nullptr, *delta = nullptr;
  EnergyColumns energy;
};

struct Kernels {
  /// Up to the first group where a lane failed, which is returned, or −1.
  int (*scatter)(const Task& task);
  int (*scatter_alone)(const Task& task);  ///< lane groups of one lane
  /// Qx + c, d⁰ and b⁰ of the state and inputs in the record.
  void (*freeze)(const LinearTask& task);
  void (*freeze_alone)(const LinearTask& task);
  /// x⁺ with inputs of 0 into the next record, and the energies where they are wanted.
  void (*commit)(const LinearTask& task);
  void (*commit_alone)(const LinearTask& task);
};

const Kernels& kernels();

}  // namespace bent

PORTWAVE_DECLARE_KERNELS(const bent::Kernels kBent)

}  // namespace portwave
