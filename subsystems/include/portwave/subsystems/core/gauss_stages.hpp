#pragma once

#include <array>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Largest number of stages of a step: order 2s.
inline constexpr int kMostStages = 3;

/// Gauss collocation with s stages, of order 2s: nodes c and weights b of the quadrature on [0, 1],
/// and A, a_ij = ∫₀^cᵢ lⱼ, with the Lagrange polynomials l of the nodes. s = 1 is the midpoint.
/// Source   Hairer, Lubich & Wanner, Geometric Numerical Integration (2006), II.1.3.
struct GaussStages {
  int count = 1;
  std::array<double, kMostStages> c = {};
  std::array<double, kMostStages> b = {};
  std::array<std::array<double, kMostStages>, kMostStages> A = {};

  /// lⱼ(τ)
  double lagrange(int j, double tau) const;
  /// ∫₀^τ lⱼ
  double integral(int j, double tau) const;
  /// (A⁻¹)ᵢⱼ: the slope at cᵢ of the polynomial that is 0 at 0, 1 at cⱼ and 0 at the other nodes.
  double inverse(int i, int j) const;
};

/// 1 ≤ stages ≤ kMostStages.
const GaussStages& gauss_stages(int stages);

/// Largest number of substeps of a part within a step.
inline constexpr int kMostPartSubsteps = 1000;

/// A step cut into m equal substeps of the same s stages, the step's inputs being the polynomial
/// through their values at its own stages: the weight of the input at stage l of the step at stage i of
/// substep k (from 0), √bᵢ l_l((k + cᵢ)/m)/√b_l, both inputs scaled by √b. As matrices
/// Vₖ = (share) these obey Σₖ VₖᵀVₖ = m I, since the stages integrate products of two l exactly: so
/// outputs Σₖ Vₖᵀyₖ/m of the step do the work of those of its substeps.
double substep_share(const GaussStages& stages, int substeps, int k, int i, int l);

}  // namespace portwave
