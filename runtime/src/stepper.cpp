#include "portwave/runtime/stepper.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "executor.hpp"
#include "portwave/coupling/anderson.hpp"
#include "portwave/coupling/energy_book.hpp"
#include "portwave/coupling/guard.hpp"
#include "portwave/subsystems/staggered.hpp"
#include "runner.hpp"
#include "stepper_options.hpp"
#include "tuner.hpp"

namespace portwave {
namespace {

using Clock = DeadlineScheduler::Clock;

double seconds(Clock::duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

/// A macro-step in order: freeze, iterate, commit, book. Arrays with a `next` are written by the step
/// and become current only when all of it has succeeded.
struct Stepper::Impl {
  Impl(const System& system, const StepperOptions& given)
      : options(given),
        tuner(checked(system, given), given.step_s, given.method),
        waves(system, given.step_s, tuner.choice().method.impedance, grouping_for(given)),
        memory({{2, waves.record_size()}, {6, static_cast<std::size_t>(waves.wave_size())}}),
        record(memory.take(waves.initial_record())),
        next(memory.take(record.size())),
        b(memory.take(initial_waves())),
        b_next(memory.take(b.size())),
        a(memory.take(b.size())),
        a_next(memory.take(b.size())),
        u(memory.take(b.size())),
        b_trial(memory.take(b.size())),
        input(waves.input_size(), 0.0),
        outcomes(static_cast<std::size_t>(system.island_count())),
        book(waves, record.data(), b.data(), given.method.tank, given.method.guard),
        residual(waves),
        costs(declared_costs(waves)) {
    options.method = tuner.choice().method;
    refuse_non_finite_start();
    if (options.method.guard) guard.emplace(waves);
    if (options.method.acceleration > 0) acceleration.emplace(waves, options.method.acceleration);
    certificate.max_passivity_residual_J = book.max_passivity_residual();
    runner = make_runner(waves, options, tuner.expected_iterations(), record.data(), costs);
    runner.executor->bind(arrays());
    runner.executor->bind(next_arrays());
    prepare_views();
    if (options.certify == Certify::full) {
      u_start.resize(b.size(), 0.0);
      iterations_by_island.resize(outcomes.size());
      certifier.emplace(waves, update());
    }
    if (options.time.active()) {
      const Partition whole = whole_packs(waves, costs);
      scheduler.emplace(options.time.deadline_s, 1e-9 * whole.iteration_cost_ns,
                        1e-9 * whole.commit_cost_ns);
    }
  }

  void refuse_non_finite_start() const {
    Issues issues;
    for (std::size_t i = 0; i < waves.places().size(); ++i) {
      if (std::isfinite(book.storage(static_cast<int>(i)))) continue;
      issues.push_back({fmt::format("/subsystems/{}/initial_state", i),
                        "the stored energy of this state is not finite"});
    }
    if (issues.empty() && !std::isfinite(book.totals().initial_tank_J)) {
      const TankOptions& tank = options.method.tank;
      const bool by_waves = !tank.initial_J && std::isfinite(half_square(b));
      issues.push_back({by_waves || tank.initial_J ? "/method/tank" : "/method/initial_waves",
                        "the energy that the tanks start with is not finite"});
    } else if (issues.empty() && !std::isfinite(half_square(b))) {
      issues.push_back({"/method/initial_waves", "the energy of these waves is not finite"});
    }
    throw_if_any(std::move(issues));
  }

  AlignedVector initial_waves() const {
    AlignedVector out(static_cast<std::size_t>(waves.wave_size()), 0.0);
    const std::vector<double>& by_port = options.method.initial_waves;
    for (std::size_t j = 0; j < by_port.size(); ++j) {
      out[static_cast<std::size_t>(waves.wave_of_port(static_cast<int>(j)))] = by_port[j];
    }
    return out;
  }

  void prepare_views() {
    std::size_t size = 0;
    for (const Part& part : waves.system().parts()) {
      view_begin.push_back(size);
      size += static_cast<std::size_t>(part.subsystem->signature().state_size());
    }
    view.resize(size);
    view_step.assign(waves.places().size(), -1);
  }

  StepReport step() {
    const bool timed = options.timed || scheduler.has_value();
    Clock::time_point start{}, ready{}, end{};
    retune();  // not on the step's time
    if (timed) start = await_turn();
    freeze();
    if (timed) ready = Clock::now();
    const StepResult result = run(timed);
    StepReport report = summarise(result);
    if (book_used()) {
      const double stored_before = book.totals().final_J;
      if (!book.tally()) refuse_energy();
      if (guard) keep_within_tanks();
      report.energy = book.close(a_next.data(), b_next.data(), guard ? guard->alpha() : 1.0,
                                 guard ? guard->withheld_J() : 0.0);
      if (guard) guard->count();
      accept();
      if (certifier) certify(report, stored_before);
      update_certificate();
    } else {
      accept();
    }
    count(report);
    tuner.observe(steps, report.iterations, report.converged);
    statistics.rejected_trials += report.rejected_trials;
    if (timed) {
      end = Clock::now();
      report.times = {seconds(ready - start), seconds(result.inner_end - ready),
                      seconds(end - result.inner_end)};
      if (scheduler) {
        const bool guarded = guard && !guard->uses().empty();
        report.slack_s = scheduler->finish(report.iterations, result.inner_end, end, !guarded);
      }
    }
    return report;
  }

  StepArrays arrays() {
    return {record.data(), next.data(),        b.data(),
            b_next.data(), u.data(),           b_trial.data(),
            a_next.data(), used_book(),        used_book() ? book.columns() : EnergyColumns{},
            &residual,     used_acceleration()};
  }
  /// Those of the step after.
  StepArrays next_arrays() {
    return {next.data(), record.data(),      b_next.data(),
            b.data(),    u.data(),           b_trial.data(),
            a.data(),    used_book(),        used_book() ? book.next_columns() : EnergyColumns{},
            &residual,   used_acceleration()};
  }
  Acceleration* used_acceleration() { return acceleration ? &*acceleration : nullptr; }
  EnergyBook* used_book() { return book_used() ? &book : nullptr; }
  /// The step has happened.
  void accept() {
    std::swap(record, next);
    std::swap(b, b_next);
    std::swap(a, a_next);
    ++steps;
  }

  bool book_used() const { return options.certify != Certify::none || options.method.guard; }
  InnerUpdate update() const { return {options.method.kind, options.method.relaxation}; }

  /// Commits again what would overdraw a tank, with as much of â as there is energy for.
  void keep_within_tanks() {
    if (!guard->begin(book, record.data(), a_next.data(), b_next.data())) return;
    for (;;) {
      guard->propose(a_next.data());
      StepPlan plan;
      plan.recommit = guard->searching();
      const StepResult result = runner.executor->run(arrays(), plan, outcomes);
      if (result.failed_at >= 0) {
        const int island = waves.system().island_of_part(std::max(result.failure.part, 0));
        if (!guard->reject(island)) fail(result.failure, options.method.iterations);
        continue;
      }
      if (!book.tally()) refuse_energy();
      if (guard->review(book, a_next.data(), b_next.data())) return;
    }
  }

  /// Where impedances follow the state: sets them anew if they are off.
  void retune() {
    const auto state_of = [this](int part) { return state(part); };
    try {
      const auto tuned = tuner.retuned(steps, state_of);
      if (!tuned) return;
      set_impedance(*tuned);
      tuner.accept(*tuned);
    } catch (const std::exception&) {  // those in force are as good as before
      ++tuning.failures;
      tuner.refuse(steps);
    }
  }

  /// Other impedances between two steps: effort and flow of the last step stay, and so do the tanks.
  void set_impedance(std::span<const double> by_port) {
    const std::vector<double> old(waves.impedance().begin(), waves.impedance().end());
    const double before = half_square(b);
    try {
      waves.set_impedance(by_port);
    } catch (...) {  // the old ones are in force, in maps that were made anew
      take_over_maps();
      throw;
    }
    for (std::size_t w = 0; steps > 0 && w < old.size(); ++w) {
      const double gamma = waves.impedance()[w];
      if (gamma == old[w]) continue;
      const EffortFlow port = WaveTransform(old[w], options.step_s).to_effort_flow({a[w], b[w]});
      const WavePair wave = WaveTransform(gamma, options.step_s).to_waves(port);
      a[w] = wave.incident;
      b[w] = wave.outgoing;
    }
    tuning.rescattered_J += half_square(b) - before;
    ++tuning.changes;
    take_over_maps();
  }

  /// After step maps and junctions have changed.
  void take_over_maps() {
    stale = true;
    runner.executor->recompile();
    runner.executor->bind(arrays());
    runner.executor->bind(next_arrays());
  }

  /// In the order of the ports.
  double half_square(std::span<const double> wave) const {
    double sum = 0.0;
    for (int port = 0; port < static_cast<int>(waves.system().scalar_ports().size()); ++port) {
      const double own = wave[static_cast<std::size_t>(waves.wave_of_port(port))];
      sum += own * own;
    }
    return 0.5 * sum;
  }

  std::span<const double> state(int part) {
    const auto index = static_cast<std::size_t>(part);
    const Signature& signature = waves.system().parts()[index].subsystem->signature();
    double* own = view.data() + view_begin[index];
    if (view_step[index] != steps) {
      waves.get_state(part, record.data(), own);
      view_step[index] = steps;
    }
    return {own, static_cast<std::size_t>(signature.state_size())};
  }

  /// Waits until the step is due, if there is a pace, and sets its deadline.
  Clock::time_point await_turn() {
    Clock::time_point now = Clock::now();
    if (!scheduler) return now;
    double deadline = options.time.deadline_s > 0.0 ? options.time.deadline_s
                                                    : std::numeric_limits<double>::infinity();
    if (options.time.pace > 0.0) {
      const double wall_step = options.step_s / options.time.pace;
      if (!paced) {
        paced = true;
        pace_start = now;
        pace_first = steps;
      }
      const auto due_at = [&](std::int64_t step) {
        return pace_start +
               std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(
                   wall_step * static_cast<double>(step - pace_first)));
      };
      const Clock::time_point due = due_at(steps);
      // Sleeping is coarse: the last stretch is spun.
      constexpr std::chrono::microseconds kCoarse{100};
      constexpr std::chrono::milliseconds kSlice{50};
      const auto interrupted = [&] { return options.interrupted && options.interrupted(); };
      while (now + kCoarse < due && !interrupted()) {
        std::this_thread::sleep_until(std::min(due - kCoarse, now + kSlice));
        now = Clock::now();
      }
      while (now < due && !interrupted()) now = Clock::now();
      deadline = std::min(deadline, seconds(due_at(steps + 1) - now));
    }
    scheduler->set_deadline(deadline);
    scheduler->begin(now);
    return now;
  }

  /// The commit has frozen the record but for external inputs. After a failed step all of it is
  /// frozen again, for solvers keep warm starts there.
  void freeze() {
    if (!waves.driven() && !stale) return;
    const double* driven = nullptr;
    PhaseStatus failure;
    if (waves.driven()) {
      if (!waves.sample_inputs(time(), input.data(), failure)) fail(failure, -1);
      driven = input.data();
    }
    fail_if(waves.freeze_all(record.data(), driven, /*driven_only=*/!stale), -1);
    stale = false;
  }

  StepResult run(bool timed) {
    if (certifier) waves.interconnection().exchange(b.data(), u_start.data());
    const CouplingMethod& m = options.method;
    const StepPlan plan{{m.iterations, update(), m.tolerance, m.energy_tolerance_J,
                         m.tolerance_per_part, acceleration.has_value()},
                        scheduler ? &*scheduler : nullptr,
                        timed};
    if (acceleration) acceleration->begin();
    StepResult result = runner.executor->run(arrays(), plan, outcomes);
    if (result.failed_at < 0) return result;
    const bool at_commit = result.failed_at == TaskOutcome::kCommit;
    if (result.failure.fault == StepFault::not_finite) find_non_finite(result.failed_at);
    fail(result.failure, at_commit ? m.iterations : result.failed_at);
  }

  StepReport summarise(const StepResult& result) {
    StepReport report;
    bool converged = !outcomes.empty(), by_energy = false;
    for (const IslandOutcome& outcome : outcomes) {
      report.iterations = std::max(report.iterations, outcome.iterations);
      if (!(report.residual >= outcome.gap.residual)) report.residual = outcome.gap.residual;
      report.gap_J += outcome.gap.energy_J;
      converged = converged && outcome.converged;
      by_energy = by_energy || outcome.by_energy;
    }
    report.converged = converged;
    for (int i = 0; acceleration && i < static_cast<int>(outcomes.size()); ++i) {
      report.rejected_trials += acceleration->sequence(i).rejections();
    }
    if (converged) {
      report.reason = by_energy ? StopReason::energy_tolerance : StopReason::tolerance;
    } else if (result.out_of_time) {
      report.reason = StopReason::deadline;
    }
    return report;
  }

  void certify(const StepReport& report, double stored_before) {
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
      iterations_by_island[i] = outcomes[i].iterations;
    }
    certifier->examine(waves, next.data(),  // what was the record of the step
                       {.index = steps - 1,
                        .iterations = iterations_by_island,
                        .u_start = u_start,
                        .stored_change_J = report.energy.stored_J - stored_before,
                        .mismatch_J = report.energy.mismatch_J,
                        .supplied_J = report.energy.supplied_J,
                        .accelerated = acceleration.has_value()},
                       certificate);
  }

  void count(const StepReport& report) {
    ++statistics.steps;
    statistics.total += report.iterations;
    statistics.max = std::max(statistics.max, report.iterations);
    ++statistics.histogram[static_cast<std::size_t>(
        std::min(report.iterations, IterationStatistics::kHistogram - 1))];
    ++statistics.reasons[static_cast<std::size_t>(report.reason)];
    const CouplingMethod& m = options.method;
    if ((m.tolerance > 0.0 || m.energy_tolerance_J > 0.0) && !report.converged) {
      ++statistics.not_converged;
    }
  }

  void update_certificate() {
    certificate.max_passivity_residual_J = book.max_passivity_residual();
    certificate.worst_passivity_part = book.worst_part();
    certificate.worst_passivity_step = book.worst_step();
    certificate.broken_law = book.broken_law();
    if (book.violated()) certificate.status = CertificateStatus::violated;
  }

  [[noreturn]] void fail(const PhaseStatus& status, int iteration) {
    stale = true;
    throw StepError(waves.system().parts()[static_cast<std::size_t>(std::max(status.part, 0))].name,
                    steps, iteration, options.method.iterations, status.fault, status.detail);
  }
  void fail_if(const PhaseStatus& status, int iteration) {
    if (!status.ok()) fail(status, iteration);
  }

  [[noreturn]] void refuse_energy() {
    fail({book.first_non_finite(), StepFault::not_finite, "its energy overflows"},
         options.method.iterations);
  }

  /// A NaN or infinity was noticed at some iteration or the commit, perhaps by a part that was given
  /// it: the iteration is run again, looking at every wave, to name the first part and iteration that
  /// made one. Returns when none did before.
  void find_non_finite(int noticed_at);

  double time() const { return static_cast<double>(steps) * options.step_s; }

  StepperOptions options;  // with the method as it was resolved
  Tuner tuner;
  WaveDiscretisation waves;
  StaggeredMemory memory;
  std::span<double> record, next;
  std::span<double> b, b_next;
  std::span<double> a, a_next;
  std::span<double> u, b_trial;  // inner iterate and trial outgoing waves
  AlignedVector input;
  std::vector<IslandOutcome> outcomes;
  EnergyBook book;
  InterfaceResidual residual;
  std::optional<PassivityGuard> guard;
  std::optional<Acceleration> acceleration;
  TuningStatistics tuning;
  LaneCosts costs;
  Runner runner;
  std::optional<DeadlineScheduler> scheduler;  // with a time budget
  bool paced = false;
  Clock::time_point pace_start{};
  std::int64_t pace_first = 0;
  std::int64_t steps = 0;
  bool stale = false;  // the record has seen port solves of a step that failed
  IterationStatistics statistics;
  Certificate certificate;
  AlignedVector u_start;                   // Certify::full
  std::vector<int> iterations_by_island;   // Certify::full
  std::optional<StepCertifier> certifier;  // Certify::full
  // Committed states in signature order, unpacked when somebody looks.
  std::vector<std::size_t> view_begin;
  std::vector<double> view;
  std::vector<std::int64_t> view_step;
};

void Stepper::Impl::find_non_finite(int noticed_at) {
  const int parts = static_cast<int>(waves.places().size());
  const bool at_commit = noticed_at == TaskOutcome::kCommit;
  int last = at_commit ? 0 : noticed_at;
  for (const IslandOutcome& outcome : outcomes) {
    if (at_commit) last = std::max(last, outcome.iterations);
  }
  const auto spoiled = [&](int part) {
    const PartPlace& place = waves.place(part);
    for (int j = 0; j < waves.batch(place.batch).batch->wave_size(); ++j) {
      if (!std::isfinite(b_trial[static_cast<std::size_t>(place.wave + j * place.stride)])) {
        return true;
      }
    }
    return false;
  };
  // Warm starts may hold the NaN.
  fail_if(waves.freeze_all(record.data(), waves.driven() ? input.data() : nullptr), -1);
  waves.interconnection().exchange(b.data(), u.data());
  for (int k = 0; k < last; ++k) {
    const PhaseStatus status = waves.approach_all(record.data(), u.data(), b_trial.data());
    for (int part = 0; part < parts; ++part) {
      const int island = waves.system().island_of_part(part);
      const IslandOutcome& outcome = outcomes[static_cast<std::size_t>(island)];
      if ((at_commit || outcome.converged) && k >= outcome.iterations) continue;
      if (status.part == part) fail(status, k);
      if (spoiled(part)) fail({part, StepFault::not_finite, {}}, k);
    }
    waves.interconnection().update(update(), b_trial.data(), u.data());
  }
}

Stepper::Stepper(const System& system, const StepperOptions& options)
    : impl_(std::make_unique<Impl>(system, options)) {}
Stepper::~Stepper() = default;
Stepper::Stepper(Stepper&&) noexcept = default;
Stepper& Stepper::operator=(Stepper&&) noexcept = default;

StepReport Stepper::step() { return impl_->step(); }

void Stepper::run(std::int64_t steps) {
  for (std::int64_t i = 0; i < steps; ++i) impl_->step();
}

const System& Stepper::system() const { return impl_->waves.system(); }
std::int64_t Stepper::step_index() const { return impl_->steps; }
double Stepper::time_s() const { return impl_->time(); }
int Stepper::threads() const { return impl_->runner.executor->threads(); }
int Stepper::tasks() const { return impl_->runner.executor->tasks(); }
const std::string& Stepper::execution() const { return impl_->runner.description; }

std::span<const double> Stepper::state(int part) const { return impl_->state(part); }

std::span<const double> Stepper::state(std::string_view part) const {
  const int index = system().find_part(part);
  if (index < 0) throw std::out_of_range("no part is named \"" + std::string(part) + "\"");
  return state(index);
}

double Stepper::incident_wave(int scalar_port) const {
  return impl_->a[static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port))];
}

double Stepper::outgoing_wave(int scalar_port) const {
  return impl_->b[static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port))];
}

EffortFlow Stepper::effort_flow(int scalar_port) const {
  const auto place = static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port));
  if (impl_->steps == 0) return {0.0, 0.0};
  return WaveTransform(impl_->waves.impedance()[place], impl_->options.step_s)
      .to_effort_flow({impl_->a[place], impl_->b[place]});
}

double Stepper::effort(int scalar_port) const { return effort_flow(scalar_port).effort; }
double Stepper::flow(int scalar_port) const { return effort_flow(scalar_port).flow; }

double Stepper::storage(int part) const {
  if (impl_->book_used()) return impl_->book.storage(part);
  return system().parts()[static_cast<std::size_t>(part)].subsystem->storage(state(part).data());
}

void Stepper::set_iterations(int iterations) {
  if (iterations < 0) throw ConfigError("/method/iterations", "must be >= 0");
  impl_->options.method.iterations = iterations;
  impl_->tuner.set_iterations(iterations);
}

void Stepper::set_impedance(std::span<const double> by_port) {
  impl_->set_impedance(by_port);
  impl_->tuner.leave({by_port.begin(), by_port.end()});
}

const MethodChoice& Stepper::method() const { return impl_->tuner.choice(); }
double Stepper::impedance(int scalar_port) const {
  return impl_->waves.impedance()[static_cast<std::size_t>(impl_->waves.wave_of_port(scalar_port))];
}
bool Stepper::follows_state() const { return impl_->tuner.follows_state(); }
const TuningStatistics& Stepper::tuning() const { return impl_->tuning; }
double Stepper::tank(int island) const { return impl_->book.tank(island); }

std::span<const GuardUse> Stepper::guard_uses() const {
  return impl_->guard ? impl_->guard->uses() : std::span<const GuardUse>{};
}

const GuardStatistics& Stepper::guard() const {
  static const GuardStatistics none;
  return impl_->guard ? impl_->guard->statistics() : none;
}

bool Stepper::keeps_ledger() const { return impl_->book_used(); }
const EnergyTotals& Stepper::energy() const { return impl_->book.totals(); }
const Certificate& Stepper::certificate() const { return impl_->certificate; }
const IterationStatistics& Stepper::iterations() const { return impl_->statistics; }

int Stepper::iterations_of_island(int island) const {
  return impl_->outcomes[static_cast<std::size_t>(island)].iterations;
}

DeadlineScheduler::Statistics Stepper::deadline() const {
  return impl_->scheduler ? impl_->scheduler->statistics() : DeadlineScheduler::Statistics{};
}

std::size_t Stepper::overhead_bytes() const {
  const Impl& i = *impl_;
  const auto wave = static_cast<std::size_t>(i.waves.wave_size()) * sizeof(double);
  return i.runner.executor->bytes() + i.waves.bytes() + i.book.bytes() + i.residual.bytes() +
         (i.guard ? i.guard->bytes() : 0) + (i.acceleration ? i.acceleration->bytes() : 0) +
         6 * wave + i.outcomes.capacity() * sizeof(IslandOutcome) +
         i.input.capacity() * sizeof(double) + i.view_begin.capacity() * sizeof(std::size_t) +
         i.view_step.capacity() * sizeof(std::int64_t);
}

}  // namespace portwave
