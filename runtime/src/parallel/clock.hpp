#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "portwave/runtime/parallel/budget.hpp"

namespace portwave {

/// What steps under a deadline spend their time on.
enum class Work : std::size_t {
  evaluation,        ///< of S, with the exchange after it
  first_evaluation,  ///< of a step: it finds less of what it needs in the nearer caches
  commit,            ///< with its share of the ledger
  solve,             ///< of an interface equation, with the factors there are
  linearise,         ///< an interface equation, new factors included
  check,             ///< of impedances that follow the state
  change,            ///< of impedances
};
inline constexpr std::size_t kWorks = 7;

/// Time of each for the whole system [s].
using WorkCosts = std::array<double, kWorks>;
inline double& cost(WorkCosts& costs, Work work) { return costs[static_cast<std::size_t>(work)]; }
inline double cost(const WorkCosts& costs, Work work) {
  return costs[static_cast<std::size_t>(work)];
}

/// Within its life time the Clock of this thread stands still, except for work, which takes what the costs say: their
/// means, and by turns more and less, always in the same order. So what a deadline does to steps can be repeated,
/// whatever else the machine does. Only for steps that this thread makes alone.
class SimulatedTime {
 public:
  explicit SimulatedTime(const WorkCosts& means, const WorkCosts& spreads = {})
      : means_(means), spreads_(spreads), outer_(std::exchange(current(), this)) {}
  ~SimulatedTime() { current() = outer_; }
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  double now_s() const { return now_s_; }
  void spend(Work work, double share) {
    const double cost_s = cost(means_, work) + cost(spreads_, work) * next_off();
    now_s_ += share * std::max(cost_s, 0.0);
  }

  /// Time passes in which nothing is done.
  void pass_until(double then_s) { now_s_ = std::max(now_s_, then_s); }

  static SimulatedTime*& current() {
    thread_local SimulatedTime* own = nullptr;
    return own;
  }

 private:
  /// Uniformly distributed, with mean 0 and variance 1.
  double next_off() {
    random_ = random_ * 6364136223846793005U + 1442695040888963407U;
    return std::sqrt(3.0) * (std::ldexp(static_cast<double>(random_ >> 11), -52) - 1.0);
  }

  WorkCosts means_, spreads_;
  std::uint64_t random_ = 1;
  double now_s_ = 0.0;
  SimulatedTime* outer_;
};

/// The clock of deadlines and of StepTimes.
struct Clock {
  using duration = DeadlineScheduler::Clock::duration;
  using time_point = DeadlineScheduler::Time;

  static time_point now() {
    const SimulatedTime* const simulated = SimulatedTime::current();
    if (simulated == nullptr) return DeadlineScheduler::Clock::now();
    return time_point(
        std::chrono::round<duration>(std::chrono::duration<double>(simulated->now_s())));
  }
  /// Where time is simulated: passes until then, and returns true.
  static bool pass_until(time_point then) {
    SimulatedTime* const simulated = SimulatedTime::current();
    if (simulated == nullptr) return false;
    simulated->pass_until(std::chrono::duration<double>(then.time_since_epoch()).count());
    return true;
  }
  /// Work has been done, on this share of the system. Only simulated time needs to be told.
  static void spend(Work work, double share = 1.0) {
    if (SimulatedTime* const simulated = SimulatedTime::current()) simulated->spend(work, share);
  }
};

inline double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace portwave
