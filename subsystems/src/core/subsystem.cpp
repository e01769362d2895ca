#include "portwave/subsystems/core/subsystem.hpp"

#include <cstddef>
#include <limits>

#include "base/workspace.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "portwave/subsystems/core/coenergy.hpp"

namespace portwave {

Capabilities Subsystem::capabilities() const {
  return {.linear = is_linear(),
          .repeatable = true,
          .knows_energy = true,
          .thread_safe = true,
          .linearisable = true,
          .restorable = true};
}

std::vector<double> Subsystem::typical_state() const {
  if (is_linear()) return Component::typical_state();
  return typical_sizes({.value = [this](const double* at) { return storage(at); },
                        .gradient = [this](const double* at, double* g) { gradient(at, g); }},
                       default_state())
      .of_states;
}

void Subsystem::structure_at([[maybe_unused]] const double* x_mid, Structure& out) const {
  out = structure();
}

void Subsystem::structure_over(const double* x, const double* dx, [[maybe_unused]] double step_s,
                               Structure& out) const {
  const int n = signature().state_size();
  detail::Workspace mid(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) mid.data()[i] = x[i] + 0.5 * dx[i];
  structure_at(mid.data(), out);
}

double coenergy(const Component& part, const double* x, int state) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr) return std::numeric_limits<double>::quiet_NaN();
  detail::Workspace gradient(static_cast<std::size_t>(part.signature().state_size()));
  physics->gradient(x, gradient.data());
  return gradient.data()[state];
}

std::vector<const Subsystem*> port_hamiltonian_parts(std::span<const Component* const> parts) {
  std::vector<const Subsystem*> out;
  out.reserve(parts.size());
  for (const Component* part : parts) out.push_back(part->port_hamiltonian());
  return out;
}

}  // namespace portwave
