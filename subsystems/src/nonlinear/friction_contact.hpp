#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Core>

#include "nonlinear/contact_face.hpp"
#include "nonlinear/damped_structure.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

struct FrictionContactLaw {
  ContactLaw normal;       ///< of the negative face of d = nᵀx
  Eigen::VectorXd n;       ///< out of the plane, of length 1, with 2 or 3 components
  double friction = 0.0;   ///< μ ≥ 0
  double creep_speed = 1;  ///< v₀ > 0
  Eigen::MatrixXd B;       ///< from the flows of the ports to the velocity of the surface
};

/// The contact of a body with a plane, with Coulomb friction:
///   x' = u = B f,  d = nᵀx,  s = max(0, −d − gap),  H = k sᵐ⁺¹/(m+1)
///   e = Bᵀ(−n N + μ N tanh(|u_t|/v₀) u_t/|u_t|),  N = k sᵐ max(0, 1 + a s'),  u_t = u − n nᵀu
/// N is that of the step, hence never negative, and friction is at most μN and against the slip at each of them.
/// What it takes is h u_tᵀ(friction) ≥ 0, so that no step gives more than it got. N depends on nᵀu alone, and friction
/// for a given N is the gradient of a convex function of u_t: the wave relation has one solution where impedances tie
/// slip and approach no more than μ allows, and always where the normal is an axis. It is not monotone: what is pressed
/// harder while it slides is held back more.
/// Step     one stage, damped or not; a damped one takes N at the end of the step.
/// Source   law of the normal force as ContactFace; the cone of Coulomb, regularised.
class FrictionContact final : public Subsystem, public DampedStructure {
 public:
  /// `signature`: a state per entry of n, as many scalar ports as B has columns, all of which take flows; no inputs.
  FrictionContact(Signature signature, FrictionContactLaw law);

  const FrictionContactLaw& law() const { return law_; }
  const ContactFace& face() const { return face_; }

  std::vector<double> default_state() const override;
  std::vector<double> typical_state() const override;
  double storage(const double* x) const override { return face_.energy(height(x)); }
  void gradient(const double* x, double* g) const override;
  void discrete_gradient(const double* x, const double* y, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  bool is_smooth() const override { return false; }
  std::vector<StateLevel> state_levels() const override;
  bool constant_structure() const override { return false; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override;
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override;
  void damped_structure_over(const double* x, const double* dx, double step_s, double theta,
                             Structure& out) const override;
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

  /// nᵀx.
  double height(const double* x) const;
  /// Friction at a slip of `speed`, over both and the normal force: μ tanh(v/v₀)/v.
  double grip(double speed) const;

 private:
  void set_resistance(double normal, double tangential, Structure& out) const;
  void add_normal_products(double factor, std::vector<Eigen::Triplet<double>>& out) const;

  FrictionContactLaw law_;
  ContactFace face_;
  Structure structure_;
};

/// Of parts that are all of that class and shape, with one stage, damped or not.
std::unique_ptr<StepBatch> make_friction_contact_batch(std::span<const Subsystem* const> parts,
                                                       const StageRule& rule);

}  // namespace portwave
