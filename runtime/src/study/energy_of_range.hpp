#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

/// The root of what a state stores over a range from where it starts [√J], beyond what ∇H says; 0 where H does not
/// tell. States without a unit, of parts by expressions or matrices, share only their energy.
inline double root_of_energy(const Part& part, std::size_t state, double range) {
  const Subsystem* const physics = part.port_hamiltonian();
  if (physics == nullptr || !(range > 0.0)) return 0.0;
  double energy_J = 0.0;
  if (const LinearForm form = physics->linear_form(); form.Q != nullptr) {
    const auto i = static_cast<Eigen::Index>(state);
    const double curvature =
        form.E == nullptr ? form.Q->coeff(i, i) : form.E->col(i).dot(form.Q->col(i));
    energy_J = 0.5 * curvature * range * range;
  } else {
    std::vector<double> x = part.initial_state, gradient(x.size());
    physics->gradient(x.data(), gradient.data());
    const double start = x[state], start_J = physics->storage(x.data());
    // Where H ends before the one end of the range, the other.
    for (const double moved : {range, -range}) {
      x[state] = start + moved;
      energy_J = std::abs(physics->storage(x.data()) - start_J - gradient[state] * moved);
      if (std::isfinite(energy_J)) break;
    }
  }
  return energy_J > 0.0 && std::isfinite(energy_J) ? std::sqrt(energy_J) : 0.0;
}

}  // namespace portwave
