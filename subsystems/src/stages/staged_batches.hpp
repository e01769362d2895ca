#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// The batches behind staged_part. Of parts of equal shape, at least one; they must outlive it.
std::unique_ptr<StepBatch> make_staged_linear_batch(
    std::span<const LinearPortHamiltonian* const> parts, const GaussStages& stages);
std::unique_ptr<StepBatch> make_staged_newton_batch(std::span<const Subsystem* const> parts,
                                                    const GaussStages& stages);

}  // namespace portwave
