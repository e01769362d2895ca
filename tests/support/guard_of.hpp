#pragma once

#include "portwave/runtime/step/stepper.hpp"

namespace portwave::testing {

/// What the guard of a run with waves did so far; zeros where there is no guard.
inline GuardStatistics guard_of(const Stepper& stepper) {
  const GuardStatistics* const guard = stepper.waves()->guard();
  return guard != nullptr ? *guard : GuardStatistics{};
}

}  // namespace portwave::testing
