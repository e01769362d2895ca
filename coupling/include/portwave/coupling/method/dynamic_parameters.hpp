#pragma once

#include "portwave/coupling/method/dynamic_iteration.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

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
