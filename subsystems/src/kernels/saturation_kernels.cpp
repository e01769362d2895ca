#include "kernels/saturation_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// tanh(x) and 1 − tanh(x)².
template <int W>
struct Bent {
  Vec<W> value, slope;
};

/// For x ≥ 0, within some units in the last place. tanh(x/32) by its continued fraction, whose next term is below
/// 1e-17 there, as p/q; then five times tanh 2y = 2pq/(p² + q²), and 1 − tanh² 2y = ((q² − p²)/(p² + q²))², which
/// cancels nothing. Doubling makes errors smaller.
template <int W>
[[gnu::always_inline]] inline Bent<W> bent_of(Vec<W> x) {
  using V = Vec<W>;
  constexpr int kDoublings = 5, kLevels = 8;
  const V most = V::all(20.0);  // beyond, it is 1 to rounding
  const V y = where_at_most(x, most, x, most) * V::all(1.0 / 32.0);
  const V square = y * y;
  // y/(1 + y²/(3 + y²/(5 + …))) from its end: each level n + y²/(a/b) is (n a + y² b)/a. 1/(1·3·…·15) keeps q
  // near 1.
  V a = V::all(15.0 / 2027025.0), b = V::all(1.0 / 2027025.0);
  for (int level = kLevels - 1; level > 0; --level) {
    const V next = fma(V::all(2.0 * level - 1.0), a, square * b);
    b = a;
    a = next;
  }
  V p = y * b, q = a, d = (q - p) * (q + p);
  for (int i = 0; i < kDoublings; ++i) {
    const V cross = p * q;
    q = fma(p, p, q * q);
    p = cross + cross;
    d = d * d;
  }
  const V inverse = V::all(1.0) / q;
  return {p * inverse, d * inverse * inverse};
}

/// Newton's method from below: f(u) = k u + G tanh(u/r) − |s a| is concave and increasing for u ≥ 0, so that from
/// where f ≤ 0 all iterates stay there and increase, until rounding ends that. A lane that has its root stays as
/// it is, however long others take.
template <int W>
struct Saturating {
  using V = Vec<W>;

  static V of(const double* coefficients, int i) { return V::load(coefficients + i * W); }

  /// |u|, and tanh(|u|/r) there.
  [[gnu::always_inline]] static V solve(const double* c, V right, V& tanh) {
    constexpr int kMostSteps =
        128;  // 40 are needed where k is nothing beside G/r and |s a| just below G
    const V zero = V::all(0.0), epsilon = V::all(__DBL_EPSILON__);
    const V least = V::all(__DBL_DENORM_MIN__);
    const V k = of(c, saturation::kOwn), G = of(c, saturation::kLimit),
            per_reach = of(c, saturation::kPerReach);
    const V steep = G * per_reach;
    // The tangents at 0 and far away are above f: their roots are below its own.
    const V at_rest = right / (k + steep), far = (right - G) / k;
    V u = where_at_most(at_rest, far, far, at_rest), moved = zero;
    for (int step = 0; step < kMostSteps; ++step) {
      const Bent<W> bent = bent_of<W>(u * per_reach);
      tanh = bent.value;
      const V own = k * u, limit = G * tanh;
      const V defect = own + (limit - right);
      const V noise = epsilon * (own + (limit + right));
      // Where that is rounding, or no step upwards is left, u stays; so does a NaN, which its waves will show.
      const V step_up = negate(defect) / fma(steep, bent.slope, k);
      const V wanted = where_at_most(abs(defect), noise, zero, step_up);
      const V taken = where_at_most(least, wanted, wanted, zero);
      const V next = u + taken;
      moved = where_at_most(next, u, zero, taken);
      if (all_at_most(moved, zero)) return u;
      u = next;
    }
    return where_at_most(moved, zero, u, V::all(__builtin_nan("")));
  }

  template <bool kAccounts>
  [[gnu::always_inline]] static int act(const saturation::Task& t, long g) {
    const V zero = V::all(0.0);
    V check = zero, lost = zero;
    for (int j = 0; j < t.ports; ++j) {
      const double* const c =
          t.coefficients + (g * t.ports + j) * saturation::kCoefficientCount * W;
      const V a = V::load(t.a + j * t.stride + g * W);
      const V right = of(c, saturation::kRight) * a;
      V tanh;
      const V size = solve(c, abs(right), tanh);
      const V u = where_at_most(zero, right, size, negate(size));
      const V b = fma(of(c, saturation::kSlope), u, of(c, saturation::kSign) * a);
      check = fma(b, zero, check);
      b.store(t.b + j * t.stride + g * W);
      if constexpr (kAccounts) {
        lost = fma(fma(of(c, saturation::kForce), tanh, of(c, saturation::kViscosity) * size), size,
                   lost);
      }
    }
    if constexpr (kAccounts) {
      if (t.energy.wanted()) {
        (V::all(t.step_s) * lost).store(t.energy.dissipated_J + g * W);
        zero.store(t.energy.change_J + g * W);
        zero.store(t.energy.external_supply_J + g * W);
      }
    }
    return all_at_most(check, zero) ? W : first_above(check, zero);
  }
};

template <int W, bool kAccounts>
int for_saturating(const void* task) {
  const saturation::Task& t = *static_cast<const saturation::Task*>(task);
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane = Saturating<W>::template act<kAccounts>(t, g);
    if (lane < W && bad < 0) bad = static_cast<int>(g) * W + lane;
  }
  return bad;
}

}  // namespace

const saturation::Kernels kSaturation = {for_saturating<kLaneGroup, false>,
                                         for_saturating<1, false>, for_saturating<kLaneGroup, true>,
                                         for_saturating<1, true>};

}  // namespace portwave::PORTWAVE_ISA
