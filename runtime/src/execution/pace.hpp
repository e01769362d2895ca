#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "portwave/runtime/execution/budget.hpp"

namespace portwave {

/// When macro-steps are due: one every `interval_s` of wall time from the first on.
class Pace {
 public:
  using Clock = DeadlineScheduler::Clock;

  /// `interval_s` 0: always due. `interrupted`, if any, ends a wait.
  Pace(double interval_s, std::function<bool()> interrupted);

  /// Waits until `step` is due. Returns when it is.
  Clock::time_point await(std::int64_t step);
  /// What is left until the step after it is due [s]; infinite without a pace.
  double left_s(std::int64_t step, Clock::time_point now) const;

 private:
  Clock::time_point due(std::int64_t step) const;

  double interval_s_;
  std::function<bool()> interrupted_;
  bool begun_ = false;
  Clock::time_point start_{};
  std::int64_t first_ = 0;
};

}  // namespace portwave
