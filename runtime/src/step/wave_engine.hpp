#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/executor.hpp"
#include "parallel/pace.hpp"
#include "parallel/state_view.hpp"
#include "parallel/step_profiler.hpp"
#include "parallel/wave_state.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/subsystems/base/staggered.hpp"
#include "ranks/slice_sums.hpp"
#include "step/adaptive_steps.hpp"
#include "step/extrapolated_start.hpp"
#include "step/input_changes.hpp"
#include "step/interface_solvers.hpp"
#include "step/rank_lead.hpp"
#include "step/resolution_watch.hpp"
#include "step/run_certificate.hpp"
#include "step/runner.hpp"
#include "step/staged_run.hpp"
#include "step/start_ports.hpp"
#include "step/step_engine.hpp"
#include "step/step_levels.hpp"

namespace portwave {

/// Steps with wave coupling. A macro-step in order: freeze, iterate, commit, guard, ledger. What is
/// `next` is written by the step and becomes current only when all of it has succeeded.
///
/// The step is in wave_engine.cpp, how the engine is put together in wave_engine_setup.cpp, and what is
/// asked and changed between steps in wave_engine_access.cpp.
class WaveEngine final : public StepEngine, public WaveView, private StepTrials {
 public:
  WaveEngine(const System& system, const StepperOptions& given);

  StepReport step(double step_s) override;
  StepReport step_towards(double limit_s) override;

  // Several ranks.
  void lead() override {
    if (lead_) lead_->orders().begin();
  }
  void follow(const Hooks& hooks) override {
    if (lead_) lead_->follow(hooks);
  }
  void release_followers() override {
    if (lead_) lead_->release_followers();
  }
  Ranks* ranks() const override { return lead_ && !slices_ ? &lead_->orders().ranks() : nullptr; }
  int rank_of_part(int part) const override { return lead_ ? lead_->rank_of_part(part) : 0; }
  void tell_followers(std::span<const std::byte> message) override {
    lead_->tell_followers(message);
  }
  int prepare_channels(std::span<const ScalarChannel> channels) override {
    return lead_->prepare_channels(channels);
  }
  void read_channels(int set, std::span<double> values) override {
    lead_->read_channels(set, values);
  }
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values) override {
    lead_->read_own(channels, values);
  }

  // What it steps, and how.
  const StepClock& clock() const override { return clock_; }
  const System& system() const override { return run_.given(); }
  int threads() const override { return runner_.executor->threads(); }
  int tasks() const override { return runner_.executor->tasks(); }
  const std::string& execution() const override { return runner_.description; }
  const MethodChoice& method() const override { return tuner().choice(); }
  WaveView* waves() override { return this; }

  // What was committed.
  std::span<const double> state(int part) override;
  std::span<const double> first_state(int part) override {
    return states_.of(part, now_.record.data());
  }
  EffortFlow effort_flow(int scalar_port) override;
  double storage(int part) override;
  void state_at(int part, double time_s, std::span<double> state) override;
  EffortFlow port_at(int scalar_port, double time_s) override;

  // What may change between two steps.
  std::span<double> settings() override { return settings_; }
  void settings_changed() override;
  void component_changed(int part, double more_J) override;
  void component_restored(int part) override {
    start_ports_.forget();
    run_.component_changed(part);
  }

  // Accounts.
  bool keeps_ledger() const override { return uses_ledger_; }
  const EnergyTotals& energy() const override { return ledger_.totals(); }
  const Certificate& certificate() const override { return certificate_->value(); }
  std::string name_of_part(int number) const override {
    return slices_ ? slices_->kept_name(number) : StepEngine::name_of_part(number);
  }
  const IterationStatistics& iterations() const override { return statistics_; }
  std::optional<double> coupling_residual() override;
  std::optional<DeadlineScheduler::Statistics> deadline() const override;
  const StepSizeStatistics* step_sizes() const override {
    return sizes_ ? &sizes_->statistics() : nullptr;
  }
  std::optional<Resolution> resolution() const override {
    if (!watch_) return std::nullopt;
    return watch_->value();
  }
  std::size_t overhead_bytes() const override;
  Profile profile() override;
  void archive(StateArchive& archive) override;

  // As a WaveView.
  int stages() const override { return run_.stages(); }
  WavePair waves_at(int scalar_port, int stage) const override;
  void set_iterations(int iterations) override;
  void set_impedance(std::span<const double> by_port) override;
  void tune_anew() override;
  double impedance(int scalar_port, int stage) const override;
  bool follows_state() const override { return tuner().follows_state(); }
  const TuningStatistics& tuning() const override { return tuning_; }
  std::span<const GuardUse> guard_uses() const override {
    return guard_ ? guard_->uses() : std::span<const GuardUse>{};
  }
  const GuardStatistics* guard() const override { return guard_ ? &guard_->statistics() : nullptr; }
  PartEnergies energies_of(int part) const override;
  double tank(int island) const override;
  int iterations_of_island(int island) const override;

 private:
  /// When a step was where.
  struct Moments {
    Clock::time_point start{}, ready{}, inner_end{};
  };

  // The step (wave_engine.cpp).
  void freeze(double time_s);
  PhaseStatus freeze_own(const double* driven, bool driven_only);
  StepReport iterate_and_commit(Moments& moments);
  StepResult run(bool timed);
  void begin_interface();
  StepReport summarise(const StepResult& result) const;
  void keep_within_tanks();
  void book(StepReport& report, double end_s, double step_s);
  void accept(double end_s, double step_s);
  void count_iterations(const StepReport& report);
  InterfaceResidual::Share largest_missing_share() const;
  void note_times(StepReport& report, const Moments& moments);
  void retune();
  Clock::time_point await_turn(double step_s);
  [[noreturn]] void fail(const PhaseStatus& status, int iteration);
  FailedSolve failed_solve(const PhaseStatus& status) const;
  void fail_if(const PhaseStatus& status, int iteration) {
    if (!status.ok()) fail(status, iteration);
  }
  void fail_at_commit_if(const PhaseStatus& status) {
    if (!status.ok() && interface_) interface_->current().revoke();
    fail_if(status, options_.method.waves().iterations);
  }
  void replay(int noticed_at);

  // As StepTrials: steps that choose their size (wave_engine.cpp).
  void use(double step_s) override;
  StepReport attempt(double time_s) override;
  StepReport attempt_to_book(double time_s) override;
  void book(StepReport& report, double end_s) override;
  void go_on() override;
  void save() override;
  void restore() override;
  double time_s() const override { return clock_.time_s(); }
  std::int64_t step_index() const override { return clock_.steps(); }
  const double* record() const override { return now_.record.data(); }
  const double* next() const override { return next_.record.data(); }
  const double* incident() const override { return next_.a.data(); }

  // Setting up (wave_engine_setup.cpp).
  void begin_watching();
  void resolve_method();
  void prepare_iteration();
  void make_executor();
  void rehearse_solves();
  void plan_step();

  // Between steps (wave_engine_access.cpp).
  void archive_levels(StateArchive& archive);
  void expect_sound(const StateArchive& archive) const;
  bool has_impedance(std::span<const double> by_port) const;
  void scatter_anew(std::span<const double> by_port);
  void impedances_changed();
  void take_over_maps();
  void bind_executor();
  void rebind();
  void refuse_with_ranks() const;
  void expect_own(int part) const;
  /// Errors: std::out_of_range.
  void expect_port_and_stage(int scalar_port, int stage) const;
  double share_of_step(double time_s) const;
  EffortFlow at_stage(int scalar_port, int stage) const;
  int part_of_port(int scalar_port) const {
    return system().scalar_ports()[static_cast<std::size_t>(scalar_port)].part;
  }
  std::size_t offset_of(int scalar_port, int stage) const {
    return static_cast<std::size_t>(waves_.wave_of_port(run_.port(scalar_port, stage)));
  }

  Tuner& tuner() { return levels_.tuner(); }
  const Tuner& tuner() const { return levels_.tuner(); }
  bool is_timed() const { return options_.timed || scheduler_.has_value(); }

  // What one process has at hand, and of ranks is fetched.
  RankOrders* orders() const { return lead_ ? &lead_->orders() : nullptr; }
  void fetch() const {
    if (lead_) lead_->lanes().fetch();
  }
  void fetch_energies() const {
    if (lead_) lead_->lanes().fetch_energies();
  }
  void fetch_next() const {
    if (lead_) lead_->lanes().fetch_next();
  }
  /// Every step looks at the states or waves of all parts.
  bool looks_at_all() const {
    return lead_ && (sizes_ || extrapolated_ || options_.certify == Certify::full || is_watched());
  }
  /// Whether the step is looked at for motion that it does not resolve. All ranks find the same.
  bool is_watched() const {
    if (!watch_) return false;
    return lead_ ? ResolutionWatch::wants_always(clock_.steps()) : watch_->wants(clock_.steps());
  }

  // Arrays, as the step and the one after it have them. They are put together when the executor is bound.
  StepArrays arrays_between(const WaveState& from, const WaveState& to) {
    return {from.record.data(),
            to.record.data(),
            start_of(from.b),
            to.b.data(),
            u_.data(),
            b_trial_.data(),
            to.a.data(),
            uses_ledger_ ? &ledger_ : nullptr,
            uses_ledger_ ? ledger_.columns() : EnergyColumns{},
            &residual_,
            acceleration_ ? &*acceleration_ : nullptr,
            interface_ ? &interface_->current() : nullptr};
  }
  const StepArrays& arrays() {
    StepArrays& own = arrays_[arrays_[0].record == now_.record.data() ? 0 : 1];
    if (interface_) own.interface = without_solves_ ? nullptr : &interface_->current();
    return own;
  }
  /// b that a step starts its iteration from.
  double* start_of(std::span<double> b) { return extrapolated_ ? start_.data() : b.data(); }
  /// What the step has written, before it is accepted.
  CommittedStep committed() const {
    return {now_.record.data(), next_.record.data(), next_.a.data(), next_.b.data()};
  }

  StagedRun run_;
  StepperOptions options_;  // with the method as it was resolved
  InnerUpdate update_;
  StepPlan plan_;
  StepLevels levels_;
  WaveDiscretisation waves_;
  StaggeredMemory memory_;
  WaveState now_, next_;
  StepArrays arrays_[2];           // from each of the two to the other
  std::span<double> u_, b_trial_;  // inner iterate and trial outgoing waves
  AlignedVector input_;
  std::vector<double> settings_;  // of settable inputs
  std::vector<IslandOutcome> outcomes_;
  std::vector<double> met_gap_J_;      // by island, for the guard; empty without a tolerance
  std::unique_ptr<SliceSums> slices_;  // of a slice
  EnergyLedger ledger_;
  InterfaceResidual residual_;
  std::optional<PassivityGuard> guard_;
  std::optional<Acceleration> acceleration_;
  std::optional<InterfaceSolvers> interface_;  // where an island may take the interface update
  TuningStatistics tuning_;
  LaneCosts costs_;
  std::optional<StepProfiler> profiler_;  // before the runner, whose executor writes to it
  Runner runner_;
  std::optional<DeadlineScheduler> scheduler_;  // with a time budget
  Pace pace_;
  StepClock clock_;
  std::optional<AdaptiveSteps> sizes_;    // where steps choose theirs
  std::optional<ResolutionWatch> watch_;  // but in slices
  std::optional<InputChanges> changes_;   // for it, where steps are of one size
  std::vector<int> port_waves_;           // for it: by port of the system and stage
  std::vector<double> port_weights_;      // of stages
  Moments attempted_;
  std::optional<ExtrapolatedStart> extrapolated_;  // with InnerStart::extrapolated
  AlignedVector start_;
  bool goes_on_ = false;  // from a step that was not booked
  /// A state to come back to.
  struct {
    AlignedVector record, a, b;
    std::vector<double> impedance;
    double step_s = 0.0;
  } saved_;
  std::vector<double> left_;  // impedances by wave, of before a change
  bool without_solves_ =
      false;  // in this step: no solve of an interface equation fits its deadline
  bool has_tolerance_ = false;
  bool uses_ledger_ = false;
  bool is_driven_ = false;     // some part here or, of slices, elsewhere
  bool is_repeatable_ = true;  // so are all parts
  bool stale_ = false;         // the record has seen port solves of a step that failed
  IterationStatistics statistics_;
  std::optional<RunCertificate> certificate_;
  StateView states_;
  StartPorts start_ports_;
  std::unique_ptr<RankLead> lead_;  // of several ranks
};

}  // namespace portwave
