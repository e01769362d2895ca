#pragma once

#include <memory>
#include <vector>

#include "expressions/split_energy.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// Whether `make_expression_batch` takes parts with this energy and signature.
bool has_lanes(const SplitEnergy& energy, const Signature& signature);

/// A part and its energy.
struct ExpressionLane {
  const Subsystem* part = nullptr;
  const SplitEnergy* energy = nullptr;
};

/// Parts of constant structure, without laws of ports, whose energies have the same V, and whose matrices have
/// entries at the same places; their numbers may differ. With
///   ∇̄H = Q(x + Δ/2) + c + w V̄(y, y + δ),   δ = Δ at the r states y,
/// the step is linear but for V̄: Δ = d⁰ + D a + N V̄ with d⁰ of the frozen state, and so is b. Newton's method
/// solves the r equations of δ, eight parts side by side, from the step linearised at x. A lane where it does not
/// come closer each time is left to the damped Newton method of LaneSolver.
/// Cost     a few evaluations of ∇V and ∇²V for eight lanes at once. Errors: StepFault::not_converged, not_finite.
std::unique_ptr<StepBatch> make_expression_batch(std::vector<ExpressionLane> parts,
                                                 NewtonOptions options);

}  // namespace portwave
