#pragma once

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// Facet of parts whose dissipation ends with the force that is available (Subsystem::structure_over): in a damped step
/// that is another, since its gradient is (1 − θ)∇̄H + θ∇H(x⁺), and less is left where x⁺ stores less.
class DampedStructure {
 public:
  virtual ~DampedStructure() = default;

  /// The structure over a step of one stage that is damped by θ, in [0, 1]; structure_over at θ = 0.
  virtual void damped_structure_over(const double* x, const double* dx, double step_s, double theta,
                                     Structure& out) const = 0;
};

/// By the facet; without one, the structure is the same at every θ.
inline void damped_structure_over(const Subsystem& part, const double* x, const double* dx,
                                  double step_s, double theta, Structure& out) {
  const auto* const own = theta == 0.0 ? nullptr : dynamic_cast<const DampedStructure*>(&part);
  if (own != nullptr) {
    own->damped_structure_over(x, dx, step_s, theta, out);
  } else {
    part.structure_over(x, dx, step_s, out);
  }
}

}  // namespace portwave
