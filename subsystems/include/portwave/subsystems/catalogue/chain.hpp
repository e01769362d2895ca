#pragma once

#include <memory>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The attachment of the port at one end of a chain.
enum class ChainEnd {
  mass,    ///< the end mass itself: effort-in, f = −v as in linear_oscillator
  spring,  ///< the free end of a coupling spring on the end mass: flow-in, f its velocity
};

/// Parameters of `mass_spring_damper_chain`. masses ≥ 1, mass_kg > 0, the others ≥ 0.
struct ChainParameters {
  int masses = 1;
  double mass_kg = 1.0;
  double stiffness_N_per_m = 1.0;           ///< between neighbours
  double damping_Ns_per_m = 0.0;            ///< each mass to ground
  double internal_damping_Ns_per_m = 0.0;   ///< beside every spring between neighbours
  double ground_stiffness_N_per_m = 0.0;    ///< each mass to ground
  double coupling_stiffness_N_per_m = 1.0;  ///< the springs of `spring` ends
  double coupling_damping_Ns_per_m = 0.0;   ///< beside them
  ChainEnd left_end = ChainEnd::mass;
  ChainEnd right_end = ChainEnd::spring;
  bool allow_active = false;  ///< accept negative dampers
};

/// A line of n equal masses joined by springs and dampers, with a translational port at either end.
///   H = Σ ½ m vᵢ² + Σ ½ k (qᵢ₊₁ − qᵢ)² + Σ ½ k_g qᵢ² + ½ k_c (δ_left² + δ_right²)
/// Ports    "left", "right": see ChainEnd. A spring end's flow is the velocity of its free end.
///          Chains join end to end by connecting a `spring` end with a `mass` end; a `spring` end
///          terminated `fixed` is a spring to a wall, a `mass` end terminated `free` is a free end.
/// Inputs   "force_1" … "force_n" [N] on the masses.
/// State    (q₁, v₁, …, qₙ, vₙ [, left_elongation] [, right_elongation]), in m and m/s.
/// Step     implicit midpoint, precomputed; dense or sparse by size.
std::unique_ptr<Subsystem> mass_spring_damper_chain(const ChainParameters& parameters);

}  // namespace portwave
