#include "kernels/stroke_kernels.hpp"

#include "kernels/stroke_rows.hpp"
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

enum class Adds : char { nothing, sum, both };

template <int T, bool varies, Adds adds, bool starts>
void series_run(const SeriesTask& t, const StrokeRun& run) {
  const int* const columns = t.map.columns + run.first_column;
  const double* const values = t.map.values + run.first_value;
  const Terms<T> terms(run, columns, values);
  const double factor = t.factor, weight = t.weight, next_weight = t.next_weight;
  const double *const all = t.w, *const own = t.w + run.row;
  double* const next = t.next + run.row;
  double* const sum = adds != Adds::nothing ? t.sum + run.row : nullptr;
  double* const weighted = adds == Adds::both ? t.weighted + run.row : nullptr;
  for_run(
      run, [&]<int W>(int i) __attribute__((always_inline)) {
        const Vec<W> rate =
            product<W, T, varies>(run, terms, columns, values, all, i, Vec<W>::all(0.0));
        const Vec<W> term = Vec<W>::all(factor) * rate;
        term.store(next + i);
        if constexpr (adds != Adds::nothing) {
          const Vec<W> before = Vec<W>::load(own + i);
          Vec<W> more = before + term;
          if constexpr (!starts) more = Vec<W>::load(sum + i) + more;
          more.store(sum + i);
          if constexpr (adds == Adds::both) {
            Vec<W> part = Vec<W>::all(weight) * before;
            if constexpr (!starts) part = part + Vec<W>::load(weighted + i);
            fma(Vec<W>::all(next_weight), term, part).store(weighted + i);
          }
        }
      });
}

template <int T, bool varies>
void series_by_kind(const SeriesTask& t, const StrokeRun& run) {
  if (t.sum == nullptr) return series_run<T, varies, Adds::nothing, false>(t, run);
  if (t.weighted == nullptr) {
    return t.starts ? series_run<T, varies, Adds::sum, true>(t, run)
                    : series_run<T, varies, Adds::sum, false>(t, run);
  }
  return t.starts ? series_run<T, varies, Adds::both, true>(t, run)
                  : series_run<T, varies, Adds::both, false>(t, run);
}

void series(const SeriesTask& t) {
  for (int r = 0; r < t.map.count; ++r) {
    const StrokeRun& run = t.map.runs[r];
    by_terms(run.terms, [&]<int T>() {
      run.varies ? series_by_kind<T, true>(t, run) : series_by_kind<T, false>(t, run);
    });
  }
}

SeriesSums series_balance(const SeriesBalanceTask& t) {
  CompensatedSum change, size, stored, slope, square, residual;
  const double share = 1.0 / (t.order + 1.0);
  for (int first = 0; first < t.count; first += kChunk) {
    const int count = t.count - first < kChunk ? t.count - first : kChunk;
    Sum own_change, own_size, own_stored, own_slope, own_square, own_residual;
    for_rows(
        count, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = first + k;
          const Vec<W> x = Vec<W>::load(t.x + i), d = Vec<W>::load(t.d + i),
                       e = Vec<W>::load(t.e + i), half = Vec<W>::all(0.5);
          const Vec<W> middle = fma(half, d, x);
          Vec<W> pull, middle_pull;
          if (t.stiffness != nullptr) {
            const Vec<W> q = Vec<W>::load(t.stiffness + i);
            pull = q * e;
            middle_pull = q * middle;
          } else {
            pull = Vec<W>::load(t.pull + i);
            middle_pull = Vec<W>::load(t.middle_pull + i);
          }
          Vec<W> work = pull * (x + d), rest = Vec<W>::all(0.0);
          if (t.y != nullptr) rest = pull * fma(Vec<W>::all(share), x, Vec<W>::load(t.y + i));
          own_stored.add(half * abs(middle_pull * middle));
          if (t.constant != nullptr) {
            const Vec<W> c = Vec<W>::load(t.constant + i);
            middle_pull = middle_pull + c;
            work = fma(c, e, work);
            rest = fma(Vec<W>::all(share) * c, e, rest);
          }
          own_change.add(d * middle_pull);
          own_size.add(abs(d * middle_pull));
          own_slope.add(work);
          own_square.add(e * pull);
          own_residual.add(rest);
        });
    change.add(own_change.value());
    size.add(own_size.value());
    stored.add(own_stored.value());
    slope.add(own_slope.value());
    square.add(own_square.value());
    residual.add(own_residual.value());
  }
  return {change.value(), size.value(),   stored.value(),
          slope.value(),  square.value(), residual.value()};
}

double series_end(const SeriesEndTask& t, double* size) {
  CompensatedSum energy, sizes;
  for (int first = 0; first < t.count; first += kChunk) {
    const int count = t.count - first < kChunk ? t.count - first : kChunk;
    Sum own, own_size;
    for_rows(
        count, [&]<int W>(int k) __attribute__((always_inline)) {
          const int i = first + k;
          const Vec<W> x = Vec<W>::load(t.x + i);
          const Vec<W> after =
              x + fma(Vec<W>::all(t.lambda), Vec<W>::load(t.e + i), Vec<W>::load(t.d + i));
          after.store(t.after + i);
          if (t.stiffness == nullptr) return;
          Vec<W> mean = Vec<W>::all(0.5) * (Vec<W>::load(t.stiffness + i) * (after + x));
          if (t.constant != nullptr) mean = mean + Vec<W>::load(t.constant + i);
          const Vec<W> gained = mean * (after - x);
          own.add(gained);
          own_size.add(abs(gained));
        });
    energy.add(own.value());
    sizes.add(own_size.value());
  }
  *size = sizes.value();
  return energy.value();
}

}  // namespace stroke
}  // namespace

extern const StrokeKernels kStrokeKernels;
const StrokeKernels kStrokeKernels = {
    stroke::kick,      stroke::mixed_kick, stroke::stroke_all, stroke::balance,
    stroke::positions, stroke::apply,      stroke::add,        stroke::axpy,
    stroke::move,      stroke::kinetic,    stroke::decay,      stroke::lumped,
    stroke::relax,     stroke::relaxed,    stroke::series,     stroke::series_balance,
    stroke::series_end};

}  // namespace portwave::PORTWAVE_ISA
