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
  const bool young = count <= 16;
  if (!young && count % 8 != 0) return;
  sorted.assign(samples.begin(), samples.end());
  value = quantile(sorted, young ? 0.5 : level);
}

DeadlineScheduler::DeadlineScheduler(double deadline_s, double iteration_s, double commit_s)
    : deadline_s_(deadline_s) {
  iteration_.level = 0.75;
  quick_iteration_.level = 0.25;
  iteration_.value = quick_iteration_.value = iteration_s;
  // A commit that takes longer than foreseen is a miss, an iteration is not.
  commit_.level = 0.97;
  usual_commit_.level = 0.5;
  commit_.value = usual_commit_.value = commit_s;
  for (RunningQuantile* q : {&iteration_, &quick_iteration_, &commit_, &usual_commit_}) {
    q->samples.reserve(RunningQuantile::kWindow);
    q->sorted.reserve(RunningQuantile::kWindow);
  }
  slack_.reserve(kSlackWindow);
}

/// What is kept for the commit. Where the longest commits leave no time at all nothing helps against those:
/// then for the usual ones.
double DeadlineScheduler::commit_reserve() const {
  constexpr double kMargin = 1.25;
  const double usual = kMargin * usual_commit_.value;
  return std::min(kMargin * commit_.value, std::max(usual, 0.5 * deadline_s_)) + kReserve_s;
}

double DeadlineScheduler::left_for_iterations(Time now) const {
  return deadline_s_ - seconds(now - begin_) - commit_reserve();
}

int DeadlineScheduler::horizon(int done, int budget, Time now) const {
  const double solved = solved_s_.load(std::memory_order_relaxed);
  const double chunk_took = seconds(now - last_check_.exchange(now, std::memory_order_relaxed)) -
                            (solved - seen_solved_s_.exchange(solved, std::memory_order_relaxed));
  const int chunk_done = done - last_done_.exchange(done, std::memory_order_relaxed);
  if (stalled(chunk_took, chunk_done * iteration_.value)) {
    lost_time_.store(true, std::memory_order_relaxed);
  }
  const double left = left_for_iterations(now);
  const double fit = left / std::max(1.1 * iteration_.value, 1e-10);
  if (!(fit >= 1.0)) {
    // One that fits where the thread is not held up, or that is tried.
    const bool may_fit = 1.1 * quick_iteration_.value <= left || is_trial_;
    return done == 0 && left > 0.0 && may_fit ? std::min(budget, 1) : done;
  }
  // Half of what fits: the rest is decided with a better look at the clock.
  const double chunk = std::min(std::max(0.5 * fit, 1.0), 1e6);
  return std::min(budget, done + static_cast<int>(chunk));
}

void DeadlineScheduler::begin_solves() {
  solved_s_.store(0.0, std::memory_order_relaxed);
  seen_solved_s_.store(0.0, std::memory_order_relaxed);
  for (std::atomic<double>& most : most_) most.store(0.0, std::memory_order_relaxed);
  may_solve_ = without_solves_ == 0;
  if (without_solves_ > 0) --without_solves_;
}

DeadlineScheduler::Solve DeadlineScheduler::affords(Time now) const {
  constexpr double kMargin = 1.25;
  if (!may_solve_) return Solve::none;
  const double left = left_for_iterations(now) - 1.1 * iteration_.value;
  const double with_factors = kMargin * solve_s_[0];
  if (left >= with_factors + kMargin * solve_s_[1]) return Solve::new_factors;
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
  double& own = solve_s_[what == Solve::new_factors ? 1 : 0];
  own = std::max(own, time_s);
}

/// An estimate falls slowly, so that one short solve does not make it too small.
void DeadlineScheduler::finish_solves(bool converged) {
  constexpr double kKept = 0.9;
  constexpr int kMostDoublings = 13;
  bool is_any = false;
  for (int i = 0; i < 2; ++i) {
    const double most = most_[i].load(std::memory_order_relaxed);
    if (most == 0.0) continue;
    is_any = true;
    solve_s_[i] = std::max(most, kKept * solve_s_[i]);
  }
  if (!is_any) return;
  failed_solves_ = converged ? 0 : std::min(failed_solves_ + 1, kMostDoublings);
  without_solves_ = (1 << failed_solves_) - 1;
}

double DeadlineScheduler::finish(int iterations, Time inner_end, Time end, bool usual,
                                 bool converged) {
  finish_solves(converged);
  // Several threads may solve at once.
  const double all = seconds(inner_end - begin_);
  const double inner = std::max(all - solved_s_.load(std::memory_order_relaxed), 0.01 * all);
  const double commit = seconds(end - inner_end);
  const double slack = deadline_s_ - seconds(end - begin_);
  ++steps_;
  if (steps_ == 1) worst_slack_s_ = slack;
  worst_slack_s_ = std::min(worst_slack_s_, slack);
  if (slack < 0.0) {
    ++misses_;
    const bool iterations_stalled =
        lost_time_.load(std::memory_order_relaxed) || stalled(inner, iterations * iteration_.value);
    // An iteration that did not seem to fit is the scheduler's own doing.
    if ((iterations_stalled && !is_trial_) || (usual && stalled(commit, commit_.value))) {
      ++preempted_misses_;
    }
  }
  learn(iterations, inner);
  // What the guard tries in some steps says nothing about the others.
  if (usual || commit_.count == 0) {
    commit_.add(commit);
    usual_commit_.add(commit);
  }
  if (slack_.size() < kSlackWindow) {
    slack_.push_back(slack);
  } else {
    slack_[static_cast<std::size_t>(steps_) % kSlackWindow] = slack;
  }
  return slack;
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
      iteration_.forget();
      quick_iteration_.forget();
    }
  }
  starved_ = 0;
  iteration_.add(took);
  quick_iteration_.add(took);
}

DeadlineScheduler::Statistics DeadlineScheduler::statistics() const {
  Statistics out{steps_, misses_, preempted_misses_, worst_slack_s_, 0.0, 0.0, 0.0};
  if (slack_.empty()) return out;
  std::vector<double> sorted = slack_;
  out.slack_p01_s = quantile(sorted, 0.01);
  out.slack_p50_s = quantile(sorted, 0.5);
  out.slack_p99_s = quantile(sorted, 0.99);
  return out;
}

}  // namespace portwave
