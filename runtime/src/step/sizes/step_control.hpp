#pragma once

#include <cstdint>

namespace portwave {

class StateArchive;

/// Chooses step sizes on the ladder h₀2⁻ᵏ from estimates of the local error: a PI controller with
/// hysteresis, so that the few sizes in use stay prepared. Knows nothing of systems; decides by
/// the numbers it is given alone.
///
/// Errors are relative to the tolerance: a step with one above 1 is to be taken again. Steps double
/// only where the larger ladder has a rung: a whole number of them from the last event.
class StepControl {
 public:
  /// `power`: that of the step size in the errors.
  StepControl(double largest_s, double smallest_s, int power);

  /// The next step from `now_s`, which stops at `limit_s` at the latest. A step that would leave less than
  /// its own length before the limit shares the way with the one after it.
  struct Next {
    double step_s = 0.0;
    bool on_ladder = true;
    bool reaches_limit = false;
  };
  Next next(double now_s, double limit_s) const;
  double ladder_step_s() const { return step_s_; }
  /// Whether steps of this size are allowed.
  bool can_have(double step_s) const;
  bool can_shrink() const { return 0.5 * step_s_ >= smallest_s_; }

  /// The step was taken.
  void accept(const Next& step, double error);
  /// The step was rejected; `error` determines how much shorter the next one is, one rung at least.
  void reject(const Next& step, double error);
  /// Steps of this size or, off the ladder, of the next smaller rung.
  void begin_with(double step_s) {
    shrink_below(step_s);
    since_change_ = 0;
  }
  /// Steps of a rung that was in use before, from an event on.
  void resume(double step_s) {
    step_s_ = step_s;
    position_ = 0;
    since_change_ = 0;
    has_grown_ = false;
  }
  /// Earlier steps say nothing about the next ones: an input jumps, or there are none.
  void forget() { last_error_ = -1.0; }

  void archive(StateArchive& archive);

 private:
  void take_back_growth();
  void shrink(int rungs);
  void shrink_below(double step_s);

  double largest_s_, smallest_s_;
  double power_;  // of h in the local error
  double step_s_;
  std::uint64_t position_ = 0;     // ladder steps since the last event, as far as they fit in
  std::int64_t since_change_ = 0;  // accepted steps
  std::int64_t since_rejection_ = 0;
  int patience_ = 0;          // accepted steps between a rejection and the next growth
  bool has_grown_ = false;    // at the last change
  double last_error_ = -1.0;  // < 0: none
};

}  // namespace portwave
