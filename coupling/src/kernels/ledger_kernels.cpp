#include "kernels/ledger_kernels.hpp"

#include "energy/island_account.hpp"
#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {

constexpr double kSmallest = 0x1.0p-1022;

inline double magnitude_of(double v) { return __builtin_fabs(v); }

/// The account of one part in a step.
struct PartAccount {
  double mismatch, storage, residual, tolerance;
};

/// Formed from the `ports` waves of the part, which are `stride` apart.
[[gnu::always_inline]] inline PartAccount account_of(const double* a, const double* b, int ports,
                                                     int stride, double before, double change,
                                                     double supply) {
  double squares = 0.0, mismatch = 0.0;
  for (int j = 0; j < ports; ++j) {
    const double in = a[j * stride], out = b[j * stride];
    squares = __builtin_fma(in, in, __builtin_fma(out, out, squares));
    mismatch = __builtin_fma(out - in, out + in, mismatch);
  }
  mismatch *= 0.5;
  const double after = before + change;
  return {
      mismatch, after, change + mismatch - supply,
      1e-12 * (magnitude_of(before) + magnitude_of(after) + 0.5 * squares + magnitude_of(supply))};
}

/// P ports, or any number of them for P = 0.
template <int P>
void account_lanes(const LedgerTask& t) {
  const int ports = P > 0 ? P : t.ports;
  PORTWAVE_INDEPENDENT
  for (int l = t.first; l < t.last; ++l) {
    const PartAccount own = account_of(t.a + l, t.b + l, ports, t.stride, t.storage_before[l],
                                       t.step.change_J[l], t.step.external_supply_J[l]);
    t.mismatch[l] = own.mismatch;
    t.storage[l] = own.storage;
    t.residual[l] = own.residual;
    t.tolerance[l] = own.tolerance;
  }
}

void account(const LedgerTask& t) {
  switch (t.ports) {
    case 1:
      return account_lanes<1>(t);
    case 2:
      return account_lanes<2>(t);
    case 4:
      return account_lanes<4>(t);
    default:
      return account_lanes<0>(t);
  }
}

template <int P>
void norm_lanes(const NormTask& t) {
  const int ports = P > 0 ? P : t.ports;
  PORTWAVE_INDEPENDENT
  for (int l = t.first; l < t.last; ++l) {
    double gap = 0.0, incident = 0.0, outgoing = 0.0;
    for (int j = 0; j < ports; ++j) {
      const int w = j * t.stride + l;
      const double g = t.exchanged[w] - t.u[w];
      gap = __builtin_fma(g, g, gap);
      incident = __builtin_fma(t.u[w], t.u[w], incident);
      outgoing = __builtin_fma(t.b[w], t.b[w], outgoing);
    }
    t.gap[l] = gap;
    t.incident[l] = incident;
    t.outgoing[l] = outgoing;
  }
}

void norms(const NormTask& t) {
  switch (t.ports) {
    case 1:
      return norm_lanes<1>(t);
    case 2:
      return norm_lanes<2>(t);
    case 4:
      return norm_lanes<4>(t);
    default:
      return norm_lanes<0>(t);
  }
}

constexpr int kSums = 8;

double sum(const double* values, const int* index, int count) {
  double part[kSums] = {};
  int i = 0;
  if (index == nullptr) {
    for (; i + kSums <= count; i += kSums) {
      for (int k = 0; k < kSums; ++k) part[k] += values[i + k];
    }
    for (; i < count; ++i) part[i % kSums] += values[i];
  } else {
    for (; i + kSums <= count; i += kSums) {
      for (int k = 0; k < kSums; ++k) part[k] += values[index[i + k]];
    }
    for (; i < count; ++i) part[i % kSums] += values[index[i]];
  }
  return ((part[0] + part[4]) + (part[2] + part[6])) + ((part[1] + part[5]) + (part[3] + part[7]));
}

/// What does not balance, less what is accepted: at least r − …, and equal to |r + dissipated| − …
/// where nothing is active.
inline double excess(double residual, double lost, double tolerance, double accepted) {
  const double scale = tolerance > kSmallest ? tolerance : kSmallest;
  const double defect = magnitude_of(residual + lost) + (lost < 0.0 ? -lost : 0.0);
  return __builtin_fma(-accepted, scale, defect);
}
inline double excess(const LedgerColumns& c, int e) {
  return excess(c.residual[e], c.dissipated[e], c.tolerance[e], c.accepted);
}

/// May lose a NaN: where there is one, a sum of the energies is not finite either.
inline double larger_of_finite(double a, double b) { return a < b ? b : a; }

/// The same sums as below, where most of the eight are empty.
template <class At>
inline LedgerTotals totals_of_few(const LedgerColumns& c, int count, const At& at) {
  LedgerTotals sums{0.0, 0.0, 0.0, 0.0, 0.0, -__builtin_inf(), -__builtin_inf()};
  for (int i = 0; i < count; ++i) {
    const int e = at(i);
    sums.change += c.change[e];
    sums.supply += c.supply[e];
    sums.dissipated += c.dissipated[e];
    sums.mismatch += c.mismatch[e];
    sums.tolerance += c.tolerance[e];
    sums.largest_residual = larger_of_finite(sums.largest_residual, c.residual[e]);
    sums.largest_excess = larger_of_finite(sums.largest_excess, excess(c, e));
  }
  return sums;
}

template <class At>
inline LedgerTotals totals_of(const LedgerColumns& c, int count, const At& at) {
  if (count <= 2) return totals_of_few(c, count, at);
  double change[kSums] = {}, supply[kSums] = {}, dissipated[kSums] = {}, mismatch[kSums] = {};
  double tolerance[kSums] = {};
  double residual[kSums], beyond[kSums];
  for (int k = 0; k < kSums; ++k) residual[k] = beyond[k] = -__builtin_inf();
  const auto take = [&](int k, int e) {
    change[k] += c.change[e];
    supply[k] += c.supply[e];
    dissipated[k] += c.dissipated[e];
    mismatch[k] += c.mismatch[e];
    tolerance[k] += c.tolerance[e];
    residual[k] = larger_of_finite(residual[k], c.residual[e]);
    beyond[k] = larger_of_finite(beyond[k], excess(c, e));
  };
  int i = 0;
  for (; i + kSums <= count; i += kSums) {
    for (int k = 0; k < kSums; ++k) take(k, at(i + k));
  }
  for (; i < count; ++i) take(i % kSums, at(i));
  for (int k = 1; k < kSums; ++k) {
    residual[0] = larger_of_finite(residual[0], residual[k]);
    beyond[0] = larger_of_finite(beyond[0], beyond[k]);
  }
  const auto add = [](const double* v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
  };
  return {add(change),    add(supply), add(dissipated), add(mismatch),
          add(tolerance), residual[0], beyond[0]};
}

/// Running sums and maxima of `totals`, W of the eight side by side.
template <int W>
struct RunningTotals {
  Vec<W> change, supply, dissipated, mismatch, tolerance, residual, beyond;
};

template <int W>
inline Vec<W> larger_of(Vec<W> a, Vec<W> b) {
  return where_at_most(b, a, a, b);
}

/// Lanes l to l + W, as `account` and `totals` do them.
template <int P, int W>
inline void account_and_add(const LedgerTask& t, int l, double accepted, RunningTotals<W>& sums) {
  using V = Vec<W>;
  const int ports = P > 0 ? P : t.ports;
  V squares = V::all(0.0), mismatch = V::all(0.0);
  for (int j = 0; j < ports; ++j) {
    const V in = V::load(t.a + j * t.stride + l), out = V::load(t.b + j * t.stride + l);
    squares = fma(in, in, fma(out, out, squares));
    mismatch = fma(out - in, out + in, mismatch);
  }
  mismatch = mismatch * V::all(0.5);
  const V change = V::load(t.step.change_J + l), supply = V::load(t.step.external_supply_J + l);
  const V lost = V::load(t.step.dissipated_J + l), before = V::load(t.storage_before + l);
  const V after = before + change, residual = change + mismatch - supply;
  const V tolerance =
      V::all(1e-12) * (abs(before) + abs(after) + V::all(0.5) * squares + abs(supply));
  mismatch.store(t.mismatch + l);
  after.store(t.storage + l);
  residual.store(t.residual + l);
  tolerance.store(t.tolerance + l);
  sums.change = sums.change + change;
  sums.supply = sums.supply + supply;
  sums.dissipated = sums.dissipated + lost;
  sums.mismatch = sums.mismatch + mismatch;
  sums.tolerance = sums.tolerance + tolerance;
  const V zero = V::all(0.0), smallest = V::all(kSmallest);
  const V scale = where_at_most(tolerance, smallest, smallest, tolerance);
  const V defect = abs(residual + lost) + where_at_most(zero, lost, zero, negate(lost));
  sums.residual = larger_of(sums.residual, residual);
  sums.beyond = larger_of(sums.beyond, fma(V::all(-accepted), scale, defect));
}

template <int P>
LedgerTotals account_chunk_of(const LedgerTask& t, double accepted) {
  using V = Vec<kSums>;
  const V none = V::all(0.0), least = V::all(-__builtin_inf());
  RunningTotals<kSums> sums{none, none, none, none, none, least, least};
  int l = t.first;
  for (; l + kSums <= t.last; l += kSums) account_and_add<P>(t, l, accepted, sums);
  double stored[7][kSums];
  const V* const columns[] = {&sums.change,    &sums.supply,   &sums.dissipated, &sums.mismatch,
                              &sums.tolerance, &sums.residual, &sums.beyond};
  for (int c = 0; c < 7; ++c) columns[c]->store(stored[c]);
  for (int k = 0; l < t.last; ++l, ++k) {
    RunningTotals<1> own{{stored[0][k]}, {stored[1][k]}, {stored[2][k]}, {stored[3][k]},
                         {stored[4][k]}, {stored[5][k]}, {stored[6][k]}};
    account_and_add<P>(t, l, accepted, own);
    stored[0][k] = own.change.part;
    stored[1][k] = own.supply.part;
    stored[2][k] = own.dissipated.part;
    stored[3][k] = own.mismatch.part;
    stored[4][k] = own.tolerance.part;
    stored[5][k] = own.residual.part;
    stored[6][k] = own.beyond.part;
  }
  for (int k = 1; k < kSums; ++k) {
    stored[5][0] = larger_of_finite(stored[5][0], stored[5][k]);
    stored[6][0] = larger_of_finite(stored[6][0], stored[6][k]);
  }
  const auto add = [](const double* v) {
    return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
  };
  return {add(stored[0]), add(stored[1]), add(stored[2]), add(stored[3]),
          add(stored[4]), stored[5][0],   stored[6][0]};
}

LedgerTotals account_chunk(const LedgerTask& t, double accepted) {
  switch (t.ports) {
    case 1:
      return account_chunk_of<1>(t, accepted);
    case 2:
      return account_chunk_of<2>(t, accepted);
    case 4:
      return account_chunk_of<4>(t, accepted);
    default:
      return account_chunk_of<0>(t, accepted);
  }
}

void totals(const LedgerColumns& c, const int* index, int count, LedgerTotals* out) {
  if (index == nullptr) {
    *out = totals_of(c, count, [](int i) { return i; });
  } else {
    *out = totals_of(c, count, [index](int i) { return index[i]; });
  }
}

/// Accounts for one part of a small island and takes it into the sums.
[[gnu::always_inline]] inline void account_and_add(const SmallIslandTask& t, const PartPorts& part,
                                                   LedgerTotals& sums) {
  const int e = part.entry;
  const double* const a = t.a + part.wave;
  const double* const b = t.b + part.wave;
  const double change = t.step.change_J[e], supply = t.step.external_supply_J[e];
  const double lost = t.step.dissipated_J[e], before = t.storage_before[e];
  const PartAccount own = part.ports == 1
                              ? account_of(a, b, 1, 0, before, change, supply)
                              : account_of(a, b, part.ports, part.stride, before, change, supply);
  t.mismatch[e] = own.mismatch;
  t.storage[e] = own.storage;
  t.residual[e] = own.residual;
  t.tolerance[e] = own.tolerance;
  sums.change += change;
  sums.supply += supply;
  sums.dissipated += lost;
  sums.mismatch += own.mismatch;
  sums.tolerance += own.tolerance;
  sums.largest_residual = larger_of_finite(sums.largest_residual, own.residual);
  sums.largest_excess =
      larger_of_finite(sums.largest_excess, excess(own.residual, lost, own.tolerance, t.accepted));
}

constexpr LedgerTotals kNothing{0.0, 0.0, 0.0, 0.0, 0.0, -__builtin_inf(), -__builtin_inf()};

inline LedgerTotals added(const LedgerTotals& a, const LedgerTotals& b) {
  return {a.change + b.change,
          a.supply + b.supply,
          a.dissipated + b.dissipated,
          a.mismatch + b.mismatch,
          a.tolerance + b.tolerance,
          larger_of_finite(a.largest_residual, b.largest_residual),
          larger_of_finite(a.largest_excess, b.largest_excess)};
}

inline void give(const SmallIslandTask& t, const LedgerTotals& sums) {
  double* const out = t.sums;
  const std::ptrdiff_t apart = t.apart;
  out[0] = sums.change;
  out[apart] = sums.supply;
  out[2 * apart] = sums.dissipated;
  out[3 * apart] = sums.mismatch;
  out[4 * apart] = sums.tolerance;
  out[5 * apart] = sums.largest_residual;
  out[6 * apart] = sums.largest_excess;
}

/// The sums are formed in the order of `totals`.
void account_island(const SmallIslandTask& t) {
  if (t.count <= 2) {
    LedgerTotals sums = kNothing;
    for (int i = 0; i < t.count; ++i) account_and_add(t, t.parts[i], sums);
    return give(t, sums);
  }
  LedgerTotals p[kSums];
  for (LedgerTotals& sums : p) sums = kNothing;
  for (int i = 0; i < t.count; ++i) account_and_add(t, t.parts[i], p[i]);
  give(t, added(added(added(p[0], p[4]), added(p[2], p[6])),
                added(added(p[1], p[5]), added(p[3], p[7]))));
}

/// In the order of `totals`, for up to eight parts that lie side by side with those of the next
/// islands.
template <int P>
void sums_side_by_side(const IslandSumsTask& t) {
  static_assert(P <= kSums);
  const LedgerColumns* columns = &t.columns;
  const int* first = t.at.first;
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < t.at.islands; ++i) {
    double change[kSums] = {}, supply[kSums] = {}, dissipated[kSums] = {}, mismatch[kSums] = {};
    double tolerance[kSums] = {};
    double residual = -__builtin_inf(), beyond = -__builtin_inf();
    const double accepted = t.accepted[i];
    for (int p = 0; p < P; ++p) {
      const int e = first[p] + i;
      change[p] = columns->change[e];
      supply[p] = columns->supply[e];
      dissipated[p] = columns->dissipated[e];
      mismatch[p] = columns->mismatch[e];
      tolerance[p] = columns->tolerance[e];
      const double own = columns->residual[e];
      residual = larger_of_finite(residual, own);
      const double scale = tolerance[p] > kSmallest ? tolerance[p] : kSmallest;
      const double lost = dissipated[p];
      const double defect = magnitude_of(own + lost) + (lost < 0.0 ? -lost : 0.0);
      beyond = larger_of_finite(beyond, __builtin_fma(-accepted, scale, defect));
    }
    const auto add = [](const double* v) {
      return ((v[0] + v[4]) + (v[2] + v[6])) + ((v[1] + v[5]) + (v[3] + v[7]));
    };
    t.change[i] = add(change);
    t.supply[i] = add(supply);
    t.dissipated[i] = add(dissipated);
    t.mismatch[i] = add(mismatch);
    t.tolerance[i] = add(tolerance);
    t.largest_residual[i] = residual;
    t.largest_excess[i] = beyond;
  }
}

void sums_anywhere(const IslandSumsTask& t) {
  LedgerColumns columns = t.columns;
  for (int i = 0; i < t.at.islands; ++i) {
    columns.accepted = t.accepted[i];
    const LedgerTotals own =
        totals_of(columns, t.at.parts, [&](int p) { return t.at.first[p] + i * t.at.step[p]; });
    t.change[i] = own.change;
    t.supply[i] = own.supply;
    t.dissipated[i] = own.dissipated;
    t.mismatch[i] = own.mismatch;
    t.tolerance[i] = own.tolerance;
    t.largest_residual[i] = own.largest_residual;
    t.largest_excess[i] = own.largest_excess;
  }
}

void island_sums(const IslandSumsTask& t) {
  bool side_by_side = true;
  for (int p = 0; p < t.at.parts; ++p) side_by_side = side_by_side && t.at.step[p] == 1;
  if (!side_by_side) return sums_anywhere(t);
  switch (t.at.parts) {
    case 1:
      return sums_side_by_side<1>(t);
    case 2:
      return sums_side_by_side<2>(t);
    case 3:
      return sums_side_by_side<3>(t);
    case 4:
      return sums_side_by_side<4>(t);
    default:
      return sums_anywhere(t);
  }
}

template <bool Guarded>
void judge_accounts(const IslandAccountsTask& t) {
  const AccountColumns<false> columns{t.columns, t.islands};
  const AccountRules rules{Guarded, t.rules.cap_J};
  PORTWAVE_INDEPENDENT
  for (std::ptrdiff_t i = 0; i < columns.islands; ++i) {
    IslandAccount own = columns.account(i);
    own.take_step();
    columns.keep_step(i, own);
    columns.at(IslandAccount::kRemarks, i) = own.remarks(rules);
  }
}

void judge_islands(const IslandAccountsTask& t) {
  t.rules.guarded ? judge_accounts<true>(t) : judge_accounts<false>(t);
}

template <bool Totals>
void settle_accounts(const IslandAccountsTask& t) {
  const AccountColumns<false> columns{t.columns, t.islands};
  const AccountRules rules = t.rules;
  PORTWAVE_INDEPENDENT
  for (std::ptrdiff_t i = 0; i < columns.islands; ++i) {
    IslandAccount own = columns.account(i);
    own.settle(rules);
    if (Totals) own.add_to_totals();
    columns.keep_settled(i, own);
    if (Totals) columns.keep_totals(i, own);
  }
}

void settle_islands(const IslandAccountsTask& t) {
  t.totals ? settle_accounts<true>(t) : settle_accounts<false>(t);
}

}  // namespace

const LedgerKernels kLedgerKernels = {account, account_chunk, account_island, totals,        norms,
                                      sum,     island_sums,   judge_islands,  settle_islands};

}  // namespace portwave::PORTWAVE_ISA
