#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

std::unique_ptr<StepBatch> Subsystem::make_batch(std::span<const Component* const> parts) const {
  return make_newton_batch(port_hamiltonian_parts(parts));
}

}  // namespace portwave
