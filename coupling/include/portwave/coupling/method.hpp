#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portwave {

class System;

/// The inner iteration. With K = 0 iterations it is the explicit wave interface â = P bⁿ. All commit
/// the shadow â = P S(u) of the last evaluation.
enum class MethodKind {
  douglas_rachford,   ///< u ← u + λ((2I − P)⁻¹(2S(u) − u) − S(u))
  peaceman_rachford,  ///< u ← u + θ(P S(u) − u); for θ < 1 the averaged wave iteration
  automatic,  ///< one of these, the impedances and the acceleration, from structure and rates
};

std::string_view to_string(MethodKind kind);

/// Where the impedances come from. All but `given` are computed from the parts' one-step responses at
/// the given step size, linearised at the frozen state (see tuning.hpp).
enum class ImpedanceKind {
  given,      ///< CouplingMethod::impedance
  fne,        ///< the largest scaling of the matched ones that keeps every part firmly nonexpansive
  matched,    ///< each port without reflection into its own part, the part's other ports at rest
  leaf,       ///< both ports of a connection matched to the side whose ports interact less
  adapted,    ///< from the leaves of a tree to its root, each subtree seen without reflection
  automatic,  ///< the one of `fne` to `adapted` with the best predicted rate
};

std::string_view to_string(ImpedanceKind kind);

/// The energy tank of the passivity guard, of each island.
struct TankOptions {
  std::optional<double> initial_J;  ///< T₀ ≥ 0 [J]; empty: ½|b⁰|² of the island
  double initial_fraction = 0.0;    ///< added to T₀: this share ≥ 0 of the island's H₀
  double cap_J = std::numeric_limits<double>::infinity();  ///< what exceeds it is given up; ≥ 0
};

/// How the states between inner iterations are reconciled.
struct CouplingMethod {
  MethodKind kind = MethodKind::douglas_rachford;
  /// Budget K ≥ 0: evaluations of S before the commit.
  int iterations = 20;
  /// Relaxation: λ ∈ (0, 2) of Douglas–Rachford, θ ∈ (0, 1] of Peaceman–Rachford. `automatic` chooses
  /// its own.
  double relaxation = 1.0;
  /// Stop an island when |P b̂ − u| ≤ tolerance · max(|u|, |b̂|) on it; 0: always use the budget.
  double tolerance = 0.0;
  /// Stop when ½|P b̂ − u|² ≤ this [J] on every island; 0: never for this reason. With a tolerance
  /// too, whichever is met first.
  double energy_tolerance_J = 0.0;
  /// Apply the tolerance to every part's waves too, so that a weak part does not hide behind a
  /// strong one.
  bool tolerance_per_part = false;
  /// `automatic` is the only one for MethodKind::automatic.
  ImpedanceKind impedance_kind = ImpedanceKind::given;
  /// Of ImpedanceKind::given: one impedance γ > 0 per scalar port of the system, or a single one for
  /// all.
  std::vector<double> impedance = {1.0};
  /// Tuned impedances follow the state of nonlinear parts: they are set anew between two steps when
  /// one of them is off by more than this factor > 1; 0: never.
  double retune_factor = 2.0;
  /// Memory of Anderson acceleration, 0 (none) to 10 earlier evaluations. `automatic` chooses its own.
  int acceleration = 0;
  /// The passivity guard: no committed step takes more from an island's tank than is in it.
  bool guard = true;
  TankOptions tank = {};
  /// b⁰, one outgoing wave [√J] per scalar port; empty: zero.
  std::vector<double> initial_waves = {};

  /// Everything `automatic`, to this residual.
  static CouplingMethod automatic(double to_tolerance = 1e-10) {
    CouplingMethod method;
    method.kind = MethodKind::automatic;
    method.impedance_kind = ImpedanceKind::automatic;
    method.tolerance = to_tolerance;
    return method;
  }
};

inline constexpr int kMaxAcceleration = 10;

/// How an inner iterate u is updated, given S(u).
struct InnerUpdate {
  MethodKind kind = MethodKind::douglas_rachford;  ///< not `automatic`
  double relaxation = 1.0;                         ///< λ or θ
};

/// How much evidence a run gathers about its own correctness.
enum class Certify {
  none,    ///< no ledger at all (unless the guard needs one): a step is its states and waves only
  energy,  ///< energy ledger and per-part passivity, every step (nearly free)
  full,    ///< also sampled nonexpansiveness and the Theorem 1 residual, every step
};

}  // namespace portwave
