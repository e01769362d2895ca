// Newton's method on all substeps at once: one sweep through them carries how each depends on û.

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "stages/substep_solver.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kFewHalvings = 6;  // where there is another way

/// As in LaneSolver: a contraction that is believed.
constexpr double kContraction = 0.5;

}  // namespace

/// The structure of the last evaluation, of the stages alone.
void SubstepSolver::take_structure() {
  const Structure& s = inner_.part().structure();
  const int n = layout_.n;
  const auto put = [n](const SparseMatrix& from, double factor, int skipped, MatrixXd& to) {
    for (int j = skipped; j < from.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(from, j); it; ++it) {
        to(it.row() - n, j - skipped) += factor * it.value();
      }
    }
  };
  for (MatrixXd* M : {&rate_, &input_, &output_, &direct_}) M->setZero();
  put(s.J, h_, n, rate_);
  put(s.R, -h_, n, rate_);
  put(s.G, h_, 0, input_);
  put(s.P, -h_, 0, input_);
  put(s.G, 1.0, 0, output_);
  put(s.P, 1.0, 0, output_);
  for (const SparseMatrix* M : {&s.S, &s.N}) {
    for (int j = 0; j < M->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*M, j); it; ++it) direct_(it.row(), j) += it.value();
    }
  }
}

/// What û moves the stages of each substep by.
void SubstepSolver::drive() {
  const int p = layout_.ports();
  driven_.setZero();
  for (int k = 0; k < layout_.substeps; ++k) {
    for (int i = 0; i < layout_.stages; ++i) {
      for (int of = 0; of < layout_.stages; ++of) {
        for (int j = 0; j < layout_.p; ++j) {
          driven_.col(k * p + layout_.port(of, j)) +=
              share(k, i, of) * input_.col(layout_.port(i, j));
        }
      }
    }
  }
}

/// The derivatives of the substep that was evaluated last, with `moved` for its increments: of g by
/// of_delta_ and of_start_, of F by jacobian_, factorised, and F_of_start_.
void SubstepSolver::differentiate(int k, const VectorXd& moved) {
  const int n = layout_.n, rows = layout_.stages * n;
  if (!has_constant_structure_) {
    take_structure();
    const int p = layout_.ports();
    driven_.middleCols(k * p, p).setZero();
    for (int i = 0; i < layout_.stages; ++i) {
      for (int of = 0; of < layout_.stages; ++of) {
        for (int j = 0; j < layout_.p; ++j) {
          driven_.col(k * p + layout_.port(of, j)) +=
              share(k, i, of) * input_.col(layout_.port(i, j));
        }
      }
    }
  }
  F_of_start_.noalias() = -rate_.lazyProduct(of_start_);
  if (has_constant_structure_) {
    jacobian_.setIdentity();
    jacobian_.noalias() -= rate_.lazyProduct(of_delta_);
  } else {
    // A structure at X(cᵢ) moves with x, and with x⁺ beside δ half as much.
    inner_.part().assemble_jacobian(own_u_.data(), moved, lifted_jacobian_);
    jacobian_ = lifted_jacobian_.bottomRightCorner(rows, rows);
    F_of_start_ += 2.0 * lifted_jacobian_.bottomLeftCorner(rows, n);
  }
  lu_.compute(jacobian_);
}

void SubstepSolver::begin_sweep() {
  carried_.setZero();
  gain_.setZero();
}

/// How the increments of substep k, its end and the outputs change with û, one column each, and with
/// `rest` in the last column.
void SubstepSolver::carry(int k, Rest rest) {
  const int n = layout_.n, p = layout_.ports(), q = layout_.stages * layout_.q;
  rhs_.noalias() = -F_of_start_.lazyProduct(carried_);
  rhs_.leftCols(p) += driven_.middleCols(k * p, p);
  if (rest != Rest::none) rhs_.col(p) -= rest_;
  if (rest == Rest::start) {
    for (int j = 0; j < q; ++j) rhs_.col(p) += external_(j, k) * input_.col(p + j);
  }
  changes_.noalias() = of_start_.lazyProduct(carried_);
  for (int j = 0; j <= p; ++j) {
    rest_of_column_ = rhs_.col(j);
    lu_.solve(rest_of_column_, solved_);
    responses_.col(k * (p + 1) + j) = solved_;
    for (int i = 0; i < layout_.stages; ++i) {
      carried_.col(j) += root_weight_[static_cast<std::size_t>(i)] * solved_.segment(i * n, n);
    }
  }
  changes_.noalias() += of_delta_.lazyProduct(responses_.middleCols(k * (p + 1), p + 1));
  if (rest == Rest::start) changes_.col(p) += gradient_;
  for (int j = 0; j <= p; ++j) {
    for (int row = 0; row < p; ++row) {
      double sum = output_.col(row).dot(changes_.col(j));
      if (j < p) {
        const int of = j / layout_.p;
        for (int i = 0; i < layout_.stages; ++i) {
          sum += direct_(row, layout_.port(i, j % layout_.p)) * share(k, i, of);
        }
      } else if (rest == Rest::start) {
        for (int c = 0; c < q; ++c) sum += direct_(row, p + c) * external_(c, k);
      }
      const int stage = row / layout_.p;
      for (int to = 0; to < layout_.stages; ++to) {
        gain_(layout_.port(to, row % layout_.p), j) += share(k, stage, to) / layout_.substeps * sum;
      }
    }
  }
}

/// (α + βK) step = residual − β rest, K being how ŷ depends on û.
bool SubstepSolver::close_sweep(const VectorXd& residual) {
  const int p = layout_.ports();
  if (p == 0) return true;
  for (int j = 0; j < p; ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    own_y_[j] = residual[j] - port.beta * gain_(j, p);
    outer_.row(j) = port.beta * gain_.row(j).head(p);
    outer_(j, j) += port.alpha;
  }
  outer_lu_.compute(outer_);
  outer_lu_.solve(own_y_, step_);
  return step_.allFinite();
}

/// û and the increments of the step that is linearised at x.
StepFault SubstepSolver::predict(const double* a) {
  const int p = layout_.ports();
  u_.setZero();
  place(0);
  inner_.part().freeze(start_.data(), nullptr);
  column_.setZero();
  physics_.linearise(start_.data(), of_delta_, of_start_);
  inner_.part().evaluate_plainly(own_u_.data(), column_);
  if (!inner_.part().residual().allFinite()) return StepFault::not_finite;
  rest_ = inner_.part().residual().tail(rest_.size());
  gradient_ = inner_.part().gradient().tail(rest_.size());
  if (!has_constant_structure_) {
    column_.setZero();
    inner_.part().linearise(column_);
  }
  column_.setZero();
  differentiate(0, column_);
  if (!has_constant_structure_) drive();
  begin_sweep();
  for (int k = 0; k < layout_.substeps; ++k) carry(k, Rest::start);
  for (int j = 0; j < p; ++j) R_[j] = closures_[static_cast<std::size_t>(j)].s * a[j];
  if (!close_sweep(R_)) return StepFault::not_finite;
  u_ = step_;
  for (int k = 0; k < layout_.substeps; ++k) {
    const auto own = responses_.middleCols(k * (p + 1), p + 1);
    moved_.col(k).tail(own.rows()).noalias() = own.leftCols(p).lazyProduct(step_);
    moved_.col(k).tail(own.rows()) += own.col(p);
  }
  moved_.topRows(layout_.n).setZero();
  return moved_.allFinite() ? StepFault::none : StepFault::not_finite;
}

/// max |F|/w of all equations at û and the increments, w with what roundings of unknowns moved at the last
/// linearisation.
bool SubstepSolver::check(const double* a, double& size) {
  const int n = layout_.n;
  size = 0.0;
  largest_F_.setZero();
  largest_w_.setZero();
  begin_outputs();
  for (int k = 0; k < layout_.substeps; ++k) {
    place(k);
    column_ = moved_.col(k);
    next_ = start_ + column_;
    physics_.linearise(next_.data(), of_delta_, of_start_);  // for its terms
    inner_.part().evaluate_plainly(own_u_.data(), column_);
    rest_ = inner_.part().residual().tail(rest_.size());
    noise_ = inner_.part().magnitude().tail(rest_.size()) + inherited_.col(k);
    size = std::max(size, scaled_size(rest_, noise_));
    if (!std::isfinite(size)) return false;
    for (int i = 0; i < layout_.stages; ++i) {
      largest_F_ = largest_F_.cwiseMax(rest_.segment(i * n, n).cwiseAbs());
      largest_w_ = largest_w_.cwiseMax(noise_.segment(i * n, n));
    }
    rounding_ += 2.0 * kEnough * inner_.part().gradient().tail(rest_.size()).cwiseAbs().dot(noise_);
    add_outputs(k);
  }
  if (!finish_outputs(a)) return false;
  const double of_ports = scaled_size(R_, w_);
  size = std::max(size, of_ports);
  // A state that turns around within the step has equations without a size of their own.
  merit_ = std::max(scaled_size(largest_F_, largest_w_), of_ports);
  return std::isfinite(size);
}

/// The Newton step of all equations, in step_ and responses_, after `check` at the same place. `size` is
/// as there, all terms counted, and what roundings of unknowns move in the equations of others (as
/// LaneSolver has it).
bool SubstepSolver::linearise(const double* a, double& size) {
  size = 0.0;
  begin_sweep();
  begin_outputs();
  for (int k = 0; k < layout_.substeps; ++k) {
    place(k);
    column_ = moved_.col(k);
    next_ = start_ + column_;
    if (!has_constant_structure_) inner_.part().linearise(column_);
    physics_.linearise(next_.data(), of_delta_, of_start_);
    inner_.part().evaluate_plainly(own_u_.data(), column_);
    add_outputs(k);
    const auto rows = rest_.size();
    rest_ = inner_.part().residual().tail(rows);
    gradient_ = inner_.part().gradient().tail(rows);
    // A rounding of δ moves g like one of x does, which `evaluate_plainly` has counted.
    noise_ = inner_.part().magnitude().tail(rows);
    differentiate(k, column_);
    rounded_.noalias() = jacobian_.cwiseAbs().lazyProduct(noise_);
    inherited_.col(k) = rounded_;
    noise_ += rounded_;
    rounding_ += 2.0 * kEnough * gradient_.cwiseAbs().dot(noise_);
    size = std::max(size, scaled_size(rest_, noise_));
    if (!std::isfinite(size)) return false;
    carry(k, Rest::error);
  }
  if (!finish_outputs(a)) return false;
  size = std::max(size, scaled_size(R_, w_));
  R_start_ = -R_;
  return close_sweep(R_start_);
}

/// As much of the step as reduces the largest residual, each state's beside its largest terms in the step,
/// by halving; false where none does.
bool SubstepSolver::improve(const double* a, double& size) {
  const int p = layout_.ports();
  const double before = size, merit = merit_;
  u_start_ = u_;
  moved_start_ = moved_;
  double length = 1.0;
  for (int halvings = 0; halvings <= kFewHalvings; ++halvings, length *= 0.5) {
    u_ = u_start_ + length * step_;
    for (int k = 0; k < layout_.substeps; ++k) {
      const auto own = responses_.middleCols(k * (p + 1), p + 1);
      auto increments = moved_.col(k).tail(own.rows());
      increments.noalias() = length * own.leftCols(p).lazyProduct(step_);
      increments += length * own.col(p) + moved_start_.col(k).tail(own.rows());
    }
    const double wanted = 1.0 - 1e-4 * length;
    if (check(a, size) && (merit_ <= wanted * merit || size <= wanted * before)) return true;
    if (before <= kNoise) break;
  }
  u_ = u_start_;
  moved_ = moved_start_;
  return check(a, size) && size <= kNoise;
}

/// `iterate`; a callback may throw at a place that substeps one after another do not visit.
bool SubstepSolver::converges(const double* a, double tolerance) {
  try {
    return iterate(a, tolerance);
  } catch (...) {
    return false;
  }
}

/// |Δb| of the step.
double SubstepSolver::length_of_step() const {
  double sum = 0.0;
  for (int j = 0; j < layout_.ports(); ++j) {
    const double own = closures_[static_cast<std::size_t>(j)].slope * step_[j];
    sum += own * own;
  }
  return std::sqrt(sum);
}

/// From û and the increments as they are; false where it comes to nothing. To round-off, or to an error
/// of b of `tolerance`, if that is > 0: after a step from e to e′ it is about e′/(1 − θ) with θ = e′/e,
/// and e is about as long as the step.
bool SubstepSolver::iterate(const double* a, double tolerance) {
  double size = 0.0, length = 0.0;
  inherited_.setZero();
  if (!check(a, size)) return false;
  for (int k = 0; k < max_steps_; ++k) {
    if (size <= kEnough) return true;
    double judged = 0.0;
    const double before = size, last_length = length;
    if (!linearise(a, judged)) return false;
    if (judged <= kEnough) return true;
    length = length_of_step();
    const double contraction = length / last_length;
    if (k > 0 && tolerance > 0.0 && contraction < kContraction &&
        length * contraction / (1.0 - contraction) <= tolerance) {
      u_ += step_;
      return u_.allFinite();
    }
    if (!improve(a, size)) return false;
    if (before <= kNoise && !(size <= 0.25 * before)) return true;
  }
  return size <= kNoise;
}

}  // namespace portwave
