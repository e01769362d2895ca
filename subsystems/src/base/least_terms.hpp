#pragma once

namespace portwave {

/// The least sum of terms beside which a residual is judged: numbers near the smallest ones have no digits left, such
/// as waves far from all motion in a long chain.
inline constexpr double kLeastTerms = 1e-290;

}  // namespace portwave
