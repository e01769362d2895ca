#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method_choice.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/parallel/budget.hpp"
#include "portwave/runtime/parallel/profile.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/runtime/step/events.hpp"
#include "portwave/runtime/step/options.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/step_report.hpp"
#include "portwave/runtime/step/wave_view.hpp"
#include "portwave/subsystems/base/export.hpp"

// Internal to the library, hence not shown.
namespace portwave {
class Acting;
class EventWatch;
struct Exchanges;
class StepEngine;
class SignalRun;
class StartCheck;
class StateArchive;
class StepIdentity;
}  // namespace portwave

namespace PORTWAVE_EXPORT portwave {

/// A settable input, found once by its name (Stepper::find_input).
struct InputSlot {
  int slot = -1;
};

/// Steps a system: freeze, iterate, commit, guard, ledger; or, with a method that couples without
/// waves, by that method. Memory is taken at construction; a step of Certify::energy does not
/// allocate (oneTBB's own task memory and the tuning of impedances to the state apart). Without a
/// time budget results are equal bit by bit for any number of threads, grain and executor.
///
/// Without waves (CouplingMethod::couples_by_waves() is false) a task is one or more lane groups of
/// up to eight equal subsystems, whatever the grain and the threads: graph has a node for each
/// task, async deals them out to workers. Options of wave coupling are ignored, there is no
/// WaveView, and Certify::full is Certify::energy.
///
/// A system that is not given away must outlive the stepper and stay where it is. It is copied where signals drive
/// parameters (SignalGraph::ParameterActuator), which changes the parts. One thread at a time
/// may call it. Callees of the stepper (parts, inputs, blocks of a signal graph, observers) may read it, but
/// neither step nor change it, save or restore snapshots, nor clone it: std::logic_error, nothing having
/// changed. If they destroy or move it the program ends with a message.
class Stepper {
 public:
  /// Errors: ConfigError with every defect of `options` (pointers as in scenario files:
  /// "/time/step_s", "/method/iterations", …), or with every reason why a method without waves does
  /// not fit the system.
  Stepper(const System& system, const StepperOptions& options);
  /// Takes the system over, as in Stepper(builder.build(), options): its parts can then be exchanged
  /// (`set_component`). Errors: as above.
  Stepper(System&& system, const StepperOptions& options);
  Stepper(const System&& system, const StepperOptions& options) = delete;
  ~Stepper();
  Stepper(Stepper&&) noexcept;
  Stepper& operator=(Stepper&&) noexcept;

  /// One macro-step, all or nothing. Errors: StepError, the state being xⁿ as before the call.
  StepReport step();
  /// One macro-step of another size than StepperOptions::step_s. Step maps of up to 24 sizes are
  /// kept; a size that is not among them is prepared for first.
  /// Errors: as step; std::invalid_argument unless `step_s` is finite and > 0; std::logic_error with
  /// StepSizes, a signal graph or a method without waves; ConfigError where there are no step maps
  /// of that size.
  StepReport step_by(double step_s);
  /// `steps` macro-steps, or fewer: none is made after one in which an event ends the run (ending_watch). Earlier
  /// ones stand where a later one fails. Returns the report of the last, or an empty one for 0 steps.
  /// Errors: as step; std::invalid_argument unless `steps` is from 0 to 2^53.
  StepReport step(std::int64_t steps);
  /// A step size is no number of steps: call step_by.
  template <std::floating_point Size>
  StepReport step(Size) = delete;
  /// One macro-step that stops at `limit_s` at the latest, and then exactly there; `limit_s` is later than
  /// now. Errors: as step; std::logic_error without StepSizes; std::invalid_argument unless `limit_s` is
  /// finite; std::out_of_range unless it is later.
  StepReport step_towards(double limit_s);
  /// Steps until `end_s`, or until an event ends the run (ending_watch): a later call goes on from there. Does
  /// nothing if the time is later already. With steps of one size the last one is
  /// shorter if need be, by more than a billionth of a step. Errors: as step_towards; with steps of one
  /// size, as step_by where a shorter one is needed, all others having been made;
  /// std::invalid_argument, nothing having been done, unless `end_s` is finite and at most 2^53 steps
  /// away.
  void run_until(double end_s);
  /// One step of `run_until`, also after an event that ends the run; empty if the time is `end_s` already.
  /// Errors: as run_until.
  std::optional<StepReport> step_if_before(double end_s);

  /// Calls `observer` after every committed step, in order. Its exceptions are passed on; the step stands. An
  /// observer may read the stepper, save snapshots, clone it and set inputs; it may not step it, change or
  /// restore it, nor add or clear observers (std::logic_error).
  void on_step(std::function<void(const Stepper&, const StepReport&)> observer);
  void clear_observers();

  /// A snapshot of the run. Allocates unless `into` has held one as large before.
  /// Errors: std::logic_error where a part keeps its state elsewhere than in numbers (Capabilities).
  void snapshot(Snapshot& into) const;
  Snapshot snapshot() const;
  /// Goes back, or forth, to a snapshot of this stepper or of one that began with the same system and
  /// options. Parts whose components were exchanged are again what they were then.
  /// Cost: a copy; where impedances or step sizes differ from those in use, step maps are rebuilt, and so are
  /// those of parts that are exchanged.
  /// Errors: std::invalid_argument, nothing having changed, where the snapshot is empty or of another
  /// system, other parameters or other options, naming the difference; where parts would have to be
  /// exchanged and cannot be, as in `set_component`; or where it is not a state that a run can reach. std::bad_alloc:
  /// the stepper may refuse everything until a snapshot is restored.
  void restore(const Snapshot& snapshot);
  /// A stepper with the same system and options in the same state, but without observers. It repeats all
  /// preparation; to go back to a state many times, `restore` is far cheaper. A system that this stepper has
  /// taken over is copied, another one shared. `threads`: of the clone; 0: the same number.
  /// Errors: as snapshot.
  Stepper clone(int threads = 0) const;

  const System& system() const;
  std::int64_t step_index() const;                     ///< macro-steps committed
  double start_s() const { return options_.start_s; }  ///< as StepperOptions::start_s
  double time_s() const;  ///< simulated time that was reached, from StepperOptions::start_s
  int threads() const;
  /// Tasks of a step; without waves those of the phase with the most tasks, and 1 when serial.
  int tasks() const;
  /// The executor in use: "serial", "serial or async, whichever is faster", "async", "graph"; and
  /// the reason, if it was not asked for.
  const std::string& execution() const;

  /// Committed state of a part, in signature order; valid until the next step. This and the functions below
  /// throw std::out_of_range for a part or port number that does not exist.
  std::span<const double> state(int part) const;
  /// By name, also of a part that was cut: its pieces are gathered into memory that the next call
  /// overwrites. std::out_of_range, with the nearest name, if unknown.
  std::span<const double> state(std::string_view part) const;
  /// The state of a part at a time within the last step, by the polynomial through the stages, with error
  /// O(hˢ⁺¹) between the ends of the step; of kicks and drifts O(h⁶). `state`: the length of the part's state.
  /// Errors: std::logic_error without StepSizes, but for kick-drift and taylor; std::out_of_range;
  /// std::invalid_argument for another length.
  void state_at(int part, double time_s, std::span<double> state) const;
  /// Effort and flow of a scalar port at such a time, by the polynomial through their values at the
  /// stages, with error O(hˢ). Errors: as state_at; also for kicks and drifts.
  EffortFlow port_at(int scalar_port, double time_s) const;
  /// Mean effort and flow of the last step at a scalar port; 0 before the first. Without waves
  /// those of the mean state, z̄ = Q(xⁿ + xⁿ⁺¹)/2.
  double effort(int scalar_port) const;
  double flow(int scalar_port) const;
  /// H of a part [J].
  double storage(int part) const;

  /// Sets an input that is Signal::settable, for the steps to come. A signal graph that drives it overwrites
  /// it before the next step. Errors: std::out_of_range unless the part and the input exist and the input is
  /// settable; std::invalid_argument for a value that is not finite; std::logic_error with methods
  /// without waves but kick-drift and taylor.
  void set_input(int part, int input, double value);
  /// The present value of a settable input.
  double input(int part, int input) const;
  /// The settable input "part.input", or a block of the signal graph that is settable (block::settable), by its name.
  /// Errors: std::out_of_range with the nearest name.
  InputSlot find_input(std::string_view path) const;
  /// As above, without a search. Does nothing for the value that is held already. Errors:
  /// std::invalid_argument for a value that is not finite; std::out_of_range; std::logic_error as above.
  void set_input(InputSlot input, double value);
  double input(InputSlot input) const;
  /// All settable inputs, in the order of System::settable_inputs. Errors: likewise, nothing having
  /// changed.
  void set_inputs(std::span<const double> values);
  /// Replaces a part's component by another one, such as one with other parameters; its states and waves
  /// carry on. Extra energy that the new component stores counts as supplied. Impedances stay as they are,
  /// unless they follow the state; WaveView::tune_again fits them to parts that have changed by much.
  /// Snapshots hold the exchange, and going back undoes it.
  /// Cost: that of the part alone, independent of the size of the system, where its step maps are dense, in
  /// closed form or by Newton; else its batch is prepared again. The factors of its island are renewed in the
  /// next step, if that is solved by its interface equation; step maps of other step sizes are discarded.
  /// Errors, nothing having changed: std::out_of_range; std::invalid_argument, saying why, for
  /// a component of another type or shape, or one that cannot be in the state that it is to take over;
  /// ConfigError where it has no step map, or kick-drift or taylor refuse the network with it; std::logic_error
  /// where the stepper has not taken its system over, or couples by another method without waves.
  void set_component(int part, std::shared_ptr<const Component> component);
  /// Sets the states of all parts, in order: Σ state_size numbers. Time, inputs, impedances and accounts go on;
  /// the stored energy that this adds or takes counts as supplied. Waves begin anew as at the start, so that ports
  /// have no effort and flow until the next step (without waves: those of the new states). Signals keep their samples;
  /// events count from the new states. States at odds with rigid joints are treated by the next step as at a start.
  /// Errors, nothing having changed: std::invalid_argument for another length, and naming all parts with a
  /// state that is not finite, or in which a part cannot be; std::logic_error as of set_input, with several
  /// ranks, and for parts that are opaque.
  void set_states(std::span<const double> states);

  /// The signals of the graph as sampled for the step to come, by number; empty without a graph. Also at
  /// t = 0. The next step reports the exception of a block.
  std::span<const double> signals() const;
  /// Null without one.
  const SignalGraph* signal_graph() const { return options_.signals.get(); }

  /// The watches: StepperOptions::watches, then the levels that parts report.
  std::span<const Watch> watches() const;
  /// Events of the last step, in order of time; valid until the next step.
  std::span<const Event> events() const;
  /// The watch with Watch::ends_run whose event in the last step ends the run; null: none does. Calls that make
  /// several steps return after that step.
  const Watch* ending_watch() const;
  /// Event counts, by watch.
  std::span<const EventCount> event_counts() const;

  /// Waves, impedances, tanks, the guard; null where the method couples without waves. Lives as
  /// long as the stepper's engine does, also when the stepper is moved.
  const WaveView* waves() const;
  WaveView* waves();

  /// The method in use, and the reason where it was not asked for in full. Without waves: the method as it
  /// was asked for, with the result in `reason`.
  const MethodChoice& method() const;
  /// Findings of the run about a method without waves, for people; empty where there are none.
  std::string remarks() const;
  /// Steps of islands that were taken as halves, by kicks and drifts or Taylor series.
  std::int64_t halved_steps() const;

  /// The impulses so far; with Start::consistent. One acts before the first step that begins in its instant, or
  /// after it, and stays if that step then fails. Rows of results at its time have the states before it, those
  /// of the start the states after it.
  const Impulses& impulses() const;
  /// The inconsistent states that Start::as_given let pass.
  const StartsAtOdds& starts_at_odds() const;

  /// Whether there is a ledger (not with Certify::none, unless the guard or a part that does not
  /// know its energy needs it).
  bool keeps_ledger() const;
  EnergyTotals energy() const;
  const Certificate& certificate() const;
  /// The name of a part in the certificate. In a slice parts are numbered as in the whole, and only parts of
  /// this rank and those that the certificate names now have a name; others are "number 7".
  std::string name_of_part(int number) const;
  const IterationStatistics& iterations() const;
  /// Where a deadline left no time to examine the run, parts are looked at now, for moved_J; not from within
  /// a loop in real time.
  CouplingLooks coupling() const;
  /// Null without StepSizes.
  const StepSizeStatistics* step_sizes() const;
  /// Empty where nothing is examined: with Certify::none and in slices; and without waves, where only pulses of
  /// inputs are looked for, if there are none.
  std::optional<Resolution> resolution() const;
  /// How well steps kept to the time budget; empty without one.
  std::optional<DeadlineScheduler::Statistics> deadline() const;
  /// The distribution of the time of the steps so far. Measures the parts, one type after the other: a few
  /// milliseconds. Errors: std::logic_error without StepperOptions::profile.
  Profile profile() const;
  /// Bytes held beside states and step maps: waves, ledger, places, junctions, tasks. Without
  /// waves: waveforms, scratch, and the states that they are computed in.
  std::size_t overhead_bytes() const;

 private:
  friend class RankedStepper;

  Stepper(std::unique_ptr<System> system, const StepperOptions& options);
  /// `own`: null where `system` is somebody else's.
  Stepper(std::unique_ptr<System> own, const System& system, const StepperOptions& options);
  StepReport step_to(double limit_s);
  StepReport step_with_others(double limit_s, Acting& acting);
  void tell(const StepReport& report) const;
  /// After a step.
  void look(StepReport& report) noexcept;
  void look_on();
  double motion_of(int part) const;
  void archive(StateArchive& archive);
  /// Errors: std::logic_error where there are no snapshots of the run.
  const std::shared_ptr<const StepIdentity>& identity() const;
  bool is_own(const Snapshot& snapshot) const;
  void adopt(const Snapshot& snapshot);
  /// The number of a settable signal; −1: it is an input of a part.
  int signal_of(InputSlot input) const;
  void set_signal(int k, double value);
  using Components = std::map<int, std::shared_ptr<const Component>>;
  /// The parts to exchange for a snapshot to fit. Errors: std::invalid_argument.
  Components exchanges_for(const Snapshot& snapshot) const;
  Components exchanges_for_bytes(const Snapshot& snapshot) const;
  [[noreturn]] void refuse(const StepIdentity& own, const StepIdentity& other) const;
  StepIdentity present_identity() const;
  /// Errors: of StepEngine::component_changed, nothing having changed.
  void put_component(int part, const std::shared_ptr<const Component>& component, double more_J);
  void note_exchange(int part, const std::shared_ptr<const Component>& before);
  /// set_component, in whatever the stepper is doing.
  void exchange(int part, const std::shared_ptr<const Component>& component);
  std::span<const double> state_of_cut(const CutName& cut) const;
  /// Takes the samples for the step to come, unless already taken. Errors: StepError.
  void sample_signals();
  /// The same, but the next step reports the error.
  void sample_if_possible();
  /// Exchanges the parts whose parameters follow signals that have changed. Errors: StepError; parts before
  /// the failing one have changed.
  void drive_parameters();
  double next_sample_s() const;
  double& setting(int part, int input) const;
  /// Errors: std::logic_error without waves.
  std::span<double> settings() const;

  /// Ends the program when a stepper is moved during a step.
  class Engine : public std::unique_ptr<StepEngine> {
   public:
    explicit Engine(std::unique_ptr<StepEngine> made);
    ~Engine();
    Engine(Engine&& other) noexcept;
    Engine& operator=(Engine&& other) noexcept;
  };

  std::unique_ptr<System> own_system_;  // null: owned by someone else
  Engine engine_;
  std::unique_ptr<SignalRun> signals_;
  double signals_every_s_ = 0.0;  ///< 0: before every step
  std::int64_t sampled_ = -1;     ///< number of the last sample: of the step, or of the period
  std::unique_ptr<EventWatch> events_;
  std::unique_ptr<StartCheck> start_check_;  // null: no states are tied to one another
  std::vector<std::function<void(const Stepper&, const StepReport&)>> observers_;
  StepperOptions options_;  // as they were given
  CouplingLooks looks_;
  int looked_at_ = -1;  // parts, in the look that is under way; −1: none is
  double looked_J_ = 0.0, look_at_part_s_ = 0.0;
  mutable std::vector<double> gradient_;                  // of a part, where the run is looked at
  mutable std::shared_ptr<const StepIdentity> identity_;  // of the start; null: not known yet
  Components originals_;                                  // of parts that were ever exchanged
  std::shared_ptr<Exchanges> exchanged_;                  // null: none
  mutable bool has_programs_ = false;  // parts or blocks with states of their own; with `identity_`
  mutable bool is_exchanged_shared_ = false;  // with snapshots: the next change copies it
  std::vector<std::byte> before_;             // while a snapshot is restored: to go back to
  mutable std::map<std::string, std::vector<double>, std::less<>>
      whole_states_;  // of parts that were cut
};

}  // namespace portwave
