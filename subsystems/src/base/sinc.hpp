#pragma once

#include <cmath>

namespace portwave {

/// sin(z)/z and its derivative: increments of sines and cosines over their angle without
/// cancellation, such as (cos q − cos q⁺)/(q⁺ − q) = sin((q + q⁺)/2) sinc((q⁺ − q)/2).
struct Sinc {
  double value = 1.0;
  double slope = 0.0;

  explicit Sinc(double z) {
    const double z2 = z * z;
    if (z2 < 1e-2) {  // the next terms are below 1e-17
      value = 1.0 - z2 / 6.0 * (1.0 - z2 / 20.0 * (1.0 - z2 / 42.0 * (1.0 - z2 / 72.0)));
      slope = -z / 3.0 * (1.0 - z2 / 10.0 * (1.0 - z2 / 28.0 * (1.0 - z2 / 54.0)));
    } else {
      value = std::sin(z) / z;
      slope = (std::cos(z) - value) / z;
    }
  }
};

}  // namespace portwave
