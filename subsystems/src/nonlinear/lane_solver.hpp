#pragma once

#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include <Eigen/Core>

#include "nonlinear/closed_part.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/nonlinear/newton_batch.hpp"

namespace portwave {

/// What an inexact scatter leaves to the next one, in the record of its lane: the last solution and the
/// last factorised Jacobian.
struct LastSolve {
  LastSolve(double* room, int states, int waves)
      : count(room[0]),
        distance(room[1]),
        factorised(room[2]),
        a(room + 3),
        dx(a + waves),
        gradient(dx + states),
        stiffness(gradient + states),
        factors(stiffness + states),
        order(factors + static_cast<std::ptrdiff_t>(states) * states) {}
  static int size(int states, int waves) { return 3 + waves + (4 + states) * states; }

  void forget() const { count = 0.0; }

  double& count;       ///< inexact scatters since the record was frozen; 0: nothing below is valid
  double& distance;    ///< |a − a′| of the last two
  double& factorised;  ///< 1 if there are factors
  double* a;           ///< incident wave
  double* dx;          ///< Δx
  double* gradient;    ///< ∇̄H at Δx
  double* stiffness;   ///< where the factors were taken
  double* factors;     ///< L and U of ∂F/∂Δx, column by column
  double* order;       ///< rows of F in the order of L
};

/// Newton's method on the implicit step of one part.
class LaneSolver {
 public:
  /// `hidden` and `damped` may be null.
  LaneSolver(const Subsystem& part, NewtonOptions options, const HiddenTerms* hidden = nullptr,
             const NumericalDissipation* damped = nullptr);

  ClosedPart& part() { return part_; }
  void prepare(double step_s, const double* impedance) { part_.prepare(step_s, impedance); }
  /// Δx of the last solve.
  const Eigen::VectorXd& increment() const { return dx_; }

  /// b = S(a) to round-off. Several stages first try simplified Newton steps with the derivative at x, whose
  /// factors are kept as long as x is. Where these do not contract, and for one stage: damped Newton from
  /// Δx = 0, where the first step solves the step linearised at x; where that fails, from where the part
  /// would go if it were left alone, and if there is one unknown, a bracket is halved; at last, by way of
  /// shares of the step. Every solve depends on (x, ū, a) alone.
  StepFault solve(const double* a, double* b);
  /// After a `solve` that did not converge: max |F_i| beside the terms of F_i where it was given up.
  double residual() const;
  /// After `solve`: what its residual may have left in the energy balance, ∇̄HᵀF [J].
  double energy_rounding() const;
  /// StepBatch::inexact_scatter: simplified Newton steps from the last solution with the last
  /// factors, new factors where these do not contract, and `solve` where that does not help.
  StepFault inexact_scatter(const double* a, double* b, LastSolve last);
  /// PortSlopes::port_slopes with the derivative at x of several stages; false where there is none.
  bool port_slopes(double* matrix);

 private:
  /// A residual of this size relative to its terms is round-off: nothing is left to gain.
  static constexpr double kRoundOff = 4.0 * std::numeric_limits<double>::epsilon();
  /// Below this, a step that does not gain a factor 4 has met the noise of the part's own functions;
  /// the better of the last two iterates is then the answer.
  static constexpr double kStagnation = 1e-12;

  bool solve_simply(const double* a);
  bool iterate_simply(const double* a);
  bool take_start_factors();
  bool has_start_factors() const {
    return start_preparation_ == part_.preparation() && start_x_ == part_.start();
  }
  void start_stiffness();
  void predict_gradient();
  void add_gradient_of_step(double sign);
  void spread_noise();
  StepFault solve_cold(const double* a);
  StepFault solve_from_free_motion(const double* a);
  bool follow_shares(const double* a);
  StepFault iterate_cold(const double* a);
  StepFault solve_bracketed(const double* a);
  StepFault slide(const double* a, double near, double far);
  bool find_step(const double* a);
  bool is_rounding(const double* a);
  StepFault descend(const double* a, double& size);

  bool solve_warm(const double* a, double tolerance, const LastSolve& last, double* b);
  bool iterate_warm(const double* a, double tolerance, const LastSolve& last);
  void find_simplified_step(const LastSolve& last);
  double length_of_step() const;
  double judged(double size) const;
  void take_noise();
  bool factorise(const double* a);
  void take_factors();
  void solve_with_factors();
  void keep(const LastSolve& last) const;

  ClosedPart part_;
  int max_steps_;
  bool has_hidden_terms_;
  bool inherits_noise_;         ///< take_noise
  int still_;                   ///< so many of the first unknowns stay 0
  std::vector<double> shares_;  ///< of one unknown in those that move, where nothing else counts
  Eigen::VectorXd dx_, start_, step_, F_, w_;
  Eigen::VectorXd predicted_;       ///< ∇̄H after a simplified step, from that before it
  Eigen::VectorXd noise_, weight_;  ///< with hidden terms: see take_noise; w + noise
  Eigen::MatrixXd jacobian_;
  Eigen::MatrixXd moving_;  ///< the jacobian of the unknowns that move
  Eigen::VectorXd moving_F_, moving_step_;
  DenseLu lu_;
  bool factorised_ = false;                    ///< lu_ is of the solve under way
  std::optional<StageFactors> start_factors_;  ///< of ∂F/∂Δx at Δx = 0; of several stages
  Eigen::VectorXd start_x_;  ///< where it was taken, after that many calls of `prepare`
  int start_preparation_ = -1;
  bool is_simple_ =
      false;  ///< of the solve under way: start_factors_ serve as long as it has no factors of its own
  Eigen::VectorXd stiffness_;
  Eigen::VectorXd b_before_, b_now_;
};

}  // namespace portwave
