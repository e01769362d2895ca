#include "kernels/linear_kernels.hpp"

#include <utility>

#include "kernels/linear_accounts.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

namespace portwave::PORTWAVE_ISA {
namespace {

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

/// Where a group's coefficients for a phase are.
struct Sweep {
  long step = 0;
  long input = 0;
};

/// x⁺ = x + increment of a state, and of its integral while both are in registers.
template <int W, bool kShared>
[[gnu::always_inline]] inline void advance_state(const LinearTask& t, long g, const GroupArrays& at,
                                                 const LinearRow& row, Vec<W> increment,
                                                 const double* k, int r) {
  const Vec<W> x = Vec<W>::load(at.x + row.state), next = x + increment;
  next.store(at.next + row.state);
  if (row.integral < 0) return;
  const Vec<W> moved =
      fma(coefficient<W, kShared>(k, r), twice_the_stage<W>(t, g, x, next), Vec<W>::all(0.0));
  (Vec<W>::load(at.x + row.integral) + moved).store(at.next + row.integral);
}

/// States that have rows of their own: x⁺ = x + ((Φ − I)x + Ψa + Ψ_u ū), a block of rows at a time.
template <int W, bool kShared, int... r>
void advance_rows(const LinearTask& t, const Tile& tile, const LinearRow* states,
                  const Sweep& at_block, std::integer_sequence<int, r...> rows) {
  const LinearShape& s = *t.shape;
  for (long g = tile.first; g < tile.last; ++g) {
    const GroupArrays at = arrays_of<W>(t, tile, g);
    Vec<W> sum[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
    const double* M =
        add_columns<W, kShared>(t.groups[g].step + at_block.step, s.n, at.x, W, sum, rows);
    M = add_columns<W, kShared>(M, s.p, at.a, t.stride, sum, rows);
    if (at.driven) {
      const double* N = t.groups[g].input + at_block.input;
      add_columns<W, kShared>(N, s.q, at.input, W, sum, rows);
    }
    (advance_state<W, kShared>(t, g, at, states[r], sum[r], M, r), ...);
  }
}

template <int W, bool kShared>
void advance_block(const LinearTask& t, const Tile& tile, int rows, const LinearRow* states,
                   const Sweep& at) {
  switch (rows) {
    case 1:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<1>());
    case 2:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<2>());
    case 3:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<3>());
    case 4:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<4>());
    case 5:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<5>());
    default:
      return advance_rows<W, kShared>(t, tile, states, at, Rows<kRowsAtOnce>());
  }
}

/// Integrals of several states, or several integrals of one state; x⁺ of these states is known.
template <int W, bool kShared>
void advance_integrals(const LinearTask& t, const Tile& tile, const Sweep& sweep) {
  const LinearShape& s = *t.shape;
  const int count = s.integral_count;
  for (long g = tile.first; g < tile.last; ++g) {
    const GroupArrays at = arrays_of<W>(t, tile, g);
    const double* const k = t.groups[g].step + sweep.step;
    const double* const start = s.integrals_have_rows ? at.next : at.x;
    const LinearOffsets* e = s.integrals;
    for (int i = 0; i < count;) {
      const long row = e[i].row;
      Vec<W> sum = Vec<W>::all(0.0);
      do {
        const Vec<W> both = twice_the_stage<W>(t, g, Vec<W>::load(at.x + e[i].column),
                                               Vec<W>::load(at.next + e[i].column));
        sum = fma(coefficient<W, kShared>(k, i), both, sum);
      } while (++i < count && e[i].row == row);
      (Vec<W>::load(start + row) + sum).store(at.next + row);
    }
  }
}

/// b⁰ = Cx (+ C_u ū) of a block of ports, x and ū behind it being in `record`, b⁰ in `out`.
template <int W, bool kShared, int... r>
void freeze_ports(const LinearTask& t, const Tile& tile, const double* record, double* out,
                  int port, const Sweep& sweep, std::integer_sequence<int, r...> ports) {
  // Ports are few: each has two sums, so that none waits for the one before.
  constexpr int kStride = static_cast<int>(sizeof...(r)) * kStep<W, kShared>;
  const LinearShape& s = *t.shape;
  for (long g = tile.first; g < tile.last; ++g) {
    const double* x = record + t.states + g * (s.n + s.q) * W;
    const double* M = t.groups[g].step + sweep.step;
    Vec<W> sum[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
    Vec<W> other[] = {(static_cast<void>(r), Vec<W>::all(0.0))...};
    int j = 0;
    for (; j + 2 <= s.n; j += 2, M += 2 * kStride) {
      const Vec<W> even = Vec<W>::load(x + j * W), odd = Vec<W>::load(x + j * W + W);
      ((sum[r] = fma(coefficient<W, kShared>(M, r), even, sum[r])), ...);
      ((other[r] = fma(coefficient<W, kShared>(M + kStride, r), odd, other[r])), ...);
    }
    add_columns<W, kShared>(M, s.n - j, x + j * W, W, sum, ports);
    if (tile.driven[g - tile.first]) {
      const double* N = t.groups[g].input + sweep.input;
      add_columns<W, kShared>(N, s.q, x + s.n * W, W, sum, ports);
    }
    double* b0 = out + (g * s.p + port) * W;
    ((sum[r] + other[r]).store(b0 + r * W), ...);
  }
}

/// Given where C is.
template <int W, bool kShared>
void freeze_tile(const LinearTask& t, const Tile& tile, const double* record, double* out,
                 Sweep sweep) {
  constexpr int S = kStep<W, kShared>;
  const LinearShape& s = *t.shape;
  for (int i = 0; i < s.p;) {
    const int ports = s.p - i >= kPortsAtOnce ? kPortsAtOnce : 1;
    if (ports == kPortsAtOnce) {
      freeze_ports<W, kShared>(t, tile, record, out, i, sweep, Rows<kPortsAtOnce>());
    } else {
      freeze_ports<W, kShared>(t, tile, record, out, i, sweep, Rows<1>());
    }
    i += ports;
    sweep.step += ports * s.n * S;
    sweep.input += ports * s.q * S;
  }
}

/// The first lane, counted in the batch, whose x⁺ or b is not finite, or −1. A part with ports shows
/// x⁺ by b⁰⁺ = Cx⁺: whatever is not finite in a sum of products stays so.
template <int W, int P>
int first_not_finite(const LinearTask& t, const Tile& tile) {
  const Vec<W> zero = Vec<W>::all(0.0);
  const LinearShape& s = *t.shape;
  const int p = P > 0 ? P : s.p;
  for (long g = tile.first; g < tile.last; ++g) {
    const double* b0 = t.next + g * p * W;
    Vec<W> check = zero;
    for (int j = 0; j < p; ++j) {
      check = fma(Vec<W>::load(t.b + g * W + j * t.stride), zero, check);
      check = fma(Vec<W>::load(b0 + j * W), zero, check);
    }
    for (int i = 0; p == 0 && i < s.n; ++i) {
      check = fma(Vec<W>::load(arrays_of<W>(t, tile, g).next + i * W), zero, check);
    }
    if (!all_at_most(check, zero)) return static_cast<int>(g) * W + first_above(check, zero);
  }
  return -1;
}

/// Finds the groups with inputs that are not zero; inputs of the next step are, until it is frozen.
template <int W>
void find_driven(const LinearTask& t, Tile& tile) {
  const LinearShape& s = *t.shape;
  for (bool& driven : tile.driven) driven = false;
  for (long g = tile.first; t.may_be_driven && g < tile.last; ++g) {
    const GroupArrays at = arrays_of<W>(t, tile, g);
    bool& driven = tile.driven[g - tile.first];
    for (int j = 0; j < s.q; ++j) {
      const Vec<W> size = abs(Vec<W>::load(at.input + j * W));
      driven = driven || !all_at_most(size, Vec<W>::all(0.0));
      Vec<W>::all(0.0).store(at.next + (s.n + j) * W);
    }
  }
}

/// Where C is in a group's coefficients.
template <int W, bool kShared>
Sweep ports_of(const LinearShape& s) {
  constexpr long S = kStep<W, kShared>;
  return {(s.row_count * (s.n + s.p + 1) + s.integral_count) * S, s.row_count * s.q * S};
}

/// The first lane that is not finite, or −1.
template <int W, bool kShared, int P>
int advance_tile(const LinearTask& t, Tile& tile) {
  constexpr int S = kStep<W, kShared>;
  const LinearShape& s = *t.shape;
  find_driven<W>(t, tile);
  for (long g = tile.first; g < tile.last; ++g) scatter_group<W, kShared, P>(t, g);
  Sweep sweep;
  const LinearRow* states = s.rows;
  for (int k = 0; k < s.block_count; ++k) {
    const int rows = s.block_rows[k];
    advance_block<W, kShared>(t, tile, rows, states, sweep);
    states += rows;
    sweep.step += rows * (s.n + s.p + 1) * S;
    sweep.input += rows * s.q * S;
  }
  if (s.integral_count > 0) advance_integrals<W, kShared>(t, tile, sweep);
  Tile undriven = tile;
  for (bool& driven : undriven.driven) driven = false;
  freeze_tile<W, kShared>(t, undriven, t.next, t.next, ports_of<W, kShared>(s));
  if (t.energy.wanted()) account_tile<W, kShared>(t, tile);
  return first_not_finite<W, P>(t, tile);
}

/// From `first` on.
Tile next_tile(const LinearTask& t, long first) {
  Tile tile{first, first + 1, {}};
  while (tile.last < t.last && tile.last - first < Tile::kGroups &&
         t.groups[tile.last].shared == t.groups[first].shared) {
    ++tile.last;
  }
  return tile;
}

template <int W, int P>
int advance_tiles(const LinearTask& t) {
  int bad = -1;
  for (long g = t.first; g < t.last;) {
    Tile tile = next_tile(t, g);
    const int lane =
        t.groups[g].shared ? advance_tile<W, true, P>(t, tile) : advance_tile<W, false, P>(t, tile);
    if (bad < 0) bad = lane;
    g = tile.last;
  }
  return bad;
}

/// Σⱼ M[first + j·step] vⱼ from `sum` on, v's entries `apart` from each other.
inline double add_terms(double sum, const double* M, int step, int count, const double* v,
                        int apart) {
  for (int j = 0; j < count; ++j) sum = __builtin_fma(M[j * step], v[j * apart], sum);
  return sum;
}

/// b⁰ of one lane, as freeze_ports makes it, with C at `M`.
[[gnu::always_inline]] inline void freeze_lane(int n, int p, const double* M, const double* x,
                                               double* b0) {
  for (int i = 0; i < p;) {
    const int ports = p - i >= kPortsAtOnce ? kPortsAtOnce : 1;
    for (int r = 0; r < ports; ++r) {
      const int even = n / 2;
      double sum = add_terms(0.0, M + r, 2 * ports, even, x, 2);
      const double other = add_terms(0.0, M + ports + r, 2 * ports, even, x + 1, 2);
      if (n % 2 != 0) sum = __builtin_fma(M[(n - 1) * ports + r], x[n - 1], sum);
      b0[i + r] = sum + other;
    }
    M += ports * n;
    i += ports;
  }
}

/// What is rare with one lane is in functions of its own, so that what is not has the registers.
[[gnu::noinline]] inline bool find_driven_lane(const LinearTask& t, long g) {
  Tile tile{g, g + 1, {}};
  find_driven<1>(t, tile);
  return tile.driven[0];
}
[[gnu::noinline]] inline double add_inputs(double sum, const double* N, int rows, int inputs,
                                           const double* input) {
  return add_terms(sum, N, rows, inputs, input, 1);
}
[[gnu::noinline]] inline void account_lane(const LinearTask& t, long g, bool driven) {
  const LinearShape& s = *t.shape;
  const Tile tile{g, g + 1, {driven}};
  const int sizes = s.work_size();
  double work[LinearTask::kOnStack];
  double* const own = sizes <= LinearTask::kOnStack ? work : t.work + g * sizes;
  account_group<1, false>(t, t.groups[g], arrays_of<1>(t, tile, g), g, own);
}

/// One lane alone, the same operations without what eight are worth. −1, or the lane if it is not finite.
/// P ports and N states, or any number of them for 0.
template <int P, int N>
[[gnu::always_inline]] inline int advance_lane(const LinearTask& t, long g) {
  const LinearShape& s = *t.shape;
  const LinearGroup& group = t.groups[g];
  const int p = P > 0 ? P : s.p, n = N > 0 ? N : s.n, q = s.q;
  const bool driven = q > 0 && t.may_be_driven && find_driven_lane(t, g);
  const long states = t.states + g * (n + q);
  const GroupArrays at{
      t.record + states, t.record + states + n, t.next + states, t.a + g, t.b + g, driven};
  scatter_group<1, false, P>(t, g);
  const double* M = group.step;
  const double* of_inputs = group.input;
  const LinearRow* row = s.rows;
  for (int k = 0; k < s.block_count; ++k) {
    const int rows = s.block_rows[k];
    for (int r = 0; r < rows; ++r, ++row) {
      double sum = add_terms(0.0, M + r, rows, n, at.x, 1);
      sum = add_terms(sum, M + n * rows + r, rows, p, at.a, t.stride);
      if (driven) sum = add_inputs(sum, of_inputs + r, rows, q, at.input);
      advance_state<1, false>(t, g, at, *row, {sum}, M + (n + p) * rows, r);
    }
    M += rows * (n + p + 1);
    of_inputs += rows * q;
  }
  if (s.integral_count > 0) {
    advance_integrals<1, false>(t, {g, g + 1, {driven}}, {M - group.step, 0});
    M += s.integral_count;
  }
  double* b0 = t.next + g * p;
  freeze_lane(n, p, M, at.next, b0);
  if (t.energy.wanted()) {
    if (s.dissipation_count > 0 || driven || s.damping > 0.0) {
      account_lane(t, g, driven);
    } else {
      t.energy.change_J[g] = stored_change<1, false, N>(s, group, at, nullptr).part;
      t.energy.dissipated_J[g] = t.energy.external_supply_J[g] = 0.0;
    }
  }
  double check = 0.0;
  for (int j = 0; j < p; ++j) {
    check = __builtin_fma(at.b[j * t.stride], 0.0, check);
    check = __builtin_fma(b0[j], 0.0, check);
  }
  for (int i = 0; p == 0 && i < n; ++i) check = __builtin_fma(at.next[i], 0.0, check);
  return check <= 0.0 ? -1 : static_cast<int>(g);
}

template <int P, int N>
int advance_alone(const void* task) {
  const LinearTask& t = *static_cast<const LinearTask*>(task);
  int bad = -1;
  for (long g = t.first; g < t.last; ++g) {
    const int lane = advance_lane<P, N>(t, g);
    if (bad < 0) bad = lane;
  }
  return bad;
}

template <int P>
int advance_groups(const void* task) {
  return advance_tiles<kLaneGroup, P>(*static_cast<const LinearTask*>(task));
}

/// Lanes alone: by ports, and of these by states.
template <int P>
constexpr BoundCall kAdvanceAlone[] = {advance_alone<P, 0>, advance_alone<P, 1>,
                                       advance_alone<P, 2>, advance_alone<P, 3>,
                                       advance_alone<P, 4>};

BoundCall advance_of(int width, int ports, int states) {
  const int n = states <= 4 ? states : 0;
  switch (ports) {
    case 1:
      return width == 1 ? kAdvanceAlone<1>[n] : advance_groups<1>;
    case 2:
      return width == 1 ? kAdvanceAlone<2>[n] : advance_groups<2>;
    default:
      return width == 1 ? advance_alone<0, 0> : advance_groups<0>;
  }
}

template <int W>
void freeze(const LinearTask& t) {
  for (long g = t.first; g < t.last;) {
    Tile tile = next_tile(t, g);
    for (bool& driven : tile.driven) driven = t.driven;
    if (t.groups[g].shared) {
      freeze_tile<W, true>(t, tile, t.record, t.record, ports_of<W, true>(*t.shape));
    } else {
      freeze_tile<W, false>(t, tile, t.record, t.record, ports_of<W, false>(*t.shape));
    }
    g = tile.last;
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
  const GroupArrays at{x, x + s.n * W, nullptr, t.a + g * W, nullptr, t.may_be_driven};
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
    advance_of,
    [](const LinearTask& t) { t.width == 1 ? freeze<1>(t) : freeze<kLaneGroup>(t); },
    [](const LinearTask& t, double* out) {
      t.width == 1 ? increments<1>(t, out) : increments<kLaneGroup>(t, out);
    },
};

}  // namespace portwave::PORTWAVE_ISA
