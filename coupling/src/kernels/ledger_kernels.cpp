#include "kernels/ledger_kernels.hpp"

#include "portwave/subsystems/kernels/simd.hpp"

#ifndef PORTWAVE_ISA
#error "kernel sources are compiled with PORTWAVE_ISA set to a namespace"
#endif

namespace portwave::PORTWAVE_ISA {
namespace {

constexpr double kSmallest = 0x1.0p-1022;

inline double magnitude_of(double v) { return __builtin_fabs(v); }

/// P ports, or any number of them for P = 0.
template <int P>
void account_lanes(const LedgerTask& t) {
  const int ports = P > 0 ? P : t.ports;
  const double* a = t.a;
  const double* b = t.b;
  const double* change = t.step.change_J;
  const double* supply = t.step.external_supply_J;
  PORTWAVE_INDEPENDENT
  for (int l = t.first; l < t.last; ++l) {
    double squares = 0.0, mismatch = 0.0;
    for (int j = 0; j < ports; ++j) {
      const double in = a[j * t.stride + l], out = b[j * t.stride + l];
      squares = __builtin_fma(in, in, __builtin_fma(out, out, squares));
      mismatch = __builtin_fma(out - in, out + in, mismatch);
    }
    mismatch *= 0.5;
    const double before = t.storage_before[l], after = before + change[l];
    t.mismatch[l] = mismatch;
    t.storage[l] = after;
    t.residual[l] = change[l] + mismatch - supply[l];
    t.tolerance[l] = 1e-12 * (magnitude_of(before) + magnitude_of(after) + 0.5 * squares +
                              magnitude_of(supply[l]));
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
inline double excess(const LedgerColumns& c, int e) {
  const double scale = c.tolerance[e] > kSmallest ? c.tolerance[e] : kSmallest;
  const double lost = c.dissipated[e];
  const double defect = magnitude_of(c.residual[e] + lost) + (lost < 0.0 ? -lost : 0.0);
  return __builtin_fma(-c.accepted, scale, defect);
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

LedgerTotals totals(const LedgerColumns& c, const int* index, int count) {
  if (index == nullptr) return totals_of(c, count, [](int i) { return i; });
  return totals_of(c, count, [index](int i) { return index[i]; });
}

}  // namespace

const LedgerKernels kLedgerKernels = {account, totals, norms, sum};

}  // namespace portwave::PORTWAVE_ISA
