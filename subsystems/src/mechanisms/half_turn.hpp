#pragma once

#include <cmath>

namespace portwave {

/// cos χ, sin χ and sin(χ)/χ to round-off, χ being half the angle of a step: by series where it is small, as in all
/// steps but coarse ones.
struct HalfTurn {
  double cosine, sine, sinc;

  HalfTurn() = default;
  explicit HalfTurn(double half) {
    const double square = half * half;
    if (square < kSmall) {
      cosine = 1.0 + square * (-1.0 / 2.0 +
                               square * (1.0 / 24.0 + square * (-1.0 / 720.0 + square / 40320.0)));
      sinc = sinc_of_small(square);
      sine = half * sinc;
    } else {
      cosine = std::cos(half);
      sine = std::sin(half);
      sinc = sine / half;
    }
  }

  /// sin(z)/z alone.
  static double sinc_of(double z) {
    return z * z < kSmall ? sinc_of_small(z * z) : std::sin(z) / z;
  }

 private:
  static constexpr double kSmall = 1e-2;  ///< what the series leave out is below 1e-16

  static double sinc_of_small(double square) {
    return 1.0 + square * (-1.0 / 6.0 +
                           square * (1.0 / 120.0 + square * (-1.0 / 5040.0 + square / 362880.0)));
  }
};

}  // namespace portwave
