#pragma once

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace portwave {

/// The step of a central difference at x in a state of this typical size (> 0): ε^⅓ of the size,
/// and never so short beside |x| that rounding of x would show.
double difference_step(double typical, double x);

/// The callbacks of an estimate of typical sizes for a part with n states; both may throw or return values
/// that are not finite where x is outside their domain.
struct StorageProbe {
  std::function<double(const double* x)> value;              ///< H(x) [J]
  std::function<void(const double* x, double* g)> gradient;  ///< ∇H(x), n doubles
};

/// How large the states of a part usually are.
struct TypicalSizes {
  std::vector<double> of_states;  ///< > 0, in their own units
  std::vector<char> is_of_H;      ///< 1 for the first kind below, where H itself has a size
  bool is_arbitrary = false;      ///< H has no size, and x is 0
};

/// Typical sizes of the states near x, from H alone. For each state the first of these that there is:
///   - the reach at which ∂H/∂xᵢ stops growing as the power of the reach that it grows with from
///     the shortest reaches on: where a spring hardens, a sine bends, a capacitor saturates, H ends;
///     the other states being at x, and again at half their own typical size from x, whichever is less;
///   - |xᵢ|;
///   - the reach that changes H by the energy that states of the first kind have at theirs, else those of the
///     second, else by 1 J;
///   - 1.
/// Right to a factor of ten at best. Cost: some hundred evaluations of ∇H per state. Exceptions of the
/// callbacks are not passed on.
TypicalSizes typical_sizes(const StorageProbe& H, const std::vector<double>& x);

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
