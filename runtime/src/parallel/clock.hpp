#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <utility>

#include "portwave/runtime/parallel/budget.hpp"

namespace portwave {

/// What steps under a deadline spend their time on.
enum class Work : std::size_t {
  evaluation,  ///< of S, with the exchange after it
  commit,      ///< with its share of the ledger
  solve,       ///< of an interface equation, with the factors there are
  linearise,   ///< an interface equation, new factors included
  check,       ///< of impedances that follow the state
  change,      ///< of impedances
};
inline constexpr std::size_t kWorks = 6;

/// Time of each for the whole system [s].
using WorkCosts = std::array<double, kWorks>;
inline double& cost(WorkCosts& costs, Work work) { return costs[static_cast<std::size_t>(work)]; }
inline double cost(const WorkCosts& costs, Work work) {
  return costs[static_cast<std::size_t>(work)];
}

/// Within its life time the Clock of this thread stands still, except for work, which takes what the costs say. So what
/// a deadline does to steps can be repeated, whatever else the machine does. Only for steps that this thread makes alone.
class SimulatedTime {
 public:
  explicit SimulatedTime(const WorkCosts& costs)
      : costs_(costs), outer_(std::exchange(current(), this)) {}
  ~SimulatedTime() { current() = outer_; }
  SimulatedTime(const SimulatedTime&) = delete;
  SimulatedTime& operator=(const SimulatedTime&) = delete;

  double now_s() const { return now_s_; }
  void spend(Work work, double share) { now_s_ += share * costs_[static_cast<std::size_t>(work)]; }

  static SimulatedTime*& current() {
    thread_local SimulatedTime* own = nullptr;
    return own;
  }

 private:
  WorkCosts costs_;
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
        std::chrono::duration_cast<duration>(std::chrono::duration<double>(simulated->now_s())));
  }
  /// Work has been done, on this share of the system. Only simulated time needs to be told.
  static void spend(Work work, double share = 1.0) {
    if (SimulatedTime* const simulated = SimulatedTime::current()) simulated->spend(work, share);
  }
};

inline double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace portwave
