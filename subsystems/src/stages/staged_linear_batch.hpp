#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/core/gauss_stages.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// The batch behind staged_part for descriptor parts and for linear ones with sparse step maps, by
/// one sparse LU of all stages. Of parts of equal shape, at least one; they must outlive it.
std::unique_ptr<StepBatch> make_staged_linear_batch(std::span<const Component* const> parts,
                                                    const GaussStages& stages);

}  // namespace portwave
