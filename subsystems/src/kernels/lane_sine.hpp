#pragma once

// Sines and cosines of lanes, for kernel sources alone: the same bits on every instruction set, and in every lane
// those that it has alone.

#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

template <int W>
struct LaneSine {
  using V = Vec<W>;

  V sine, cosine;

  /// To an ulp or two of 1. Angles above 1e5 are those of the C library.
  static LaneSine of(V angle) {
    const V limit = V::all(1e5), size = abs(angle);
    // angle = k π/2 + r, |r| ≤ π/4. π/2 in three parts, each to 53 bits.
    const V shift = V::all(0x1.8p52);
    const V k = fma(angle, V::all(0x1.45f306dc9c883p-1), shift) - shift;
    const V back = negate(k);
    V r = fma(back, V::all(0x1.921fb54442d18p+0), angle);
    r = fma(back, V::all(0x1.1a62633145c07p-54), r);
    r = fma(back, V::all(-0x1.f1976b7ed8fbcp-110), r);
    const V square = r * r;
    const V s = fma(r * square, series(square, kSine), r);
    const V c = fma(square, series(square, kCosine), V::all(1.0));
    const V turns = fma(k, V::all(0.25), shift) - shift;
    const V quarter = fma(turns, V::all(-4.0), k);  // −2 to 2
    const V half = V::all(0.5), one = V::all(1.0), near = V::all(1.2);
    const V off = abs(abs(quarter) - one);
    LaneSine out = {where_at_most(off, half, c, s), where_at_most(off, half, s, c)};
    const V of_sine = abs(quarter - half), of_cosine = abs(quarter + half);
    out.sine = where_at_most(of_sine, near, out.sine, negate(out.sine));
    out.cosine = where_at_most(of_cosine, near, out.cosine, negate(out.cosine));
    if (!all_at_most(size, limit)) out.take_far(angle);
    return out;
  }

 private:
  static constexpr int kTerms = 8;
  /// (−1)ᵏ/(2k + 1)! and (−1)ᵏ/(2k)! from k = 1 on: what is left out is below 1e-19 up to π/4.
  static constexpr double kSine[kTerms] = {
      -1.0 / 6.0,        1.0 / 120.0,        -1.0 / 5040.0,          1.0 / 362880.0,
      -1.0 / 39916800.0, 1.0 / 6227020800.0, -1.0 / 1307674368000.0, 1.0 / 355687428096000.0};
  static constexpr double kCosine[kTerms] = {
      -1.0 / 2.0,       1.0 / 24.0,        -1.0 / 720.0,         1.0 / 40320.0,
      -1.0 / 3628800.0, 1.0 / 479001600.0, -1.0 / 87178291200.0, 1.0 / 20922789888000.0};

  static V series(V square, const double* terms) {
    V sum = V::all(terms[kTerms - 1]);
    for (int k = kTerms - 2; k >= 0; --k) sum = fma(sum, square, V::all(terms[k]));
    return sum;
  }

  /// Those of the C library in the lanes where the angle is far, or no number.
  void take_far(V angle) {
    double angles[W], sines[W], cosines[W];
    angle.store(angles);
    sine.store(sines);
    cosine.store(cosines);
    for (int l = 0; l < W; ++l) {
      if (__builtin_fabs(angles[l]) <= 1e5) continue;
      sines[l] = __builtin_sin(angles[l]);
      cosines[l] = __builtin_cos(angles[l]);
    }
    *this = {V::load(sines), V::load(cosines)};
  }
};

}  // namespace portwave::PORTWAVE_ISA
