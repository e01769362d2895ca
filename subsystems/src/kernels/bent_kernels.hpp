#pragma once

#include "portwave/subsystems/base/instruction_set.hpp"

namespace portwave {

/// Steps of parts with one state y by which ∇²H changes, H being a polynomial in it. Its mean gradient along the
/// step is then one in δ,
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
  int taylor = 0;  ///< t₁ to t_d, then what roundings of y move in V̄, times 1/ε
  int increment = 0, is_warm = 0;  ///< the last δ
  /// δ, V̄ and whether the lane has no solution here (1, else 0), of the last group.
  double* delta = nullptr;
  double* mean = nullptr;
  double* failed = nullptr;
};

struct Kernels {
  /// Up to the first group where a lane failed, which is returned, or −1.
  int (*scatter)(const Task& task);
  int (*scatter_alone)(const Task& task);  ///< lane groups of one lane
};

const Kernels& kernels();

}  // namespace bent

PORTWAVE_DECLARE_KERNELS(const bent::Kernels kBent)

}  // namespace portwave
