#pragma once

#include <vector>

#include "portwave/coupling/certificate.hpp"
#include "portwave/coupling/ledger.hpp"
#include "portwave/coupling/wave_discretisation.hpp"

namespace portwave {

/// Keeps the energy ledger and the passivity certificate of a run, step by step, from committed
/// states and waves alone. Sums run in part order. Nothing is allocated after construction.
///
/// Per part, r = H⁺ − H − ½(|a|² − |b|²) − supply ≤ 0 up to round-off; per island, a tank
/// T ← T + ½(|b|² − |a|²) from T₀ = ½|b⁰|².
class EnergyBook {
 public:
  /// `x` and `b` are the initial states and outgoing waves, in the order of `waves`.
  EnergyBook(const WaveDiscretisation& waves, const double* x, const double* b);

  /// Books the step that committed incident waves `a`, outgoing waves `b` and `energy`.
  StepLedger book(const double* a, const double* b, const StepEnergy* energy);

  /// H of a part [J].
  double storage(int part) const { return storage_[static_cast<std::size_t>(part)]; }
  const EnergyTotals& totals() const { return totals_; }
  /// H₀ + T₀ [J].
  double initial_energy() const { return totals_.initial_J + totals_.initial_tank_J; }
  std::int64_t steps() const { return steps_; }

  double max_passivity_residual() const { return max_residual_; }
  /// Where r was largest in relation to its tolerance; -1 before the first step.
  int worst_part() const { return worst_part_; }
  std::int64_t worst_step() const { return worst_step_; }
  /// Some r exceeded its tolerance.
  bool violated() const { return violated_; }

 private:
  struct PartBook {
    int wave_first, wave_last, energy, island;
  };

  double tank_sum() const;
  void update_energy_ratio();
  void check_passivity(std::size_t part, double residual, double magnitude, StepLedger& step);

  std::vector<PartBook> parts_;
  std::vector<double> storage_;    // by part
  std::vector<double> magnitude_;  // by part
  std::vector<double> tank_;       // by island
  EnergyTotals totals_;
  std::int64_t steps_ = 0;
  double max_residual_;
  double worst_residual_ = 0.0;
  double worst_tolerance_ = 0.0;
  int worst_part_ = -1;
  std::int64_t worst_step_ = -1;
  bool violated_ = false;
};

}  // namespace portwave
