#pragma once

// Exponentials of lanes, for kernel sources alone: the same bits on every instruction set, and in every lane those
// that it has alone.

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

template <int W>
struct LaneExponential {
  using V = Vec<W>;

  /// eˣ to an ulp or two. That of |x| > 700 is of the C library.
  static V of(V x) {
    // x = k ln 2 + r, |r| ≤ ln 2/2. ln 2 in two parts, each to 53 bits.
    const V shift = V::all(0x1.8p52);
    const V k = fma(x, V::all(0x1.71547652b82fep+0), shift) - shift;
    const V back = negate(k);
    V r = fma(back, V::all(0x1.62e42fefa39efp-1), x);
    r = fma(back, V::all(0x1.abc9e3b39803fp-56), r);
    V sum = V::all(kTerm[kTerms - 1]);
    for (int m = kTerms - 2; m >= 0; --m) sum = fma(sum, r, V::all(kTerm[m]));
    const V power = fma(fma(sum, r, V::all(1.0)), r, V::all(1.0));
    double whole[W], factor[W], out[W], at[W];
    k.store(whole);
    for (int l = 0; l < W; ++l) factor[l] = power_of_two(whole[l]);
    const V value = power * V::load(factor);
    if (all_at_most(abs(x), V::all(kFar))) return value;
    value.store(out);
    x.store(at);
    for (int l = 0; l < W; ++l) {
      if (!(__builtin_fabs(at[l]) <= kFar)) out[l] = __builtin_exp(at[l]);
    }
    return V::load(out);
  }

 private:
  static constexpr double kFar = 700.0;
  static constexpr int kTerms = 12;
  /// 1/k! from k = 2 on: what is left out is below 1e-17.
  static constexpr double kTerm[kTerms] = {1.0 / 2.0,        1.0 / 6.0,         1.0 / 24.0,
                                           1.0 / 120.0,      1.0 / 720.0,       1.0 / 5040.0,
                                           1.0 / 40320.0,    1.0 / 362880.0,    1.0 / 3628800.0,
                                           1.0 / 39916800.0, 1.0 / 479001600.0, 1.0 / 6227020800.0};

  /// 2ᵏ for whole |k| < 1023; 1 beyond.
  static double power_of_two(double k) {
    const double within = __builtin_fabs(k) < 1023.0 ? k : 0.0;
    const long long bits = (static_cast<long long>(within) + 1023) << 52;
    double out;
    __builtin_memcpy(&out, &bits, sizeof out);
    return out;
  }
};

}  // namespace portwave::PORTWAVE_ISA
