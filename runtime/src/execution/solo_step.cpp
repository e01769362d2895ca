#include "execution/solo_step.hpp"

#include <algorithm>
#include <cstddef>

namespace portwave {

SoloStep::SoloStep(Task& task, const WaveDiscretisation& waves, AlignedVector& exchanged)
    : task_(task), waves_(waves), stopped_(task.islands().size(), 0), exchanged_(exchanged) {
  if (stopped_.size() > 1) exchanged_.resize(static_cast<std::size_t>(waves.wave_size()), 0.0);
}

void SoloStep::begin(const StepArrays& s, const IterationRule& rule,
                     std::span<IslandOutcome> outcomes) {
  task_.outcome.failed_at = -1;
  done_ = 0;
  open_ = static_cast<int>(stopped_.size());
  std::fill(stopped_.begin(), stopped_.end(), 0);
  for (const int island : task_.islands()) outcomes[static_cast<std::size_t>(island)] = {};
  task_.start(s, rule.budget == 0 ? s.a : s.u);
}

bool judge_evaluation(const StepArrays& s, const IterationRule& rule, int island,
                      const double* exchanged, IslandOutcome& outcome) {
  const InterfaceGap gap = s.residual->gap(island, rule.tolerance_per_part);
  const double square = 2.0 * gap.energy_J;
  bool stands = true;
  bool solved = s.interface != nullptr && s.interface->engaged(island);
  if (solved) {
    stands = s.interface->accept(island, square);
  } else if (s.acceleration != nullptr) {
    s.acceleration->judge(island, square);
    stands = s.acceleration->sequence(island).stands();
  }
  if (stands) {
    outcome.gap = gap;
    rule.judge(gap, outcome.converged, outcome.by_energy);
  }
  if (s.interface == nullptr || outcome.converged || outcome.iterations >= rule.budget) {
    return stands;
  }
  const bool late = rule.rescue_after > 0 && outcome.iterations >= rule.rescue_after;
  if (!solved && late && stands && s.interface->engage(island)) {
    if (s.acceleration != nullptr) s.acceleration->sequence(island).abandon();
    solved = outcome.rescued = s.interface->accept(island, square);
  }
  if (solved) s.interface->advance(island, s.record, s.u, exchanged);
  return stands;
}

void restore_shadow(const StepArrays& s, const Task& task) {
  const int island = task.islands().front();
  const bool solved = s.interface != nullptr && s.interface->engaged(island);
  const bool stands = solved
                          ? s.interface->stands(island)
                          : s.acceleration == nullptr || s.acceleration->sequence(island).stands();
  if (!stands) task.restore_shadow(s, 0);
}

bool SoloStep::has_stopped(int part) const {
  const int island = waves_.system().island_of_part(part);
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (task_.islands()[i] == island) return stopped_[i] != 0;
  }
  return false;
}

bool SoloStep::solve(const StepArrays& s, const IterationRule& rule) {
  PhaseStatus failure;
  task_.iterate(s, done_, rule.update, 0, [&](PhaseStatus&& found) {
    if (!has_stopped(found.part)) {
      failure.merge(std::move(found));
    } else {  // it may hide one that counts
      failure.merge(task_.find_failure(s, [&](int part) { return !has_stopped(part); }));
    }
  });
  if (failure.ok()) return true;
  task_.outcome = {done_, std::move(failure)};
  return false;
}

void SoloStep::judge(const StepArrays& s, const IterationRule& rule,
                     std::span<IslandOutcome> outcomes) {
  double* exchanged = stopped_.size() > 1 ? exchanged_.data() : s.a;
  task_.exchange(s, 0, exchanged);
  task_.measure(s, exchanged);
  for (std::size_t i = 0; i < stopped_.size(); ++i) {
    if (stopped_[i] != 0) continue;
    IslandOutcome& outcome = outcomes[static_cast<std::size_t>(task_.islands()[i])];
    outcome.iterations = done_;
    if (!judge_evaluation(s, rule, task_.islands()[i], exchanged, outcome)) {
      // The one that stands is there already where islands have arrays of their own.
      if (stopped_.size() == 1) task_.restore_shadow(s, i);
      continue;
    }
    // The last one is kept too: the budget or the clock may end the iteration here.
    if (stopped_.size() > 1) task_.copy_island(i, exchanged, s.a);
    if (!outcome.converged) continue;
    stopped_[i] = 1;
    --open_;
  }
}

bool SoloStep::iterate(const StepArrays& s, const IterationRule& rule, int limit,
                       std::span<IslandOutcome> outcomes) {
  if (task_.outcome.failed_at >= 0) return false;
  while (rule.checked() && done_ < limit && open_ > 0) {
    if (!solve(s, rule)) return false;
    ++done_;
    judge(s, rule, outcomes);
  }
  if (!rule.checked()) {
    PhaseStatus failure;
    done_ = task_.iterate_alone(s, done_, limit, rule.update, failure);
    if (done_ < limit) {
      task_.outcome = {done_, std::move(failure)};
      return false;
    }
    for (const int island : task_.islands()) {
      outcomes[static_cast<std::size_t>(island)].iterations = done_;
    }
  }
  return open_ > 0 && done_ < rule.budget;
}

void SoloStep::commit(const StepArrays& s, const IterationRule& rule) {
  if (task_.outcome.failed_at >= 0) return;
  if (done_ == 0 && rule.budget > 0) {
    task_.start(s, s.a);
  } else if (done_ > 0 && !rule.checked()) {
    task_.exchange(s, 0, s.a);
  }
  PhaseStatus failure;
  if (!task_.commit(s, failure)) task_.outcome = {TaskOutcome::kCommit, std::move(failure)};
}

}  // namespace portwave
