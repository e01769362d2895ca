#include "kernels/linear_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

/// Distance between the coefficients of a group.
template <int W, bool kShared>
constexpr int kStep = kShared ? 1 : W;  // NOLINT(bugprone-branch-clone): W may be 1

/// P ports, or any number of them for P = 0.
template <int W, bool kShared, int P>
[[gnu::always_inline]] inline void scatter_group(const LinearTask& t, long group) {
  constexpr int S = kStep<W, kShared>;
  const LinearShape& shape = *t.shape;
  const int p = P > 0 ? P : shape.p;
  const double* sigma = t.groups[group].scatter;
  const double* gain = sigma + p * S;
  const double* b0 = t.record + group * p * W;
  const double* a = t.a + group * W;
  double* b = t.b + group * W;
  if constexpr (P > 0) {
    Vec<W> in[P];
    for (int j = 0; j < P; ++j) in[j] = Vec<W>::load(a + j * t.stride);
    for (int i = 0; i < P; ++i) {
      Vec<W> sum = Vec<W>::load(b0 + i * W);
      for (int j = 0; j < P; ++j) {
        sum = fma(coefficient<W, kShared>(gain, i * P + j), in[j], sum);
      }
      fma(coefficient<W, kShared>(sigma, i), in[i], sum).store(b + i * t.stride);
    }
  } else {
    for (int i = 0; i < p; ++i) {
      Vec<W> sum = Vec<W>::load(b0 + i * W);
      for (int j = 0; j < p; ++j) {
        sum = fma(coefficient<W, kShared>(gain, i * p + j), Vec<W>::load(a + j * t.stride), sum);
      }
      fma(coefficient<W, kShared>(sigma, i), Vec<W>::load(a + i * t.stride), sum)
          .store(b + i * t.stride);
    }
  }
}

template <int W, int P>
void scatter_groups(const LinearTask& t) {
  for (long g = t.first; g < t.last; ++g) {
    if (t.groups[g].shared) {
      scatter_group<W, true, P>(t, g);
    } else {
      scatter_group<W, false, P>(t, g);
    }
  }
}

template <int W, int P>
int bound_scatter(const void* task) {
  scatter_groups<W, P>(*static_cast<const LinearTask*>(task));
  return -1;
}

template <int W>
constexpr int (*kScatterOfPorts[])(const void*) = {bound_scatter<W, 0>, bound_scatter<W, 1>,
                                                   bound_scatter<W, 2>, bound_scatter<W, 3>,
                                                   bound_scatter<W, 4>};

using BoundCall = int (*)(const void*);
BoundCall scatter_of(int width, int ports) {
  const int p = ports <= 4 ? ports : 0;
  return width == 1 ? kScatterOfPorts<1>[p] : kScatterOfPorts<kLaneGroup>[p];
}

void scatter(const LinearTask& t) { scatter_of(t.width, t.shape->p)(&t); }

/// Rows [row, row + kRows) of sum += M v, M with `columns` columns, v's entries `step` apart.
template <int W, bool kShared, int kRows>
inline void add_rows(const double* M, int row, int columns, const double* v, int step,
                     Vec<W> (&sum)[kRows]) {
  for (int j = 0; j < columns; ++j) {
    const Vec<W> in = Vec<W>::load(v + j * step);
    for (int r = 0; r < kRows; ++r) {
      sum[r] = fma(coefficient<W, kShared>(M, (row + r) * columns + j), in, sum[r]);
    }
  }
}

/// The group's arrays.
struct GroupArrays {
  const double* x;
  const double* input;
  double* next;
  const double* a;
  const double* b;
  bool driven;  ///< some ū of the group is not zero
};

template <int W, bool kShared, int kRows>
inline void advance_rows(const LinearTask& t, const LinearGroup& group, const GroupArrays& at,
                         int row, Vec<W>& check) {
  constexpr int S = kStep<W, kShared>;
  const int n = t.shape->n, p = t.shape->p, q = t.shape->q;
  Vec<W> sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = Vec<W>::all(0.0);
  add_rows<W, kShared, kRows>(group.step, row, n, at.x, W, sum);
  add_rows<W, kShared, kRows>(group.step + n * n * S, row, p, at.a, t.stride, sum);
  if (at.driven) add_rows<W, kShared, kRows>(group.input, row, q, at.input, W, sum);
  for (int r = 0; r < kRows; ++r) {
    const Vec<W> next = Vec<W>::load(at.x + (row + r) * W) + sum[r];
    next.store(at.next + (row + r) * W);
    check = fma(next, Vec<W>::all(0.0), check);
  }
}

constexpr int kRowsAtOnce = 6;

template <int W, bool kShared>
[[gnu::always_inline]] inline void advance_any(const LinearTask& t, const LinearGroup& group,
                                               const GroupArrays& at, int row, int rows,
                                               Vec<W>& check) {
  switch (rows) {
    case 1:
      return advance_rows<W, kShared, 1>(t, group, at, row, check);
    case 2:
      return advance_rows<W, kShared, 2>(t, group, at, row, check);
    case 3:
      return advance_rows<W, kShared, 3>(t, group, at, row, check);
    case 4:
      return advance_rows<W, kShared, 4>(t, group, at, row, check);
    case 5:
      return advance_rows<W, kShared, 5>(t, group, at, row, check);
    default:
      return advance_rows<W, kShared, 6>(t, group, at, row, check);
  }
}

/// b⁰ = Cx (+ C_u ū), given x and ū behind it.
template <int W, bool kShared>
inline void freeze_group(const LinearTask& t, const LinearGroup& group, const double* x, double* b0,
                         bool driven) {
  constexpr int S = kStep<W, kShared>;
  const int n = t.shape->n, p = t.shape->p, q = t.shape->q;
  const double* C = group.step + (n * n + n * p) * S;
  const double* C_u = group.input + n * q * S;
  const double* input = x + n * W;
  int i = 0;
  for (; i + 2 <= p; i += 2) {
    Vec<W> sum[2] = {Vec<W>::all(0.0), Vec<W>::all(0.0)};
    add_rows<W, kShared, 2>(C, i, n, x, W, sum);
    if (driven) add_rows<W, kShared, 2>(C_u, i, q, input, W, sum);
    for (int r = 0; r < 2; ++r) sum[r].store(b0 + (i + r) * W);
  }
  for (; i < p; ++i) {
    Vec<W> sum[1] = {Vec<W>::all(0.0)};
    add_rows<W, kShared, 1>(C, i, n, x, W, sum);
    if (driven) add_rows<W, kShared, 1>(C_u, i, q, input, W, sum);
    sum[0].store(b0 + i * W);
  }
}

/// Coefficients of a group's ledger, one kind after another (LinearGroup::energy).
template <int W, bool kShared>
struct EnergyCoefficients {
  static constexpr int S = kStep<W, kShared>;
  const LinearShape& s;
  const double* first;

  const double* diagonal() const { return first; }
  const double* storage() const { return first + s.n * S; }
  const double* gradient() const { return storage() + s.storage_count * S; }
  const double* dissipation() const { return gradient() + s.gradient_count * S; }
  const double* output() const { return dissipation() + s.dissipation_count * S; }
  const double* factor() const { return output() + s.output_count * S; }
};

/// One row of z by its map.
template <int W, bool kShared>
void map_row(const LinearTask& t, const LinearGroup& group, const GroupArrays& at, int m,
             double* work) {
  const LinearShape& s = *t.shape;
  const int columns = s.n + s.p + s.q;
  Vec<W> sum = Vec<W>::all(0.0);
  for (int j = 0; j < s.n; ++j) {
    sum = fma(coefficient<W, kShared>(group.mapped, m * columns + j), Vec<W>::load(at.x + j * W),
              sum);
  }
  for (int j = 0; j < s.p; ++j) {
    sum = fma(coefficient<W, kShared>(group.mapped, m * columns + s.n + j),
              Vec<W>::load(at.a + j * t.stride), sum);
  }
  for (int j = 0; at.driven && j < s.q; ++j) {
    sum = fma(coefficient<W, kShared>(group.mapped, m * columns + s.n + s.p + j),
              Vec<W>::load(at.input + j * W), sum);
  }
  sum.store(work + s.mapped[m] * W);
}

/// z = [∇̄H; u], as far as it is needed, into `work`; what its diagonal makes is there already.
/// Entries of a row follow one another.
template <int W, bool kShared>
[[gnu::always_inline]] inline void form_gradient(const LinearTask& t, const LinearGroup& group,
                                                 const EnergyCoefficients<W, kShared>& value,
                                                 const GroupArrays& at, double* work) {
  const LinearShape& s = *t.shape;
  const double* gradient = value.gradient();
  for (int e = 0; e < s.gradient_count;) {
    const int row = s.gradient[e].row;
    Vec<W> sum = Vec<W>::all(0.0);
    for (; e < s.gradient_count && s.gradient[e].row == row; ++e) {
      const int column = s.gradient[e].column * W;
      sum = fma(coefficient<W, kShared>(gradient, e),
                Vec<W>::load(at.x + column) + Vec<W>::load(at.next + column), sum);
    }
    sum.store(work + row * W);
  }
  for (int m = 0; m < s.mapped_count; ++m) map_row<W, kShared>(t, group, at, m, work);
  if (!s.ports_dissipate) return;
  const double* factor = value.factor();
  for (int j = 0; j < s.p; ++j) {
    const Vec<W> sign = Vec<W>::all(s.input_sign[j]);
    const Vec<W> waves =
        fma(sign, Vec<W>::load(at.b + j * t.stride), Vec<W>::load(at.a + j * t.stride));
    (coefficient<W, kShared>(factor, j) * waves).store(work + (s.z + j) * W);
  }
  for (int j = 0; j < s.q; ++j) {
    Vec<W>::load(at.input + j * W).store(work + (s.z + s.p + j) * W);
  }
}

template <int W, bool kShared>
[[gnu::always_inline]] inline void account_group(const LinearTask& t, const LinearGroup& group,
                                                 const GroupArrays& at, long g, double* work) {
  const LinearShape& s = *t.shape;
  const Vec<W> zero = Vec<W>::all(0.0);
  Vec<W> change = zero, dissipated = zero, supply = zero;
  const EnergyCoefficients<W, kShared> value{s, group.energy};
  const bool needs_gradient = s.dissipation_count > 0 || at.driven;
  // H⁺ − H = ½(x⁺ + x)ᵀQ(x⁺ − x)
  for (int i = 0; i < s.n; ++i) {
    const Vec<W> x = Vec<W>::load(at.x + i * W), next = Vec<W>::load(at.next + i * W);
    const Vec<W> slope = coefficient<W, kShared>(value.diagonal(), i) * (next + x);
    change = fma(slope, next - x, change);
    if (needs_gradient && s.diagonal_gradient[i] != 0) slope.store(work + i * W);
  }
  const double* storage = value.storage();
  for (int e = 0; e < s.storage_count; ++e) {
    const int row = s.storage[e].row * W, column = s.storage[e].column * W;
    const Vec<W> xi = Vec<W>::load(at.x + row), ni = Vec<W>::load(at.next + row);
    const Vec<W> xj = Vec<W>::load(at.x + column), nj = Vec<W>::load(at.next + column);
    const Vec<W> both = fma(xi, nj - xj, (ni - xi) * nj);  // nᵢnⱼ − xᵢxⱼ
    change = fma(coefficient<W, kShared>(storage, e), both, change);
  }
  if (needs_gradient) {
    form_gradient(t, group, value, at, work);
    const double* dissipation = value.dissipation();
    for (int e = 0; e < s.dissipation_count; ++e) {
      const Vec<W> product =
          coefficient<W, kShared>(dissipation, e) * Vec<W>::load(work + s.dissipation[e].row * W);
      dissipated = fma(product, Vec<W>::load(work + s.dissipation[e].column * W), dissipated);
    }
    if (at.driven) {
      const double* output = value.output();
      for (int e = 0; e < s.output_count; ++e) {
        const Vec<W> product =
            coefficient<W, kShared>(output, e) * Vec<W>::load(at.input + s.output[e].row * W);
        supply = fma(product, Vec<W>::load(work + s.output[e].column * W), supply);
      }
    }
  }
  change.store(t.energy.change_J + g * W);
  dissipated.store(t.energy.dissipated_J + g * W);
  supply.store(t.energy.external_supply_J + g * W);
}

/// First lane of the group that is not finite, or W.
template <int W, bool kShared>
int advance_group(const LinearTask& t, long g) {
  const LinearShape& s = *t.shape;
  const LinearGroup& group = t.groups[g];
  const int size = s.n + s.q;
  const double* x = t.record + t.states + g * size * W;
  const Vec<W> zero = Vec<W>::all(0.0);
  GroupArrays at{x, x + s.n * W, t.next + t.states + g * size * W, t.a + g * W, t.b + g * W, false};
  if (__atomic_load_n(t.ever_driven, __ATOMIC_RELAXED) != 0) {
    for (int j = 0; j < s.q; ++j) {
      at.driven = at.driven || !all_at_most(abs(Vec<W>::load(at.input + j * W)), zero);
      zero.store(at.next + (s.n + j) * W);
    }
  }
  scatter_group<W, kShared, 0>(t, g);
  Vec<W> check = zero;
  // Blocks of rows as equal as can be: each pass over x feeds as many sums as there are registers.
  const int blocks = (s.n + kRowsAtOnce - 1) / kRowsAtOnce;
  for (int k = 0, row = 0; k < blocks; ++k) {
    const int rows = (s.n - row) / (blocks - k) + ((s.n - row) % (blocks - k) != 0 ? 1 : 0);
    advance_any<W, kShared>(t, group, at, row, rows, check);
    row += rows;
  }
  freeze_group<W, kShared>(t, group, at.next, t.next + g * s.p * W, false);
  for (int j = 0; j < s.p; ++j) {
    check = fma(Vec<W>::load(at.b + j * t.stride), zero, check);
  }
  if (t.energy.wanted()) {
    const int sizes = s.z + s.p + s.q;
    if (sizes <= LinearTask::kOnStack) {
      alignas(64) double work[LinearTask::kOnStack * W];
      account_group<W, kShared>(t, group, at, g, work);
    } else {
      account_group<W, kShared>(t, group, at, g, t.work + g * sizes * W);
    }
  }
  return all_at_most(check, zero) ? W : first_above(check, zero);
}

template <int W>
int advance(const LinearTask& t) {
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane =
        t.groups[g].shared ? advance_group<W, true>(t, g) : advance_group<W, false>(t, g);
    if (lane < W && bad < 0) bad = static_cast<int>(g) * W + lane;
  }
  return bad;
}

template <int W>
void freeze(const LinearTask& t) {
  const int size = t.shape->n + t.shape->q;
  for (long g = t.first; g < t.last; ++g) {
    const double* x = t.record + t.states + g * size * W;
    double* b0 = t.record + g * t.shape->p * W;
    t.groups[g].shared ? freeze_group<W, true>(t, t.groups[g], x, b0, t.driven)
                       : freeze_group<W, false>(t, t.groups[g], x, b0, t.driven);
  }
}

template <int W, bool kShared, int kRows>
void increment_rows(const LinearTask& t, const LinearGroup& group, const GroupArrays& at, int row,
                    double* out) {
  const LinearShape& s = *t.shape;
  const int columns = s.n + s.p + s.q;
  Vec<W> sum[kRows];
  for (int r = 0; r < kRows; ++r) sum[r] = Vec<W>::all(0.0);
  const auto add = [&](int first, int count, const double* v, int step) {
    for (int j = 0; j < count; ++j) {
      const Vec<W> in = Vec<W>::load(v + j * step);
      for (int r = 0; r < kRows; ++r) {
        const int entry = (row + r) * columns + first + j;
        sum[r] = fma(coefficient<W, kShared>(group.increments, entry), in, sum[r]);
      }
    }
  };
  add(0, s.n, at.x, W);
  add(s.n, s.p, at.a, t.stride);
  if (at.driven) add(s.n + s.p, s.q, at.input, W);
  for (int r = 0; r < kRows; ++r) sum[r].store(out + (row + r) * t.stride);
}

template <int W, bool kShared>
void increments_of_group(const LinearTask& t, long g, double* out) {
  const LinearShape& s = *t.shape;
  const double* x = t.record + t.states + g * (s.n + s.q) * W;
  const bool driven = __atomic_load_n(t.ever_driven, __ATOMIC_RELAXED) != 0;
  const GroupArrays at{x, x + s.n * W, nullptr, t.a + g * W, nullptr, driven};
  int row = 0;
  for (; row + 5 <= s.z; row += 5) {
    increment_rows<W, kShared, 5>(t, t.groups[g], at, row, out + g * W);
  }
  for (; row < s.z; ++row) increment_rows<W, kShared, 1>(t, t.groups[g], at, row, out + g * W);
}

template <int W>
void increments(const LinearTask& t, double* out) {
  for (long g = t.first; g < t.last; ++g) {
    t.groups[g].shared ? increments_of_group<W, true>(t, g, out)
                       : increments_of_group<W, false>(t, g, out);
  }
}

}  // namespace

const LinearKernels kLinearKernels = {
    scatter,
    scatter_of,
    [](const void* task) {
      const LinearTask& t = *static_cast<const LinearTask*>(task);
      return t.width == 1 ? advance<1>(t) : advance<kLaneGroup>(t);
    },
    [](const LinearTask& t) { t.width == 1 ? freeze<1>(t) : freeze<kLaneGroup>(t); },
    [](const LinearTask& t, double* out) {
      t.width == 1 ? increments<1>(t, out) : increments<kLaneGroup>(t, out);
    },
};

}  // namespace portwave::PORTWAVE_ISA
