#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/tree_kernels.hpp"
#include "mechanisms/articulated_tree.hpp"
#include "nonlinear/cancelling_gradients.hpp"
#include "nonlinear/gradients_side_by_side.hpp"
#include "portwave/subsystems/core/point_places.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"

namespace portwave::articulated {

/// A port for forces on a point of a body, or for torques on the body.
struct Frame {
  std::string name;
  Point point;
};

/// A tree of bodies with its names, dampers and ports.
struct Design {
  Tree tree;
  std::vector<std::string> names;  ///< of the joints, by body
  std::vector<std::size_t>
      given;                    ///< by body: the number of its joint among all, fixed ones counted
  std::vector<double> damping;  ///< by body: N m s/rad or N s/m
  std::vector<bool> has_port;   ///< by body
  std::vector<Frame> frames;
  int joint_port_size() const;
};

/// The part "articulated": state (q, p), H as in Tree, ports at joints and frames.
class ArticulatedPart final : public NonlinearPortHamiltonian,
                              public LeavesPorts,
                              public PointPlaces,
                              public CancellingGradients,
                              public GradientsSideBySide {
 public:
  /// Errors: ConfigError where M is not positive definite at the default state.
  ArticulatedPart(Design design, bool allow_active);

  const Design& design() const { return design_; }

  std::shared_ptr<const Component> without_ports(const std::vector<bool>& idle) const override;
  bool place_of(int port, const double* x, double* place) const override;
  Issues check_initial_state(const double* x) const override;
  void discrete_gradient(const double* x, const double* x_next, double* g) const override;
  void discrete_gradient_jacobian(const double* x, const double* x_next,
                                  std::vector<Eigen::Triplet<double>>& jacobian) const override;
  void add_gradient_terms(const double* x, const double* x_next, const double* g,
                          double* terms) const override;
  /// Of trees that nothing holds and nothing pulls: weights are terms that others do not exceed by much.
  bool gradients_cancel() const override {
    return design_.tree.is_free() && design_.tree.gravity == 0.0;
  }
  bool structure_depends_on(int state) const override;
  void structure_over(const double* x, const double* dx, double step_s,
                      Structure& out) const override;
  std::unique_ptr<StepBatch> make_batch(std::span<const Component* const> parts) const override;
  bool takes_gradients() const override { return !kernel_bodies_.empty(); }
  void gradients(const double* x, double* g) const override;

 private:
  Design design_;
  std::vector<tree::Body> kernel_bodies_;  ///< empty: more than the kernel has room for
};

}  // namespace portwave::articulated
