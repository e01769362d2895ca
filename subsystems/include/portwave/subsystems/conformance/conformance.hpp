#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Verdict of one law on one part.
struct LawReport {
  std::string law;
  bool holds = true;
  /// The largest defect seen, as a multiple of the allowed round-off (or the law's margin): the law
  /// holds while this is ≤ 1. Infinite when a port solve failed.
  double worst = 0.0;
  /// The worst case: enough to replay it. Empty when nothing was tested.
  std::string detail;
  /// Of a law for several rules of stages, those that were tested: "order 3, 2 damped stages". The others need what
  /// the part does not have, or no draw came within their range.
  std::vector<std::string> rules = {};
};

/// The random draws of the checks, a pure function of these numbers.
struct ConformanceOptions {
  /// Step sizes [s] to try. A part whose own time scale is far from a second needs others.
  std::vector<double> steps_s = {1e-6, 1e-3, 1e-1, 10.0};
  int trials = 4;  ///< random states, waves, inputs and impedances per step size
  std::uint64_t seed = 1;
  /// States are drawn within default_state ± state_scale·typical_state; states where H is not
  /// finite are skipped.
  double state_scale = 1.0;
  double wave_scale = 1.0;   ///< incident waves within ± this [√J]
  double input_scale = 1.0;  ///< external inputs within ± this
  /// Impedances are drawn within a factor 10 of this.
  double impedance = 1.0;
  /// Whether the frozen port map must be nonexpansive. That is a theorem for linear parts, for
  /// separable convex H, and for the mean-value gradient with convex H and constant structure; it
  /// may fail otherwise. Unset: asked of linear parts that are not active.
  std::optional<bool> nonexpansive;
  double order = 2.0;  ///< expected order of convergence
};

/// The laws. None throws on a part that breaks its law; callbacks that throw are passed on.
/// Cost: some hundred port solves each.

/// J, N skew, R, S symmetric, [R P; Pᵀ S] ⪰ 0 (unless active), shapes as the signature says; at the
/// default state and, where the structure depends on the state, at random midpoints.
LawReport check_structure(const Subsystem& part, const ConformanceOptions& options = {});
/// ∇H against central differences of H. Here and below, where linear_form() has an E: ∇H = Eᵀz, and
/// EΔx takes the place of Δx.
LawReport check_gradient(const Subsystem& part, const ConformanceOptions& options = {});
/// ∇̄Hᵀ(x⁺ − x) = H(x⁺) − H(x) for increments from 1 down to 1e-15, also along single axes;
/// ∇̄H(x, x) = ∇H(x), and no noise on the way there: ∇̄H(x, x + Δx) − ∇H(x) = O(Δx).
LawReport check_discrete_gradient(const Subsystem& part, const ConformanceOptions& options = {});
/// ∂∇̄H/∂x⁺ against central differences of ∇̄H.
LawReport check_discrete_gradient_jacobian(const Subsystem& part,
                                           const ConformanceOptions& options = {});
/// H⁺ − H = ½(|a|² − |b|²) + external supply − dissipation to round-off for every h and γ, with
/// dissipation ≥ 0 unless the part is active: hence r ≤ 0.
LawReport check_energy_law(const Subsystem& part, const ConformanceOptions& options = {});
/// |Sα − Sβ| ≤ |α − β|.
LawReport check_nonexpansive(const Subsystem& part, const ConformanceOptions& options = {});
/// The observed order from runs with h, h/2, h/4 and h/8 over a time of the part's own scale, with
/// smooth incident waves and inputs, is at least options.order − 0.25. For descriptor parts it is
/// that of Ex, from the default state if a random one violates a constraint; nothing is tested
/// for more than 200 states.
LawReport check_order_of_convergence(const Subsystem& part, const ConformanceOptions& options = {});
/// The same for the part with two and with three stages, at least 3.5 and 5.5, from steps four times
/// as long, and with one to three damped stages on the nodes of Radau, at least .5, 2.5 and 4.5. Not tested for
/// parts that are not smooth or cannot have stages, or if differences are round-off: `rules` says which were.
LawReport check_orders_of_stages(const Subsystem& part, const ConformanceOptions& options = {});
/// The energy law with damped stages, on the nodes of Gauss and of Radau, for every h and γ: what they dissipate
/// numerically is ≥ 0, and no more than all that is dissipated. With more than one stage and an H that is not
/// quadratic, only for steps within the part's own time scale: mean gradients are then integrated numerically.
/// `rules` says for which stages there were such steps.
LawReport check_damped_stages(const Subsystem& part, const ConformanceOptions& options = {});
/// Parts that say that their dissipation ends with the force of their storage (Subsystem::structure_over), as contacts
/// do, never pull: the mean effort of a step has no part against that force, with one to three stages, damped or not.
/// `rules` says with which. Nothing to test for other parts.
LawReport check_one_sided(const Subsystem& part, const ConformanceOptions& options = {});
/// Steps under constant waves and inputs are found, and keep the energy law, for 400 steps of a twentieth and
/// of half of the part's own time scale: also when lossy states are at rest, and increments are no more than
/// round-off. Not tested for parts without a motion of their own.
LawReport check_rest_under_load(const Subsystem& part, const ConformanceOptions& options = {});
/// `scatter` and `advance` are pure functions of (x, ū, a): repeated, interleaved with other
/// solves, from a fresh batch, from the record of another batch (its `record_regions`), and with a null
/// input for zero inputs, they give the same bits; `advance` gives the b of `scatter`.
LawReport check_frozen_map_purity(const Subsystem& part, const ConformanceOptions& options = {});
/// `inexact_scatter` keeps within its promised error, on incident waves that tend to a limit,
/// jump and repeat; after freezing it gives the same bits again.
LawReport check_inexact_scatter(const Subsystem& part, const ConformanceOptions& options = {});
/// If the batch has an affine form, S(a) = b⁰ + D a.
LawReport check_affine_form(const Subsystem& part, const ConformanceOptions& options = {});
/// The part's own batch agrees with a Newton batch, to 1e-10.
LawReport check_batch_equals_newton(const Subsystem& part, const ConformanceOptions& options = {});
/// A part in a batch of several gives the bits that it gives alone. (Nothing to test for parts with
/// an empty batch_key.)
LawReport check_lane_independence(const Subsystem& part, const ConformanceOptions& options = {});

/// For any component whose steps repeat (Capabilities::repeatable), opaque ones too, from its
/// default state: a step that is tried or committed can be taken back. Scatters leave the state
/// alone, also from a copied record; a step that is committed again, after one with another wave,
/// leads to the same bits. One component is used by one batch at a time.
LawReport check_rollback(const Component& component, const ConformanceOptions& options = {});

/// Every law above that applies to a port-Hamiltonian part, in this order.
std::vector<LawReport> check_all(const Subsystem& part, const ConformanceOptions& options = {});

}  // namespace portwave
