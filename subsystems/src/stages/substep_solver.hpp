#pragma once

#include <limits>
#include <vector>

#include <Eigen/Core>

#include "core/port_closure.hpp"
#include "core/stage_layout.hpp"
#include "nonlinear/lane_solver.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {

/// A step of one part in m substeps behind its ports, whose inputs û are those of the step's stages:
///   Fₖ(δₖ, xₖ, û) = 0 for each substep, from xₖ to xₖ₊₁,   R = αû + βŷ − s a = 0,
/// as many equations R as the step has waves. Newton's method on all of them at once, in one sweep
/// through the substeps that carries how each depends on û, beginning with the solution of what is
/// linearised at x. Where that comes to nothing, one substep is solved after another for a given û
/// (LaneSolver), and Newton's method is applied to R(û) alone.
/// Cost     m LUs of size (s + 1)n per Newton step.
class SubstepSolver {
 public:
  SubstepSolver(const Subsystem& part, const StageRule& stages, int substeps,
                NewtonOptions options);

  const StageLayout& layout() const { return layout_; }
  /// Errors: ConfigError where the step is singular.
  void prepare(double step_s, const double* impedance);
  /// `input` holds those of all stages of all substeps.
  void freeze(const double* x, const double* input);
  /// b = S(a) to round-off, from the state alone.
  StepFault solve(const double* a, double* b);
  /// StepBatch::inexact_scatter: begins where the last one has ended, and stops where the error of b
  /// is seen to be small beside what the inner iteration has still to go. `last` is kept in the record
  /// of the lane, `kept_size` doubles; 0 in the first of them: there is none.
  StepFault inexact_scatter(const double* a, double* b, double* last);
  static int kept_size(const StageLayout& layout) {
    return 2 + 2 * layout.ports() + layout.states();
  }
  /// After `solve`.
  StepEnergy commit(double* x_next);
  /// After `solve`: what it may have left in the energy balance [J].
  double energy_rounding(const double* a) const;

 private:
  /// A residual of round-off, as in LaneSolver.
  static constexpr double kEnough = 4.0 * std::numeric_limits<double>::epsilon();
  /// Below this, a step that does not gain a factor 4 has met the noise of the outputs: Newton's method
  /// gains more.
  static constexpr double kNoise = 1e-9;

  double share(int k, int i, int of) const {
    return share_[static_cast<std::size_t>((k * layout_.stages + i) * layout_.stages + of)];
  }
  /// What the last column of a sweep is for.
  enum class Rest {
    none,   ///< nothing
    error,  ///< the residual of each substep, in rest_
    start,  ///< residual, gradient and external inputs of a step that is linearised at x
  };

  void place(int k);
  void begin_outputs();
  void add_outputs(int k);
  bool finish_outputs(const double* a);
  void take_structure();
  void drive();
  void differentiate(int k, const Eigen::VectorXd& moved);
  void begin_sweep();
  void carry(int k, Rest rest);
  bool close_sweep(const Eigen::VectorXd& residual);
  StepFault predict(const double* a);

  // All at once.
  bool converges(const double* a, double tolerance);
  bool iterate(const double* a, double tolerance);
  double length_of_step() const;
  bool check(const double* a, double& size);
  bool linearise(const double* a, double& size);
  bool improve(const double* a, double& size);

  // One after another.
  StepFault shoot(const double* a);
  StepFault march(const double* a, double& size);
  bool find_step();
  StepFault descend(const double* a, double& size);
  void outgoing(const double* a, double* b) const;

  StageLayout layout_;
  const Subsystem& part_;
  StagedPhysics physics_;
  LaneSolver inner_;
  int max_steps_;
  int lifted_;      ///< states and stages of one substep
  double h_ = 0.0;  ///< of a substep
  bool has_constant_structure_;
  std::vector<double> share_, root_weight_;
  std::vector<PortClosure> closures_;

  Eigen::MatrixXd starts_;    ///< n×(m + 1): x at the ends of substeps
  Eigen::MatrixXd moved_;     ///< lifted×m: the increments of the substeps
  Eigen::MatrixXd external_;  ///< external inputs by substep
  Eigen::VectorXd u_, y_, y_size_, R_, w_;
  double rounding_ = 0.0;
  double merit_ = 0.0;  ///< of the last check: what a step has to reduce

  // Scratch, of the stages of a substep where it is not lifted.
  Eigen::VectorXd start_, next_, column_;  ///< lifted
  Eigen::VectorXd own_u_, own_y_, own_size_, unused_b_;
  Eigen::VectorXd u_start_, step_, R_start_, weight_;
  Eigen::VectorXd largest_F_, largest_w_;  ///< by state, over stages and substeps
  Eigen::VectorXd rest_, gradient_, noise_, rounded_, rest_of_column_, solved_;
  Eigen::MatrixXd moved_start_;
  Eigen::MatrixXd inherited_;  ///< by substep: what roundings of its unknowns move in F
  Eigen::MatrixXd rate_, input_, output_, direct_;  ///< h(J − R), h(G − P), G + P, S + N
  Eigen::MatrixXd driven_;                          ///< by substep: h(G − P)_p V
  Eigen::MatrixXd of_delta_, of_start_, jacobian_, F_of_start_, lifted_jacobian_;
  Eigen::MatrixXd rhs_, changes_, carried_, gain_, outer_;
  Eigen::MatrixXd responses_;  ///< by substep: how increments depend on û and on the last column
  DenseLu lu_, outer_lu_;
};

}  // namespace portwave
