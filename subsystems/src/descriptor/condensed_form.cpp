#include "portwave/subsystems/descriptor/condensed_form.hpp"

#include <algorithm>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

/// Whether |M − Mᵀ| is nothing beside |M|, entry by entry.
bool is_plainly_symmetric(const SparseMatrix& M) {
  const SparseMatrix transposed = M.transpose();
  const SparseMatrix difference = M - transposed;
  double defect = 0.0, size = 0.0;
  for (int j = 0; j < difference.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(difference, j); it; ++it) {
      defect = std::max(defect, std::abs(it.value()));
    }
  }
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it)
      size = std::max(size, std::abs(it.value()));
  }
  return defect <= 1e-15 * size;
}

}  // namespace

std::shared_ptr<const CondensedForm> CondensedForm::of(std::shared_ptr<const SecondOrderForm> form,
                                                       int ports,
                                                       std::optional<ProportionalDamping> damping) {
  const std::shared_ptr<CondensedForm> made(new CondensedForm(std::move(form)));
  const SecondOrderForm& own = *made->form_;
  const auto n = static_cast<int>(own.M.rows());
  std::vector<int> place(at(n), -1);
  SparseEntries entries;
  for (int port = 0; port < ports; ++port) {
    int count = 0;
    bool is_one = true;
    for (SparseMatrix::InnerIterator it(own.B, port); it; ++it) {
      if (it.value() == 0.0) continue;
      int& own_place = place[at(static_cast<int>(it.row()))];
      if (own_place < 0) {
        own_place = static_cast<int>(made->boundary_.size());
        made->boundary_.push_back(static_cast<int>(it.row()));
      }
      entries.emplace_back(own_place, port, it.value());
      is_one = is_one && it.value() == 1.0;
      ++count;
    }
    made->places_.push_back(count == 1 && is_one ? entries.back().row() : -1);
  }
  const auto size = static_cast<int>(made->boundary_.size());
  if (size > 2 * ports + 64) return nullptr;
  made->damping_ = damping ? damping : proportional_damping(own);
  if (!made->damping_ && !is_plainly_symmetric(own.D)) return nullptr;
  made->at_boundary_ = sparse_matrix(size, ports, entries);
  return made;
}

SparseMatrix CondensedForm::step_matrix(double step_s) const {
  const double h = step_s;
  if (damping_) {
    return (2.0 / h + damping_->of_mass) * form_->M + (0.5 * h + damping_->of_stiffness) * form_->K;
  }
  return SparseMatrix((2.0 / h) * form_->M + form_->D) + (0.5 * h) * form_->K;
}

std::shared_ptr<const CondensedStep> CondensedForm::step(double step_s) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (step_ != nullptr && step_s_ == step_s) return step_;
  auto made = std::make_shared<CondensedStep>();
  const SparseMatrix A = step_matrix(step_s);
  if (!made->factors.factorise(A, boundary_)) {
    throw ConfigError("", "the implicit step is singular at this step size");
  }
  if (made->has_interior()) {
    made->diagonal = made->factors.schur().diagonal();
  } else {
    Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> moved(
        static_cast<Eigen::Index>(boundary_.size()));
    for (std::size_t k = 0; k < boundary_.size(); ++k) {
      moved.indices()[boundary_[k]] = static_cast<int>(k);
    }
    made->boundary = A.twistedBy(moved);
    made->diagonal = made->boundary.diagonal();
  }
  step_ = std::move(made);
  step_s_ = step_s;
  return step_;
}

}  // namespace portwave
