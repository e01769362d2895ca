#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "execution/adaptive_steps.hpp"
#include "execution/channel_gather.hpp"
#include "execution/clock.hpp"
#include "execution/event_watch.hpp"
#include "execution/executor.hpp"
#include "execution/extrapolated_start.hpp"
#include "execution/fault_replay.hpp"
#include "execution/guard_commit.hpp"
#include "execution/island_watch.hpp"
#include "execution/pace.hpp"
#include "execution/rank_shares.hpp"
#include "execution/run_certificate.hpp"
#include "execution/runner.hpp"
#include "execution/slice_sums.hpp"
#include "execution/staged_run.hpp"
#include "execution/state_view.hpp"
#include "execution/step_engine.hpp"
#include "execution/step_levels.hpp"
#include "execution/step_profiler.hpp"
#include "execution/tuner.hpp"
#include "execution/wave_start.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/runtime/execution/slice_builder.hpp"
#include "portwave/subsystems/base/staggered.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Evaluations of S in a step, where it was not made for more: longer than anybody waits.
constexpr int kMostIterations = 10'000'000;

/// A macro-step in order: freeze, iterate, commit, guard, ledger. Arrays with a `next` are written
/// by the step and become current only when all of it has succeeded.
class WaveEngine final : public StepEngine, public WaveView, private StepTrials {
 public:
  WaveEngine(const System& system, const StepperOptions& given)
      : StepEngine(given.step_s),
        run_(system, given),
        options_(run_.options()),
        levels_(run_.stepped(), options_.step_s, options_.method.waves()),
        waves_(run_.stepped(), options_.step_s, tuner().choice().method.waves().impedance,
               grouping_for(options_),
               given.sizes ? WaveDiscretisation::StageIncrements::kept
                           : WaveDiscretisation::StageIncrements::none),
        memory_({{2, waves_.record_size()}, {6, static_cast<std::size_t>(waves_.wave_size())}}),
        record_(memory_.take(waves_.initial_record())),
        next_(memory_.take(record_.size())),
        b_(memory_.take(initial_waves(waves_, options_.method.waves()))),
        b_next_(memory_.take(b_.size())),
        a_(memory_.take(b_.size())),
        a_next_(memory_.take(b_.size())),
        u_(memory_.take(b_.size())),
        b_trial_(memory_.take(b_.size())),
        input_(waves_.input_size(), 0.0),
        settings_(system.initial_settings()),
        outcomes_(static_cast<std::size_t>(system.island_count())),
        slices_(system.slice() != nullptr ? std::make_unique<SliceSums>(waves_, given.ranks)
                                          : nullptr),
        ledger_(waves_, record_.data(), b_.data(), given.method.waves().tank,
                given.method.waves().guard,
                islands_at_risk(waves_, tuner().choice().method.waves()), slices_.get()),
        residual_(waves_),
        costs_(declared_costs(waves_)),
        pace_(given.time.pace, given.interrupted),
        states_(waves_) {
    is_driven_ = slices_ ? slices_->any(waves_.driven()) : waves_.driven();
    options_.method = tuner().choice().method;
    if (options_.method.kind() == WaveUpdate::interface) {
      options_.method.waves().relaxation = 1.0;
      options_.method.waves().acceleration = 0;
    }
    update_ = inner_update_of(options_.method.waves());
    has_tolerance_ = options_.sizes || has_tolerance(options_.method);
    // A part that does not know its energy has no other account of it.
    uses_ledger_ = options_.certify != Certify::none || options_.method.waves().guard ||
                   !ledger_.metered_parts().empty();
    together([&] { refuse_non_finite_start(waves_, ledger_, b_, options_.method.waves().tank); });
    if (options_.method.waves().guard) guard_.emplace(waves_);
    if (options_.method.waves().start == InnerStart::extrapolated) {
      extrapolated_.emplace(waves_, run_);
      start_.assign(b_.begin(), b_.end());
    }
    if (options_.method.waves().acceleration > 0)
      acceleration_.emplace(waves_, options_.method.waves().acceleration);
    prepare_interface();
    const std::vector<int> unrepeatable = unrepeatable_parts(waves_);
    is_repeatable_ = unrepeatable.empty();
    certificate_.emplace(waves_, update(), ledger_, options_.certify == Certify::full,
                         unrepeatable);
    if (options_.profile) {
      options_.timed = true;
      const bool follows = options_.executor != ExecutorKind::graph &&
                           options_.executor != ExecutorKind::barrier && options_.ranks == nullptr;
      profiler_.emplace(*options_.profile, follows ? options_.threads : 0);
    }
    runner_ = make_runner(waves_, options_, tuner().expected_iterations(), interface_ != nullptr,
                          record_.data(), costs_, profiler_ ? profiler_->trace() : nullptr);
    if (shares() != nullptr && !slices_) {
      ledger_.before_entries([this] { share_entries(); }, [this] { fetch_step(); });
    }
    runner_.executor->bind(arrays());
    runner_.executor->bind(next_arrays());
    if (options_.time.active()) {
      const Partition whole = whole_island_groups(waves_, costs_);
      scheduler_.emplace(options_.time.deadline_s, 1e-9 * whole.iteration_cost_ns,
                         1e-9 * whole.commit_cost_ns);
    }
    plan_step();
    if (options_.sizes) {
      sizes_.emplace(static_cast<StepTrials&>(*this), waves_, system, run_.stages(),
                     *options_.sizes, given.step_s, record_.data(), watches_of(system, given));
    }
  }

  ~WaveEngine() override {
    if (!is_leading()) return;
    try {
      send({Order::end});
    } catch (const RankError&) {  // then nobody waits for it
    }
  }
  WaveEngine(const WaveEngine&) = delete;
  WaveEngine& operator=(const WaveEngine&) = delete;

  void lead() override { leads_ = shares() != nullptr && shares()->rank() == 0; }
  void follow(const Hooks& hooks) override {
    hooks_ = &hooks;
    while (shares() != nullptr && shares()->rank() != 0) {
      const Order order = receive();
      if (order.kind == Order::end || order.kind == Order::release) return;
      const Common common(*this);
      try {
        const auto report = carry_out(order);
        if (report && hooks.stepped) hooks.stepped(*report);
      } catch (const StepError&) {  // rank 0 tells of it
      } catch (const ConfigError&) {
      }
    }
  }

  void release_followers() override {
    if (is_leading()) send({Order::release});
  }

  // What is recorded of other ranks.
  Ranks* ranks() const override {
    return shares() != nullptr && !slices_ ? &shares()->ranks() : nullptr;
  }
  int rank_of_part(int part) const override {
    if (slices_) return system().slice()->ranks[static_cast<std::size_t>(part)];
    return shares() == nullptr ? 0 : ranks_of_parts()[static_cast<std::size_t>(part)];
  }
  void tell_followers(std::span<const std::byte> message) override {
    send({Order::tell, static_cast<double>(message.size())});
    std::vector<std::byte> bytes(message.begin(), message.end());
    shares()->ranks().broadcast(bytes);
    expect_followers();
  }
  int prepare_channels(std::span<const ScalarChannel> channels) override {
    send({Order::prepare_channels, static_cast<double>(channels.size())});
    std::vector<ScalarChannel> list(channels.begin(), channels.end());
    shares()->ranks().broadcast(std::as_writable_bytes(std::span(list)));
    return take_channels(std::move(list));
  }
  void read_channels(int set, std::span<double> values) override {
    if (has_all_ && ledger_.has_entries())
      return read_own(channels_.at(static_cast<std::size_t>(set)).channels(), values);
    send({Order::read_channels, static_cast<double>(set)});
    gather_channels(set, values);
  }
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values) override {
    looks_at_own_ = true;
    for (std::size_t i = 0; i < channels.size(); ++i) values[i] = read(*this, channels[i]);
    looks_at_own_ = false;
  }

  const StepClock& clock() const override { return clock_; }
  const System& system() const override { return run_.given(); }
  int threads() const override { return runner_.executor->threads(); }
  int tasks() const override { return runner_.executor->tasks(); }
  const std::string& execution() const override { return runner_.description; }

  const MethodChoice& method() const override { return tuner().choice(); }
  WaveView* waves() override { return this; }

  std::span<const double> state(int part) override {
    expect_own(part);
    fetch();
    return states_.of(part, record_.data());
  }
  EffortFlow effort_flow(int scalar_port) override {
    expect_own(part_of_port(scalar_port));
    if (clock_.steps() == 0) return {0.0, 0.0};
    fetch();
    if (run_.stages() == 1) return at_stage(scalar_port, 0);
    EffortFlow mean{0.0, 0.0};
    for (int i = 0; i < run_.stages(); ++i) {
      const EffortFlow own = at_stage(scalar_port, i);
      mean.effort += run_.weight(i) * own.effort;
      mean.flow += run_.weight(i) * own.flow;
    }
    return mean;
  }
  double storage(int part) override {
    const Subsystem* physics = system().parts()[static_cast<std::size_t>(part)].port_hamiltonian();
    if (physics != nullptr) return physics->storage(state(part).data());
    expect_own(part);
    fetch_energies();
    return ledger_.storage(part);
  }

  std::span<double> settings() override { return settings_; }
  void settings_changed() override {
    if (is_leading()) send({Order::settings_changed});
    if (sizes_) sizes_->begin_anew();
  }

  void component_changed(int part, double more_J) override {
    if (shares() != nullptr) throw std::invalid_argument("several ranks step the system");
    run_.component_changed(part);
    const int number = waves_.slot(part).batch;
    const BatchSlot& slot = waves_.batch(number);
    std::unique_ptr<StepBatch> batch = waves_.batch_anew(number);
    if (batch->record_size() != slot.batch->record_size()) {
      throw std::invalid_argument("it is solved in another way");
    }
    const auto size = static_cast<std::size_t>(slot.batch->state_size());
    std::vector<double> states(slot.parts.size() * size);
    double* const record = record_.data() + slot.record;
    for (std::size_t i = 0; i < slot.parts.size(); ++i) {
      slot.batch->get_state(static_cast<int>(i), record, states.data() + i * size);
    }
    ledger_.revalue(part, more_J);
    waves_.take_batch(number, std::move(batch));
    for (std::size_t i = 0; i < slot.parts.size(); ++i) {
      slot.batch->set_state(static_cast<int>(i), states.data() + i * size, record);
    }
    levels_.component_changed();
    interfaces_.clear();
    ledger_.set_uncomputable(islands_at_risk(waves_, tuner().choice().method.waves()));
    states_.forget();
    take_over_maps();
    settings_changed();
  }
  void component_restored(int part) override { run_.component_changed(part); }

  bool keeps_ledger() const override { return uses_ledger_; }
  const EnergyTotals& energy() const override { return ledger_.totals(); }
  const Certificate& certificate() const override { return certificate_->value(); }
  std::string name_of_part(int number) const override {
    if (!slices_) return StepEngine::name_of_part(number);
    for (const NamedPart& named : named_) {
      if (named.number == number) return named.name;
    }
    return fmt::format("number {}", number);
  }
  const IterationStatistics& iterations() const override { return statistics_; }
  std::optional<DeadlineScheduler::Statistics> deadline() const override {
    if (!scheduler_) return std::nullopt;
    return scheduler_->statistics();
  }
  std::size_t overhead_bytes() const override {
    const auto wave = static_cast<std::size_t>(waves_.wave_size()) * sizeof(double);
    return runner_.executor->bytes() + waves_.bytes() + ledger_.bytes() + residual_.bytes() +
           (sizes_ ? sizes_->bytes() : 0) + (extrapolated_ ? extrapolated_->bytes() + wave : 0) +
           (guard_ ? guard_->bytes() : 0) + (acceleration_ ? acceleration_->bytes() : 0) +
           (interface_ ? interface_->bytes() : 0) + 6 * wave +
           outcomes_.capacity() * sizeof(IslandOutcome) + input_.capacity() * sizeof(double) +
           states_.bytes();
  }

  Profile profile() override {
    if (!profiler_) throw std::logic_error("StepperOptions::profile was not asked for");
    const LaneCosts costs = measured_costs(waves_, record_.data());
    return profiler_->profile(&waves_, &costs, &runner_.partition, &runner_.serial);
  }
  void archive(StateArchive& archive) override {
    if (slices_) {
      throw std::invalid_argument("the state of a system in slices cannot be kept: no rank has it");
    }
    fetch();
    fetch_energies();
    const int most_iterations = std::max(options_.method.waves().iterations, kMostIterations);
    archive_levels(archive);
    archive.values(clock_, stale_, options_.method.waves().iterations, tuning_);
    archive.array(record_);
    archive.array(a_);
    archive.array(b_);
    archive.array(settings_);
    archive.array(outcomes_);
    ledger_.archive(archive);
    certificate_->archive(archive);
    portwave::archive(archive, statistics_);
    if (guard_) guard_->archive(archive);
    if (interface_) watch_.archive(archive);
    if (sizes_) sizes_->archive(archive);
    if (extrapolated_) extrapolated_->archive(archive);
    if (!archive.reads()) return;
    const int budget = options_.method.waves().iterations;
    if (budget < 0 || budget > most_iterations) {
      throw StateArchive::Mismatch("a budget that nobody gives");
    }
    has_all_ = true;
    plan_.rule.budget = options_.method.waves().iterations;
    goes_on_ = false;
    states_.forget();
    pace_.begin_anew();
    if (is_leading()) send_state();
  }

  StepReport step(double step_s) override {
    if (is_leading()) send({Order::step, step_s});
    const Common common(*this);
    if (step_s != waves_.step_s()) use(step_s);
    retune();  // not on the step's time
    Attempt attempt;
    if (is_timed()) attempt.start = await_turn(step_s);
    StepReport report = make_attempt(clock_.time_s(), attempt);
    tally();
    finish(report, attempt, clock_.time_s() + step_s, step_s);
    return report;
  }
  StepReport step_towards(double limit_s) override {
    if (!sizes_) return step(step_s());
    if (is_leading()) send({Order::step_towards, limit_s});
    const Common common(*this);
    return sizes_->step(limit_s);
  }
  const StepSizeStatistics* step_sizes() const override {
    return sizes_ ? &sizes_->statistics() : nullptr;
  }
  /// Where a time lies in the last step, from 0 to 1.
  double share_of_step(double time_s) const {
    return std::clamp(1.0 - (clock_.time_s() - time_s) / clock_.last_step_s(), 0.0, 1.0);
  }
  void state_at(int part, double time_s, std::span<double> state) override {
    fetch();
    sizes_->estimate().state_at(part, this->state(part).data(), share_of_step(time_s),
                                state.data());
  }
  EffortFlow port_at(int scalar_port, double time_s) override {
    fetch();
    const GaussStages& stages = gauss_stages(run_.stages());
    EffortFlow sum{0.0, 0.0};
    for (int i = 0; i < run_.stages(); ++i) {
      // Of the stepped system, √bᵢ times that of the given one.
      const EffortFlow own = at_stage(scalar_port, i);
      const double weight = stages.lagrange(i, share_of_step(time_s)) / run_.weight(i);
      sum.effort += weight * own.effort;
      sum.flow += weight * own.flow;
    }
    return sum;
  }

  // As a WaveView.
  int stages() const override { return run_.stages(); }
  WavePair waves_at(int scalar_port, int stage) const override {
    expect_own(part_of_port(scalar_port));
    fetch();
    const std::size_t offset = offset_of(scalar_port, stage);
    return {a_[offset], b_[offset]};
  }
  void set_iterations(int iterations) override {
    refuse_with_ranks();
    if (iterations < 0) throw ConfigError("/method/iterations", "must be >= 0");
    options_.method.waves().iterations = plan_.rule.budget = iterations;
    levels_.set_iterations(iterations);
  }
  void set_impedance(std::span<const double> by_port) override {
    refuse_with_ranks();
    const std::vector<double> own = run_.at_all_stages(by_port);
    scatter_anew(own);
    levels_.leave(own);
    interfaces_.clear();
    ledger_.set_uncomputable(islands_at_risk(waves_, tuner().choice().method.waves()));
  }
  void tune_anew() override {
    refuse_with_ranks();
    const std::vector<double> chosen = levels_.chosen_anew();
    scatter_anew(chosen);
    levels_.accept(chosen);
    interfaces_.clear();
    ledger_.set_uncomputable(islands_at_risk(waves_, tuner().choice().method.waves()));
  }
  double impedance(int scalar_port, int stage) const override {
    return waves_.impedance()[offset_of(scalar_port, stage)];
  }
  bool follows_state() const override { return tuner().follows_state(); }
  const TuningStatistics& tuning() const override { return tuning_; }
  std::span<const GuardUse> guard_uses() const override {
    return guard_ ? guard_->uses() : std::span<const GuardUse>{};
  }
  const GuardStatistics* guard() const override { return guard_ ? &guard_->statistics() : nullptr; }
  PartEnergies energies_of(int part) const override {
    expect_own(part);
    fetch_energies();
    return ledger_.part_energies(part);
  }
  double tank(int island) const override { return ledger_.tank(island); }
  int iterations_of_island(int island) const override {
    return outcomes_[static_cast<std::size_t>(island)].iterations;
  }

 private:
  std::size_t offset_of(int scalar_port, int stage) const {
    return static_cast<std::size_t>(waves_.wave_of_port(run_.port(scalar_port, stage)));
  }
  /// Effort and flow of a port of the stepped system.
  EffortFlow at_stage(int scalar_port, int stage) const {
    return WaveTransform(impedance(scalar_port, stage), waves_.step_s())
        .to_effort_flow(waves_at(scalar_port, stage));
  }

  /// When a step was where.
  struct Attempt {
    Clock::time_point start{}, ready{}, inner_end{};
  };
  bool is_timed() const { return options_.timed || scheduler_.has_value(); }

  /// Steps into the next record, from `time_s`.
  StepReport make_attempt(double time_s, Attempt& attempt) {
    freeze(time_s);
    if (is_timed()) {
      attempt.ready = Clock::now();
      if (profiler_) profiler_->begin(clock_.steps());
    }
    if (looks_at_all()) fetch();
    const StepResult result = run(is_timed());
    has_step_ = shares() == nullptr;
    attempt.inner_end = result.inner_end;
    return summarise(result);
  }
  /// Sums up what was attempted, and keeps it within the tanks.
  void tally() {
    if (uses_ledger_ && !ledger_.tally(committed())) refuse(energy_overflow(ledger_));
    if (uses_ledger_ && guard_) keep_within_tanks();
    if (looks_at_all()) fetch_step();
  }
  /// Books what was attempted and tallied: a step of `step_s` that leads to `end_s`.
  void finish(StepReport& report, const Attempt& attempt, double end_s, double step_s) {
    report.step_s = step_s;
    if (uses_ledger_) {
      report.energy = ledger_.close(committed(), guard_ ? guard_->alpha() : 1.0,
                                    guard_ ? guard_->withheld_J() : 0.0);
      if (guard_) guard_->count();
      accept(end_s, step_s);
      if (options_.certify == Certify::full) {
        certificate_->examine(next_.data(),  // what was the record of the step
                              clock_.steps() - 1, outcomes_, report.energy,
                              acceleration_.has_value() || uses_interface());
      }
      certificate_->take(ledger_);
    } else {
      accept(end_s, step_s);
    }
    count(report, has_tolerance_, statistics_);
    if (has_tolerance_ && !report.converged) {
      certificate_->note_miss(clock_.steps() - 1, report, largest_share());
    }
    if (slices_) {
      note_name(named_[0], certificate().worst_passivity_part);
      note_name(named_[1], certificate().missed.part);
    }
    tuner().observe(clock_.steps(), report.iterations, report.converged, report.rescues > 0);
    statistics_.rejected_trials += report.rejected_trials;
    statistics_.linearisations += report.linearisations;
    statistics_.rescues += report.rescues;
    if (interface_) watch(report);
    if (!is_timed()) return;
    const Clock::time_point end = Clock::now();
    report.times = {seconds(attempt.ready - attempt.start),
                    seconds(attempt.inner_end - attempt.ready), seconds(end - attempt.inner_end)};
    if (profiler_) {
      profiler_->end(clock_.steps() - 1, {attempt.start, attempt.ready, attempt.inner_end, end},
                     report.iterations);
    }
    if (scheduler_) {
      const bool guarded = guard_ && !guard_->uses().empty();
      const int evaluations = report.iterations + report.linearisations;
      report.slack_s = scheduler_->finish(evaluations, attempt.inner_end, end, !guarded);
    }
  }

  // As StepTrials: steps that choose their size.
  void use(double step_s) override {
    if (step_s == waves_.step_s()) return;
    if (slices_) throw ConfigError("/time/step_s", "a system in slices takes steps of one size");
    fetch();
    const std::vector<double> old(waves_.impedance().begin(), waves_.impedance().end());
    const double old_step_s = waves_.step_s();
    levels_.switch_to(step_s, waves_);
    if (clock_.steps() > 0) rescatter(waves_, old, old_step_s, a_, b_);
    if (interface_) change_interface(old_step_s);
    rebind();
  }
  StepReport attempt(double time_s) override {
    Attempt attempt;
    const StepReport report = make_attempt(time_s, attempt);
    fetch_step();
    return report;
  }
  StepReport attempt_to_book(double time_s) override {
    retune();
    attempt_ = {};
    if (is_timed()) attempt_.start = Clock::now();
    StepReport report = make_attempt(time_s, attempt_);
    tally();
    return report;
  }
  void book(StepReport& report, double end_s) override {
    finish(report, attempt_, end_s, waves_.step_s());
  }
  void go_on() override {
    swap_arrays();
    has_all_ = has_step_;
    goes_on_ = true;
  }
  void save() override {
    fetch();
    saved_.record.assign(record_.begin(), record_.end());
    saved_.a.assign(a_.begin(), a_.end());
    saved_.b.assign(b_.begin(), b_.end());
    saved_.impedance.assign(waves_.impedance().begin(), waves_.impedance().end());
    saved_.step_s = waves_.step_s();
  }
  void restore() override {
    has_all_ = true;
    std::ranges::copy(saved_.record, record_.begin());
    std::ranges::copy(saved_.a, a_.begin());
    std::ranges::copy(saved_.b, b_.begin());
    if (clock_.steps() > 0) rescatter(waves_, saved_.impedance, saved_.step_s, a_, b_);
    stale_ = true;
    goes_on_ = false;
  }
  double time_s() const override { return clock_.time_s(); }
  std::int64_t step_index() const override { return clock_.steps(); }
  const double* record() const override { return record_.data(); }
  const double* next() const override { return next_.data(); }
  const double* incident() const override { return a_next_.data(); }

  /// Step sizes and impedances in use, with what the interface update keeps for them.
  void archive_levels(StateArchive& archive) {
    const double step_s = waves_.step_s();
    double in_force_s = step_s;
    bool is_changed = false;
    const auto visit = [&](double own_s) {
      if (archive.reads()) {
        const std::vector<double>& wanted = tuner().choice().method.waves().impedance;
        if (own_s != in_force_s && interface_) exchange_interface(in_force_s);
        is_changed = is_changed || own_s != in_force_s;
        in_force_s = own_s;
        if (wanted.size() != waves_.system().scalar_ports().size()) {
          throw StateArchive::Mismatch("impedances of another system");
        }
        if (!has_impedance(wanted)) {
          waves_.set_impedance(wanted);
          if (interface_) interface_->take_over_maps();
          is_changed = true;
        }
      }
      if (!interface_) return;
      const bool is_current = own_s == waves_.step_s();
      (is_current ? *interface_ : *interfaces_.at(own_s)).archive(archive);
    };
    levels_.archive(archive, waves_, std::cref(visit));
    if (!is_changed) return;
    std::erase_if(interfaces_, [this](const auto& own) { return !levels_.has(own.first); });
    rebind();
  }
  bool has_impedance(std::span<const double> by_port) const {
    for (std::size_t i = 0; i < by_port.size(); ++i) {
      const auto wave = static_cast<std::size_t>(waves_.wave_of_port(static_cast<int>(i)));
      if (waves_.impedance()[wave] != by_port[i]) return false;
    }
    return true;
  }

  Tuner& tuner() { return levels_.tuner(); }
  const Tuner& tuner() const { return levels_.tuner(); }

  void prepare_interface() {
    const WaveCoupling& m = options_.method.waves();
    if (m.kind != WaveUpdate::interface && m.interface_islands.empty() && m.rescue_after == 0)
      return;
    interface_ = make_interface();
    const int islands = waves_.system().island_count();
    for (int i = 0; m.kind == WaveUpdate::interface && i < islands; ++i) use_interface(i);
    for (const int island : m.interface_islands) use_interface(island);
  }
  std::unique_ptr<InterfaceSolver> make_interface() const {
    const double tolerance = options_.method.waves().tolerance;
    return std::make_unique<InterfaceSolver>(waves_, tolerance > 0.0 ? tolerance : 1e-10);
  }
  /// Another step size is in force. Factors belong to one size and are kept with it.
  void change_interface(double old_step_s) {
    const InterfaceSolver& before = exchange_interface(old_step_s);
    for (int i = 0; i < waves_.system().island_count(); ++i) {
      if (interface_->is_used(i) != before.is_used(i)) interface_->use(i, before.is_used(i));
    }
    // Those of sizes that are no longer prepared for would be made of maps that are gone.
    std::erase_if(interfaces_, [this](const auto& own) { return !levels_.has(own.first); });
  }
  /// Puts that of the current step size in use; gives the one of the size before.
  const InterfaceSolver& exchange_interface(double old_step_s) {
    std::unique_ptr<InterfaceSolver> before = std::move(interface_);
    auto kept = interfaces_.extract(waves_.step_s());
    const bool is_kept = !kept.empty();
    interface_ = is_kept ? std::move(kept.mapped()) : make_interface();
    return *(interfaces_[old_step_s] = std::move(before));
  }
  void use_interface(int island) {
    if (interface_->use(island, true)) return;
    throw ConfigError(
        "/method/kind",
        fmt::format("\"interface\": the factors of island {} would take more than 1 GiB", island));
  }

  /// An island that had to be rescued takes the interface update from its start for a while.
  void watch(const StepReport& report) {
    for (std::size_t i = 0; report.rescues > 0 && i < outcomes_.size(); ++i) {
      if (!outcomes_[i].rescued) continue;
      interface_->use(static_cast<int>(i), true);
      watch_.hold(static_cast<int>(i), clock_.steps());
    }
    watch_.pass(clock_.steps(), [this](int island) { interface_->use(island, false); });
  }

  StepArrays arrays() {
    return {
        record_.data(), next_.data(),        start_of(b_),
        b_next_.data(), u_.data(),           b_trial_.data(),
        a_next_.data(), used_ledger(),       used_ledger() ? ledger_.columns() : EnergyColumns{},
        &residual_,     used_acceleration(), used_interface()};
  }
  /// Those of the step after.
  StepArrays next_arrays() {
    return {next_.data(), record_.data(),      start_of(b_next_),
            b_.data(),    u_.data(),           b_trial_.data(),
            a_.data(),    used_ledger(),       used_ledger() ? ledger_.columns() : EnergyColumns{},
            &residual_,   used_acceleration(), used_interface()};
  }
  /// b that a step starts its iteration from.
  double* start_of(std::span<double> b) { return extrapolated_ ? start_.data() : b.data(); }
  Acceleration* used_acceleration() { return acceleration_ ? &*acceleration_ : nullptr; }
  InterfaceSolver* used_interface() { return interface_.get(); }
  EnergyLedger* used_ledger() { return uses_ledger_ ? &ledger_ : nullptr; }
  /// The step has happened.
  void accept(double end_s, double step_s) {
    swap_arrays();
    has_all_ = has_step_;
    states_.forget();
    if (sizes_) {
      clock_.advance_to(end_s, step_s);
    } else {
      clock_.advance(step_s);
    }
    if (extrapolated_) extrapolated_->observe(a_.data(), b_.data(), step_s);
  }
  void swap_arrays() {
    std::swap(record_, next_);
    std::swap(b_, b_next_);
    std::swap(a_, a_next_);
  }

  const InnerUpdate& update() const { return update_; }

  /// What the step has written, before it is accepted.
  CommittedStep committed() const {
    return {record_.data(), next_.data(), a_next_.data(), b_next_.data()};
  }

  void keep_within_tanks() {
    if (!guard_->begin(ledger_, record_.data(), committed())) return;
    const auto committed_anew = [this] {
      has_step_ = shares() == nullptr;
      fetch_step();
    };
    PhaseStatus failure = commit_within_tanks(*guard_, ledger_, *runner_.executor, arrays(),
                                              outcomes_, committed_anew);
    if (!failure.ok()) refuse(failure);
  }

  // With several ranks: rank 0 leads. What it is asked to do that takes the others, they are told.

  struct Order {
    enum Kind {
      step,
      step_towards,
      fetch,
      fetch_energies,
      settings_changed,
      take_state,
      prepare_channels,
      read_channels,
      tell,
      release,
      end
    };
    Kind kind = end;
    /// Of `step` the size, of `step_towards` the limit, of `take_state` and `tell` the bytes, of
    /// `prepare_channels` how many, of `read_channels` the set.
    double value = 0.0;
  };
  /// All ranks are at it.
  class Common {
   public:
    explicit Common(const WaveEngine& engine) : depth_(engine.depth_) { ++depth_; }
    ~Common() { --depth_; }
    Common(const Common&) = delete;
    Common& operator=(const Common&) = delete;

   private:
    int& depth_;
  };
  bool is_leading() const { return leads_ && depth_ == 0; }
  /// With the settings, which only rank 0 is told.
  void send(const Order& order) const {
    order_.resize(sizeof(Order) + settings_.size() * sizeof(double));
    std::memcpy(order_.data(), &order, sizeof(Order));
    std::ranges::copy(std::as_bytes(std::span(settings_)), order_.begin() + sizeof(Order));
    shares()->ranks().broadcast(order_);
  }
  Order receive() {
    order_.resize(sizeof(Order) + settings_.size() * sizeof(double));
    shares()->ranks().broadcast(order_);
    Order order;
    std::memcpy(&order, order_.data(), sizeof(Order));
    std::copy(order_.begin() + sizeof(Order), order_.end(),
              std::as_writable_bytes(std::span(settings_)).begin());
    return order;
  }
  /// The report of a step.
  std::optional<StepReport> carry_out(const Order& order) {
    switch (order.kind) {
      case Order::step:
        return step(order.value);
      case Order::step_towards:
        return step_towards(order.value);
      case Order::fetch:
        fetch();
        break;
      case Order::fetch_energies:
        fetch_energies();
        break;
      case Order::settings_changed:
        settings_changed();
        break;
      case Order::take_state:
        receive_state(static_cast<std::size_t>(order.value));
        break;
      case Order::prepare_channels: {
        std::vector<ScalarChannel> list(static_cast<std::size_t>(order.value));
        shares()->ranks().broadcast(std::as_writable_bytes(std::span(list)));
        take_channels(std::move(list));
        break;
      }
      case Order::read_channels:
        gather_channels(static_cast<int>(order.value), {});
        break;
      case Order::tell: {
        std::vector<std::byte> message(static_cast<std::size_t>(order.value));
        shares()->ranks().broadcast(message);
        if (is_anybody_deaf()) break;
        hooks_->told(message);
        break;
      }
      case Order::release:
      case Order::end:
        break;
    }
    return std::nullopt;
  }
  int take_channels(std::vector<ScalarChannel> list) {
    std::vector<int> ranks;
    for (const ScalarChannel& own : list) {
      const bool is_of_part =
          own.kind == ScalarChannel::Kind::state || own.kind == ScalarChannel::Kind::storage;
      ranks.push_back(rank_of_part(is_of_part ? own.part : part_of_port(own.index)));
    }
    channels_.emplace_back(std::move(list), ranks, shares()->ranks());
    return static_cast<int>(channels_.size()) - 1;
  }
  void gather_channels(int set, std::span<double> values) {
    looks_at_own_ = true;
    const auto own = [this](const ScalarChannel& channel) { return read(*this, channel); };
    channels_.at(static_cast<std::size_t>(set)).gather(own, values);
    looks_at_own_ = false;
  }
  int part_of_port(int scalar_port) const {
    return system().scalar_ports()[static_cast<std::size_t>(scalar_port)].part;
  }
  const std::vector<int>& ranks_of_parts() const {
    if (ranks_of_parts_.empty()) {
      ranks_of_parts_ =
          portwave::ranks_of_parts(waves_, runner_.partition, shares()->ranks_of_tasks());
    }
    return ranks_of_parts_;
  }
  /// Whether one of the others follows without hooks. All ranks call it.
  bool is_anybody_deaf() {
    const bool listens = shares()->rank() == 0 || hooks_->told != nullptr;
    return std::ranges::any_of(gather_values(shares()->ranks(), listens ? 1 : 0),
                               [](int own) { return own == 0; });
  }
  void expect_followers() {
    if (!is_anybody_deaf()) return;
    throw std::logic_error("a rank follows alone, and nobody there is told (Stepper::follow)");
  }
  void send_state() {
    std::vector<std::byte> bytes;
    StateArchive writer = StateArchive::writer(bytes);
    archive(writer);
    writer.finish();
    send({Order::take_state, static_cast<double>(bytes.size())});
    shares()->ranks().broadcast(bytes);
  }
  void receive_state(std::size_t size) {
    std::vector<std::byte> bytes(size);
    shares()->ranks().broadcast(bytes);
    StateArchive reader = StateArchive::reader(bytes);
    archive(reader);
    reader.finish();
  }
  void refuse_with_ranks() const {
    if (shares() == nullptr) return;
    throw std::logic_error("several ranks step the system: its method cannot be changed");
  }

  // This rank has its own lanes of the arrays, and the others' when it needs them.
  RankShares* shares() const { return runner_.shares.get(); }
  /// Of slices: where a rank refuses to start, all do.
  void together(const std::function<void()>& check) const {
    if (!slices_) return check();
    std::optional<ConfigError> own;
    try {
      check();
    } catch (const ConfigError& error) {
      own = error;
    }
    const bool is_of_part = own && own->issues().front().where.starts_with("/subsystems");
    // What is wrong with a part shows in the sums of all.
    const bool is_any_of_part = slices_->any(is_of_part);
    if (own && (is_of_part || !is_any_of_part)) throw *std::move(own);
    if (is_any_of_part) throw SliceDefects("the slice of another rank has defects");
  }
  /// A part that the certificate names, in slices.
  struct NamedPart {
    int number = -1;
    std::string name;
  };
  void note_name(NamedPart& named, int number) {
    if (named.number == number) return;
    named = {number, slices_->name_of(number)};
  }
  void expect_own(int part) const {
    if (!slices_ || system().slice()->is_own(part)) return;
    throw std::out_of_range(fmt::format("part \"{}\" is outside this slice",
                                        system().parts()[static_cast<std::size_t>(part)].name));
  }
  /// Every step looks at the states or waves of all parts.
  bool looks_at_all() const {
    return shares() != nullptr && (sizes_ || extrapolated_ || options_.certify == Certify::full);
  }
  /// What was committed last, of all lanes. Changes nothing that can be seen.
  void fetch() const {
    if (has_all_ || looks_at_own_ || slices_) return;
    if (is_leading()) send({Order::fetch});
    shares()->share({{RankShares::Array::record, record_.data()},
                     {RankShares::Array::waves, a_.data()},
                     {RankShares::Array::waves, b_.data()}});
    has_all_ = true;
  }
  /// What the ledger keeps by entry, of all lanes. Changes nothing that can be seen.
  void fetch_energies() const {
    if (ledger_.has_entries() || looks_at_own_ || slices_) return;
    if (is_leading()) send({Order::fetch_energies});
    ledger_.need_entries();
  }
  void share_entries() const {
    std::vector<RankShares::Array> arrays;
    for (const std::span<double> column : ledger_.entries()) {
      arrays.push_back({RankShares::Array::entries, column.data()});
    }
    shares()->share(arrays);
  }
  /// Of the last gap.
  InterfaceResidual::Share largest_share() const {
    if (shares() == nullptr) return residual_.largest_share();
    InterfaceResidual::Share largest;
    for (const TaskSlice& slice : shares()->own_slices()) {
      largest.take(residual_.largest_share(slice.batch, slice.lanes));
    }
    largest.part = shares()->number_of(largest.part);
    for (const auto& other : gather_values(shares()->ranks(), largest)) largest.take(other);
    return largest;
  }
  /// What is being committed, of all lanes.
  void fetch_step() const {
    if (has_step_ || slices_) return;
    shares()->share({{RankShares::Array::record, record_.data()},
                     {RankShares::Array::record, next_.data()},
                     {RankShares::Array::waves, a_next_.data()},
                     {RankShares::Array::waves, b_next_.data()}});
    has_step_ = true;
  }

  /// Where impedances follow the state: sets them anew if they are off.
  void retune() {
    if (!tuner().follows_state()) return;
    const auto state_of = [this](int part) { return state(part); };
    try {
      const auto tuned = tuner().retuned(clock_.steps(), state_of);
      if (!tuned) return;
      scatter_anew(*tuned);
      tuner().accept(*tuned);
    } catch (const std::exception&) {  // those in force are as good as before
      ++tuning_.failures;
      tuner().refuse(clock_.steps());
    }
  }

  /// Other impedances between two steps: effort and flow of the last step stay, and so do the
  /// tanks.
  void scatter_anew(std::span<const double> by_port) {
    fetch();
    const std::vector<double> old(waves_.impedance().begin(), waves_.impedance().end());
    const double before = half_square(waves_, b_);
    try {
      waves_.set_impedance(by_port);
    } catch (...) {  // the old ones are in force, in maps that were made anew
      take_over_maps();
      throw;
    }
    if (clock_.steps() > 0) rescatter(waves_, old, waves_.step_s(), a_, b_);
    tuning_.rescattered_J += half_square(waves_, b_) - before;
    ++tuning_.changes;
    take_over_maps();
  }

  /// After step maps and junctions have changed.
  void take_over_maps() {
    if (interface_) interface_->take_over_maps();
    rebind();
  }
  void rebind() {
    stale_ = true;
    runner_.executor->recompile();
    runner_.executor->bind(arrays());
    runner_.executor->bind(next_arrays());
  }

  /// Waits until the step is due, if there is a pace, and sets its deadline.
  Clock::time_point await_turn(double step_s) {
    if (!scheduler_) return Clock::now();
    const Clock::time_point now = pace_.await(clock_.time_s());
    const double deadline = options_.time.deadline_s > 0.0
                                ? options_.time.deadline_s
                                : std::numeric_limits<double>::infinity();
    scheduler_->set_deadline(std::min(deadline, pace_.left_s(clock_.time_s() + step_s, now)));
    scheduler_->begin(now);
    return now;
  }

  /// The commit has frozen the record but for external inputs. After a failed step all of it is
  /// frozen again, for solvers keep warm starts there.
  void freeze(double time_s) {
    if (!is_driven_ && !stale_) return;
    const double* driven = nullptr;
    PhaseStatus failure;
    if (waves_.driven()) {
      waves_.sample_inputs(time_s, input_.data(), failure, settings_);
      driven = input_.data();
    }
    if (slices_) failure = shares()->merged(std::move(failure));
    fail_if(failure, -1);
    fail_if(freeze_own(driven, /*driven_only=*/!stale_), -1);
    stale_ = false;
  }
  PhaseStatus freeze_own(const double* driven, bool driven_only) {
    if (shares() == nullptr) return waves_.freeze_all(record_.data(), driven, driven_only);
    PhaseStatus failure;
    for (const TaskSlice& slice : shares()->own_slices()) {
      if (driven_only && !waves_.batch(slice.batch).driven) continue;
      PhaseStatus own;
      if (!waves_.freeze(slice.batch, slice.lanes, record_.data(), driven, own)) {
        failure.merge(std::move(own));
      }
    }
    has_all_ = false;
    return shares()->merged(std::move(failure));
  }

  /// What of the plan of a step does not change from one to the next.
  void plan_step() {
    const WaveCoupling& m = options_.method.waves();
    const bool interface = m.kind == WaveUpdate::interface || !m.interface_islands.empty();
    plan_ = {.rule = {m.iterations, update_, m.tolerance, m.energy_tolerance_J,
                      m.tolerance_per_part, acceleration_.has_value(), interface, m.rescue_after},
             .deadline = scheduler_ ? &*scheduler_ : nullptr};
  }

  StepResult run(bool timed) {
    const WaveCoupling& m = options_.method.waves();
    if (extrapolated_ && (goes_on_ || m.iterations == 0 || !extrapolated_->form(start_.data()))) {
      std::ranges::copy(b_, start_.begin());
    }
    certificate_->begin({start_of(b_), b_.size()});
    plan_.timed = timed;
    if (sizes_) {
      plan_.rule.tolerance = AdaptiveSteps::kResidualTolerance;
      plan_.rule.energy_tolerance_J = std::max(m.energy_tolerance_J, sizes_->gap_tolerance_J());
    }
    if (acceleration_) acceleration_->begin();
    if (interface_) interface_->begin();
    StepResult result = runner_.executor->run(arrays(), plan_, outcomes_);
    if (result.failed_at < 0) return result;
    const bool at_commit = result.failed_at == TaskOutcome::kCommit;
    if (result.failure.fault == StepFault::not_finite) replay(result.failed_at);
    fail(result.failure, at_commit ? m.iterations : result.failed_at);
  }

  StepReport summarise(const StepResult& result) {
    StepReport report;
    bool converged = !outcomes_.empty(), by_energy = false;
    for (const IslandOutcome& outcome : outcomes_) {
      report.iterations = std::max(report.iterations, outcome.iterations);
      if (!(report.residual >= outcome.gap.residual)) report.residual = outcome.gap.residual;
      report.gap_J += outcome.gap.energy_J;
      converged = converged && outcome.converged;
      by_energy = by_energy || outcome.by_energy;
      report.rescues += outcome.rescued ? 1 : 0;
      report.rejected_trials += outcome.rejected_trials;
    }
    if (interface_) report.linearisations = interface_->linearisation_evaluations();
    report.converged = converged;
    if (converged) {
      report.reason = by_energy ? StopReason::energy_tolerance : StopReason::tolerance;
    } else if (result.out_of_time) {
      report.reason = StopReason::deadline;
    }
    return report;
  }

  bool uses_interface() const {
    for (int i = 0; interface_ && i < static_cast<int>(outcomes_.size()); ++i) {
      if (interface_->engaged(i)) return true;
    }
    return false;
  }

  [[noreturn]] void fail(const PhaseStatus& status, int iteration) {
    stale_ = true;
    const int part = std::max(status.part, 0);
    throw StepError(slices_ ? slices_->name_of(part)
                            : waves_.system().parts()[static_cast<std::size_t>(part)].name,
                    clock_.steps(), iteration, options_.method.waves().iterations, status.fault,
                    status.detail);
  }
  void fail_if(const PhaseStatus& status, int iteration) {
    if (!status.ok()) fail(status, iteration);
  }

  /// The commit has failed.
  [[noreturn]] void refuse(const PhaseStatus& status) {
    fail(status, options_.method.waves().iterations);
  }

  /// A NaN or infinity was noticed: fails with the first part and iteration that made one. Returns
  /// when none did before, or when steps do not repeat.
  void replay(int noticed_at) {
    if (!is_repeatable_ || slices_) return;
    has_all_ = shares() == nullptr;
    fetch();
    const double* driven = waves_.driven() ? input_.data() : nullptr;
    const auto found = find_non_finite(waves_, update(), record_.data(), driven,
                                       {start_of(b_), b_.size()}, noticed_at, outcomes_);
    if (found) fail(found->failure, found->iteration);
  }

  StagedRun run_;
  StepperOptions options_;  // with the method as it was resolved
  InnerUpdate update_;
  StepPlan plan_;
  StepLevels levels_;
  WaveDiscretisation waves_;
  StaggeredMemory memory_;
  std::span<double> record_, next_;
  std::span<double> b_, b_next_;
  std::span<double> a_, a_next_;
  std::span<double> u_, b_trial_;  // inner iterate and trial outgoing waves
  AlignedVector input_;
  std::vector<double> settings_;  // of settable inputs
  std::vector<IslandOutcome> outcomes_;
  std::unique_ptr<SliceSums> slices_;  // of a slice
  EnergyLedger ledger_;
  InterfaceResidual residual_;
  std::optional<PassivityGuard> guard_;
  std::optional<Acceleration> acceleration_;
  std::unique_ptr<InterfaceSolver> interface_;
  std::map<double, std::unique_ptr<InterfaceSolver>> interfaces_;  // of other step sizes
  IslandWatch watch_;
  TuningStatistics tuning_;
  LaneCosts costs_;
  std::optional<StepProfiler> profiler_;  // before the runner, whose executor writes to it
  Runner runner_;
  std::optional<DeadlineScheduler> scheduler_;  // with a time budget
  Pace pace_;
  StepClock clock_;
  std::optional<AdaptiveSteps> sizes_;  // where steps choose theirs
  Attempt attempt_;
  std::optional<ExtrapolatedStart> extrapolated_;  // with InnerStart::extrapolated
  AlignedVector start_;
  bool goes_on_ = false;  // from a step that was not booked
  /// A state to come back to.
  struct {
    AlignedVector record, a, b;
    std::vector<double> impedance;
    double step_s = 0.0;
  } saved_;
  bool has_tolerance_ = false;
  bool uses_ledger_ = false;
  bool is_driven_ = false;     // some part here or, of slices, elsewhere
  bool is_repeatable_ = true;  // so are all parts
  // Whether the arrays of the last step and of the one that is being made have all lanes.
  mutable bool has_all_ = true, has_step_ = true;
  // Channels that are sent to rank 0; what is looked at now is this rank's own.
  std::vector<ChannelGather> channels_;
  mutable std::vector<int> ranks_of_parts_;
  bool looks_at_own_ = false;
  const Hooks* hooks_ = nullptr;  // while it follows
  bool leads_ = false;
  mutable int depth_ = 0;                 // of what all ranks are at
  mutable std::vector<std::byte> order_;  // to and from the others
  bool stale_ = false;                    // the record has seen port solves of a step that failed
  IterationStatistics statistics_;
  std::optional<RunCertificate> certificate_;
  std::array<NamedPart, 2> named_;
  StateView states_;
};

}  // namespace

std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options) {
  return std::make_unique<WaveEngine>(system, options);
}

}  // namespace portwave
