#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "execution/executor.hpp"
#include "execution/island_watch.hpp"
#include "execution/pace.hpp"
#include "execution/runner.hpp"
#include "execution/step_engine.hpp"
#include "execution/tuner.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/guard.hpp"
#include "portwave/coupling/impedance/wave_scale.hpp"
#include "portwave/coupling/waves/anderson.hpp"
#include "portwave/coupling/waves/interface_solver.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"
#include "portwave/subsystems/base/staggered.hpp"

namespace portwave {
namespace {

using Clock = DeadlineScheduler::Clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

/// A macro-step in order: freeze, iterate, commit, ledger. Arrays with a `next` are written by the step
/// and become current only when all of it has succeeded.
class WaveEngine final : public StepEngine {
 public:
  WaveEngine(const System& system, const StepperOptions& given)
      : options_(given),
        tuner_(system, given.step_s, given.method.waves()),
        waves_(system, given.step_s, tuner_.choice().method.waves().impedance, grouping_for(given)),
        memory_({{2, waves_.record_size()}, {6, static_cast<std::size_t>(waves_.wave_size())}}),
        record_(memory_.take(waves_.initial_record())),
        next_(memory_.take(record_.size())),
        b_(memory_.take(initial_waves())),
        b_next_(memory_.take(b_.size())),
        a_(memory_.take(b_.size())),
        a_next_(memory_.take(b_.size())),
        u_(memory_.take(b_.size())),
        b_trial_(memory_.take(b_.size())),
        input_(waves_.input_size(), 0.0),
        outcomes_(static_cast<std::size_t>(system.island_count())),
        ledger_(waves_, record_.data(), b_.data(), given.method.waves().tank,
                given.method.waves().guard, islands_at_risk()),
        residual_(waves_),
        costs_(declared_costs(waves_)),
        pace_(given.time.pace > 0.0 ? given.step_s / given.time.pace : 0.0, given.interrupted) {
    options_.method = tuner_.choice().method;
    if (options_.method.kind() == WaveUpdate::interface) {
      options_.method.waves().relaxation = 1.0;
      options_.method.waves().acceleration = 0;
    }
    refuse_non_finite_start();
    if (options_.method.waves().guard) guard_.emplace(waves_);
    if (options_.method.waves().acceleration > 0)
      acceleration_.emplace(waves_, options_.method.waves().acceleration);
    prepare_interface();
    certificate_.max_passivity_residual_J = ledger_.max_passivity_residual();
    runner_ = make_runner(waves_, options_, tuner_.expected_iterations(), record_.data(), costs_);
    runner_.executor->bind(arrays());
    runner_.executor->bind(next_arrays());
    prepare_views();
    if (options_.certify == Certify::full) {
      u_start_.resize(b_.size(), 0.0);
      iterations_by_island_.resize(outcomes_.size());
      certifier_.emplace(waves_, update());
    }
    if (options_.time.active()) {
      const Partition whole = whole_island_groups(waves_, costs_);
      scheduler_.emplace(options_.time.deadline_s, 1e-9 * whole.iteration_cost_ns,
                         1e-9 * whole.commit_cost_ns);
    }
  }

  StepReport step() override {
    const bool timed = options_.timed || scheduler_.has_value();
    Clock::time_point start{}, ready{}, end{};
    retune();  // not on the step's time
    if (timed) start = await_turn();
    freeze();
    if (timed) ready = Clock::now();
    const StepResult result = run(timed);
    StepReport report = summarise(result);
    if (ledger_used()) {
      if (!ledger_.tally(committed())) refuse_energy();
      if (guard_) keep_within_tanks();
      report.energy = ledger_.close(committed(), guard_ ? guard_->alpha() : 1.0,
                                    guard_ ? guard_->withheld_J() : 0.0);
      if (guard_) guard_->count();
      accept();
      if (certifier_) certify(report);
      update_certificate();
    } else {
      accept();
    }
    count(report, has_tolerance(), statistics_);
    if (has_tolerance() && !report.converged) note_miss(report);
    tuner_.observe(steps_, report.iterations, report.converged, report.rescues > 0);
    statistics_.rejected_trials += report.rejected_trials;
    statistics_.linearisations += report.linearisations;
    statistics_.rescues += report.rescues;
    if (interface_) watch(report);
    if (timed) {
      end = Clock::now();
      report.times = {seconds(ready - start), seconds(result.inner_end - ready),
                      seconds(end - result.inner_end)};
      if (scheduler_) {
        const bool guarded = guard_ && !guard_->uses().empty();
        report.slack_s = scheduler_->finish(report.iterations, result.inner_end, end, !guarded);
      }
    }
    return report;
  }

  const System& system() const override { return waves_.system(); }
  double step_s() const override { return options_.step_s; }
  std::int64_t steps() const override { return steps_; }
  int threads() const override { return runner_.executor->threads(); }
  int tasks() const override { return runner_.executor->tasks(); }
  const std::string& execution() const override { return runner_.description; }

  std::span<const double> state(int part) override {
    const auto index = static_cast<std::size_t>(part);
    const Signature& signature = waves_.system().parts()[index].subsystem->signature();
    double* own = view_.data() + view_begin_[index];
    if (view_step_[index] != steps_) {
      waves_.get_state(part, record_.data(), own);
      view_step_[index] = steps_;
    }
    return {own, static_cast<std::size_t>(signature.state_size())};
  }

  EffortFlow effort_flow(int scalar_port) override {
    if (steps_ == 0) return {0.0, 0.0};
    return WaveTransform(impedance(scalar_port), options_.step_s)
        .to_effort_flow(waves(scalar_port));
  }
  WavePair waves(int scalar_port) const override {
    const auto place = static_cast<std::size_t>(waves_.wave_of_port(scalar_port));
    return {a_[place], b_[place]};
  }
  double storage(int part) override {
    return system().parts()[static_cast<std::size_t>(part)].subsystem->storage(state(part).data());
  }

  void set_iterations(int iterations) override {
    options_.method.waves().iterations = iterations;
    tuner_.set_iterations(iterations);
  }
  void set_impedance(std::span<const double> by_port) override {
    scatter_anew(by_port);
    tuner_.leave({by_port.begin(), by_port.end()});
    ledger_.set_uncomputable(islands_at_risk());
  }
  double impedance(int scalar_port) const override {
    return waves_.impedance()[static_cast<std::size_t>(waves_.wave_of_port(scalar_port))];
  }
  const MethodChoice& method() const override { return tuner_.choice(); }
  bool follows_state() const override { return tuner_.follows_state(); }
  const TuningStatistics& tuning() const override { return tuning_; }
  std::span<const GuardUse> guard_uses() const override {
    return guard_ ? guard_->uses() : std::span<const GuardUse>{};
  }
  const GuardStatistics& guard() const override {
    static const GuardStatistics none;
    return guard_ ? guard_->statistics() : none;
  }
  double tank(int island) const override { return ledger_.tank(island); }

  bool keeps_ledger() const override { return ledger_used(); }
  const EnergyTotals& energy() const override { return ledger_.totals(); }
  const Certificate& certificate() const override { return certificate_; }
  const IterationStatistics& iterations() const override { return statistics_; }
  int iterations_of_island(int island) const override {
    return outcomes_[static_cast<std::size_t>(island)].iterations;
  }
  DeadlineScheduler::Statistics deadline() const override {
    return scheduler_ ? scheduler_->statistics() : DeadlineScheduler::Statistics{};
  }
  std::size_t overhead_bytes() const override {
    const auto wave = static_cast<std::size_t>(waves_.wave_size()) * sizeof(double);
    return runner_.executor->bytes() + waves_.bytes() + ledger_.bytes() + residual_.bytes() +
           (guard_ ? guard_->bytes() : 0) + (acceleration_ ? acceleration_->bytes() : 0) +
           (interface_ ? interface_->bytes() : 0) + 6 * wave +
           outcomes_.capacity() * sizeof(IslandOutcome) + input_.capacity() * sizeof(double) +
           view_begin_.capacity() * sizeof(std::size_t) +
           view_step_.capacity() * sizeof(std::int64_t);
  }

 private:
  void refuse_non_finite_start() const {
    Issues issues;
    for (std::size_t i = 0; i < waves_.places().size(); ++i) {
      if (std::isfinite(ledger_.initial_storage(static_cast<int>(i)))) continue;
      issues.push_back({fmt::format("/subsystems/{}/initial_state", i),
                        "the stored energy of this state is not finite"});
    }
    if (issues.empty() && !std::isfinite(ledger_.totals().initial_tank_J)) {
      const TankOptions& tank = options_.method.waves().tank;
      const bool by_waves = !tank.initial_J && std::isfinite(half_square(b_));
      issues.push_back({by_waves || tank.initial_J ? "/method/tank" : "/method/initial_waves",
                        "the energy that the tanks start with is not finite"});
    } else if (issues.empty() && !std::isfinite(half_square(b_))) {
      issues.push_back({"/method/initial_waves", "the energy of these waves is not finite"});
    }
    throw_if_any(std::move(issues));
  }

  AlignedVector initial_waves() const {
    AlignedVector out(static_cast<std::size_t>(waves_.wave_size()), 0.0);
    const std::vector<double>& by_port = options_.method.waves().initial_waves;
    for (std::size_t j = 0; j < by_port.size(); ++j) {
      out[static_cast<std::size_t>(waves_.wave_of_port(static_cast<int>(j)))] = by_port[j];
    }
    return out;
  }

  void prepare_interface() {
    const WaveCoupling& m = options_.method.waves();
    if (m.kind != WaveUpdate::interface && m.interface_islands.empty() && m.rescue_after == 0)
      return;
    interface_.emplace(waves_, m.tolerance > 0.0 ? m.tolerance : 1e-10);
    const int islands = waves_.system().island_count();
    for (int i = 0; m.kind == WaveUpdate::interface && i < islands; ++i) use_interface(i);
    for (const int island : m.interface_islands) use_interface(island);
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
      watch_.hold(static_cast<int>(i), steps_);
    }
    watch_.pass(steps_, [this](int island) { interface_->use(island, false); });
  }

  void prepare_views() {
    std::size_t size = 0;
    for (const Part& part : waves_.system().parts()) {
      view_begin_.push_back(size);
      size += static_cast<std::size_t>(part.subsystem->signature().state_size());
    }
    view_.resize(size);
    view_step_.assign(waves_.places().size(), -1);
  }

  StepArrays arrays() {
    return {
        record_.data(), next_.data(),        b_.data(),
        b_next_.data(), u_.data(),           b_trial_.data(),
        a_next_.data(), used_ledger(),       used_ledger() ? ledger_.columns() : EnergyColumns{},
        &residual_,     used_acceleration(), used_interface()};
  }
  /// Those of the step after.
  StepArrays next_arrays() {
    return {next_.data(), record_.data(),      b_next_.data(),
            b_.data(),    u_.data(),           b_trial_.data(),
            a_.data(),    used_ledger(),       used_ledger() ? ledger_.columns() : EnergyColumns{},
            &residual_,   used_acceleration(), used_interface()};
  }
  Acceleration* used_acceleration() { return acceleration_ ? &*acceleration_ : nullptr; }
  InterfaceSolver* used_interface() { return interface_ ? &*interface_ : nullptr; }
  EnergyLedger* used_ledger() { return ledger_used() ? &ledger_ : nullptr; }
  /// The step has happened.
  void accept() {
    std::swap(record_, next_);
    std::swap(b_, b_next_);
    std::swap(a_, a_next_);
    ++steps_;
  }

  bool ledger_used() const {
    return options_.certify != Certify::none || options_.method.waves().guard;
  }
  InnerUpdate update() const { return inner_update_of(options_.method.waves()); }

  /// What the step has written, before it is accepted.
  CommittedStep committed() const {
    return {record_.data(), next_.data(), a_next_.data(), b_next_.data()};
  }

  /// Commits again what would overdraw a tank, with the nearest waves there is energy for.
  void keep_within_tanks() {
    if (!guard_->begin(ledger_, record_.data(), committed())) return;
    for (;;) {
      guard_->propose(a_next_.data());
      StepPlan plan;
      plan.recommit = guard_->searching();
      const StepResult result = runner_.executor->run(arrays(), plan, outcomes_);
      if (result.failed_at >= 0) {
        const int island = waves_.system().island_of_part(std::max(result.failure.part, 0));
        if (!guard_->reject(island)) fail(result.failure, options_.method.waves().iterations);
        continue;
      }
      if (!ledger_.tally(committed())) refuse_energy();
      if (guard_->review(ledger_, committed())) return;
    }
  }

  /// Where impedances follow the state: sets them anew if they are off.
  void retune() {
    const auto state_of = [this](int part) { return state(part); };
    try {
      const auto tuned = tuner_.retuned(steps_, state_of);
      if (!tuned) return;
      scatter_anew(*tuned);
      tuner_.accept(*tuned);
    } catch (const std::exception&) {  // those in force are as good as before
      ++tuning_.failures;
      tuner_.refuse(steps_);
    }
  }

  /// Other impedances between two steps: effort and flow of the last step stay, and so do the tanks.
  void scatter_anew(std::span<const double> by_port) {
    const std::vector<double> old(waves_.impedance().begin(), waves_.impedance().end());
    const double before = half_square(b_);
    try {
      waves_.set_impedance(by_port);
    } catch (...) {  // the old ones are in force, in maps that were made anew
      take_over_maps();
      throw;
    }
    for (std::size_t w = 0; steps_ > 0 && w < old.size(); ++w) {
      const double gamma = waves_.impedance()[w];
      if (gamma == old[w]) continue;
      const EffortFlow port = WaveTransform(old[w], options_.step_s).to_effort_flow({a_[w], b_[w]});
      const WavePair wave = WaveTransform(gamma, options_.step_s).to_waves(port);
      a_[w] = wave.incident;
      b_[w] = wave.outgoing;
    }
    tuning_.rescattered_J += half_square(b_) - before;
    ++tuning_.changes;
    take_over_maps();
  }

  /// After step maps and junctions have changed.
  void take_over_maps() {
    stale_ = true;
    if (interface_) interface_->take_over_maps();
    runner_.executor->recompile();
    runner_.executor->bind(arrays());
    runner_.executor->bind(next_arrays());
  }

  /// In the order of the ports.
  double half_square(std::span<const double> wave) const {
    double sum = 0.0;
    for (int port = 0; port < static_cast<int>(waves_.system().scalar_ports().size()); ++port) {
      const double own = wave[static_cast<std::size_t>(waves_.wave_of_port(port))];
      sum += own * own;
    }
    return 0.5 * sum;
  }

  /// Waits until the step is due, if there is a pace, and sets its deadline.
  Clock::time_point await_turn() {
    if (!scheduler_) return Clock::now();
    const Clock::time_point now = pace_.await(steps_);
    const double deadline = options_.time.deadline_s > 0.0
                                ? options_.time.deadline_s
                                : std::numeric_limits<double>::infinity();
    scheduler_->set_deadline(std::min(deadline, pace_.left_s(steps_, now)));
    scheduler_->begin(now);
    return now;
  }

  /// The commit has frozen the record but for external inputs. After a failed step all of it is
  /// frozen again, for solvers keep warm starts there.
  void freeze() {
    if (!waves_.driven() && !stale_) return;
    const double* driven = nullptr;
    PhaseStatus failure;
    if (waves_.driven()) {
      if (!waves_.sample_inputs(time(), input_.data(), failure)) fail(failure, -1);
      driven = input_.data();
    }
    fail_if(waves_.freeze_all(record_.data(), driven, /*driven_only=*/!stale_), -1);
    stale_ = false;
  }

  StepResult run(bool timed) {
    if (certifier_) waves_.interconnection().exchange(b_.data(), u_start_.data());
    const WaveCoupling& m = options_.method.waves();
    const bool interface = m.kind == WaveUpdate::interface || !m.interface_islands.empty();
    const StepPlan plan{
        {m.iterations, update(), m.tolerance, m.energy_tolerance_J, m.tolerance_per_part,
         acceleration_.has_value(), interface, m.rescue_after},
        scheduler_ ? &*scheduler_ : nullptr,
        timed};
    if (acceleration_) acceleration_->begin();
    if (interface_) interface_->begin();
    StepResult result = runner_.executor->run(arrays(), plan, outcomes_);
    if (result.failed_at < 0) return result;
    const bool at_commit = result.failed_at == TaskOutcome::kCommit;
    if (result.failure.fault == StepFault::not_finite) find_non_finite(result.failed_at);
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
    }
    if (interface_) report.linearisations = interface_->linearisation_evaluations();
    report.converged = converged;
    for (int i = 0; acceleration_ && i < static_cast<int>(outcomes_.size()); ++i) {
      report.rejected_trials += acceleration_->sequence(i).rejections();
    }
    if (converged) {
      report.reason = by_energy ? StopReason::energy_tolerance : StopReason::tolerance;
    } else if (result.out_of_time) {
      report.reason = StopReason::deadline;
    }
    return report;
  }

  void certify(const StepReport& report) {
    for (std::size_t i = 0; i < outcomes_.size(); ++i) {
      iterations_by_island_[i] = outcomes_[i].iterations;
    }
    certifier_->examine(next_.data(),  // what was the record of the step
                        {.index = steps_ - 1,
                         .iterations = iterations_by_island_,
                         .u_start = u_start_,
                         .stored_change_J = report.energy.changed_J,
                         .mismatch_J = report.energy.mismatch_J,
                         .supplied_J = report.energy.supplied_J,
                         .accelerated = acceleration_.has_value() || uses_interface()},
                        certificate_);
  }

  bool has_tolerance() const { return portwave::has_tolerance(options_.method); }

  /// Islands whose account their waves may drown. Tuning rules lead to none.
  std::vector<char> islands_at_risk() const {
    const WaveCoupling& method = tuner_.choice().method.waves();
    if (!method.guard || method.impedance_kind != ImpedanceKind::given) return {};
    const PortResponses responses(waves_.system(), options_.step_s);
    std::vector<double> by_port;
    for (int port = 0; port < static_cast<int>(waves_.system().scalar_ports().size()); ++port) {
      by_port.push_back(impedance(port));
    }
    return islands_drowned_by_waves(responses, by_port);
  }
  void condition_certificate() {
    if (certificate_.status == CertificateStatus::holds) {
      certificate_.status = CertificateStatus::conditional;
    }
  }

  /// A step that missed the tolerance; the worst of them is kept.
  void note_miss(const StepReport& report) {
    MissedTolerance& missed = certificate_.missed;
    ++missed.steps;
    if (missed.step >= 0 && !(report.residual > missed.residual)) return;
    missed.residual = report.residual;
    missed.gap_J = report.gap_J;
    missed.step = steps_ - 1;
    const InterfaceResidual::Share share = residual_.largest_share();
    missed.part = share.part;
    missed.part_gap_J = share.energy_J;
  }

  bool uses_interface() const {
    for (int i = 0; interface_ && i < static_cast<int>(outcomes_.size()); ++i) {
      if (interface_->engaged(i)) return true;
    }
    return false;
  }

  void update_certificate() {
    certificate_.max_passivity_residual_J = ledger_.max_passivity_residual();
    if (ledger_.is_sound() && certificate_.worst_passivity_step == ledger_.worst_step()) return;
    certificate_.worst_passivity_part = ledger_.worst_part();
    certificate_.worst_passivity_step = ledger_.worst_step();
    certificate_.is_part_active = ledger_.is_part_active();
    certificate_.broken_law = ledger_.broken_law();
    if (ledger_.growth()) {
      certificate_.growth = ledger_.growth();
      condition_certificate();
    }
    certificate_.uncomputable_islands = ledger_.drowned_islands();
    if (certificate_.uncomputable_islands > 0) condition_certificate();
    if (ledger_.violated()) certificate_.status = CertificateStatus::violated;
  }

  [[noreturn]] void fail(const PhaseStatus& status, int iteration) {
    stale_ = true;
    throw StepError(
        waves_.system().parts()[static_cast<std::size_t>(std::max(status.part, 0))].name, steps_,
        iteration, options_.method.waves().iterations, status.fault, status.detail);
  }
  void fail_if(const PhaseStatus& status, int iteration) {
    if (!status.ok()) fail(status, iteration);
  }

  [[noreturn]] void refuse_energy() {
    fail({ledger_.first_non_finite(), StepFault::not_finite, "its energy overflows"},
         options_.method.waves().iterations);
  }

  /// A NaN or infinity was noticed at some iteration or the commit, perhaps by a part that was given
  /// it: the iteration is run again, looking at every wave, to name the first part and iteration that
  /// made one. Returns when none did before.
  void find_non_finite(int noticed_at);

  double time() const { return static_cast<double>(steps_) * options_.step_s; }

  StepperOptions options_;  // with the method as it was resolved
  Tuner tuner_;
  WaveDiscretisation waves_;
  StaggeredMemory memory_;
  std::span<double> record_, next_;
  std::span<double> b_, b_next_;
  std::span<double> a_, a_next_;
  std::span<double> u_, b_trial_;  // inner iterate and trial outgoing waves
  AlignedVector input_;
  std::vector<IslandOutcome> outcomes_;
  EnergyLedger ledger_;
  InterfaceResidual residual_;
  std::optional<PassivityGuard> guard_;
  std::optional<Acceleration> acceleration_;
  std::optional<InterfaceSolver> interface_;
  IslandWatch watch_;
  TuningStatistics tuning_;
  LaneCosts costs_;
  Runner runner_;
  std::optional<DeadlineScheduler> scheduler_;  // with a time budget
  Pace pace_;
  std::int64_t steps_ = 0;
  bool stale_ = false;  // the record has seen port solves of a step that failed
  IterationStatistics statistics_;
  Certificate certificate_;
  AlignedVector u_start_;                   // Certify::full
  std::vector<int> iterations_by_island_;   // Certify::full
  std::optional<StepCertifier> certifier_;  // Certify::full
  // Committed states in signature order, unpacked when somebody looks.
  std::vector<std::size_t> view_begin_;
  std::vector<double> view_;
  std::vector<std::int64_t> view_step_;
};

void WaveEngine::find_non_finite(int noticed_at) {
  const int parts = static_cast<int>(waves_.places().size());
  const bool at_commit = noticed_at == TaskOutcome::kCommit;
  int last = at_commit ? 0 : noticed_at;
  for (const IslandOutcome& outcome : outcomes_) {
    if (at_commit) last = std::max(last, outcome.iterations);
  }
  WaveIteration iteration(waves_, update(), WaveIteration::Scatter::inexact);
  const auto spoiled = [&](int part) {
    const PartPlace& place = waves_.place(part);
    for (int j = 0; j < waves_.batch(place.batch).batch->wave_size(); ++j) {
      const double b = iteration.b()[static_cast<std::size_t>(place.wave + j * place.stride)];
      if (!std::isfinite(b)) return true;
    }
    return false;
  };
  // Warm starts may hold the NaN.
  fail_if(waves_.freeze_all(record_.data(), waves_.driven() ? input_.data() : nullptr), -1);
  iteration.start(b_);
  for (int k = 0; k < last; ++k) {
    if (k > 0) iteration.update();
    const PhaseStatus status = iteration.evaluate(record_.data());
    for (int part = 0; part < parts; ++part) {
      const int island = waves_.system().island_of_part(part);
      const IslandOutcome& outcome = outcomes_[static_cast<std::size_t>(island)];
      if ((at_commit || outcome.converged) && k >= outcome.iterations) continue;
      if (status.part == part) fail(status, k);
      if (spoiled(part)) fail({part, StepFault::not_finite, {}}, k);
    }
  }
}

}  // namespace

std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options) {
  return std::make_unique<WaveEngine>(system, options);
}

}  // namespace portwave
