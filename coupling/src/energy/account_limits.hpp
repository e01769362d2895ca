#pragma once

#include <limits>

namespace portwave {

inline constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

// Rounding in the account of an island.

/// Ratio of energies to their tolerance: 1/passivity_tolerance(1).
inline constexpr double kTermsPerTolerance = 1e12;
/// Error of one step in an island's account per joule that it moves. Commits are sums of several terms, in
/// which errors of up to 8ε have been observed.
inline constexpr double kRoundingPerJoule = 16.0 * kEpsilon;
/// Error of one step in any case, because products may underflow.
inline constexpr double kUnderflowOfStep_J = 1e-300;

// Limits by which the accounts of islands are judged. Shares are of the energy available: stored and in the
// tank at the start, supplied or taken since, and emitted by sources.

/// Share of the initial energy by which a law may fail, whatever the rounding.
inline constexpr double kOfTheStart = 1e-12;
/// Largest rounding in an account whose laws are judged.
inline constexpr double kKnown = 1e-6;
/// Largest rounding error of the waves of one step: larger waves carry more than any energy can pay for.
inline constexpr double kPayable = 1e-10;
/// Largest total that steps within their tolerance may take beyond their tanks, once H exceeds
/// H₀ + T₀ + supply.
inline constexpr double kTolerable = 1e-2;
/// Energies below this are not known, because they are sums of products, which underflow.
inline constexpr double kUnderflow_J = 1e-290;

}  // namespace portwave
