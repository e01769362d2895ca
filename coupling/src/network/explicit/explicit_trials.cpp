// Steps that are tried.

#include <algorithm>
#include <exception>

#include "network/explicit/explicit_stepper.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

ExplicitStepper::Trial& ExplicitStepper::trial() {
  if (trial_ != nullptr) return *trial_;
  trial_ = std::make_unique<Trial>(network_);
  for (const auto& island : islands_) island->take_jumps_as_ramps_from(0);
  for (std::vector<double>* own : {&trial_->x, &trial_->error}) own->assign(x_.size(), 0.0);
  if (compares_) {
    trial_->coarse = next_;
    trial_->middle = next_;
    trial_->energies_of_coarse.resize(islands_.size());
    for (std::vector<double>* own : {&trial_->middle_x, &trial_->committed_middle_x}) {
      own->assign(x_.size(), 0.0);
    }
  }
  return *trial_;
}

std::size_t ExplicitStepper::Trial::bytes() const {
  std::size_t sum =
      (x.capacity() + error.capacity() + middle_x.capacity() + committed_middle_x.capacity()) *
      sizeof(double);
  for (const std::vector<IslandState>* own : {&coarse, &middle}) {
    for (const IslandState& state : *own) sum += state.bytes();
  }
  return sum;
}

/// One step of h/2^depth of every island that has succeeded so far. Inputs are sampled on the calling thread.
template <class Attempt>
bool ExplicitStepper::all_succeed(double start_s, int depth, const ForEach& each,
                                  const Attempt& attempt) {
  sample(start_s, depth);
  for_islands(each, [&](std::size_t i) {
    if (succeeded_[i] == 0) return;
    try {
      if (!attempt(*islands_[i], i)) succeeded_[i] = 0;
    } catch (...) {  // of a gradient; no task may throw
      thrown_[i] = std::current_exception();
      succeeded_[i] = 0;
    }
  });
  share_success();
  return std::ranges::all_of(succeeded_, [](char own) { return own != 0; });
}

bool ExplicitStepper::attempt(double step_s, const ForEach& each) {
  Trial& own = trial();
  set_step(step_s);
  const double start_s = clock_.time_s();
  std::ranges::fill(energies_, IslandEnergies());
  std::ranges::fill(own.energies_of_coarse, IslandEnergies());
  std::ranges::fill(thrown_, nullptr);
  std::ranges::fill(succeeded_, 1);
  own.is_middle_gathered = false;
  bool is_met = false;
  if (!compares_) {
    is_met = all_succeed(start_s, 0, each, [&](ExplicitIsland& island, std::size_t i) {
      if (!island.attempt(now_[i], next_[i], 0, energies_[i])) return false;
      island.store(next_[i], own.x.data());
      island.error(own.error.data());
      return true;
    });
    if (is_met) complete_attempt();
  } else {
    is_met =
        all_succeed(start_s, 0, each,
                    [&](ExplicitIsland& island, std::size_t i) {
                      return island.attempt(now_[i], own.coarse[i], 0, own.energies_of_coarse[i]);
                    }) &&
        all_succeed(start_s, 1, each,
                    [&](ExplicitIsland& island, std::size_t i) {
                      return island.attempt(now_[i], own.middle[i], 1, energies_[i]);
                    }) &&
        all_succeed(start_s + 0.5 * step_s, 1, each, [&](ExplicitIsland& island, std::size_t i) {
          if (!island.attempt(own.middle[i], next_[i], 1, energies_[i])) return false;
          island.store(next_[i], own.x.data());
          island.store(own.coarse[i], own.error.data());
          return true;
        });
    if (is_met) {
      complete_attempt();
      for (std::size_t i = 0; i < own.x.size(); ++i) own.error[i] = own.x[i] - own.error[i];
    }
  }
  if (!is_met) note_obstacle();
  return is_met;
}

void ExplicitStepper::note_obstacle() {
  const auto island = at(static_cast<int>(std::ranges::find(succeeded_, 0) - succeeded_.begin()));
  obstacle_ = "its energy balance is not met: " + advice_of(island);
  if (thrown_[island] == nullptr) return;
  try {
    std::rethrow_exception(thrown_[island]);
  } catch (const std::exception& error) {
    obstacle_ = error.what();
  } catch (...) {
    obstacle_ = "an unknown exception";
  }
}

NetworkStep ExplicitStepper::commit(double end_s) {
  NetworkStep result;
  result.converged = true;
  if (compares_) {
    middle(NetworkTrials::Step::attempted);
    trial_->middle_x.swap(trial_->committed_middle_x);
    trial_->is_middle_gathered = false;
  }
  close(result);
  has_before_ = has_now_;
  has_now_ = true;
  before_.swap(now_);
  now_.swap(next_);
  clock_.advance_to(end_s, step_s_);
  is_gathered_ = false;
  return result;
}

void ExplicitStepper::measure(std::span<const double> start,
                              std::span<NetworkTrials::Energies> by_block) {
  Trial& own = trial();
  own.energies.measure(own.x, own.error, start, by_block);
}

std::span<const double> ExplicitStepper::middle(NetworkTrials::Step step) {
  Trial& own = trial();
  if (step == NetworkTrials::Step::committed) return own.committed_middle_x;
  if (!own.is_middle_gathered) {
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      islands_[i]->store(own.middle[i], own.middle_x.data());
    }
    own.is_middle_gathered = true;
  }
  return own.middle_x;
}

void ExplicitStepper::archive_trials(StateArchive& archive) {
  if (!compares_) return;
  archive.array(trial().committed_middle_x);
  archive.expect_finite(trial().committed_middle_x, "a state within the last step");
}

}  // namespace portwave
