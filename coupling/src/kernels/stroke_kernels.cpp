#include "kernels/stroke_kernels.hpp"

#include "kernels/stroke_rows.hpp"
#include "kernels/stroke_series.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {
namespace stroke {

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

template <int T, bool slides, bool damped, bool bent>
void kick_segments(const KickTask& t, const StrokeRun& run) {
  const int* const columns = t.map.columns + run.first_column;
  const Terms<T> places(run, columns, t.map.values);
  SegmentTerms<T> springs, losses;
  Vec<kLanes> kappa;
  const Vec<kLanes> tau = Vec<kLanes>::all(t.tau);
  const double *const c = t.c + run.row, *const base = t.base + run.row;
  const double* const own = t.strokes + run.row;
  double *const u = t.u + run.row, *const force = t.force != nullptr ? t.force + run.row : nullptr;
  Window<slides> strokes(t.strokes, run.row), w(damped ? t.w : t.strokes, run.row);
  for_segments(
      t.map, run,
      [&](const double* values) __attribute__((always_inline)) {
        springs.read(values);
        if constexpr (damped) losses.read(values + T * kLanes);
        if constexpr (bent) {
          kappa = Vec<kLanes>::load(values + (run.is_damped ? 2 : 1) * T * kLanes);
        }
      },
      [&](int i) __attribute__((always_inline)) {
        strokes.move_to(run.row + i);
        Vec<kLanes> f = product<T>(springs, places, strokes, i, Vec<kLanes>::load(c + i));
        if constexpr (bent) {
          const Vec<kLanes> y = Vec<kLanes>::load(base + i) + Vec<kLanes>::load(own + i);
          f = fma(negate(kappa * y), y * y, f);
        }
        Vec<kLanes> v = Vec<kLanes>::load(u + i);
        if constexpr (damped) {
          w.move_to(run.row + i);
          v = v - product<T>(losses, places, w, i, Vec<kLanes>::all(0.0));
        }
        fma(tau, f, v).store(u + i);
        if (force != nullptr) f.store(force + i);
      });
}

template <int T, bool slides>
void kick_segments_by_kind(const KickTask& t, const StrokeRun& run) {
  if (run.is_damped && t.w != nullptr) {
    run.is_bent ? kick_segments<T, slides, true, true>(t, run)
                : kick_segments<T, slides, true, false>(t, run);
  } else {
    run.is_bent ? kick_segments<T, slides, false, true>(t, run)
                : kick_segments<T, slides, false, false>(t, run);
  }
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
    if (run.segments > 0) {
      by_segment_terms(run,
                       [&]<int T, bool slides>() { kick_segments_by_kind<T, slides>(t, run); });
      continue;
    }
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

template <int T, bool slides, bool bent>
void mixed_kick_segments(const MixedKickTask& t, const StrokeRun& run) {
  const Terms<T> places(run, t.map.columns + run.first_column, t.map.values);
  SegmentTerms<T> losses;
  Vec<kLanes> stiffness, kappa;
  const Vec<kLanes> tau = Vec<kLanes>::all(t.tau);
  const double *const c = t.c + run.row, *const own = t.strokes + run.row;
  const double* const base = t.base + run.row;
  double* const u = t.u + run.row;
  Window<slides> z(t.z, run.row);
  for_segments(
      t.map, run,
      [&](const double* values) __attribute__((always_inline)) {
        losses.read(values);
        stiffness = Vec<kLanes>::load(values + T * kLanes);
        if constexpr (bent) kappa = Vec<kLanes>::load(values + (T + 1) * kLanes);
      },
      [&](int i) __attribute__((always_inline)) {
        const Vec<kLanes> y = Vec<kLanes>::load(own + i);
        Vec<kLanes> f = fma(stiffness, y, Vec<kLanes>::load(c + i));
        if constexpr (bent) {
          const Vec<kLanes> at = Vec<kLanes>::load(base + i) + y;
          f = fma(negate(kappa * at), at * at, f);
        }
        z.move_to(run.row + i);
        const Vec<kLanes> lost = product<T>(losses, places, z, i, Vec<kLanes>::all(0.0));
        fma(tau, f, Vec<kLanes>::load(u + i) - lost).store(u + i);
      });
}

void mixed_kick(const MixedKickTask& t) {
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    if (run.segments > 0) {
      by_segment_terms(run, [&]<int T, bool slides>() {
        run.is_bent ? mixed_kick_segments<T, slides, true>(t, run)
                    : mixed_kick_segments<T, slides, false>(t, run);
      });
      continue;
    }
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

template <int T, bool slides, bool even>
double stroke_segments(const StrokeTask& t, const StrokeRun& run) {
  const Terms<T> places(run, t.map.columns + run.first_column, t.map.values);
  SegmentTerms<T> losses;
  const Vec<kLanes> tau = Vec<kLanes>::all(t.tau), half = Vec<kLanes>::all(0.5 * t.tau * t.tau),
                    mix = Vec<kLanes>::all(t.mix);
  const double *const own = t.u + run.row, *const mass = t.mass + run.row;
  double *const strokes = t.strokes + run.row, *const out = t.w + run.row;
  Window<slides> u(t.u, run.row);
  Vec<kLanes> lost = Vec<kLanes>::all(0.0);
  for_segments(
      t.map, run, [&](const double* values) __attribute__((always_inline)) { losses.read(values); },
      [&](int i) __attribute__((always_inline)) {
        u.move_to(run.row + i);
        const Vec<kLanes> d = product<T>(losses, places, u, i, Vec<kLanes>::all(0.0));
        const Vec<kLanes> part = half * d;
        const Vec<kLanes> w = fma(tau, Vec<kLanes>::load(own + i), negate(part));
        const Vec<kLanes> y = Vec<kLanes>::load(strokes + i) + w;
        y.store(strokes + i);
        fma(mix, y, w).store(out + i);
        const Vec<kLanes> more = d * (w - part);
        lost = lost + (even ? more : Vec<kLanes>::load(mass + i) * more);
      });
  return even ? mass[0] * sum_of(lost) : sum_of(lost);
}

double stroke_all(const StrokeTask& t) {
  CompensatedSum lost;
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    double own = 0.0;
    if (run.segments > 0) {
      by_segment_terms(run, [&]<int T, bool slides>() {
        own = run.is_even ? stroke_segments<T, slides, true>(t, run)
                          : stroke_segments<T, slides, false>(t, run);
      });
      lost.add(own);
      continue;
    }
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
  CompensatedSum change, slope, of_momenta, kinetic, size;
  for (int first = 0; first < t.count; first += kChunk) {
    const int count = t.count - first < kChunk ? t.count - first : kChunk;
    Sum own_change, own_slope, own_of_momenta, own_kinetic, own_size;
    for_rows(
        count, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = first + k;
          const Vec<W> m = Vec<W>::load(t.mass + i), u0 = Vec<W>::load(t.u_before + i),
                       u = Vec<W>::load(t.u + i), f0 = Vec<W>::load(t.force_before + i),
                       f = Vec<W>::load(t.force + i), y = Vec<W>::load(t.strokes + i);
          const Vec<W> moved = u - u0, half = Vec<W>::all(0.5);
          moved.store(t.moved + i);
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
          own_of_momenta.add(m * (u * (f - f0)));
        });
    change.add(own_change.value());
    slope.add(own_slope.value());
    of_momenta.add(own_of_momenta.value());
    kinetic.add(own_kinetic.value());
    size.add(own_size.value());
  }
  return {change.value(), size.value(), kinetic.value(), slope.value(), of_momenta.value()};
}

BalanceSums balance(const BalanceTask& t) {
  return t.cubic != nullptr ? balance_of<true>(t) : balance_of<false>(t);
}

BendSums bend(const BendTask& t) {
  CompensatedSum second, third, fourth;
  for (int first = 0; first < t.count; first += kChunk) {
    const int count = t.count - first < kChunk ? t.count - first : kChunk;
    Sum own_second, own_third, own_fourth;
    for_rows(
        count, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = first + k;
          const Vec<W> m = Vec<W>::load(t.mass + i), d = Vec<W>::load(t.moved + i);
          const Vec<W> f = Vec<W>::load(t.force + i) - Vec<W>::load(t.force_before + i);
          const Vec<W> pulled = fma(negate(d), Vec<W>::load(t.pull + i), f * f);
          own_second.add(Vec<W>::all(0.5) * m * pulled);
          if (t.cubic == nullptr) return;
          const Vec<W> kappa = m * Vec<W>::load(t.cubic + i), square = d * d;
          const Vec<W> y = Vec<W>::load(t.base + i) + Vec<W>::load(t.strokes + i);
          own_second.add(Vec<W>::all(1.5) * kappa * (y * y) * square);
          own_third.add(kappa * y * d * square);
          own_fourth.add(Vec<W>::all(0.25) * kappa * (square * square));
        });
    second.add(own_second.value());
    third.add(own_third.value());
    fourth.add(own_fourth.value());
  }
  return {second.value(), third.value(), fourth.value()};
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
    const auto put_rows = [&]<int W>(Vec<W> y, int i) __attribute__((always_inline)) {
      if constexpr (adds) {
        fma(Vec<W>::all(factor), y, Vec<W>::load(own + i)).store(own + i);
      } else {
        y.store(own + i);
      }
    };
    if (run.segments > 0) {
      by_segment_terms(run, [&]<int T, bool slides>() {
        const Terms<T> places(run, columns, values);
        SegmentTerms<T> terms;
        Window<slides> window(x, run.row);
        for_segments(
            m, run,
            [&](const double* own_values)
                __attribute__((always_inline)) { terms.read(own_values); },
            [&](int i) __attribute__((always_inline)) {
              window.move_to(run.row + i);
              put_rows(product<T>(terms, places, window, i, Vec<kLanes>::all(0.0)), i);
            });
      });
      continue;
    }
    by_terms(run.terms, [&]<int T>() {
      const Terms<T> terms(run, columns, values);
      const auto rows = [&]<bool varies>() {
        for_run(
            run, [&]<int W>(int i) __attribute__((always_inline)) {
              const Vec<W> y =
                  product<W, T, varies>(run, terms, columns, values, x, i, Vec<W>::all(0.0));
              put_rows(y, i);
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

void move(const MoveTask& t) {
  for_rows(
      t.count, [&]<int W>(int i) __attribute__((always_inline)) {
        const Vec<W> step = Vec<W>::all(t.step);
        const Vec<W> bend = Vec<W>::load(t.force + i) - Vec<W>::load(t.force_before + i);
        fma(step, bend, Vec<W>::load(t.u + i)).store(t.u + i);
        fma(step, Vec<W>::load(t.moved + i), Vec<W>::load(t.strokes + i)).store(t.strokes + i);
      });
}

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
    stroke::kick,      stroke::mixed_kick,     stroke::stroke_all, stroke::balance, stroke::bend,
    stroke::positions, stroke::apply,          stroke::add,        stroke::axpy,    stroke::move,
    stroke::kinetic,   stroke::decay,          stroke::lumped,     stroke::relax,   stroke::relaxed,
    stroke::series,    stroke::series_balance, stroke::series_end};

}  // namespace portwave::PORTWAVE_ISA
