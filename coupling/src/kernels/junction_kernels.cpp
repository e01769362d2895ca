#include "kernels/junction_kernels.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

// Places of different junctions never meet, which the loops state with ivdep.

namespace portwave::PORTWAVE_ISA {
namespace {

/// Where position k of junction i lies.
template <bool kContiguous>
struct Places {
  const int* places;
  int count;
  int operator()(int k, int i) const {
    return kContiguous ? places[k] + i : places[k * count + i];
  }
};

template <bool kContiguous>
void exchange_swaps(const JunctionRun& run, const int* places, const double* b, double* a) {
  if constexpr (kContiguous) {
    const double* b1 = b + places[0];
    const double* b2 = b + places[1];
    double* a1 = a + places[0];
    double* a2 = a + places[1];
#pragma GCC ivdep
    for (int i = 0; i < run.count; ++i) {
      const double first = b2[i], second = b1[i];
      a1[i] = first;
      a2[i] = second;
    }
  } else {
    for (int i = 0; i < run.count; ++i) {
      const int p = places[i], q = places[run.count + i];
      a[p] = b[q];
      a[q] = b[p];
    }
  }
}

/// With R = (2I − P)⁻¹, R(2b − u) − b = R g, g = Pb − u: at the fixed point the update vanishes to the
/// last bit. Where P² = I, R g = (2g + Pg)/3.
template <bool kContiguous>
void update_swaps(const JunctionRun& run, const int* places, double third, const double* b,
                  double* u) {
  if constexpr (kContiguous) {
    const double* b1 = b + places[0];
    const double* b2 = b + places[1];
    double* u1 = u + places[0];
    double* u2 = u + places[1];
#pragma GCC ivdep
    for (int i = 0; i < run.count; ++i) {
      const double g1 = b2[i] - u1[i], g2 = b1[i] - u2[i];
      u1[i] = __builtin_fma(third, __builtin_fma(2.0, g1, g2), u1[i]);
      u2[i] = __builtin_fma(third, __builtin_fma(2.0, g2, g1), u2[i]);
    }
  } else {
    for (int i = 0; i < run.count; ++i) {
      const int p = places[i], q = places[run.count + i];
      const double g1 = b[q] - u[p], g2 = b[p] - u[q];
      u[p] = __builtin_fma(third, __builtin_fma(2.0, g1, g2), u[p]);
      u[q] = __builtin_fma(third, __builtin_fma(2.0, g2, g1), u[q]);
    }
  }
}

/// K ports, or any number of them for K = 0.
template <bool kContiguous, bool kShared, int K>
void exchange_reflections(const JunctionRun& run, const int* places, const double* n,
                          const double* b, double* a) {
  const int arity = K > 0 ? K : run.arity;
  const Places<kContiguous> at{places, run.count};
#pragma GCC ivdep
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
void update_reflections(const JunctionRun& run, const int* places, const double* n, double third,
                        const double* b, double* u) {
  const int arity = K > 0 ? K : run.arity;
  const Places<kContiguous> at{places, run.count};
#pragma GCC ivdep
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

template <bool kContiguous, bool kShared>
void exchange_reflections(const JunctionRun& run, const int* places, const double* n,
                          const double* b, double* a) {
  switch (run.arity) {
    case 1:
      return exchange_reflections<kContiguous, kShared, 1>(run, places, n, b, a);
    case 2:
      return exchange_reflections<kContiguous, kShared, 2>(run, places, n, b, a);
    case 3:
      return exchange_reflections<kContiguous, kShared, 3>(run, places, n, b, a);
    default:
      return exchange_reflections<kContiguous, kShared, 0>(run, places, n, b, a);
  }
}

template <bool kContiguous, bool kShared>
void update_reflections(const JunctionRun& run, const int* places, const double* n, double third,
                        const double* b, double* u) {
  switch (run.arity) {
    case 1:
      return update_reflections<kContiguous, kShared, 1>(run, places, n, third, b, u);
    case 2:
      return update_reflections<kContiguous, kShared, 2>(run, places, n, third, b, u);
    case 3:
      return update_reflections<kContiguous, kShared, 3>(run, places, n, third, b, u);
    default:
      return update_reflections<kContiguous, kShared, 0>(run, places, n, third, b, u);
  }
}

/// Dense runs are never contiguous, and their places lie junction by junction.
void exchange_dense(const JunctionRun& run, const int* places, const double* values,
                    const double* b, double* a) {
  const int k = run.arity;
  for (int i = 0; i < run.count; ++i) {
    const int* waves = places + i * k;
    const double* P = values + 2 * i * k * k;
    for (int row = 0; row < k; ++row) {
      double sum = 0.0;
      for (int j = 0; j < k; ++j) sum = __builtin_fma(P[row * k + j], b[waves[j]], sum);
      a[waves[row]] = sum;
    }
  }
}

void update_dense(const JunctionRun& run, const int* places, const double* values,
                  double relaxation, const double* b, double* u, double* gap) {
  const int k = run.arity;
  for (int i = 0; i < run.count; ++i) {
    const int* waves = places + i * k;
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

void exchange(const JunctionRun& run, const int* places, const double* values, const double* b,
              double* a) {
  const int form = (run.contiguous ? 1 : 0) + (run.shared ? 2 : 0);
  switch (run.form) {
    case JunctionForm::swap:
      return run.contiguous ? exchange_swaps<true>(run, places, b, a)
                            : exchange_swaps<false>(run, places, b, a);
    case JunctionForm::reflection:
      return form == 0   ? exchange_reflections<false, false>(run, places, values, b, a)
             : form == 1 ? exchange_reflections<true, false>(run, places, values, b, a)
             : form == 2 ? exchange_reflections<false, true>(run, places, values, b, a)
                         : exchange_reflections<true, true>(run, places, values, b, a);
    case JunctionForm::dense:
      return exchange_dense(run, places, values, b, a);
  }
}

void douglas_rachford(const JunctionRun& run, const int* places, const double* values,
                      double relaxation, const double* b, double* u, double* work) {
  const double third = relaxation / 3.0;
  const int form = (run.contiguous ? 1 : 0) + (run.shared ? 2 : 0);
  switch (run.form) {
    case JunctionForm::swap:
      return run.contiguous ? update_swaps<true>(run, places, third, b, u)
                            : update_swaps<false>(run, places, third, b, u);
    case JunctionForm::reflection:
      return form == 0   ? update_reflections<false, false>(run, places, values, third, b, u)
             : form == 1 ? update_reflections<true, false>(run, places, values, third, b, u)
             : form == 2 ? update_reflections<false, true>(run, places, values, third, b, u)
                         : update_reflections<true, true>(run, places, values, third, b, u);
    case JunctionForm::dense:
      return update_dense(run, places, values, relaxation, b, u, work);
  }
}

}  // namespace

const JunctionKernels kJunctionKernels = {exchange, douglas_rachford};

}  // namespace portwave::PORTWAVE_ISA
