#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// The step from u towards the root of log βφ = log(r − k u), both sides being far apart, where φ grows faster there
/// than u⁴; else the Newton step of their difference. The root of an exponential, from far above, is a few such steps
/// away, while a Newton step of the difference takes it down by a factor of e.
inline double step_to_root(double u, double k, double given, double slope, double left) {
  constexpr double kFar = 2.0, kSteep = 4.0;
  const double newton = (left - given) / (k + slope), ratio = given / left;
  const bool is_far = ratio > 0.0 && std::isfinite(ratio) && !(ratio * kFar > 1.0 && ratio < kFar);
  if (!is_far || !(slope * std::abs(u) > kSteep * std::abs(given))) {
    return newton;
  }
  const double logarithmic = -std::log(ratio) / (slope / given + k / left);
  return ratio < 1.0 || std::abs(logarithmic) > std::abs(newton) ? logarithmic : newton;
}

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
    const double given = beta * phi.value, left = r - k * u, defect = given - left;
    const double terms = std::abs(k * u) + std::abs(given) + std::abs(r);
    if (std::abs(defect) <= kEpsilon * terms) return u;
    (defect > 0.0 ? high : low) = u;
    const double slope = beta * phi.slope;
    // Where φ is steep, a rounding of u moves the defect by more than one of the terms.
    if (std::abs(defect) <= kEpsilon * std::abs(u) * (k + slope)) {
      return std::clamp(u - defect / (k + slope), low, high);
    }
    double next = u + step_to_root(u, k, given, slope, left);
    const bool slow = !(std::abs(defect) <= 0.5 * last);
    if (slow || !(next > low && next < high)) next = low + 0.5 * (high - low);
    if (next == u || next == low || next == high) return u;
    last = std::abs(defect);
    u = next;
  }
  return u;
}

/// The root of u + cφ(u) = r with c ≥ 0 and φ not decreasing, from `start`: it is no farther away than the defect.
/// Newton's step where it stays within what encloses the root and halves the defect, else bisection.
template <class Law>
double rising_root(double c, double r, const Law& law, double start) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  constexpr int kMostSteps = 2100;
  double u = start, last = std::numeric_limits<double>::infinity();
  PortLawValue phi = law(u);
  if (!std::isfinite(phi.value)) return r - c * phi.value;
  // Newton's step with a slope of 1 goes to the end of what encloses the root: twice as far is within.
  const double far = u == r ? c * phi.value : 2.0 * (u + c * phi.value - r);
  double low = std::min(u, u - far), high = std::max(u, u - far);
  for (int step = 0; step < kMostSteps && low < high; ++step) {
    const double given = c * phi.value, defect = u + given - r, slope = 1.0 + c * phi.slope;
    if (std::abs(defect) <= kEpsilon * (std::abs(u) * slope + std::abs(given) + std::abs(r))) break;
    (defect > 0.0 ? high : low) = u;
    double next = u - defect / slope;
    const bool is_slow = !(std::abs(defect) <= 0.5 * last);
    if (is_slow || !(next > low && next < high)) next = low + 0.5 * (high - low);
    if (next == u || next == low || next == high) break;
    last = std::abs(defect);
    u = next;
    phi = law(u);
  }
  return u;
}

}  // namespace portwave
