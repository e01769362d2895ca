#pragma once

// What junctions of two ports do with their waves: for the loops over many of them, and for islands that
// keep their waves in registers. Compiled with PORTWAVE_ISA, as kernels are.

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

// With R = (2I − P)⁻¹, R(2b − u) − b = R g, g = Pb − u: at the fixed point the update vanishes to
// the last bit. Where P² = I, R g = (2g + Pg)/3.

/// A swap. u₁ += ⅓λ(2g₁ + g₂), g₁ = b₂ − u₁, g₂ = b₁ − u₂, with b₁ and b₂ entering as late as can
/// be: the next port solve waits for nothing else.
static inline void resolve_swap(double third, double b1, double b2, double& u1, double& u2) {
  const double old1 = u1, old2 = u2;
  const double rest1 = __builtin_fma(-2.0, old1, -old2), rest2 = __builtin_fma(-2.0, old2, -old1);
  u1 = __builtin_fma(third, __builtin_fma(2.0, b2, rest1) + b1, old1);
  u2 = __builtin_fma(third, __builtin_fma(2.0, b1, rest2) + b2, old2);
}

/// u ← u + θ(P b − u)
static inline void average_swap(double relaxation, double b1, double b2, double& u1, double& u2) {
  u1 = __builtin_fma(relaxation, b2 - u1, u1);
  u2 = __builtin_fma(relaxation, b1 - u2, u2);
}

// A reflection of two ports: P = [[p, s], [s, −p]].

static inline void exchange_pair(double p, double s, double b1, double b2, double& a1, double& a2) {
  a1 = __builtin_fma(p, b1, s * b2);
  a2 = __builtin_fma(-p, b2, s * b1);
}

static inline void average_pair(double p, double s, double relaxation, double b1, double b2,
                                double& u1, double& u2) {
  const double g1 = __builtin_fma(p, b1, __builtin_fma(s, b2, -u1));
  const double g2 = __builtin_fma(-p, b2, __builtin_fma(s, b1, -u2));
  u1 = __builtin_fma(relaxation, g1, u1);
  u2 = __builtin_fma(relaxation, g2, u2);
}

static inline void resolve_pair(double p, double s, double third, double b1, double b2, double& u1,
                                double& u2) {
  const double g1 = __builtin_fma(p, b1, __builtin_fma(s, b2, -u1));
  const double g2 = __builtin_fma(-p, b2, __builtin_fma(s, b1, -u2));
  u1 = __builtin_fma(third, __builtin_fma(2.0 + p, g1, s * g2), u1);
  u2 = __builtin_fma(third, __builtin_fma(2.0 - p, g2, s * g1), u2);
}

}  // namespace portwave::PORTWAVE_ISA
