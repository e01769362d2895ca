#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// The root of k u + βφ(u) = r with k > 0 and φ not decreasing, φ(0) = 0: it lies between 0 and r/k.
/// Newton's step where it stays within what encloses the root and halves the defect, else bisection.
template <class Law>
double monotone_root(double k, double beta, double r, const Law& law) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  constexpr int kMostSteps = 2100;  // bisections from the largest double to the smallest
  const double full = r / k;
  if (full == 0.0 || !std::isfinite(full)) return full;
  double low = std::min(0.0, full), high = std::max(0.0, full);
  double u = full, last = std::numeric_limits<double>::infinity();
  for (int step = 0; step < kMostSteps; ++step) {
    const PortLawValue phi = law(u);
    const double defect = k * u + beta * phi.value - r;
    const double terms = std::abs(k * u) + std::abs(beta * phi.value) + std::abs(r);
    if (std::abs(defect) <= kEpsilon * terms) return u;
    (defect > 0.0 ? high : low) = u;
    double next = u - defect / (k + beta * phi.slope);
    const bool slow = !(std::abs(defect) <= 0.5 * last);
    if (slow || !(next > low && next < high)) next = low + 0.5 * (high - low);
    if (next == u || next == low || next == high) return u;
    last = std::abs(defect);
    u = next;
  }
  return u;
}

}  // namespace portwave
