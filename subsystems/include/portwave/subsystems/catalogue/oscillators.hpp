#pragma once

#include <memory>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Parameters of `duffing_oscillator`. Masses > 0, the others ≥ 0.
struct DuffingOscillatorParameters {
  double mass_kg = 1.0;
  double stiffness_N_per_m = 0.0;           ///< k₁
  double cubic_stiffness_N_per_m3 = 0.0;    ///< k₃
  double damping_Ns_per_m = 0.0;            ///< c₁, mass to ground
  double coupling_stiffness_N_per_m = 0.0;  ///< k₁₂
  double coupling_damping_Ns_per_m = 0.0;   ///< c₁₂
  bool allow_active = false;                ///< accept negative dampers
};

/// Mass on a hardening (Duffing) spring, with a spring and damper whose free end is the port.
///   H(q,v,δ) = ½ m v² + ½ k₁ q² + ¼ k₃ q⁴ + ½ k₁₂ δ²
///   q̇ = v,  δ̇ = u − v,  m v̇ = −k₁ q − k₃ q³ − c₁ v + e + F,  e = k₁₂ δ + c₁₂ (u − v)
/// Port     "coupling", translation, flow-in: u = f velocity of the spring's end [m/s] in, force e
///          [N] out. Input "force" F [N] on the mass.
/// State    (q [m], v [m/s], δ [m]), δ the elongation of the coupling spring.
/// Step     discrete gradient, exact for the quartic; the port solve is one monotone cubic in the
///          mean velocity, solved by Newton from its tangent to round-off. No allocation.
/// Errors   ConfigError at construction; stepping: not_converged only on non-finite input.
std::unique_ptr<Subsystem> duffing_oscillator(const DuffingOscillatorParameters& parameters);

/// Parameters of `duffing_node`: those of the oscillator, k₁₂ and c₁₂ in either direction.
using DuffingNodeParameters = DuffingOscillatorParameters;

/// Node of a two-dimensional grid: the mass of `duffing_oscillator` with two coupling springs and
/// dampers, one reaching east and one south, and two ports for its neighbours' springs.
///   H(q,v,δ) = ½ m v² + ½ k₁ q² + ¼ k₃ q⁴ + ½ k₁₂ (δ_E² + δ_S²)
///   q̇ = v,  m v̇ = −k₁ q − k₃ q³ − c₁ v + e_E + e_S − e_W − e_N + F
/// Ports    "east", "south", translation, flow-in: u = f velocity of the spring's end [m/s],
///            δ̇ = u − v,  e = k₁₂ δ + c₁₂ (u − v);
///          "west", "north", translation, effort-in: f = −v, as `linear_oscillator`.
///          A connection joins east to west and south to north. Input "force" F [N] on the mass.
/// State    (q [m], v [m/s], δ_E [m], δ_S [m]), "delta_east" and "delta_south" being elongations.
/// Step     discrete gradient, exact for the quartic; dense Newton on the four states.
/// Errors   ConfigError at construction; stepping: not_converged only on non-finite input.
std::unique_ptr<Subsystem> duffing_node(const DuffingNodeParameters& parameters);

/// Parameters of `linear_oscillator`. Mass > 0, the others ≥ 0.
struct LinearOscillatorParameters {
  double mass_kg = 1.0;
  double stiffness_N_per_m = 0.0;
  double damping_Ns_per_m = 0.0;
  bool allow_active = false;  ///< accept a negative damper
};

/// Mass on a spring and damper; the port acts on the mass.
///   H(q,v) = ½ m v² + ½ k q²;   q̇ = v,  m v̇ = −k q − c v − e + F,  f = −v
/// Port     "coupling", translation, effort-in: the reaction e [N] of what is attached, taken with
///          the sign that makes e₁ = e₂, f₁ + f₂ = 0 attach it to a spring's end. Input "force" F [N].
/// State    (q [m], v [m/s]).
/// Step     implicit midpoint, precomputed: S(a) = b⁰ + D a.
std::unique_ptr<Subsystem> linear_oscillator(const LinearOscillatorParameters& parameters);

}  // namespace portwave
