#pragma once

namespace portwave {

class StateArchive;

/// Chooses step sizes freely from estimates of the local error, for methods that prepare nothing for a size: a PI
/// controller (Gustafsson) that leaves a size as it is while the error is near its aim. Knows nothing of systems;
/// decides by the numbers it is given alone. With powers of the step as high as 17 a ladder of sizes as that of
/// StepControl would leave errors anywhere within five decades below the tolerance.
///
/// Errors are relative to the tolerance: a step with one above 1 is to be taken again.
class SizeControl {
 public:
  /// `power`: that of the step size in the errors. `first_s`: the first size to try.
  SizeControl(double first_s, double largest_s, double smallest_s, int power);

  /// The next step from `now_s`, which stops at `limit_s` at the latest. A step that would leave less than its own
  /// length before the limit shares the way with the one after it.
  struct Next {
    double step_s = 0.0;
    bool is_whole = true;  ///< of the size in use, not cut for the limit
    bool reaches_limit = false;
  };
  Next next(double now_s, double limit_s) const;
  double step_s() const { return step_s_; }
  /// Whether steps of half the size of this one, from such a time on, are allowed and lead anywhere.
  bool can_shrink(const Next& step, double now_s) const;

  /// The step was taken.
  void accept(const Next& step, double error);
  /// The step was rejected; `error`, which may be infinite, determines how much shorter the next one is.
  void reject(const Next& step, double error);
  /// Steps of half the size.
  void halve(const Next& step);
  /// Earlier steps say nothing about the next ones: an input jumps.
  void forget() { last_error_ = -1.0; }

  void archive(StateArchive& archive);

 private:
  double largest_s_, smallest_s_;
  double power_;
  double step_s_;
  bool was_rejected_ = false;  ///< the last attempt: the next step does not grow
  double last_error_ = -1.0;   ///< < 0: none
};

}  // namespace portwave
