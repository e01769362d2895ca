#pragma once

#include <algorithm>
#include <cstddef>
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
/// T ← min(T + ½(|b|² − |a|²), cap) from T₀ = ½|b⁰|² or as TankOptions say. A step is booked in three
/// acts: `examine`, lane by lane, which several threads may share; `tally`, which sums up; and `close`,
/// which makes it final. A step that is not closed has not happened; lanes may be examined and tallied
/// again.
class EnergyBook {
 public:
  /// `record` and `b` are the initial states and outgoing waves, in the order of `waves`.
  /// `guarded`: the two laws of the guard are checked as well.
  EnergyBook(const WaveDiscretisation& waves, const double* record, const double* b,
             const TankOptions& tank = {}, bool guarded = false);
  EnergyBook(const EnergyBook&) = delete;
  EnergyBook& operator=(const EnergyBook&) = delete;

  /// Where `WaveDiscretisation::advance` is to write the energies of the step. The answer alternates
  /// between two sets of columns from one closed step to the next.
  EnergyColumns columns();
  /// What `columns` will be after the next `close`.
  EnergyColumns next_columns();

  /// Looks at lanes that committed incident waves `a` and outgoing waves `b`; `columns` are written.
  void examine(int batch, LaneRange lanes, const double* a, const double* b);
  /// Sums up. False when an energy is not finite.
  bool tally();
  /// After `tally`: T of an island as it will be.
  double prospect(int island) const {
    const auto i = static_cast<std::size_t>(island);
    return std::min(tank_[i] + mismatch_[i], cap_);
  }
  /// After `tally`: whether the step takes more from an island's tank than is in it, by more than the
  /// round-off of the terms, 8ε(H + T + ½|a|² + ½|b|²). Or, on an island of passive parts, whether
  /// H + T grows by more than 1e-9 of what is there and supplied: then the waves are so much larger than
  /// that, as with impedances far from those of the parts, that the account of a passive step is not
  /// computable with them.
  bool overdraws(int island, const double* a, const double* b) const;
  /// Books the tallied step, of which the guard has to say what `alpha` and `withheld_J` are.
  StepLedger close(const double* a, const double* b, double alpha = 1.0, double withheld_J = 0.0);
  /// After a failed `tally`: the first part whose energy is not finite; where only the sum is not, the
  /// part that stores most.
  int first_non_finite() const;
  /// All acts, for all lanes. Empty when an energy is not finite: nothing is booked then.
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
  /// Some r exceeded its tolerance; or, if guarded, a law of the guard did not hold on some island.
  bool violated() const { return violated_ || broken_law_.has_value(); }
  const std::optional<BrokenLaw>& broken_law() const { return broken_law_; }

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
  bool creates(int island) const;
  void judge_laws(const double* a, const double* b);

  const WaveDiscretisation& waves_;
  StaggeredMemory memory_;
  std::span<double> columns_[kColumns];  // by entry
  PartList all_;
  std::vector<PartList> islands_;
  IslandParts parts_;
  std::vector<double> tank_;  // by island
  double cap_;
  bool guarded_;
  // Of the step that is tallied: sums of all parts, and mismatches by island.
  StepLedger tallied_;
  double worst_ratio_of_step_ = 0.0;
  double terms_of_step_J_ = 0.0;
  /// The second law of an island.
  struct Balance {
    double start = 0.0;     // H₀ + T₀
    double size = 0.0;      // Σ|Hᵢ| + T₀ at the start
    double supplied = 0.0;  // so far
    double moved = 0.0;     // Σ|supply| so far
    bool passive = true;    // no part is active
    double terms = 0.0;     // of all r so far: what round-off is multiplied by
  };
  std::vector<Balance> balance_;  // by island, if guarded
  std::vector<double> mismatch_, stored_, stored_before_, supplied_;
  EnergyTotals totals_;
  std::int64_t steps_ = 0;
  double max_residual_;
  double worst_ratio_;
  int worst_part_ = -1;
  std::int64_t worst_step_ = -1;
  bool violated_ = false;
  std::optional<BrokenLaw> broken_law_;
};

}  // namespace portwave
