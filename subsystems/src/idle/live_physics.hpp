#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "idle/live_columns.hpp"
#include "nonlinear/damped_structure.hpp"
#include "portwave/subsystems/core/subsystem.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// The physics of a part without its idle ports: all of it is asked of the given part, and the matrices have
/// the columns of the remaining inputs. Solved by the general Newton solver.
class LivePhysics final : public Subsystem, public DampedStructure {
 public:
  LivePhysics(std::shared_ptr<const Component> given, LiveColumns columns, NewtonOptions options);

  Capabilities capabilities() const override { return given_->capabilities(); }
  bool is_active() const override { return given_->is_active(); }
  std::vector<double> default_state() const override { return given_->default_state(); }
  std::vector<double> typical_state() const override { return given_->typical_state(); }
  Issues check_initial_state(const double* x) const override {
    return given_->check_initial_state(x);
  }
  double storage(const double* x) const override { return physics_.storage(x); }
  double storage_terms() const override { return physics_.storage_terms(); }
  void gradient(const double* x, double* g) const override { physics_.gradient(x, g); }
  void discrete_gradient(const double* x, const double* x_next, double* g) const override {
    physics_.discrete_gradient(x, x_next, g);
  }
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override {
    physics_.discrete_gradient_jacobian(x, x_next, jacobian);
  }
  void add_gradient_terms(const double* x, const double* x_next, const double* g,
                          double* terms) const override {
    physics_.add_gradient_terms(x, x_next, g, terms);
  }
  bool hessian(const double* x, std::vector<Eigen::Triplet<double>>& hessian) const override {
    return physics_.hessian(x, hessian);
  }
  bool is_smooth() const override { return physics_.is_smooth(); }
  std::vector<StateLevel> state_levels() const override { return physics_.state_levels(); }
  bool constant_structure() const override { return physics_.constant_structure(); }
  bool structure_depends_on(int state) const override {
    return physics_.structure_depends_on(state);
  }
  const Structure& structure() const override { return structure_; }
  void structure_at(const double* x_mid, Structure& out) const override;
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override;
  void damped_structure_over(const double* x, const double* dx, double step_s, double theta,
                             Structure& out) const override;
  void stop_at_bounds(double* x_next) const override { physics_.stop_at_bounds(x_next); }
  bool has_port_laws() const override { return physics_.has_port_laws(); }
  PortLawValue port_law(int scalar_port, double u) const override;
  bool has_vertical_laws() const override { return physics_.has_vertical_laws(); }
  PortLawPoint port_law_point(int scalar_port, double k, double beta, double r,
                              const double* external) const override;
  PortBranch port_branch(int scalar_port, const double* external) const override;
  bool is_linear() const override { return physics_.is_linear(); }
  LinearForm linear_form() const override { return physics_.linear_form(); }
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;

 private:
  /// fill(structure of the given part), then its columns into `out`.
  template <class Fill>
  void take(const Fill& fill, Structure& out) const;

  std::shared_ptr<const Component> given_;
  const Subsystem& physics_;
  LiveColumns columns_;
  NewtonOptions options_;
  Structure structure_;
  mutable Structure all_columns_;  ///< scratch of whoever has set `taken_`
  mutable std::atomic<bool> taken_ = false;
};

}  // namespace portwave
