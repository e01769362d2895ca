#pragma once

#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace portwave {

class System;
class UpdateRule;

/// How parts are coupled: by waves, with an inner iteration in every step; or, where all parts are
/// linear, by splitting or by dynamic iteration. With K = 0 iterations wave coupling is the explicit wave
/// interface â = P bⁿ. All inner iterations commit the shadow â = P S(u) of the last evaluation.
enum class MethodKind {
  douglas_rachford,   ///< u ← u + λ((2I − P)⁻¹(2S(u) − u) − S(u))
  peaceman_rachford,  ///< u ← u + θ(P S(u) − u); for θ < 1 the averaged wave iteration
  interface,  ///< u ← u + (I − P D)⁻¹(P S(u) − u), D = S′: exact at once where S is affine
  automatic,      ///< one of these, the impedances and the acceleration, from structure and rates
  strang,         ///< half a coupling flow, the local flows, half a coupling flow
  impulse,        ///< half a slow flow, m fast flows of h/m, half a slow flow
  lions_mercier,  ///< dynamic iteration over windows, monotone in a weighted norm
  jacobi,         ///< dynamic iteration, every part with the others' last waveforms; may diverge
  gauss_seidel,   ///< the same, with the newest waveforms of the parts before it
};

std::string_view to_string(MethodKind kind);

bool is_wave_method(MethodKind kind);
bool is_splitting(MethodKind kind);
/// Lions–Mercier, Jacobi, Gauss–Seidel.
bool is_dynamic_iteration(MethodKind kind);

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

/// How the coupling flow of a splitting method is solved.
enum class CouplingFlow {
  automatic,  ///< scalar where couplings are scalar and disjoint, low rank elsewhere
  scalar,     ///< a 2×2 map in closed form per coupling
  low_rank,   ///< one sparse solve in the channels of all couplings
};

std::string_view to_string(CouplingFlow flow);

/// Of MethodKind::strang and impulse.
struct SplittingOptions {
  CouplingFlow coupling_flow = CouplingFlow::automatic;
  /// Take local flows apart once more: half the dissipation, the conservative part, half the
  /// dissipation. Not with `impulse`.
  bool split_dissipation = false;
  int factor = 10;                ///< impulse: fast steps m ≥ 1 per macro-step
  std::vector<std::string> fast;  ///< impulse: names of the fast parts; the others are slow
};

/// Time integrators of dynamic iteration, algebraically stable both.
enum class Integrator {
  automatic,  ///< midpoint; Radau IIA where E of the whole is singular
  midpoint,   ///< implicit midpoint: one stage, order 2
  radau_iia,  ///< two stages, order 3, stiffly accurate
};

std::string_view to_string(Integrator integrator);

/// The inner product in which Lions–Mercier iterates.
enum class IterationMetric {
  automatic,  ///< energy; identity where a part is a descriptor system
  identity,   ///< that of z, as in the source
  energy,     ///< zᵀQ⁻¹z: the system transformed to Q = I; for E = I only
};

std::string_view to_string(IterationMetric metric);

/// Of the dynamic iterations.
struct DynamicIterationOptions {
  /// Macro-steps per window, ≥ 1. A run that ends within a window has computed all of it.
  int window_steps = 1;
  Integrator integrator = Integrator::automatic;
  // Lions–Mercier. Empty: chosen.
  std::optional<double> lambda = {};  ///< λ > 0; λ* = 1/‖K‖ if empty
  std::optional<double> mu = {};      ///< μ ≥ 0; 0.9/(window length) if empty
  std::optional<double> omega = {};   ///< ω ≥ μ; the smallest for which the norm falls if empty
  double alpha = 0.5;                 ///< share of the dissipation in the parts, 0 ≤ α ≤ 1
  IterationMetric metric = IterationMetric::automatic;
  /// Jacobi, Gauss–Seidel: give up when the waveforms change by more than this times their size at the
  /// start: what cancels later is then lost to round-off. Infinite: only at overflow.
  double divergence_limit = 1.0 / std::numeric_limits<double>::epsilon();
};

/// How the states between inner iterations are reconciled.
struct CouplingMethod {
  MethodKind kind = MethodKind::douglas_rachford;
  /// An update rule in place of that of `kind`, which is then Douglas–Rachford or
  /// Peaceman–Rachford; must outlive whatever uses the method. Null: that of `kind`.
  const UpdateRule* own_rule = nullptr;
  /// Budget K ≥ 0: evaluations of S before the commit; iterations per window of a dynamic iteration.
  int iterations = 20;
  /// Relaxation: λ ∈ (0, 2) of Douglas–Rachford, θ ∈ (0, 1] of Peaceman–Rachford, as the update
  /// rule says. `automatic` chooses its own.
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
  /// Memory of Anderson acceleration, 0 (none) to 10 earlier evaluations. `automatic` chooses its own;
  /// `interface` makes no use of it.
  int acceleration = 0;
  /// What `automatic` has chosen beside the kind: islands that take the interface update instead…
  std::vector<int> interface_islands = {};
  /// …and the evaluations after which any other island that has not met its tolerance takes it for the
  /// rest of the step; 0: never.
  int rescue_after = 0;
  /// The passivity guard: no committed step takes more from an island's tank than is in it.
  bool guard = true;
  TankOptions tank = {};
  /// b⁰, one outgoing wave [√J] per scalar port; empty: zero.
  std::vector<double> initial_waves = {};
  SplittingOptions splitting = {};
  /// Dynamic iteration stops a window when Δ·max(1, ρ/(1−ρ)) ≤ tolerance · ‖zᵏ⁺¹‖, Δ = ‖zᵏ⁺¹ − zᵏ‖, ρ its ratio.
  DynamicIterationOptions dynamic = {};

  /// Everything `automatic`, to this residual, with a budget that leaves room for what is hard.
  static CouplingMethod automatic(double to_tolerance = 1e-10) {
    CouplingMethod method;
    method.iterations = 100;
    method.kind = MethodKind::automatic;
    method.impedance_kind = ImpedanceKind::automatic;
    method.tolerance = to_tolerance;
    return method;
  }
};

/// What to call it: the word for its kind, or the name of its own rule.
std::string_view name_of(const CouplingMethod& method);

inline constexpr int kMaxAcceleration = 10;

/// How much evidence a run gathers about its own correctness.
enum class Certify {
  none,    ///< no ledger at all (unless the guard needs one): a step is its states and waves only
  energy,  ///< energy ledger and per-part passivity, every step (nearly free)
  full,    ///< also sampled nonexpansiveness and the Theorem 1 residual, every step
};

}  // namespace portwave
