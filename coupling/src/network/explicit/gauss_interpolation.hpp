#pragma once

#include <span>
#include <vector>

namespace portwave {

/// Polynomials through the points of Gauss–Legendre on [0, 1].
/// Source   coefficients: Björck & Pereyra, Math. Comp. 24 (1970), whose polynomials meet their values to
///          rounding although powers of θ are nearly alike.
class GaussInterpolation {
 public:
  explicit GaussInterpolation(int points);

  int points() const { return static_cast<int>(places_.size()); }
  std::span<const double> places() const { return places_; }
  /// Values at the places become the coefficients of 1, θ, θ², …
  void to_powers(double* values) const;

 private:
  std::vector<double> places_;
};

}  // namespace portwave
