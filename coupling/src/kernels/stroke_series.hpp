#pragma once

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
}  // namespace portwave::PORTWAVE_ISA
