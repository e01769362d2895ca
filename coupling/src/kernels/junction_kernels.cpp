#include "kernels/junction_kernels.hpp"

#include "kernels/junction_forms.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

// Offsets of different junctions never meet, which the loops state with ivdep.

namespace portwave::PORTWAVE_ISA {
namespace {

/// Where position k of junction i lies.
template <bool kContiguous>
struct Offsets {
  const int* offsets;
  int count;
  int operator()(int k, int i) const {
    return kContiguous ? offsets[k] + i : offsets[k * count + i];
  }
};

template <bool kContiguous>
void exchange_swaps(const JunctionRun& run, const int* offsets, const double* /*values*/,
                    const double* b, double* a) {
  if constexpr (kContiguous) {
    const double* b1 = b + offsets[0];
    const double* b2 = b + offsets[1];
    double* a1 = a + offsets[0];
    double* a2 = a + offsets[1];
    PORTWAVE_INDEPENDENT
    for (int i = 0; i < run.count; ++i) {
      const double first = b2[i], second = b1[i];
      a1[i] = first;
      a2[i] = second;
    }
  } else {
    for (int i = 0; i < run.count; ++i) {
      const int p = offsets[i], q = offsets[run.count + i];
      a[p] = b[q];
      a[q] = b[p];
    }
  }
}

template <bool kContiguous>
void resolve_swaps(const JunctionRun& run, const int* offsets, const double* /*values*/,
                   double relaxation, const double* b, double* u, double* /*work*/) {
  const double third = relaxation / 3.0;
  if constexpr (kContiguous) {
    const double* b1 = b + offsets[0];
    const double* b2 = b + offsets[1];
    double* u1 = u + offsets[0];
    double* u2 = u + offsets[1];
    PORTWAVE_INDEPENDENT
    for (int i = 0; i < run.count; ++i) {
      resolve_swap(third, b1[i], b2[i], u1[i], u2[i]);
    }
  } else {
    for (int i = 0; i < run.count; ++i) {
      const int p = offsets[i], q = offsets[run.count + i];
      resolve_swap(third, b[p], b[q], u[p], u[q]);
    }
  }
}

/// u ← u + θ(P b − u)
template <bool kContiguous>
void average_swaps(const JunctionRun& run, const int* offsets, const double* /*values*/,
                   double relaxation, const double* b, double* u, double* /*work*/) {
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    const int p = at(0, i), q = at(1, i);
    average_swap(relaxation, b[p], b[q], u[p], u[q]);
  }
}

/// K ports, or any number of them for K = 0.
template <bool kContiguous, bool kShared, int K>
void exchange_reflections(const JunctionRun& run, const int* offsets, const double* n,
                          const double* b, double* a) {
  const int arity = K > 0 ? K : run.arity;
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    double along = 0.0;
    for (int k = 0; k < arity; ++k) {
      along = __builtin_fma(n[kShared ? k : k * run.count + i], b[at(k, i)], along);
    }
    for (int k = 0; k < arity; ++k) {
      const double normal = n[kShared ? k : k * run.count + i];
      a[at(k, i)] = run.sign * __builtin_fma(2.0 * along, normal, -b[at(k, i)]);
    }
  }
}

template <bool kContiguous, bool kShared, int K>
void average_reflections(const JunctionRun& run, const int* offsets, const double* n,
                         double relaxation, const double* b, double* u, double* /*work*/) {
  const int arity = K > 0 ? K : run.arity;
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    double along = 0.0;
    for (int k = 0; k < arity; ++k) {
      along = __builtin_fma(n[kShared ? k : k * run.count + i], b[at(k, i)], along);
    }
    for (int k = 0; k < arity; ++k) {
      const double normal = n[kShared ? k : k * run.count + i];
      const int w = at(k, i);
      const double g = __builtin_fma(run.sign, __builtin_fma(2.0 * along, normal, -b[w]), -u[w]);
      u[w] = __builtin_fma(relaxation, g, u[w]);
    }
  }
}

template <bool kContiguous, bool kShared, int K>
void resolve_reflections(const JunctionRun& run, const int* offsets, const double* n,
                         double relaxation, const double* b, double* u, double* /*work*/) {
  const double third = relaxation / 3.0;
  const int arity = K > 0 ? K : run.arity;
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    double b_along = 0.0, u_along = 0.0;
    for (int k = 0; k < arity; ++k) {
      const double normal = n[kShared ? k : k * run.count + i];
      b_along = __builtin_fma(normal, b[at(k, i)], b_along);
      u_along = __builtin_fma(normal, u[at(k, i)], u_along);
    }
    // nᵀPb = sign nᵀb, since Pn = sign n.
    const double g_along = run.sign * b_along - u_along;
    for (int k = 0; k < arity; ++k) {
      const double normal = n[kShared ? k : k * run.count + i];
      const int w = at(k, i);
      const double g = run.sign * __builtin_fma(2.0 * b_along, normal, -b[w]) - u[w];
      const double image = run.sign * __builtin_fma(2.0 * g_along, normal, -g);
      u[w] = __builtin_fma(third, __builtin_fma(2.0, g, image), u[w]);
    }
  }
}

/// Two ports: P = [[p, s], [s, −p]], with p and s as values.
template <bool kContiguous, bool kShared>
void exchange_pairs(const JunctionRun& run, const int* offsets, const double* values,
                    const double* b, double* a) {
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    const double p = values[kShared ? 0 : i], s = values[kShared ? 1 : run.count + i];
    const double b1 = b[at(0, i)], b2 = b[at(1, i)];
    exchange_pair(p, s, b1, b2, a[at(0, i)], a[at(1, i)]);
  }
}

template <bool kContiguous, bool kShared>
void average_pairs(const JunctionRun& run, const int* offsets, const double* values,
                   double relaxation, const double* b, double* u, double* /*work*/) {
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    const double p = values[kShared ? 0 : i], s = values[kShared ? 1 : run.count + i];
    average_pair(p, s, relaxation, b[at(0, i)], b[at(1, i)], u[at(0, i)], u[at(1, i)]);
  }
}

template <bool kContiguous, bool kShared>
void resolve_pairs(const JunctionRun& run, const int* offsets, const double* values,
                   double relaxation, const double* b, double* u, double* /*work*/) {
  const double third = relaxation / 3.0;
  const Offsets<kContiguous> at{offsets, run.count};
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < run.count; ++i) {
    const double p = values[kShared ? 0 : i], s = values[kShared ? 1 : run.count + i];
    resolve_pair(p, s, third, b[at(0, i)], b[at(1, i)], u[at(0, i)], u[at(1, i)]);
  }
}

/// Dense runs are never contiguous, and their offsets lie junction by junction.
void exchange_dense(const JunctionRun& run, const int* offsets, const double* values,
                    const double* b, double* a) {
  const int k = run.arity;
  for (int i = 0; i < run.count; ++i) {
    const int* waves = offsets + i * k;
    const double* P = values + 2 * i * k * k;
    for (int row = 0; row < k; ++row) {
      double sum = 0.0;
      for (int j = 0; j < k; ++j) sum = __builtin_fma(P[row * k + j], b[waves[j]], sum);
      a[waves[row]] = sum;
    }
  }
}

void resolve_dense(const JunctionRun& run, const int* offsets, const double* values,
                   double relaxation, const double* b, double* u, double* gap) {
  const int k = run.arity;
  for (int i = 0; i < run.count; ++i) {
    const int* waves = offsets + i * k;
    const double* P = values + 2 * i * k * k;
    const double* R = P + k * k;
    for (int row = 0; row < k; ++row) {
      double sum = -u[waves[row]];
      for (int j = 0; j < k; ++j) sum = __builtin_fma(P[row * k + j], b[waves[j]], sum);
      gap[row] = sum;
    }
    for (int row = 0; row < k; ++row) {
      double sum = 0.0;
      for (int j = 0; j < k; ++j) sum = __builtin_fma(R[row * k + j], gap[j], sum);
      u[waves[row]] = __builtin_fma(relaxation, sum, u[waves[row]]);
    }
  }
}

void average_dense(const JunctionRun& run, const int* offsets, const double* values,
                   double relaxation, const double* b, double* u, double* gap) {
  const int k = run.arity;
  for (int i = 0; i < run.count; ++i) {
    const int* waves = offsets + i * k;
    const double* P = values + 2 * i * k * k;
    for (int row = 0; row < k; ++row) {
      double sum = -u[waves[row]];
      for (int j = 0; j < k; ++j) sum = __builtin_fma(P[row * k + j], b[waves[j]], sum);
      gap[row] = sum;
    }
    for (int row = 0; row < k; ++row) {
      u[waves[row]] = __builtin_fma(relaxation, gap[row], u[waves[row]]);
    }
  }
}

template <bool kContiguous, bool kShared, int K>
void choose_reflections(JunctionRun& run) {
  run.exchange = exchange_reflections<kContiguous, kShared, K>;
  run.resolve = resolve_reflections<kContiguous, kShared, K>;
  run.average = average_reflections<kContiguous, kShared, K>;
}

template <bool kContiguous, bool kShared>
void choose_arity(JunctionRun& run) {
  switch (run.arity) {
    case 1:
      return choose_reflections<kContiguous, kShared, 1>(run);
    case 2:
      run.exchange = exchange_pairs<kContiguous, kShared>;
      run.resolve = resolve_pairs<kContiguous, kShared>;
      run.average = average_pairs<kContiguous, kShared>;
      return;
    case 3:
      return choose_reflections<kContiguous, kShared, 3>(run);
    default:
      return choose_reflections<kContiguous, kShared, 0>(run);
  }
}

void choose(JunctionRun& run) {
  switch (run.form) {
    case JunctionForm::swap:
      run.exchange = run.contiguous ? exchange_swaps<true> : exchange_swaps<false>;
      run.resolve = run.contiguous ? resolve_swaps<true> : resolve_swaps<false>;
      run.average = run.contiguous ? average_swaps<true> : average_swaps<false>;
      return;
    case JunctionForm::reflection:
      if (run.contiguous) {
        return run.shared ? choose_arity<true, true>(run) : choose_arity<true, false>(run);
      }
      return run.shared ? choose_arity<false, true>(run) : choose_arity<false, false>(run);
    case JunctionForm::dense:
      run.exchange = exchange_dense;
      run.resolve = resolve_dense;
      run.average = average_dense;
  }
}

}  // namespace

const JunctionKernels kJunctionKernels = {choose};

}  // namespace portwave::PORTWAVE_ISA
