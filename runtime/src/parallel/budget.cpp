#include "portwave/runtime/parallel/budget.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "parallel/clock.hpp"

namespace portwave {
namespace {

/// Slack samples kept for quantiles.
constexpr std::size_t kSlackWindow = 4096;
/// Reading the clock and waking from it [s].
constexpr double kReserve_s = 0.5e-6;
/// What is kept for a commit, over its estimate. That of a solve is the longest of a step already.
constexpr double kCommitMargin = 1.25;
/// Samples of which no quantile is taken yet, but a middle one.
constexpr std::int64_t kYoung = 16;
/// What is kept for a commit, over the longest of many.
constexpr double kKnownCommitMargin = 1.08;
/// And for the commit after a solve: a step that does not converge for want of it has the guard act, which takes longer
/// than a slow commit.
constexpr double kCommitAfterSolve = 1.1;
/// A stretch that is so much longer than all but a few per cent of its like was not spent
/// computing.
constexpr double kPreemptionFactor = 1.3;
constexpr double kPreemptionGap_s = 4e-6;

bool stalled(double took, double usual) {
  return took > kPreemptionFactor * usual && took - usual > kPreemptionGap_s;
}

double quantile(std::vector<double>& values, double level) {
  const std::ptrdiff_t place = std::lround(level * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + place, values.end());
  return values[static_cast<std::size_t>(place)];
}

}  // namespace

std::string_view to_string(StopReason reason) {
  switch (reason) {
    case StopReason::budget:
      return "budget";
    case StopReason::tolerance:
      return "tolerance";
    case StopReason::energy_tolerance:
      return "energy_tolerance";
    case StopReason::deadline:
      return "deadline";
    case StopReason::stalled:
      return "round_off";
  }
  return "unknown";
}

void DeadlineScheduler::RunningQuantile::add(double sample) {
  if (samples.size() < kWindow) {
    samples.push_back(sample);
  } else {
    samples[static_cast<std::size_t>(count % kWindow)] = sample;
  }
  ++count;
  const bool is_young = count <= kYoung;
  if (!is_young && count % 8 != 0) return;
  sorted.assign(samples.begin(), samples.end());
  if (is_young) {
    // First steps are cold: of the middle ones the smaller, the prior guess being a sample as well.
    sorted.push_back(prior);
    std::ranges::nth_element(sorted,
                             sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() - 1) / 2);
    value = sorted[(sorted.size() - 1) / 2];
  } else {
    value = quantile(sorted, level);
  }
}

DeadlineScheduler::DeadlineScheduler(double deadline_s, double iteration_s, double commit_s)
    : deadline_s_(deadline_s) {
  iteration_.level = 0.75;
  quick_iteration_.level = 0.25;
  iteration_.begin_with(iteration_s);
  quick_iteration_.begin_with(iteration_s);
  // A commit that takes longer than foreseen is a miss, an iteration is not.
  commit_.level = 0.97;
  usual_commit_.level = 0.5;
  guard_.level = 0.75;
  for (SolveCost& solve : solve_) solve.cost.level = 0.9;
  commit_.begin_with(commit_s);
  usual_commit_.begin_with(commit_s);
  for (RunningQuantile* q : {&iteration_, &quick_iteration_, &commit_, &usual_commit_, &guard_,
                             &solve_[0].cost, &solve_[1].cost}) {
    q->samples.reserve(RunningQuantile::kWindow);
    q->sorted.reserve(RunningQuantile::kWindow + 1);
  }
  slack_.reserve(kSlackWindow);
}

/// What is kept for the commit. Where the longest commits leave no time at all nothing helps against those:
/// then for the usual ones. The guard acts less where waves agree better, so that its time, and that of own work
/// aside, is kept only where enough is left.
double DeadlineScheduler::commit_reserve() const {
  const double usual = kCommitMargin * usual_commit_.value;
  const double longest =
      (commit_.count <= kYoung ? kCommitMargin : kKnownCommitMargin) * commit_.value;
  const double commit = std::min(longest, std::max(usual, 0.5 * deadline_s_)) + kReserve_s;
  const double guarded = commit + kCommitMargin * (guard_.value + aside_s_);
  return deadline_s_ - guarded >= 2.2 * iteration_.value ? guarded : commit;
}

/// For a solve, and the evaluation after it, it is the usual commit: waves that do not agree make the guard act, which
/// takes longer than a slow commit does.
double DeadlineScheduler::left_for_solves(Time now) const {
  const double usual = kCommitAfterSolve * usual_commit_.value + kReserve_s;
  return deadline_s_ - seconds(now - begin_) - std::min(usual, commit_reserve());
}

bool DeadlineScheduler::fits(Time now, double work_s) const {
  return left_s(now) >= kCommitMargin * work_s + kReserve_s;
}

void DeadlineScheduler::begin(Time now, double late_s, double aside_s) {
  begin_ = now;
  own_late_s_ = std::min(std::max(late_s, 0.0), std::max(-last_slack_s_, 0.0));
  late_by_loss_ = own_late_s_ > 0.0 && was_preempted_;
  aside_s_ = aside_s;
  last_check_.store(now, std::memory_order_relaxed);
  last_done_.store(0, std::memory_order_relaxed);
  lost_time_.store(false, std::memory_order_relaxed);
  is_trial_ = starved_ >= patience_;
  solved_s_.store(0.0, std::memory_order_relaxed);
  seen_solved_s_.store(0.0, std::memory_order_relaxed);
  for (std::atomic<double>& most : most_) most.store(0.0, std::memory_order_relaxed);
  choose_kind(now);
}

/// A solve is of use only with an evaluation before it and one after it.
bool DeadlineScheduler::may_solve(Time now) const {
  return left_for_solves(now) >= 2.2 * iteration_.value + solve_s(0);
}

double DeadlineScheduler::solve_s(int what) const {
  const SolveCost& own = solve_[what];
  return is_solve_trial_ ? std::min(own.cost.value, own.rehearsed_s) : own.cost.value;
}

double DeadlineScheduler::left_for_iterations(Time now) const {
  return deadline_s_ - seconds(now - begin_) - commit_reserve();
}

int DeadlineScheduler::horizon(int done, int budget, Time now) const {
  const double solved = solved_s_.load(std::memory_order_relaxed);
  const double since = solved - seen_solved_s_.exchange(solved, std::memory_order_relaxed);
  const double chunk_took =
      seconds(now - last_check_.exchange(now, std::memory_order_relaxed)) - since;
  const int chunk_done = done - last_done_.exchange(done, std::memory_order_relaxed);
  if (stalled(chunk_took, std::max(chunk_done, 1) * iteration_.value)) {
    lost_time_.store(true, std::memory_order_relaxed);
  }
  const double left = since > 0.0 ? left_for_solves(now) : left_for_iterations(now);
  const double fit = left / std::max(1.1 * iteration_.value, 1e-10);
  if (!(fit >= 1.0)) {
    // The first is worth more than certainty: it is made where it fits before the usual commit and the thread is
    // not held up, or tried.
    const double usually_left =
        deadline_s_ - seconds(now - begin_) - kCommitMargin * usual_commit_.value - kReserve_s;
    const bool may_fit = 1.1 * quick_iteration_.value <= usually_left || is_trial_;
    return done == 0 && usually_left > 0.0 && may_fit ? std::min(budget, 1) : done;
  }
  // Half of what fits: the rest is decided with a better look at the clock. Solves take time within a chunk, and those
  // that follow one another are looked at one by one.
  double chunk = std::clamp(0.5 * fit, 1.0, 1e6);
  const bool has_solves = solve_[0].rehearsed_s > 0.0 || solve_[1].rehearsed_s > 0.0;
  if (has_solves && affords(now) != Solve::none) {
    const double with_solve_s = 1.1 * iteration_.value + solve_s(0);
    const bool solves_now = done == 0 || since > 0.0;
    chunk = solves_now ? 1.0 : std::clamp(0.5 * left / with_solve_s, 1.0, chunk);
  }
  return std::min(budget, done + static_cast<int>(chunk));
}

DeadlineScheduler::Solve DeadlineScheduler::affords(Time now) const {
  if (!solves_) return Solve::none;
  const double left = left_for_solves(now) - 1.1 * iteration_.value;
  const double with_factors = solve_s(0);
  if (left >= with_factors + solve_s(1)) return Solve::new_factors;
  return left >= with_factors ? Solve::with_factors : Solve::none;
}

void DeadlineScheduler::took(Solve what, double time_s) const {
  solved_s_.fetch_add(time_s, std::memory_order_relaxed);
  if (what == Solve::none) return;
  std::atomic<double>& most = most_[what == Solve::new_factors ? 1 : 0];
  double seen = most.load(std::memory_order_relaxed);
  while (seen < time_s && !most.compare_exchange_weak(seen, time_s, std::memory_order_relaxed)) {
  }
}

void DeadlineScheduler::rehearse(Solve what, double time_s) {
  SolveCost& own = solve_[what == Solve::new_factors ? 1 : 0];
  own.rehearsed_s = std::max(own.rehearsed_s, time_s);
  own.cost.begin_with(own.rehearsed_s);
}

void DeadlineScheduler::Left::add(double sample) {
  constexpr double kWeight = 0.25;
  value = is_known ? value + kWeight * (sample - value) : sample;
  is_known = true;
}

/// Solving or plain. Where solves have become too expensive they are tried as they were rehearsed.
void DeadlineScheduler::choose_kind(Time now) {
  is_of_other_kind_ = left_[prefers_solves_ ? 1 : 0].is_known && until_other_ <= 0;
  solves_ = prefers_solves_ != is_of_other_kind_;
  is_solve_trial_ = solves_ && (until_solve_ == 0 || is_of_other_kind_);
  if (!solves_ || may_solve(now)) return;
  solves_ = is_solve_trial_ = false;
  if (prefers_solves_) return;
  is_of_other_kind_ = false;  // there is no time for a trial
  until_other_ = std::max(until_other_, 0);
}

/// What the step says about its kind. Where it converged nothing is better. Solving is tried for some steps, as long as
/// each leaves clearly less than the one before: the first begins with the factors of long ago. `until_other_` counts
/// them below 0.
void DeadlineScheduler::learn_kind(const Outcome& step) {
  constexpr double kLeast = -80.0;  // ln of 1e-35: rounding
  constexpr int kMostTrialSteps = 6, kMostInNeed = 128;
  constexpr double kGain = 0.1;
  const int most = step.converged ? kMostPatienceAtRest : kMostInNeed;
  const double left = step.residual > 0.0 ? std::max(std::log(step.residual), kLeast) : kLeast;
  Left& own = left_[solves_ ? 1 : 0];
  if (!is_of_other_kind_) {
    until_other_ = step.converged ? other_patience_ : std::clamp(until_other_ - 1, 0, most);
    if (step.iterations > 0) own.add(left);
    return;
  }
  const bool is_first = until_other_ == 0;
  const bool falls = solves_ && step.iterations > 0 && (is_first || left < own.value - kGain);
  const bool is_better =
      step.converged || (step.iterations > 0 && left < left_[prefers_solves_ ? 1 : 0].value);
  if (step.iterations > 0) own = {.value = left, .is_known = true};
  --until_other_;
  if (falls && !is_better && until_other_ > -kMostTrialSteps) return;
  if (is_better) prefers_solves_ = !prefers_solves_;
  other_patience_ = is_better ? kLeastPatience : std::min(2 * other_patience_, most);
  until_other_ = other_patience_;
}

/// What the solves of the step say about their cost. Returns whether one took far too long.
bool DeadlineScheduler::learn_solves(const Outcome& step) {
  bool is_stalled = false, has_solved = false, is_dear = false, is_cheap = true;
  for (int i = 0; i < 2; ++i) {
    SolveCost& own = solve_[i];
    const double most = most_[i].load(std::memory_order_relaxed);
    if (most > 0.0) {
      has_solved = true;
      if (own.rehearsed_s == 0.0) rehearse(i == 1 ? Solve::new_factors : Solve::with_factors, most);
      const bool is_usual = !stalled(most, own.rehearsed_s);
      is_cheap = is_cheap && is_usual;
      is_stalled = is_stalled || (!is_solve_trial_ && stalled(most, own.cost.value));
      if (is_solve_trial_ && is_usual) own.cost.forget(most);
      own.cost.add(most);
    }
    is_dear = is_dear || stalled(own.cost.value, own.rehearsed_s);
  }
  if (is_solve_trial_ && has_solved) {
    solve_patience_ =
        is_cheap ? kLeastPatience : std::min(2 * solve_patience_, kMostPatienceInNeed);
    until_solve_ = solve_patience_;
  } else if (!is_dear || step.converged) {
    until_solve_ = solve_patience_;
  } else {
    until_solve_ = std::max(until_solve_ - 1, 0);
  }
  return is_stalled;
}

double DeadlineScheduler::finish(const Outcome& step) {
  const bool solved = most_[0].load(std::memory_order_relaxed) > 0.0 ||
                      most_[1].load(std::memory_order_relaxed) > 0.0;
  if (learn_solves(step)) lost_time_.store(true, std::memory_order_relaxed);
  const double all = seconds(step.inner_end - begin_);
  // Several threads may solve at once.
  const double inner = std::max(all - solved_s_.load(std::memory_order_relaxed), 0.01 * all);
  const double aside = step.guard_s + step.examined_s;
  const double commit = std::max(seconds(step.end - step.inner_end) - aside, 0.0);
  const double slack = deadline_s_ - seconds(step.end - begin_);
  ++steps_;
  if (steps_ == 1) counted_.worst_slack_s = slack;
  counted_.worst_slack_s = std::min(counted_.worst_slack_s, slack);
  if (slack < 0.0) count_miss(step, inner, commit, slack);
  if (step.out_of_time) {
    ++could_use_;
    unused_ += deadline_s_ > 0.0 ? std::clamp(slack / deadline_s_, 0.0, 1.0) : 0.0;
  }
  if (solved || !solves_) learn_kind(step);
  learn(step.iterations, inner);
  commit_.add(commit);
  usual_commit_.add(commit);
  guard_.add(step.guard_s);
  if (slack_.size() < kSlackWindow) slack_.push_back(slack);
  note_slack(slack);
  return slack;
}

void DeadlineScheduler::note_slack(double slack_s) {
  slack_[static_cast<std::size_t>(steps_ - 1) % kSlackWindow] = slack_s;
  last_slack_s_ = slack_s;
}

double DeadlineScheduler::extend(Time now) {
  const double slack = left_s(now);
  if (steps_ == 0) return slack;
  if (slack < 0.0 && last_slack_s_ >= 0.0) {
    ++counted_.misses;
    ++counted_.guard_misses;
    was_preempted_ = false;
  }
  counted_.worst_slack_s = std::min(counted_.worst_slack_s, slack);
  note_slack(slack);
  return slack;
}

void DeadlineScheduler::count_miss(const Outcome& step, double inner_s, double commit_s,
                                   double slack_s) {
  ++counted_.misses;
  const bool iterations_stalled = lost_time_.load(std::memory_order_relaxed) ||
                                  stalled(inner_s, std::max(step.iterations, 1) * iteration_.value);
  // An iteration or a solve that did not seem to fit is the scheduler's own doing.
  const bool was_tried = (is_trial_ && step.iterations > 0) || is_solve_trial_;
  const bool is_due_to_the_last = slack_s + step.guard_s + step.examined_s + own_late_s_ >= 0.0;
  was_preempted_ = (iterations_stalled && !was_tried) || stalled(commit_s, commit_.value);
  if (was_preempted_) {
    ++counted_.preempted_misses;
  } else if (slack_s + step.guard_s + step.examined_s >= 0.0) {
    ++counted_.guard_misses;
  } else if (is_due_to_the_last) {
    was_preempted_ = late_by_loss_;
    ++(late_by_loss_ ? counted_.preempted_misses : counted_.late_misses);
  } else if (was_tried) {
    ++counted_.trial_misses;
  }
}

void DeadlineScheduler::learn(int iterations, double inner_s) {
  if (iterations == 0) {
    ++starved_;
    return;
  }
  const double took = inner_s / iterations;
  if (is_trial_) {
    const bool fits = 1.1 * took < deadline_s_ - commit_reserve();
    patience_ = fits ? kLeastPatience : std::min(2 * patience_, kMostPatience);
    if (fits) {
      iteration_.forget(took);
      quick_iteration_.forget(took);
    }
  }
  starved_ = 0;
  iteration_.add(took);
  quick_iteration_.add(took);
}

DeadlineScheduler::Statistics DeadlineScheduler::statistics() const {
  Statistics out = counted_;
  out.steps = steps_;
  if (could_use_ > 0) out.unused_share = unused_ / static_cast<double>(could_use_);
  if (slack_.empty()) return out;
  std::vector<double> sorted = slack_;
  out.slack_p01_s = quantile(sorted, 0.01);
  out.slack_p50_s = quantile(sorted, 0.5);
  out.slack_p99_s = quantile(sorted, 0.99);
  return out;
}

}  // namespace portwave
