// Stages of parts that are not smooth: those of one stage over the whole step (StagedPhysics).

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "base/workspace.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {

/// Its damping is that of one stage with the same θ.
void StagedPhysics::find_whole_step() {
  whole_ = &part_;
  if (!stages_.is_damped()) return;
  const StageDamping own{stages_.damping * (4 * stages_.count - 2), stages_.conserved};
  whole_ = &damped_whole_.emplace(part_, damped(portwave::stage_rule(1, stages_.nodes), own));
}

void StagedPhysics::reach_the_middle() {
  for (Node& middle : at_stages_) {
    for (std::size_t j = 0; j < middle.reach.size(); ++j) middle.reach[j] = 0.5 * root_weight_[j];
  }
}

/// x⁺ − x.
void StagedPhysics::whole_step(const double* delta, double* moved) const {
  for (int k = 0; k < layout_.n; ++k) {
    moved[k] = 0.0;
    for (int j = 0; j < layout_.stages; ++j) {
      moved[k] += root_weight_[static_cast<std::size_t>(j)] * delta[j * layout_.n + k];
    }
  }
}

void StagedPhysics::whole_gradient(const double* start, const double* next, double* g) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n));
  double* const end = scratch.data();
  double* const mean = end + n;
  whole_step(next + n, end);
  for (int k = 0; k < n; ++k) end[k] += start[k];
  whole_->discrete_gradient(start, end, mean);
  std::fill(g, g + n, 0.0);
  for (int i = 0; i < layout_.stages; ++i) {
    const double weight = root_weight_[static_cast<std::size_t>(i)];
    for (int k = 0; k < n; ++k) g[(i + 1) * n + k] = weight * mean[k];
  }
}

void StagedPhysics::add_whole_terms(const double* start, const double* next, double* terms) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const end = scratch.data();
  double* const mean = end + n;
  double* const own = mean + n;
  whole_step(next + n, end);
  for (int k = 0; k < n; ++k) end[k] += start[k];
  whole_->discrete_gradient(start, end, mean);
  std::fill(own, own + n, 0.0);
  whole_->add_gradient_terms(start, end, mean, own);
  for (int i = 0; i < layout_.stages; ++i) {
    const double weight = root_weight_[static_cast<std::size_t>(i)];
    for (int k = 0; k < n; ++k) terms[(i + 1) * n + k] += weight * own[k];
  }
}

/// Into of_delta_ and hessian_terms_.
void StagedPhysics::add_whole_slopes(const double* start, const double* next) const {
  const int n = layout_.n;
  detail::Workspace end(static_cast<std::size_t>(n));
  whole_step(next + n, end.data());
  for (int k = 0; k < n; ++k) end.data()[k] += start[k];
  stage_hessian_.clear();
  whole_->discrete_gradient_jacobian(start, end.data(), stage_hessian_);
  for (const auto& entry : stage_hessian_) {
    for (int i = 0; i < layout_.stages; ++i) {
      const double own = root_weight_[static_cast<std::size_t>(i)] * entry.value();
      const int row = i * n + entry.row();
      hessian_terms_[static_cast<std::size_t>(row * n + entry.col())] += std::abs(own);
      for (int j = 0; j < layout_.stages; ++j) {
        of_delta_(row, j * n + entry.col()) += root_weight_[static_cast<std::size_t>(j)] * own;
      }
    }
  }
}

void StagedPhysics::put_at_all_stages(Structure& out) const {
  for (int i = 0; i < layout_.stages; ++i) put_stage(i, out);
}

void StagedPhysics::structure_over(const double* start, const double* increment, double step_s,
                                   Structure& out) const {
  if (whole_ == nullptr) return Subsystem::structure_over(start, increment, step_s, out);
  detail::Workspace moved(static_cast<std::size_t>(layout_.n));
  whole_step(increment + layout_.n, moved.data());
  whole_->structure_over(start, moved.data(), step_s, stage_structure_);
  put_at_all_stages(out);
}

}  // namespace portwave
