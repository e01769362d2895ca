#pragma once

#include <cmath>
#include <limits>

namespace portwave {

/// A central difference quotient beside the same with twice the step. Their disagreement measures
/// the truncation error, so that only a real mismatch with a derivative counts.
struct DifferenceCheck {
  double fine;       ///< quotient with step δ
  double coarse;     ///< quotient with step 2δ
  double magnitude;  ///< of the values that were subtracted
  double step;       ///< δ

  double allowed(double derivative) const {
    return 1e-5 * (std::abs(fine) + std::abs(derivative)) + 4.0 * std::abs(fine - coarse) +
           64.0 * std::numeric_limits<double>::epsilon() * magnitude / step;
  }
  /// Differences that leave the domain of the function prove nothing.
  bool is_finite() const { return std::isfinite(fine) && std::isfinite(coarse); }
  bool agrees_with(double derivative) const {
    return !is_finite() || std::abs(fine - derivative) <= allowed(derivative);
  }
};

}  // namespace portwave
