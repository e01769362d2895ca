#pragma once

#include <array>
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
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/execution/arena.hpp"
#include "portwave/runtime/execution/budget.hpp"
#include "portwave/runtime/execution/events.hpp"
#include "portwave/runtime/execution/followers.hpp"
#include "portwave/runtime/execution/partition.hpp"
#include "portwave/runtime/execution/profile.hpp"
#include "portwave/runtime/execution/ranks.hpp"
#include "portwave/runtime/execution/snapshot.hpp"
#include "portwave/runtime/execution/wave_view.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

// Of the library itself, hence not shown.
namespace portwave {
class EventWatch;
class StepEngine;
class SignalRun;
class StartCheck;
class StateArchive;
class StepIdentity;
}  // namespace portwave

namespace PORTWAVE_EXPORT portwave {

/// A macro-step that failed. The stepper keeps the last committed state and stays usable.
class StepError : public std::runtime_error {
 public:
  /// As `budget`: of a step that is not made of inner iterations.
  static constexpr int kNoIterations = -1;

  /// `budget` is K, so that iteration K reads as the commit. `part` empty: the network as a whole.
  StepError(std::string part, std::int64_t step, int iteration, int budget, StepFault fault,
            const std::string& detail);

  const std::string& part() const { return part_; }  ///< name of the part
  std::int64_t step() const { return step_; }        ///< macro-step that failed, from 0
  /// Of a block of a signal graph, which fails before the step has begun. `part` is empty.
  static StepError of_signal(const std::string& name, std::int64_t step, StepFault fault,
                             const std::string& detail);

  /// Of states that violate a rigid joint. `part` is the first one.
  static StepError of_odds(std::string part, std::int64_t step, const std::string& detail);

  int iteration() const {
    return iteration_;
  }  ///< inner iteration; -1: before the first, K: the commit
  StepFault fault() const { return fault_; }
  /// The part's state before the step, its external inputs and incident waves, and what was left of its
  /// equations: as far as known, which it is not where other processes step the part, of the network
  /// as a whole, and with methods without waves.
  const FailedSolve& solve() const { return solve_; }
  /// The same in words, for people: "1.2e-09 of the terms of its equations are left, from q = 1 m, …".
  const std::string& circumstances() const { return circumstances_; }
  StepError& with(FailedSolve solve, std::string circumstances) {
    solve_ = std::move(solve);
    circumstances_ = std::move(circumstances);
    return *this;
  }

 private:
  StepError(const std::string& text, std::int64_t step, StepFault fault);

  std::string part_;
  std::int64_t step_;
  int iteration_;
  StepFault fault_;
  FailedSolve solve_;
  std::string circumstances_;
};

inline constexpr int kMaxThreads = 1024;

/// Who runs the tasks of a step. Results do not depend on it.
enum class ExecutorKind {
  automatic,  ///< serial where a step is too small for threads, else whichever is faster lately
  serial,     ///< the calling thread
  async,      ///< tasks claimed by workers that never wait for one another
  graph,      ///< a plain tbb::flow::graph: one node per task
  waves [[deprecated("it is now called async")]] = async,
};

std::string_view to_string(ExecutorKind kind);

/// Macro-steps that choose their own size, on the ladder step_s·2⁻ᵏ (docs/concepts/step-size.md).
struct StepSizes {
  /// Of the local error of a step, as an amplitude: √ of the energy of the error of a part, beside
  /// the largest energy of motion that a part of its kind in its island has had, or a millionth of
  /// that of any part there. In [1e-13, 0.1].
  double tolerance = 1e-6;
  /// No step of the ladder is shorter [s]; 0: as short as it has to be.
  double smallest_s = 0.0;
  /// A step in which a watched state passes its level ends at most so long after that [s]; 0:
  /// kEventShare of step_s.
  double event_tolerance_s = 0.0;

  static constexpr double kEventShare = 1e-9;
  static NumberRange tolerances() { return {.minimum = 1e-13, .maximum = 0.1}; }
};

/// What steps of chosen size came to in a run.
struct StepSizeStatistics {
  std::int64_t rejected = 0;  ///< attempts that were taken back, for whatever reason
  std::int64_t rejected_for_coupling =
      0;                         ///< of them: because the inner iteration did not converge
  std::int64_t comparisons = 0;  ///< of a step with two of half its size, to find a first step
  std::int64_t shortened = 0;    ///< attempts taken anew to end at an event
  std::int64_t changes = 0;      ///< of the step size
  double smallest_s = std::numeric_limits<double>::infinity();
  double largest_s = 0.0;
  double last_s = 0.0;
};

/// Whether the steps of a run resolve its motion (docs/concepts/step-size.md): the worst that was seen of
/// what they do not. Energy may be kept to the last digit all the same.
struct Resolution {
  enum class Kind {
    resolved,           ///< nothing was seen
    jumps,              ///< the local error of a step is a share of all motion
    alternates,         ///< states go to and fro from step to step
    effort_alternates,  ///< so does the effort of a port,
    flow_alternates,    ///< or its flow
  };
  Kind kind = Kind::resolved;
  double share =
      0.0;  ///< amplitude of the error, of all motion of parts of its kind; of the largest
            ///< effort or flow there
  double h_lambda =
      0.0;  ///< rate of the decay or oscillation that was seen times the step; 0: not known
  std::int64_t step = -1;  ///< where
  int part = -1;
  int port = -1;           ///< scalar port, of efforts and flows
  std::int64_t looks = 0;  ///< steps that were looked at
};

std::string_view to_string(Resolution::Kind kind);

/// What becomes of states that violate what rigid joints ask of them, at the start and where an input
/// jumps (docs/concepts/starts.md).
enum class Start {
  consistent,  ///< they are refused: ConfigError at the start, StepError before a step
  as_given,    ///< they are stepped as they are, and Stepper::starts_at_odds tells
};

/// States at odds that were stepped as they were, with Start::as_given.
struct StartsAtOdds {
  std::int64_t count = 0;  ///< instants at which there were some
  double first_s = 0.0;
  std::string first;  ///< the joint, its parts, and their values
};

struct StepperOptions {
  double step_s = 0.01;                 ///< macro-step h > 0; with `sizes` the largest one
  std::optional<StepSizes> sizes = {};  ///< empty: all steps are of size step_s
  double start_s =
      0.0;  ///< time at which the run begins, of any sign; step n ends at start_s + (n + 1) h
  Start start = Start::consistent;
  CouplingMethod method = CouplingMethod::automatic();
  /// Sensors, controllers and actuators: sampled before each step, their outputs held over it. Null:
  /// none. Wave coupling only.
  std::shared_ptr<const SignalGraph> signals = {};
  /// With `sizes`: time between samples of the graph [s] > 0; steps end there. With steps of one
  /// size it is sampled before every step, and this is 0.
  double signals_every_s = 0.0;
  /// What is watched for events, beside what parts watch of themselves (Subsystem::state_levels).
  std::vector<Watch> watches = {};
  Certify certify = Certify::energy;
  int threads =
      1;  ///< ≥ 1; with 1, `automatic` is `serial`. Fewer where this user may not have so many
  Grain grain = {};
  ExecutorKind executor = ExecutorKind::automatic;
  /// Whose workers help, as many as `threads` and the arena say at most; null: its own. Not of
  /// `graph`.
  std::shared_ptr<Arena> arena = {};
  /// Processes that step the system together, this one being one of them; null: this one alone. Results
  /// do not depend on them. Needs `automatic` or `serial`, no `time`, and the same options everywhere.
  std::shared_ptr<Ranks> ranks = {};
  TimeBudget time = {};
  /// Asked while a step waits for its pace, which then begins, and between iterations of a window,
  /// which then fails.
  std::function<bool()> interrupted = {};
  bool timed = false;  ///< fill StepReport::times; always so with a time budget
  /// Look at some steps, for Stepper::profile. Steps are then `timed`; without, it costs nothing.
  std::optional<ProfileOptions> profile = {};
};

/// Wall time of the phases of one macro-step [s]; zeros unless timed.
struct StepTimes {
  double begin_s = 0.0;    ///< inputs and freezing
  double iterate_s = 0.0;  ///< inner iteration
  double commit_s = 0.0;   ///< advance and ledger
};

/// What one macro-step did.
struct StepReport {
  /// Evaluations of S before the commit: the most over islands. Of a dynamic iteration those of the
  /// window that the step belongs to.
  int iterations = 0;
  bool begins_window = true;  ///< they were made in this step, not in an earlier one of its window
  double residual = 0.0;   ///< largest island residual at the last iteration that stands; 0 where
                           ///< nobody looks: without tolerance and acceleration
  double gap_J = 0.0;      ///< ½|P b̂ − u|², likewise, all islands
  bool converged = false;  ///< every island met a tolerance (false without one)
  StopReason reason = StopReason::budget;
  int rejected_trials = 0;  ///< accelerated evaluations that were not kept, all islands
  /// Evaluations of the nonlinear parts to renew D of the interface update; not in `iterations`.
  int linearisations = 0;
  int rescues = 0;         ///< islands that went on with the interface update within the step
  double step_s = 0.0;     ///< h
  int rejected_steps = 0;  ///< attempts that were taken back before this step
  double error = 0.0;    ///< with StepSizes: estimate of the local error, relative to the tolerance
  double slack_s = 0.0;  ///< deadline − duration; 0 without a time budget
  StepTimes times;
  StepLedger energy;  ///< zeros with Certify::none
};

/// Iterations over a run. A window is what is iterated at once: one step, or of a dynamic iteration
/// as many as it says. It is counted when it is iterated: in its first step.
struct IterationStatistics {
  std::int64_t steps = 0;
  std::int64_t windows = 0;
  std::int64_t total = 0;
  int max = 0;  ///< of a window
  /// Windows by their number of iterations, counts above kHistogram − 1 in the last entry.
  static constexpr int kHistogram = 257;
  std::vector<std::int64_t> histogram = std::vector<std::int64_t>(kHistogram, 0);
  std::array<std::int64_t, kStopReasons> reasons = {};  ///< windows by StopReason
  std::int64_t rejected_trials = 0;  ///< accelerated evaluations that were not kept
  std::int64_t linearisations = 0;   ///< as in StepReport
  std::int64_t rescues = 0;          ///< as in StepReport
  std::int64_t not_converged = 0;    ///< windows that ended without meeting the tolerance

  double mean() const { return ratio(windows); }  ///< per window
  double per_step() const { return ratio(steps); }

 private:
  double ratio(std::int64_t count) const {
    return count == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(count);
  }
};

/// What the coupling came to where a run was looked at: after 1, 2, 4, 8, … steps.
struct CouplingLooks {
  std::int64_t count = 0;
  /// The largest sum over parts of the energy of their motion since the start [J]: of how far H was from
  /// H(x₀) or, where that is more, from H(x₀) + ∇H(x₀)ᵀ(x − x₀), which of a linear part is ½(x − x₀)ᵀQ(x − x₀)
  /// and does not see preloads. With a ledger, and not in slices.
  double moved_J = 0.0;
  /// Where nobody asked for convergence: the largest |P b − a| beside the waves, of committed waves.
  double residual = 0.0;
};

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
/// task, async deals them out to workers. Options of wave coupling are not looked at, there is no
/// WaveView, and Certify::full is Certify::energy.
///
/// A system that is not given away must outlive the stepper and stay where it is. One thread at a time
/// may call it. What the stepper calls (parts, inputs, blocks of a signal graph, observers) may read it,
/// but neither step nor change it, take or restore snapshots, nor clone it: std::logic_error, nothing
/// having changed. If they destroy or move it the program ends with a text.
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
  StepReport step(double step_s);
  /// `steps` macro-steps. Errors: as step; std::invalid_argument unless `steps` is from 0 to 2^53.
  void run(std::int64_t steps);
  /// One macro-step that does not go beyond `limit_s`, a time later than now, but to it exactly if
  /// it comes that far. Errors: as step; std::logic_error without StepSizes; std::invalid_argument unless
  /// `limit_s` is finite; std::out_of_range unless it is later.
  StepReport step_towards(double limit_s);
  /// Steps until it is `end_s`; nothing where it is later already. With steps of one size the last
  /// one is shorter if need be, by more than a billionth of a step. Errors: as step_towards or, with
  /// steps of one size, as step(double) where a shorter one is needed: all others are then made;
  /// std::invalid_argument, nothing having been done, unless `end_s` is finite and no more than 2^53
  /// steps away.
  void run_until(double end_s);
  /// One step of `run_until`; empty where it is `end_s` already. Errors: as run_until.
  std::optional<StepReport> step_if_before(double end_s);

  /// On other ranks than 0: steps its share whenever rank 0 steps, until rank 0's stepper is gone. Nothing
  /// else is to be called there. Errors: RankError.
  void follow();
  /// The same, `follower` taking part in it. Errors: likewise; what `follower` throws.
  void follow(Follower& follower);
  /// The ranks that step the system; null where this process has no more of it than it steps: all, or a
  /// slice.
  Ranks* ranks() const;
  /// Which of them steps a part and has its channels; 0 where all do, or where there are none.
  int rank_of_part(int part) const;
  /// On rank 0: Follower::told on all others. Errors: std::logic_error, and nobody is told, where one of
  /// them follows without a Follower.
  void tell_followers(std::span<const std::byte> message) const;
  /// On rank 0: channels that are read together, many times. With several ranks their numbers are sent
  /// to rank 0, where a look at a state or port by itself has all states and waves sent to everyone.
  /// Gives the number of the set. Errors: std::out_of_range.
  int prepare_channels(std::span<const ScalarChannel> channels) const;
  /// As they are now, in the order of the set. Errors: as effort, storage and WaveView::incident.
  void read_channels(int set, std::span<double> values) const;
  /// On any rank: of parts of this rank, without the others.
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values) const;
  /// On rank 0: lets the others return from `follow`. Until they call it again, this is not to be used,
  /// nor to end.
  void release_followers();

  /// Calls `observer` after every step that is made, in the order of their coming. What it throws is
  /// passed on; the step stands. It may read the stepper, take snapshots, clone it and set inputs; it may
  /// not step it, change or restore it, nor add or clear observers (std::logic_error).
  void on_step(std::function<void(const Stepper&, const StepReport&)> observer);
  void clear_observers();

  /// The run as it stands. Allocates where `into` has not held one as large before.
  /// Errors: std::logic_error where a part keeps its state elsewhere than in numbers (Capabilities).
  void snapshot(Snapshot& into) const;
  Snapshot snapshot() const;
  /// Goes back, or forth, to a snapshot of this stepper or of one with the same system and options.
  /// Cost: a copy; where impedances or step sizes differ from those in use, step maps are made anew.
  /// Errors: std::invalid_argument, nothing having changed, where the snapshot is empty or of
  /// another system, other parameters or other options, saying which; or where it is no state that a run
  /// comes to, having been made up.
  void restore(const Snapshot& snapshot);
  /// A stepper with the same system and options in the same state, but for observers. It prepares
  /// everything anew; to go back to a state many times, `restore` is far cheaper. A system that this
  /// one has taken over is copied, another one shared. `threads`: of the clone; 0: as many.
  /// Errors: as snapshot.
  Stepper clone(int threads = 0) const;

  const System& system() const;
  std::int64_t step_index() const;                     ///< macro-steps committed
  double start_s() const { return options_.start_s; }  ///< as StepperOptions::start_s
  double time_s() const;  ///< simulated time that was reached, from StepperOptions::start_s
  int threads() const;
  /// Tasks of a step; without waves those of the phase that has most of them, and 1 when serial.
  int tasks() const;
  /// What runs: "serial", "serial or async, whichever is faster", "async", "graph"; and
  /// why, if it was not asked for.
  const std::string& execution() const;

  /// Committed state of a part, in signature order; valid until the next step. This and what follows:
  /// std::out_of_range for a number of a part or port that there is not.
  std::span<const double> state(int part) const;
  /// By name, also of a part that was cut, whose pieces are then gathered into memory that is written to
  /// by the next call. std::out_of_range, with the nearest name, if unknown.
  std::span<const double> state(std::string_view part) const;
  /// The state of a part at a time within the last step, by the polynomial through the stages,
  /// which is off by O(hˢ⁺¹) between the ends of the step. `state`: as many as it has.
  /// Errors: std::logic_error without StepSizes; std::out_of_range; std::invalid_argument for another
  /// length.
  void state_at(int part, double time_s, std::span<double> state) const;
  /// Effort and flow of a scalar port likewise, by the polynomial through their values at the
  /// stages, which is off by O(hˢ). Errors: as state_at.
  EffortFlow port_at(int scalar_port, double time_s) const;
  /// Mean effort and flow of the last step at a scalar port; 0 before the first. Without waves
  /// those of the mean state, z̄ = Q(xⁿ + xⁿ⁺¹)/2.
  double effort(int scalar_port) const;
  double flow(int scalar_port) const;
  /// H of a part [J].
  double storage(int part) const;

  /// Sets an input that is Signal::settable, for the steps to come. Where a signal graph drives it,
  /// that sets it anew before the next step. Errors: std::out_of_range unless there is such a part
  /// and channel and it is settable; std::invalid_argument for a value that is not finite;
  /// std::logic_error without waves.
  void set_input(int part, int channel, double value);
  /// What a settable input is.
  double input(int part, int channel) const;
  /// The settable input "part.input". Errors: std::out_of_range with the nearest name.
  InputSlot find_input(std::string_view path) const;
  /// As above, without a search. Nothing happens where it is the value that is held. Errors: std::invalid_argument for a value that is not finite;
  /// std::out_of_range; std::logic_error without waves.
  void set_input(InputSlot input, double value);
  double input(InputSlot input) const;
  /// All settable inputs, in the order of System::settable_inputs. Errors: likewise, nothing having
  /// changed.
  void set_inputs(std::span<const double> values);
  /// Puts another component in the place of a part's, such as one with other parameters; its states
  /// and waves go on. What it stores more than the one before counts as supplied. Impedances stay
  /// as they are, unless they follow the state; WaveView::tune_anew fits them to parts that have changed by
  /// much. Snapshots from before do not fit any more, until the parameters are again what they were.
  /// Cost: its batch is prepared anew, and where islands are solved by their interface equation,
  /// its factors; step maps of other step sizes are forgotten.
  /// Errors, nothing having changed: std::out_of_range; std::invalid_argument, saying why, for
  /// a component of another type or shape, or one that cannot be in the state that it is to take over;
  /// ConfigError where it has no step map; std::logic_error where the stepper has not taken its
  /// system over, or couples without waves.
  void set_component(int part, std::shared_ptr<const Component> component);

  /// The signals of the graph as sampled for the step to come, by number; empty without a graph. At
  /// t = 0 too. What a block throws is told by the next step.
  std::span<const double> signals() const;
  /// Null without one.
  const SignalGraph* signal_graph() const { return options_.signals.get(); }

  /// What is watched: StepperOptions::watches, then what parts watch of themselves.
  std::span<const Watch> watches() const;
  /// What happened in the last step, in order of time; until the next step.
  std::span<const Event> events() const;
  /// How often, by watch.
  std::span<const EventCount> event_counts() const;

  /// Waves, impedances, tanks, the guard; null where the method couples without waves. Lives as
  /// long as the stepper's engine does, also when the stepper is moved.
  const WaveView* waves() const;
  WaveView* waves();

  /// The method in use, and why where it was not asked for in full. Without waves: the method as it
  /// was asked for, and in `reason` what it came to.
  const MethodChoice& method() const;
  /// What the run has shown of a method without waves, for people; empty where there is nothing to
  /// say.
  std::string remarks() const;

  /// What Start::as_given let pass.
  const StartsAtOdds& starts_at_odds() const;

  /// Whether there is a ledger (not with Certify::none, unless the guard or a part that does not
  /// know its energy needs it).
  bool keeps_ledger() const;
  const EnergyTotals& energy() const;
  const Certificate& certificate() const;
  /// What a part is called that the certificate names. In a slice these are numbers in the whole, and only
  /// parts of this rank and those that the certificate names now have a name; others are "number 7".
  std::string name_of_part(int number) const;
  const IterationStatistics& iterations() const;
  const CouplingLooks& coupling() const { return looks_; }
  /// Null without StepSizes.
  const StepSizeStatistics* step_sizes() const;
  /// Of wave coupling; empty where nobody looks: without waves, with Certify::none, and in a slice of a
  /// system.
  std::optional<Resolution> resolution() const;
  /// How steps kept to the time budget; nothing without one.
  std::optional<DeadlineScheduler::Statistics> deadline() const;
  /// Where the time of the steps went so far. Measures the parts, one type after the other: a few
  /// milliseconds. Errors: std::logic_error without StepperOptions::profile.
  Profile profile() const;
  /// Bytes held beside states and step maps: waves, ledger, places, junctions, tasks. Without
  /// waves: waveforms, scratch, and the states that they are computed in.
  std::size_t overhead_bytes() const;

 private:
  Stepper(std::unique_ptr<System> system, const StepperOptions& options);
  StepReport step_to(double limit_s);
  void tell(const StepReport& report) const;
  /// After a step.
  void look() noexcept;
  double motion_of(int part);
  void archive(StateArchive& archive);
  /// Errors: std::logic_error where there are no snapshots of the run.
  const std::shared_ptr<const StepIdentity>& identity() const;
  void take(const Snapshot& snapshot);
  std::span<const double> state_of_cut(const CutName& cut) const;
  /// Takes the samples for the step to come, unless that is done. Errors: StepError.
  void sample_signals();
  /// The same, what fails being left to the next step.
  void sample_if_possible();
  double next_sample_s() const;
  double& setting(int part, int channel) const;
  /// Errors: std::logic_error without waves.
  std::span<double> settings() const;

  /// Ends the program where a stepper is moved that is at a step.
  class Engine : public std::unique_ptr<StepEngine> {
   public:
    explicit Engine(std::unique_ptr<StepEngine> made);
    ~Engine();
    Engine(Engine&& other) noexcept;
    Engine& operator=(Engine&& other) noexcept;
  };

  std::unique_ptr<System> own_system_;  // null: somebody else's
  Engine engine_;
  std::unique_ptr<SignalRun> signals_;
  double signals_every_s_ = 0.0;  ///< 0: before every step
  std::int64_t sampled_ = -1;     ///< number of the last sample: of the step, or of the period
  std::unique_ptr<EventWatch> events_;
  std::unique_ptr<StartCheck> start_check_;  // null: no states are tied to one another
  std::vector<std::function<void(const Stepper&, const StepReport&)>> observers_;
  mutable std::vector<std::vector<ScalarChannel>> channels_;  // by set, where there is one rank
  StepperOptions options_;                                    // as they were given
  CouplingLooks looks_;
  std::vector<double> gradient_;                          // of a part, where the run is looked at
  mutable std::shared_ptr<const StepIdentity> identity_;  // null: not known yet
  std::vector<std::byte> before_;  // while a snapshot is restored: to go back to
  mutable std::map<std::string, std::vector<double>, std::less<>>
      whole_states_;  // of parts that were cut
};

}  // namespace portwave
