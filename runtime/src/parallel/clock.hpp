#pragma once

#include <chrono>

#include "portwave/runtime/parallel/budget.hpp"

namespace portwave {

/// The clock of deadlines and of StepTimes.
using Clock = DeadlineScheduler::Clock;

inline double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace portwave
