#include "kernels/stroke_kernels.hpp"

#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {
namespace stroke {

constexpr int kLanes = 8;
constexpr int kChunk = 512;  ///< elements between two compensated additions

template <int W>
[[gnu::always_inline]] inline double sum_of(Vec<W> v) {
  if constexpr (W == 1) {
    return v.part;
  } else {
    double x[W];
    v.store(x);
    return ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + (x[6] + x[7]));
  }
}

/// Only the first of its lanes; the others become 0.
[[gnu::always_inline]] inline Vec<kLanes> first_of(Vec<kLanes> v, int lanes) {
  double x[kLanes];
  v.store(x);
  for (int k = 0; k < kLanes; ++k) x[k] = k < lanes ? x[k] : 0.0;
  return Vec<kLanes>::load(x);
}

/// How many of the lanes of a group are rows.
struct AllLanes {};
struct SomeLanes {
  int count;
};
template <int W>
[[gnu::always_inline]] inline void put(Vec<W> v, double* to, AllLanes) {
  v.store(to);
}
template <int W>
[[gnu::always_inline]] inline void put(Vec<W> v, double* to, SomeLanes lanes) {
  double x[W];
  v.store(x);
  for (int k = 0; k < W; ++k) {  // unrolled: no call for a few doubles
    if (k < lanes.count) to[k] = x[k];
  }
}

/// A sum that whole groups of lanes and single elements are added to.
struct Sum {
  Vec<kLanes> lanes = Vec<kLanes>::all(0.0);
  double single = 0.0;

  [[gnu::always_inline]] void add(Vec<kLanes> v) { lanes = lanes + v; }
  [[gnu::always_inline]] void add(Vec<1> v) { single += v.part; }
  template <int W>
  [[gnu::always_inline]] void add(Vec<W> v, AllLanes) {
    add(v);
  }
  [[gnu::always_inline]] void add(Vec<kLanes> v, SomeLanes some) { add(first_of(v, some.count)); }
  [[gnu::always_inline]] double value() const { return sum_of(lanes) + single; }
};

/// The terms of a run, in variables of the caller: nothing that a kernel stores can change them. T < 0: as many
/// as the run has, which are read where they are.
template <int T>
struct Terms {
  double value[T];
  int column[T];

  Terms(const StrokeRun& run, const int* columns, const double* values) {
    for (int k = 0; k < T; ++k) {
      column[k] = columns[k];
      value[k] = run.varies ? 0.0 : values[k];
    }
  }
};
template <>
struct Terms<0> {
  Terms(const StrokeRun&, const int*, const double*) {}
};
template <>
struct Terms<-1> {
  Terms(const StrokeRun&, const int*, const double*) {}
};

/// Σ over the terms of a run, for the rows from i on.
template <int W, int T, bool varies>
[[gnu::always_inline]] inline Vec<W> product(const StrokeRun& run, const Terms<T>& terms,
                                             const int* columns, const double* values,
                                             const double* x, int i, Vec<W> start) {
  if constexpr (T < 0) {
    for (int k = 0; k < run.terms; ++k) {
      const Vec<W> value =
          varies ? Vec<W>::load(values + k * run.count + i) : Vec<W>::all(values[k]);
      start = fma(value, Vec<W>::load(x + columns[k] + i), start);
    }
  } else if constexpr (T > 0) {
    for (int k = 0; k < T; ++k) {
      const Vec<W> value =
          varies ? Vec<W>::load(values + k * run.count + i) : Vec<W>::all(terms.value[k]);
      start = fma(value, Vec<W>::load(x + terms.column[k] + i), start);
    }
  }
  return start;
}

/// Calls `body` for all rows of a run, eight at a time and the rest one by one.
template <class Body>
[[gnu::always_inline]] inline void for_rows(int count, const Body& body) {
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) body.template operator()<kLanes>(i);
  for (; i < count; ++i) body.template operator()<1>(i);
}

/// The same for the rows of a run; `i` is beside the first of them.
template <class Body>
[[gnu::always_inline]] inline void for_run(const StrokeRun& run, const Body& body) {
  if (run.stride == 1) return for_rows(run.count, body);
  for (int i = 0; i < run.count; ++i) body.template operator()<1>(i * run.stride);
}

/// The same with the last rows in one group of lanes, whose other lanes are read in vain.
template <class Body>
[[gnu::always_inline]] inline void for_run(const StrokeRun& run, bool has_room, const Body& body) {
  const int count = run.count;
  if (run.stride != 1) {
    for (int i = 0; i < count; ++i) body.template operator()<1>(i * run.stride, AllLanes{});
    return;
  }
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) body.template operator()<kLanes>(i, AllLanes{});
  if (has_room && count - i > 1) {
    body.template operator()<kLanes>(i, SomeLanes{count - i});
    return;
  }
  for (; i < count; ++i) body.template operator()<1>(i, AllLanes{});
}

/// Calls `body` with the number of terms as a constant where it is small.
template <class Body>
[[gnu::always_inline]] inline void by_terms(int terms, const Body& body) {
  switch (terms) {
    case 0:
      return body.template operator()<0>();
    case 1:
      return body.template operator()<1>();
    case 2:
      return body.template operator()<2>();
    case 3:
      return body.template operator()<3>();
    case 4:
      return body.template operator()<4>();
    case 5:
      return body.template operator()<5>();
    default:
      return body.template operator()<-1>();
  }
}

template <int T, bool varies, bool damped, bool bent>
void kick_run(const KickTask& t, const StrokeRun& run) {
  const int* const columns = t.map.columns + run.first_column;
  const double* const values = t.map.values + run.first_value;
  const int width = varies ? run.count : 1;
  const double* const dampers = values + run.terms * width;
  const double* const cubic = dampers + (run.is_damped ? run.terms * width : 0);
  const Terms<T> springs(run, columns, values), losses(run, columns, damped ? dampers : values);
  const double kappa_of_all = bent && !varies ? *cubic : 0.0, tau = t.tau;
  const double* const w = t.w;
  const double *const c = t.c + run.row, *const strokes = t.strokes;
  const double *const base = t.base + run.row, *const own = t.strokes + run.row;
  double *const u = t.u + run.row, *const force = t.force != nullptr ? t.force + run.row : nullptr;
  for_run(
      run, t.has_room, [&]<int W>(int i, auto lanes) __attribute__((always_inline)) {
        Vec<W> f =
            product<W, T, varies>(run, springs, columns, values, strokes, i, Vec<W>::load(c + i));
        if constexpr (bent) {
          const Vec<W> y = Vec<W>::load(base + i) + Vec<W>::load(own + i);
          const Vec<W> kappa = varies ? Vec<W>::load(cubic + i) : Vec<W>::all(kappa_of_all);
          f = fma(negate(kappa * y), y * y, f);
        }
        Vec<W> v = Vec<W>::load(u + i);
        if constexpr (damped) {
          v = v - product<W, T, varies>(run, losses, columns, dampers, w, i, Vec<W>::all(0.0));
        }
        put(fma(Vec<W>::all(tau), f, v), u + i, lanes);
        if (force != nullptr) put(f, force + i, lanes);
      });
}

template <int T, bool varies>
void kick_by_kind(const KickTask& t, const StrokeRun& run) {
  const bool damped = run.is_damped && t.w != nullptr;
  if (damped) {
    run.is_bent ? kick_run<T, varies, true, true>(t, run)
                : kick_run<T, varies, true, false>(t, run);
  } else {
    run.is_bent ? kick_run<T, varies, false, true>(t, run)
                : kick_run<T, varies, false, false>(t, run);
  }
}

void kick(const KickTask& t) {
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    by_terms(run.terms, [&]<int T>() {
      run.varies ? kick_by_kind<T, true>(t, run) : kick_by_kind<T, false>(t, run);
    });
  }
}

template <int T, bool varies, bool bent>
void mixed_kick_run(const MixedKickTask& t, const StrokeRun& run) {
  const int* const columns = t.map.columns + run.first_column;
  const double* const values = t.map.values + run.first_value;
  const int width = varies ? run.count : 1;
  const double *const stiffness = values + run.terms * width, *const cubic = stiffness + width;
  const Terms<T> losses(run, columns, values);
  const double stiffness_of_all = *stiffness, kappa_of_all = bent ? *cubic : 0.0, tau = t.tau;
  const double *const z = t.z, *const c = t.c + run.row, *const own = t.strokes + run.row;
  const double* const base = t.base + run.row;
  double* const u = t.u + run.row;
  for_run(
      run, t.has_room, [&]<int W>(int i, auto lanes) __attribute__((always_inline)) {
        const Vec<W> y = Vec<W>::load(own + i);
        const Vec<W> r = varies ? Vec<W>::load(stiffness + i) : Vec<W>::all(stiffness_of_all);
        Vec<W> f = fma(r, y, Vec<W>::load(c + i));
        if constexpr (bent) {
          const Vec<W> at = Vec<W>::load(base + i) + y;
          const Vec<W> kappa = varies ? Vec<W>::load(cubic + i) : Vec<W>::all(kappa_of_all);
          f = fma(negate(kappa * at), at * at, f);
        }
        const Vec<W> lost =
            product<W, T, varies>(run, losses, columns, values, z, i, Vec<W>::all(0.0));
        put(fma(Vec<W>::all(tau), f, Vec<W>::load(u + i) - lost), u + i, lanes);
      });
}

void mixed_kick(const MixedKickTask& t) {
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    by_terms(run.terms, [&]<int T>() {
      if (run.is_bent) {
        run.varies ? mixed_kick_run<T, true, true>(t, run) : mixed_kick_run<T, false, true>(t, run);
      } else {
        run.varies ? mixed_kick_run<T, true, false>(t, run)
                   : mixed_kick_run<T, false, false>(t, run);
      }
    });
  }
}

template <int T, bool varies, bool even>
double stroke_run(const StrokeTask& t, const StrokeRun& run) {
  const int* const columns = t.map.columns + run.first_column;
  const double* const values = t.map.values + run.first_value;
  const Terms<T> losses(run, columns, values);
  const double tau = t.tau, half = 0.5 * t.tau * t.tau, mix = t.mix;
  const double *const all = t.u, *const own = t.u + run.row, *const mass = t.mass + run.row;
  double *const strokes = t.strokes + run.row, *const out = t.w + run.row;
  Sum lost;
  for_run(
      run, t.has_room, [&]<int W>(int i, auto lanes) __attribute__((always_inline)) {
        const Vec<W> d =
            product<W, T, varies>(run, losses, columns, values, all, i, Vec<W>::all(0.0));
        const Vec<W> part = Vec<W>::all(half) * d;
        const Vec<W> w = fma(Vec<W>::all(tau), Vec<W>::load(own + i), negate(part));
        const Vec<W> y = Vec<W>::load(strokes + i) + w;
        put(y, strokes + i, lanes);
        put(fma(Vec<W>::all(mix), y, w), out + i, lanes);
        if constexpr (even) {
          lost.add(d * (w - part), lanes);
        } else {
          lost.add(Vec<W>::load(mass + i) * (d * (w - part)), lanes);
        }
      });
  return even ? mass[0] * lost.value() : lost.value();
}

double stroke_all(const StrokeTask& t) {
  CompensatedSum lost;
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    double own = 0.0;
    by_terms(run.terms, [&]<int T>() {
      own = run.varies    ? stroke_run<T, true, false>(t, run)
            : run.is_even ? stroke_run<T, false, true>(t, run)
                          : stroke_run<T, false, false>(t, run);
    });
    lost.add(own);
  }
  return lost.value();
}

template <bool bent>
BalanceSums balance_of(const BalanceTask& t) {
  CompensatedSum change, slope, kinetic, size;
  for (int first = 0; first < t.count; first += kChunk) {
    const int count = t.count - first < kChunk ? t.count - first : kChunk;
    Sum own_change, own_slope, own_kinetic, own_size;
    for_rows(
        count, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = first + k;
          const Vec<W> m = Vec<W>::load(t.mass + i), u0 = Vec<W>::load(t.u_before + i),
                       u = Vec<W>::load(t.u + i), f0 = Vec<W>::load(t.force_before + i),
                       f = Vec<W>::load(t.force + i), y = Vec<W>::load(t.strokes + i);
          const Vec<W> moved = u - u0, half = Vec<W>::all(0.5);
          const Vec<W> gained = moved * (half * (u + u0));
          Vec<W> linear = f, quartic = Vec<W>::all(0.0);
          if constexpr (bent) {
            const Vec<W> kappa = Vec<W>::load(t.cubic + i), y0 = Vec<W>::load(t.base + i);
            const Vec<W> y1 = y0 + y;
            linear = fma(kappa * y1, y1 * y1, f);
            quartic = Vec<W>::all(0.25) * kappa * (y0 + y1) * fma(y0, y0, y1 * y1) * y;
          }
          const Vec<W> worked = half * (Vec<W>::load(t.c + i) + linear) * y - quartic;
          own_change.add(m * (gained - worked));
          own_size.add(m * (abs(gained) + abs(worked)));
          own_kinetic.add(m * (half * (u * u)));
          own_slope.add(m * fma(u, f - f0, negate(f * moved)));
        });
    change.add(own_change.value());
    slope.add(own_slope.value());
    kinetic.add(own_kinetic.value());
    size.add(own_size.value());
  }
  return {change.value(), size.value(), kinetic.value(), slope.value()};
}

BalanceSums balance(const BalanceTask& t) {
  return t.cubic != nullptr ? balance_of<true>(t) : balance_of<false>(t);
}

/// `even`: what is stored has the same coefficients in all rows.
template <int T, bool varies, bool even>
void positions_run(const PositionTask& t, const StrokeRun& run, Sum& energy, Sum& size) {
  const int* const columns = t.map.columns + run.first_column;
  const double* const values = t.map.values + run.first_value;
  const Terms<T> terms(run, columns, values);
  const double stiffness = t.stiffness[run.row];
  const double cubic = t.cubic != nullptr ? t.cubic[run.row] : 0.0;
  const double constant = t.constant != nullptr ? t.constant[run.row] : 0.0;
  const bool is_cubic = even ? cubic != 0.0 : t.cubic != nullptr;
  const bool is_shifted = even ? constant != 0.0 : t.constant != nullptr;
  for_run(
      run, [&]<int W>(int k) __attribute__((always_inline)) {
        const int i = run.row + k;
        const auto of_row = [i](double one, const double* all) __attribute__((always_inline)) {
          return even ? Vec<W>::all(one) : Vec<W>::load(all + i);
        };
        const Vec<W> q = Vec<W>::load(t.before + i);
        const Vec<W> next =
            q + product<W, T, varies>(run, terms, columns, values, t.strokes, k, Vec<W>::all(0.0));
        next.store(t.after + i);
        const Vec<W> moved = next - q, sum = next + q;
        Vec<W> mean = Vec<W>::all(0.5) * (of_row(stiffness, t.stiffness) * sum);
        if (is_cubic) {
          mean =
              fma(Vec<W>::all(0.25) * (of_row(cubic, t.cubic) * sum), fma(q, q, next * next), mean);
        }
        if (is_shifted) mean = mean + of_row(constant, t.constant);
        energy.add(mean * moved);
        size.add(abs(mean * moved));
      });
}

double positions(const PositionTask& t, double* size) {
  CompensatedSum energy, sizes;
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    Sum own, own_size;
    by_terms(run.terms, [&]<int T>() {
      if (run.is_even) {
        run.varies ? positions_run<T, true, true>(t, run, own, own_size)
                   : positions_run<T, false, true>(t, run, own, own_size);
      } else {
        run.varies ? positions_run<T, true, false>(t, run, own, own_size)
                   : positions_run<T, false, false>(t, run, own, own_size);
      }
    });
    energy.add(own.value());
    sizes.add(own_size.value());
  }
  *size = sizes.value();
  return energy.value();
}

template <bool adds>
void apply_or_add(const StrokeRuns& m, const double* x, double factor, double* out) {
  for (int r = 0; r < m.count; ++r) {
    const StrokeRun& run = m.runs[r];
    const int* const columns = m.columns + run.first_column;
    const double* const values = m.values + run.first_value;
    double* const own = out + run.row;
    by_terms(run.terms, [&]<int T>() {
      const Terms<T> terms(run, columns, values);
      const auto rows = [&]<bool varies>() {
        for_run(
            run, [&]<int W>(int i) __attribute__((always_inline)) {
              const Vec<W> y =
                  product<W, T, varies>(run, terms, columns, values, x, i, Vec<W>::all(0.0));
              if constexpr (adds) {
                fma(Vec<W>::all(factor), y, Vec<W>::load(own + i)).store(own + i);
              } else {
                y.store(own + i);
              }
            });
      };
      run.varies ? rows.template operator()<true>() : rows.template operator()<false>();
    });
  }
}

void apply(const StrokeRuns& m, const double* x, double* out) {
  apply_or_add<false>(m, x, 1.0, out);
}
void add(const StrokeRuns& m, const double* x, double factor, double* out) {
  apply_or_add<true>(m, x, factor, out);
}

void axpy(int count, double factor, const double* x, double* y) {
  for_rows(
      count, [&]<int W>(int i) __attribute__((always_inline)) {
        fma(Vec<W>::all(factor), Vec<W>::load(x + i), Vec<W>::load(y + i)).store(y + i);
      });
}

template <bool first>
void move_rows(const MoveTask& t) {
  for_rows(
      t.count, [&]<int W>(int i) __attribute__((always_inline)) {
        const Vec<W> u = Vec<W>::load(t.u + i), step = Vec<W>::all(t.step);
        Vec<W> moved;
        if constexpr (first) {
          moved = u - Vec<W>::load(t.u_before + i);
          moved.store(t.moved + i);
        } else {
          moved = Vec<W>::load(t.moved + i);
        }
        fma(step, Vec<W>::load(t.force + i) - Vec<W>::load(t.force_before + i), u).store(t.u + i);
        fma(step, moved, Vec<W>::load(t.strokes + i)).store(t.strokes + i);
      });
}

void move(const MoveTask& t) { t.u_before != nullptr ? move_rows<true>(t) : move_rows<false>(t); }

double kinetic(int count, const double* m, const double* a, const double* b, double* size) {
  CompensatedSum energy, sizes;
  for (int first = 0; first < count; first += kChunk) {
    const int rows = count - first < kChunk ? count - first : kChunk;
    Sum own, own_size;
    for_rows(
        rows, [&]<int W>(int k) __attribute__((always_inline)) {
          const Vec<W> u0 = Vec<W>::load(a + first + k), u = Vec<W>::load(b + first + k);
          const Vec<W> gained =
              Vec<W>::load(m + first + k) * ((u - u0) * (Vec<W>::all(0.5) * (u + u0)));
          own.add(gained);
          own_size.add(abs(gained));
        });
    energy.add(own.value());
    sizes.add(own_size.value());
  }
  *size = sizes.value();
  return energy.value();
}

/// `shared`: the same damper and mass in all rows.
template <bool shared, bool keeps_w>
double decay_rows(const DecayTask& t) {
  CompensatedSum sum;
  const double psi = shared ? t.psi[t.first] : 0.0, factor = shared ? t.factor[t.first] : 0.0;
  for (int start = t.first; start < t.last; start += kChunk) {
    const int rows = t.last - start < kChunk ? t.last - start : kChunk;
    double *const u = t.u + start, *const strokes = t.strokes + start;
    Sum own;
    for_rows(
        rows, [&]<int W>(int k) __attribute__((always_inline)) {
          const Vec<W> v = Vec<W>::load(u + k);
          const Vec<W> moved = (shared ? Vec<W>::all(psi) : Vec<W>::load(t.psi + start + k)) * v;
          if constexpr (keeps_w) moved.store(t.w + start + k);
          (Vec<W>::load(strokes + k) + moved).store(strokes + k);
          ((shared ? Vec<W>::all(factor) : Vec<W>::load(t.factor + start + k)) * v).store(u + k);
          if constexpr (shared) {
            own.add(v * v);
          } else {
            own.add(Vec<W>::load(t.lost + start + k) * (v * v));
          }
        });
    sum.add(own.value());
  }
  return shared ? t.lost[t.first] * sum.value() : sum.value();
}

double decay(const DecayTask& t) {
  if (t.is_uniform) return t.w != nullptr ? decay_rows<true, true>(t) : decay_rows<true, false>(t);
  return t.w != nullptr ? decay_rows<false, true>(t) : decay_rows<false, false>(t);
}

double lumped(const LumpedTask& t) {
  CompensatedSum sum;
  const double tau = t.tau, half = 0.5 * t.tau * t.tau;
  const double sixth = t.lump / 6.0, energy = 2.0 / 3.0 * t.lump;
  for (int start = t.first; start < t.last; start += kChunk) {
    const int rows = t.last - start < kChunk ? t.last - start : kChunk;
    Sum own;
    for_rows(
        rows, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = start + k;
          const Vec<W> y = Vec<W>::load(t.once + i), z = Vec<W>::load(t.twice + i);
          const Vec<W> part = Vec<W>::all(half) * y;
          const Vec<W> w = fma(Vec<W>::all(tau), Vec<W>::load(t.u + i), negate(part));
          own.add(Vec<W>::load(t.mass + i) * (y * fma(Vec<W>::all(energy), z, w - part)));
          const Vec<W> moved = fma(Vec<W>::all(sixth), z, w);
          const Vec<W> strokes = Vec<W>::load(t.strokes + i) + moved;
          strokes.store(t.strokes + i);
          fma(Vec<W>::all(t.mix), strokes, moved).store(t.w + i);
        });
    sum.add(own.value());
  }
  return sum.value();
}

void relax(const RelaxTask& t) {
  for_rows(
      t.count, [&]<int W>(int i) __attribute__((always_inline)) {
        const Vec<W> q = Vec<W>::load(t.start + i) + Vec<W>::load(t.increments + i);
        q.store(t.before + i);
        (Vec<W>::load(t.kept + i) * q).store(t.after + i);
      });
}

double relaxed(const RelaxedTask& t) {
  CompensatedSum sum;
  for (int start = 0; start < t.count; start += kChunk) {
    const int rows = t.count - start < kChunk ? t.count - start : kChunk;
    Sum own;
    for_rows(
        rows, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = start + k;
          const Vec<W> a = Vec<W>::load(t.before + i), b = Vec<W>::load(t.after + i);
          const Vec<W> mixed =
              fma(Vec<W>::load(t.energy_11 + i), b, Vec<W>::load(t.energy_01 + i) * a);
          own.add(fma(Vec<W>::load(t.energy_00 + i) * a, a, mixed * b));
          (Vec<W>::load(t.increments + i) + (b - a)).store(t.increments + i);
        });
    sum.add(own.value());
  }
  return sum.value();
}

}  // namespace stroke
}  // namespace

extern const StrokeKernels kStrokeKernels;
const StrokeKernels kStrokeKernels = {
    stroke::kick,  stroke::mixed_kick, stroke::stroke_all, stroke::balance, stroke::positions,
    stroke::apply, stroke::add,        stroke::axpy,       stroke::move,    stroke::kinetic,
    stroke::decay, stroke::lumped,     stroke::relax,      stroke::relaxed};

}  // namespace portwave::PORTWAVE_ISA
