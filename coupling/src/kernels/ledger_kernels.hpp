#pragma once

#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// Energies of the lanes [first, last) of one batch over one step; every pointer is to an array
/// whose entry 0 belongs to the batch's lane 0.
struct LedgerTask {
  int first = 0;
  int last = 0;
  int ports = 0;
  int stride = 0;
  const double* a = nullptr;
  const double* b = nullptr;
  EnergyColumns step;  ///< of the step that is booked
  const double* storage_before = nullptr;
  double* storage = nullptr;    ///< H⁺, carried along
  double* residual = nullptr;   ///< r = H⁺ − H − ½(|a|² − |b|²) − supply
  double* tolerance = nullptr;  ///< 1e-12 of the energies that the step moves
  double* mismatch = nullptr;   ///< ½(|b|² − |a|²), as Σ ½(b − a)(b + a)
};

/// Squared norms per lane.
struct NormTask {
  int first = 0;
  int last = 0;
  int ports = 0;
  int stride = 0;
  const double* u = nullptr;
  const double* b = nullptr;
  const double* exchanged = nullptr;
  double* gap = nullptr;  ///< |P b − u|²
  double* incident = nullptr;
  double* outgoing = nullptr;
};

/// Sums of a step over parts, in the order and manner of LedgerKernels::sum, and two maxima: of r,
/// and of what does not balance, |r + dissipated| (+ |dissipated| where that is negative, so that
/// it is no less than r), less `accepted` times the tolerance.
struct LedgerTotals {
  double change, supply, dissipated, mismatch, tolerance, largest_residual, largest_excess;
};
struct LedgerColumns {
  const double* change;
  const double* supply;
  const double* dissipated;
  const double* mismatch;
  const double* residual;
  const double* tolerance;
  double accepted;
};

struct LedgerKernels {
  void (*account)(const LedgerTask&);
  LedgerTotals (*totals)(const LedgerColumns& columns, const int* index, int count);
  void (*norms)(const NormTask&);
  /// Σ values[index[i]], i < count (index null: values[i]), in eight interleaved partial sums that
  /// are then added pairwise: the order depends on count alone.
  double (*sum)(const double* values, const int* index, int count);
};

const LedgerKernels& ledger_kernels();

namespace baseline {
extern const LedgerKernels kLedgerKernels;
}
namespace v3 {
extern const LedgerKernels kLedgerKernels;
}
namespace v4 {
extern const LedgerKernels kLedgerKernels;
}

}  // namespace portwave
