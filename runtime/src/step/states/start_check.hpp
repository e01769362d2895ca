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
/// Where sources jump within a step of fixed size, the impulses of all these jumps act before the step, in their
/// order, each between the values that the source has beside it. The step sees the source without its jumps, at
/// the mean of what they add (MovedInputJump), so that its integral over the step is right; states are *carried*
/// to that mean before the step, and to the value at its end after it, without a loss, as a source does that
/// moves them within a step.
class StartCheck {
 public:
  /// The last digits of a step's ends, in steps: a jump there belongs to the step that begins.
  static constexpr double kSameInstant = 1e-9;
  /// The same for the time of a jump in a step of fixed size, which is known to this share of it.
  static constexpr double kSameInstantOfJump = 1e-7;

  /// Null if nothing is tied, and no state can change that.
  static bool has_jumping_rate(const System& system);
  static std::unique_ptr<StartCheck> made(StepEngine& engine, const StepperOptions& options);

  StartCheck(StepEngine& engine, const StepperOptions& options, StateConstraints constraints);

  /// At the start. Errors: ConfigError.
  void begin();
  /// Before a step of `step_s` or, if steps choose their size, of at most that. Returns a latest end for it:
  /// the time at which a source jumps.
  /// Errors: StepError, where the states are at odds or the step leads over a jump.
  double before_step(double step_s);
  /// After a step, and before anyone looks at its end. Adds to the energies of its report.
  void after_step(StepReport& report);
  /// The worst source with pulses that steps of fixed size do not show (Resolution::Kind::pulses); `resolved`:
  /// there is none.
  Resolution pulses() const;
  /// Called before and after a part is exchanged.
  void part_changes(int part);
  void part_has_changed(int part) { is_due_ = is_due_ || constraints_.ties(part); }
  /// A part was exchanged that has other equations at its joints; `why`: "part "g" has changed".
  void joints_have_changed(std::string why) {
    are_joints_new_ = are_set_ =
        true;  // the states are those of the run, also before its first step
    changed_ = std::move(why);
  }
  bool are_joints_new() const { return are_joints_new_; }
  /// States that they do not fit are left to the steps.
  void joints_may_move_on() { are_joints_new_ = false; }
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
    told_in_ = before.told_in_;
    carried_after_ = before.carried_after_;
  }

  const StateConstraints& constraints() const { return constraints_; }
  const StartsAtOdds& notes() const { return notes_; }
  const Impulses& impulses() const { return impulses_; }
  void archive(StateArchive& archive);

 private:
  struct Seen {
    double square = 0.0, hidden = 0.0;
    std::int64_t jumps = 0, step = -1;
  };
  /// A source in a constraint.
  struct Source {
    int part = 0, input = 0;
    double amplitude = 0.0;  ///< as far as it is known
    double held = 0.0;       ///< for a settable one: its value at the last check
    bool is_settable = false, may_jump = false;
    /// ∫u² over steps of fixed size, the share of it in which u differs from what a step with jumps sees, and
    /// the number of jumps.
    Seen seen;
  };
  /// An input that is the rate of something that may jump, and that no constraint has.
  struct Displacement {
    int part, input;
  };
  std::vector<Displacement> displacements_of(const System& system) const;
  /// A source that jumps in a constraint, and its new value.
  struct SourceJump {
    int source;
    double time_s, before, after;
    double low_s = time_s;  ///< the latest time that is known to be before it
    bool is_steep = false;  ///< not a jump, but as steep as one
  };
  /// What is told of states at odds.
  struct Occasion {
    std::string cause;   ///< "q.flow jumps from 0 to 10 rad/s"
    std::string before;  ///< of a refusal: "q.flow jumps …, and "
    double time_s;
  };

  StateInstant now(double time_s) const;
  double value(int part, int input, double time_s) const;
  double value(const Source& source, double time_s) const {
    return value(source.part, source.input, time_s);
  }
  void begin_sources();
  void refresh();
  void look(double share);
  void look_at_change(double least_J);
  void look_at_held();
  std::optional<SourceJump> jump_in(int source, double from_s, double to_s) const;
  std::optional<SourceJump> known_jump(int source, double time_s, double step_s) const;
  std::vector<double> known_changes(int source, double from_s, double to_s) const;
  std::vector<SourceJump> jumps_in(int source, double from_s, double to_s) const;
  void find_jumps(int source, double from_s, double to_s, std::vector<SourceJump>& out) const;
  void add_steep_pieces(int source, double from_s, double to_s, std::span<const double> changes,
                        std::vector<SourceJump>& out) const;
  bool is_felt(int source, double by) const;
  void note_squares(double step_s, std::span<const SourceJump> within, std::int64_t at_once);
  void jump_within(std::vector<SourceJump> jumps, double step_s);
  void forget_jumps_within();
  /// For the joints of sources in `within_`.
  void carry(const StateInstant& to);
  double just_before(int part, int input, double time_s, double step_s) const;
  void refuse_contradictions(double step_s);
  void refuse_displacement_jump(const Source& source, double from_s, double to_s);
  double look_at_displacements(double step_s);
  bool is_damped_jump(const Signal::Jump& jump, double step_s) const;
  void refuse_displacement(int part, int input, const Signal::Jump& jump, const std::string& why,
                           const std::string& remedies);
  bool is_without_domain(const SourceJump& jump) const;
  void tell_jump(const SourceJump& jump, double value_after);
  void tell_jump(const SourceJump& jump, const StateInstant& there);
  std::string jump_text(const SourceJump& jump) const;
  bool counts(const StateConstraints::Odds& odds) const;
  std::string text(const StateConstraints::Odds& odds, const StateInstant& at) const;
  void treat(const StateConstraints::Odds& odds, const StateInstant& at, const Occasion& occasion);
  void note(const StateConstraints::Odds& odds, const StateInstant& at);
  void let_jump(const StateConstraints::Odds& odds, const Occasion& occasion);
  [[noreturn]] void refuse(const StateConstraints::Odds& odds, const StateInstant& at,
                           const std::string& before) const;
  double tolerated_share() const;
  /// Of an island; −1: of all.
  double largest_energy_J(int island = -1) const;

  StepEngine& engine_;
  const StepperOptions options_;
  StateConstraints constraints_;
  std::vector<Source> sources_;  // as those of the constraints
  std::vector<Displacement> displacements_;
  bool are_set_ = false;      // states: at the start they are not those of the system
  bool is_due_ = false;       // the state came from outside, or is that of other parts
  std::vector<double> left_;  // by constraint: what steps had left of it before
  double coming_s_;           // the step for which switches were looked at
  bool has_changed_ = false;  // the constraints have, with a part
  bool are_joints_new_ = false;
  std::string changed_ = "a part has changed";
  bool has_settable_ = false, has_jumping_ = false;
  bool is_beginning_ = false;
  std::vector<SourceJump> within_;           // jumps in the step that comes
  std::vector<MovedInputJump> moved_;        // likewise
  std::int64_t told_in_ = -1;                // the step whose jumps have been told
  ImpulseEnergies carried_, carried_after_;  // the second: after the last step
  std::int64_t noted_in_ = -1;               // step
  StartsAtOdds notes_;
  Impulses impulses_;
};

}  // namespace portwave
