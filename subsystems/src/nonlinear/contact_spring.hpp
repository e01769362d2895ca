#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "nonlinear/contact_face.hpp"
#include "nonlinear/damped_structure.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"

namespace portwave {

/// A spring that acts while it is compressed, between its scalar ports, all of which take flows:
///   d' = Nᵀf,  s = max(0, ±d − gap)
///   H = k sᵐ⁺¹/(m+1),  e = N (±k sᵐ + r d'),  m = 1 (linear) or 3/2 (Hertz)
/// with the resistance r = a k sᵐ, but no larger than what takes up all that the spring gives: a face that is
/// left faster than it springs back pushes with 0, and does not pull. H depends on s alone, and r ≥ 0, so that no
/// step takes more energy out of a contact than went into it. With two faces H, e and r are sums, and each lets go by
/// itself. The effort of each rises with d, so that a step has one solution, also from one face to the other.
class ContactSpring : public Subsystem, public DampedStructure {
 public:
  /// `signature`: one state d, no inputs, as many scalar ports as N has entries.
  ContactSpring(Signature signature, const ContactLaw& law, std::vector<double> direction);

  const ContactLaw& law() const { return law_; }
  std::span<const ContactFace> faces() const { return faces_; }
  /// N.
  std::span<const double> direction() const { return direction_; }

  std::vector<double> typical_state() const override { return {law_.reach}; }
  double storage(const double* x) const override;
  void gradient(const double* x, double* g) const override;
  void discrete_gradient(const double* x, const double* y, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* y,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override;
  bool is_smooth() const override { return false; }
  std::vector<StateLevel> state_levels() const override;
  bool constant_structure() const override { return law_.damping == 0.0; }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override;
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override;
  void damped_structure_over(const double* x, const double* dx, double step_s, double theta,
                             Structure& out) const override;
  std::string batch_key() const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  void set_resistance(double resistance, Structure& out) const;

  ContactLaw law_;
  std::vector<ContactFace> faces_;
  std::vector<double> direction_;
  Structure structure_;
};

/// Of parts that are all of that class, with as many ports and one stage; `rules`: by part.
std::unique_ptr<StepBatch> make_contact_batch(std::span<const Subsystem* const> parts,
                                              std::span<const StageRule> rules);

}  // namespace portwave
