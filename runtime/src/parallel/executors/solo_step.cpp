#include "parallel/executors/solo_step.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "parallel/clock.hpp"

namespace portwave {

SoloStep::SoloStep(Task& task, const WaveDiscretisation& waves, AlignedVector& exchanged,
                   double share)
    : share_(share),
      task_(task),
      waves_(waves),
      stopped_(task.islands().size(), 0),
      exchanged_(exchanged) {
  for (std::size_t i = 0; i < stopped_.size(); ++i) islands_.emplace_back(task, i);
  if (stopped_.size() > 1) exchanged_.resize(static_cast<std::size_t>(waves.wave_size()), 0.0);
}

void SoloStep::begin() {
  task_.outcome.failed_at = -1;
  done_ = 0;
  open_ = static_cast<int>(stopped_.size());
  std::fill(stopped_.begin(), stopped_.end(), 0);
  has_shadow_ = false;
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
  Clock::spend(done_ == 0 ? Work::first_evaluation : Work::evaluation, share_);
  if (failure.ok()) return true;
  task_.outcome = {done_, std::move(failure)};
  return false;
}

void SoloStep::judge(const StepArrays& s, const IterationRule& rule,
                     std::span<IslandOutcome> outcomes) {
  const bool apart = islands_.size() > 1;
  double* exchanged = apart ? exchanged_.data() : s.a;
  task_.exchange(s, 0, exchanged);
  task_.measure(s, exchanged);
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (stopped_[i] != 0) continue;
    const IslandIteration& island = islands_[i];
    IslandOutcome& outcome = outcomes[static_cast<std::size_t>(island.island())];
    const bool stops = island.judge(s, rule, done_, exchanged, outcome);
    // The last one is kept too: the budget or the clock may end the iteration here.
    if (apart) island.keep_shadow(s, exchanged);
    if (!stops) continue;
    stopped_[i] = 1;
    --open_;
  }
}

bool SoloStep::iterate(const StepArrays& s, const IterationRule& rule, int limit,
                       std::span<IslandOutcome> outcomes) {
  if (task_.outcome.failed_at >= 0) return false;
  if (done_ == 0 && limit == rule.budget && !rule.checked() &&
      task_.iterate_at_once(s, limit, rule.update)) {
    has_shadow_ = true;
    done_ = limit;
    for (const int island : task_.islands()) {
      outcomes[static_cast<std::size_t>(island)].iterations = done_;
    }
    return false;
  }
  if (done_ == 0 && limit > 0) task_.begin(s);
  while (rule.checked() && done_ < limit && open_ > 0) {
    if (!solve(s, rule)) return false;
    ++done_;
    judge(s, rule, outcomes);
  }
  if (!rule.checked()) {
    PhaseStatus failure;
    const int before =
        std::exchange(done_, task_.iterate_alone(s, done_, limit, rule.update, failure));
    const int first = before == 0 && done_ > 0 ? 1 : 0;
    Clock::spend(Work::first_evaluation, share_ * first);
    Clock::spend(Work::evaluation, share_ * (done_ - before - first));
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

bool SoloStep::iterate(const StepArrays& s, const StepPlan& plan, int limit,
                       std::span<IslandOutcome> outcomes, GapShares& shares) {
  const int group = task_.island_group();
  bool goes_on = true;
  const auto iterate_to = [&](int next) {
    const int before = done_;
    goes_on = iterate(s, plan.rule, next, outcomes);
    if (done_ > before) shares.note(group, task_.islands(), outcomes, goes_on);
  };
  iterate_to(limit);
  const DeadlineScheduler& deadline = *plan.deadline;
  while (goes_on && shares.gains_most(group) &&
         deadline.fits(Clock::now(), shares.cost_s(group) + deadline.commit_s())) {
    iterate_to(done_ + 1);
  }
  return goes_on;
}

void SoloStep::commit(const StepArrays& s, const IterationRule& rule) {
  if (task_.outcome.failed_at >= 0) return;
  if (!has_shadow_) choose_shadow(task_, s, rule, done_, 0);
  PhaseStatus failure;
  Clock::spend(Work::commit, share_);
  if (!task_.commit(s, failure)) task_.outcome = {TaskOutcome::kCommit, std::move(failure)};
}

}  // namespace portwave
