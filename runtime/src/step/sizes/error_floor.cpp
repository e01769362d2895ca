// Differences that are no errors of a step, but roundings, and remainders of its inner iteration.

#include <algorithm>
#include <cmath>
#include <limits>

#include "portwave/subsystems/base/index.hpp"
#include "step/sizes/step_error.hpp"

namespace portwave {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
/// Amplitude of an error that cannot be told from the remainder of an inner iteration converged to
/// round-off, as a share of that of the waves: a stiff coupling multiplies its residual.
constexpr double kOfCoupling = 1e-11;
/// Rounding of a state.
constexpr double kPerState = 32.0 * kEpsilon;

}  // namespace

void StepErrorEstimate::judge_parts() {
  magnitudes_.resize(static_cast<std::size_t>(waves_.wave_size()));
}

/// The largest energy of a part, by island; or for every wave the size of those that come together at its junction: its
/// own, and with |P||a| what comes in there, of which it was formed.
void StepErrorEstimate::measure_waves(const double* a) {
  if (!magnitudes_.empty()) {
    waves_.interconnection().all().magnitudes(a, magnitudes_.data());
    for (std::size_t w = 0; w < magnitudes_.size(); ++w) {
      magnitudes_[w] = std::max(magnitudes_[w], std::abs(a[w]));
    }
    return;
  }
  std::ranges::fill(wave_J_, 0.0);
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    double& largest = wave_J_[at(waves_.system().island_of_part(part))];
    largest = std::max(largest, wave_energy(part, a));
  }
}

/// ½|a|² of a part.
double StepErrorEstimate::wave_energy(int part, const double* a) const {
  const PartSlot& slot = waves_.slot(part);
  double sum = 0.0;
  for (int j = 0; j < waves_.batch(slot.batch).batch->wave_size(); ++j) {
    const double own = a[slot.wave + j * slot.stride];
    sum += 0.5 * own * own;
  }
  return sum;
}

/// ½|a|² of the waves that those of a part may be a small remainder of.
double StepErrorEstimate::waves_around_J(int part) const {
  return magnitudes_.empty() ? wave_J_[at(waves_.system().island_of_part(part))]
                             : wave_energy(part, magnitudes_.data());
}

/// The energy of differences that cannot be told from an error: some ε in each state, and the remainder of
/// the inner iteration.
double StepErrorEstimate::floor_J(int part, const double* x, const double* e) {
  const Told& own = told(part);
  if (own.physics == nullptr) return 0.0;
  const double of_waves = kOfCoupling * kOfCoupling * waves_around_J(part);
  double sum = 0.0;
  if (own.is_diagonal) {
    const double* const Q = diagonal_.data() + first_state_[at(part)];
    for (int i = 0; i < own.states; ++i) {
      if (Q[i] != 0.0) sum += std::abs(x[i] * Q[i] * x[i]);
    }
    return 0.5 * kPerState * kPerState * sum + of_waves;
  }
  if (const SparseMatrix* const Q = own.form.Q; Q != nullptr) {
    for (int j = 0; j < Q->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*Q, j); it; ++it) {
        sum += std::abs(x[it.row()] * it.value() * x[j]);
      }
    }
    return 0.5 * kPerState * kPerState * sum + of_waves;
  }
  // gradient_ is that of x: energy_between came before.
  for (int i = 0; i < own.states; ++i) {
    sum += std::abs(gradient_[at(i)] * x[i]) * kPerState * kPerState +
           std::abs(gradient_[at(i)] * e[i]) * kEpsilon;
  }
  return sum + of_waves;
}

}  // namespace portwave
