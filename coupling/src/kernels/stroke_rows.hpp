#pragma once

#include "kernels/stroke_kernels.hpp"
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

#if defined(__AVX512F__)
constexpr bool kHasShifts = true;
/// The last lane of one group and the first seven of the next; the last seven of one and the first of the next.
[[gnu::always_inline]] inline Vec<kLanes> last_of_and(Vec<kLanes> a, Vec<kLanes> b) {
  return {{__builtin_shufflevector(a.part[0], b.part[0], 7, 8, 9, 10, 11, 12, 13, 14)}};
}
[[gnu::always_inline]] inline Vec<kLanes> and_first_of(Vec<kLanes> a, Vec<kLanes> b) {
  return {{__builtin_shufflevector(a.part[0], b.part[0], 1, 2, 3, 4, 5, 6, 7, 8)}};
}
#else
constexpr bool kHasShifts = false;
[[gnu::always_inline]] inline Vec<kLanes> last_of_and(Vec<kLanes>, Vec<kLanes> b) { return b; }
[[gnu::always_inline]] inline Vec<kLanes> and_first_of(Vec<kLanes> a, Vec<kLanes>) { return a; }
#endif

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

/// The terms of a segment, eight rows wide.
template <int T>
struct SegmentTerms {
  Vec<kLanes> value[T];

  [[gnu::always_inline]] void read(const double* values) {
    for (int k = 0; k < T; ++k) value[k] = Vec<kLanes>::load(values + k * kLanes);
  }
};

/// x of a group of rows and beside them. Where the machine has a vector for a group, its left and right neighbours are
/// shifted into place instead of loaded across cache lines.
template <bool slides>
struct Window {
  static constexpr bool kShifts = slides && kHasShifts;
  const double* x;
  Vec<kLanes> before, now, next;

  [[gnu::always_inline]] Window(const double* x_, int first) : x(x_) {
    if constexpr (kShifts) {
      now = Vec<kLanes>::all(x[first - 1]);
      next = Vec<kLanes>::load(x + first);
    }
  }
  [[gnu::always_inline]] void move_to(int i) {
    if constexpr (kShifts) {
      before = now;
      now = next;
      next = Vec<kLanes>::load(x + i + kLanes);
    }
  }
};

/// Σ over the terms of a segment, for the rows from row + i on.
template <int T, bool slides>
[[gnu::always_inline]] inline Vec<kLanes> product(const SegmentTerms<T>& terms,
                                                  const Terms<T>& columns,
                                                  const Window<slides>& window, int i,
                                                  Vec<kLanes> sum) {
  for (int k = 0; k < T; ++k) {
    Vec<kLanes> x;
    if (Window<slides>::kShifts && k == T / 2 - 1) {
      x = last_of_and(window.before, window.now);
    } else if (Window<slides>::kShifts && k == T / 2) {
      x = window.now;
    } else if (Window<slides>::kShifts && k == T / 2 + 1) {
      x = and_first_of(window.now, window.next);
    } else {
      x = Vec<kLanes>::load(window.x + columns.column[k] + i);
    }
    sum = fma(terms.value[k], x, sum);
  }
  return sum;
}

/// Calls read(values) for every segment of a run and then body(i) for each of its groups, `i` being beside the first row.
template <class Read, class Body>
[[gnu::always_inline]] inline void for_segments(const StrokeRuns& map, const StrokeRun& run,
                                                const Read& read, const Body& body) {
  int i = 0;
  for (int s = run.first_segment; s < run.first_segment + run.segments; ++s) {
    read(map.values + map.segments[s].first_value);
    for (const int end = i + map.segments[s].groups * kLanes; i < end; i += kLanes) body(i);
  }
}

/// Calls `body` with the number of terms of a run of segments, and whether it slides, as constants.
template <class Body>
[[gnu::always_inline]] inline void by_segment_terms(const StrokeRun& run, const Body& body) {
  switch (run.terms) {
    case 1:
      return body.template operator()<1, false>();
    case 2:
      return body.template operator()<2, false>();
    case 3:
      return run.slides ? body.template operator()<3, true>()
                        : body.template operator()<3, false>();
    case 4:
      return body.template operator()<4, false>();
    default:
      return run.slides ? body.template operator()<5, true>()
                        : body.template operator()<5, false>();
  }
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

}  // namespace stroke
}  // namespace
}  // namespace portwave::PORTWAVE_ISA
