#include "stages/substep_solver.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr int kMostHalvings = 30;

/// The error that is aimed at, as in LaneSolver.
constexpr double kAim = 0.1 * StepBatch::kInexactScatterError;

}  // namespace

SubstepSolver::SubstepSolver(const Subsystem& part, const StageRule& stages, int substeps,
                             NewtonOptions options)
    : layout_{stages.count, part.signature().state_size(), part.signature().wave_size(),
              part.signature().input_size(), substeps},
      part_(part),
      physics_(part, stages),
      inner_(physics_, options, &physics_, &physics_),
      max_steps_(options.max_steps),
      lifted_((stages.count + 1) * layout_.n),
      has_constant_structure_(part.constant_structure()),
      lu_(stages.count * layout_.n),
      outer_lu_(layout_.ports()) {
  for (int i = 0; i < stages.count; ++i) {
    root_weight_.push_back(std::sqrt(stages.b[static_cast<std::size_t>(i)]));
  }
  for (int k = 0; k < substeps; ++k) {
    for (int i = 0; i < stages.count; ++i) {
      for (int of = 0; of < stages.count; ++of) {
        share_.push_back(substep_share(stages, substeps, k, i, of));
      }
    }
  }
  const int p = layout_.ports(), inputs = p + stages.count * layout_.q;
  starts_.setZero(layout_.n, substeps + 1);
  moved_.setZero(lifted_, substeps);
  external_.setZero(stages.count * layout_.q, substeps);
  for (VectorXd* v : {&u_, &y_, &y_size_, &R_, &w_, &own_u_, &own_y_, &own_size_, &unused_b_,
                      &u_start_, &step_, &R_start_, &weight_}) {
    v->setZero(p);
  }
  for (VectorXd* v : {&start_, &next_, &column_}) v->setZero(lifted_);
  responses_.setZero(stages.count * layout_.n, substeps * (p + 1));
  inherited_.setZero(stages.count * layout_.n, substeps);
  for (VectorXd* v : {&largest_F_, &largest_w_}) v->setZero(layout_.n);
  moved_start_.setZero(lifted_, substeps);
  const int rows = stages.count * layout_.n;
  lifted_jacobian_.setZero(has_constant_structure_ ? 0 : lifted_,
                           has_constant_structure_ ? 0 : lifted_);
  for (MatrixXd* M : {&jacobian_, &of_delta_, &rate_}) M->setZero(rows, rows);
  for (MatrixXd* M : {&of_start_, &F_of_start_}) M->setZero(rows, layout_.n);
  for (MatrixXd* M : {&rhs_, &changes_}) M->setZero(rows, p + 1);
  for (MatrixXd* M : {&input_, &output_}) M->setZero(rows, inputs);
  driven_.setZero(rows, substeps * p);
  carried_.setZero(layout_.n, p + 1);
  gain_.setZero(p, p + 1);
  outer_.setZero(p, p);
  direct_.setZero(inputs, inputs);
  for (VectorXd* v : {&rest_, &gradient_, &noise_, &rounded_, &solved_, &rest_of_column_})
    v->setZero(rows);
}

void SubstepSolver::prepare(double step_s, const double* impedance) {
  h_ = step_s / layout_.substeps;
  inner_.part().prepare_open(h_);
  closures_ = port_closures(physics_.signature(), step_s, impedance);
  take_structure();
  drive();
}

void SubstepSolver::freeze(const double* x, const double* input) {
  std::copy(x, x + layout_.n, starts_.data());
  const double root = std::sqrt(static_cast<double>(layout_.substeps));
  for (Eigen::Index i = 0; i < external_.size(); ++i) external_.data()[i] = root * input[i];
}

/// Freezes substep k where the one before has led, with its part of û.
void SubstepSolver::place(int k) {
  start_.setZero();
  start_.head(layout_.n) = starts_.col(k);
  inner_.part().freeze(start_.data(), external_.rows() > 0 ? external_.col(k).data() : nullptr);
  own_u_.setZero();
  for (int i = 0; i < layout_.stages; ++i) {
    for (int of = 0; of < layout_.stages; ++of) {
      for (int j = 0; j < layout_.p; ++j) {
        own_u_[layout_.port(i, j)] += share(k, i, of) * u_[layout_.port(of, j)];
      }
    }
  }
}

void SubstepSolver::begin_outputs() {
  y_.setZero();
  y_size_.setZero();
  rounding_ = 0.0;
}

/// Of substep k as it was evaluated, and where it ends.
void SubstepSolver::add_outputs(int k) {
  inner_.part().outputs(own_y_.data(), own_size_.data());
  for (int i = 0; i < layout_.stages; ++i) {
    for (int of = 0; of < layout_.stages; ++of) {
      const double weight = share(k, i, of) / layout_.substeps;
      for (int j = 0; j < layout_.p; ++j) {
        y_[layout_.port(of, j)] += weight * own_y_[layout_.port(i, j)];
        y_size_[layout_.port(of, j)] += std::abs(weight) * own_size_[layout_.port(i, j)];
      }
    }
  }
  next_ = start_ + moved_.col(k);
  physics_.final_state(next_.data(), starts_.col(k + 1).data());
}

/// R and w; whether they are finite.
bool SubstepSolver::finish_outputs(const double* a) {
  for (int j = 0; j < layout_.ports(); ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    R_[j] = port.alpha * u_[j] + port.beta * y_[j] - port.s * a[j];
    w_[j] = std::abs(port.alpha * u_[j]) + port.beta * y_size_[j] + std::abs(port.s * a[j]);
  }
  return R_.allFinite() && w_.allFinite();
}

/// All substeps for û, one after another; R, w and max |Rⱼ|/wⱼ.
StepFault SubstepSolver::march(const double* a, double& size) {
  size = std::numeric_limits<double>::infinity();
  begin_outputs();
  double rounding = 0.0;
  for (int k = 0; k < layout_.substeps; ++k) {
    place(k);
    const StepFault fault = inner_.solve(own_u_.data(), unused_b_.data());
    if (fault != StepFault::none) return fault;
    rounding += inner_.energy_rounding();
    moved_.col(k) = inner_.increment();
    add_outputs(k);
  }
  rounding_ = rounding;
  if (!finish_outputs(a)) return StepFault::not_finite;
  size = scaled_size(R_, w_);
  return StepFault::none;
}

/// The Newton step at û, to be subtracted. Keeps û, R and w of its start.
bool SubstepSolver::find_step() {
  u_start_ = u_;
  R_start_ = R_;
  weight_ = w_;
  begin_sweep();
  for (int k = 0; k < layout_.substeps; ++k) {
    place(k);
    column_ = moved_.col(k);
    next_ = start_ + column_;
    if (!has_constant_structure_) inner_.part().linearise(column_);
    physics_.linearise(next_.data(), of_delta_, of_start_);
    inner_.part().evaluate_plainly(own_u_.data(), column_);
    differentiate(k, column_);
    carry(k, Rest::none);
  }
  return close_sweep(R_start_);
}

/// As in LaneSolver: as much of the step as reduces max |Rⱼ|/wⱼ, by halving.
StepFault SubstepSolver::descend(const double* a, double& size) {
  StepFault fault = StepFault::not_converged;
  double length = 1.0;
  for (int halvings = 0; halvings <= kMostHalvings; ++halvings, length *= 0.5) {
    u_ = u_start_ - length * step_;
    fault = march(a, size);
    if (fault != StepFault::none) continue;
    if (halvings == 0 && w_.allFinite()) weight_ = weight_.cwiseMax(w_);
    const double wanted = (1.0 - 1e-4 * length) * scaled_size(R_start_, weight_);
    if (scaled_size(R_, weight_) <= wanted) return StepFault::none;
    fault = StepFault::not_converged;
  }
  return fault;
}

/// From û as it is.
StepFault SubstepSolver::shoot(const double* a) {
  double size = 0.0;
  StepFault fault = march(a, size);
  if (fault != StepFault::none) {  // from where nothing moves the ports
    u_.setZero();
    fault = march(a, size);
  }
  if (fault != StepFault::none) return fault;
  for (int k = 0; size > kEnough; ++k) {
    if (k == max_steps_) return size <= kNoise ? StepFault::none : StepFault::not_converged;
    const double before = size;
    if (!find_step()) return StepFault::not_converged;
    if (before <= kNoise) {
      u_ = u_start_ - step_;
      fault = march(a, size);
      if (fault == StepFault::none && size <= 0.25 * before) continue;
      if (fault == StepFault::none && size < before) return fault;
      u_ = u_start_;
      return march(a, size);
    }
    if (fault = descend(a, size); fault != StepFault::none) return fault;
  }
  return StepFault::none;
}

void SubstepSolver::outgoing(const double* a, double* b) const {
  for (int j = 0; j < layout_.ports(); ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    b[j] = port.slope * u_[j] + port.sign * a[j];
  }
}

StepFault SubstepSolver::solve(const double* a, double* b) {
  StepFault fault = predict(a);
  if (fault != StepFault::none) return fault;
  if (!converges(a, 0.0)) {
    if (fault = predict(a); fault == StepFault::none) fault = shoot(a);
  }
  if (fault == StepFault::none) outgoing(a, b);
  return fault;
}

StepFault SubstepSolver::inexact_scatter(const double* a, double* b, double* last) {
  const int p = layout_.ports(), states = layout_.stages * layout_.n;
  double& count = last[0];
  double& last_distance = last[1];
  double* const last_a = last + 2;
  double* const last_u = last_a + p;
  double* const last_moved = last_u + p;
  double distance = 0.0;
  for (int j = 0; count > 0.0 && j < p; ++j) distance += (a[j] - last_a[j]) * (a[j] - last_a[j]);
  distance = std::sqrt(distance);
  const bool repeats = count > 0.0 && distance == 0.0;
  bool is_warm = count > 0.0 && std::isfinite(distance);
  if (is_warm) {
    // What the inner iteration makes of b is its next move, predicted as in LaneSolver.
    double tolerance = 0.0;
    if (!repeats && count >= 2.0) {
      const double contraction = std::min(1.0, distance / last_distance);
      tolerance = kAim * std::min(distance, last_distance) * contraction * contraction;
    }
    std::copy(last_u, last_u + p, u_.data());
    moved_.topRows(layout_.n).setZero();
    for (int k = 0; k < layout_.substeps; ++k) {
      const double* const own = last_moved + static_cast<std::ptrdiff_t>(k) * states;
      std::copy(own, own + states, moved_.col(k).data() + layout_.n);
    }
    is_warm = converges(a, tolerance);
    if (is_warm) outgoing(a, b);
  }
  if (!is_warm) {
    if (!repeats) count = 0.0;  // a failure is forgotten, whether it returns or throws
    if (const StepFault fault = solve(a, b); fault != StepFault::none) return fault;
  }
  if (repeats) return StepFault::none;
  count += 1.0;
  last_distance = distance;
  std::copy(a, a + p, last_a);
  std::copy(u_.begin(), u_.end(), last_u);
  for (int k = 0; k < layout_.substeps; ++k) {
    const double* const own = moved_.col(k).data() + layout_.n;
    std::copy(own, own + states, last_moved + static_cast<std::ptrdiff_t>(k) * states);
  }
  return StepFault::none;
}

StepEnergy SubstepSolver::commit(double* x_next) {
  const int n = layout_.n;
  StepEnergy sum;
  for (int k = 0; k < layout_.substeps; ++k) {
    place(k);
    column_ = moved_.col(k);
    inner_.part().evaluate_plainly(own_u_.data(), column_);
    const StepEnergy own = inner_.part().commit(column_, next_.data());
    sum.change_J += own.change_J;
    sum.external_supply_J += own.external_supply_J;
    sum.dissipated_J += own.dissipated_J;
    sum.numerical_dissipation_J += own.numerical_dissipation_J;
    // What the state at the end of the substep was rounded by is in H too.
    part_.gradient(starts_.col(k + 1).data(), next_.data());
    for (int i = 0; i < n; ++i) {
      double rounded = starts_(i, k + 1) - starts_(i, k);
      for (int j = 0; j < layout_.stages; ++j) {
        rounded -= root_weight_[static_cast<std::size_t>(j)] * column_[(j + 1) * n + i];
      }
      sum.change_J += next_[i] * rounded;
    }
  }
  const double* const last = starts_.col(layout_.substeps).data();
  std::copy(last, last + n, x_next);
  return sum;
}

double SubstepSolver::energy_rounding(const double* a) const {
  constexpr double kPerTerm = 8.0 * std::numeric_limits<double>::epsilon();
  const double h = h_ * layout_.substeps;
  double sum = rounding_;
  for (int j = 0; j < layout_.ports(); ++j) {
    const PortClosure& port = closures_[static_cast<std::size_t>(j)];
    const double b = port.slope * u_[j] + port.sign * a[j];
    sum += kPerTerm * (a[j] * a[j] + b * b) + h * std::abs(u_[j] / port.beta * R_[j]) +
           kPerTerm * h * std::abs(u_[j]) * y_size_[j];
  }
  return sum;
}

}  // namespace portwave
