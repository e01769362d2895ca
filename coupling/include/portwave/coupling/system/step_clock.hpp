#pragma once

#include <cmath>
#include <cstdint>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The time of a run, as state that every step advances.
///
/// Equal steps that follow one another are not added up but multiplied, t = t₀ + n·h, so that the
/// rounding does not grow with their number. A step of another size begins a new stretch: t₀ is
/// then the time reached so far. A run from 0 with one step size has t = n·h, to the last bit.
/// A run that begins at t₀ counts from there.
/// Cost   one multiplication and one addition per question; a step compares and counts.
class StepClock {
 public:
  explicit StepClock(double start_s = 0.0) : start_s_(start_s) {}

  /// A step of `step_s` > 0 has been made, and has led to `time_s`.
  void advance_to(double time_s, double step_s) {
    advance(step_s);
    if (this->time_s() == time_s) return;
    start_s_ = time_s;
    equal_steps_ = 0;
  }

  /// The same clock at a time within the step that is under way.
  StepClock within(double time_s) const {
    StepClock out = *this;
    out.start_s_ = time_s;
    out.equal_steps_ = 0;
    return out;
  }

  double time_s() const { return start_s_ + static_cast<double>(equal_steps_) * step_s_; }
  std::int64_t steps() const { return steps_; }   ///< since the clock was made, of any size
  double last_step_s() const { return step_s_; }  ///< 0 before the first step

  /// Whether a run can reach such a time: a check for times read from a file.
  bool is_sound() const {
    constexpr std::int64_t kMostSteps = std::int64_t{1} << 53;
    return std::isfinite(time_s()) && std::isfinite(start_s_) && step_s_ >= 0.0 &&
           equal_steps_ >= 0 && steps_ >= 0 && equal_steps_ <= kMostSteps && steps_ <= kMostSteps;
  }

  /// A step of `step_s` > 0 has been made.
  void advance(double step_s) {
    if (step_s != step_s_) {
      start_s_ = time_s();
      step_s_ = step_s;
      equal_steps_ = 0;
    }
    ++equal_steps_;
    ++steps_;
  }

 private:
  double start_s_;       // t₀
  double step_s_ = 0.0;  // h of the steps since
  std::int64_t equal_steps_ = 0;
  std::int64_t steps_ = 0;
};

}  // namespace portwave
