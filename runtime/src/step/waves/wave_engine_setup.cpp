#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/state_bytes.hpp"
#include "step/event_watch.hpp"
#include "step/non_finite.hpp"
#include "step/waves/deadline_rehearsal.hpp"
#include "step/waves/wave_engine.hpp"

namespace portwave {
namespace {

/// Of what a step under a deadline may do, before the first one.
constexpr int kRehearsals = 4;

/// The result of `make`. With slices it may fail on one rank alone, which then tells the others.
template <class Make>
auto or_tell_others(Together& together, const Make& make) {
  try {
    return make();
  } catch (...) {
    together.failed_to_discretise();
    throw;
  }
}

bool has_vertical_laws(const System& system) {
  return std::ranges::any_of(system.parts(), [](const Part& part) {
    const Subsystem* const physics = part.port_hamiltonian();
    return physics != nullptr && physics->has_vertical_laws();
  });
}

LedgerOptions ledger_options(const WaveDiscretisation& waves, const WaveCoupling& method,
                             Together& together, const StagedRun& run) {
  together.discretised(waves);
  return {.tank = method.tank,
          .guarded = method.guard,
          .slices = together.slices(),
          .may_damp = run.may_change_over() && together.has_whole()};
}

}  // namespace

WaveEngine::WaveEngine(const System& system, const StepperOptions& given,
                       std::unique_ptr<Together> processes, const Anytime& anytime)
    : StepEngine(given.step_s, std::move(processes)),
      run_(system, given),
      options_(run_.options()),
      levels_(run_.stepped(), options_.step_s, options_.method.waves(), anytime),
      waves_(or_tell_others(
          together(),
          [&] {
            return WaveDiscretisation(
                run_.stepped(), options_.step_s, tuner().choice().method.waves().impedance,
                grouping_for(options_.grain),
                given.sizes || run_.stages() > 1 ? WaveDiscretisation::StageIncrements::kept
                                                 : WaveDiscretisation::StageIncrements::none);
          })),
      step_(waves_, options_.method.waves(), system.initial_settings(),
            ledger_options(waves_, given.method.waves(), together(), run_), given.start_s, *this,
            together()),
      costs_(declared_costs(waves_)),
      pace_(given.time.pace, given.interrupted),
      states_(waves_),
      start_ports_(given) {
  for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
    if (dynamic_cast<const StateBytes*>(waves_.batch(i).batch) != nullptr) programs_.push_back(i);
  }
  resolve_method();
  together().check([this] {
    refuse_non_finite_start(waves_, step_.ledger(), step_.now().b, options_.method.waves().tank);
  });
  const WaveCoupling& m = options_.method.waves();
  // A part that does not know its energy has no other account of it.
  const bool keeps_ledger =
      options_.certify != Certify::none || m.guard || !step_.ledger().metered_parts().empty();
  step_.prepare(m, run_, options_.sizes || has_tolerance(options_.method), keeps_ledger);
  has_extrapolated_start_ = step_.extrapolated().has_value();
  certificate_.emplace(waves_, step_.update(), step_.ledger(), options_.certify == Certify::full,
                       unrepeatable_parts(waves_));
  const bool watches = together().has_whole() && options_.certify != Certify::none;
  if (watches) step_.sum_waves();
  make_executor();
  plan_step();
  look_for_decays_in_slices();
  if (watches) {
    watch_.emplace(waves_, run_.rule(), record(), static_cast<int>(system.scalar_ports().size()));
    begin_watching();
  }
  const bool looks_at_substeps = run_.may_throw_substeps() && together().is_alone();
  if ((run_.may_change_over() || looks_at_substeps) && together().has_whole())
    change_over_.emplace(run_, options_.step_s);
  if (run_.may_overshoot() && together().has_whole()) {
    const bool is_damped = run_.integrators().damped_parts > 0;
    const StageRule rule = is_damped ? damped(run_.rule()) : run_.rule();
    pieces_.emplace(static_cast<StepTrials&>(*this), waves_, system, rule,
                    AdaptiveSteps::for_pieces(options_.step_s, rule, options_.halves_once_more),
                    options_.step_s, record(), std::span<const Watch>{}, AdaptiveSteps::Of::step);
  }
  // Impulses where switches open within steps are let act by one process alone.
  const bool may_cut = !options_.sizes && !scheduler_ && together().has_whole() &&
                       step_.is_driven() && (together().is_alone() || !has_vertical_laws(system));
  // What a smooth input does between the samples of conserving steps is told by those that are compared with them.
  const bool has_reason = may_damp() || pieces_ || options_.halves_once_more;
  if (may_cut && has_reason && StagedRun::can_return(system)) {
    sudden_.emplace(system);
    if (!sudden_->may_be_sudden()) sudden_.reset();
  }
  if (options_.sizes) {
    const bool is_damped = run_.integrators().damped_parts > 0;
    if (!is_damped && together().has_whole()) law_ends_.emplace(this->system());
    sizes_.emplace(static_cast<StepTrials&>(*this), waves_, system,
                   is_damped ? damped(run_.rule()) : run_.rule(), *options_.sizes, given.step_s,
                   record(), watches_of(system, given));
    if (m.tolerance_per_part) sizes_->judge_parts();
  }
  find_waves();
}

/// In slices no rule damps single parts, and no watch tells what rings: the fastest decay does.
void WaveEngine::look_for_decays_in_slices() {
  SlicesTogether* const slices = together().slices();
  if (slices == nullptr || run_.options().method.waves().integrator != StageKind::automatic) return;
  struct Fastest {
    double h_lambda;
    std::int64_t number;
  } own{resolved_decay(run_.stages()), -1};
  const System& given = system();
  const std::vector<PartDecay> decays = fastest_decays(given, options_.step_s);
  for (int part = 0; part < given.slice()->own_parts; ++part) {
    const bool is_faster = decays[at(part)].h_lambda > own.h_lambda;
    if (is_faster) own = {decays[at(part)].h_lambda, slices->number_of(part)};
  }
  for (const Fastest& other : slices->gathered(own)) {
    if (other.number >= 0 && (own.number < 0 || other.h_lambda > own.h_lambda)) own = other;
  }
  if (own.number < 0) return;
  undamped_ = fmt::format(
      "in slices auto damps no parts, and nothing looks at how they move: {} decays by h·λ = "
      "{:.3g} "
      "within a step. Damp all (--set /method/integrator=\"damped\"), or let all conserve "
      "(\"gauss\")",
      in_quotes(together().name_of(given, static_cast<int>(own.number))), own.h_lambda);
}

/// Locates the data that the watch examines.
void WaveEngine::begin_watching() {
  if (!options_.sizes && step_.is_driven()) changes_.emplace(system());
  if (!options_.sizes) {
    const bool is_sampled = options_.signals != nullptr && options_.signals_every_s == 0.0;
    hidden_.emplace(system(), is_sampled ? options_.signals.get() : nullptr);
    if (hidden_->empty()) hidden_.reset();
  }
  watch_->expect(changes_ ? changes_->inputs() : 0, run_.integrators().oscillating);
  const int stages = run_.stages();
  for (int i = 0; i < stages; ++i) port_weights_.push_back(stages == 1 ? 1.0 : run_.weight(i));
  for (int port = 0; port < static_cast<int>(system().scalar_ports().size()); ++port) {
    for (int i = 0; i < stages; ++i) {
      port_waves_.push_back(run_.is_idle(port) ? -1 : static_cast<int>(offset_of(port, i)));
    }
  }
}

/// Takes over the chosen method, and its consequences.
void WaveEngine::resolve_method() {
  options_.method = tuner().choice().method;
  WaveCoupling& m = options_.method.waves();
  if (options_.method.kind() == WaveUpdate::interface) {
    m.relaxation = 1.0;
    m.acceleration = 0;
  }
}

void WaveEngine::make_executor() {
  if (options_.profile) {
    options_.timed = true;
    const bool follows = options_.executor != ExecutorKind::graph && together().is_alone();
    profiler_.emplace(*options_.profile, follows ? options_.threads : 0);
  }
  runner_ = together().make_runner(waves_,
                                   {.executor = options_.executor,
                                    .grain = options_.grain,
                                    .threads = options_.threads,
                                    .arena = options_.arena,
                                    .iterations = tuner().expected_iterations(),
                                    .may_solve = step_.interface().has_value(),
                                    .max_delay = options_.method.waves().exchange.delay(),
                                    .trace = profiler_ ? profiler_->trace() : nullptr},
                                   record(), costs_);
  together().join(*this, waves_, step_.ledger(), step_.settings(), step_.now(), step_.next());
  Executor& executor = *runner_.executor;
  step_.bind(executor);
  const ForEach *loops = &executor.for_each(), *within = &executor.for_each_within();
  int helpers = executor.threads();
  if (profiler_ && profiler_->loops() != nullptr) {
    loops = profiler_->loops();
    helpers = 2;  // as if there were others, so that what they would do is timed
    // With the serial executor a solve is part of what tasks do, and counted there.
    if (options_.executor == ExecutorKind::async) within = loops;
  }
  step_.ledger().share_with(loops, helpers);
  if (auto& guard = step_.passivity_guard()) guard->share_with(loops, helpers);
  if (auto& interface = step_.interface()) interface->share_with(*within);
  if (!options_.time.active()) return;
  rehearse();
}

/// Steps under a deadline must know from the first one on what an evaluation costs and what a solve of the
/// interface equation does, and have factors to begin with. The first try finds cold caches, and any may lose the
/// processor: the shortest of the others counts. An estimate that keeps all solves away is never corrected.
void WaveEngine::rehearse() {
  const Partition whole = whole_island_groups(waves_, costs_);
  double evaluation_s = 1e-9 * whole.iteration_cost_ns;
  const WaveState& now = step_.now();
  AlignedVector record(now.record.begin(), now.record.end());
  AlignedVector u(now.b.size(), 0.0), b(u), exchanged(u);
  bool is_sound = true;
  double least_s = std::numeric_limits<double>::infinity();
  for (int times = 0; times < kRehearsals && is_sound; ++times) {
    const auto start = Clock::now();
    waves_.interconnection().exchange(now.b.data(), u.data());
    is_sound = waves_.scatter_all(record.data(), u.data(), b.data()).ok();
    waves_.interconnection().exchange(b.data(), exchanged.data());
    Clock::spend(Work::evaluation);
    if (times > 0 && is_sound) least_s = std::min(least_s, seconds(Clock::now() - start));
  }
  if (std::isfinite(least_s)) evaluation_s = least_s;
  begin_schedule(evaluation_s, 1e-9 * whole.commit_cost_ns);
  look_s_ = 2.0 * evaluation_s;  // a guess
  rehearse_retuning();
  auto& interface = step_.interface();
  if (!interface || !is_sound) return;
  using Effort = InterfaceSolver::Effort;
  const auto time = [&](int island, Effort effort, DeadlineScheduler::Solve what) {
    double shortest_s = std::numeric_limits<double>::infinity();
    for (int times = 0; times < kRehearsals; ++times) {  // the first finds out the pattern, too
      const auto start = Clock::now();
      if (!interface->current().rehearse(island, record.data(), u.data(), exchanged.data(), effort))
        return;
      Clock::spend(effort == Effort::renew ? Work::linearise : Work::solve);
      if (times > 0) shortest_s = std::min(shortest_s, seconds(Clock::now() - start));
    }
    scheduler_->rehearse(what, shortest_s);
    double& longest_s = effort == Effort::renew ? linearise_s_ : solve_s_;
    longest_s = std::max(longest_s, shortest_s);
  };
  for (int island = 0; island < waves_.system().island_count(); ++island) {
    if (!interface->current().is_used(island) && options_.method.waves().rescue_after == 0)
      continue;
    time(island, Effort::renew, DeadlineScheduler::Solve::new_factors);
    time(island, Effort::solve, DeadlineScheduler::Solve::with_factors);
  }
}

/// With what the work of a step is known to take [s].
void WaveEngine::begin_schedule(double evaluation_s, double commit_s) {
  scheduler_.emplace(options_.time.deadline_s, evaluation_s, commit_s);
  using Solve = DeadlineScheduler::Solve;
  if (linearise_s_ > 0.0) scheduler_->rehearse(Solve::new_factors, linearise_s_);
  if (solve_s_ > 0.0) scheduler_->rehearse(Solve::with_factors, solve_s_);
  // Its sums, and a commit of other waves.
  if (options_.method.waves().guard) scheduler_->expect_guard(2.0 * commit_s);
}

/// A step under a deadline has time to correct waves that nearly agree, not to find any: a first one that starts from
/// none would leave the energy of moving parts in the tank, where no later step gets it back. So the waves of the first
/// step are found before it.
void WaveEngine::find_waves() {
  constexpr int kMost = 50;
  if (!scheduler_ || !together().is_alone() || !step_.is_repeatable()) return;
  // Where the step has time for as many it finds them itself, with the bits of a run without a deadline.
  const bool may_solve = step_.interface().has_value();
  if (scheduler_->step_s(kMost, may_solve) <= time_of_step(options_)) return;
  try {
    const MacroStep::Rehearsal took = step_.find_waves(kMost);
    const auto known = [](double measured_s, double guess_s) {
      return std::isfinite(measured_s) ? measured_s : guess_s;
    };
    begin_schedule(known(took.evaluation_s, scheduler_->iteration_s()),
                   known(took.commit_s, scheduler_->commit_s()));
  } catch (const StepError&) {  // the step will say so
  }
}

/// What a check of impedances that follow the state takes, and a change of them.
void WaveEngine::rehearse_retuning() {
  if (!tuner().follows_state()) return;
  try {
    const auto start = Clock::now();
    tuner().rehearse([this](int part) { return state(part); });
    Clock::spend(Work::check);
    const auto checked = Clock::now();
    const std::vector<double> own = tuner().choice().method.waves().impedance;
    waves_.set_impedance(own);
    take_over_maps();
    Clock::spend(Work::change);
    check_s_ = seconds(checked - start);
    change_s_ = seconds(Clock::now() - checked);
  } catch (const std::exception&) {  // the steps will say so
  }
}

WorkCosts WaveEngine::work_costs() const {
  WorkCosts out{};
  if (!scheduler_) return out;
  cost(out, Work::evaluation) = scheduler_->iteration_s();
  cost(out, Work::first_evaluation) = scheduler_->first_iteration_s();
  cost(out, Work::commit) = scheduler_->start().mean_s() + scheduler_->commit_s();
  using Solve = DeadlineScheduler::Solve;
  cost(out, Work::solve) = scheduler_->solve(Solve::with_factors).mean_s();
  cost(out, Work::linearise) = scheduler_->solve(Solve::new_factors).mean_s();
  cost(out, Work::check) = check_s_;
  cost(out, Work::change) = change_s_;
  return out;
}

WorkCosts WaveEngine::work_spreads() const {
  WorkCosts out{};
  if (!scheduler_) return out;
  using Solve = DeadlineScheduler::Solve;
  cost(out, Work::evaluation) = cost(out, Work::first_evaluation) =
      scheduler_->iteration().spread_s();
  cost(out, Work::commit) = scheduler_->commit().spread_s();
  cost(out, Work::solve) = scheduler_->solve(Solve::with_factors).spread_s();
  cost(out, Work::linearise) = scheduler_->solve(Solve::new_factors).spread_s();
  return out;
}

bool WaveEngine::has_time_to_converge(double margin) {
  const MethodChoice& choice = tuner().choice();
  if (!choice.rate.converges || !scheduler_) return false;
  return margin * scheduler_->step_s(choice.rate.evaluations, step_.interface().has_value()) <=
         time_of_step(options_);
}

/// Sets the members of a step's plan that do not change from one step to the next.
void WaveEngine::plan_step() {
  StepPlan& plan = step_.plan();
  plan.deadline = scheduler_ ? &*scheduler_ : nullptr;
  plan.rule.deadline = plan.deadline;
  // All ranks must find the same.
  const bool is_repeatable = !together().any(!step_.is_repeatable());
  plan.may_go_ahead = options_.certify != Certify::full && !options_.sizes && !scheduler_ &&
                      !step_.is_accelerated() && !step_.interface() && is_repeatable;
}

std::unique_ptr<StepEngine> make_wave_engine(const System& system, const StepperOptions& options,
                                             std::unique_ptr<Together> together) {
  const auto engine_for = [&](std::unique_ptr<Together> processes, const Anytime& anytime) {
    return std::make_unique<WaveEngine>(system, options, std::move(processes), anytime);
  };
  const bool is_open = options.method.kind() == WaveUpdate::automatic;
  if (!options.time.active() || !is_open || !together->is_alone()) {
    return engine_for(std::move(together), {.is_on = options.time.active()});
  }
  // What one would take without a deadline, where there is time for that; else what makes most of it.
  auto engine = engine_for(std::make_unique<Together>(), {});
  constexpr double kAmple = 4.0, kTight = 1.25;
  if (engine->has_time_to_converge(kAmple)) return engine;
  const Anytime way =
      way_for_deadline(system, options, {.is_on = !engine->has_time_to_converge(kTight)});
  if (!way.is_on) {
    engine->find_waves();  // again: the rehearsals have left nothing of it in the caches
    return engine;
  }
  engine.reset();
  return engine_for(std::move(together), way);
}

}  // namespace portwave
