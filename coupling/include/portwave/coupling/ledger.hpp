#pragma once

#include <cstdint>

namespace portwave {

/// Energies of one committed macro-step over the whole system [J].
struct StepLedger {
  double stored_J = 0.0;      ///< H(xⁿ⁺¹)
  double supplied_J = 0.0;    ///< through the external inputs
  double dissipated_J = 0.0;  ///< inside the parts
  double mismatch_J =
      0.0;  ///< ½(|bⁿ⁺¹|² − |â|²): what the unconverged interface took from the parts
  double tank_J = 0.0;                    ///< Σ over islands of T, after the step
  double max_passivity_residual_J = 0.0;  ///< the largest r_i of the step
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
  /// max over n of (Hⁿ + Σ max(Tⁿ, 0) − supplyⁿ)/(H₀ + T₀); NaN when the denominator is 0.
  double max_energy_ratio = 0.0;
};

}  // namespace portwave
