#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "parallel/threads/activity.hpp"
#include "parallel/together.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/ranks/followers.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

class StateArchive;

/// The engine of a Stepper: wave coupling, or a method without waves. This class has the functions common to
/// both; those of wave coupling alone are in WaveView. The functions are those of Stepper, where they
/// are described; options have been checked.
class StepEngine {
 public:
  /// `step_s`: StepperOptions::step_s.
  StepEngine(double step_s, std::unique_ptr<Together> together)
      : step_s_(step_s), together_(std::move(together)) {}
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;
  virtual ~StepEngine() = default;

  /// One macro-step, all or nothing, of any size > 0.
  /// Errors: StepError; ConfigError where there are no step maps of that size; std::logic_error for
  /// another size than `step_s` without waves.
  ///
  /// With a deadline its time counts from `enter` on, or from when its pace makes it due.
  virtual StepReport step_by(double step_s) = 0;
  /// One macro-step that stops at `limit_s` at the latest if steps choose their size, as in Stepper.
  virtual StepReport step_towards([[maybe_unused]] double limit_s) { return step_by(step_s_); }
  /// A macro-step that is cut where parameters jump.
  struct Cuts {
    std::span<const double> times_s;  ///< within the step, in order
    /// Called before each part but the first, with its begin and end. What it throws ends the step.
    std::function<void(double begin_s, double end_s)> before;
    /// Called where the step has failed after its first part, so that the components of parts are those of its start.
    std::function<void()> undo;
  };
  virtual bool can_cut_steps() const { return false; }
  /// Where the engine cuts the step that is to come because inputs jump. Valid until the next step.
  virtual std::span<const double> sudden_inputs() { return {}; }
  /// As step_by, in parts from cut to cut: rows, signals, events and counts know the whole step alone.
  /// Precondition: `can_cut_steps`.
  virtual StepReport step_with_cuts(double step_s, [[maybe_unused]] const Cuts& cuts) {
    return step_by(step_s);
  }
  /// Functions that a follower calls (RankedStepper::follow): after every committed step, and for every
  /// message of rank 0.
  struct Hooks {
    std::function<void(const StepReport&)> stepped;
    std::function<void(std::span<const std::byte>)> told;
  };
  virtual void follow(const Hooks&) {}
  /// Called where a step begins, before anything else is done for it.
  virtual void enter() {}
  /// Time left in the step that was made [s]; infinite without a deadline.
  virtual double time_left_s() const { return std::numeric_limits<double>::infinity(); }
  /// The step has gone on until now: updates its slack.
  virtual void extend([[maybe_unused]] StepReport& report) {}
  /// The joint work of this process and others that step the system.
  Together& together() const { return *together_; }
  /// StepperOptions::step_s.
  double step_s() const { return step_s_; }
  /// The present activity of the stepper. It is kept here because an engine stays in place when its stepper
  /// is moved.
  Activity& activity() const { return activity_; }
  /// Time and number of the committed steps. It advances steps and gives the sample times of inputs.
  virtual const StepClock& clock() const = 0;

  virtual const System& system() const = 0;
  virtual int threads() const = 0;
  virtual int tasks() const = 0;
  virtual const std::string& execution() const = 0;
  virtual const MethodChoice& method() const = 0;
  virtual std::string remarks() const { return {}; }
  virtual std::int64_t halved_steps() const { return 0; }
  /// A choice of `automatic` between methods with and without waves, for people; empty where it had none.
  void note_choice(std::string note) { choice_note_ = std::move(note); }
  const std::string& choice_note() const { return choice_note_; }
  /// Null without waves.
  virtual WaveView* waves() { return nullptr; }

  // These functions keep values that they compute on demand, and are therefore not const.
  virtual std::span<const double> state(int part) = 0;
  /// The state before the first step. Every rank has it, so one process may call this without the others.
  virtual std::span<const double> first_state(int part) { return state(part); }
  virtual EffortFlow effort_flow(int scalar_port) = 0;
  virtual double storage(int part) = 0;

  /// The settable inputs of the system, by slot; empty without waves.
  virtual std::span<double> settings() { return {}; }
  /// Called when the settable inputs have jumped.
  virtual void settings_changed() {}

  /// Called when a part of the system was exchanged and the new one stores `more_J` more in the same state
  /// [J]. On an error nothing has changed. Errors: as Stepper::set_component.
  virtual void component_changed(int part, double more_J) = 0;
  /// Called when the exchange has failed: the component is the previous one again.
  virtual void component_restored(int part) = 0;

  /// Sets the states of all parts, in order; waves begin anew, time and accounts go on. Precondition: states that
  /// the parts can be in. Errors: std::logic_error.
  virtual void states_changed(std::span<const double> states) = 0;

  /// An impulse acts between two steps: sets states of parts, and accounts for the energies. Waves carry on.
  /// `is_start`: the run begins with it. Precondition: `can_jump`.
  virtual void jump([[maybe_unused]] std::span<const StateConstraints::PartImpulse> parts,
                    [[maybe_unused]] bool is_start) {}
  virtual bool can_jump() const { return false; }
  /// In steps from now on this is added to these inputs, which then do not jump. Precondition: `can_jump`.
  virtual void move_jumps([[maybe_unused]] std::span<const MovedInputJump> jumps) {}

  /// A part is in other states from now on, which somebody else supplies `more_J` for; waves carry on.
  virtual void put_state([[maybe_unused]] int part, [[maybe_unused]] std::span<const double> state,
                         [[maybe_unused]] double more_J) {}

  virtual bool keeps_ledger() const = 0;
  virtual EnergyTotals energy() const = 0;
  virtual const Certificate& certificate() = 0;
  /// The name of a part in the certificate.
  virtual std::string name_of_part(int number) const { return system().name_of_part(number); }
  virtual const IterationStatistics& iterations() const = 0;
  /// As CouplingLooks::residual, of the last step; empty if there is a tolerance to be met.
  virtual std::optional<double> coupling_residual() { return std::nullopt; }
  virtual std::optional<DeadlineScheduler::Statistics> deadline() const = 0;
  virtual std::size_t overhead_bytes() const = 0;
  /// Errors: std::logic_error without StepperOptions::profile.
  virtual Profile profile() = 0;
  /// Archives everything on which later steps and the accounts of the run depend. Wall-clock times are not
  /// included.
  virtual void archive(StateArchive& archive) = 0;

  /// Null where all steps are of one size.
  virtual const StepSizeStatistics* step_sizes() const { return nullptr; }
  virtual std::optional<Resolution> resolution() const { return std::nullopt; }
  /// Whether there are states within the last step.
  virtual bool has_states_within() const { return step_sizes() != nullptr; }
  /// Whether ports, and with them the energies of parts, are known there as exactly as states.
  virtual bool has_ports_within() const { return false; }
  /// Precondition: `has_states_within`, for a port `step_sizes` or `has_ports_within`, and a time within the last step.
  virtual void state_at(int part, double time_s, std::span<double> state);
  virtual EffortFlow port_at(int scalar_port, double time_s);

 private:
  double step_s_;
  std::unique_ptr<Together> together_;
  std::string choice_note_;
  mutable Activity activity_;
};

/// The present value of a term.
double read(StepEngine& engine, const QuantityTerm& term);

/// `together`: the object for `options.ranks`. Errors: ConfigError.
std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options,
                                             std::unique_ptr<Together> together);
/// The engine of a method without waves.
std::unique_ptr<StepEngine> make_network_engine(const System& system, const StepperOptions& options,
                                                std::unique_ptr<Together> together);

void archive(StateArchive& archive, IterationStatistics& statistics);

/// Adds a step to the statistics, and its window if it begins one. `has_tolerance`: whether the step had a
/// tolerance to meet.
void count(const StepReport& report, bool has_tolerance, IterationStatistics& statistics);

}  // namespace portwave
