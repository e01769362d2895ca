#include "linear/linear_energy.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace portwave {

Eigen::VectorXd energy_scaling(const SparseMatrix& Q) {
  Eigen::VectorXd d = Eigen::VectorXd::Ones(Q.rows());
  for (int j = 0; j < Q.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(Q, j); it; ++it) {
      if (it.row() == j && it.value() > 0.0) d[j] = std::sqrt(it.value());
    }
  }
  return d;
}

LinearEnergy::LinearEnergy(const LinearPortHamiltonian& part, std::vector<PortClosure> closures,
                           double step_s)
    : n_(part.signature().state_size()),
      p_(part.signature().wave_size()),
      q_(part.signature().input_size()),
      closures_(std::move(closures)),
      storage_(part.Q()) {
  const Structure& s = part.structure();
  append_form(part.Q(), 1.0, gradient_);
  append_form(dissipation_matrix(s), step_s, dissipation_);
  std::vector<FormEntry> output, direct;
  append_form(SparseMatrix((s.G + s.P).transpose()), step_s, output);
  append_form(SparseMatrix(s.S + s.N), step_s, direct);
  for (const FormEntry& e : direct) output.push_back({e.row, n_ + e.column, e.value});
  for (const FormEntry& e : output) {
    if (e.row >= p_) output_.push_back({e.row - p_, e.column, e.value});
  }
}

StepEnergy LinearEnergy::account(const double* x, const double* x_next, const double* a,
                                 const double* b, const double* input, double* scratch) const {
  StepEnergy energy;
  energy.change_J = storage_.change(x, x_next);
  const bool supplied = input != nullptr && q_ > 0;
  if (dissipation_.empty() && !supplied) return energy;
  // z = [∇̄H; u]
  std::fill(scratch, scratch + n_ + p_ + q_, 0.0);
  for (const FormEntry& e : gradient_) {
    scratch[e.row] += e.value * 0.5 * (x[e.column] + x_next[e.column]);
  }
  double* u = scratch + n_;
  for (int j = 0; j < p_; ++j) u[j] = closures_[static_cast<std::size_t>(j)].input(a[j], b[j]);
  if (supplied) std::copy(input, input + q_, u + p_);
  for (const FormEntry& e : dissipation_) {
    energy.dissipated_J += e.value * scratch[e.row] * scratch[e.column];
  }
  if (supplied) {
    for (const FormEntry& e : output_) {
      energy.external_supply_J += input[e.row] * e.value * scratch[e.column];
    }
  }
  return energy;
}

}  // namespace portwave
