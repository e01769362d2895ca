#include "portwave/runtime/parallel/budget.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "parallel/clock.hpp"

namespace portwave {
namespace {

/// Slack samples kept for quantiles.
constexpr std::size_t kSlackWindow = 4096;
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

void DeadlineScheduler::GuardCost::add(double sample_s, bool acts) {
  constexpr double kWeight = 0.125;
  if (acts) mean_s = mean_s > 0.0 ? mean_s + kWeight * (sample_s - mean_s) : sample_s;
  const double own = acts ? 1.0 : 0.0;
  share = is_known ? share + kWeight * (own - share) : own;
  is_known = true;
}

void WorkCost::add(double sample_s) {
  constexpr double kFarthest = 3.0, kLeastSpread = 0.02;
  if (mean_s_ == 0.0) return expect(sample_s);
  const double spread = std::max(spread_s_, kLeastSpread * mean_s_);
  // No loss makes work shorter: the guess was wrong.
  if (weight_ > 2.0 * kWeight && sample_s < mean_s_ - kFarthest * spread) return expect(sample_s);
  const double off = std::clamp(sample_s - mean_s_, -kFarthest * spread, kFarthest * spread);
  mean_s_ += weight_ * off;
  spread_s_ = std::sqrt(spread * spread + weight_ * (off * off - spread * spread));
  weight_ = std::max(weight_ / (1.0 + weight_), kWeight);
}

DeadlineScheduler::DeadlineScheduler(double deadline_s, double iteration_s, double commit_s)
    : deadline_s_(deadline_s) {
  iteration_.expect(iteration_s);
  first_.expect(1.0);
  commit_.expect(commit_s);
  slack_.reserve(kSlackWindow);
}

/// How much more time a step takes, all but a few times in a hundred, with evaluations of so much weight and a solve.
double DeadlineScheduler::end_s(double weight, double solve_s) const {
  const double spreads =
      std::hypot(iteration_.spread_s() * std::sqrt(weight), commit_.spread_s(),
                 solve_s > 0.0 && !is_solve_trial_ ? solve_[0].cost.spread_s() : 0.0);
  return weight * iteration_.mean_s() + solve_s + commit_.mean_s() + WorkCost::kSpreads * spreads;
}

/// Of the step so far. Time between two readings beyond what evaluations take, all but a few times in a hundred.
double DeadlineScheduler::lost_s(Time now) const {
  const double solved =
      solved_s_.load(std::memory_order_relaxed) - seen_solved_s_.load(std::memory_order_relaxed);
  const double took = seconds(now - last_check_.load(std::memory_order_relaxed)) - solved;
  const double granted = weight_of(last_done_.load(std::memory_order_relaxed),
                                   granted_.load(std::memory_order_relaxed));
  return lost_s_.load(std::memory_order_relaxed) +
         std::max(took - granted * iteration_.most_s(), 0.0);
}

bool DeadlineScheduler::fits(Time now, double work_s) const {
  return left_s(now) >= (1.0 + WorkCost::kSpreads * WorkCost::kGuess) * work_s;
}

/// Whether another iteration is made, after a solve of this cost. `extra_s`: time beyond the deadline; it may grow.
bool DeadlineScheduler::goes_on(int done, int budget, double solve_s, Time now,
                                double& extra_s) const {
  if (done >= budget) return false;
  // As long as no second one was timed it may take less than the first.
  constexpr double kUntimed = 0.5;
  const double weight = done == 1 && is_one_start_ && !knows_first_ ? kUntimed : weight_of(done, 1);
  const double left = left_s(now), next_s = weight * iteration_.mean_s() + solve_s;
  const auto stops_late = [&](double guard_s) { return commit_.mean_s() + guard_s > left; };
  // More evaluations need the guard no more.
  int known = std::min(done, kCounts - 1);
  while (known < kCounts && !guard_at_stop_[known].is_known) ++known;
  const bool knows_stop = known < kCounts;
  const double stop_s = knows_stop ? guard_at_stop_[known].expected_s() : 0.0;
  const double later_s = iteration_.mean_s() + (solves_ ? this->solve_s(0) : 0.0);
  // What the guard takes is kept free, after one of those that fit, where the step ends in time by that.
  const auto fits = [&] {
    const double spare_s = left + extra_s - end_s(weight, solve_s);
    if (spare_s >= 0.0 && (!knows_stop || stops_late(stop_s))) return true;
    double work_s = 0.0;
    for (int more = 1; work_s <= spare_s && more <= kCounts; ++more, work_s += later_s) {
      if (spare_s - work_s >= guard(done + more).usual_s()) return true;
    }
    return false;
  };
  if (fits()) return true;
  // The first is worth more than certainty.
  if (done == 0 && (next_s + commit_.mean_s() <= left + extra_s || (is_trial_ && !stops_late(0.0))))
    return true;
  const GuardCost& stop = guard_at_stop(done);
  if (const double lost = lost_s(now);
      lost > 0.0 && deadline_s_ >= end_s(weight_of(0, 1), 0.0) &&
      stops_late(stop.is_known ? stop.expected_s() : guess_of_guard_s_)) {
    extra_s = std::max(extra_s, lost);
    if (fits()) return true;
  }
  if (!stops_late(stop_s) || stops_late(0.0)) return false;
  double least = stop_s, work_s = next_s;
  for (int more = 1; work_s < least && more <= kCounts; ++more, work_s += later_s) {
    const double guarded = work_s + guard(done + more).expected_s();
    if (guarded >= least) continue;
    least = guarded;
    extra_s = std::max(extra_s, work_s + end_s(0.0, 0.0) - left);
  }
  return least < stop_s;
}

void DeadlineScheduler::begin(Time now, double late_s, double least_s) {
  begin_ = now;
  own_late_s_ = std::min(std::max(late_s, 0.0), std::max(-last_slack_s_, 0.0));
  late_by_loss_ = own_late_s_ > 0.0 && was_preempted_;
  for (std::atomic<Time>* own : {&last_check_, &first_check_})
    own->store(now, std::memory_order_relaxed);
  for (std::atomic<int>* own :
       {&last_done_, &granted_, &starts_, &solve_[0].count, &solve_[1].count}) {
    own->store(0, std::memory_order_relaxed);
  }
  for (std::atomic<bool>* own : {&lost_time_, &has_begun_})
    own->store(false, std::memory_order_relaxed);
  for (std::atomic<double>* own : {&solved_s_, &seen_solved_s_, &lost_s_, &first_took_s_}) {
    own->store(0.0, std::memory_order_relaxed);
  }
  least_s_ = least_s;
  extra_s_.store(std::max(least_s - deadline_s_, 0.0), std::memory_order_relaxed);
  is_trial_ = starved_ >= patience_;
  choose_kind(now);
}

/// A solve is of use only with an evaluation before it and one after it.
bool DeadlineScheduler::may_solve(Time now) const {
  return left_s(now) + extra_s_.load(std::memory_order_relaxed) >=
         end_s(weight_of(0, 2), 0.0) + solve_s(0);
}

double DeadlineScheduler::solve_s(int what) const {
  const SolveCost& own = solve_[what];
  return is_solve_trial_ ? std::min(own.cost.mean_s(), own.rehearsed_s) : own.cost.mean_s();
}

int DeadlineScheduler::horizon(int done, int budget, Time now) const {
  if (!has_begun_.load(std::memory_order_acquire)) {
    // What comes before the iterations is no part of them.
    if (knows_start_)
      lost_s_.store(std::max(seconds(now - begin_) - start_.most_s(), 0.0),
                    std::memory_order_relaxed);
    first_check_.store(now, std::memory_order_relaxed);
    last_check_.store(now, std::memory_order_relaxed);
    solved_s_.store(0.0, std::memory_order_relaxed);
    has_begun_.store(true, std::memory_order_release);  // others find the readings
  }
  const double lost = lost_s(now);
  const double solved = solved_s_.load(std::memory_order_relaxed);
  const double since = solved - seen_solved_s_.exchange(solved, std::memory_order_relaxed);
  const double chunk_took =
      seconds(now - last_check_.exchange(now, std::memory_order_relaxed)) - since;
  const int before = last_done_.exchange(done, std::memory_order_relaxed);
  if (done == 0) starts_.fetch_add(1, std::memory_order_relaxed);
  if (before == 0 && done == 1) first_took_s_.store(chunk_took, std::memory_order_relaxed);
  if (stalled(chunk_took, weight_of(before, std::max(done - before, 1)) * iteration_.mean_s())) {
    lost_time_.store(true, std::memory_order_relaxed);
  }
  granted_.store(0, std::memory_order_relaxed);
  lost_s_.store(lost, std::memory_order_relaxed);
  double extra_s = extra_s_.load(std::memory_order_relaxed);
  const bool goes_on = this->goes_on(done, budget, 0.0, now, extra_s);
  extra_s_.store(extra_s, std::memory_order_relaxed);
  if (!goes_on) return done;
  // The first by itself, then half of what fits: the rest is decided with a better look at the clock. Solves take time
  // within a chunk, and those that follow one another are looked at one by one.
  const double left = left_s(now) + extra_s - commit_.most_s();
  const double most = done == 0 ? 1.0 : 1e6;
  double chunk = std::clamp(0.5 * left / std::max(iteration_.most_s(), 1e-10), 1.0, most);
  const bool has_solves = solve_[0].rehearsed_s > 0.0 || solve_[1].rehearsed_s > 0.0;
  if (has_solves && affords(now) != Solve::none) {
    const bool solves_now = done == 0 || since > 0.0;
    const double with_solve_s = iteration_.most_s() + solve_s(0);
    chunk = solves_now ? 1.0 : std::clamp(0.5 * left / with_solve_s, 1.0, chunk);
  }
  const int granted = std::min(budget - done, static_cast<int>(chunk));
  granted_.store(granted, std::memory_order_relaxed);
  return done + granted;
}

/// At an evaluation that is over, which is one after the last look at the clock where solves follow one another.
DeadlineScheduler::Solve DeadlineScheduler::affords(Time now) const {
  if (!solves_) return Solve::none;
  const int granted = std::max(granted_.load(std::memory_order_relaxed), 1);
  const int done = last_done_.load(std::memory_order_relaxed) + granted;
  const double with_factors = solve_s(0);
  double extra_s = extra_s_.load(std::memory_order_relaxed);
  if (!goes_on(done, done + kCounts, with_factors, now, extra_s)) return Solve::none;
  const double anew = end_s(1.0, with_factors + solve_s(1));
  return left_s(now) + extra_s >= anew ? Solve::new_factors : Solve::with_factors;
}

void DeadlineScheduler::took(Solve what, double time_s) const {
  solved_s_.fetch_add(time_s, std::memory_order_relaxed);
  if (what == Solve::none) return;
  SolveCost& own = solve_[what == Solve::new_factors ? 1 : 0];
  const int place = own.count.fetch_add(1, std::memory_order_relaxed);
  if (place < SolveCost::kKept) own.samples[place].store(time_s, std::memory_order_relaxed);
  const double lost = std::max(time_s - own.cost.most_s(), 0.0);
  if (own.rehearsed_s > 0.0) lost_s_.fetch_add(lost, std::memory_order_relaxed);
}

void DeadlineScheduler::rehearse(Solve what, double time_s) {
  SolveCost& own = solve_[what == Solve::new_factors ? 1 : 0];
  own.rehearsed_s = std::max(own.rehearsed_s, time_s);
  own.cost.expect(own.rehearsed_s);
}

void DeadlineScheduler::Left::add(double sample) {
  constexpr double kWeight = 0.25;
  value = is_known ? value + kWeight * (sample - value) : sample;
  is_known = true;
}

/// Whether a step of the other kind may cost what it leaves: no more than what all steps since the last one have left. Of
/// the first one it is not known; the guess is the root of what the others leave.
bool DeadlineScheduler::may_try_other() const {
  const Left &own = left_[prefers_solves_ ? 1 : 0], &other = left_[prefers_solves_ ? 0 : 1];
  if (!own.is_known || until_other_ > 0) return false;
  const double price = (other.is_known ? other.value : 0.5 * own.value) - own.value;
  return until_other_ < 0 || since_other_ >= kMostPatienceAtRest ||
         std::log(static_cast<double>(since_other_)) >= price;
}

/// Solving or plain. Where solves have become too expensive they are tried as they were rehearsed.
void DeadlineScheduler::choose_kind(Time now) {
  is_of_other_kind_ = may_try_other();
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
    if (!step.converged) ++since_other_;
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
  since_other_ = 0;
}

/// What the solves of the step say about their cost. Returns whether one took far too long.
bool DeadlineScheduler::learn_solves(const Outcome& step) {
  bool is_stalled = false, has_solved = false, is_dear = false, is_cheap = true;
  for (int i = 0; i < 2; ++i) {
    SolveCost& own = solve_[i];
    double most = 0.0;
    for (int k = 0; k < own.known(); ++k) {
      const double sample = own.samples[k].load(std::memory_order_relaxed);
      most = std::max(most, sample);
      if (own.rehearsed_s == 0.0)
        rehearse(i == 1 ? Solve::new_factors : Solve::with_factors, sample);
      if (is_solve_trial_ && !stalled(sample, own.rehearsed_s) &&
          stalled(own.cost.mean_s(), sample)) {
        own.cost.expect(sample);
      }
      own.cost.add(sample);
    }
    if (most > 0.0) {
      has_solved = true;
      is_cheap = is_cheap && !stalled(most, own.rehearsed_s);
      is_stalled = is_stalled || (!is_solve_trial_ && stalled(most, own.cost.mean_s()));
    }
    is_dear = is_dear || stalled(own.cost.mean_s(), own.rehearsed_s);
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
  const bool solved = solve_[0].known() + solve_[1].known() > 0;
  if (learn_solves(step)) lost_time_.store(true, std::memory_order_relaxed);
  const Time first = first_check_.load(std::memory_order_relaxed);
  if (has_begun_.load(std::memory_order_relaxed)) {
    if (!knows_start_) start_.expect(seconds(first - begin_));
    start_.add(seconds(first - begin_));
    knows_start_ = true;
  }
  const double all = seconds(step.inner_end - first);
  // Several threads may solve at once.
  const double inner = std::max(all - solved_s_.load(std::memory_order_relaxed), 0.01 * all);
  const double aside = step.guard_s + step.examined_s;
  const double commit = std::max(seconds(step.end - step.inner_end) - aside, 0.0);
  const double slack = deadline_s_ - seconds(step.end - begin_);
  ++steps_;
  if (steps_ == 1) counted_.worst_slack_s = slack;
  counted_.worst_slack_s = std::min(counted_.worst_slack_s, slack);
  if (slack < 0.0) count_miss(step, inner, commit, slack);
  has_new_work_ = false;
  if (step.out_of_time) {
    ++could_use_;
    unused_ += deadline_s_ > 0.0 ? std::clamp(slack / deadline_s_, 0.0, 1.0) : 0.0;
  }
  if (solved || !solves_) learn_kind(step);
  learn(step.iterations, inner);
  commit_.add(commit);
  learn_guard(step);
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
  const bool iterations_stalled =
      lost_time_.load(std::memory_order_relaxed) ||
      stalled(inner_s, weight_of(0, std::max(step.iterations, 1)) * iteration_.mean_s());
  // An iteration or a solve that did not seem to fit is the scheduler's own doing.
  const bool was_tried = (is_trial_ && step.iterations > 0) || is_solve_trial_;
  const bool is_due_to_the_last = slack_s + step.guard_s + step.examined_s + own_late_s_ >= 0.0;
  was_preempted_ =
      !has_new_work_ && ((iterations_stalled && !was_tried) || stalled(commit_s, commit_.mean_s()));
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
  const double first_s = first_took_s_.load(std::memory_order_relaxed);
  is_one_start_ = starts_.load(std::memory_order_relaxed) == 1;
  const bool is_apart = iterations > 1 && first_s > 0.0 && is_one_start_;
  const double took = is_apart ? std::max(inner_s - first_s, 0.01 * inner_s) / (iterations - 1)
                               : inner_s / weight_of(0, iterations);
  if (is_trial_) {
    const bool fits = inner_s + commit_.mean_s() <= std::max(deadline_s_, least_s_);
    patience_ = fits ? kLeastPatience : std::min(2 * patience_, kMostPatience);
    if (fits) iteration_.expect(took);
  }
  starved_ = 0;
  iteration_.add(took);
  if (!is_apart) return;
  if (!std::exchange(knows_first_, true)) {
    first_.expect(first_s / took);
    iteration_.expect(took);
  }
  first_.add(first_s / took);
}

/// What is not seen is forgotten: it may have become better.
void DeadlineScheduler::learn_guard(const Outcome& step) {
  constexpr double kKept = 0.995;
  for (int i = 0; i < kCounts; ++i) {
    guard_[i].share *= kKept;
    guard_at_stop_[i].share *= kKept;
  }
  const int place = std::min(step.iterations, kCounts - 1);
  const bool acts = step.guard_s > commit_.mean_s();  // its sums alone take about as long
  guard_[place].add(step.guard_s, acts);
  if (!step.converged) guard_at_stop_[place].add(step.guard_s, acts);
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
