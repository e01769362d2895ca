#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Largest number of stages of a step.
inline constexpr int kMostStages = 3;

/// The nodes of a step's stages.
enum class StageNodes {
  gauss,  ///< roots of P_s: the midpoint, …
  radau,  ///< roots of P_s − P_{s−1}: the last one is the end of the step
};

/// How the steps of a part treat its energy.
enum class StageKind {
  gauss,      ///< what the step moves is kept: order 2s, |R(∞)| = 1
  damped,     ///< stiff motion dies within a step, order 2s − 1, R(∞) = 0
  automatic,  ///< damped where something decays far faster than the step resolves
};

std::string_view to_string(StageKind kind);

/// States of a part of which some may be damped and others not.
inline constexpr int kMostMasked = 64;

/// Stages of a step: nodes c and weights b of a quadrature on [0, 1], and the coefficients of its implicit
/// equations.
///
/// With the Lagrange polynomials l of the nodes, X(τ) = x + h Σⱼ (∫₀^τ lⱼ) ẋⱼ and
/// ∇̄ᵢH = (1/bᵢ) ∫₀¹ lᵢ ∇H(X), stage i sees
///   zᵢ = ∇̄ᵢH + δθ h P̂(cᵢ) K Σⱼ bⱼ P̂(cⱼ) ẋⱼ,   δ = 1/(4s − 2),   P̂(τ) = √(2s − 1) P_{s−1}(2τ − 1),
/// with K positive semidefinite: the Hessian of H at the start, or of that what is positive. For H = ½xᵀQx
/// and K = Q, zᵢ = Q(x + h Σⱼ aᵢⱼ ẋⱼ) with the A below: without damping on Gauss's nodes the collocation of
/// Gauss, aᵢⱼ = ∫₀^cᵢ lⱼ; with damping θ = 1 on Radau's nodes the collocation Radau IIA. In each case
///   H⁺ − H = h Σᵢ bᵢ zᵢᵀẋᵢ − δθ h² |Σⱼ bⱼ P̂(cⱼ) ẋⱼ|²_K:
/// the last term is the numerical dissipation. States may be left out of the damping (`conserved`): K is then
/// DKD, D being 0 for these and 1 for the others. It is semidefinite as K is, and the balance the same: a
/// winding's current dies while the rotor on it keeps its energy.
/// Source   Hairer, Lubich & Wanner, Geometric Numerical Integration (2006), II.1.3; Hairer & Wanner,
///          Solving Ordinary Differential Equations II (1996), IV.5; the damping of stages our own.
struct StageRule {
  int count = 1;
  std::array<double, kMostStages> c = {};
  std::array<double, kMostStages> b = {};
  std::array<std::array<double, kMostStages>, kMostStages> A = {};
  StageNodes nodes = StageNodes::gauss;
  double damping = 0.0;                      ///< δθ
  std::array<double, kMostStages> top = {};  ///< √bᵢ P̂(cᵢ), of norm 1
  std::uint64_t conserved = 0;               ///< bit k: state k < kMostMasked is not damped

  bool is_damped() const { return damping > 0.0; }
  bool damps(int state) const {
    return is_damped() && (state >= kMostMasked || (conserved >> state & 1U) == 0);
  }
  /// aᵢⱼ of states that are not damped.
  double undamped(int i, int j) const;
  /// lⱼ(τ)
  double lagrange(int j, double tau) const;
  /// ∫₀^τ lⱼ
  double integral(int j, double tau) const;
  /// The slope at cᵢ of the polynomial that is 0 at 0, 1 at cⱼ and 0 at the other nodes: (A⁻¹)ᵢⱼ of a
  /// collocation.
  double inverse(int i, int j) const;
  bool operator==(const StageRule&) const = default;
};

/// How much of a damped part is damped.
struct StageDamping {
  double theta = 1.0;           ///< θ, 0 ≤ θ ≤ 1
  std::uint64_t conserved = 0;  ///< StageRule::conserved
  bool operator==(const StageDamping&) const = default;
  auto operator<=>(const StageDamping&) const = default;
};

/// Without damping. 1 ≤ stages ≤ kMostStages.
const StageRule& gauss_stages(int stages);
const StageRule& stage_rule(int stages, StageNodes nodes);
/// The same with damping.
StageRule damped(const StageRule& rule, const StageDamping& damping = {});

/// Largest number of substeps of a part within a step.
inline constexpr int kMostPartSubsteps = 1000;

/// A step cut into m equal substeps of the same s stages, the step's inputs being the polynomial
/// through their values at its own stages: the weight of the input at stage l of the step at stage i of
/// substep k (from 0), √bᵢ l_l((k + cᵢ)/m)/√b_l, both inputs scaled by √b. As matrices
/// Vₖ = (share) these obey Σₖ VₖᵀVₖ = m I, since the stages integrate products of two l exactly: so
/// outputs Σₖ Vₖᵀyₖ/m of the step do the work of those of its substeps.
double substep_share(const StageRule& stages, int substeps, int k, int i, int l);

}  // namespace portwave
