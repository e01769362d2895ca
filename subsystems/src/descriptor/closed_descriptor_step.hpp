#pragma once

#include "core/closed_step.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {

/// The dense maps of a step without direct feedthrough, D = 0, refined in quadruple precision.
/// `lhs` factorises (2/h)E − (J − R)Q + Σ B_j (β/α)_j C_j, the step with its ports closed, where C_p
/// is what the ports see of δ.
ClosedStepMaps closed_descriptor_step(const ClosedStep& step, const SparseMatrix& C_p,
                                      const ScaledFactors& lhs);

}  // namespace portwave
