#pragma once

#include <algorithm>
#include <utility>

#include "portwave/runtime/executor.hpp"

namespace portwave {

/// The inner iteration over an executor's phases:
///   PhaseStatus scatter(a, b);  void exchange(b, a);  void douglas_rachford(λ, b, u).
template <class Phases>
InnerResult run_inner_loop(Phases& phases, InterfaceResidual& residual, int wave_size,
                           const InnerIteration& inner, double* u, double* b, double* a) {
  InnerResult result;
  for (int k = 0; k < inner.budget; ++k) {
    if (PhaseStatus status = phases.scatter(u, b); !status.ok()) {
      result.failed_at = k;
      result.status = std::move(status);
      return result;
    }
    result.iterations = k + 1;
    if (inner.tolerance > 0.0) {
      phases.exchange(b, a);
      result.residual = residual.largest(u, b, a, inner.tolerance_per_part);
      result.converged = result.residual <= inner.tolerance;
    }
    if (result.converged || k + 1 == inner.budget) break;  // u^K is of no use to the commit
    phases.douglas_rachford(inner.relaxation, b, u);
  }
  if (result.iterations == 0) {
    std::copy(u, u + wave_size, a);
  } else if (inner.tolerance == 0.0) {  // with one, a is P b̂ already
    phases.exchange(b, a);
  }
  return result;
}

}  // namespace portwave
