#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave {

/// Batches of linear parts of equal (n, p, q); the physics of every part must be a
/// LinearPortHamiltonian. The dense one also takes parts with stages.
std::unique_ptr<StepBatch> make_dense_linear_batch(std::span<const Component* const> parts);
std::unique_ptr<StepBatch> make_sparse_linear_batch(std::span<const Component* const> parts);

}  // namespace portwave
