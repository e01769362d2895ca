#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/certificate.hpp"
#include "portwave/coupling/ledger.hpp"
#include "portwave/coupling/part_list.hpp"
#include "portwave/coupling/wave_discretisation.hpp"
#include "portwave/subsystems/staggered.hpp"

namespace portwave {

/// Keeps the energy ledger and the passivity certificate of a run, step by step, from committed
/// states and waves alone. Sums run in part order. Nothing is allocated after construction.
///
/// Per part, r = H⁺ − H − ½(|a|² − |b|²) − supply ≤ 0 up to round-off; per island, a tank
/// T ← T + ½(|b|² − |a|²) from T₀ = ½|b⁰|². A step is booked in two acts: `examine`, lane by lane, which
/// several threads may share, and `close`, which sums up and makes it final. A step that is examined
/// but not closed has not happened.
class EnergyBook {
 public:
  /// `record` and `b` are the initial states and outgoing waves, in the order of `waves`.
  EnergyBook(const WaveDiscretisation& waves, const double* record, const double* b);
  EnergyBook(const EnergyBook&) = delete;
  EnergyBook& operator=(const EnergyBook&) = delete;

  /// Where `WaveDiscretisation::advance` is to write the energies of the step. The answer alternates
  /// between two sets of columns from one closed step to the next.
  EnergyColumns columns();
  /// What `columns` will be after the next `close`.
  EnergyColumns next_columns();

  /// Looks at lanes that committed incident waves `a` and outgoing waves `b`; `columns` are written.
  void examine(int batch, LaneRange lanes, const double* a, const double* b);
  /// Books the step. Empty when an energy is not finite: nothing is booked then.
  std::optional<StepLedger> close();
  /// After a failed `close`: the first part whose energy is not finite; where only the sum is not, the
  /// part that stores most.
  int first_non_finite() const;
  /// Both acts, for all lanes.
  std::optional<StepLedger> book(const double* a, const double* b);

  /// H of a part [J].
  double storage(int part) const;
  const EnergyTotals& totals() const { return totals_; }
  /// H₀ + T₀ [J].
  double initial_energy() const { return totals_.initial_J + totals_.initial_tank_J; }
  /// T of an island [J].
  double tank(int island) const { return tank_[static_cast<std::size_t>(island)]; }
  std::int64_t steps() const { return steps_; }
  std::size_t bytes() const;

  double max_passivity_residual() const { return max_residual_; }
  /// Where r was largest in relation to its tolerance; -1 before the first step.
  int worst_part() const { return worst_part_; }
  std::int64_t worst_step() const { return worst_step_; }
  /// Some r exceeded its tolerance.
  bool violated() const { return violated_; }

 private:
  enum Column {
    kStorage,
    kSupply,
    kDissipated,
    kMagnitude,
    kStorageBefore,
    kMagnitudeBefore,
    kResidual,
    kTolerance,
    kMismatch,
    kColumns
  };

  double* column(Column c) { return columns_[c].data(); }
  const double* column(Column c) const { return columns_[c].data(); }
  double tank_sum() const;
  void update_energy_ratio();
  void judge_passivity(double residual, double ratio);

  const WaveDiscretisation& waves_;
  StaggeredMemory memory_;
  std::span<double> columns_[kColumns];  // by entry
  PartList all_;
  std::vector<PartList> islands_;
  std::vector<double> tank_;  // by island
  EnergyTotals totals_;
  std::int64_t steps_ = 0;
  double max_residual_;
  double worst_ratio_;
  int worst_part_ = -1;
  std::int64_t worst_step_ = -1;
  bool violated_ = false;
};

}  // namespace portwave
