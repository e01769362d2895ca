#pragma once

#include <memory>
#include <span>

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace PORTWAVE_EXPORT portwave {

/// What must act on the velocities of a mechanism so that it moves as asked:
///   τ = M(q)a + Ṁ(q)v + ∂H/∂q + D v, from  x' = (J − R)∇H + (0, τ),  x = (q, p),  p = M(q)v,  v' = a,
/// with joint dampers D. For controllers: computed torque, and compensation of gravity. Of parts whose last states are
/// momenta, of which H is quadratic, with an input for each that acts on it alone: "articulated" and "planar_arm", and
/// parts of one's own of that shape. τ are the values of these inputs: N m, or N. Quaternions may have any length;
/// velocities that belong to one are in the axes of the body.
/// Cost     a gradient, a Hessian and a structure of the part, and a Cholesky factor; no allocation of its own.
/// Threads  one at a time.
class InverseDynamics {
 public:
  /// Errors: ConfigError where the part is no such mechanism.
  explicit InverseDynamics(std::shared_ptr<const Component> part);
  ~InverseDynamics();

  int positions() const;
  int velocities() const;

  /// τ at positions q, velocities v and accelerations a. Errors: std::runtime_error where M is not positive definite.
  void torques(std::span<const double> q, std::span<const double> v, std::span<const double> a,
               std::span<double> out);
  /// τ that holds it still at q: that of its weight.
  void gravity(std::span<const double> q, std::span<double> out);
  /// p = M(q)v, such as to start from.
  void momenta(std::span<const double> q, std::span<const double> v, std::span<double> out);
  /// v = M(q)⁻¹p.
  void velocities_of(std::span<const double> q, std::span<const double> p, std::span<double> out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace portwave
