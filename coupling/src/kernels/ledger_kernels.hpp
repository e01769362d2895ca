#pragma once

#include <cstddef>

#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

struct IslandAccountsTask;

/// Energies of the lanes [first, last) of one batch over one step; every pointer is to an array
/// whose entry 0 belongs to the batch's lane 0.
struct LedgerTask {
  int first = 0;
  int last = 0;
  int ports = 0;
  int stride = 0;
  const double* a = nullptr;
  const double* b = nullptr;
  EnergyColumns step;  ///< of the step that is examined
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

/// A part of a small island: its entry in the columns, and where its waves lie in a wave array.
struct PartPorts {
  int entry = 0;
  int ports = 0;
  int wave = 0;
  int stride = 0;
};

/// Energies of one island of up to kMostParts parts over one step; arrays are those of the whole system.
struct SmallIslandTask {
  static constexpr int kMostParts = 8;

  const PartPorts* parts = nullptr;
  int count = 0;
  const double* a = nullptr;
  const double* b = nullptr;
  EnergyColumns step;
  // As in LedgerTask.
  const double* storage_before = nullptr;
  double* storage = nullptr;
  double* residual = nullptr;
  double* tolerance = nullptr;
  double* mismatch = nullptr;
  double accepted = 0.0;
  /// The sums go here, one every `apart`, in the order of LedgerTotals.
  double* sums = nullptr;
  std::ptrdiff_t apart = 1;
};

/// Where the parts of many alike islands lie: entry first[p] + i·step[p] is that of part p of island
/// i.
struct IslandEntries {
  int islands = 0;
  int parts = 0;
  const int* first = nullptr;
  const int* step = nullptr;
};

/// The sums and maxima of LedgerKernels::totals, for many islands. `accepted` is by island.
struct IslandSumsTask {
  IslandEntries at;
  LedgerColumns columns;  ///< their `accepted` is not used
  const double* accepted = nullptr;
  double* change = nullptr;
  double* supply = nullptr;
  double* dissipated = nullptr;
  double* mismatch = nullptr;
  double* tolerance = nullptr;
  double* largest_residual = nullptr;
  double* largest_excess = nullptr;
};

struct LedgerKernels {
  void (*account)(const LedgerTask&);
  /// The same for the parts of a chunk, and what `totals` would give of them.
  LedgerTotals (*account_chunk)(const LedgerTask&, double accepted);
  /// The same for all parts of one small island; the sums go where the task says.
  void (*account_island)(const SmallIslandTask&);
  /// Writes to `out` directly: a copy of numbers that were just written would wait for the stores.
  void (*totals)(const LedgerColumns& columns, const int* index, int count, LedgerTotals* out);
  void (*norms)(const NormTask&);
  /// Σ values[index[i]], i < count (index null: values[i]), in eight interleaved partial sums that
  /// are then added pairwise: the order depends on count alone.
  double (*sum)(const double* values, const int* index, int count);
  void (*island_sums)(const IslandSumsTask&);
  void (*judge_islands)(const IslandAccountsTask&);
  void (*settle_islands)(const IslandAccountsTask&);
};

const LedgerKernels& ledger_kernels();

PORTWAVE_DECLARE_KERNELS(const LedgerKernels kLedgerKernels)

}  // namespace portwave
