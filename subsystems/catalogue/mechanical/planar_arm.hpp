#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <memory>
#include <vector>

#include <Eigen/Core>

#include "mechanisms/half_turn.hpp"
#include "mechanisms/mechanism_batch.hpp"

namespace portwave::planar {

using Numbers = std::vector<double>;

inline constexpr int kMostLinks = 20;

using Vector = Eigen::Matrix<double, Eigen::Dynamic, 1, 0, kMostLinks, 1>;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, 0, kMostLinks, kMostLinks>;

/// The coefficients of the arm in absolute angles θ_k = q_1 + … + q_k:
///   T = ½ Σ_ab A_ab cos(θ_a − θ_b) ω_a ω_b,   V = g Σ_a μ_a (1 − cos θ_a).
struct Arm {
  int links = 0;
  Vector lengths;
  Matrix A;
  Vector weights;  ///< g μ_a
};

/// Which ports there are.
struct ArmPorts {
  std::vector<bool> joints;  ///< by joint
  bool tip = false;

  int of_joints() const { return static_cast<int>(std::ranges::count(joints, true)); }
};

/// act(joint, moments of forces of 1 N along x and y), over a step on which the absolute angle of link k turns from
/// angle_at(k) by turn_at(k): chosen so that mean speeds give the way of the tip exactly, Δ sin θ = Δθ cos θ̄ sinc ½Δθ.
template <class AngleAt, class TurnAt, class Act>
void for_tip_moments(const Arm& arm, const AngleAt& angle_at, const TurnAt& turn_at,
                     const Act& act) {
  double across = 0.0, along = 0.0;
  for (int k = arm.links - 1; k >= 0; --k) {
    const double half = 0.5 * turn_at(k), middle = angle_at(k) + half;
    const double reach = arm.lengths[k] * HalfTurn::sinc_of(half);
    across += reach * std::cos(middle);
    along += reach * std::sin(middle);
    act(k, across, along);
  }
}

/// Sums of relative angles.
inline std::array<double, kMostLinks> absolute_angles(const Arm& arm, const double* x) {
  std::array<double, kMostLinks> theta;
  double angle = 0.0;
  for (int k = 0; k < arm.links; ++k) theta[static_cast<std::size_t>(k)] = angle += x[k];
  return theta;
}

/// The steps of an arm in absolute angles, with the discrete gradient of PlanarArm and M⁺v⁺ in place of M⁻¹.
/// What it is made of must outlive it.
std::unique_ptr<Mechanism> make_arm_mechanism(const Arm& arm, const Numbers& damping,
                                              const ArmPorts& ports);

}  // namespace portwave::planar
