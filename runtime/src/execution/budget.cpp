#include "portwave/runtime/execution/budget.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "execution/clock.hpp"

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
  const std::ptrdiff_t rank = std::lround(level * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + rank, values.end());
  return values[static_cast<std::size_t>(rank)];
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
  iteration_.value = iteration_s;
  // A commit that takes longer than foreseen is a miss, an iteration is not.
  commit_.level = 0.97;
  commit_.value = commit_s;
  for (RunningQuantile* q : {&iteration_, &commit_}) {
    q->samples.reserve(RunningQuantile::kWindow);
    q->sorted.reserve(RunningQuantile::kWindow);
  }
  slack_.reserve(kSlackWindow);
}

int DeadlineScheduler::horizon(int done, int budget, Time now) const {
  const double chunk_took = seconds(now - last_check_.exchange(now, std::memory_order_relaxed));
  const int chunk_done = done - last_done_.exchange(done, std::memory_order_relaxed);
  if (stalled(chunk_took, chunk_done * iteration_.value)) {
    lost_time_.store(true, std::memory_order_relaxed);
  }
  const double left = deadline_s_ - seconds(now - begin_) - 1.25 * commit_.value - kReserve_s;
  const double fit = left / std::max(1.1 * iteration_.value, 1e-10);
  if (!(fit >= 1.0)) return is_trial_ && done == 0 && left > 0.0 ? std::min(budget, 1) : done;
  // Half of what fits: the rest is decided with a better look at the clock.
  const double chunk = std::min(std::max(0.5 * fit, 1.0), 1e6);
  return std::min(budget, done + static_cast<int>(chunk));
}

double DeadlineScheduler::finish(int iterations, Time inner_end, Time end, bool usual) {
  const double inner = seconds(inner_end - begin_), commit = seconds(end - inner_end);
  const double slack = deadline_s_ - seconds(end - begin_);
  ++steps_;
  if (steps_ == 1) worst_slack_s_ = slack;
  worst_slack_s_ = std::min(worst_slack_s_, slack);
  if (slack < 0.0) {
    ++misses_;
    if (lost_time_.load(std::memory_order_relaxed) ||
        stalled(inner, iterations * iteration_.value) ||
        (usual && stalled(commit, commit_.value))) {
      ++preempted_misses_;
    }
  }
  learn(iterations, inner);
  // What the guard tries in some steps says nothing about the others.
  if (usual || commit_.count == 0) commit_.add(commit);
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
    const bool fits = 1.1 * took < deadline_s_ - 1.25 * commit_.value - kReserve_s;
    patience_ = fits ? kLeastPatience : std::min(2 * patience_, kMostPatience);
    if (fits) iteration_.forget();
  }
  starved_ = 0;
  iteration_.add(took);
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
