#pragma once

#include "energy/step_rounding.hpp"

namespace portwave {

// Limits by which the accounts of islands are judged. Shares are of the energy available: stored and in the
// tank at the start, supplied or taken since, and emitted by sources.

/// Share of the initial energy by which a law may be out, whatever the rounding.
inline constexpr double kOfTheStart = 1e-12;
/// Largest rounding in an account whose laws are judged.
inline constexpr double kKnown = 1e-6;
/// Largest rounding error of the waves of one step: larger waves carry more than any energy can pay for.
inline constexpr double kPayable = 1e-10;
/// Largest total that steps within their tolerance may take beyond their tanks, once H exceeds
/// H₀ + T₀ + supply.
inline constexpr double kTolerable = 1e-2;
/// Energies are sums of products, which underflow to anything below it.
inline constexpr double kUnderflow_J = 1e-290;

/// Largest error of one step in an account, `tolerance_J` being that of its passivity residuals.
inline double rounding_of_terms(double tolerance_J) {
  return kRoundingPerJoule * (kTermsPerTolerance * tolerance_J) + kUnderflowOfStep_J;
}

}  // namespace portwave
