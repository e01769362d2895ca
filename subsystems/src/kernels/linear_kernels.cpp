#include "kernels/linear_kernels.hpp"

#include <utility>

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

/// 0, 1, …: loops over registers are written out, for an array that a loop goes through is in memory.
template <int kRows>
using Rows = std::make_integer_sequence<int, kRows>;

/// sum += M v of a block of rows whose coefficients lie column by column, v's entries `step` apart.
/// Returns the end of M.
template <int W, bool kShared, int... r>
[[gnu::always_inline]] inline const double* add_columns(const double* M, int columns,
                                                        const double* v, int step,
                                                        Vec<W> (&sum)[sizeof...(r)],
                                                        std::integer_sequence<int, r...> /*rows*/) {
  constexpr int kStride = static_cast<int>(sizeof...(r)) * kStep<W, kShared>;
  for (int j = 0; j < columns; ++j, M += kStride, v += step) {
    const Vec<W> in = Vec<W>::load(v);
    ((sum[r] = fma(coefficient<W, kShared>(M, r), in, sum[r])), ...);
  }
  return M;
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

/// Where the coefficients of a sweep are read next.
struct Sweep {
  const double* step;
  const double* input;
};

template <int W, bool kShared, int... r>
[[gnu::always_inline]] inline void advance_rows(const LinearTask& t, const GroupArrays& at,
                                                const int* states, Sweep& sweep,
                                                std::integer_sequence<int, r...> rows) {
  Vec<W> sum[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
  const double* M = add_columns<W, kShared>(sweep.step, t.shape->n, at.x, W, sum, rows);
  sweep.step = add_columns<W, kShared>(M, t.shape->p, at.a, t.stride, sum, rows);
  if (at.driven) {
    sweep.input = add_columns<W, kShared>(sweep.input, t.shape->q, at.input, W, sum, rows);
  }
  ((Vec<W>::load(at.x + states[r] * W) + sum[r]).store(at.next + states[r] * W), ...);
}

template <int W, bool kShared>
[[gnu::always_inline]] inline void advance_block(const LinearTask& t, const GroupArrays& at,
                                                 int rows, const int* states, Sweep& sweep) {
  switch (rows) {
    case 1:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<1>());
    case 2:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<2>());
    case 3:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<3>());
    case 4:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<4>());
    case 5:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<5>());
    default:
      return advance_rows<W, kShared>(t, at, states, sweep, Rows<kRowsAtOnce>());
  }
}

/// States that follow others, whose x⁺ is there.
template <int W, bool kShared>
[[gnu::always_inline]] inline void advance_followers(const LinearTask& t, const GroupArrays& at,
                                                     Sweep& sweep) {
  const LinearEntry* const entries = t.shape->followers;
  const double* const start = t.shape->followers_have_rows ? at.next : at.x;
  const int count = t.shape->follower_count;
  for (int e = 0; e < count;) {
    const int row = entries[e].row;
    Vec<W> sum = Vec<W>::all(0.0);
    do {
      const int column = entries[e].column * W;
      const Vec<W> both = Vec<W>::load(at.x + column) + Vec<W>::load(at.next + column);
      sum = fma(coefficient<W, kShared>(sweep.step, e), both, sum);
    } while (++e < count && entries[e].row == row);
    (Vec<W>::load(start + row * W) + sum).store(at.next + row * W);
  }
  sweep.step += count * kStep<W, kShared>;
}

template <int W, bool kShared, int... r>
[[gnu::always_inline]] inline void freeze_ports(const LinearTask& t, Sweep& sweep, const double* x,
                                                double* b0, bool driven,
                                                std::integer_sequence<int, r...> ports) {
  // Ports are few: each has two sums, so that none waits for the one before.
  constexpr int kStride = static_cast<int>(sizeof...(r)) * kStep<W, kShared>;
  Vec<W> sum[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
  Vec<W> other[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
  const double* M = sweep.step;
  int j = 0;
  for (; j + 2 <= t.shape->n; j += 2, M += 2 * kStride) {
    const Vec<W> even = Vec<W>::load(x + j * W), odd = Vec<W>::load(x + j * W + W);
    ((sum[r] = fma(coefficient<W, kShared>(M, r), even, sum[r])), ...);
    ((other[r] = fma(coefficient<W, kShared>(M + kStride, r), odd, other[r])), ...);
  }
  sweep.step = add_columns<W, kShared>(M, t.shape->n - j, x + j * W, W, sum, ports);
  if (driven) {
    sweep.input =
        add_columns<W, kShared>(sweep.input, t.shape->q, x + t.shape->n * W, W, sum, ports);
  }
  ((sum[r] + other[r]).store(b0 + r * W), ...);
}

/// b⁰ = Cx (+ C_u ū), given x and ū behind it.
template <int W, bool kShared>
[[gnu::always_inline]] inline void freeze_group(const LinearTask& t, Sweep sweep, const double* x,
                                                double* b0, bool driven) {
  int i = 0;
  for (; i + kPortsAtOnce <= t.shape->p; i += kPortsAtOnce) {
    freeze_ports<W, kShared>(t, sweep, x, b0 + i * W, driven, Rows<kPortsAtOnce>());
  }
  for (; i < t.shape->p; ++i) {
    freeze_ports<W, kShared>(t, sweep, x, b0 + i * W, driven, Rows<1>());
  }
}

/// 0 in lanes whose x⁺ and b are finite. A part with ports shows x⁺ by b⁰⁺ = Cx⁺: whatever is not
/// finite in a sum of products stays so.
template <int W>
[[gnu::always_inline]] inline Vec<W> finite_check(const LinearTask& t, const GroupArrays& at,
                                                  const double* b0) {
  const Vec<W> zero = Vec<W>::all(0.0);
  Vec<W> check = zero;
  for (int j = 0; j < t.shape->p; ++j) {
    check = fma(Vec<W>::load(at.b + j * t.stride) + Vec<W>::load(b0 + j * W), zero, check);
  }
  for (int i = 0; t.shape->p == 0 && i < t.shape->n; ++i) {
    check = fma(Vec<W>::load(at.next + i * W), zero, check);
  }
  return check;
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
template <int W, bool kShared, int P>
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
  scatter_group<W, kShared, P>(t, g);
  Sweep sweep{group.step, group.input};
  const int* states = s.row_states;
  for (int k = 0; k < s.block_count; ++k) {
    const int rows = s.block_rows[k];
    advance_block<W, kShared>(t, at, rows, states, sweep);
    states += rows;
  }
  advance_followers<W, kShared>(t, at, sweep);
  double* b0 = t.next + g * s.p * W;
  freeze_group<W, kShared>(t, sweep, at.next, b0, false);
  const Vec<W> check = finite_check<W>(t, at, b0);
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

template <int W, int P>
int advance_groups(const LinearTask& t) {
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane =
        t.groups[g].shared ? advance_group<W, true, P>(t, g) : advance_group<W, false, P>(t, g);
    if (lane < W && bad < 0) bad = static_cast<int>(g) * W + lane;
  }
  return bad;
}

template <int W>
int advance(const LinearTask& t) {
  switch (t.shape->p) {
    case 1:
      return advance_groups<W, 1>(t);
    case 2:
      return advance_groups<W, 2>(t);
    default:
      return advance_groups<W, 0>(t);
  }
}

template <int W, bool kShared>
void freeze_one(const LinearTask& t, long g) {
  constexpr int S = kStep<W, kShared>;
  const LinearShape& s = *t.shape;
  const LinearGroup& group = t.groups[g];
  const double* x = t.record + t.states + g * (s.n + s.q) * W;
  const Sweep ports{group.step + (s.row_count * (s.n + s.p) + s.follower_count) * S,
                    group.input + s.row_count * s.q * S};
  freeze_group<W, kShared>(t, ports, x, t.record + g * s.p * W, t.driven);
}

template <int W>
void freeze(const LinearTask& t) {
  for (long g = t.first; g < t.last; ++g) {
    t.groups[g].shared ? freeze_one<W, true>(t, g) : freeze_one<W, false>(t, g);
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
