#include "nonlinear/closed_part.hpp"
#include "portwave/subsystems/base/typical_state.hpp"

namespace portwave {

using Eigen::VectorXd;

void ClosedPart::add_slopes(const double* a, const VectorXd& dx, Eigen::MatrixXd& jacobian) {
  if (hidden_ == nullptr) {
    add_structure_slopes(a, dx, jacobian);
  } else {
    add_stage_slopes(a, dx, jacobian);
  }
}

void ClosedPart::structure_terms(const double* a, const VectorXd& dx, Eigen::MatrixXd& slopes,
                                 VectorXd& out) {
  slopes.setZero();
  column_ = x_.cwiseAbs() + x_next_.cwiseAbs();
  add_slopes(a, dx, slopes);
  out.noalias() = slopes.cwiseAbs() * column_;
}

/// The midpoint moves half as far as x⁺. Where the part does not know, by central differences.
void ClosedPart::add_structure_slopes(const double* a, const VectorXd& dx,
                                      Eigen::MatrixXd& jacobian) {
  if (slopes_ != nullptr) {
    probe_ = x_ + 0.5 * dx;
    slopes_->structure_slopes(probe_.data(), g_.data(), u_.data(), turning_.data());
    jacobian.noalias() -= (0.5 * h_) * turning_;
    return;
  }
  probe_ = dx;
  for (int j = 0; j < n_; ++j) {
    if (!part_.structure_depends_on(j)) continue;
    const double middle = x_[j] + 0.5 * dx[j];
    const double reach = difference_step(typical_[static_cast<std::size_t>(j)], middle);
    move_end(j, dx[j] + 2.0 * reach, a, v_);
    jacobian.col(j).noalias() -= (0.25 * h_ / reach) * v_;
    move_end(j, dx[j] - 2.0 * reach, a, v_);
    jacobian.col(j).noalias() += (0.25 * h_ / reach) * v_;
    probe_[j] = dx[j];
  }
}

/// All stages are moved at once: the rate of each follows from its own structure.
void ClosedPart::add_stage_slopes(const double* a, const VectorXd& dx, Eigen::MatrixXd& jacobian) {
  const int count = hidden_->stage_count(), n = n_ / (count + 1);
  const auto take = [&](int k, double by, VectorXd& v) {
    hidden_->moved_structure(x_.data(), dx.data(), k, by, h_, probe_structure_);
    if (feeds_through_) close_ports(probe_structure_);
    rate<false>(probe_structure_, g_, a, u_, y_, v);
  };
  for (int k = 0; k < n; ++k) {
    if (!hidden_->stages_depend_on(k)) continue;
    const double reach = difference_step(typical_[static_cast<std::size_t>(k)], x_[k]);
    take(k, reach, slope_);
    take(k, -reach, v_);
    slope_ = (0.5 * h_ / reach) * (slope_ - v_);
    for (int i = 0; i < count; ++i) {
      const int row = (i + 1) * n;
      // x⁺ beside δ counts half: the structure is that of the middle between x and x⁺.
      jacobian.col(k).segment(row, n) -= 0.5 * slope_.segment(row, n);
      for (int j = 0; j < count; ++j) {
        jacobian.col((j + 1) * n + k).segment(row, n) -=
            hidden_->stage_reach(i, j) * slope_.segment(row, n);
      }
    }
  }
}

/// The rate v for the structure over a step that is moved in component j, the discrete gradient held.
void ClosedPart::move_end(int j, double value, const double* a, VectorXd& v) {
  probe_[j] = value;
  part_.structure_over(x_.data(), probe_.data(), h_, probe_structure_);
  if (feeds_through_) close_ports(probe_structure_);
  rate<false>(probe_structure_, g_, a, u_, y_, v);
}

}  // namespace portwave
