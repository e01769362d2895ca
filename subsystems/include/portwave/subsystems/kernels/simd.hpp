#pragma once

// Vectors of W doubles for the kernels, W = 8 or 1: the same operations in the same order per lane,
// whatever W and the instruction set. A kernel source is compiled once per instruction set, inside
// namespace PORTWAVE_ISA; it must not use inline functions that another source could share with it.

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__ARM_FEATURE_SVE_BITS) && __ARM_FEATURE_SVE_BITS > 0
#include <arm_sve.h>
#define PORTWAVE_SVE_BITS __ARM_FEATURE_SVE_BITS
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

/// Before a loop whose turns touch no common memory, so that it may be vectorised.
#ifdef __clang__
#define PORTWAVE_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define PORTWAVE_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace portwave::PORTWAVE_ISA {

#if defined(__AVX512F__)
inline constexpr int kNative = 8;
using Native [[gnu::vector_size(64)]] = double;
static inline Native fused(Native a, Native b, Native c) { return _mm512_fmadd_pd(a, b, c); }
static inline Native broadcast(double value) { return _mm512_set1_pd(value); }
static inline Native magnitude(Native a) { return _mm512_abs_pd(a); }
#elif defined(__AVX2__) && defined(__FMA__)
inline constexpr int kNative = 4;
using Native [[gnu::vector_size(32)]] = double;
static inline Native fused(Native a, Native b, Native c) { return _mm256_fmadd_pd(a, b, c); }
static inline Native broadcast(double value) { return _mm256_set1_pd(value); }
static inline Native magnitude(Native a) { return _mm256_andnot_pd(_mm256_set1_pd(-0.0), a); }
#elif defined(PORTWAVE_SVE_BITS)
inline constexpr int kNative = PORTWAVE_SVE_BITS / 64;
using Native = svfloat64_t __attribute__((arm_sve_vector_bits(PORTWAVE_SVE_BITS)));
static inline Native fused(Native a, Native b, Native c) {
  return svmla_f64_x(svptrue_b64(), c, a, b);
}
static inline Native broadcast(double value) { return svdup_f64(value); }
static inline Native magnitude(Native a) { return svabs_f64_x(svptrue_b64(), a); }
#elif defined(__aarch64__)
inline constexpr int kNative = 2;
using Native = float64x2_t;
static inline Native fused(Native a, Native b, Native c) { return vfmaq_f64(c, a, b); }
static inline Native broadcast(double value) { return vdupq_n_f64(value); }
static inline Native magnitude(Native a) { return vabsq_f64(a); }
#else
inline constexpr int kNative = 2;
using Native [[gnu::vector_size(16)]] = double;
static inline Native fused(Native a, Native b, Native c) {
  return Native{__builtin_fma(a[0], b[0], c[0]), __builtin_fma(a[1], b[1], c[1])};
}
static inline Native broadcast(double value) { return Native{value, value}; }
static inline Native magnitude(Native a) {
  return Native{__builtin_fabs(a[0]), __builtin_fabs(a[1])};
}
#endif

#if defined(__AVX2__) || defined(__AVX512F__)
// By their own type, as doubles: memcpy might write to anything, so that after each store everything
// that a kernel knows of its task would be read again.
using Anywhere [[gnu::vector_size(sizeof(Native)), gnu::aligned(sizeof(double))]] = double;
static inline Native load_native(const double* p) { return *reinterpret_cast<const Anywhere*>(p); }
static inline void store_native(double* p, Native value) {
  *reinterpret_cast<Anywhere*>(p) = value;
}
#else
static inline Native load_native(const double* p) {
  Native value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}
static inline void store_native(double* p, Native value) {
  __builtin_memcpy(p, &value, sizeof value);
}
#endif

/// W doubles.
template <int W>
struct Vec {
  static constexpr int kParts = W / kNative;
  static_assert(W % kNative == 0);
  Native part[kParts];

  static Vec load(const double* p) {
    Vec out;
    for (int i = 0; i < kParts; ++i) out.part[i] = load_native(p + i * kNative);
    return out;
  }
  static Vec all(double value) {
    Vec out;
    for (int i = 0; i < kParts; ++i) out.part[i] = broadcast(value);
    return out;
  }
  void store(double* p) const {
    for (int i = 0; i < kParts; ++i) store_native(p + i * kNative, part[i]);
  }
};

template <>
struct Vec<1> {
  double part;
  static Vec load(const double* p) { return {*p}; }
  static Vec all(double value) { return {value}; }
  void store(double* p) const { *p = part; }
};

#define PORTWAVE_BINARY(op)                                                      \
  template <int W>                                                               \
  static inline Vec<W> operator op(Vec<W> a, Vec<W> b) {                         \
    for (int i = 0; i < Vec<W>::kParts; ++i) a.part[i] = a.part[i] op b.part[i]; \
    return a;                                                                    \
  }                                                                              \
  static inline Vec<1> operator op(Vec<1> a, Vec<1> b) { return {a.part op b.part}; }
PORTWAVE_BINARY(+)
PORTWAVE_BINARY(-)
PORTWAVE_BINARY(*)
PORTWAVE_BINARY(/)
#undef PORTWAVE_BINARY

/// a·b + c, rounded once.
template <int W>
static inline Vec<W> fma(Vec<W> a, Vec<W> b, Vec<W> c) {
  for (int i = 0; i < Vec<W>::kParts; ++i) c.part[i] = fused(a.part[i], b.part[i], c.part[i]);
  return c;
}
static inline Vec<1> fma(Vec<1> a, Vec<1> b, Vec<1> c) {
  return {__builtin_fma(a.part, b.part, c.part)};
}

template <int W>
static inline Vec<W> negate(Vec<W> a) {
  for (int i = 0; i < Vec<W>::kParts; ++i) a.part[i] = -a.part[i];
  return a;
}
static inline Vec<1> negate(Vec<1> a) { return {-a.part}; }

template <int W>
static inline Vec<W> abs(Vec<W> a) {
  for (int i = 0; i < Vec<W>::kParts; ++i) a.part[i] = magnitude(a.part[i]);
  return a;
}
static inline Vec<1> abs(Vec<1> a) { return {__builtin_fabs(a.part)}; }

/// Per lane: condition a ≤ b ? yes : no. False for NaN.
template <int W>
static inline Vec<W> where_at_most(Vec<W> a, Vec<W> b, Vec<W> yes, Vec<W> no) {
  for (int i = 0; i < Vec<W>::kParts; ++i) {
    yes.part[i] = a.part[i] <= b.part[i] ? yes.part[i] : no.part[i];
  }
  return yes;
}
static inline Vec<1> where_at_most(Vec<1> a, Vec<1> b, Vec<1> yes, Vec<1> no) {
  return a.part <= b.part ? yes : no;
}

/// True when a ≤ b in every lane.
template <int W>
static inline bool all_at_most(Vec<W> a, Vec<W> b) {
#if defined(__AVX512F__)
  return _mm512_cmp_pd_mask(a.part[0], b.part[0], _CMP_LE_OQ) == 0xff;
#elif defined(__AVX2__) && defined(__FMA__)
  const __m256d low = _mm256_cmp_pd(a.part[0], b.part[0], _CMP_LE_OQ);
  const __m256d high = _mm256_cmp_pd(a.part[1], b.part[1], _CMP_LE_OQ);
  return _mm256_movemask_pd(_mm256_and_pd(low, high)) == 0xf;
#elif defined(PORTWAVE_SVE_BITS)
  const svbool_t lanes = svptrue_b64();
  svbool_t all = lanes;
  for (int i = 0; i < Vec<W>::kParts; ++i) all = svcmple_f64(all, a.part[i], b.part[i]);
  return !svptest_any(lanes, svnot_b_z(lanes, all));
#elif defined(__aarch64__)
  uint64x2_t all = vcleq_f64(a.part[0], b.part[0]);
  for (int i = 1; i < Vec<W>::kParts; ++i) all = vandq_u64(all, vcleq_f64(a.part[i], b.part[i]));
  return vminvq_u32(vreinterpretq_u32_u64(all)) != 0;
#else
  bool all = true;
  for (int i = 0; i < Vec<W>::kParts; ++i) {
    for (int j = 0; j < kNative; ++j) all = all && a.part[i][j] <= b.part[i][j];
  }
  return all;
#endif
}
static inline bool all_at_most(Vec<1> a, Vec<1> b) { return a.part <= b.part; }

/// The first lane where a ≤ b does not hold, or W.
template <int W>
static inline int first_above(Vec<W> a, Vec<W> b) {
  double x[W], y[W];
  a.store(x);
  b.store(y);
  for (int l = 0; l < W; ++l) {
    if (!(x[l] <= y[l])) return l;
  }
  return W;
}

/// Coefficient number i of a lane group: W values side by side, or one for all lanes.
template <int W, bool kShared>
static inline Vec<W> coefficient(const double* values, int i) {
  if constexpr (kShared) {
    return Vec<W>::all(values[i]);
  } else {
    return Vec<W>::load(values + i * W);
  }
}

}  // namespace portwave::PORTWAVE_ISA
