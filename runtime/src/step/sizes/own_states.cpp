#include "step/sizes/own_states.hpp"

#include <algorithm>
#include <cmath>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

OwnStates::OwnStates(const WaveDiscretisation& waves, const StepErrorEstimate& estimate,
                     const double* record)
    : waves_(waves), estimate_(estimate) {
  std::size_t count = 0;
  int most = 0;
  for (int part = 0; part < static_cast<int>(waves.slots().size()); ++part) {
    const int states = waves.batch(waves.slot(part).batch).batch->state_size();
    if (!estimate.is_judged(part) || states == 0) continue;
    parts_.push_back({part, states, count});
    count += at(states);
    most = std::max(most, states);
  }
  largest_.resize(count);
  scratch_.resize(at(most));
  note(record);
}

void OwnStates::note(const double* record) {
  for (const Judged& own : parts_) {
    waves_.get_state(own.part, record, scratch_.data());
    for (int i = 0; i < own.states; ++i) {
      double& largest = largest_[own.first + at(i)];
      largest = std::max(largest, std::abs(scratch_[at(i)]));
    }
  }
}

double OwnStates::error(const double* next, Beside beside) {
  double worst = 0.0;
  for (const Judged& own : parts_) {
    waves_.get_state(own.part, next, scratch_.data());
    const char* const dies = estimate_.dying(own.part);
    for (int i = 0; i < own.states; ++i) {
      double largest = largest_[own.first + at(i)];
      if (beside == Beside::all) largest = std::max(largest, std::abs(scratch_[at(i)]));
      if (!(largest > 0.0)) continue;
      const double share = std::abs(estimate_.estimate_of(own.part, i)) / (kJump * largest);
      if (dies[i] != 0 || !(share > 1.0) || !(share > worst)) continue;
      const double energy_J = estimate_.energy_of_motion(own.part, i, largest);
      if (energy_J > kLeast * estimate_.island_J(own.part)) worst = share;
    }
  }
  return worst;
}

void OwnStates::archive(StateArchive& archive) { archive.array(std::span(largest_)); }

}  // namespace portwave
