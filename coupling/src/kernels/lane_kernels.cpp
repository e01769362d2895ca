#include "kernels/lane_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {

using Lanes = Vec<kLaneGroup>;

inline Lanes load(const double* p) { return Lanes::load(p); }
inline void store(double* p, const Lanes& v) { v.store(p); }
inline Lanes zero() { return Lanes::all(0.0); }
inline Lanes scaled(double v, const Lanes& x) { return Lanes::all(v) * x; }
/// sum + v x
inline Lanes plus(const Lanes& sum, double v, const Lanes& x) { return sum + scaled(v, x); }
/// sum − v x
inline Lanes minus(const Lanes& sum, double v, const Lanes& x) { return sum - scaled(v, x); }
inline Lanes plus_product(const Lanes& sum, const Lanes& x, const Lanes& y) { return sum + x * y; }

void product(const LaneLines& M, const double* x, double* y) {
  for (int i = 0, k = 0; i < M.count; ++i) {
    Lanes sum = zero();
    for (const int end = M.begin[i + 1]; k < end; ++k)
      sum = plus(sum, M.value[k], load(x + M.offset[k]));
    store(y + i * kLaneGroup, sum);
  }
}

void add_product(const LaneLines& M, double factor, const double* x, double* y) {
  for (int i = 0, k = 0; i < M.count; ++i) {
    const int end = M.begin[i + 1];
    if (k == end) continue;
    Lanes sum = load(y + i * kLaneGroup);
    for (; k < end; ++k) sum = plus(sum, M.value[k], scaled(factor, load(x + M.offset[k])));
    store(y + i * kLaneGroup, sum);
  }
}

void solve(const LaneTriangles& A, const double* b, double* x, double* y) {
  const LaneLines& L = A.lower;
  for (int i = 0, k = 0; i < L.count; ++i) {
    Lanes sum = load(b + A.source[i]);
    for (const int end = L.begin[i + 1]; k < end; ++k)
      sum = minus(sum, L.value[k], load(y + L.offset[k]));
    store(y + i * kLaneGroup, sum);
  }
  const LaneLines& U = A.upper;
  for (int i = 0, k = 0; i < U.count; ++i) {
    Lanes sum = load(y + A.from[i]);
    for (const int end = U.begin[i + 1]; k < end; ++k)
      sum = minus(sum, U.value[k], load(x + U.offset[k]));
    store(x + A.target[i], scaled(A.inverse_diagonal[i], sum));
  }
}

/// Rows i … i + Rows − 1 of a dense product.
template <int Rows>
inline void dense_rows(const double* M, int n, int stride, int i, const double* b, double* x) {
  Lanes sum[Rows];
  for (int r = 0; r < Rows; ++r) sum[r] = zero();
  for (int j = 0; j < n; ++j) {
    const Lanes bj = load(b + j * kLaneGroup);
    const double* column = M + static_cast<long>(j) * stride + i;
    for (int r = 0; r < Rows; ++r) sum[r] = plus(sum[r], column[r], bj);
  }
  for (int r = 0; r < Rows; ++r) store(x + (i + r) * kLaneGroup, sum[r]);
}

void dense_product(const double* M, int n, int stride, const double* b, double* x) {
  constexpr int kRows = Lanes::kParts > 2 ? 2 : 4;
  int i = 0;
  for (; i + kRows <= n; i += kRows) dense_rows<kRows>(M, n, stride, i, b, x);
  for (; i < n; ++i) dense_rows<1>(M, n, stride, i, b, x);
}

/// `tiles` times kLaneGroup rows from `first` on.
template <int tiles>
void vector_rows(const double* M, int n, int stride, int first, const double* b, double* x) {
  Lanes sum[tiles];
  for (int t = 0; t < tiles; ++t) sum[t] = zero();
  for (int j = 0; j < n; ++j) {
    const double* column = M + static_cast<long>(j) * stride + first;
    for (int t = 0; t < tiles; ++t) sum[t] = plus(sum[t], b[j], load(column + t * kLaneGroup));
  }
  double rows[tiles * kLaneGroup];
  for (int t = 0; t < tiles; ++t) store(rows + t * kLaneGroup, sum[t]);
  const int count = n - first < tiles * kLaneGroup ? n - first : tiles * kLaneGroup;
  for (int i = 0; i < count; ++i) x[first + i] = rows[i];
}

void matrix_vector(const double* M, int n, int stride, const double* b, double* x) {
  constexpr int kTiles = Lanes::kParts > 2   ? 1
                         : Lanes::kParts > 1 ? 3
                                             : 4;  // as many as there are registers for
  int i = 0;
  for (; i + kTiles * kLaneGroup <= stride; i += kTiles * kLaneGroup) {
    vector_rows<kTiles>(M, n, stride, i, b, x);
  }
  // What is left at once: a tile by itself would wait for its own sums.
  switch ((stride - i) / kLaneGroup) {
    case 3:
      return vector_rows<3>(M, n, stride, i, b, x);
    case 2:
      return vector_rows<2>(M, n, stride, i, b, x);
    case 1:
      return vector_rows<1>(M, n, stride, i, b, x);
    default:
      return;
  }
}

void bilinear(const LaneLines& M, const double* x, const double* y, double* sum) {
  Lanes total = zero();
  for (int j = 0, k = 0; j < M.count; ++j) {
    Lanes column = zero();
    for (const int end = M.begin[j + 1]; k < end; ++k)
      column = plus(column, M.value[k], load(x + M.offset[k]));
    total = plus_product(total, column, load(y + j * kLaneGroup));
  }
  store(sum, total);
}

void advance(int n, double factor, const double* d, double* x) {
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup)
    store(x + i, plus(load(x + i), factor, load(d + i)));
}

void sum(int n, const double* x, double* sums) {
  Lanes total = zero();
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup) total = total + load(x + i);
  store(sums, total);
}

void sum_squares(int n, const double* x, double* sums) {
  Lanes total = zero();
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup)
    total = plus_product(total, load(x + i), load(x + i));
  store(sums, total);
}

void add_masked(const LaneLines& M, const unsigned long long* mask, const double* x, double* y) {
  using Bits [[gnu::vector_size(kNative * sizeof(double))]] = long long;
  for (int i = 0, k = 0; i < M.count; ++i) {
    const int end = M.begin[i + 1];
    if (k == end) continue;
    Lanes sum = load(y + i * kLaneGroup);
    for (; k < end; ++k) {
      const Lanes term = scaled(M.value[k], load(x + M.offset[k]));
      for (int p = 0; p < Lanes::kParts; ++p) {
        Bits where, bits, nothing;
        const Native none = -Native{};  // −0, which changes no sum
        __builtin_memcpy(&where, mask + M.offset[k] + p * kNative, sizeof(Bits));
        __builtin_memcpy(&bits, &term.part[p], sizeof(Bits));
        __builtin_memcpy(&nothing, &none, sizeof(Bits));
        bits = (bits & where) | (nothing & ~where);
        Native chosen;
        __builtin_memcpy(&chosen, &bits, sizeof(Bits));
        sum.part[p] = sum.part[p] + chosen;
      }
    }
    store(y + i * kLaneGroup, sum);
  }
}

void scale(int n, double factor, const double* x, double* y) {
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup) store(y + i, scaled(factor, load(x + i)));
}

void add(int n, const double* x, double* y) {
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup) store(y + i, load(y + i) + load(x + i));
}

void subtract(int n, const double* x, double* y) {
  for (int i = 0; i < n * kLaneGroup; i += kLaneGroup) store(y + i, load(y + i) - load(x + i));
}

void stage_rhs(int n, int stages, const double* g, const double* Ax, double* rhs) {
  for (int i = 0; i < n; ++i) {
    const Lanes own = load(Ax + i * kLaneGroup);
    for (int k = 0; k < stages; ++k)
      store(rhs + (i * stages + k) * kLaneGroup, load(g + (k * n + i) * kLaneGroup) + own);
  }
}

void stage_end(int n, int stages, const double* weights, const double* d, double* x, double* X) {
  for (int i = 0; i < n; ++i) {
    const Lanes start = load(x + i * kLaneGroup);
    Lanes moved = zero();
    for (int k = 0; k < stages; ++k) {
      const Lanes own = load(d + (i * stages + k) * kLaneGroup);
      store(X + (k * n + i) * kLaneGroup, start + own);
      moved = plus(moved, weights[k], own);
    }
    store(x + i * kLaneGroup, start + moved);
  }
}

void gather(int n, const double* const* from, double* to) {
  const double* lane[kLaneGroup];
  for (int l = 0; l < kLaneGroup; ++l) lane[l] = from[l];
  for (int i = 0; i < n; ++i) {
    for (int l = 0; l < kLaneGroup; ++l) to[i * kLaneGroup + l] = lane[l][i];
  }
}

void scatter(int n, int lanes, const double* from, double* const* to) {
  for (int l = 0; l < lanes; ++l) {
    double* own = to[l];
    for (int i = 0; i < n; ++i) own[i] = from[i * kLaneGroup + l];
  }
}

}  // namespace

const LaneKernels kLaneKernels = {product,  add_product, solve,    dense_product, matrix_vector,
                                  bilinear, advance,     sum,      sum_squares,   add_masked,
                                  scale,    add,         subtract, stage_rhs,     stage_end,
                                  gather,   scatter};

}  // namespace portwave::PORTWAVE_ISA
