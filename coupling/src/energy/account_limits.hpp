#pragma once

#include "energy/step_rounding.hpp"

namespace portwave {

// What the accounts of islands are judged by. Shares are of what there is to pay with: what was stored and in
// the tank at the start, what was supplied or taken since, and what sources send by themselves.

/// Share of what was there at the start that a law may be out by, whatever is known of rounding.
inline constexpr double kOfTheStart = 1e-12;
/// What rounding may have left in an account whose laws are judged.
inline constexpr double kKnown = 1e-6;
/// What the waves of one step may leave by their rounding: larger ones carry what no energy can pay for.
inline constexpr double kPayable = 1e-10;
/// What steps within their tolerance may take beyond their tanks, all together, once H exceeds H₀ + T₀ + supply.
inline constexpr double kTolerable = 1e-2;
/// Energies are sums of products, which underflow to anything below it.
inline constexpr double kUnderflow_J = 1e-290;

/// What one step may leave in an account, `tolerance_J` being that of its passivity residuals.
inline double rounding_of_terms(double tolerance_J) {
  return kRoundingPerJoule * (kTermsPerTolerance * tolerance_J) + kUnderflowOfStep_J;
}

}  // namespace portwave
