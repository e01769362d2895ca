#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "parallel/executors/executor.hpp"
#include "parallel/step_arrays.hpp"
#include "parallel/together.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/system/step_clock.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/runtime/step/part_defects.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "step/waves/interface_solvers.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {

/// The macro-step of wave coupling, and its working data. In order:
///
///   freeze    samples external inputs and prepares every part for the step,
///   iterate   runs the inner iteration and commits its result,
///   guard     commits again, with other waves, the islands whose result no energy pays for; then parts that
///             cannot go back step,
///   close     makes the step final in the energy ledger,
///   accept    makes the committed step the current state; the clock is advanced by the caller.
///
/// Whatever fails, the current state does not change before `accept`. A single run, the replicas of an
/// ensemble, attempts at steps that choose their size, and the ranks of a cluster all step by this class.
/// They differ in how they treat an island that fails (`Failures`).
class MacroStep {
 public:
  class Failures {
   public:
    /// A part has failed, and its island with it. `iteration`: −1 before the first, K in the commit. The
    /// function throws, or takes the island out; the step must then start again.
    virtual void failed(const PhaseStatus& status, int iteration) = 0;
    /// Whether the part is in an island that was taken out.
    virtual bool is_out([[maybe_unused]] int part) const { return false; }

   protected:
    ~Failures() = default;
  };

  /// Starts from the initial states of the system and from `method.initial_waves`. `waves`, `failures` and
  /// `together` must outlive this object.
  MacroStep(WaveDiscretisation& waves, const WaveCoupling& method, std::vector<double> settings,
            const LedgerOptions& ledger, double start_s, Failures& failures, Together& together);

  /// Sets up the inner iteration and the guard. `method` is resolved: nothing in it is left to "auto". `run`
  /// has the system that is stepped.
  void prepare(const WaveCoupling& method, const StagedRun& run, bool has_tolerance,
               bool keeps_ledger);
  /// Keeps sums of the waves of commits. Before `bind`.
  void sum_waves() { wave_sums_.emplace(waves_); }
  /// Those of the step that was committed last.
  WaveSums::Sums wave_sums();
  /// From now on `executor` runs the tasks. Must be called again when step maps or junctions have changed.
  void bind(Executor& executor);
  /// Begins another run: time, waves and accounts are reset. `set_states` writes the initial states into the
  /// record that it is given.
  template <class SetStates>
  void begin(const WaveCoupling& method, double start_s, const SetStates& set_states) {
    rewind(method, start_s);
    set_states(now_.record.data());
    ledger_.begin(now_.record.data(), now_.b.data());
  }

  // The phases of a step. The first three return false if an island was taken out.
  bool freeze(double time_s);
  bool iterate();
  bool guard();
  StepLedger close();
  void accept(double step_s);
  /// Continues from the committed step without closing it, until `restored` is called.
  void go_on();
  /// Called when the current state was overwritten with a saved one: ends what `go_on` began.
  void restored();
  /// Called when all data were read from an archive; `stale`, among them, says whether the record is frozen.
  void read_back();
  /// Called when the states were overwritten between two steps: waves begin anew, as in `begin`; the time and
  /// the accounts go on.
  void restart_waves();
  /// What an evaluation and a commit take, sums of the ledger included [s]: the shortest of some.
  struct Rehearsal {
    static constexpr double kUnknown = std::numeric_limits<double>::infinity();
    double evaluation_s = kUnknown, commit_s = kUnknown;
    void take(double own_evaluation_s, double own_commit_s) {
      evaluation_s = std::min(evaluation_s, own_evaluation_s);
      commit_s = std::min(commit_s, own_commit_s);
    }
  };
  /// Iterates from the present state without a deadline, at most `most` times, and commits nothing: the next step
  /// starts from the waves that this finds, and has factors. Errors: those of `Failures`; the state stands.
  Rehearsal find_waves(int most);
  /// Called when an impulse has changed states between two steps: waves, time and accounts go on.
  void states_jumped();
  /// Report of the committed step.
  StepReport report() const;

  // Its working data.
  WaveDiscretisation& waves() { return waves_; }
  WaveState& now() { return now_; }
  const WaveState& now() const { return now_; }
  WaveState& next() { return next_; }
  const WaveState& next() const { return next_; }
  std::span<double> inner() { return u_; }  ///< u; its values mean nothing between steps
  std::vector<double>& settings() { return settings_; }
  const std::vector<double>& settings() const { return settings_; }
  std::vector<MovedInputJump>& moved_jumps() { return moved_jumps_; }
  AlignedVector& input() { return input_; }
  StepClock& clock() { return clock_; }
  const StepClock& clock() const { return clock_; }
  EnergyLedger& ledger() { return ledger_; }
  const EnergyLedger& ledger() const { return ledger_; }
  bool keeps_ledger() const { return keeps_ledger_; }
  std::optional<PassivityGuard>& passivity_guard() { return guard_; }
  const std::optional<PassivityGuard>& passivity_guard() const { return guard_; }
  std::optional<InterfaceSolvers>& interface() { return interface_; }
  std::optional<ExtrapolatedStart>& extrapolated() { return extrapolated_; }
  bool is_accelerated() const { return acceleration_.has_value(); }
  const InterfaceResidual& residual() const { return residual_; }
  std::vector<IslandOutcome>& outcomes() { return outcomes_; }
  std::span<const IslandOutcome> outcomes() const { return outcomes_; }
  StepPlan& plan() { return plan_; }
  /// Of the parts that cannot take their steps back, so far.
  std::span<const PartDefects> defects() const { return defects_; }
  const InnerUpdate& update() const { return update_; }
  bool has_tolerance() const { return has_tolerance_; }
  bool is_driven() const { return is_driven_; }
  bool is_repeatable() const { return is_repeatable_; }
  bool& stale() { return stale_; }
  /// When the inner iteration of the last step ended, if plan().timed.
  DeadlineScheduler::Time inner_end() const { return inner_end_; }
  /// When the ledger of the last step had its sums, under a deadline: what follows is the guard's.
  DeadlineScheduler::Time tallied() const { return tallied_; }
  /// The outgoing waves from which the inner iteration starts: bⁿ, or its extrapolation.
  std::span<const double> start() const {
    return extrapolated_ ? std::span<const double>(start_) : now_.b;
  }
  /// Whether some island takes the interface update in this step.
  bool is_any_engaged() const { return interface_ && interface_->is_any_engaged(); }
  /// Results of the step, before it is accepted.
  CommittedStep committed() const {
    return {now_.record.data(), next_.record.data(), next_.a.data(), next_.b.data()};
  }
  std::size_t bytes() const;

 private:
  /// A batch of parts that cannot take their steps back.
  struct FinalBatch {
    int batch;
    std::size_t first_part;  ///< in defects_
    std::vector<FinalStep> energies;
    PhaseStatus failure;
  };

  void rewind(const WaveCoupling& method, double start_s);
  void begin_iteration();
  void begin_interface();
  StepResult execute(const StepPlan& plan);
  bool fail(const StepResult& result);
  bool fail(const PhaseStatus& status, int iteration);
  bool fail_at_commit(const PhaseStatus& status) { return fail(status, method_.iterations); }
  PhaseStatus energy_overflow() const;
  bool hold_to_tanks();
  void hurry_guard();
  bool commit_within_tanks();
  bool take_final_steps();
  void take(FinalBatch& own);
  NextIterate next_iterate();
  const StepArrays& arrays();
  StepArrays arrays_between(const WaveState& from, const WaveState& to);

  WaveDiscretisation& waves_;
  WaveCoupling method_;
  Failures& failures_;
  Together& together_;
  StaggeredMemory memory_;
  WaveState now_, next_;
  std::span<double> u_, b_trial_;  // inner iterate and trial outgoing waves
  AlignedVector input_, start_;
  std::vector<double> settings_;  // of settable inputs
  std::vector<MovedInputJump> moved_jumps_;
  std::vector<IslandOutcome> outcomes_;
  std::vector<FinalBatch> final_;
  std::vector<PartDefects> defects_;
  std::vector<double> met_gap_J_;  // by island, for the guard; empty without a tolerance
  EnergyLedger ledger_;
  std::optional<WaveSums> wave_sums_;
  InterfaceResidual residual_;
  std::optional<PassivityGuard> guard_;
  std::optional<Acceleration> acceleration_;
  std::optional<InterfaceSolvers> interface_;  // where an island may take the interface update
  std::optional<ExtrapolatedStart> extrapolated_;
  Executor* executor_ = nullptr;
  StepArrays arrays_[2];  // of steps from either of the two states to the other
  InnerUpdate update_;
  StepPlan plan_;
  bool out_of_time_ = false;
  bool is_hurried_ = false;  // the guard, in this step
  double leisure_s_ = 0.0;   // what it took where it was not, of late
  DeadlineScheduler::Time inner_end_{}, tallied_{};
  StepClock clock_;
  bool has_tolerance_ = false;
  bool keeps_ledger_ = false;
  bool is_driven_ = false;       // some part has driven inputs, here or on another slice
  bool is_repeatable_ = true;    // the steps of all parts repeat
  bool stale_ = false;           // all of the record must be frozen again before the next step
  bool goes_on_ = false;         // the current state is that of a step that was not closed
  bool without_solves_ = false;  // the deadline of this step leaves no time for interface solves
  bool revocable_ = false;       // the step under way may still be revoked in the interface solver
};

}  // namespace portwave
