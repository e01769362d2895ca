#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class StateArchive;
class StepEngine;

/// Checks whether states are at odds with the constraints of rigid joints (StateConstraints): at the start,
/// where a source that enters a constraint jumps, and after a part or the state has been changed from
/// outside. Refuses them, or notes that they were stepped as they are (Start).
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
  void take_notes(const StartsAtOdds& notes) { notes_ = notes; }

  const StateConstraints& constraints() const { return constraints_; }
  const StartsAtOdds& notes() const { return notes_; }
  void archive(StateArchive& archive);

 private:
  /// A source in a constraint.
  struct Source {
    int part = 0, input = 0;
    double amplitude = 0.0;  ///< as far as it is known
    double held = 0.0;       ///< for a settable one: its value at the last check
    bool is_settable = false, is_controlled = false, may_jump = false;
    // For a source driven by a signal: its last change, which is a jump unless its neighbours are alike.
    double change = 0.0, change_before = 0.0;
    std::int64_t changed_in = 0, interval = 0;  ///< in steps, or samples
  };
  /// A source that jumps in a constraint, and its new value.
  struct SourceJump {
    int source;
    double time_s, before, after;
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
  void tell_jump(const SourceJump& jump);
  bool counts(const StateConstraints::Odds& odds) const;
  bool is_without_domain(const StateConstraints::Odds& odds) const;
  std::string text(const StateConstraints::Odds& odds, const StateInstant& at) const;
  void refuse_or_note(const StateConstraints::Odds& odds, const StateInstant& at,
                      const std::string& before);
  double tolerated_share() const;
  double largest_energy_J() const;

  StepEngine& engine_;
  const StepperOptions options_;
  StateConstraints constraints_;
  std::vector<Source> sources_;  // as those of the constraints
  bool are_set_ = false;         // states: at the start they are not those of the system
  bool is_due_ = false;          // the state came from outside, or is that of other parts
  std::vector<double> left_;     // by constraint: what steps had left of it before
  bool has_changed_ = false;     // the constraints have, with a part
  bool has_settable_ = false, has_jumping_ = false;
  std::int64_t noted_in_ = -1;  // step
  StartsAtOdds notes_;
};

}  // namespace portwave
