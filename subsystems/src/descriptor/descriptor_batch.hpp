#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/descriptor/descriptor_part.hpp"

namespace portwave {

/// A batch of descriptor parts of equal (n, p, q), all with dense step maps or all with sparse
/// ones; every part must be a DescriptorPortHamiltonian.
std::unique_ptr<StepBatch> make_descriptor_batch(std::span<const Component* const> parts);

}  // namespace portwave
