#include "step/waves/wave_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "portwave/subsystems/nonlinear/bent_storage.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {
namespace {

/// " q = 1 m, p = 2 kg m/s", for named values.
std::string text_of_values(std::span<const double> values, auto name_and_unit) {
  constexpr std::size_t kMost = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(values.size(), kMost); ++i) {
    const auto& [name, unit] = name_and_unit(i);
    text += fmt::format("{}{} = {:.6g}{}{}", i == 0 ? " " : ", ", name, values[i],
                        unit.empty() ? "" : " ", unit);
  }
  return values.size() > kMost ? text + ", …" : text;
}

/// The first input that is not finite, in words; empty: all are.
std::string text_of_bad_input(const FailedSolve& solve, const Signature& signature, double time_s) {
  for (std::size_t i = 0; i < solve.inputs.size() && !signature.inputs.empty(); ++i) {
    if (std::isfinite(solve.inputs[i])) continue;
    const std::string& name =
        signature.inputs[i % signature.inputs.size()].name;  // "force@2" of a stage
    return fmt::format("its input {} is not a finite number in the step from {:.6g} s",
                       in_quotes(name.substr(0, name.find('@'))), time_s);
  }
  return {};
}

/// The place of a failed solve, in a few words.
std::string text_of_failed(const FailedSolve& solve, const Signature& signature) {
  std::string text;
  if (std::isfinite(solve.residual)) {
    text = fmt::format("{:.2g} of the terms of its equations are left", solve.residual);
  }
  if (!solve.state.empty()) {
    text += text.empty() ? "from" : ", from";
    text += text_of_values(solve.state, [&](std::size_t i) {
      return std::pair(signature.states[i].name, signature.states[i].unit);
    });
  }
  if (solve.inputs.empty() || solve.inputs.size() != signature.inputs.size()) return text;
  return text + (text.empty() ? "with" : ", with") +
         text_of_values(solve.inputs, [&](std::size_t i) {
           return std::pair(signature.inputs[i].name, signature.inputs[i].unit);
         });
}

}  // namespace

StepReport WaveEngine::step_by(double step_s) {
  const Together::Order order(together(), Together::Order::Kind::step, step_s);
  const bool is_whole = step_s == options_.step_s;
  if (is_whole && ((sudden_ && finds_sudden(step_s)) || begins_in_parts())) {
    return step_with_cuts(step_s, {});
  }
  if (takes_pieces()) {
    if (is_whole) return step_in_pieces(step_s);
    pieces_->restart();  // it has not seen this step
  }
  return step_as_a_whole(step_s);
}

StepReport WaveEngine::step_as_a_whole(double step_s) {
  has_pieces_ = false;
  Moments moments;
  if (scheduler_) {
    moments.start = await_turn(step_s);
    use(step_s);
  } else {
    use(step_s);
    retune();  // its time is not the step's
    if (is_timed()) moments.start = Clock::now();
  }

  step_.freeze(step_.clock().time_s());
  iterate(moments);
  const int repeated = change_over_ ? damp_what_changes_over(moments) : 0;
  guard_step(moments);
  StepReport report = step_.report();
  report.rejected_steps = repeated;
  commit(report, step_.clock().time_s() + step_s, step_s, moments);
  if (change_over_) leave_what_has_settled();
  retune_in_time_left(moments);
  plan_renewal(report.converged);

  if (is_timed()) note_times(report, moments);
  return report;
}

StepReport WaveEngine::step_towards(double limit_s) {
  if (!sizes_) return step_by(StepEngine::step_s());
  const Together::Order order(together(), Together::Order::Kind::step_towards, limit_s);
  return sizes_->step(limit_s);
}

/// The inner iteration, and the commit into the next state.
void WaveEngine::iterate(Moments& moments) {
  if (is_timed()) {
    moments.ready = Clock::now();
    if (profiler_) profiler_->begin(step_.clock().steps());
  }
  if (looks_at_all()) together().fetch();
  StepPlan& plan = step_.plan();
  plan.timed = is_timed();
  const double energy_tolerance_J = options_.method.waves().energy_tolerance_J;
  if (sizes_) {
    plan.rule.tolerance = AdaptiveSteps::kResidualTolerance;
    plan.rule.energy_tolerance_J = std::max(energy_tolerance_J, sizes_->gap_tolerance_J());
  } else if (pieces_) {
    // A step that is taken as a whole has the tolerance of the method, whatever the one before it was.
    const bool is_piece = whole_ && takes_pieces() && pieces_->is_in_pieces();
    plan.rule.energy_tolerance_J =
        is_piece ? std::max(energy_tolerance_J, pieces_->gap_tolerance_J()) : energy_tolerance_J;
  }
  step_.iterate();
  certificate_->begin(step_.start());
  moments.inner_end = step_.inner_end();
}

/// Attempts the step again, with damped stages of the storages beside parts that change over in it. Returns how often.
int WaveEngine::damp_what_changes_over(Moments& moments) {
  // Each attempt shows with its inputs what else becomes stiff.
  constexpr int kMostAttempts = 4;
  int attempts = 0;
  for (; attempts < kMostAttempts; ++attempts) {
    together().fetch_next();
    const WaveState& next = step_.next();
    const std::span<const int> found =
        change_over_->to_damp({waves_, record(), next.record.data(), next.a.data(), next.b.data()});
    if (found.empty()) break;
    set_damped(found, true);
    step_.freeze(time_s());  // of a part of a step that is cut where that begins
    iterate(moments);
  }
  return attempts;
}

/// After the commit: storages that move smoothly again conserve from the next step on.
void WaveEngine::leave_what_has_settled() {
  together().fetch();
  const WaveState& now = step_.now();
  set_damped(change_over_->to_leave({waves_, step_.next().record.data(), now.record.data(),
                                     now.a.data(), now.b.data()}),
             false);
}

/// Commits again, with other waves, the islands whose result no energy pays for.
void WaveEngine::guard_step(Moments& moments) {
  step_.guard();
  if (scheduler_ && guarded()) {  // also where it has looked and did not act
    moments.guard_s = seconds(Clock::now() - step_.tallied());
  }
  if (looks_at_all()) together().fetch_next();
}

/// Closes the accounts of the step, whose size is `step_s`, and makes its end, at `end_s`, the current state.
void WaveEngine::commit(StepReport& report, double end_s, double step_s, Moments& moments) {
  StepClock& clock = step_.clock();
  const bool is_piece = whole_ && whole_->pieces > 0;  // the last of several
  report.step_s = step_s;
  if (step_.keeps_ledger()) {
    report.energy = step_.close();
    if (watch_ && !is_piece) {
      watch_->note_energy(clock.steps(), report.energy, step_.wave_sums());
    }
  }
  if (changes_ && changes_->next(clock.time_s(), 2.0 * step_s) <= end_s) {
    changes_->for_each_within(clock.time_s(), end_s, [&](int input) {
      watch_->look_closely(clock.steps(), ResolutionWatch::kSource + input);
    });
  }
  const bool has_cut_inputs = whole_ && whole_->has_cut_inputs;
  const bool watched = !is_piece && is_watched() && together().is_first() && looks_in_time();
  const auto timed = [&](const auto& look) {
    const auto start = scheduler_ ? Clock::now() : Clock::time_point();
    look();
    if (scheduler_) moments.examined_s += seconds(Clock::now() - start);
  };
  if (hidden_ && together().is_first() && looks_in_time()) {
    const bool is_cut = whole_ && whole_->is_cut;
    timed([&] { hidden_->search(clock.steps(), clock.time_s(), step_s, run_.rule(), is_cut); });
  }
  if (watched) {
    timed([&] {
      if (changes_ && changes_->displacement_jumps(clock.time_s(), step_s)) {
        watch_->pass_over(clock.steps());
      } else {
        watch_->look(clock.steps(), record(), incident(), next());
      }
      if (hidden_ && !has_cut_inputs)
        hidden_->look(clock.steps(), clock.time_s(), step_s, run_.rule());
    });
  }
  step_.accept(waves_.step_s());
  sizes_ ? clock.advance_to(end_s, step_s) : clock.advance(step_s);
  states_.forget();
  if (watched && together().is_alone()) {
    timed([&] {
      watch_->look_at_ports(step_.now().a.data(), step_.now().b.data(), port_waves_, port_weights_);
    });
  }
  if (watched && scheduler_) {
    constexpr double kKept = 0.9;
    look_s_ = std::max(moments.examined_s, kKept * look_s_);
  }
  if (step_.keeps_ledger()) {
    if (options_.certify == Certify::full) {
      certificate_->examine(step_.next().record.data(),  // the record that the step began with
                            clock.steps() - 1, step_.outcomes(), report.energy,
                            step_.is_accelerated() || step_.is_any_engaged());
    }
    certificate_->take(step_.ledger());
  }
  if (whole_) join_pieces(report);
  count_iterations(report);
}

/// Records the effort of the inner iteration, for the accounts of the run and for later choices.
void WaveEngine::count_iterations(const StepReport& report) {
  const std::int64_t steps = step_.clock().steps();
  count(report, step_.has_tolerance(), statistics_);
  if (step_.has_tolerance() && !report.converged && !(whole_ && whole_->has_missed)) {
    note_miss(steps - 1, report);
  }
  together().keep_name(0, certificate().worst_passivity_part);
  together().keep_name(1, certificate().missed.part);
  tuner().observe(steps, report.iterations, report.converged, report.rescues > 0);
  statistics_.rejected_trials += report.rejected_trials;
  statistics_.linearisations += report.linearisations;
  statistics_.rescues += report.rescues;
  if (auto& interface = step_.interface()) {
    interface->watch(step_.outcomes(), report.rescues > 0, steps);
  }
}

void WaveEngine::note_miss(std::int64_t step, const StepReport& report) {
  // Islands that met their tolerance have the gap of the last evaluation that their task happened to make.
  const auto is_missing = [this](int island) { return !step_.outcomes()[at(island)].converged; };
  const auto find = [&] {
    return together().largest_share(waves_.system(), step_.residual(), is_missing);
  };
  if (together().is_alone()) return certificate_->note_miss(step, report, find);
  const InterfaceResidual::Share found = find();  // all ranks look together
  certificate_->note_miss(step, report, [&] { return found; });
}

void WaveEngine::note_times(StepReport& report, const Moments& moments, bool is_piece) {
  const Clock::time_point end = Clock::now();
  report.times = {seconds(moments.ready - moments.start),
                  seconds(moments.inner_end - moments.ready), seconds(end - moments.inner_end)};
  if (profiler_) {
    const StepProfiler::Times times{moments.start, moments.ready, moments.inner_end, end};
    if (is_piece) {
      profiler_->end_piece(step_.clock().steps(), times);
    } else {
      profiler_->end(step_.clock().steps() - 1, times, report.iterations);
    }
  }
  if (whole_) {
    const StepTimes& before = whole_->report.times;
    report.times.begin_s += before.begin_s;
    report.times.iterate_s += before.iterate_s;
    report.times.commit_s += before.commit_s;
  }
  if (scheduler_) {
    report.slack_s = scheduler_->finish({.iterations = report.iterations,
                                         .inner_end = moments.inner_end,
                                         .end = end,
                                         .guard_s = moments.guard_s,
                                         .examined_s = moments.examined_s,
                                         .residual = report.residual,
                                         .converged = report.converged || !step_.has_tolerance(),
                                         .out_of_time = report.reason == StopReason::deadline});
  }
}

/// Under a deadline the impedances are examined after the step, in time that is left over, and changed where there is
/// time for that. Where there never is, they stay.
void WaveEngine::retune_in_time_left(Moments& moments) {
  if (!scheduler_ || !tuner().follows_state()) return;
  const std::int64_t steps = step_.clock().steps();
  if (!tuned_ && !tuner().is_due(steps)) return;
  const auto start = Clock::now();
  const auto took = [](Clock::time_point since, double& usual_s) {
    constexpr double kKept = 0.9;
    usual_s = std::max(seconds(Clock::now() - since), kKept * usual_s);
  };
  try {
    if (!tuned_ && scheduler_->deadline_s() > change_s_ && scheduler_->fits(start, check_s_)) {
      tuned_ = tuner().retuned(steps, [this](int part) { return state(part); });
      Clock::spend(Work::check);
      took(start, check_s_);
    }
    const auto begin = Clock::now();
    if (tuned_ && scheduler_->fits(begin, change_s_)) {
      const std::vector<double> tuned = *std::exchange(tuned_, std::nullopt);
      scatter_again(tuned);
      tuner().accept(tuned);
      Clock::spend(Work::change);
      took(begin, change_s_);
    }
  } catch (const std::exception&) {  // the impedances in force stay
    tuned_.reset();
    ++tuning_.failures;
    tuner().refuse(steps);
  }
  moments.examined_s += seconds(Clock::now() - start);
}

/// Where parts have moved on since the last factors, solves would never converge again if no step had time for both.
void WaveEngine::plan_renewal(bool converged) {
  constexpr int kMostPatience = 64;
  if (!scheduler_ || !(linearise_s_ > 0.0)) return;
  bool& renews = step_.plan().rule.renews_for_later;
  if (converged) {
    renewal_ = {};
    renews = false;
  } else if (scheduler_->solves()) {
    if (renews) {
      renewal_ = {.wait = renewal_.patience + 1,
                  .patience = std::min(2 * renewal_.patience, kMostPatience)};
    }
    renews = --renewal_.wait <= 0;
  }
}

/// Whether there is time to examine the step.
bool WaveEngine::looks_in_time() {
  if (!scheduler_ || scheduler_->fits(Clock::now(), look_s_)) return true;
  constexpr double kKept = 0.98;
  look_s_ *= kKept;  // what once took long may be short again
  return false;
}

void WaveEngine::enter() {
  if (scheduler_) entered_ = Clock::now();
}

double WaveEngine::time_left_s() const {
  return scheduler_ ? scheduler_->left_s(Clock::now()) : StepEngine::time_left_s();
}

void WaveEngine::extend(StepReport& report) {
  if (scheduler_) report.slack_s = scheduler_->extend(Clock::now());
}

/// Sets impedances that follow the state again if they are off.
void WaveEngine::retune() {
  if (!tuner().follows_state()) return;
  const auto state_of = [this](int part) { return state(part); };
  try {
    const auto tuned = tuner().retuned(step_.clock().steps(), state_of);
    if (!tuned) return;
    scatter_again(*tuned);
    tuner().accept(*tuned);
  } catch (const std::exception&) {  // the impedances in force stay
    ++tuning_.failures;
    tuner().refuse(step_.clock().steps());
  }
}

/// Waits until the step is due, if there is a pace, and sets its deadline.
Clock::time_point WaveEngine::await_turn(double step_s) {
  const Clock::time_point awaited = pace_.await(step_.clock().time_s());
  const Clock::time_point entered = std::exchange(entered_, {});
  const bool is_paced = options_.time.pace > 0.0;
  const bool was_early = is_paced && pace_.left_s(step_.clock().time_s(), entered) > 0.0;
  const Clock::time_point now = was_early || entered == Clock::time_point() ? awaited : entered;
  const double deadline = options_.time.deadline_s > 0.0 ? options_.time.deadline_s
                                                         : std::numeric_limits<double>::infinity();
  scheduler_->set_deadline(std::min(deadline, pace_.left_s(step_.clock().time_s() + step_s, now)));
  const double late_s = is_paced ? -pace_.left_s(step_.clock().time_s(), now) : 0.0;
  // A step without an evaluation would be worth less than one that ends late: what is left of each period makes up for it.
  constexpr double kLeast = 0.5;
  const double least_s = is_paced ? std::min(deadline, kLeast * step_s / options_.time.pace) : 0.0;
  scheduler_->begin(now, late_s, least_s);
  return now;
}

void WaveEngine::failed(const PhaseStatus& status, int iteration) {
  const System& system = waves_.system();
  const int part = std::max(status.part, 0);
  FailedSolve solve = failed_solve(status);
  std::string detail = status.detail;
  // In slices the part may be another one's.
  const Signature* const signature =
      together().has_whole() ? &system.parts()[at(part)].component->signature() : nullptr;
  if (signature != nullptr && status.fault == StepFault::not_finite && detail.empty()) {
    if (solve.inputs.empty() && together().is_alone() && status.part >= 0) {
      const PartSlot& slot = waves_.slot(part);
      const BatchSlot& batch = waves_.batch(slot.batch);
      const auto count = at(batch.batch->input_size());
      const double* const own = step_.input().data() + batch.input + at(slot.lane) * count;
      if (batch.driven) solve.inputs.assign(own, own + count);
    }
    detail = text_of_bad_input(solve, *signature, step_.clock().time_s());
  }
  if (signature != nullptr && status.fault == StepFault::not_converged && detail.empty()) {
    const Subsystem* const physics = system.parts()[at(part)].port_hamiltonian();
    const bool may_jump =
        physics != nullptr && !physics->constant_structure() &&
        (dynamic_cast<const BentStorage*>(physics) != nullptr || !physics->state_levels().empty());
    if (may_jump) {
      const bool has_one =
          signature->state_size() == 1 && system.parts()[at(part)].component->stages() > 1;
      detail = fmt::format(
          "its J, R or G depend on its state; where they jump, as by if(), a state may slide along "
          "the jump. Let them rise over a width, as tanh does{}",
          has_one ? ", or take one stage (--set /method/stages=1)" : "");
    }
  }
  StepError error(together().name_of(system, part), step_.clock().steps(), iteration,
                  options_.method.waves().iterations, status.fault, detail);
  if (signature != nullptr) {
    std::string text = text_of_failed(solve, *signature);
    const bool may_leave = !system.parts()[at(part)].component->capabilities().linear;
    if (status.fault == StepFault::not_finite && detail.empty() && may_leave && !text.empty()) {
      text +=
          ", a step of this size may lead to where its stored energy or the gradient of that is "
          "not finite";
    }
    error.with(std::move(solve), std::move(text));
  }
  throw error;
}

/// The data on a failed solve in the record of this process.
FailedSolve WaveEngine::failed_solve(const PhaseStatus& status) const {
  if (!together().is_alone() || status.part < 0) return {};
  const PartSlot& slot = waves_.slot(status.part);
  const BatchSlot& batch = waves_.batches()[at(slot.batch)];
  FailedSolve out;
  try {
    if (status.fault != StepFault::threw) {  // a part that threw is not called again
      out = batch.batch->failed_solve(slot.lane, step_.now().record.data() + batch.record);
    }
    const Component& component = *waves_.system().parts()[at(status.part)].component;
    if (component.stages() > 1 && component.substeps() == 1) {  // inputs are scaled by √bᵢ
      const StageRule& rule = component.stage_rule();
      const std::size_t each = out.inputs.size() / at(rule.count);
      for (std::size_t i = 0; i < out.inputs.size(); ++i) {
        out.inputs[i] /= std::sqrt(rule.b[i / each]);
      }
    }
    if (out.state.empty()) {
      out.state.resize(at(batch.batch->state_size()));
      waves_.get_state(status.part, step_.now().record.data(), out.state.data());
    }
  } catch (const std::exception&) {  // thrown by a callback: nothing is known
  }
  return out;
}

// Steps that choose their size: attempts, which may be taken back.

void WaveEngine::use(double step_s) {
  if (step_s == waves_.step_s()) return;
  if (!together().has_whole()) {
    throw ConfigError("/time/step_s", "a system in slices takes steps of one size");
  }
  together().fetch();
  const std::vector<double> old(waves_.impedance().begin(), waves_.impedance().end());
  const double old_step_s = waves_.step_s();
  levels_.switch_to(step_s, in_force());
  if (double* const column = step_.ledger().columns().numerical_dissipation_J; column != nullptr) {
    // Batches of another size may have no damped stages, and leave it as it is.
    std::fill_n(column, waves_.entry_count(), 0.0);
  }
  WaveState& now = step_.now();
  if (has_stepped()) rescatter(waves_, old, old_step_s, now.a, now.b);
  rebind();
}

StepReport WaveEngine::attempt(double time_s) {
  Moments moments;
  step_.freeze(time_s);
  iterate(moments);
  together().fetch_next();
  return step_.report();
}

StepReport WaveEngine::attempt_to_commit(double time_s) {
  retune();
  attempted_ = {};
  if (is_timed()) attempted_.start = Clock::now();
  step_.freeze(time_s);
  iterate(attempted_);
  guard_step(attempted_);
  return step_.report();
}

void WaveEngine::commit(StepReport& report, double end_s) {
  if (whole_ && end_s < whole_->end_s) return commit_piece(report, end_s);
  if (whole_) step_.clock() = whole_->clock;
  commit(report, end_s, whole_ ? whole_->step_s : waves_.step_s(), attempted_);
  if (whole_) whole_->time_s = end_s;
  if (is_timed()) note_times(report, attempted_);
}

void WaveEngine::go_on() { step_.go_on(); }

void WaveEngine::save() {
  together().fetch();
  const WaveState& now = step_.now();
  saved_.record.assign(now.record.begin(), now.record.end());
  saved_.a.assign(now.a.begin(), now.a.end());
  saved_.b.assign(now.b.begin(), now.b.end());
  saved_.impedance.assign(waves_.impedance().begin(), waves_.impedance().end());
  saved_.step_s = waves_.step_s();
}

void WaveEngine::restore() {
  WaveState& now = step_.now();
  std::ranges::copy(saved_.record, now.record.begin());
  std::ranges::copy(saved_.a, now.a.begin());
  std::ranges::copy(saved_.b, now.b.begin());
  if (has_stepped()) {
    rescatter(waves_, saved_.impedance, saved_.step_s, now.a, now.b);
  }
  step_.restored();
}

LawEnds::Error WaveEngine::error_behind_stages() {
  if (!law_ends_ || law_ends_->empty()) return {};
  const WaveState& next = step_.next();
  const auto input = [&](int port, int stage) {
    const std::size_t wave = offset_of(port, stage);
    const EffortFlow own = WaveTransform(waves_.impedance()[wave], waves_.step_s())
                               .to_effort_flow({next.a[wave], next.b[wave]});
    const ScalarPort& place = system().scalar_ports()[at(port)];
    const Port& of_part =
        system().parts()[at(place.part)].component->signature().ports[at(place.port)];
    const double value = of_part.causality == Causality::effort_in ? own.effort : own.flow;
    return value / run_.weight(stage);
  };
  const auto state = [&](int part) -> std::span<const double> {
    end_state_.resize(at(waves_.batch(waves_.slot(part).batch).batch->state_size()));
    waves_.get_state(part, next.record.data(), end_state_.data());
    return end_state_;
  };
  return law_ends_->error(waves_.step_s(), run_.rule(), input, state);
}

// Several ranks.

void WaveEngine::follow(const Hooks& hooks) {
  hooks_ = &hooks;
  together().follow(hooks.told);
}

void WaveEngine::carry_out(Together::Order::Kind kind, double value) {
  if (kind == Together::Order::Kind::settings_changed) return settings_changed();
  try {
    const StepReport report =
        kind == Together::Order::Kind::step ? step_by(value) : step_towards(value);
    if (hooks_->stepped) hooks_->stepped(report);
  } catch (const StepError&) {  // rank 0 reports it
  } catch (const ConfigError&) {
  }
}

}  // namespace portwave
