#pragma once

#include <cstdint>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// How a lane solves its port in the inner iteration, for those who do that themselves: value by
/// value what `StepBatch::inexact_scatter` does, in the same order of operations. Entry i of an array lies
/// at [i·step], of `coefficients` at [i·coefficient_step].
///   affine  b = σa + (b⁰ + (D − σ)a)
///           coefficients  [σ (p) | D − σ (p×p)]
///   cubic   with r = Σ drive_j a_j the root d of ((c₃d + c₂)d + c₁)d + c₀ = r, warm-started from
///           the last one;  b_j = (a_j − b⁰_j − T_j a_j) − W_j d
///           coefficients  [c₃ | drive_j, T_j, W_j of every port]
struct PortSolve {
  enum class Form : std::uint8_t { affine, cubic };

  Form form = Form::affine;
  int ports = 0;
  int coefficient_step = 1;
  int step = 1;
  const double* coefficients = nullptr;
  const double* offset = nullptr;  ///< b⁰ (p)
  const double* cubic = nullptr;   ///< c₂, c₁, c₀
  double* last = nullptr;          ///< the last solve: d, r and the reciprocal of the slope
};

/// Facet of batches whose port solves are of such a form: small islands solve them in one call.
class PortSolves {
 public:
  virtual ~PortSolves() = default;

  /// The record must stay where it is for as long as it is used; what is stale after `prepare` is so.
  virtual PortSolve port_solve(int lane, double* record) const = 0;
};

}  // namespace portwave
