#include "nonlinear/damped_physics.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

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

PositiveStiffness::PositiveStiffness(const Subsystem& part)
    : part_(part),
      typical_(part.typical_state()),
      stiffness_(part.signature().state_size(), part.signature().state_size()) {}

const Eigen::MatrixXd& PositiveStiffness::at(const double* x) {
  const std::size_t n = typical_.size();
  // Equal numbers: a NaN is never equal, and 0 and −0 have one Hessian as far as a part can tell.
  if (x_.size() != n || !std::equal(x, x + n, x_.begin())) {
    x_.clear();  // a callback may throw
    find(x);
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
  if (!stiffness_.allFinite()) {
    stiffness_.setZero();
    return;
  }
  bool is_diagonal = true;
  for (Eigen::Index j = 0; j < stiffness_.cols(); ++j) {
    for (Eigen::Index i = 0; i < j; ++i) is_diagonal = is_diagonal && stiffness_(i, j) == 0.0;
  }
  if (is_diagonal) {
    stiffness_.diagonal() = stiffness_.diagonal().cwiseMax(0.0).eval();
    return;
  }
  const Eigen::Map<const Eigen::VectorXd> unit(typical_.data(), stiffness_.rows());
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(unit.asDiagonal() * stiffness_ *
                                                              unit.asDiagonal());
  const Eigen::VectorXd& values = solver.eigenvalues();
  if (values.minCoeff() >= 0.0) return;
  const Eigen::MatrixXd V = unit.cwiseInverse().asDiagonal() * solver.eigenvectors();
  stiffness_ = V * values.cwiseMax(0.0).asDiagonal() * V.transpose();
  stiffness_ = (0.5 * (stiffness_ + stiffness_.transpose())).eval();
}

void DampedPhysics::discrete_gradient(const double* x, const double* x_next, double* g) const {
  part_.discrete_gradient(x, x_next, g);
  const Eigen::MatrixXd& K = stiffness_.at(x);
  for (Eigen::Index j = 0; j < K.cols(); ++j) {
    const double moved = damping_ * (x_next[j] - x[j]);
    for (Eigen::Index i = 0; i < K.rows(); ++i) g[i] += K(i, j) * moved;
  }
}

void DampedPhysics::discrete_gradient_jacobian(
    const double* x, const double* x_next, std::vector<Eigen::Triplet<double>>& jacobian) const {
  part_.discrete_gradient_jacobian(x, x_next, jacobian);
  const Eigen::MatrixXd& K = stiffness_.at(x);
  for (int j = 0; j < static_cast<int>(K.cols()); ++j) {
    for (int i = 0; i < static_cast<int>(K.rows()); ++i) {
      if (K(i, j) != 0.0) jacobian.emplace_back(i, j, damping_ * K(i, j));
    }
  }
}

void DampedPhysics::add_gradient_terms(const double* x, const double* x_next, const double* g,
                                       double* terms) const {
  part_.add_gradient_terms(x, x_next, g, terms);
}

double DampedPhysics::numerical_dissipation(const double* x, const double* dx) const {
  const Eigen::MatrixXd& K = stiffness_.at(x);
  const Eigen::Map<const Eigen::VectorXd> moved(dx, K.rows());
  return damping_ * moved.dot(K * moved);
}

}  // namespace portwave
