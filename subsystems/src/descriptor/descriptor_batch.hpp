#pragma once

#include <memory>
#include <span>

#include "core/closed_step.hpp"
#include "portwave/subsystems/descriptor/descriptor_part.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {

/// A batch of descriptor parts of equal (n, p, q), all with dense step maps or all with sparse
/// ones; every part must be a DescriptorPortHamiltonian.
std::unique_ptr<StepBatch> make_descriptor_batch(std::span<const Component* const> parts);

/// A batch of condensed second-order parts of one shape (CondensedForm).
std::unique_ptr<StepBatch> make_second_order_batch(std::span<const Component* const> parts);

/// The dense maps of a step without direct feedthrough, D = 0, refined in quadruple precision.
/// `lhs` factorises (2/h)E − (J − R)Q + Σ B_j (β/α)_j C_j, the step with its ports closed, where C_p
/// is what the ports see of δ.
ClosedStepMaps closed_descriptor_step(const ClosedStep& step, const SparseMatrix& C_p,
                                      const ScaledFactors& lhs);

}  // namespace portwave
