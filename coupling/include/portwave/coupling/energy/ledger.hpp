#pragma once

#include <cstdint>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Energies of one committed macro-step over the whole system [J].
struct StepLedger {
  double stored_J = 0.0;      ///< H(xⁿ⁺¹): H₀ and all changes, added up with compensation
  double changed_J = 0.0;     ///< H(xⁿ⁺¹) − H(xⁿ), formed from increments
  double supplied_J = 0.0;    ///< through the external inputs
  double dissipated_J = 0.0;  ///< inside the parts
  double mismatch_J =
      0.0;  ///< ½(|bⁿ⁺¹|² − |â|²): what the unconverged interface took from the parts
  double tank_J = 0.0;                    ///< Σ over islands of T, after the step
  double max_passivity_residual_J = 0.0;  ///< the largest r_i of the step
  /// The passivity guard: the smallest GuardUse::alpha of the step (1: it did not act), and the sum
  /// of GuardUse::withheld_J.
  double alpha = 1.0;
  double withheld_J = 0.0;
};

/// What a part did with energy in the last step [J]. Up to rounding
///   changed = supplied + through_ports − dissipated.
struct PartEnergies {
  double changed_J = 0.0;
  double supplied_J = 0.0;       ///< through its external inputs
  double through_ports_J = 0.0;  ///< ½(|a|² − |b|²): into it through its ports
  double dissipated_J = 0.0;
};

/// Where the stored energy of an island exceeded what was there and what was supplied, by more than
/// rounding.
struct EnergyGrowth {
  int island = 0;
  std::int64_t step = 0;  ///< after which it was largest
  double beyond_J = 0.0;  ///< H − (H₀ + T₀ + supply)
  double ratio = 0.0;     ///< (H − supply)/(H₀ + T₀); infinite when the denominator is 0
};

/// What the passivity guard did to an island in a step.
struct GuardUse {
  int island;
  double alpha;       ///< 1 − |a − â|/|â|, a being what was committed in place of â
  double withheld_J;  ///< by how much ½(|b|² − |a|²) was raised: energy that had no source
};

/// What the passivity guard did in a run.
struct GuardStatistics {
  std::int64_t steps = 0;   ///< in which it acted on some island
  std::int64_t uses = 0;    ///< steps counted once per island it acted on
  std::int64_t trials = 0;  ///< commits that were made again
  double min_alpha = 1.0;
  double withheld_J = 0.0;
};

/// Energies of a run, summed in step order [J]. Up to round-off
///   final − initial = supplied − dissipated − mismatch.
struct EnergyTotals {
  double initial_J = 0.0;
  double final_J = 0.0;
  double max_J = 0.0;  ///< largest stored energy over n = 0, 1, …
  double supplied_J = 0.0;
  double dissipated_J = 0.0;
  double mismatch_J = 0.0;
  double initial_tank_J = 0.0;
  double tank_J = 0.0;
  double given_up_J = 0.0;  ///< by tanks at their cap
  /// What has gone into parts that do not know their energy since the start, in final_J; negative:
  /// they have given more than they took.
  double metered_J = 0.0;
  /// What rounding may have left in the accounts of the islands so far, a bound; both laws are
  /// judged up to it.
  double rounding_J = 0.0;
  /// max over n of (Hⁿ + Σ max(Tⁿ, 0) − supplyⁿ)/(H₀ + T₀); NaN when the denominator is 0.
  double max_energy_ratio = 0.0;
};

}  // namespace portwave
