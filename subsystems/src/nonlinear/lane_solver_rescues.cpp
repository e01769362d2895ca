// What is tried where Newton's method from rest does not find a step.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <tuple>
#include <utility>

#include "nonlinear/lane_solver.hpp"

namespace portwave {
namespace {

/// Of a bracket around the root of one unknown, before its ends are neighbours.
constexpr int kMaxDoublings = 200, kMaxBisections = 1200;
/// Of the step, where it is solved by way of shares of it.
constexpr double kFirstShare = 0.125, kLeastShare = 1e-9;

}  // namespace

/// Ports whose impedance is far above what they meet hold a part where it is, as far as the step is
/// linear: Newton's method may then end between there and the solution. What is joined to them moves,
/// and the solution is near the motion without them.
StepFault LaneSolver::solve_from_free_motion(const double* a) {
  if (part_.is_descriptor()) return StepFault::not_converged;
  try {
    part_.free_increment(dx_);
    return dx_.allFinite() ? iterate_cold(a) : StepFault::not_converged;
  } catch (...) {  // a callback, at a place that was only tried
    return StepFault::not_converged;
  }
}

/// Where Newton's method finds no way from Δx = 0, as in stiff exchange by a structure that turns with the state: the
/// solution of a share of the step is the start for a larger share.
bool LaneSolver::follow_shares(const double* a) {
  Eigen::VectorXd& solved = predicted_;
  solved.setZero();
  part_.slide_no_more();
  double share = 0.0, more = kFirstShare;
  for (int k = 0; k < max_steps_ && more > kLeastShare; ++k) {
    const double next = std::min(1.0, share + more);
    part_.shorten(next);
    dx_ = solved;
    bool is_found = false;
    try {
      is_found = iterate_cold(a) == StepFault::none;
    } catch (...) {  // a callback, at a place that was only tried
    }
    if (is_found && next == 1.0) return true;
    if (is_found) {
      share = next;
      solved = dx_;
    }
    more *= is_found ? 2.0 : 0.25;
  }
  part_.shorten(1.0);
  return false;
}

/// One unknown, where Newton's method runs to and fro between the branches of a contact: its root is
/// between a step with F < 0 and one with F > 0, and halving needs no slope. The first pair of the two
/// is looked for on the side to which F points, then on the other.
StepFault LaneSolver::solve_bracketed(const double* a) {
  const auto residual_at = [&](double dx) {
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      dx_[still_ + static_cast<Eigen::Index>(i)] = shares_[i] * dx;
    }
    part_.evaluate_plainly(a, dx_);
    double sum = 0.0;
    for (std::size_t i = 0; i < shares_.size(); ++i) {
      sum += shares_[i] * part_.residual()[still_ + static_cast<Eigen::Index>(i)];
    }
    return sum;
  };
  const double at_rest = residual_at(0.0);
  double near = 0.0, far = 0.0;
  bool found = false;
  for (const double side : {-1.0, 1.0}) {
    near = 0.0;
    far = side * at_rest;
    for (int k = 0; k < kMaxDoublings && !found; ++k) {
      const double F = residual_at(far);
      if (!std::isfinite(F)) break;
      found = (F > 0.0) != (at_rest > 0.0);
      if (!found) near = std::exchange(far, 2.0 * far);
    }
    if (found) break;
  }
  if (!found) return StepFault::not_converged;
  for (int k = 0; k < kMaxBisections; ++k) {
    const double middle = 0.5 * (near + far);
    if (middle == near || middle == far) break;
    ((residual_at(middle) > 0.0) == (at_rest > 0.0) ? near : far) = middle;
  }
  const double best = std::abs(residual_at(near)) < std::abs(residual_at(far)) ? near : far;
  residual_at(best);        // puts it into Δx
  if (has_hidden_terms_) {  // what is left is how stages differ, which changes no gradient
    dx_ -= part_.residual();
    return iterate_cold(a);
  }
  part_.linearise(dx_);
  const double size = part_.evaluate(a, dx_);
  if (!part_.residual().allFinite()) return StepFault::not_finite;
  return size <= kStagnation ? StepFault::none : slide(a, near, far);
}

/// F changes its sign between two neighbours, where the structure jumps, as R = if(q > 0, 10, 1) does: the state stays
/// there, by a law between the two that keeps it. Where something else jumps there is none.
StepFault LaneSolver::slide(const double* a, double near, double far) {
  if (part_.has_constant_structure()) return StepFault::not_converged;
  start_[0] = near;
  step_[0] = far;
  dx_[0] = near;
  const auto residual_at = [&](double share) {
    part_.slide(start_, step_, share);
    const double size = part_.evaluate(a, dx_);
    return std::pair(part_.residual()[0], size);
  };
  const bool is_positive = residual_at(0.0).first > 0.0;
  double low = 0.0, high = 1.0, share = 1.0;
  auto [F, size] = residual_at(share);
  if (!std::isfinite(F) || (F > 0.0) == is_positive) return StepFault::not_converged;
  for (int k = 0; k < kMaxBisections && size > kRoundOff; ++k) {
    share = 0.5 * (low + high);
    if (share == low || share == high) break;
    std::tie(F, size) = residual_at(share);
    ((F > 0.0) == is_positive ? low : high) = share;
  }
  return size <= kStagnation ? StepFault::none : StepFault::not_converged;
}

}  // namespace portwave
