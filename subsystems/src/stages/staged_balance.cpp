// Mean gradients of stages whose quadrature is not exact: corrected along the step, so that the balance is.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "base/workspace.hpp"
#include "stages/staged_physics.hpp"

namespace portwave {

double StagedPhysics::Missing::factor() const {
  const double part = std::min(std::abs(energy_J), 2.0 * (std::abs(energy_J) - rounding_J));
  return std::copysign(part, energy_J) / length_squared;
}

/// The last one is kept: a step begins where the one before has ended, and so do all iterates of a step.
double StagedPhysics::storage_at(const double* x) const {
  const auto n = static_cast<std::size_t>(layout_.n);
  if (stored_x_.size() == n && std::equal(x, x + n, stored_x_.begin())) return stored_J_;
  stored_x_.clear();  // as long as a callback may throw
  stored_J_ = part_.storage(x);
  stored_x_.assign(x, x + n);
  return stored_J_;
}

/// H(x⁺) − H(x) − Σᵢ gᵢᵀδᵢ for the gradients that quadrature gives. H is the sum of terms like ∂H/∂xₖ xₖ, which may
/// cancel in it.
StagedPhysics::Missing StagedPhysics::missing(const double* start, const double* delta,
                                              const double* g) const {
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(2 * n));
  double* const end = scratch.data();
  double* const reach = end + n;
  whole_step(delta, end);
  for (int k = 0; k < n; ++k) {
    end[k] += start[k];
    reach[k] = std::abs(start[k]) + std::abs(end[k]);
  }
  const double before = storage_at(start);
  const double after = part_.storage(end);
  double work = 0.0, size = 0.0;
  Missing out;
  for (int i = 0; i < layout_.stages; ++i) {
    const double weight = root_weight_[static_cast<std::size_t>(i)];
    for (int k = 0; k < n; ++k) {
      const double moved = delta[i * n + k], term = g[(i + 1) * n + k] * moved;
      const double scaled = moved / own_typical_[static_cast<std::size_t>(k)];
      work += term;
      size += std::abs(term) + weight * std::abs(g[(i + 1) * n + k]) * reach[k];
      out.length_squared += scaled * scaled;
    }
  }
  constexpr double kUnits = 8.0 * std::numeric_limits<double>::epsilon();
  out.energy_J = (after - before) - work;
  out.terms_J = std::abs(after) + std::abs(before) + size;
  out.rounding_J = kUnits * (out.terms_J + part_.storage_terms());
  return out;
}

/// The power along the step is a series of Legendre polynomials, as far as its nodes tell them apart: where the last
/// two are this small, those that quadrature misses, twice as far on, are round-off. Of gradients side by side, beside
/// which a value of H takes time.
bool StagedPhysics::is_converged() const {
  constexpr double kSmall = 1e-8;
  return together_ != nullptr && tail_ <= kSmall;
}

/// Adds κδ in units of typical states, with Σᵢ gᵢᵀδᵢ = H(x⁺) − H(x).
void StagedPhysics::correct(const double* start, const double* delta, double* g) const {
  correction_noise_ = 0.0;
  if (!is_corrected_ || is_converged()) return;
  const Missing own = missing(start, delta, g);
  if (own.vanishes()) return;
  const double factor = own.factor();
  correction_noise_ = own.terms_J / own.length_squared;
  for (int i = 0; i < layout_.stages; ++i) {
    for (int k = 0; k < layout_.n; ++k) {
      const double unit = own_typical_[static_cast<std::size_t>(k)];
      g[(i + 1) * layout_.n + k] += factor * delta[i * layout_.n + k] / (unit * unit);
    }
  }
}

/// Of the gradients that its quadrature takes, or of as many like that at x.
void StagedPhysics::add_gradient_terms(const double* start, const double* next, const double* /*g*/,
                                       double* terms) const {
  add_correction_terms(next + layout_.n, terms);
  if (!has_terms_) return;
  if (whole_ != nullptr) return add_whole_terms(start, next, terms);
  const int n = layout_.n;
  detail::Workspace scratch(static_cast<std::size_t>(3 * n));
  double* const x = scratch.data();
  double* const slope = x + n;
  double* const own = slope + n;
  if (cancels_ || terms_are_of_start_) {
    std::fill(own, own + n, 0.0);
    if (cancels_) {  // those of the end: at rest there are none at the start
      whole_step(next + n, x);
      for (int k = 0; k < n; ++k) x[k] += start[k];
      part_.gradient(x, slope);
      part_.add_gradient_terms(x, x, slope, own);
    } else {
      std::copy(start_terms_.begin(), start_terms_.end(), own);
    }
    for (int i = 0; i < layout_.stages; ++i) {
      const double weight = size_weight_[static_cast<std::size_t>(i)];
      for (int k = 0; k < n; ++k) terms[(i + 1) * n + k] += weight * own[k];
    }
    return;
  }
  for (const Node& node : nodes_) {
    state_at(start, next + n, node.reach, x);
    part_.gradient(x, slope);
    std::fill(own, own + n, 0.0);
    part_.add_gradient_terms(x, x, slope, own);
    for (int i = 0; i < layout_.stages; ++i) {
      const double weight = std::abs(node.weight[static_cast<std::size_t>(i)]);
      for (int k = 0; k < n; ++k) terms[(i + 1) * n + k] += weight * own[k];
    }
  }
}

/// What the rounding of H leaves in the last correction.
void StagedPhysics::add_correction_terms(const double* delta, double* terms) const {
  for (int i = 0; i < layout_.stages && correction_noise_ > 0.0; ++i) {
    for (int k = 0; k < layout_.n; ++k) {
      const double unit = own_typical_[static_cast<std::size_t>(k)];
      terms[(i + 1) * layout_.n + k] +=
          correction_noise_ * std::abs(delta[i * layout_.n + k]) / (unit * unit);
    }
  }
}

/// To of_delta_, which holds the slopes of what quadrature gives.
void StagedPhysics::add_correction_slopes(const double* start, const double* next) const {
  if (!is_corrected_) return;
  const int n = layout_.n, size = layout_.states();
  const double* const delta = next + n;
  detail::Workspace scratch(static_cast<std::size_t>(3 * n + 3 * size));
  double* const g = scratch.data();
  double* const end = g + n + size;
  double* const slope = end + n;
  double* const of_factor = slope + n;
  double* const direction = of_factor + size;
  add_quadrature(nodes_, start, next, g);
  if (is_converged()) return;
  const Missing own = missing(start, delta, g);
  if (own.vanishes()) return;
  const double factor = own.factor();
  whole_step(delta, end);
  for (int k = 0; k < n; ++k) end[k] += start[k];
  part_.gradient(end, slope);
  for (int j = 0; j < layout_.stages; ++j) {
    for (int k = 0; k < n; ++k) {
      const double unit = own_typical_[static_cast<std::size_t>(k)];
      const int column = j * n + k;
      direction[column] = delta[column] / (unit * unit);
      double sum = root_weight_[static_cast<std::size_t>(j)] * slope[k] - g[n + column];
      for (int row = 0; row < size; ++row) sum -= of_delta_(row, column) * delta[row];
      of_factor[column] = (sum - 2.0 * factor * direction[column]) / own.length_squared;
    }
  }
  for (int column = 0; column < size; ++column) {
    const double unit = own_typical_[static_cast<std::size_t>(column % n)];
    for (int row = 0; row < size; ++row)
      of_delta_(row, column) += direction[row] * of_factor[column];
    of_delta_(column, column) += factor / (unit * unit);
  }
}

}  // namespace portwave
