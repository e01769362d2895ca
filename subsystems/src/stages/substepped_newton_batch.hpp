#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// Nonlinear parts of one key, each in so many substeps: Newton's method on the inputs of their ports
/// (SubstepSolver), one lane per part.
std::unique_ptr<StepBatch> make_substepped_newton_batch(std::span<const Subsystem* const> parts,
                                                        const GaussStages& stages, int substeps);

}  // namespace portwave
