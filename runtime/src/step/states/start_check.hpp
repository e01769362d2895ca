#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class StateArchive;
class StepEngine;

/// Checks whether states are at odds with the constraints of rigid joints (StateConstraints): at the start,
/// where a source that enters a constraint jumps, and after a part or the state has been changed from
/// outside. Lets the impulse act that makes them consistent, refuses them, or notes that they were stepped as
/// they are (Start).
///
/// A source that jumps within a step of fixed size does so at the nearer end of it: the impulse acts there, and
/// the step sees the source without the jump (MovedInputJump). Of a change that is only as steep as a jump
/// something may be left, which goes into the same impulse after the step.
class StartCheck {
 public:
  /// Null if nothing is tied, and no state can change that.
  static std::unique_ptr<StartCheck> made(StepEngine& engine, const StepperOptions& options);

  StartCheck(StepEngine& engine, const StepperOptions& options, StateConstraints constraints);

  /// At the start. Errors: ConfigError.
  void begin();
  /// Before a step of `step_s` or, if steps choose their size, of at most that. Returns a latest end for it:
  /// the time at which a source jumps.
  /// Errors: StepError, where the states are at odds or the step leads over a jump.
  double before_step(double step_s);
  /// Called before and after a part is exchanged.
  void part_changes(int part);
  void part_has_changed(int part) { is_due_ = is_due_ || constraints_.ties(part); }
  /// Called when all states were set from outside.
  void states_have_changed() {
    are_set_ = is_due_ = true;
    left_.assign(left_.size(), 0.0);
  }
  /// The notes so far, for a run that continues here.
  void take_notes(const StartCheck& before) {
    notes_ = before.notes_;
    impulses_ = before.impulses_;
    noted_in_ = before.noted_in_;
  }

  const StateConstraints& constraints() const { return constraints_; }
  const StartsAtOdds& notes() const { return notes_; }
  const Impulses& impulses() const { return impulses_; }
  void archive(StateArchive& archive);

 private:
  /// A source in a constraint.
  struct Source {
    int part = 0, input = 0;
    double amplitude = 0.0;  ///< as far as it is known
    double held = 0.0;       ///< for a settable one: its value at the last check
    bool is_settable = false, may_jump = false;
  };
  /// A source that jumps in a constraint, and its new value.
  struct SourceJump {
    int source;
    double time_s, before, after;
  };
  /// A jump within a step: joints are looked at again once it is made.
  struct InStep {
    std::int64_t step = 0;  ///< its number
    std::int64_t source = 0;
    std::int64_t told = 0;  ///< impulses that acted before the step
    double time_s = 0.0, before = 0.0, after = 0.0;
  };
  /// What is told of states at odds.
  struct Occasion {
    std::string cause;   ///< "q.flow jumps from 0 to 10 rad/s"
    std::string before;  ///< of a refusal: "q.flow jumps …, and "
    double time_s;
    bool goes_on = false;  ///< the rest of an impulse that has been told
  };

  StateInstant now(double time_s) const;
  double value(int part, int input, double time_s) const;
  double value(const Source& source, double time_s) const {
    return value(source.part, source.input, time_s);
  }
  void begin_sources();
  void refresh();
  void look(double share);
  void look_at_change();
  void look_at_held();
  std::optional<SourceJump> jump_in(int source, double from_s, double to_s) const;
  void jump_in_step(const SourceJump& jump, double step_s);
  void refuse_contradictions(double step_s);
  void refuse_displacement_jump(const Source& source, double from_s, double to_s);
  bool is_without_domain(const SourceJump& jump) const;
  void look_after_step();
  void tell_jump(const SourceJump& jump, double value_after);
  std::string jump_text(const SourceJump& jump) const;
  bool counts(const StateConstraints::Odds& odds) const;
  std::string text(const StateConstraints::Odds& odds, const StateInstant& at) const;
  void treat(const StateConstraints::Odds& odds, const StateInstant& at, const Occasion& occasion);
  void note(const StateConstraints::Odds& odds, const StateInstant& at);
  void let_jump(const StateConstraints::Odds& odds, const Occasion& occasion);
  [[noreturn]] void refuse(const StateConstraints::Odds& odds, const StateInstant& at,
                           const std::string& before) const;
  double tolerated_share() const;
  double largest_energy_J() const;

  StepEngine& engine_;
  const StepperOptions options_;
  StateConstraints constraints_;
  std::vector<Source> sources_;  // as those of the constraints
  bool are_set_ = false;         // states: at the start they are not those of the system
  bool is_due_ = false;          // the state came from outside, or is that of other parts
  std::vector<double> left_;     // by constraint: what steps had left of it before
  double coming_s_;              // the step for which switches were looked at
  bool has_changed_ = false;     // the constraints have, with a part
  std::string changed_ = "a part has changed";
  bool has_settable_ = false, has_jumping_ = false;
  bool is_beginning_ = false;
  std::vector<InStep> in_step_;
  std::vector<MovedInputJump> moved_;  // for the next step
  std::int64_t noted_in_ = -1;         // step
  StartsAtOdds notes_;
  Impulses impulses_;
};

}  // namespace portwave
