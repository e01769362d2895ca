#pragma once

#include <functional>
#include <limits>
#include <optional>

#include "portwave/runtime/parallel/budget.hpp"

namespace portwave {

/// When macro-steps are due: simulated time runs `pace` times as fast as the clock on the wall,
/// from the first step on.
class Pace {
 public:
  using Clock = DeadlineScheduler::Clock;

  /// `pace` 0: always due. `interrupted`, if any, ends a wait.
  Pace(double pace, std::function<bool()> interrupted);

  /// Waits until the step that starts at `time_s` is due, and returns the time at the end of the wait.
  Clock::time_point await(double time_s);
  /// Wall time left until a step that starts at `time_s` is due [s]; infinite without a pace.
  double left_s(double time_s, Clock::time_point now) const;
  /// The next step is due at once, and the pace counts from there.
  void restart() { begun_ = false; }

 private:
  Clock::time_point due(double time_s) const;

  double pace_;
  std::function<bool()> interrupted_;
  bool begun_ = false;
  Clock::time_point start_{};
  double first_s_ = 0.0;  // simulated time at the start
};

}  // namespace portwave
