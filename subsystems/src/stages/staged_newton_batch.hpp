#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// As the part says.
NewtonOptions newton_options_of(const Subsystem& part);

/// The batch behind staged_part for parts that are not linear, by Newton on all stages at once. Of
/// parts of equal shape, at least one; they must outlive it.
std::unique_ptr<StepBatch> make_staged_newton_batch(std::span<const Subsystem* const> parts,
                                                    const GaussStages& stages);

}  // namespace portwave
