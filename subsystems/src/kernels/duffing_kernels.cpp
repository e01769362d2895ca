#include "kernels/duffing_kernels.hpp"

#include "portwave/subsystems/kernels/cubic_root.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

using namespace duffing;  // NOLINT(google-build-using-namespace): of the header of this file

template <int W, bool kShared, int kSprings, int kMasses>
struct Lanes {
  static constexpr int S = kShared ? 1 : W;
  static constexpr int kPorts = kSprings + kMasses;
  static constexpr int kRecord = record_size(kSprings, kMasses);
  using V = Vec<W>;

  static V scatter_of(const Group& g, int i) { return coefficient<W, kShared>(g.scatter, i); }
  static V port_of(const Group& g, int port, int i) {
    return coefficient<W, kShared>(g.scatter, kScatterCount + 3 * port + i);
  }
  static V step_of(const Group& g, int i) { return coefficient<W, kShared>(g.step, i); }
  static V spring_of(const Group& g, int spring, int i) {
    return coefficient<W, kShared>(g.step, kStepCount + kSpringCount * spring + i);
  }
  static V mass_of(const Group& g, int mass, int i) {
    return coefficient<W, kShared>(g.step,
                                   kStepCount + kSpringCount * kSprings + kMassCount * mass + i);
  }

  /// What is left of a lane's cubic at d, and what may be left: 1e-14 of its terms.
  struct Left {
    V value, most;
  };
  [[gnu::always_inline]] static Left left_of(const Cubic<W>& cubic, V r, V d) {
    const auto& [c3, c2, c1, c0] = cubic;
    const V value = fma(fma(fma(c3, d, c2), d, c1), d, c0 - r);
    const V size = fma(abs(d), fma(abs(d), fma(abs(d), c3, abs(c2)), c1), abs(c0) + abs(r));
    return {abs(value), V::all(1e-14) * size};
  }
  /// Solves once more, from where they are, lanes in which too much is left; others stay.
  [[gnu::noinline]] static bool solve_again(const Cubic<W>& cubic, V r, CubicSolution<W>& last) {
    const Left left = left_of(cubic, r, last.root);
    CubicSolution<W> again = last;
    const bool solved = solve_cubic(cubic, r, again);
    last.root = where_at_most(left.value, left.most, last.root, again.root);
    last.inverse = where_at_most(left.value, left.most, last.inverse, again.inverse);
    return solved;
  }

  /// The root of the cubic for r, from that of the lane's last solve. False when a lane did not
  /// converge.
  [[gnu::always_inline]] static bool solve(const Cubic<W>& cubic, V r, double* record, V& root) {
    CubicSolution<W> last{V::load(record + kWarmIncrement * W), V::load(record + kWarmDrive * W),
                          V::load(record + kWarmInverse * W)};
    bool solved = solve_cubic(cubic, r, last);
    if (!solved) solved = solve_again(cubic, r, last);
    last.root.store(record + kWarmIncrement * W);
    last.drive.store(record + kWarmDrive * W);
    last.inverse.store(record + kWarmInverse * W);
    root = last.root;
    return solved;
  }

  /// b for the increment that a solves for. Returns the first lane that failed, or W.
  [[gnu::always_inline]] static int scatter(const Task& t, long g, V& d) {
    const Group& group = t.groups[g];
    double* record = t.record + g * kRecord * W;
    V a[kPorts];
    V r = V::all(0.0);
    for (int j = 0; j < kPorts; ++j) {
      a[j] = V::load(t.a + j * t.stride + g * W);
      r = fma(port_of(group, j, 0), a[j], r);
    }
    const Cubic<W> cubic{scatter_of(group, kCubic), V::load(record + kC2 * W),
                         V::load(record + kC1 * W), V::load(record + kC0 * W)};
    const bool solved = solve(cubic, r, record, d);
    // b = (a − Ta − b⁰) − W d: what is in brackets does not wait for d.
    for (int j = 0; j < kPorts; ++j) {
      const V rest =
          fma(negate(port_of(group, j, 1)), a[j], a[j] - V::load(record + offset_slot(j) * W));
      fma(negate(port_of(group, j, 2)), d, rest).store(t.b + j * t.stride + g * W);
    }
    if (solved) return W;
    // Which lane: the one whose root does not satisfy its own test, or is not a number.
    const Left left = left_of(cubic, r, d);
    return first_above(left.value, left.most);
  }

  /// Coefficients of the cubic and b⁰ at the state in the record. It is solved for the increment
  /// w − v, whose rounding errors are smaller than those of w by a factor of the order of h; where
  /// the spring outweighs the inertia (h far beyond the period) v is the larger, and w is solved
  /// for.
  [[gnu::always_inline]] static void freeze(const Group& group, double* record) {
    const double* state = record + state_slot(kPorts) * W;
    const V q = V::load(state), v = V::load(state + W);
    const V force = V::load(record + force_slot(kSprings, kMasses) * W);
    const V h = step_of(group, kStep), k3 = step_of(group, kCubicStiffness);
    const V c3 = scatter_of(group, kCubic), inertia = step_of(group, kInertia);
    const V w2 = step_of(group, kQuadraticBend) * q * h * h;
    const V w1 = fma(step_of(group, kLinearBend) * q, q * h, step_of(group, kLinear));
    const V pull = abs(fma(fma(c3, v, w2), v, w1));
    const V w0 = where_at_most(pull, inertia, v, V::all(0.0));
    const V three = V::all(3.0), two = V::all(2.0);
    const V c1 = inertia + fma(fma(three * c3, w0, two * w2), w0, w1);
    V c0 = fma(fma(fma(c3, w0, w2), w0, w1), w0, inertia * (w0 - v));
    c0 = fma(fma(k3 * q, q, step_of(group, kStiffness)), q, c0) - force;
    for (int j = 0; j < kSprings; ++j) {
      const V delta = V::load(state + (2 + j) * W);
      c0 = c0 - spring_of(group, j, kElongationForce) * delta;
      const V pulled = spring_of(group, j, kCouplingStiffness) * delta;
      (spring_of(group, j, kWavePerForce) * fma(spring_of(group, j, kKappa), w0, negate(pulled)))
          .store(record + offset_slot(j) * W);
    }
    for (int j = 0; j < kMasses; ++j) {
      negate(mass_of(group, j, kWavePerVelocity) * w0)
          .store(record + offset_slot(kSprings + j) * W);
    }
    w0.store(record + base_slot(kPorts) * W);
    fma(three * c3, w0, w2).store(record + kC2 * W);
    c1.store(record + kC1 * W);
    c0.store(record + kC0 * W);
    (V::all(1.0) / c1).store(record + kColdInverse * W);
    forget(record);
  }

  /// The warm start of a lane that has not been solved yet.
  [[gnu::always_inline]] static void forget(double* record) {
    V::all(0.0).store(record + kWarmIncrement * W);
    V::load(record + kC0 * W).store(record + kWarmDrive * W);
    V::load(record + kColdInverse * W).store(record + kWarmInverse * W);
  }

  /// What |H| and the terms of xᵀ∇H add up to.
  [[gnu::always_inline]] static V energy_terms(const Group& group, const double* record) {
    const double* state = record + state_slot(kPorts) * W;
    const V q = V::load(state), v = V::load(state + W), half = V::all(0.5);
    const V square = q * q, k3 = step_of(group, kCubicStiffness);
    const V linear = step_of(group, kStiffness) * square, cubic = k3 * square * square;
    const V kinetic = step_of(group, kMass) * v * v;
    V twice = kinetic + linear + half * cubic;
    V of_gradient = abs(linear + cubic) + abs(kinetic);
    for (int j = 0; j < kSprings; ++j) {
      const V delta = V::load(state + (2 + j) * W);
      const V elastic = spring_of(group, j, kCouplingStiffness) * delta * delta;
      twice = twice + elastic;
      of_gradient = of_gradient + abs(elastic);
    }
    return of_gradient + half * abs(twice);
  }

  static int advance(const Task& t, long g) {
    const Group& group = t.groups[g];
    const V half = V::all(0.5);
    double* record = t.record + g * kRecord * W;
    // From a cold start, so that what is committed depends on (xⁿ, ū, a) and on no earlier solve.
    forget(record);
    V d;
    const int failed = scatter(t, g, d);
    double* next = t.next + g * kRecord * W;
    const double* state = record + state_slot(kPorts) * W;
    double* state_next = next + state_slot(kPorts) * W;
    const V q = V::load(state), v = V::load(state + W);
    const V force = V::load(record + force_slot(kSprings, kMasses) * W);
    const V base = V::load(record + base_slot(kPorts) * W);
    const V h = step_of(group, kStep);
    const V w = base + d;
    const V q_next = fma(h, w, q);
    const V v_next = fma(step_of(group, kVelocityShare), (base - v) + d, v);
    V check = (q_next + v_next) * V::all(0.0);
    V elastic = V::all(0.0);    // its change, twice
    V stretched = V::all(0.0);  // Σ k₁₂(δ⁺ − δ)²
    V lost = step_of(group, kDamping) * w * w;
    q_next.store(state_next);
    v_next.store(state_next + W);
    for (int j = 0; j < kSprings; ++j) {
      const V k12 = spring_of(group, j, kCouplingStiffness);
      const V delta = V::load(state + (2 + j) * W);
      const V a = V::load(t.a + j * t.stride + g * W);
      const V u = fma(spring_of(group, j, kWaveScale), a,
                      fma(spring_of(group, j, kKappa), w, negate(k12 * delta))) *
                  spring_of(group, j, kShare);
      const V slip = u - w;
      const V delta_next = fma(h, slip, delta);
      delta_next.store(state_next + (2 + j) * W);
      check = fma(delta_next, V::all(0.0), check);
      elastic = fma(k12 * (delta_next + delta), delta_next - delta, elastic);
      if (t.theta > 0.0) {
        stretched = fma(k12 * (delta_next - delta), delta_next - delta, stretched);
      }
      lost = fma(spring_of(group, j, kCouplingDamping) * slip, slip, lost);
    }
    for (int j = 0; j < kPorts; ++j) {
      check = fma(V::load(t.b + j * t.stride + g * W), V::all(0.0), check);
    }
    if (t.energy.wanted()) {
      // H⁺ − H = ½m(v⁺² − v²) + ½k₁(q⁺² − q²) + ¼k₃(q⁺⁴ − q⁴) + …, each as a product of increments.
      const V squares = (q_next + q) * (q_next - q);
      const V stiffness = fma(half * step_of(group, kCubicStiffness), fma(q_next, q_next, q * q),
                              step_of(group, kStiffness));
      const V kinetic = step_of(group, kMass) * (v_next + v);
      const V change = half * fma(kinetic, v_next - v, fma(stiffness, squares, elastic));
      change.store(t.energy.change_J + g * W);
      V dissipated = h * lost;
      if (t.theta > 0.0) {
        // θ(∇H(x⁺) − ∇̄H)ᵀ(x⁺ − x)
        const V dq = q_next - q, dv = v_next - v;
        const V bend = fma(V::all(1.5) * q, q, fma(V::all(2.0), q, V::all(0.75) * dq) * dq);
        const V of_squares = fma(step_of(group, kStiffness) * dq, dq,
                                 fma(step_of(group, kMass) * dv, dv, stretched));
        const V numerical = V::all(t.theta) *
                            fma(step_of(group, kCubicStiffness) * dq * dq, bend, half * of_squares);
        dissipated = dissipated + numerical;
        if (t.energy.numerical_dissipation_J != nullptr) {
          numerical.store(t.energy.numerical_dissipation_J + g * W);
        }
      }
      dissipated.store(t.energy.dissipated_J + g * W);
      (h * force * w).store(t.energy.external_supply_J + g * W);
    }
    V::all(0.0).store(next + force_slot(kSprings, kMasses) * W);
    freeze(group, next);
    if (failed < W) return failed;
    return all_at_most(check, V::all(0.0)) ? W : first_above(check, V::all(0.0));
  }
};

template <int W, int kSprings, int kMasses, class Act>
int for_groups(const Task& t, const Act& act) {
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane = t.groups[g].shared ? act(Lanes<W, true, kSprings, kMasses>{}, g)
                                        : act(Lanes<W, false, kSprings, kMasses>{}, g);
    if (lane < W && bad < 0) bad = static_cast<int>(g) * W + lane;
  }
  return bad;
}

template <int W, int kSprings, int kMasses>
int scatter(const void* task) {
  const Task& t = *static_cast<const Task*>(task);
  return for_groups<W, kSprings, kMasses>(t, [&](auto lanes, long g) {
    Vec<W> d;
    return decltype(lanes)::scatter(t, g, d);
  });
}

template <int W, int kSprings, int kMasses>
int advance(const Task& t) {
  return for_groups<W, kSprings, kMasses>(
      t, [&](auto lanes, long g) { return decltype(lanes)::advance(t, g); });
}

template <int W, int kSprings, int kMasses>
int freeze(const Task& t) {
  return for_groups<W, kSprings, kMasses>(t, [&](auto lanes, long g) {
    using L = decltype(lanes);
    L::freeze(t.groups[g], t.record + g * L::kRecord * W);
    return W;
  });
}

template <int W, int kSprings, int kMasses>
void energy_terms(const Task& t, int g, double* out) {
  const auto add = [&](auto lanes) {
    using L = decltype(lanes);
    const long at = static_cast<long>(g) * L::kRecord * W;
    const Vec<W> stored =
        L::energy_terms(t.groups[g], t.record + at) + L::energy_terms(t.groups[g], t.next + at);
    Vec<W> incident = Vec<W>::all(0.0);
    for (int j = 0; j < L::kPorts; ++j) {
      const Vec<W> a = Vec<W>::load(t.a + j * t.stride + g * W);
      incident = fma(a, a, incident);
    }
    where_at_most(incident, stored, stored, incident).store(out);
  };
  t.groups[g].shared ? add(Lanes<W, true, kSprings, kMasses>{})
                     : add(Lanes<W, false, kSprings, kMasses>{});
}

template <int W>
Vec<W> square_root(Vec<W> a) {
  double x[W];
  a.store(x);
  for (double& each : x) each = __builtin_sqrt(each);
  return Vec<W>::load(x);
}

/// With κ = k₁₂h/2 + c₁₂ and ρ = κ/(κ + γ) at a spring's end, of impedance γ,
///   u = (s a − k₁₂δ + κw)/(κ + γ),  b = a − (2γ/s)u;   on the mass  b = a + (2γ/s)w;
///   2m(w − v)/h + ¼k₃h³ w³ + k₃qh² w² + (c_w + ³⁄₂k₃q²h) w + A₀ = Σ ρ s a − Σ_masses s a,
///   c_w = k₁h/2 + c₁ + Σ γρ + Σ_masses γ,  A₀ = k₁q + k₃q³ − Σ γk₁₂δ/(κ + γ) − F,
/// increasing in w since 6q² + 8qd + 3d² has no real root (d = hw). With damping h/2 is (1 + θ)h/2, 2m/h is 2m/((1 + θ)h),
/// and the three terms of k₃ are (¼ + ¾θ), (1 + 2θ) and ³⁄₂(1 + θ) times k₃h³w³, k₃qh²w² and k₃q²hw.
/// Of L lanes of a group of W.
template <int L, int W, int kSprings, int kMasses>
MapDefect maps_of(const MapTask& t) {
  using V = Vec<L>;
  const auto parameter = [&](int i) { return V::load(t.parameters + i * W); };
  const auto put = [](double*& to, const auto&... values) { ((values.store(to), to += L), ...); };
  const double theta = t.theta;
  const V h = V::all(t.step_s), half = V::all(0.5 * (1.0 + theta)) * h;
  const V two = V::all(2.0), zero = V::all(0.0), share = V::all(2.0 / (1.0 + theta));
  const V k12 = parameter(kPartCouplingStiffness), c12 = parameter(kPartCouplingDamping);
  const V kappa = half * k12 + c12;
  V linear = half * parameter(kPartStiffness) + parameter(kPartDamping);
  const V inertia = share * parameter(kPartMass) / h, k3 = parameter(kPartCubicStiffness);
  double* of_ports = t.scatter;
  double* of_springs = t.step + kStepCount * L;
  double* of_masses = of_springs + kSpringCount * kSprings * L;
  put(of_ports, V::all(0.25 + 0.75 * theta) * k3 * h * h * h);
  V smallest = V::all(1.0);  // > 0 where the step is not singular
  for (int j = 0; j < kSprings + kMasses; ++j) {
    const V gamma = V::load(t.impedance + j * t.stride);
    const V s = square_root(two * gamma / h);
    if (j < kSprings) {
      const V sum = kappa + gamma, part = V::all(1.0) / sum;
      smallest = where_at_most(smallest, sum, smallest, sum);
      linear = linear + gamma * kappa * part;
      const V wave_per_force = two * gamma / s * part;
      put(of_springs, k12, c12, kappa, part, s, gamma * k12 * part, wave_per_force);
      put(of_ports, kappa * part * s, two * gamma * part, wave_per_force * kappa);
    } else {
      linear = linear + gamma;
      put(of_masses, two * gamma / s);
      put(of_ports, negate(s), zero, V::all(-2.0) * gamma / s);
    }
  }
  double* common = t.step;
  put(common, h, inertia, linear, parameter(kPartStiffness), k3, parameter(kPartMass),
      parameter(kPartDamping), V::all(1.0 + 2.0 * theta) * k3, V::all(1.5 * (1.0 + theta)) * k3,
      share);
  const V total = inertia + linear;
  smallest = where_at_most(smallest, total, smallest, total);
  // Not above the smallest number > 0, or not a number.
  const V least = V::all(__DBL_DENORM_MIN__), most = V::all(__DBL_MAX__);
  if (!all_at_most(least, smallest)) return MapDefect::singular;
  if (!all_at_most(abs(inertia), most) || !all_at_most(abs(linear), most)) {
    return MapDefect::overflow;
  }
  return MapDefect::none;
}

template <int W>
bool are_equal(const double* values) {
  const Vec<W> all = Vec<W>::load(values), first = Vec<W>::all(*values);
  return all_at_most(all, first) && all_at_most(first, all);
}

template <int W, int kSprings, int kMasses>
MapDefect maps(MapTask& t) {
  t.shared = true;
  for (int i = 0; i < kParameterCount && t.shared; ++i) {
    t.shared = are_equal<W>(t.parameters + i * W);
  }
  for (int j = 0; j < kSprings + kMasses && t.shared; ++j) {
    t.shared = are_equal<W>(t.impedance + j * t.stride);
  }
  return t.shared ? maps_of<1, W, kSprings, kMasses>(t) : maps_of<W, W, kSprings, kMasses>(t);
}

template <int S, int M>
constexpr Kernels kernels_for() {
  return {
      scatter<kLaneGroup, S, M>,
      scatter<1, S, M>,
      [](const void* task) {
        const Task& t = *static_cast<const Task*>(task);
        return t.width == 1 ? advance<1, S, M>(t) : advance<kLaneGroup, S, M>(t);
      },
      [](const Task& t) { return t.width == 1 ? freeze<1, S, M>(t) : freeze<kLaneGroup, S, M>(t); },
      [](const Task& t, int g, double* out) {
        t.width == 1 ? energy_terms<1, S, M>(t, g, out) : energy_terms<kLaneGroup, S, M>(t, g, out);
      },
      [](MapTask& t) { return t.width == 1 ? maps<1, S, M>(t) : maps<kLaneGroup, S, M>(t); },
  };
}

}  // namespace

const Kernels kDuffingOscillator = kernels_for<1, 0>();
const Kernels kDuffingNode = kernels_for<2, 2>();

}  // namespace portwave::PORTWAVE_ISA
