#pragma once

#include <algorithm>
#include <cmath>

#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// Where a spring with play meets its faces.
enum class Faces {
  positive,  ///< at d = gap
  negative,  ///< at d = -gap
  both,      ///< at either: gap ≥ 0
};

struct ContactLaw {
  double stiffness = 0.0;  ///< k > 0
  double damping = 0.0;    ///< a ≥ 0
  double gap = 0.0;
  double reach = 1.0;  ///< a usual compression > 0
  bool is_hertzian = false;
  Faces faces = Faces::positive;
};

/// One face: s = max(0, side d − gap).
class ContactFace {
 public:
  ContactFace(const ContactLaw& law, double side) : law_(&law), side_(side) {}

  double side() const { return side_; }
  double compression(double d) const { return std::max(0.0, side_ * d - law_->gap); }
  double energy(double d) const {
    const double s = compression(d);
    return law_->is_hertzian ? 0.4 * law_->stiffness * s * s * std::sqrt(s)
                             : 0.5 * law_->stiffness * s * s;
  }
  /// ∂H/∂d.
  double force(double d) const { return side_ * (law_->stiffness * power(compression(d))); }
  double slope(double d) const {
    const double s = compression(d);
    if (s == 0.0) return 0.0;
    return law_->stiffness * (law_->is_hertzian ? 1.5 * std::sqrt(s) : 1.0);
  }
  /// What the spring gives in a step from x to y: (1 − θ) of the mean of k sᵐ on the way and θ of that at its end,
  /// where damped steps take it.
  double force_over(double x, double y, double theta) const {
    if (theta == 0.0) return mean_force(x, y);
    return theta == 1.0 ? force(y) : (1.0 - theta) * mean_force(x, y) + theta * force(y);
  }
  /// Its derivative by y.
  double slope_over(double x, double y, double theta) const {
    if (theta == 0.0) return mean_slope(x, y);
    return theta == 1.0 ? slope(y) : (1.0 - theta) * mean_slope(x, y) + theta * slope(y);
  }
  /// r over a step from x by Δx: of force_over, but no more than takes up what the spring gives. Then the effort is
  /// that force times max(0, 1 + a s'), and rises with Δx.
  double resistance_over(double x, double dx, double step_s, double theta) const {
    const double separation = -side_ * dx;
    const double most = separation > 0.0 ? step_s / separation : law_->damping;
    return std::abs(force_over(x, x + dx, theta)) * std::min(law_->damping, most);
  }

  /// (H(y) − H(x))/(y − x). Within contact by divided differences that do not cancel; from or to
  /// free flight the compressed end alone has energy, and it is the shorter of the two lengths.
  double mean_force(double x, double y) const { return mean(x, y).value; }
  /// Its derivative by y.
  double mean_slope(double x, double y) const { return mean(x, y).slope; }
  /// force_over and slope_over.
  PortLawValue over(double x, double y, double theta) const {
    if (theta == 0.0) return mean(x, y);
    return {force_over(x, y, theta), slope_over(x, y, theta)};
  }

 private:
  PortLawValue mean(double x, double y) const {
    const double s = compression(x), t = compression(y);
    if (s == 0.0 && t == 0.0) return {0.0, 0.0};
    if (s > 0.0 && t > 0.0) {
      if (!law_->is_hertzian) {
        return {side_ * (0.5 * law_->stiffness * (s + t)), 0.5 * law_->stiffness};
      }
      // In roots: g = N/(a + b), dy = 2b db.
      const double a = std::sqrt(s), b = std::sqrt(t), c = a + b;
      const double N = a * a * a * a + a * b * (a * a + a * b + b * b) + b * b * b * b;
      const double dN = a * a * a + 2.0 * a * a * b + 3.0 * a * b * b + 4.0 * b * b * b;
      const double unit = 0.4 * law_->stiffness;
      return {side_ * (unit * N / c),
              y == x ? 0.5 * slope(x) : unit * (dN * c - N) / (c * c) / (2.0 * b)};
    }
    const double force_of_mean = side_ * (energy(s > 0.0 ? x : y) / std::abs(y - x));
    return {force_of_mean, (force(y) - force_of_mean) / (y - x)};
  }
  double power(double s) const { return law_->is_hertzian ? s * std::sqrt(s) : s; }

  const ContactLaw* law_;
  double side_;  ///< 1: touched as d grows; -1: as it falls
};

}  // namespace portwave
