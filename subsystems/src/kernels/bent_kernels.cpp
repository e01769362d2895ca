#include "kernels/bent_kernels.hpp"

#include "portwave/subsystems/base/lane_group.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// Newton's method from the step linearised at x. A lane whose residual is round-off stays as it is; one whose
/// residual grows has failed, whatever comes after.
template <int W>
struct BentStep {
  using V = Vec<W>;

  static V at(const double* values, int k) { return V::load(values + k * W); }

  [[gnu::always_inline]] static bool solve(const bent::Task& t, long g) {
    constexpr int kMostSteps = 12;
    const double* const c = t.coefficients + g * t.coefficient_size;
    double* const own = t.record + g * t.record_size;
    const V one = V::all(1.0), zero = V::all(0.0);
    V known = at(own, t.offset), size = abs(known);
    for (int j = 0; j < t.ports; ++j) {
      const V wave = V::load(t.a + j * t.stride + g * W);
      const V term = at(c, t.own_of_wave + j * t.own_of_wave_step) * wave;
      known = known + term;
      size = size + abs(term);
    }
    const V gain = at(c, t.gain), gain_size = abs(gain);
    const double* const taylor = own + t.taylor * W;
    V delta = fma(gain, at(taylor, 0), known) / fma(negate(gain), at(taylor, 1), one);
    if (t.warm) delta = where_at_most(one, at(own, t.is_warm), at(own, t.increment), delta);
    const V noise = at(taylor, t.degree);
    V mean = zero, residual = zero, allowed = zero, before = V::all(__DBL_MAX__), failed = zero;
    for (int k = 0; k < kMostSteps; ++k) {
      const V reach = abs(delta);
      V slope = zero, magnitude = abs(at(taylor, t.degree - 1));
      mean = at(taylor, t.degree - 1);
      for (int m = t.degree - 2; m >= 0; --m) {
        const V own_term = at(taylor, m);
        slope = fma(slope, delta, mean);
        mean = fma(mean, delta, own_term);
        magnitude = fma(magnitude, reach, abs(own_term));
      }
      const V F = fma(negate(gain), mean, delta - known);
      residual = abs(F);
      allowed = V::all(4.0 * __DBL_EPSILON__) *
                fma(gain_size, magnitude + (magnitude + noise), reach + size);
      if (all_at_most(residual, allowed)) break;
      const V grown = where_at_most(residual, before, failed, one);
      failed = where_at_most(residual, allowed, failed, grown);
      before = residual;
      const V next = delta - F / fma(negate(gain), slope, one);
      delta = where_at_most(residual, allowed, delta, next);
    }
    failed = where_at_most(residual, allowed, failed, one);
    delta.store(t.delta);
    mean.store(t.mean);
    failed.store(t.failed);
    if (t.warm) {
      delta.store(own + t.increment * W);
      (one - failed).store(own + t.is_warm * W);
    }
    for (int i = 0; i < t.ports; ++i) {
      V b = fma(at(c, t.b_of_mean + i), mean, at(own, t.b_offset + i));
      for (int j = 0; j < t.ports; ++j) {
        b = fma(at(c, t.b_of_wave + j * t.ports + i), V::load(t.a + j * t.stride + g * W), b);
      }
      b.store(t.b + i * t.stride + g * W);
    }
    return all_at_most(failed, zero);
  }
};

template <int W>
int scatter(const bent::Task& t) {
  for (long g = t.first; g < t.last; ++g) {
    if (!BentStep<W>::solve(t, g)) return static_cast<int>(g);
  }
  return -1;
}

}  // namespace

const bent::Kernels kBent = {scatter<kLaneGroup>, scatter<1>};

}  // namespace portwave::PORTWAVE_ISA
