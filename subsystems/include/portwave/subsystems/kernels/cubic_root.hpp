#pragma once

// The root of an increasing cubic, W lanes side by side, for kernels that need it: the port solve of a
// mass on a hardening spring, alone or within the iteration of a small island. As simd.hpp, for
// sources that are compiled with PORTWAVE_ISA.

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {

/// Steps after which a lane is given up: Newton on an increasing cubic needs a few dozen at most.
inline constexpr int kMaxCubicSteps = 200;
/// Relative error that counts as round-off.
inline constexpr double kCubicRoundOff = 1e-16;
/// A reciprocal of the slope that is off by more is recomputed instead of refined.
inline constexpr double kRefinable = 0.03;

/// ((c₃d + c₂)d + c₁)d + c₀
template <int W>
struct Cubic {
  Vec<W> c3, c2, c1, c0;
};

/// A root d of cubic(d) = r, and the reciprocal of the slope there or close to it.
template <int W>
struct CubicSolution {
  Vec<W> root, drive, inverse;
};

/// Makes `inverse` that of `slope`, by a Newton step for the reciprocal if it is close. Returns the previous
/// 1 − slope·inverse, whose square is the remaining error.
template <int W>
[[gnu::always_inline]] static inline Vec<W> refine_reciprocal(Vec<W> slope, Vec<W>& inverse) {
  using V = Vec<W>;
  const V one = V::all(1.0), near = V::all(kRefinable);
  V defect = fma(negate(slope), inverse, one);
  if (!all_at_most(abs(defect), near)) {
    inverse = where_at_most(abs(defect), near, inverse, one / slope);
    defect = fma(negate(slope), inverse, one);
  }
  inverse = fma(inverse, defect, inverse);
  return defect;
}

/// Newton steps for the lanes that are `open` (1, the others 0), r being `last.drive`. False when a lane did
/// not converge.
template <int W>
[[gnu::noinline]] static bool converge_cubic(Cubic<W> f, Vec<W> open, CubicSolution<W>& last) {
  using V = Vec<W>;
  const V three = V::all(3.0), zero = V::all(0.0), constant = f.c0 - last.drive;
  V d = last.root, inverse = last.inverse;
  bool solved = false;
  for (int k = 0; k < kMaxCubicSteps && !solved; ++k) {
    const V value = fma(fma(fma(f.c3, d, f.c2), d, f.c1), d, constant);
    const V bend = fma(three * f.c3, d, f.c2);
    const V slope = fma(bend + f.c2, d, f.c1);
    V refined = inverse;
    const V defect = refine_reciprocal(slope, refined);
    const V step = value * refined;
    const V moved = d - step;
    const V error = abs(step) * fma(abs(step * bend), abs(refined), defect * defect);
    d = where_at_most(open, zero, d, moved);
    inverse = where_at_most(open, zero, inverse, refined);
    open = where_at_most(error, V::all(kCubicRoundOff) * abs(moved), zero, open);
    solved = all_at_most(open, zero);
  }
  last.root = d;
  last.inverse = inverse;
  return solved;
}

/// Root for r, the cubic being taken around the root of the last solve, d_w for r_w:
///   f'δ + ½f''δ² + c₃δ³ = r − r_w − ρ, ρ the residual left there.
/// Terms of d_w are computed before r is needed; from r on there are two multiplications and
/// two additions to δ = δ₀ − δ₀²(½f'' + c₃δ₀)/f', whose error is known from the next term. If
/// that is not round-off yet, Newton goes on. The reciprocal of f' is carried along and refined, so
/// that no division is needed near the last root. A lane stops on its own test, independently of the others.
/// False when a lane did not converge.
template <int W>
[[gnu::always_inline]] static inline bool solve_cubic(const Cubic<W>& f, Vec<W> r,
                                                      CubicSolution<W>& last) {
  using V = Vec<W>;
  const V one = V::all(1.0), three = V::all(3.0), zero = V::all(0.0);
  const V warm = last.root, warm_drive = last.drive;
  V inverse = last.inverse;
  const V left = fma(fma(fma(f.c3, warm, f.c2), warm, f.c1), warm, f.c0 - warm_drive);
  const V bend = fma(three * f.c3, warm, f.c2);  // ½f''
  const V slope = fma(bend + f.c2, warm, f.c1);
  const V defect = refine_reciprocal(slope, inverse);
  const V shift = warm_drive + left;

  const V linear = (r - shift) * inverse;
  const V curved = fma(f.c3, linear, bend) * inverse;
  const V step = linear * linear * curved;
  const V d = warm + (linear - step);
  const V relative = fma(V::all(2.0), abs(bend * linear), three * f.c3 * linear * linear);
  const V error = abs(step) * fma(relative, abs(inverse), defect * defect);
  const V round_off = V::all(kCubicRoundOff) * abs(d);
  last = {d, r, inverse};
  if (all_at_most(error, round_off)) return true;
  CubicSolution<W> going_on = last;  // of its own, so that what is carried along stays in registers
  const bool solved = converge_cubic(f, where_at_most(error, round_off, zero, one), going_on);
  last = going_on;
  return solved;
}

}  // namespace portwave::PORTWAVE_ISA
