#include "nonlinear/damped_physics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>

#include <Eigen/Eigenvalues>

#include "base/workspace.hpp"
#include "portwave/subsystems/base/typical_state.hpp"

namespace portwave {

void hessian_of(const Subsystem& part, const std::vector<double>& typical, const double* x,
                std::vector<Eigen::Triplet<double>>& hessian) {
  if (part.hessian(x, hessian)) return;
  const int n = part.signature().state_size();
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const at = scratch.data();
  double* const ahead = at + n;
  double* const back = ahead + n;
  std::copy(x, x + n, at);
  for (int j = 0; j < n; ++j) {
    const double reach = difference_step(typical[static_cast<std::size_t>(j)], x[j]);
    at[j] = x[j] + reach;
    part.gradient(at, ahead);
    at[j] = x[j] - reach;
    part.gradient(at, back);
    at[j] = x[j];
    for (int i = 0; i < n; ++i) {
      hessian.emplace_back(i, j, (ahead[i] - back[i]) / (2.0 * reach));
    }
  }
}

PositiveStiffness::PositiveStiffness(const Subsystem& part, std::uint64_t conserved)
    : part_(part),
      typical_(part.typical_state()),
      conserved_(conserved),
      stiffness_(part.signature().state_size(), part.signature().state_size()) {}

const Eigen::MatrixXd& PositiveStiffness::at(const double* x) {
  const std::size_t n = typical_.size();
  // Equal numbers: a NaN is never equal, and 0 and −0 have one Hessian as far as a part can tell.
  if (x_.size() != n || !std::equal(x, x + n, x_.begin())) {
    x_.clear();  // a callback may throw
    find(x);
    for (int k = 0; k < std::min<int>(static_cast<int>(n), kMostMasked); ++k) {
      if ((conserved_ >> k & 1U) == 0) continue;
      stiffness_.row(k).setZero();
      stiffness_.col(k).setZero();
    }
    x_.assign(x, x + n);
  }
  return stiffness_;
}

void PositiveStiffness::find(const double* x) {
  entries_.clear();
  hessian_of(part_, typical_, x, entries_);
  stiffness_.setZero();
  for (const auto& entry : entries_) {
    stiffness_(entry.row(), entry.col()) += 0.5 * entry.value();
    stiffness_(entry.col(), entry.row()) += 0.5 * entry.value();
  }
  is_whole_ = stiffness_.allFinite();
  if (!is_whole_) {
    stiffness_.setZero();
    return;
  }
  bool is_diagonal = true;
  for (Eigen::Index j = 0; j < stiffness_.cols(); ++j) {
    for (Eigen::Index i = 0; i < j; ++i) is_diagonal = is_diagonal && stiffness_(i, j) == 0.0;
  }
  if (is_diagonal) {
    is_whole_ = stiffness_.diagonal().minCoeff() >= 0.0;
    stiffness_.diagonal() = stiffness_.diagonal().cwiseMax(0.0).eval();
    return;
  }
  const Eigen::Map<const Eigen::VectorXd> unit(typical_.data(), stiffness_.rows());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(unit.asDiagonal() * stiffness_ *
                                                              unit.asDiagonal());
  const Eigen::VectorXd& values = solver.eigenvalues();
  constexpr double kRounding = 1e-12;
  is_whole_ = values.minCoeff() >= -kRounding * values.cwiseAbs().maxCoeff();
  if (values.minCoeff() >= 0.0) return;
  const Eigen::MatrixXd V = unit.cwiseInverse().asDiagonal() * solver.eigenvectors();
  stiffness_ = V * values.cwiseMax(0.0).asDiagonal() * V.transpose();
  stiffness_ = (0.5 * (stiffness_ + stiffness_.transpose())).eval();
}

/// By ∇²H at the default state and at some within one and a half to four and a half typical sizes of it.
bool DampedPhysics::looks_convex() {
  constexpr int kMostStates = 16, kSamples = 12;
  constexpr double kGolden = 0.6180339887498949, kReach = 1.5;
  const int n = signature().state_size();
  if (n == 0 || n > kMostStates) return false;
  const std::vector<double> centre = part_.default_state();
  std::vector<double> x = centre;
  try {
    for (int k = 0; k <= kSamples; ++k) {
      stiffness_.at(x.data());
      if (!stiffness_.is_whole()) return false;
      for (int i = 0; i < n; ++i) {
        const double share = std::fmod((k * n + i + 1) * kGolden, 1.0);
        const auto own = static_cast<std::size_t>(i);
        x[own] = centre[own] + (1 + k % 3) * kReach * (2.0 * share - 1.0) * typical_[own];
      }
    }
  } catch (const std::exception&) {  // of a callback, outside its domain
    return false;
  }
  return true;
}

DampedPhysics::Excess DampedPhysics::excess(const double* x, const double* x_next,
                                            const double* mean, double* w) const {
  const int n = signature().state_size();
  part_.gradient(x_next, w);
  Excess out;
  for (int i = 0; i < n; ++i) {
    const double moved = x_next[i] - x[i], unit = typical_[static_cast<std::size_t>(i)];
    w[i] -= mean[i];
    out.work += w[i] * moved;
    out.square += moved / unit * (moved / unit);
  }
  if (!(out.work < 0.0) || !(out.square > 0.0)) return out;
  out.is_turned = true;
  for (int i = 0; i < n; ++i) {
    const double unit = typical_[static_cast<std::size_t>(i)];
    w[i] -= out.work / out.square * (x_next[i] - x[i]) / (unit * unit);
  }
  return out;
}

void DampedPhysics::discrete_gradient(const double* x, const double* x_next, double* g) const {
  const int n = signature().state_size();
  part_.discrete_gradient(x, x_next, g);
  if (!is_convex_) {
    const Eigen::MatrixXd& K = stiffness_.at(x);
    for (int j = 0; j < n; ++j) {
      const double moved = 0.5 * share_ * (x_next[j] - x[j]);
      for (int i = 0; i < n; ++i) g[i] += K(i, j) * moved;
    }
    return;
  }
  detail::Workspace scratch(static_cast<std::size_t>(n));
  double* const w = scratch.data();
  const Excess own = excess(x, x_next, g, w);
  if (share_ == 1.0 && !own.is_turned) {
    part_.gradient(x_next, g);  // the sum of both, without their rounding
    return;
  }
  for (int i = 0; i < n; ++i) g[i] += share_ * w[i];
}

void DampedPhysics::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  const int n = signature().state_size();
  if (!is_convex_) {
    part_.discrete_gradient_jacobian(x, x_next, jacobian);
    const Eigen::MatrixXd& K = stiffness_.at(x);
    for (int j = 0; j < n; ++j) {
      for (int i = 0; i < n; ++i) {
        if (K(i, j) != 0.0) jacobian.emplace_back(i, j, 0.5 * share_ * K(i, j));
      }
    }
    return;
  }
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const mean = scratch.data();
  double* const w = mean + n;
  double* const slope = w + n;
  part_.discrete_gradient(x, x_next, mean);
  const Excess own = excess(x, x_next, mean, w);
  // g = (1 − share) ∇̄H + share (∇H(x⁺) − what is turned).
  const std::size_t first = jacobian.size();
  part_.discrete_gradient_jacobian(x, x_next, jacobian);
  const std::size_t of_mean = jacobian.size();
  hessian_of(part_, typical_, x_next, jacobian);
  if (own.is_turned) {
    // s = wᵀΔx before it was turned, m = |Δx|²: the part s/m Δx/u² taken off, by rows of Δx/u².
    const double s = own.work, m = own.square;
    for (int j = 0; j < n; ++j) {
      const double unit = typical_[static_cast<std::size_t>(j)];
      const double moved = x_next[j] - x[j];
      slope[j] = w[j] + s / m * moved / (unit * unit);  // ∂s/∂x⁺, but for the slopes of w
      slope[j] -= 2.0 * s / m * moved / (unit * unit);
    }
    for (std::size_t k = first; k < jacobian.size(); ++k) {
      const double sign = k < of_mean ? -1.0 : 1.0;
      const auto& entry = jacobian[k];
      slope[entry.col()] += sign * entry.value() * (x_next[entry.row()] - x[entry.row()]);
    }
  }
  for (std::size_t k = first; k < jacobian.size(); ++k) {
    const double factor = k < of_mean ? 1.0 - share_ : share_;
    jacobian[k] = {jacobian[k].row(), jacobian[k].col(), factor * jacobian[k].value()};
  }
  if (!own.is_turned) return;
  for (int i = 0; i < n; ++i) {
    const double unit = typical_[static_cast<std::size_t>(i)];
    const double direction = (x_next[i] - x[i]) / (unit * unit) / own.square;
    for (int j = 0; j < n; ++j) {
      double entry = -share_ * direction * slope[j];
      if (i == j) entry -= share_ * own.work / own.square / (unit * unit);
      if (entry != 0.0) jacobian.emplace_back(i, j, entry);
    }
  }
}

void DampedPhysics::add_gradient_terms(const double* x, const double* x_next, const double* g,
                                       double* terms) const {
  part_.add_gradient_terms(x, x_next, g, terms);
}

double DampedPhysics::numerical_dissipation(const double* x, const double* dx) const {
  const int n = signature().state_size();
  if (!is_convex_) {
    const Eigen::MatrixXd& K = stiffness_.at(x);
    const Eigen::Map<const Eigen::VectorXd> moved(dx, K.rows());
    return 0.5 * share_ * moved.dot(K * moved);
  }
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const next = scratch.data();
  double* const mean = next + n;
  double* const w = mean + n;
  for (int i = 0; i < n; ++i) next[i] = x[i] + dx[i];
  part_.discrete_gradient(x, next, mean);
  return share_ * std::max(excess(x, next, mean, w).work, 0.0);
}

}  // namespace portwave
