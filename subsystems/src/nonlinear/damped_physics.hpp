#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "nonlinear/closed_part.hpp"
#include "nonlinear/damped_structure.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// The K of damped stages (StageRule) of a part: ∇²H at x, or of that what is positive in units of the typical
/// state. Zero where the Hessian is not finite. One thread at a time: the last one is kept.
class PositiveStiffness {
 public:
  /// `part` must outlive it. Rows and columns of the states of the bits of `conserved` are 0 (StageRule).
  explicit PositiveStiffness(const Subsystem& part, std::uint64_t conserved = 0);

  /// n×n, symmetric, positive semidefinite; valid until the next call.
  const Eigen::MatrixXd& at(const double* x);
  /// Whether that of the last call is the whole ∇²H.
  bool is_whole() const { return is_whole_; }

 private:
  void find(const double* x);

  const Subsystem& part_;
  std::vector<double> typical_;
  std::uint64_t conserved_;
  std::vector<double> x_;  ///< that of stiffness_; empty: none
  Eigen::MatrixXd stiffness_;
  bool is_whole_ = false;
  std::vector<Eigen::Triplet<double>> entries_;
};

/// ∇²H at x as (row, column, value) triplets, appended: from the part or by differences of its gradient.
void hessian_of(const Subsystem& part, const std::vector<double>& typical, const double* x,
                std::vector<Eigen::Triplet<double>>& hessian);

/// A part whose discrete gradient is that of its damped step of one stage, and everything else its own: what solves
/// its step serves. With θ of the StageRule it is
///   z = ∇̄H + θw,   w = ½K Δx,                 K of PositiveStiffness;
///                  w = ∇H(x⁺) − ∇̄H           where H is convex at some states about the default one, and all
///                                             states are damped.
/// The second is implicit Euler for θ = 1 and lets every stiff decay die, however H bends on the way; of it, where
/// wᵀΔx < 0, is taken what is left without its part along Δx. For a quadratic H both are the same. wᵀΔx ≥ 0 for
/// every H: what is taken is ≥ 0. One thread at a time.
class DampedPhysics final : public Subsystem, public NumericalDissipation {
 public:
  /// `part` must outlive it.
  DampedPhysics(const Subsystem& part, const StageRule& rule)
      : Subsystem(part.signature()),
        part_(part),
        share_(2.0 * rule.damping),
        typical_(part.typical_state()),
        stiffness_(part, rule.conserved),
        is_convex_(rule.conserved == 0 && looks_convex()) {}

  std::vector<double> typical_state() const override { return part_.typical_state(); }
  std::vector<double> default_state() const override { return part_.default_state(); }
  bool is_active() const override { return part_.is_active(); }
  double storage(const double* x) const override { return part_.storage(x); }
  double storage_terms() const override { return part_.storage_terms(); }
  void gradient(const double* x, double* g) const override { part_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  void add_gradient_terms(const double* x, const double* x_next, const double* g,
                          double* terms) const override;
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    return part_.hessian(x, hessian);
  }
  bool constant_structure() const override { return part_.constant_structure(); }
  bool structure_depends_on(int state) const override { return part_.structure_depends_on(state); }
  const Structure& structure() const override { return part_.structure(); }
  void structure_at(const double* x, Structure& out) const override { part_.structure_at(x, out); }
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override {
    portwave::damped_structure_over(part_, x, dx, step_s, is_convex_ ? share_ : 0.0, out);
  }
  void stop_at_bounds(double* x_next) const override { part_.stop_at_bounds(x_next); }
  bool has_port_laws() const override { return part_.has_port_laws(); }
  PortLawValue port_law(int scalar_port, double u) const override {
    return part_.port_law(scalar_port, u);
  }
  bool has_vertical_laws() const override { return part_.has_vertical_laws(); }
  PortLawPoint port_law_point(int scalar_port, double k, double beta, double r,
                              const double* external) const override {
    return part_.port_law_point(scalar_port, k, beta, r, external);
  }
  PortBranch port_branch(int scalar_port, const double* external) const override {
    return part_.port_branch(scalar_port, external);
  }
  double numerical_dissipation(const double* x, const double* dx) const override;

 private:
  struct Excess {
    double work = 0.0;       ///< wᵀΔx [J]
    double square = 0.0;     ///< |Δx|² in units of the typical state
    bool is_turned = false;  ///< w has lost its part along Δx
  };
  bool looks_convex();
  /// The second w of a step whose ∇̄H is `mean`.
  Excess excess(const double* x, const double* x_next, const double* mean, double* w) const;

  const Subsystem& part_;
  double share_;  ///< θ
  std::vector<double> typical_;
  mutable PositiveStiffness stiffness_;
  bool is_convex_;
};

/// A batch like that of make_newton_batch for one stage, which a rule for each part may damp (DampedPhysics).
std::unique_ptr<StepBatch> make_damped_newton_batch(std::span<const Subsystem* const> parts,
                                                    std::vector<StageRule> rules,
                                                    NewtonOptions options);

}  // namespace portwave
