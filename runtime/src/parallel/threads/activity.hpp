#pragma once

#include <atomic>

namespace portwave {

/// What a stepper or an ensemble is at. It calls functions of its users meanwhile: parts, inputs, blocks
/// of signal graphs, observers. These would find it half done if they stepped or changed it, and so are
/// refused, and so is another thread that is seen to do it.
///
/// Cost: a load and two stores for each step.
class Activity {
 public:
  enum class Kind {
    none,
    step,    ///< nothing may be changed or kept
    change,  ///< the same, between two steps
    told,    ///< observers look at a step that was made: inputs may be set, and states be kept
    torn,    ///< a state was read in part: none until another one is read
  };

  Activity() = default;
  Activity(const Activity&) = delete;
  Activity& operator=(const Activity&) = delete;

  bool is_none() const { return kind() == Kind::none; }
  /// Before something that leads from one state of the run to another. Errors: std::logic_error.
  void expect_none() const {
    if (kind() != Kind::none) refuse();
  }
  /// Before something that can be done whenever no step or change is under way. Errors: std::logic_error.
  void expect_whole_step() const {
    if (kind() != Kind::none && kind() != Kind::told) refuse();
  }
  /// Before something that reads all of the state. Errors: std::logic_error.
  void expect_no_step() const {
    if (kind() == Kind::step || kind() == Kind::torn) refuse();
  }
  /// Before it ends, or is moved: whoever called the function that does it would go on with what is no
  /// more. Ends the program, with a text.
  void expect_to_end(const char* what) const noexcept;

 private:
  friend class Acting;
  Kind kind() const { return kind_.load(std::memory_order_relaxed); }
  [[noreturn]] void refuse() const;

  std::atomic<Kind> kind_ = Kind::none;
};

/// While alive, something is at it.
class Acting {
 public:
  /// Errors: std::logic_error where it is at something already but `from`.
  Acting(Activity& activity, Activity::Kind kind, Activity::Kind from = Activity::Kind::none)
      : activity_(activity) {
    if (activity.kind() != from) activity.expect_none();
    if (from == activity.kind()) end_ = from;
    be(kind);
  }
  ~Acting() { be(end_); }
  Acting(const Acting&) = delete;
  Acting& operator=(const Acting&) = delete;

  void be(Activity::Kind kind) { activity_.kind_.store(kind, std::memory_order_relaxed); }
  /// What it is at the end.
  void end_as(Activity::Kind kind) { end_ = kind; }

 private:
  Activity& activity_;
  Activity::Kind end_ = Activity::Kind::none;
};

}  // namespace portwave
