#include "network/explicit/gauss_interpolation.hpp"

#include <cmath>
#include <numbers>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

GaussInterpolation::GaussInterpolation(int points) {
  constexpr int kMostTurns = 100;
  for (int i = points; i >= 1; --i) {
    double x = std::cos(std::numbers::pi * (i - 0.25) / (points + 0.5));
    for (int turn = 0; turn < kMostTurns; ++turn) {
      double before = 1.0, value = x;  // P of one degree less, and P
      for (int n = 2; n <= points; ++n) {
        const double next = ((2 * n - 1) * x * value - (n - 1) * before) / n;
        before = value;
        value = next;
      }
      const double slope = points * (x * value - before) / (x * x - 1.0);
      const double moved = x - value / slope;
      const bool is_met = std::abs(moved - x) <= 2e-16;
      x = moved;
      if (is_met) break;
    }
    places_.push_back(0.5 * (1.0 + x));
  }
}

void GaussInterpolation::to_powers(double* values) const {
  const int n = points();
  for (int k = 0; k + 1 < n; ++k) {
    for (int i = n - 1; i > k; --i) {
      values[i] = (values[i] - values[i - 1]) / (places_[at(i)] - places_[at(i - k - 1)]);
    }
  }
  for (int k = n - 2; k >= 0; --k) {
    for (int i = k; i + 1 < n; ++i) values[i] -= places_[at(k)] * values[i + 1];
  }
}

}  // namespace portwave
