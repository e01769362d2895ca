#pragma once

#include <cmath>
#include <limits>

#include <Eigen/Core>

#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// What rounding may leave in the energy balance of one step of a linear part. Not for hot code.
namespace step_rounding {

/// Of a sum, per unit of its terms: what it is known to, with the coefficients rounded.
constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();

/// The terms of Mx, |M||x|.
template <class Matrix>
Eigen::VectorXd terms(const Matrix& M, const Eigen::VectorXd& x) {
  return M.cwiseAbs() * x.cwiseAbs();
}

/// The outgoing waves b = σa + Cx + (D − σ)a + C_u ū of a step: ½|b|² is known to |b| times the
/// rounding of b.
template <class Lane>
double of_waves(const Lane& lane, const Eigen::VectorXd& x, const Eigen::VectorXd& a,
                const Eigen::VectorXd& input) {
  const Eigen::VectorXd b = lane.C * x + lane.D * a + lane.C_u * input;
  const Eigen::VectorXd of_b =
      terms(lane.C, x) + terms(lane.D_minus_sigma, a) + terms(lane.C_u, input);
  double sum = 0.0;
  for (Eigen::Index i = 0; i < b.size(); ++i) {
    sum += kPerTerm * (std::abs(b[i]) + kPerTerm * of_b[i]) * of_b[i];
  }
  return sum;
}

}  // namespace step_rounding
}  // namespace portwave
