#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// The batch behind staged_part for descriptor parts and for linear ones with sparse step maps, by
/// one sparse LU of all stages. Of parts of equal shape, at least one; they must outlive it.
std::unique_ptr<StepBatch> make_staged_linear_batch(std::span<const Component* const> parts,
                                                    const StageRule& stages);

/// As the part says.
NewtonOptions newton_options_of(const Subsystem& part);

/// The batch behind staged_part for parts that are not linear, by Newton on all stages at once. Of
/// parts of equal shape, at least one; they must outlive it.
std::unique_ptr<StepBatch> make_staged_newton_batch(std::span<const Subsystem* const> parts,
                                                    const StageRule& stages);

/// Nonlinear parts of one key, each in so many substeps: Newton's method on the inputs of their ports
/// (SubstepSolver), one lane per part.
std::unique_ptr<StepBatch> make_substepped_newton_batch(std::span<const Subsystem* const> parts,
                                                        const StageRule& stages, int substeps);

}  // namespace portwave
