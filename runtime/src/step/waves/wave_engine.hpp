#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/pace.hpp"
#include "parallel/runner.hpp"
#include "parallel/state_view.hpp"
#include "parallel/step_profiler.hpp"
#include "parallel/together.hpp"
#include "step/change_over.hpp"
#include "step/run_certificate.hpp"
#include "step/sizes/adaptive_steps.hpp"
#include "step/sizes/hidden_inputs.hpp"
#include "step/sizes/input_changes.hpp"
#include "step/sizes/resolution_watch.hpp"
#include "step/sizes/step_levels.hpp"
#include "step/staged_run.hpp"
#include "step/states/start_ports.hpp"
#include "step/step_engine.hpp"
#include "step/waves/macro_step.hpp"

namespace portwave {

/// The engine of wave coupling: a MacroStep, and around it the choice of the method, steps that choose their
/// size, deadlines, the certificate, the check of resolution, and other ranks.
///
/// wave_engine_pieces.cpp takes steps in pieces; wave_engine_setup.cpp builds the engine; wave_engine_access.cpp reads and changes it between steps;
/// wave_engine_archive.cpp keeps and restores it.
class WaveEngine final : public StepEngine,
                         public WaveView,
                         public PartDefectsView,
                         public FollowingEngine,
                         private MacroStep::Failures,
                         private StepTrials {
 public:
  /// `anytime`: as in choose_method.
  WaveEngine(const System& system, const StepperOptions& given, std::unique_ptr<Together> processes,
             const Anytime& anytime);
  ~WaveEngine() override { together().leave(); }

  StepReport step_by(double step_s) override;
  StepReport step_towards(double limit_s) override;
  bool can_cut_steps() const override {
    return !sizes_ && !scheduler_ && together().is_alone() && together().has_whole();
  }
  StepReport step_with_cuts(double step_s, const Cuts& cuts) override;
  std::span<const double> sudden_inputs() override {
    finds_sudden(options_.step_s);
    return sudden_s_;
  }
  void enter() override;
  double time_left_s() const override;
  void extend(StepReport& report) override;

  /// Of the steps to come, where there is a time budget [s].
  void set_deadline(double deadline_s) { options_.time.deadline_s = deadline_s; }
  /// Mean and spread of what work has taken [s].
  WorkCosts work_costs() const;
  WorkCosts work_spreads() const;
  /// Before the first step: finds its waves, and what its work takes while caches are warm.
  void find_waves();
  /// Whether the steps under the deadline, or at the pace, are expected to converge, with a margin for the time.
  bool has_time_to_converge(double margin);

  // Several ranks.
  void follow(const Hooks& hooks) override;
  void carry_out(Together::Order::Kind kind, double value) override;
  double read(const QuantityTerm& term) override { return portwave::read(*this, term); }

  // The system stepped, and how.
  const StepClock& clock() const override { return step_.clock(); }
  const System& system() const override { return run_.given(); }
  int threads() const override { return runner_.executor->threads(); }
  int tasks() const override { return runner_.executor->tasks(); }
  const std::string& execution() const override { return runner_.description; }
  const MethodChoice& method() const override { return tuner().choice(); }
  WaveView* waves() override { return this; }

  // The committed step.
  std::span<const double> state(int part) override;
  std::span<const double> first_state(int part) override {
    return states_.of(part, step_.now().record.data());
  }
  EffortFlow effort_flow(int scalar_port) override;
  double storage(int part) override;
  void state_at(int part, double time_s, std::span<double> state) override;
  EffortFlow port_at(int scalar_port, double time_s) override;

  // Changes between two steps.
  std::span<double> settings() override { return step_.settings(); }
  void settings_changed() override;
  void component_changed(int part, double more_J) override;
  void component_restored(int part) override;
  void put_state(int part, std::span<const double> state, double more_J) override;
  void states_changed(std::span<const double> states) override;
  void jump(std::span<const StateConstraints::PartImpulse> parts, bool is_start) override;
  bool can_jump() const override { return together().has_whole(); }
  void move_jumps(std::span<const MovedInputJump> jumps) override;
  void take_jump(std::span<const std::byte> bytes) override;

  // Accounts.
  bool keeps_ledger() const override { return step_.keeps_ledger(); }
  EnergyTotals energy() const override { return step_.ledger().totals(); }
  const Certificate& certificate() override { return certificate_->value(); }
  std::span<const PartDefects> defects() const override { return step_.defects(); }
  std::string name_of_part(int number) const override {
    return together().kept_name(system(), number);
  }
  const IterationStatistics& iterations() const override { return statistics_; }
  std::optional<double> coupling_residual() override;
  std::optional<DeadlineScheduler::Statistics> deadline() const override;
  const StepSizeStatistics* step_sizes() const override {
    return sizes_ ? &sizes_->statistics() : nullptr;
  }
  std::optional<Resolution> resolution() const override {
    if (!watch_) return std::nullopt;
    // Inputs first: what is wrong with motion may come from them.
    const Resolution of_inputs = hidden_ ? hidden_->value() : Resolution{};
    if (of_inputs.kind != Resolution::Kind::resolved) return of_inputs;
    const Resolution of_motion = watch_->value();
    return of_motion.kind == Resolution::Kind::resolved ? of_changes() : of_motion;
  }
  std::size_t overhead_bytes() const override;
  Profile profile() override;
  void archive(StateArchive& archive) override;

  // As a WaveView.
  int stages() const override { return run_.stages(); }
  int damped_parts() const override { return run_.integrators().damped_parts; }
  bool may_damp() const override { return change_over_ || damped_parts() > 0; }
  std::string integrator() const override;
  const IntegratorChoice& integrators() const override { return run_.integrators(); }
  SwitchTimes switch_times(int part) const override;
  WavePair waves_at(int scalar_port, int stage) const override;
  void set_iterations(int iterations) override;
  void set_impedance(std::span<const double> by_port) override;
  void tune_again() override;
  double impedance(int scalar_port, int stage) const override;
  bool follows_state() const override { return tuner().follows_state(); }
  const TuningStatistics& tuning() const override { return tuning_; }
  std::span<const GuardUse> guard_uses() const override {
    return guarded() ? guarded()->uses() : std::span<const GuardUse>{};
  }
  const GuardStatistics* guard() const override {
    return guarded() ? &guarded()->statistics() : nullptr;
  }
  PartEnergies energies_of(int part) const override;
  double tank(int island) const override;
  int iterations_of_island(int island) const override;

 private:
  /// Times of the phases of a step.
  struct Moments {
    Clock::time_point start{}, ready{}, inner_end{};
    double guard_s = 0.0;
    double examined_s = 0.0;
  };

  // The step (wave_engine.cpp).
  StepReport step_as_a_whole(double step_s);
  StepReport step_in_pieces(double step_s);
  void begin_whole(double step_s);
  bool takes_pieces() const;
  void end_whole();
  void go_back_to_begin();
  StepReport step_part(double end_s, double size_s);
  StepReport step_past_inputs(double end_s, std::size_t cuts);
  bool finds_sudden(double step_s);
  bool begins_in_parts() const;
  void leave_pieces(double error);
  void add_piece();
  EffortFlow mean_at(int scalar_port) const;
  void commit_piece(StepReport& report, double end_s);
  void join_pieces(StepReport& report);
  bool has_stepped() const { return step_.clock().steps() > 0 || (whole_ && whole_->pieces > 0); }
  void iterate(Moments& moments);
  int damp_what_changes_over(Moments& moments);
  void leave_what_has_settled();
  void guard_step(Moments& moments);
  void note_miss(std::int64_t step, const StepReport& report);
  void commit(StepReport& report, double end_s, double step_s, Moments& moments);
  void count_iterations(const StepReport& report);
  void note_times(StepReport& report, const Moments& moments, bool is_piece = false);
  void retune();
  void retune_in_time_left(Moments& moments);
  void plan_renewal(bool converged);
  bool looks_in_time();
  Resolution of_changes() const;
  Clock::time_point await_turn(double step_s);

  // As MacroStep::Failures.
  [[noreturn]] void failed(const PhaseStatus& status, int iteration) override;
  FailedSolve failed_solve(const PhaseStatus& status) const;

  // As StepTrials: steps that choose their size (wave_engine.cpp).
  void use(double step_s) override;
  StepReport attempt(double time_s) override;
  StepReport attempt_to_commit(double time_s) override;
  void commit(StepReport& report, double end_s) override;
  void go_on() override;
  void save() override;
  void restore() override;
  LawEnds::Error error_behind_stages() override;
  double time_s() const override { return whole_ ? whole_->time_s : step_.clock().time_s(); }
  std::int64_t step_index() const override { return step_.clock().steps(); }
  const double* record() const override { return step_.now().record.data(); }
  const double* next() const override { return step_.next().record.data(); }
  const double* incident() const override { return step_.next().a.data(); }

  // Setting up (wave_engine_setup.cpp).
  void begin_watching();
  void resolve_method();
  void make_executor();
  void look_for_decays_in_slices();
  void rehearse();
  void begin_schedule(double evaluation_s, double commit_s);
  void rehearse_retuning();
  void plan_step();

  // Between steps (wave_engine_access.cpp).
  void archive_levels(StateArchive& archive);
  void archive_programs(StateArchive& archive);
  void expect_sound(const StateArchive& archive) const;
  void scatter_again(std::span<const double> by_port);
  void carry_out_jump(std::span<const StateConstraints::PartImpulse> parts, bool is_start);
  void take_over_maps();
  void rebind();
  bool exchange_part(int part);
  void renew_batch(int batch);
  void set_damped(std::span<const int> parts, bool damped);
  void archive_damping(StateArchive& archive);
  void arrange_damping(std::span<const char> states);
  void damp_and_leave(std::span<const char> states);
  StepLevels::InForce in_force();
  void put_singles(StepLevels::SingleSteps how);
  void refuse_with_ranks() const;
  void expect_own(int part) const;
  /// Errors: std::out_of_range.
  void expect_port_and_stage(int scalar_port, int stage) const;
  double share_of_step(double time_s) const;
  EffortFlow at_stage(int scalar_port, int stage) const;
  EffortFlow at_idle_port(int scalar_port, int stage) const;
  int part_of_port(int scalar_port) const {
    return system().scalar_ports()[static_cast<std::size_t>(scalar_port)].part;
  }
  std::size_t offset_of(int scalar_port, int stage) const {
    return static_cast<std::size_t>(waves_.wave_of_port(run_.port(scalar_port, stage)));
  }

  Tuner& tuner() { return levels_.tuner(); }
  const Tuner& tuner() const { return levels_.tuner(); }
  bool is_timed() const { return options_.timed || scheduler_.has_value(); }

  const std::optional<PassivityGuard>& guarded() const { return step_.passivity_guard(); }
  /// Whether every step reads states or waves of parts that other processes step.
  bool looks_at_all() const {
    if (together().is_alone()) return false;
    return sizes_ || pieces_ || change_over_ || has_extrapolated_start_ ||
           options_.certify == Certify::full || is_watched();
  }
  /// Whether the step is checked for unresolved motion. All ranks decide the same.
  bool is_watched() const {
    if (!watch_) return false;
    const std::int64_t step = step_.clock().steps();
    return together().is_alone() ? watch_->wants(step) : ResolutionWatch::wants_always(step);
  }

  StagedRun run_;
  StepperOptions options_;  // with the method as it was resolved
  StepLevels levels_;
  WaveDiscretisation waves_;
  MacroStep step_;
  std::vector<int> programs_;  ///< batches whose states are bytes (StateBytes)
  TuningStatistics tuning_;
  LaneCosts costs_;
  std::optional<StepProfiler> profiler_;  // before the runner, whose executor writes to it
  Runner runner_;
  std::optional<DeadlineScheduler> scheduler_;  // with a time budget
  Pace pace_;
  Clock::time_point entered_{};  // with a time budget: where the step under way was asked for
  // What own work beside the steps takes under a time budget [s]: examining the run, checking impedances, and
  // changing them.
  double look_s_ = 0.0, check_s_ = 0.0, change_s_ = 0.0;
  double linearise_s_ = 0.0, solve_s_ = 0.0;  // an interface equation, in the rehearsal [s]
  /// Steps in which interface equations are solved without converging, and have time for a solve, but none for the
  /// factors that it needs as well: then one of them makes those for the next ones.
  struct Renewal {
    int wait = 1, patience = 1;  // of such steps
  };
  Renewal renewal_;
  std::optional<std::vector<double>> tuned_;  // impedances for which no time has been left yet
  std::optional<AdaptiveSteps> sizes_;        // if steps choose their size
  std::optional<AdaptiveSteps> pieces_;       // if steps of one size may be taken in pieces
  /// The step that is under way, where it may be taken in pieces.
  struct Whole {
    double step_s = 0.0, end_s = 0.0;
    double time_s = 0.0;  // that its pieces have led to
    int pieces = 0;       // committed
    bool is_cut = false;  // where parameters or inputs jump
    bool has_cut_inputs = false;
    bool has_missed = false;  // its tolerance, and that has been noted
    double left_error = 0.0;
    StepClock clock;    // at its begin
    StepReport report;  // of the pieces
  };
  std::optional<Whole> whole_;
  // Of the last step, if it was taken in pieces: energies by part, and means by scalar port.
  bool has_pieces_ = false;
  std::vector<PartEnergies> part_energies_;
  std::vector<EffortFlow> port_means_;
  std::vector<std::byte>
      before_pieces_;  // the archive of the engine before the first piece of a step
  struct {
    std::int64_t steps = 0, pieces = 0;  // of steps that were taken in pieces
    std::int64_t left_at = -1;           // the step from which on none are; −1: none
    int left_part = -1;
    double left_error = 0.0;
    std::int64_t in_a_row = 0;  // the last steps, all of them in pieces
  } in_pieces_;
  std::int64_t cut_steps_ = 0;  // taken in parts, from jump to jump of parameters or inputs
  std::optional<InputChanges>
      sudden_;  // if steps are cut where inputs jump; conserving ones only where smooth inputs do
  std::vector<double> sudden_s_;           // of the step under way
  std::optional<LawEnds> law_ends_;        // then, without damped stages
  std::optional<ResolutionWatch> watch_;   // not with slices
  std::string undamped_;                   // with slices: what decays faster than a step
  std::optional<HiddenInputs> hidden_;     // likewise
  std::optional<InputChanges> changes_;    // for watch_, if all steps have one size
  std::optional<ChangeOver> change_over_;  // where storages may have damped steps among others
  std::vector<int> port_waves_;            // for watch_: by port of the system and stage
  std::vector<double> port_weights_;       // for watch_: by stage
  Moments attempted_;
  bool has_extrapolated_start_ = false;
  /// The state to which `restore` returns.
  struct {
    AlignedVector record, a, b;
    std::vector<double> impedance;
    double step_s = 0.0;
  } saved_;
  std::vector<double> left_;  // impedances before a change, by wave
  IterationStatistics statistics_;
  std::optional<RunCertificate> certificate_;
  StateView states_;
  StartPorts start_ports_;
  mutable std::vector<double> end_state_;    // scratch: of a part
  mutable std::vector<double> idle_inputs_;  // scratch: the inputs at the ports of a part
  const Hooks* hooks_ = nullptr;             // while this rank follows
};

}  // namespace portwave
