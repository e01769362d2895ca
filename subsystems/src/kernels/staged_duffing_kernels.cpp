#include "kernels/staged_duffing_kernels.hpp"

#include "kernels/staged_duffing_root.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

template <int W, bool kShared, int kSprings, int kMasses, int kStages>
struct StagedLanes {
  static constexpr int kPorts = kSprings + kMasses;
  static constexpr int kNodes = 2 * kStages;
  using S = staged_duffing::Slots<kSprings, kMasses, kStages>;
  using Group = staged_duffing::Group;
  using Task = staged_duffing::Task;
  using Root = StagedRoot<W, kStages>;
  using V = Vec<W>;

  static V scatter_of(const Group& g, int i) { return coefficient<W, kShared>(g.scatter, i); }
  static V step_of(const Group& g, int i) { return coefficient<W, kShared>(g.step, i); }
  static V spring_of(const Group& g, int spring, int map, int i, int j) {
    return scatter_of(g, staged_duffing::spring_at(kStages, spring, map, i, j));
  }
  static V mass_of(const Group& g, int mass, int map, int i) {
    return scatter_of(g, staged_duffing::mass_at(kStages, kSprings, mass, map, i));
  }
  static V row_of(const Group& g, int spring, int row, int i) {
    return step_of(g, staged_duffing::spring_row_at(kStages, spring, row, i));
  }
  static double* wave(double* waves, const Task& t, long g, int stage, int port) {
    return waves + (stage * kPorts + port) * t.stride + g * W;
  }
  static const double* wave(const double* waves, const Task& t, long g, int stage, int port) {
    return waves + (stage * kPorts + port) * t.stride + g * W;
  }

  [[gnu::always_inline]] static Root root_of(const Task& t, const Group& group,
                                             const double* record) {
    Root root{*t.rule, scatter_of(group, staged_duffing::kCubic), {}, {}, {}, {}, {}};
    for (int i = 0; i < kStages * kStages; ++i) root.L[i] = scatter_of(group, 1 + i);
    for (int k = 0; k < kNodes; ++k) root.p[k] = V::load(record + (S::kNodes + k) * W);
    return root;
  }

  /// b for the increment that a solves for. Returns the first lane that failed, or W.
  [[gnu::always_inline]] static int scatter(const Task& t, long g, V* d) {
    const Group& group = t.groups[g];
    double* const record = t.record + g * S::kSize * W;
    V r[kStages];
    for (int i = 0; i < kStages; ++i) r[i] = V::all(0.0);
    for (int j = 0; j < kSprings; ++j) {
      for (int m = 0; m < kStages; ++m) {
        const V a = V::load(wave(t.a, t, g, m, j));
        for (int i = 0; i < kStages; ++i) {
          r[i] = fma(spring_of(group, j, staged_duffing::kDrive, i, m), a, r[i]);
        }
      }
    }
    for (int j = 0; j < kMasses; ++j) {
      for (int i = 0; i < kStages; ++i) {
        const V a = V::load(wave(t.a, t, g, i, kSprings + j));
        r[i] = fma(mass_of(group, j, staged_duffing::kMassDrive, i), a, r[i]);
      }
    }
    Root root = root_of(t, group, record);
    for (int i = 0; i < kStages; ++i) {
      root.d[i] = V::load(record + (S::kWarm + i) * W);
      root.R[i] = V::load(record + (S::kWarmDrive + i) * W) - r[i];
    }
    for (int i = 0; i < kStages * kStages; ++i) {
      root.inverse[i] = V::load(record + (S::kInverse + i) * W);
    }
    for (int k = 0; k < kNodes; ++k) root.p[k] = root.p[k] + root.moved(k, root.d);
    V open;
    root.solve(open);
    int failed = W;
    if (!all_at_most(open, V::all(0.0))) {
      Lost lost;
      open.store(lost.is_open);
      for (int i = 0; i < kStages; ++i) r[i].store(lost.drive[i]);
      for (int i = 0; i < kStages; ++i) root.d[i].store(lost.d[i]);
      for (int i = 0; i < kStages * kStages; ++i) root.inverse[i].store(lost.inverse[i]);
      failed = rescue(t, g, lost);
      for (int i = 0; i < kStages; ++i) root.d[i] = V::load(lost.d[i]);
      for (int i = 0; i < kStages * kStages; ++i) root.inverse[i] = V::load(lost.inverse[i]);
    }
    for (int i = 0; i < kStages; ++i) {
      d[i] = root.d[i];
      d[i].store(record + (S::kWarm + i) * W);
      r[i].store(record + (S::kWarmDrive + i) * W);
    }
    for (int i = 0; i < kStages * kStages; ++i) {
      root.inverse[i].store(record + (S::kInverse + i) * W);
    }
    send(t, g, d);
    return failed;
  }

  /// b = (a − Ta − b⁰) − W d.
  [[gnu::always_inline]] static void send(const Task& t, long g, const V* d) {
    const Group& group = t.groups[g];
    const double* const record = t.record + g * S::kSize * W;
    for (int i = 0; i < kStages; ++i) {
      for (int j = 0; j < kSprings; ++j) {
        V b = V::load(wave(t.a, t, g, i, j)) - V::load(record + (S::kOffset + i * kPorts + j) * W);
        for (int m = 0; m < kStages; ++m) {
          b = fma(negate(spring_of(group, j, staged_duffing::kThrough, i, m)),
                  V::load(wave(t.a, t, g, m, j)), b);
        }
        for (int m = 0; m < kStages; ++m) {
          b = fma(negate(spring_of(group, j, staged_duffing::kWave, i, m)), d[m], b);
        }
        b.store(wave(t.b, t, g, i, j));
      }
      for (int j = 0; j < kMasses; ++j) {
        const V rest = V::load(wave(t.a, t, g, i, kSprings + j)) -
                       V::load(record + (S::kOffset + i * kPorts + kSprings + j) * W);
        fma(negate(mass_of(group, j, staged_duffing::kMassWave, i)), d[i], rest)
            .store(wave(t.b, t, g, i, kSprings + j));
      }
    }
  }

  /// Lanes that the plain iteration has not solved, among those that it has.
  struct Lost {
    double is_open[W];
    double drive[kStages][W];
    double d[kStages][W];
    double inverse[kStages * kStages][W];
  };

  /// Solves them one by one. Returns the first that has no solution, or W.
  [[gnu::noinline]] static int rescue(const Task& t, long g, Lost& lost) {
    const Group& group = t.groups[g];
    const double* const record = t.record + g * S::kSize * W;
    int failed = W;
    for (int l = 0; l < W; ++l) {
      if (lost.is_open[l] <= 0.0) continue;
      const auto of_lane = [&](int i) { return Vec<1>{group.scatter[kShared ? i : i * W + l]}; };
      StagedRoot<1, kStages> own{*t.rule, of_lane(staged_duffing::kCubic), {}, {}, {}, {}, {}};
      for (int i = 0; i < kStages * kStages; ++i) own.L[i] = of_lane(1 + i);
      for (int k = 0; k < kNodes; ++k) own.p[k] = {record[(S::kNodes + k) * W + l]};
      for (int i = 0; i < kStages; ++i) {
        own.d[i] = Vec<1>::all(0.0);
        own.R[i] = {record[(S::kConstant + i) * W + l] - lost.drive[i][l]};
      }
      if (!solve_damped(own) && failed == W) failed = l;
      for (int i = 0; i < kStages; ++i) lost.d[i][l] = own.d[i].part;
      for (int i = 0; i < kStages * kStages; ++i) lost.inverse[i][l] = own.inverse[i].part;
    }
    return failed;
  }

  /// The equations at the state in the record, around a velocity w₀ that all stages share: v, whose
  /// distance from the stages is of the order of h; where the spring outweighs the inertia (h far
  /// beyond the period) v is the larger, and w₀ = 0.
  [[gnu::always_inline]] static void freeze(const Task& t, const Group& group, double* record) {
    const Rule& rule = *t.rule;
    const double* const state = record + S::kState * W;
    const V q = V::load(state), v = V::load(state + W);
    const V h = step_of(group, staged_duffing::kStep);
    const V k1 = step_of(group, staged_duffing::kStiffness);
    const V k3 = step_of(group, staged_duffing::kCubicStiffness);
    const V inertia = step_of(group, staged_duffing::kInertia), zero = V::all(0.0);
    const V reach = h * v;
    const V bent = fma(V::all(0.25) * reach, reach, fma(V::all(1.5) * q, q, q * reach));
    const V pull = abs(fma(k3 * h, bent, step_of(group, staged_duffing::kPull)));
    const V base = where_at_most(pull, inertia, v, zero);
    const V path = h * base;
    base.store(record + S::kBase * W);

    // k₁X + k₃X³ at the stages, as that of q and what is added to it.
    Root root = root_of(t, group, record);
    V cubic[kStages];
    for (int k = 0; k < kNodes; ++k) {
      const V moved = V::all(rule.node[k]) * path;
      const V change = moved * fma(moved, fma(V::all(3.0), q, moved), V::all(3.0) * q * q);
      root.p[k] = q + moved;
      root.p[k].store(record + (S::kNodes + k) * W);
      for (int i = 0; i < kStages; ++i) {
        cubic[i] = k == 0 ? V::all(rule.weight[i][k]) * change
                          : fma(V::all(rule.weight[i][k]), change, cubic[i]);
      }
    }
    const V held = fma(k3 * q, q, k1) * q;
    const V stopped = V::all(0.5) * inertia * (base - v);
    for (int i = 0; i < kStages; ++i) {
      V force = fma(k3, cubic[i], k1 * (V::all(rule.c[i]) * path));
      force = fma(step_of(group, staged_duffing::drag_at(i)), base, force);
      force = fma(V::all(rule.inverse_sum[i]), stopped, force) + held;
      for (int j = 0; j < kSprings; ++j) {
        const V delta = V::load(state + (2 + j) * W);
        force = fma(negate(row_of(group, j, staged_duffing::kElongationForce, i)), delta, force);
        fma(row_of(group, j, staged_duffing::kWavePerVelocity, i), base,
            negate(row_of(group, j, staged_duffing::kWavePerElongation, i) * delta))
            .store(record + (S::kOffset + i * kPorts + j) * W);
      }
      for (int j = 0; j < kMasses; ++j) {
        negate(step_of(group, staged_duffing::of_mass_at(kStages, kSprings, j, i)) * base)
            .store(record + (S::kOffset + i * kPorts + kSprings + j) * W);
      }
      const V driven = V::load(record + (S::kForce + i) * W) / V::all(rule.root_b[i]);
      (force - driven).store(record + (S::kConstant + i) * W);
    }
    root.invert(root.inverse);
    for (int i = 0; i < kStages * kStages; ++i) {
      root.inverse[i].store(record + (S::kColdInverse + i) * W);
    }
    forget(record);
  }

  /// The warm start of a lane that has not been solved yet.
  [[gnu::always_inline]] static void forget(double* record) {
    for (int i = 0; i < kStages; ++i) {
      V::all(0.0).store(record + (S::kWarm + i) * W);
      V::load(record + (S::kConstant + i) * W).store(record + (S::kWarmDrive + i) * W);
    }
    for (int i = 0; i < kStages * kStages; ++i) {
      V::load(record + (S::kColdInverse + i) * W).store(record + (S::kInverse + i) * W);
    }
  }

  /// The rate of a spring port's elongation at a stage.
  [[gnu::always_inline]] static V slip_of(const Task& t, const Group& group, long g, int spring,
                                          int stage, V delta, V base, const V (&d)[kStages]) {
    V slip = negate(fma(row_of(group, spring, staged_duffing::kSlipPerElongation, stage), delta,
                        row_of(group, spring, staged_duffing::kSlipPerVelocity, stage) * base));
    for (int m = 0; m < kStages; ++m) {
      const auto map = [&](int which) {
        return step_of(group, staged_duffing::slip_at(kStages, spring, which, stage, m));
      };
      slip = fma(map(staged_duffing::kSlipPerWave), V::load(wave(t.a, t, g, m, spring)), slip);
      slip = fma(negate(map(staged_duffing::kSlipPerIncrement)), d[m], slip);
    }
    return slip;
  }

  /// √bᵢ h ẋᵢ, states q, v and the elongations: h q̇ = h w, h v̇ = A⁻¹(w − v), h δ̇.
  static void increments(const Task& t, long g, double* out) {
    const Group& group = t.groups[g];
    const Rule& rule = *t.rule;
    const double* const record = t.record + g * S::kSize * W;
    const double* const state = record + S::kState * W;
    const V base = V::load(record + S::kBase * W), v = V::load(state + W);
    const V h = step_of(group, staged_duffing::kStep);
    const V per_step = step_of(group, staged_duffing::kPerStep);
    constexpr int kStates = 2 + kSprings;
    V d[kStages], gained[kStages];
    for (int i = 0; i < kStages; ++i) {
      d[i] = V::load(record + (S::kWarm + i) * W);
      gained[i] = fma(per_step, d[i], base - v);
    }
    for (int i = 0; i < kStages; ++i) {
      const V root_b = V::all(rule.root_b[i]);
      const auto store = [&](int row, V value) {
        (root_b * value).store(out + (i * kStates + row) * t.stride + g * W);
      };
      store(0, fma(h, base, d[i]));
      V pushed = V::all(0.0);
      for (int j = 0; j < kStages; ++j) pushed = fma(V::all(rule.inverse[i][j]), gained[j], pushed);
      store(1, pushed);
      for (int j = 0; j < kSprings; ++j) {
        store(2 + j, h * slip_of(t, group, g, j, i, V::load(state + (2 + j) * W), base, d));
      }
    }
  }

  static int advance(const Task& t, long g) {
    const Group& group = t.groups[g];
    const Rule& rule = *t.rule;
    double* const record = t.record + g * S::kSize * W;
    // From a cold start, so that what is committed depends on (xⁿ, ū, a) and on no earlier solve.
    forget(record);
    V d[kStages];
    const int failed = scatter(t, g, d);
    double* const next = t.next + g * S::kSize * W;
    const double* const state = record + S::kState * W;
    double* const state_next = next + S::kState * W;
    const V q = V::load(state), v = V::load(state + W);
    const V base = V::load(record + S::kBase * W);
    const V h = step_of(group, staged_duffing::kStep);
    const V per_step = step_of(group, staged_duffing::kPerStep);
    const V zero = V::all(0.0), half = V::all(0.5);
    V path = zero, rate = zero, worn = zero, supplied = zero;
    for (int i = 0; i < kStages; ++i) {
      const V w = fma(per_step, d[i], base);
      path = fma(V::all(rule.b[i]), d[i], path);
      rate = fma(V::all(rule.final_rate[i]), d[i], rate);
      worn = fma(V::all(rule.b[i]) * w, w, worn);
      const V force = V::load(record + (S::kForce + i) * W);
      supplied = fma(V::all(rule.root_b[i]) * force, w, supplied);
    }
    const V q_next = q + fma(h, base, path);
    const V v_next = v + fma(V::all(rule.final_rate_sum), base - v, per_step * rate);
    q_next.store(state_next);
    v_next.store(state_next + W);
    V check = (q_next + v_next) * zero;
    V elastic = zero;  // its change, twice
    V lost = step_of(group, staged_duffing::kDamping) * worn;
    for (int j = 0; j < kSprings; ++j) {
      const auto own = [&](int i) {
        return step_of(group, staged_duffing::of_spring_at(kStages, j, i));
      };
      const V delta = V::load(state + (2 + j) * W);
      V stretch = zero, rubbed = zero;
      for (int i = 0; i < kStages; ++i) {
        const V slip = slip_of(t, group, g, j, i, delta, base, d);
        stretch = fma(V::all(rule.b[i]), slip, stretch);
        rubbed = fma(V::all(rule.b[i]) * slip, slip, rubbed);
      }
      const V delta_next = fma(h, stretch, delta);
      delta_next.store(state_next + (2 + j) * W);
      check = fma(delta_next, zero, check);
      elastic = fma(own(staged_duffing::kCouplingStiffness) * (delta_next + delta),
                    delta_next - delta, elastic);
      lost = fma(own(staged_duffing::kCouplingDamping), rubbed, lost);
    }
    for (int i = 0; i < kStages; ++i) {
      for (int j = 0; j < kPorts; ++j) {
        check = fma(V::load(wave(t.b, t, g, i, j)), zero, check);
      }
    }
    if (t.energy.wanted()) {
      // Each difference of energies as a product of increments.
      const V squares = (q_next + q) * (q_next - q);
      const V stiffness =
          fma(half * step_of(group, staged_duffing::kCubicStiffness), fma(q_next, q_next, q * q),
              step_of(group, staged_duffing::kStiffness));
      const V kinetic = step_of(group, staged_duffing::kMass) * (v_next + v);
      const V change = half * fma(kinetic, v_next - v, fma(stiffness, squares, elastic));
      change.store(t.energy.change_J + g * W);
      (h * lost).store(t.energy.dissipated_J + g * W);
      (h * supplied).store(t.energy.external_supply_J + g * W);
    }
    for (int i = 0; i < kStages; ++i) zero.store(next + (S::kForce + i) * W);
    freeze(t, group, next);
    if (failed < W) return failed;
    return all_at_most(check, zero) ? W : first_above(check, zero);
  }
};

template <int W, int kSprings, int kMasses, int kStages, class Act>
int for_staged_groups(const staged_duffing::Task& t, const Act& act) {
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane = t.groups[g].shared
                         ? act(StagedLanes<W, true, kSprings, kMasses, kStages>{}, g)
                         : act(StagedLanes<W, false, kSprings, kMasses, kStages>{}, g);
    if (lane < W && bad < 0) bad = static_cast<int>(g) * W + lane;
  }
  return bad;
}

template <int W, int kSprings, int kMasses, int kStages>
int staged_scatter(const void* task) {
  const auto& t = *static_cast<const staged_duffing::Task*>(task);
  return for_staged_groups<W, kSprings, kMasses, kStages>(t, [&](auto lanes, long g) {
    Vec<W> d[kStages];
    return decltype(lanes)::scatter(t, g, d);
  });
}

template <int W, int kSprings, int kMasses, int kStages>
int staged_advance(const staged_duffing::Task& t) {
  return for_staged_groups<W, kSprings, kMasses, kStages>(
      t, [&](auto lanes, long g) { return decltype(lanes)::advance(t, g); });
}

template <int W, int kSprings, int kMasses, int kStages>
int staged_freeze(const staged_duffing::Task& t) {
  return for_staged_groups<W, kSprings, kMasses, kStages>(t, [&](auto lanes, long g) {
    using L = decltype(lanes);
    L::freeze(t, t.groups[g], t.record + g * L::S::kSize * W);
    return W;
  });
}

template <int W, int kSprings, int kMasses, int kStages>
void staged_increments(const staged_duffing::Task& t, double* out) {
  for_staged_groups<W, kSprings, kMasses, kStages>(t, [&](auto lanes, long g) {
    decltype(lanes)::increments(t, g, out);
    return W;
  });
}

template <int S, int M, int kStages>
constexpr staged_duffing::Kernels staged_kernels_for() {
  using Slots = staged_duffing::Slots<S, M, kStages>;
  using staged_duffing::Task;
  return {
      S,
      M,
      kStages,
      Slots::kSize,
      Slots::kState,
      Slots::kForce,
      staged_scatter<kLaneGroup, S, M, kStages>,
      staged_scatter<1, S, M, kStages>,
      [](const void* task) {
        const Task& t = *static_cast<const Task*>(task);
        return t.width == 1 ? staged_advance<1, S, M, kStages>(t)
                            : staged_advance<kLaneGroup, S, M, kStages>(t);
      },
      [](const Task& t) {
        return t.width == 1 ? staged_freeze<1, S, M, kStages>(t)
                            : staged_freeze<kLaneGroup, S, M, kStages>(t);
      },
      [](const Task& t, double* out) {
        t.width == 1 ? staged_increments<1, S, M, kStages>(t, out)
                     : staged_increments<kLaneGroup, S, M, kStages>(t, out);
      },
  };
}

}  // namespace

const staged_duffing::Kernels kStagedDuffing[staged_duffing::kKinds] = {
    staged_kernels_for<1, 0, 2>(), staged_kernels_for<1, 0, 3>(), staged_kernels_for<2, 2, 2>(),
    staged_kernels_for<2, 2, 3>()};

}  // namespace portwave::PORTWAVE_ISA
