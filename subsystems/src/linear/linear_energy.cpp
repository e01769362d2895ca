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

namespace {

std::vector<LinearEnergy::Entry> entries_of(const SparseMatrix& M, double factor) {
  std::vector<LinearEnergy::Entry> out;
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() != 0.0) out.push_back({static_cast<int>(it.row()), j, factor * it.value()});
    }
  }
  return out;
}

}  // namespace

LinearEnergy::LinearEnergy(const LinearPortHamiltonian& part, std::vector<PortClosure> closures,
                           double step_s)
    : n_(part.signature().state_size()),
      p_(part.signature().wave_size()),
      q_(part.signature().input_size()),
      step_s_(step_s),
      closures_(std::move(closures)) {
  gradient_ = entries_of(part.Q(), 1.0);
  take_storage(part.Q());
  take_structure(part.structure());
}

LinearEnergy::LinearEnergy(const LinearPortHamiltonian& part, const Structure& stages,
                           std::vector<PortClosure> closures, double step_s)
    : n_(stages.states()),
      p_(static_cast<int>(closures.size())),
      q_(stages.inputs() - p_),
      step_s_(step_s),
      closures_(std::move(closures)) {
  take_storage(part.Q());
  take_structure(stages);
}

void LinearEnergy::take_storage(const SparseMatrix& Q) {
  for (const Entry& e : entries_of(Q, 1.0)) {
    if (e.row <= e.column) {
      storage_.push_back({e.row, e.column, e.row == e.column ? 0.5 * e.value : e.value});
    }
  }
}

void LinearEnergy::take_structure(const Structure& s) {
  dissipation_ = entries_of(dissipation_matrix(s), step_s_);
  std::vector<Entry> output = entries_of(SparseMatrix((s.G + s.P).transpose()), step_s_);
  for (Entry e : entries_of(SparseMatrix(s.S + s.N), step_s_)) {
    e.column += n_;
    output.push_back(e);
  }
  for (Entry e : output) {
    if (e.row < p_) continue;
    e.row -= p_;
    output_.push_back(e);
  }
}

StepEnergy LinearEnergy::account(const double* x, const double* x_next, const double* a,
                                 const double* b, const double* input, double* scratch) const {
  StepEnergy energy;
  for (const Entry& e : storage_) {  // H⁺ − H = ½(x⁺ + x)ᵀQ(x⁺ − x)
    const int i = e.row, j = e.column;
    const double both = (x_next[i] + x[i]) * (x_next[j] - x[j]);
    energy.change_J +=
        i == j ? e.value * both : 0.5 * e.value * (both + (x_next[i] - x[i]) * (x_next[j] + x[j]));
  }
  const bool supplied = input != nullptr && q_ > 0;
  if (dissipation_.empty() && !supplied) return energy;
  // z = [∇̄H; u]
  std::fill(scratch, scratch + n_ + p_ + q_, 0.0);
  for (const Entry& e : gradient_) {
    scratch[e.row] += e.value * 0.5 * (x[e.column] + x_next[e.column]);
  }
  double* u = scratch + n_;
  for (int j = 0; j < p_; ++j) u[j] = closures_[static_cast<std::size_t>(j)].input(a[j], b[j]);
  if (supplied) std::copy(input, input + q_, u + p_);
  for (const Entry& e : dissipation_) {
    energy.dissipated_J += e.value * scratch[e.row] * scratch[e.column];
  }
  if (supplied) {
    for (const Entry& e : output_) {
      energy.external_supply_J += input[e.row] * e.value * scratch[e.column];
    }
  }
  return energy;
}

}  // namespace portwave
