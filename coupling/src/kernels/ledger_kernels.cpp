#include "kernels/ledger_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {

constexpr double kSmallest = 0x1.0p-1022;

inline double magnitude_of(double v) { return __builtin_fabs(v); }

/// What the step of one part comes to.
struct PartAccount {
  double mismatch, storage, residual, tolerance;
};

/// Of its `ports` waves, which are `stride` apart.
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

/// In the order of `totals`.
void account_island(const SmallIslandTask& t, LedgerTotals* out) {
  if (t.count <= 2) {
    LedgerTotals sums = kNothing;
    for (int i = 0; i < t.count; ++i) account_and_add(t, t.parts[i], sums);
    *out = sums;
    return;
  }
  LedgerTotals p[kSums];
  for (LedgerTotals& sums : p) sums = kNothing;
  for (int i = 0; i < t.count; ++i) account_and_add(t, t.parts[i], p[i]);
  *out = added(added(added(p[0], p[4]), added(p[2], p[6])),
               added(added(p[1], p[5]), added(p[3], p[7])));
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

/// As CompensatedSum::add.
inline void add_to(double& sum, double& lost, double term) {
  const double next = sum + term;
  const double taken = next - sum;
  lost += (sum - (next - taken)) + (term - taken);
  sum = next;
}

inline double add_at(const SumColumns& column, int i, double term) {
  double sum = column.sum[i], lost = column.lost[i];
  add_to(sum, lost, term);
  column.sum[i] = sum;
  column.lost[i] = lost;
  return sum + lost;
}

inline double larger(double a, double b) { return a < b ? b : a; }

/// `One`: there is one island, and no loop.
template <bool Guarded, bool One>
void judge_accounts(const IslandAccountsTask& t) {
  const int islands = One ? 1 : t.islands;
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < islands; ++i) {
    const double gained = add_at(t.gained, i, t.change[i] - t.supply[i]);
    const double moved = t.moved[i] + magnitude_of(t.supply[i]);
    t.moved[i] = moved;
    const double by_waves = t.rounding[i] + (t.limits.rounding_per_joule *
                                                 (t.limits.terms_per_tolerance * t.tolerance[i]) +
                                             t.limits.underflow_of_step_J);
    t.rounding[i] = by_waves;
    const double rounding = by_waves + t.by_states[i];
    const double small = t.limits.of_the_start * t.size[i];
    const double known = t.limits.known * (t.size[i] + moved + t.sent[i]) + t.limits.underflow_J;
    const double twice = 2.0 * by_waves;
    const double excused =
        small + (t.size[i] > 0.0 && known < twice ? known : twice) + 2.0 * t.by_states[i];
    const double beyond = gained - t.tank_at_start[i] - t.tolerated[i];
    double found = beyond <= excused ? 0.0 : 1.0;
    found += rounding <= known ? 0.0 : 1.0;
    if (Guarded) {
      const double filled = t.tank.sum[i] + t.tank.lost[i] + t.mismatch[i] + t.tolerated_of_step[i];
      const double after = t.cap < filled ? t.cap : filled;
      const double excess = gained + (after - t.tank_at_start[i]) - t.tolerated[i];
      found += excess <= small + rounding ? 0.0 : 1.0;
      found += (t.mismatch[i] < 0.0 ? after : 0.0) < -rounding ? 1.0 : 0.0;
    }
    t.remarkable[i] = found;
  }
}

void judge_islands(const IslandAccountsTask& t) {
  if (t.islands == 1) {
    return t.guarded ? judge_accounts<true, true>(t) : judge_accounts<false, true>(t);
  }
  t.guarded ? judge_accounts<true, false>(t) : judge_accounts<false, false>(t);
}

template <bool One, bool Totals>
void settle_accounts(const IslandAccountsTask& t) {
  const int islands = One ? 1 : t.islands;
  PORTWAVE_INDEPENDENT
  for (int i = 0; i < islands; ++i) {
    double tank = t.tank.sum[i], tank_lost = t.tank.lost[i];
    add_to(tank, tank_lost, t.mismatch[i]);
    // Adding 0 changes nothing.
    add_to(tank, tank_lost, t.tolerated_of_step[i]);
    const double full = tank + tank_lost;
    const bool is_over = full > t.cap;
    add_at(t.given_up, i, is_over ? full - t.cap : 0.0);
    tank = is_over ? t.cap : tank;
    tank_lost = is_over ? 0.0 : tank_lost;
    t.tank.sum[i] = tank;
    t.tank.lost[i] = tank_lost;
    const double energy = add_at(t.stored, i, t.change[i]);
    if (Totals) {
      const double supplied = add_at(t.supplied, i, t.supply[i]);
      t.max_stored[i] = larger(t.max_stored[i], energy);
      add_at(t.dissipated_in_all, i, t.dissipated[i]);
      add_at(t.mismatched, i, t.mismatch[i]);
      t.max_residual[i] = larger(t.max_residual[i], t.largest_residual[i]);
      const double held = tank + tank_lost;
      const double reserve = held < 0.0 ? 0.0 : held;
      t.max_ratio[i] =
          larger(t.max_ratio[i], (energy + reserve - supplied) * t.per_initial_energy[i]);
    }
  }
}

void settle_islands(const IslandAccountsTask& t) {
  if (t.totals) return settle_accounts<false, true>(t);
  t.islands == 1 ? settle_accounts<true, false>(t) : settle_accounts<false, false>(t);
}

}  // namespace

const LedgerKernels kLedgerKernels = {account, account_chunk, account_island, totals,        norms,
                                      sum,     island_sums,   judge_islands,  settle_islands};

}  // namespace portwave::PORTWAVE_ISA
