#pragma once

#include <limits>
#include <optional>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Iterations over whole windows.
enum class IterationKind {
  lions_mercier,  ///< monotone in a weighted norm
  jacobi,         ///< every part with the others' last waveforms; may diverge
  gauss_seidel,   ///< the same, with the newest waveforms of the parts before it
};

std::string_view to_string(IterationKind kind);

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

/// Macro-steps of a window, and fast steps of `impulse`, at most.
inline constexpr int kMostSubsteps = 1'000'000;

/// Coupling by dynamic iteration: each part is solved repeatedly over a window of steps with the waveforms of
/// the others. All parts are linear. DynamicIterationMethod steps it; the table in
/// coupling/src/method/dynamic_iteration.cpp lists the options under their scenario-file names.
struct DynamicIteration {
  IterationKind kind = IterationKind::lions_mercier;
  int iterations = 20;  ///< budget of each window, ≥ 0
  /// Stop a window when Δ·max(1, ρ/(1−ρ)) ≤ tolerance · ‖zᵏ⁺¹‖, where Δ = ‖zᵏ⁺¹ − zᵏ‖ and ρ is the
  /// ratio of two successive Δ; 0: always use the budget.
  double tolerance = 0.0;
  /// Macro-steps per window, ≥ 1. A run that ends within a window has computed all of it.
  int window_steps = 1;
  Integrator integrator = Integrator::automatic;
  // Lions–Mercier. Empty: chosen.
  std::optional<double> lambda = {};  ///< λ > 0; λ* = 1/‖K‖ if empty
  std::optional<double> mu = {};      ///< μ ≥ 0 [1/s]; 0.9/(window length) if empty
  std::optional<double> omega =
      {};              ///< ω ≥ μ [1/s]; the smallest for which the norm falls if empty
  double alpha = 0.5;  ///< share of the dissipation in the parts, 0 ≤ α ≤ 1
  IterationMetric metric = IterationMetric::automatic;
  /// Jacobi, Gauss–Seidel: give up when the waveforms change by more than this times their size at the
  /// start: later cancellation then loses all digits. Infinite: only at overflow.
  double divergence_limit = 1.0 / std::numeric_limits<double>::epsilon();
};

/// Properties of a Lions–Mercier iteration known before its first iteration. K = (1−α)R + μEQ⁻¹ − J_o;
/// in the energy metric all of them are those of the system transformed to Q = I.
struct LionsMercierBounds {
  double norm_K = 0.0;          ///< ‖K‖
  double norm_inverse = 0.0;    ///< ‖(K + J_o)⁻¹‖; infinite where K + J_o is singular
  double optimal_lambda = 0.0;  ///< λ* = 1/‖K‖
  double rate = 1.0;          ///< q: ‖Δzᵏ⁺¹‖ ≤ q‖Δzᵏ‖; 1 where there is no bound
  double optimal_rate = 1.0;  ///< q*, at λ*
  bool rank_mu = false;       ///< rank[μE (1−α)R] = n: z converges, with rate q
  bool rank_alpha = false;    ///< rank[E αR] = n: x converges
  bool rank_plain = false;    ///< rank[E R] = n, and 0 < α < 1: x converges
  bool estimated = false;     ///< the norms are from power iterations: more than 400 states
  int failing_block = -1;     ///< the first block without either rank condition
  bool monotone = false;      ///< hμ small enough against hω: the norm never rises
  bool x_converges() const { return rank_mu || rank_alpha || rank_plain; }
};

/// A dynamic iteration as it was resolved.
struct DynamicParameters {
  IterationKind kind = IterationKind::lions_mercier;
  Integrator integrator = Integrator::midpoint;        ///< not automatic
  IterationMetric metric = IterationMetric::identity;  ///< not automatic
  double lambda = 0.0, mu = 0.0, omega = 0.0, alpha = 0.0;
  LionsMercierBounds bounds;  ///< of Lions–Mercier
};

}  // namespace portwave
