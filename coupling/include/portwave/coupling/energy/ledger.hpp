#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Energies of an impulse between two steps [J]: changed = supplied − impact, over all parts.
struct ImpulseEnergies {
  double changed_J = 0.0;   ///< H(x⁺) − H(x)
  double supplied_J = 0.0;  ///< through the external inputs
  double impact_J = 0.0;    ///< the loss, as in a plastic impact

  void add(const ImpulseEnergies& other) {
    changed_J += other.changed_J;
    supplied_J += other.supplied_J;
    impact_J += other.impact_J;
  }
};

/// The share of a part in an impulse.
struct ImpulseAtPart {
  std::int64_t part = 0;
  ImpulseEnergies energies;
};

/// Energies of one committed macro-step over the whole system [J]. Impulses between the last step and this one
/// are in it.
struct StepLedger {
  double stored_J = 0.0;      ///< H(xⁿ⁺¹): H₀ and all changes, added up with compensation
  double changed_J = 0.0;     ///< H(xⁿ⁺¹) − H(xⁿ), formed from increments
  double supplied_J = 0.0;    ///< through the external inputs
  double dissipated_J = 0.0;  ///< inside the parts
  double numerical_dissipation_J = 0.0;  ///< by damped stages
  double mismatch_J =
      0.0;  ///< ½(|bⁿ⁺¹|² − |â|²): what the unconverged interface took from the parts
  double tank_J = 0.0;                    ///< Σ over islands of T, after the step
  double max_passivity_residual_J = 0.0;  ///< the largest r_i of the step
  /// The passivity guard: the smallest GuardUse::alpha of the step (1: it did not act), and the sum
  /// of GuardUse::withheld_J.
  double alpha = 1.0;
  double withheld_J = 0.0;
  /// Energy that islands within their tolerance took beyond their tanks. The guard does not change such
  /// steps.
  double tolerated_J = 0.0;
  double impact_J = 0.0;  ///< taken by impulses
};

/// The energy balance of a part in the last step [J], and in impulses before it. Up to rounding
///   changed = supplied + through_ports − dissipated − numerical_dissipation − impact.
struct PartEnergies {
  double changed_J = 0.0;
  double supplied_J = 0.0;       ///< through its external inputs
  double through_ports_J = 0.0;  ///< ½(|a|² − |b|²): into it through its ports
  double dissipated_J = 0.0;
  double numerical_dissipation_J = 0.0;  ///< by damped stages
  double impact_J = 0.0;                 ///< its share of what impulses take
};

/// Excess of an island's stored energy over the initial and supplied energy, by more than rounding.
struct EnergyGrowth {
  int island = 0;
  std::int64_t step = 0;  ///< the step after which it was largest
  double beyond_J = 0.0;  ///< H − (H₀ + T₀ + supply)
  double ratio = 0.0;     ///< (H − supply)/(H₀ + T₀); infinite when the denominator is 0
};

/// An action of the passivity guard on an island in a step.
struct GuardUse {
  int island;
  double alpha;       ///< 1 − |a − â|/|â|, a being committed in place of â
  double withheld_J;  ///< increase of ½(|b|² − |a|²): energy that had no source
  bool is_miss;       ///< more than kHarmlessChange, or more than kHarmlessEnergy of what is stored
  /// A step that the guard changes by more than this has missed its solution, and is reported.
  static constexpr double kHarmlessChange = 1e-3, kHarmlessEnergy = 1e-2;
};

constexpr std::array<std::size_t, 1> archive_flags(const GuardUse*) {
  return {offsetof(GuardUse, is_miss)};
}

/// A deficit of an island's tank that its met tolerance explains.
struct ToleratedDeficit {
  int island;
  double energy_J;
};

/// The actions of the passivity guard in a run.
struct GuardStatistics {
  std::int64_t steps = 0;   ///< in which it acted on some island
  std::int64_t uses = 0;    ///< steps counted once per island it acted on
  std::int64_t trials = 0;  ///< commits that were made again
  double min_alpha = 1.0;
  double withheld_J = 0.0;
  std::int64_t missed_steps = 0;  ///< in which some GuardUse::is_miss
  std::int64_t worst_step = -1;   ///< of these, the one with the smallest alpha
  int worst_island = -1;

  /// Counts one use, in step number `step`. Steps, trials and withheld energy are counted elsewhere.
  void take(const GuardUse& use, std::int64_t step) {
    ++uses;
    if (use.is_miss) {
      if (last_miss != step) ++missed_steps;
      last_miss = step;
      if (worst_step < 0 || use.alpha < worst_alpha) {
        worst_step = step;
        worst_island = use.island;
        worst_alpha = use.alpha;
      }
    }
    min_alpha = use.alpha < min_alpha ? use.alpha : min_alpha;
  }
  double worst_alpha = 1.0;     ///< of the worst step
  std::int64_t last_miss = -1;  ///< the last of missed_steps
};

/// Energies of a run, summed in step order [J]. Up to round-off
///   final − initial = supplied − dissipated − numerical_dissipation − mismatch − impact.
struct EnergyTotals {
  double initial_J = 0.0;
  double final_J = 0.0;
  double max_J = 0.0;  ///< largest stored energy over n = 0, 1, …
  double supplied_J = 0.0;
  double dissipated_J = 0.0;
  double numerical_dissipation_J = 0.0;  ///< by damped stages (StageRule): no physics
  double mismatch_J = 0.0;
  double initial_tank_J = 0.0;
  double tank_J = 0.0;
  double given_up_J = 0.0;  ///< by tanks at their cap
  /// Energy that steps within their tolerance took beyond their tanks: H + T ≤ H₀ + T₀ + supply + this.
  double tolerated_J = 0.0;
  /// Net energy received since the start by parts that do not know their energy. It is included in final_J.
  /// Negative: they have given more than they received.
  double metered_J = 0.0;
  /// Bound on the rounding left in the accounts of the islands so far; both laws are judged up to it.
  double rounding_J = 0.0;
  double impact_J = 0.0;  ///< taken by impulses
  /// max over n of (Hⁿ + Σ max(Tⁿ, 0) − supplyⁿ)/(H₀ + T₀); NaN when the denominator is 0.
  double max_energy_ratio = 0.0;
};

}  // namespace portwave
