#include "nonlinear/lane_solver.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/least_terms.hpp"

namespace portwave {
namespace {

using Eigen::VectorXd;
using Factors = Eigen::Map<const Eigen::MatrixXd>;

/// From here on such a step is asked whether it has met the rounding of gradients and structures.
constexpr double kNearby = 1e-9;
/// Roundings of an entry of J, R or G, such as a quotient of differences, in those of the states it depends on.
constexpr double kStructureRoundings = 4.0;
constexpr int kMaxHalvings = 30;

// Simplified steps.
constexpr int kMostSimpleSteps = 25;
/// What one must gain for the next to be worth its evaluation.
constexpr double kSimpleContraction = 0.2;
/// Where they gain less than this, a residual that is round-off beside what its terms spread is no sign that
/// nothing is left to gain: they go on until they gain nothing.
constexpr double kQuick = 0.01;
/// Residuals that gradients by fewer points are good for.
constexpr double kCoarse = 1e-10;

// Warm solves.
/// An error of b of this size relative to the waves is round-off.
constexpr double kWaveRoundOff = 16.0 * std::numeric_limits<double>::epsilon();
constexpr int kMaxEvaluations = 12;
constexpr int kMaxFactorisations = 3;
/// Contraction that a simplified Newton step must reach for its error estimate to be believed.
constexpr double kContraction = 0.5;
/// More simplified steps than this cost more than new factors.
constexpr int kStepsAhead = 3;
/// The error is estimated from the contraction of Δx, not of b: aim lower than what is promised.
constexpr double kAim = 0.1 * StepBatch::kInexactScatterError;

double norm(const double* a, int size) { return Eigen::Map<const VectorXd>(a, size).norm(); }

double distance_of(const double* a, const double* b, int size) {
  return (Eigen::Map<const VectorXd>(a, size) - Eigen::Map<const VectorXd>(b, size)).norm();
}

/// Error of b that the inner iteration will not notice. What it makes of b is its next move, which
/// is therefore predicted, as if it converged quadratically from the last two on: a linear
/// iteration moves farther, and one that extrapolates or whose impedance is matched may be as
/// quick.
double tolerance_of(double distance, const LastSolve& last) {
  if (last.count < 2.0) return 0.0;
  const double contraction = std::min(1.0, distance / last.distance);
  return kAim * std::min(distance, last.distance) * contraction * contraction;
}

}  // namespace

LaneSolver::LaneSolver(const Subsystem& part, NewtonOptions options, const HiddenTerms* hidden,
                       const NumericalDissipation* damped)
    : part_(part, hidden, damped),
      max_steps_(options.max_steps),
      has_hidden_terms_(hidden != nullptr),
      inherits_noise_(hidden != nullptr && !hidden->takes_whole_step()),
      still_(hidden != nullptr ? hidden->still() : 0),
      lu_(part_.size() - still_) {
  const int n = part_.size();
  moving_.setZero(n - still_, n - still_);
  moving_F_.setZero(n - still_);
  moving_step_.setZero(n - still_);
  for (VectorXd* v :
       {&dx_, &start_, &step_, &F_, &w_, &noise_, &weight_, &stiffness_, &predicted_}) {
    v->setZero(n);
  }
  for (VectorXd* v : {&b_before_, &b_now_}) v->setZero(part.signature().wave_size());
  jacobian_.setZero(n, n);
  if (!has_hidden_terms_ && n == 1) shares_ = {1.0};
  if (has_hidden_terms_ && hidden->takes_whole_step() && still_ == 1) {
    for (int j = 0; j < hidden->stage_count(); ++j) {
      shares_.push_back(2.0 * hidden->stage_reach(0, j));
    }
  }
  if (has_hidden_terms_ && hidden->stage_count() > 1) {
    const Eigen::Index stages = hidden->stage_count();
    start_factors_.emplace(hidden->coupling(), still_, part.signature().wave_size() / stages);
  }
}

StepFault LaneSolver::solve(const double* a, double* b) {
  part_.slide_no_more();
  if (solve_simply(a)) {
    part_.outgoing(a, b);
    return StepFault::none;
  }
  StepFault fault = solve_cold(a);
  const bool is_astray = fault == StepFault::not_converged;
  if (is_astray) fault = solve_from_free_motion(a);
  if (is_astray && fault != StepFault::none && !shares_.empty() &&
      solve_bracketed(a) == StepFault::none) {
    fault = StepFault::none;
  }
  if (fault != StepFault::none && follow_shares(a)) fault = StepFault::none;
  if (fault == StepFault::none) part_.outgoing(a, b);
  return fault;
}

double LaneSolver::residual() const {
  // A descent that came to nothing ends next to where it began.
  return scaled_size(part_.residual(), part_.magnitude());
}

double LaneSolver::energy_rounding() const {
  return 2.0 * kRoundOff * part_.gradient().cwiseAbs().dot(part_.magnitude() + noise_);
}

/// False when it comes to nothing. A callback may throw at an iterate that a damped solve does not visit.
bool LaneSolver::solve_simply(const double* a) {
  is_simple_ = false;
  if (!start_factors_) return false;
  try {
    is_simple_ = iterate_simply(a);
  } catch (...) {
  }
  return is_simple_;
}

/// From Δx = 0, with the derivative there. As long as the next residual will be far from round-off, gradients are
/// taken by fewer points; where it will be round-off, the gradient there follows from the last one.
bool LaneSolver::iterate_simply(const double* a) {
  if (part_.stage_start() == nullptr) return false;
  factorised_ = false;
  noise_.setZero();
  dx_.setZero();
  double before = part_.evaluate_plainly(a, dx_), contraction = 1.0;
  if (!std::isfinite(before) || !part_.inputs_are_finite()) return false;
  if (before <= kRoundOff) return true;
  if (!take_start_factors()) return false;
  bool coarse = part_.has_coarse_gradient(), was_coarse = coarse;
  const int most = std::min(kMostSimpleSteps, max_steps_);
  for (int k = 0; k < most; ++k) {
    start_ = dx_;
    F_ = part_.residual();
    solve_with_factors();
    dx_ -= step_;
    if (!was_coarse && contraction <= kQuick && before * contraction <= 0.1 * kRoundOff) {
      predict_gradient();
      const double size = part_.evaluate_plainly(a, dx_, predicted_.data());
      return judged(size) <= kStagnation && part_.inputs_are_finite();
    }
    double size = coarse ? part_.evaluate_coarsely(a, dx_) : part_.evaluate_plainly(a, dx_);
    if (!std::isfinite(size) || !part_.inputs_are_finite()) return false;
    if (k == 0) spread_noise();
    size = judged(size);
    if (coarse == was_coarse) {  // else the two residuals do not compare
      const double gained = size / before;
      const bool is_slow = !(gained <= kSimpleContraction);
      if (is_slow && !coarse && size > kRoundOff && part_.was_corrected()) return false;
      if (!coarse && before <= kStagnation && gained > 0.25) {
        if (gained < 1.0) return true;
        dx_ = start_;
        part_.evaluate_plainly(a, dx_);
        return true;
      }
      if (is_slow) return !coarse && size <= kStagnation;
      contraction = gained;
    }
    if (!coarse && size <= kRoundOff && contraction <= kQuick) return true;
    was_coarse = coarse;
    coarse = coarse && size * contraction > kCoarse;
    before = size;
  }
  return false;
}

/// As take_noise, with the derivative at x.
void LaneSolver::spread_noise() {
  moving_F_ = part_.magnitude().tail(moving_F_.size());
  start_factors_->spread(moving_F_, moving_step_);
  noise_.tail(moving_step_.size()) = moving_step_;
}

/// ∇̄H at Δx from that before the step, of the unknowns that move.
void LaneSolver::predict_gradient() {
  predicted_ = part_.gradient();
  add_gradient_of_step(-1.0);
}

/// To predicted_, what ∇̄H changes by the step.
void LaneSolver::add_gradient_of_step(double sign) {
  const StageStart& start = *part_.stage_start();
  const Eigen::MatrixXd& coupling = start_factors_->coupling();
  const Eigen::Index n = still_;
  for (Eigen::Index j = 0; j < coupling.cols(); ++j) {
    moving_F_.head(n).noalias() = start.hessian.lazyProduct(step_.segment((j + 1) * n, n));
    for (Eigen::Index i = 0; i < coupling.rows(); ++i) {
      predicted_.segment((i + 1) * n, n) += (sign * coupling(i, j)) * moving_F_.head(n);
    }
  }
}

bool LaneSolver::port_slopes(double* matrix) {
  if (!start_factors_ || part_.stage_start() == nullptr) return false;
  dx_.setZero();
  b_now_.setZero();
  const double size = part_.evaluate_plainly(b_now_.data(), dx_);
  if (!std::isfinite(size) || !take_start_factors()) return false;
  factorised_ = false;
  for (int port = 0; port < static_cast<int>(b_now_.size()); ++port) {
    part_.wave_column(port, F_);
    solve_with_factors();
    predicted_.setZero();
    add_gradient_of_step(1.0);
    part_.wave_response(port, predicted_, matrix);
  }
  return true;
}

/// The part has been evaluated at Δx = 0, unless they are at hand.
bool LaneSolver::take_start_factors() {
  if (has_start_factors()) return true;
  const StageStart* const start = part_.stage_start();
  if (start == nullptr) return false;
  start_preparation_ = -1;
  part_.start_derivative(*start, start_factors_->derivative());
  if (!start_factors_->factorise(part_.step_s())) return false;
  start_x_ = part_.start();
  start_preparation_ = part_.preparation();
  return true;
}

/// As ClosedPart::stiffness after a `linearise` at Δx = 0.
void LaneSolver::start_stiffness() {
  const StageStart& start = *part_.stage_start();
  const Eigen::MatrixXd& coupling = start_factors_->coupling();
  stiffness_.setZero();
  for (Eigen::Index i = 0; i < coupling.rows(); ++i) {
    stiffness_.segment((i + 1) * still_, still_) =
        (coupling(i, i) * start.hessian.diagonal()).cwiseAbs();
  }
}

StepFault LaneSolver::solve_cold(const double* a) {
  is_simple_ = false;
  dx_.setZero();
  return iterate_cold(a);
}

StepFault LaneSolver::iterate_cold(const double* a) {
  factorised_ = false;
  noise_.setZero();
  part_.linearise(dx_);
  double size = judged(part_.evaluate(a, dx_));
  if (!part_.residual().allFinite() || !part_.inputs_are_finite()) return StepFault::not_finite;
  for (int k = 0; size > kRoundOff; ++k) {
    if (k == max_steps_) {
      return size <= kStagnation ? StepFault::none : StepFault::not_converged;
    }
    if (k > 0) part_.linearise(dx_);
    const double before = size;
    if (!find_step(a)) return StepFault::not_converged;
    if (before <= kStagnation) {
      dx_ = start_ - step_;
      size = judged(part_.evaluate(a, dx_));
      if (size <= 0.25 * before) continue;
      if (!(size < before)) {
        dx_ = start_;
        part_.evaluate(a, dx_);
      }
      return StepFault::none;
    }
    if (const StepFault fault = descend(a, size); fault != StepFault::none) {
      return fault == StepFault::not_converged && is_rounding(a) ? StepFault::none : fault;
    }
    if (size <= kNearby && size > 0.25 * before && size > kStagnation) {
      start_ = dx_;
      if (is_rounding(a)) return StepFault::none;
    }
  }
  return StepFault::none;
}

/// Whether nothing but the rounding of gradients, or of structures that turn with x, is left where the last search
/// began, to which Δx returns.
bool LaneSolver::is_rounding(const double* a) {
  dx_ = start_;
  const double size = part_.evaluate(a, dx_);
  if (!std::isfinite(size)) return false;
  if (part_.beside_gradient_terms(a, dx_, size) <= kStagnation) return true;
  if (part_.has_constant_structure()) return false;
  part_.structure_terms(a, dx_, jacobian_, weight_);
  part_.evaluate(a, dx_);
  weight_ = noise_ + kStructureRoundings * weight_;
  w_ = part_.magnitude() + weight_;
  if (!(scaled_size(part_.residual(), w_) <= kRoundOff)) return false;
  noise_ = weight_;
  return true;
}

/// The Newton step at Δx, to be subtracted. Keeps Δx, F and w of its start.
bool LaneSolver::find_step(const double* a) {
  start_ = dx_;
  F_ = part_.residual();
  w_ = part_.magnitude();
  part_.assemble_jacobian(a, dx_, jacobian_);
  take_factors();
  solve_with_factors();
  take_noise();
  return step_.allFinite();
}

/// Each unknown is known to ε of the terms of its own equation, which the others inherit: noise is
/// |∂F/∂Δx| w. An equation all of whose terms are round-off of the others, such as that of a position
/// beside a velocity that is 0 by cancellation, cannot be met relative to its own size. Stages have
/// such equations in every swing.
void LaneSolver::take_noise() {
  if (inherits_noise_) noise_.noalias() = jacobian_.cwiseAbs() * w_;
}

/// max |F_i|/w_i of the last evaluation, noise admitted; `size` is that without.
double LaneSolver::judged(double size) const {
  if (!inherits_noise_ || !std::isfinite(size)) return size;
  double largest = 0.0;
  const VectorXd& F = part_.residual();
  const VectorXd& w = part_.magnitude();
  for (Eigen::Index i = 0; i < F.size(); ++i) {
    if (F[i] != 0.0) largest = std::max(largest, std::abs(F[i]) / (w[i] + noise_[i] + kLeastTerms));
  }
  return largest;
}

/// Takes as much of the step as makes max |F_i|/w_i decrease, by halving; w is held during the
/// search, and is the larger of that at the start and at the full step, because terms that are
/// zero at the start say nothing about their size.
StepFault LaneSolver::descend(const double* a, double& size) {
  double length = 1.0;
  for (int halvings = 0; halvings <= kMaxHalvings; ++halvings, length *= 0.5) {
    dx_ = start_ - length * step_;
    size = part_.evaluate(a, dx_);
    if (halvings == 0) {
      if (part_.magnitude().allFinite()) w_ = w_.cwiseMax(part_.magnitude());
      take_noise();
      weight_ = w_ + noise_;
    }
    size = judged(size);
    const double wanted = (1.0 - 1e-4 * length) * scaled_size(F_, weight_);
    if (std::isfinite(size) && scaled_size(part_.residual(), weight_) <= wanted) {
      return StepFault::none;
    }
  }
  return part_.residual().allFinite() ? StepFault::not_converged : StepFault::not_finite;
}

StepFault LaneSolver::inexact_scatter(const double* a, double* b, LastSolve last) {
  const int p = static_cast<int>(b_now_.size());
  if (part_.size() == 0) return solve(a, b);
  part_.slide_no_more();
  const double count = last.count;
  const double distance = count > 0.0 ? distance_of(a, last.a, p) : 0.0;
  const bool repeats = count > 0.0 && distance == 0.0;
  bool warm = count > 0.0 && std::isfinite(distance);
  if (warm) warm = solve_warm(a, repeats ? 0.0 : tolerance_of(distance, last), last, b);
  if (!warm) {
    if (!repeats) last.forget();  // a failure is forgotten, whether it returns or throws
    if (const StepFault fault = solve(a, b); fault != StepFault::none) return fault;
    if (!repeats) last.factorised = 0.0;
    if (is_simple_) {
      start_stiffness();
    } else {
      part_.stiffness(stiffness_);
    }
  }
  if (repeats) return StepFault::none;
  last.count = count + 1.0;
  last.distance = distance;
  std::copy(a, a + p, last.a);
  keep(last);
  return StepFault::none;
}

void LaneSolver::keep(const LastSolve& last) const {
  const auto n = static_cast<std::ptrdiff_t>(part_.size());
  std::copy(dx_.data(), dx_.data() + n, last.dx);
  std::copy(part_.gradient().data(), part_.gradient().data() + n, last.gradient);
  std::copy(stiffness_.data(), stiffness_.data() + n, last.stiffness);
  if (!factorised_) return;
  last.factorised = 1.0;
  const std::ptrdiff_t m = n - still_;
  std::copy(lu_.factors().data(), lu_.factors().data() + m * m, last.factors);
  std::copy(lu_.order(), lu_.order() + m, last.order);
}

/// False when it comes to nothing: a cold solve, which is damped, decides. A callback may throw at
/// an iterate that a cold solve does not visit.
bool LaneSolver::solve_warm(const double* a, double tolerance, const LastSolve& last, double* b) {
  try {
    if (!iterate_warm(a, tolerance, last)) return false;
  } catch (...) {
    return false;
  }
  std::copy(b_now_.data(), b_now_.data() + b_now_.size(), b);
  return true;
}

/// Simplified Newton from the last solution, whose ∇̄H is known. With e the error of an iterate,
/// e_k is about as long as the step from it, so the contraction θ of the steps is that of the
/// errors, and
///   |b_k − b| ≈ |b_k − b_{k−1}| θ/(1 − θ).
bool LaneSolver::iterate_warm(const double* a, double tolerance, const LastSolve& last) {
  const int n = part_.size();
  const int p = static_cast<int>(b_now_.size());
  dx_ = Eigen::Map<const VectorXd>(last.dx, n);
  stiffness_ = Eigen::Map<const VectorXd>(last.stiffness, n);
  factorised_ = false;
  bool has_factors = last.factorised != 0.0, fresh = false;
  is_simple_ = !has_factors && start_factors_ && part_.stage_start() != nullptr;
  if (is_simple_ && !has_start_factors()) {
    step_.setZero();
    part_.evaluate_plainly(a, step_);
    is_simple_ = take_start_factors();
  }
  has_factors = has_factors || is_simple_;
  int factorisations = 0;
  double size = part_.evaluate_plainly(a, dx_, last.gradient);
  for (int k = 0; k < kMaxEvaluations; ++k) {
    if (!part_.residual().allFinite() || !part_.inputs_are_finite()) return false;
    part_.outgoing(a, b_now_.data());
    if (size <= kRoundOff) return true;
    F_ = part_.residual();
    bool slow = !has_factors;
    if (k > 0) {
      const double last_length = length_of_step();
      find_simplified_step(last);
      const double contraction = length_of_step() / last_length;
      const double moved = (b_now_ - b_before_).norm();
      const double error = moved * contraction / (1.0 - contraction);
      const double waves = norm(a, p) + b_now_.norm();
      const double wanted = std::max(tolerance, kWaveRoundOff * waves);
      const bool contracts = contraction < kContraction;
      if (contracts && error <= wanted) return true;
      const bool noisy = moved <= kStagnation * waves;
      if (noisy && fresh) return true;
      if (size <= kStagnation && moved <= kWaveRoundOff * waves) return true;
      if (!noisy && !(contraction < (fresh ? kContraction : 1.0))) return false;
      slow = !contracts || error * std::pow(contraction, kStepsAhead) > wanted;
    } else if (has_factors) {
      find_simplified_step(last);
    }
    fresh = slow;
    if (slow) {
      if (++factorisations > kMaxFactorisations || !factorise(a)) return false;
      has_factors = true;
      find_simplified_step(last);
    }
    if (!step_.allFinite()) return false;
    b_before_ = b_now_;
    dx_ -= step_;
    size = part_.evaluate_plainly(a, dx_);
  }
  return false;
}

/// Of energy: the square of a wave is one too.
double LaneSolver::length_of_step() const { return std::sqrt(stiffness_.dot(step_.cwiseAbs2())); }

/// Takes new factors at Δx, in place of those of the last solve. Spoils the evaluation.
bool LaneSolver::factorise(const double* a) {
  part_.linearise(dx_);
  part_.stiffness(stiffness_);
  part_.assemble_jacobian(a, dx_, jacobian_);
  take_factors();
  return jacobian_.allFinite();
}

/// Of the unknowns that move.
void LaneSolver::take_factors() {
  if (still_ == 0) {
    lu_.compute(jacobian_);
  } else {
    moving_ = jacobian_.bottomRightCorner(moving_.rows(), moving_.cols());
    lu_.compute(moving_);
  }
  factorised_ = true;
}

/// The step for F_, to be subtracted.
void LaneSolver::solve_with_factors() {
  if (!factorised_) {
    moving_F_ = F_.tail(moving_F_.size());
    start_factors_->solve(moving_F_, moving_step_);
    step_.head(still_).setZero();
    step_.tail(moving_step_.size()) = moving_step_;
    return;
  }
  if (still_ == 0) {
    lu_.solve(F_, step_);
    return;
  }
  moving_F_ = F_.tail(moving_F_.size());
  lu_.solve(moving_F_, moving_step_);
  step_.head(still_).setZero();
  step_.tail(moving_step_.size()) = moving_step_;
}

/// The step for F_, to be subtracted, with the factors that there are.
void LaneSolver::find_simplified_step(const LastSolve& last) {
  if (factorised_ || is_simple_) {
    solve_with_factors();
    return;
  }
  const int m = part_.size() - still_;
  const Factors factors(last.factors, m, m);
  auto moving = step_.tail(m);
  for (int i = 0; i < m; ++i) moving[static_cast<int>(last.order[i])] = F_[still_ + i];
  factors.triangularView<Eigen::UnitLower>().solveInPlace(moving);
  factors.triangularView<Eigen::Upper>().solveInPlace(moving);
  step_.head(still_).setZero();
}

}  // namespace portwave
