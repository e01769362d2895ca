// Gradients along a step, of parts that take them side by side, and derivatives at its start by differences.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/workspace.hpp"
#include "nonlinear/discrete_gradients.hpp"
#include "portwave/subsystems/base/typical_state.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {
namespace {

constexpr int W = kLaneGroup;

double legendre(int degree, double z) {
  double before = 0.0, now = 1.0;
  for (int d = 1; d <= degree; ++d)
    before = std::exchange(now, ((2 * d - 1) * z * now - (d - 1) * before) / d);
  return now;
}

}  // namespace

/// A group that the nodes do not fill ends with ones of weight 0 at the start.
void StagedPhysics::put_nodes_together() {
  if (together_ == nullptr) return;
  start_gradient_.resize(static_cast<std::size_t>(layout_.n));
  const std::size_t stages = static_cast<std::size_t>(layout_.stages), lanes = W;
  const std::size_t size = (nodes_.size() + lanes - 1) / lanes * stages * lanes;
  lane_reach_.assign(size, 0.0);
  lane_weight_.assign(size, 0.0);
  for (auto& tail : lane_tail_) tail.assign(size / stages, 0.0);
  const auto points = static_cast<int>(nodes_.size());
  const detail::QuadratureRule& rule = detail::gauss_legendre(points);
  for (std::size_t k = 0; k < nodes_.size(); ++k) {
    for (const int below : {0, 1}) {
      const int degree = points - 1 - below;
      lane_tail_[below][k] = (2 * degree + 1) * legendre(degree, 2.0 * rule.nodes[k] - 1.0);
    }
    for (std::size_t i = 0; i < stages; ++i) {
      const std::size_t place = (k / lanes * stages + i) * lanes + k % lanes;
      lane_reach_[place] = nodes_[k].reach[i];
      lane_weight_[place] = nodes_[k].weight[i];
    }
  }
}

/// The last two Legendre coefficients of the power along the step, beside it, tell how good the quadrature is.
void StagedPhysics::add_gradients_together(const double* start, const double* delta,
                                           double* g) const {
  const int n = layout_.n, stages = layout_.stages;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n * W));
  double* const x = scratch.data();
  double* const slopes = x + n * W;
  const auto groups = static_cast<int>(lane_reach_.size()) / (stages * W);
  double tails[2] = {}, sum = 0.0;
  for (int group = 0; group < groups; ++group) {
    double work[W] = {};
    const double* const reach = lane_reach_.data() + group * stages * W;
    const double* const weight = lane_weight_.data() + group * stages * W;
    for (int k = 0; k < n; ++k) {
      double* const own = x + k * W;
      double moved[W] = {};
      for (int j = 0; j < stages; ++j) {
        const double by = delta[j * n + k];
        for (int l = 0; l < W; ++l) moved[l] += reach[j * W + l] * by;
      }
      for (int l = 0; l < W; ++l) own[l] = start[k] + moved[l];
    }
    together_->gradients(x, slopes);
    for (int i = 0; i < stages; ++i) {
      for (int k = 0; k < n; ++k) {
        double terms[W];
        for (int l = 0; l < W; ++l) terms[l] = weight[i * W + l] * slopes[k * W + l];
        const double moved = delta[i * n + k];
        for (int l = 0; l < W; ++l) work[l] += terms[l] * moved;
        g[(i + 1) * n + k] += ((terms[0] + terms[1]) + (terms[2] + terms[3])) +
                              ((terms[4] + terms[5]) + (terms[6] + terms[7]));
      }
    }
    for (int l = 0; l < W; ++l) {
      sum += std::abs(work[l]);
      for (const int below : {0, 1})
        tails[below] += work[l] * lane_tail_[below][static_cast<std::size_t>(group * W + l)];
    }
  }
  tail_ = std::max(std::abs(tails[0]), std::abs(tails[1])) / sum;
}

/// By differences in one direction: simplified steps need no more. The first lane of all is at x.
void StagedPhysics::find_hessian_together(const double* x) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n * W));
  double* const places = scratch.data();
  double* const slopes = places + n * W;
  double* const here = start_gradient_.data();
  const double share = std::sqrt(std::numeric_limits<double>::epsilon());
  const auto reach = [&](int j) {
    return share * std::max(own_typical_[static_cast<std::size_t>(j)], std::abs(x[j]));
  };
  Eigen::MatrixXd& K = start_.hessian;
  for (int first = -1; first < n; first += W) {
    for (int k = 0; k < n; ++k) std::fill_n(places + k * W, W, x[k]);
    const int last = std::min(first + W, n);
    for (int j = std::max(first, 0); j < last; ++j) places[j * W + j - first] += reach(j);
    together_->gradients(places, slopes);
    if (first < 0) {
      for (int k = 0; k < n; ++k) here[k] = slopes[k * W];
    }
    for (int j = std::max(first, 0); j < last; ++j) {
      const double moved = places[j * W + j - first] - x[j];
      for (int k = 0; k < n; ++k) K(k, j) = (slopes[k * W + j - first] - here[k]) / moved;
    }
  }
  for (Eigen::Index j = 0; j < n; ++j) {
    for (Eigen::Index i = 0; i < j; ++i) K(i, j) = K(j, i) = 0.5 * (K(i, j) + K(j, i));
  }
}

/// Where the part does not know, by differences in one direction: simplified steps need no more.
void StagedPhysics::find_turning(const double* x) const {
  const int n = layout_.n;
  if (const StructureSlopes* const known = structure_slopes_of(part_)) {
    const auto inputs = static_cast<std::size_t>(part_.structure().inputs());
    detail::Workspace scratch(static_cast<std::size_t>(n) + inputs);
    double* const slope = scratch.data();
    part_.gradient(x, slope);
    std::fill(slope + n, slope + n + inputs, 0.0);
    known->structure_slopes(x, slope, slope + n, start_.turning.data());
    return;
  }
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const moved = scratch.data();
  double* const slope = moved + n;
  double* const rate = slope + n;
  const auto take = [&](double sign, double* out) {
    for (const auto& [M, gain] :
         {std::pair(&stage_structure_.J, sign), std::pair(&stage_structure_.R, -sign)}) {
      for (int j = 0; j < n; ++j) {
        for (SparseMatrix::InnerIterator it(*M, j); it; ++it)
          out[it.row()] += gain * it.value() * slope[j];
      }
    }
  };
  part_.gradient(x, slope);
  std::fill(rate, rate + n, 0.0);
  part_.structure_at(x, stage_structure_);
  take(1.0, rate);
  std::copy(x, x + n, moved);
  for (int k = 0; k < n; ++k) {
    if (!part_.structure_depends_on(k)) continue;
    const double reach = difference_step(own_typical_[static_cast<std::size_t>(k)], x[k]);
    moved[k] = x[k] + reach;
    part_.structure_at(moved, stage_structure_);
    moved[k] = x[k];
    double* const column = start_.turning.col(k).data();
    std::copy(rate, rate + n, column);
    take(-1.0, column);
    for (int i = 0; i < n; ++i) column[i] /= -reach;
  }
}

}  // namespace portwave
