#include "step/wave_engine.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/gauss_stages.hpp"
#include "step/fault_replay.hpp"
#include "step/guard_commit.hpp"
#include "step/wave_start.hpp"

namespace portwave {
namespace {

/// " q = 1 m, p = 2 kg m/s", of what has a name.
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

/// Where a solve failed, in a few words.
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

StepReport WaveEngine::step(double step_s) {
  if (lead_) lead_->orders().send_if_leading({RankOrder::step, step_s});
  const RankOrders::Common common(orders());
  if (step_s != waves_.step_s()) use(step_s);
  retune();  // not on the step's time
  Moments moments;
  if (is_timed()) moments.start = await_turn(step_s);

  freeze(clock_.time_s());
  StepReport report = iterate_and_commit(moments);
  keep_within_tanks();
  book(report, clock_.time_s() + step_s, step_s);

  if (is_timed()) note_times(report, moments);
  return report;
}

StepReport WaveEngine::step_towards(double limit_s) {
  if (!sizes_) return step(StepEngine::step_s());
  if (lead_) lead_->orders().send_if_leading({RankOrder::step_towards, limit_s});
  const RankOrders::Common common(orders());
  return sizes_->step(limit_s);
}

/// The commit has frozen the record but for external inputs. After a failed step all of it is
/// frozen again, for solvers keep warm starts there.
void WaveEngine::freeze(double time_s) {
  if (!is_driven_ && !stale_) return;
  const double* driven = nullptr;
  PhaseStatus failure;
  if (waves_.driven()) {
    waves_.sample_inputs(time_s, input_.data(), failure, settings_);
    driven = input_.data();
  }
  if (slices_) failure = runner_.shares->merged(std::move(failure));
  fail_if(failure, -1);
  fail_if(freeze_own(driven, /*driven_only=*/!stale_), -1);
  stale_ = false;
}

PhaseStatus WaveEngine::freeze_own(const double* driven, bool driven_only) {
  double* const record = now_.record.data();
  if (!lead_) return waves_.freeze_all(record, driven, driven_only);
  PhaseStatus failure;
  for (const TaskSlice& slice : runner_.shares->own_slices()) {
    if (driven_only && !waves_.batch(slice.batch).driven) continue;
    PhaseStatus own;
    if (!waves_.freeze(slice.batch, slice.lanes, record, driven, own)) {
      failure.merge(std::move(own));
    }
  }
  lead_->lanes().note_written();
  return runner_.shares->merged(std::move(failure));
}

/// Steps into the next record.
StepReport WaveEngine::iterate_and_commit(Moments& moments) {
  if (is_timed()) {
    moments.ready = Clock::now();
    if (profiler_) profiler_->begin(clock_.steps());
  }
  if (looks_at_all()) fetch();
  const StepResult result = run(is_timed());
  if (lead_) lead_->lanes().note_committed();
  moments.inner_end = result.inner_end;
  return summarise(result);
}

StepResult WaveEngine::run(bool timed) {
  const WaveCoupling& m = options_.method.waves();
  if (extrapolated_ && (goes_on_ || m.iterations == 0 || !extrapolated_->form(start_.data()))) {
    std::ranges::copy(now_.b, start_.begin());
  }
  certificate_->begin({start_of(now_.b), now_.b.size()});
  plan_.timed = timed;
  if (sizes_) {
    plan_.rule.tolerance = AdaptiveSteps::kResidualTolerance;
    plan_.rule.energy_tolerance_J = std::max(m.energy_tolerance_J, sizes_->gap_tolerance_J());
  }
  if (acceleration_) acceleration_->begin();
  if (interface_) begin_interface();
  StepResult result = runner_.executor->run(arrays(), plan_, outcomes_);
  if (result.failed_at < 0) return result;
  if (interface_) interface_->current().revoke();
  const bool at_commit = result.failed_at == TaskOutcome::kCommit;
  if (result.failure.fault == StepFault::not_finite) replay(result.failed_at);
  fail(result.failure, at_commit ? m.iterations : result.failed_at);
}

/// Where a deadline leaves no time for solves the step is one of plain waves, and as fast as theirs. Where other
/// islands have an update of their own that stays, and those that would solve are averaged.
void WaveEngine::begin_interface() {
  interface_->current().begin();
  if (!scheduler_ || options_.method.kind() != WaveUpdate::interface) return;
  without_solves_ = scheduler_->affords(Clock::now()) == DeadlineScheduler::Solve::none;
  plan_.rule.interface = !without_solves_;
  plan_.rule.update =
      without_solves_ ? InnerUpdate{update_rule_of(WaveUpdate::douglas_rachford), 1.0} : update_;
}

StepReport WaveEngine::summarise(const StepResult& result) const {
  StepReport report;
  if (plan_.is_unwatched()) {  // so that nothing else is known of it
    report.iterations = outcomes_.empty() ? 0 : plan_.rule.budget;
    return report;
  }
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
  if (interface_ && !without_solves_)
    report.linearisations = interface_->current().linearisation_evaluations();
  report.converged = converged;
  if (converged) {
    report.reason = by_energy ? StopReason::energy_tolerance : StopReason::tolerance;
  } else if (result.out_of_time) {
    report.reason = StopReason::deadline;
  }
  return report;
}

/// Sums up what was committed, and commits again what would overdraw a tank.
void WaveEngine::keep_within_tanks() {
  if (uses_ledger_) {
    if (!ledger_.tally(committed())) fail_at_commit_if(energy_overflow(ledger_));
    for (std::size_t i = 0; i < met_gap_J_.size(); ++i) met_gap_J_[i] = met_gap_J(outcomes_[i]);
    if (guard_ && guard_->begin(ledger_, now_.record.data(), committed(), met_gap_J_)) {
      const auto committed_anew = [this] {
        if (!lead_) return;
        lead_->lanes().note_committed();
        lead_->lanes().fetch_next();
      };
      fail_at_commit_if(commit_within_tanks(*guard_, ledger_, *runner_.executor, arrays(),
                                            outcomes_, committed_anew));
    }
  }
  if (looks_at_all()) fetch_next();
}

/// The step has happened: a step of `step_s` that leads to `end_s`.
void WaveEngine::book(StepReport& report, double end_s, double step_s) {
  report.step_s = step_s;
  if (uses_ledger_) {
    report.energy = guard_ ? ledger_.close(committed(), guard_->alpha(), guard_->withheld_J(),
                                           guard_->tolerated())
                           : ledger_.close(committed());
    if (guard_) guard_->count(clock_.steps());
  }
  if (watch_ && uses_ledger_) watch_->note_energy(clock_.steps(), report.energy);
  if (changes_ && changes_->next(clock_.time_s(), 2.0 * step_s) <= end_s) {
    watch_->look_closely(clock_.steps());
  }
  const bool watched = is_watched() && (!lead_ || lead_->orders().ranks().rank() == 0);
  if (watched) {
    watch_->look(clock_.steps(), now_.record.data(), next_.a.data(), next_.record.data());
  }
  accept(end_s, step_s);
  if (watched && !lead_) {
    watch_->look_at_ports(now_.a.data(), now_.b.data(), port_waves_, port_weights_);
  }
  if (uses_ledger_) {
    if (options_.certify == Certify::full) {
      certificate_->examine(
          next_.record.data(),  // what was the record of the step
          clock_.steps() - 1, outcomes_, report.energy,
          acceleration_.has_value() || (interface_ && interface_->is_any_engaged()));
    }
    certificate_->take(ledger_);
  }
  count_iterations(report);
}

void WaveEngine::accept(double end_s, double step_s) {
  std::swap(now_, next_);
  if (lead_) lead_->lanes().note_accepted();
  states_.forget();
  if (sizes_) {
    clock_.advance_to(end_s, step_s);
  } else {
    clock_.advance(step_s);
  }
  if (extrapolated_) extrapolated_->observe(now_.a.data(), now_.b.data(), step_s);
}

/// What the inner iteration took, for the accounts of the run and for the choices to come.
void WaveEngine::count_iterations(const StepReport& report) {
  count(report, has_tolerance_, statistics_);
  if (has_tolerance_ && !report.converged) {
    certificate_->note_miss(clock_.steps() - 1, report, largest_missing_share());
  }
  if (slices_) {
    slices_->keep_name(0, certificate().worst_passivity_part);
    slices_->keep_name(1, certificate().missed.part);
  }
  tuner().observe(clock_.steps(), report.iterations, report.converged, report.rescues > 0);
  statistics_.rejected_trials += report.rejected_trials;
  statistics_.linearisations += report.linearisations;
  statistics_.rescues += report.rescues;
  if (interface_) interface_->watch(outcomes_, report.rescues > 0, clock_.steps());
}

/// The part with most of the gap, of the islands that missed their tolerance. What is left of others is that
/// of whichever evaluation their task came to.
InterfaceResidual::Share WaveEngine::largest_missing_share() const {
  const auto is_missing = [&](int part) {
    return !outcomes_[static_cast<std::size_t>(waves_.system().island_of_part(part))].converged;
  };
  if (lead_) return lead_->lanes().largest_share(residual_, is_missing);
  InterfaceResidual::Share largest;
  for (std::size_t island = 0; island < outcomes_.size(); ++island) {
    if (outcomes_[island].converged) continue;
    largest.take(residual_.largest_share(static_cast<int>(island)));
  }
  return largest;
}

void WaveEngine::note_times(StepReport& report, const Moments& moments) {
  const Clock::time_point end = Clock::now();
  report.times = {seconds(moments.ready - moments.start),
                  seconds(moments.inner_end - moments.ready), seconds(end - moments.inner_end)};
  if (profiler_) {
    profiler_->end(clock_.steps() - 1, {moments.start, moments.ready, moments.inner_end, end},
                   report.iterations);
  }
  if (scheduler_) {
    const bool guarded = guard_ && !guard_->uses().empty();
    report.slack_s = scheduler_->finish(report.iterations, moments.inner_end, end, !guarded,
                                        report.converged || !has_tolerance_);
  }
}

/// Where impedances follow the state: sets them anew if they are off.
void WaveEngine::retune() {
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

/// Waits until the step is due, if there is a pace, and sets its deadline.
Clock::time_point WaveEngine::await_turn(double step_s) {
  if (!scheduler_) return Clock::now();
  const Clock::time_point now = pace_.await(clock_.time_s());
  const double deadline = options_.time.deadline_s > 0.0 ? options_.time.deadline_s
                                                         : std::numeric_limits<double>::infinity();
  scheduler_->set_deadline(std::min(deadline, pace_.left_s(clock_.time_s() + step_s, now)));
  scheduler_->begin(now);
  return now;
}

void WaveEngine::fail(const PhaseStatus& status, int iteration) {
  stale_ = true;
  const int part = std::max(status.part, 0);
  StepError error(slices_ ? slices_->name_of(part) : waves_.system().name_of_part(part),
                  clock_.steps(), iteration, options_.method.waves().iterations, status.fault,
                  status.detail);
  FailedSolve solve = failed_solve(status);
  if (!slices_) {
    std::string text =
        text_of_failed(solve, waves_.system().parts()[at(part)].component->signature());
    error.with(std::move(solve), std::move(text));
  }
  throw error;
}

/// What the record of this process has of it.
FailedSolve WaveEngine::failed_solve(const PhaseStatus& status) const {
  if (slices_ || lead_ || status.part < 0) return {};
  const PartSlot& slot = waves_.slot(status.part);
  const BatchSlot& batch = waves_.batches()[at(slot.batch)];
  FailedSolve out;
  try {
    if (status.fault != StepFault::threw) {  // what threw is not asked again
      out = batch.batch->failed_solve(slot.lane, now_.record.data() + batch.record);
    }
    const Component& component = *waves_.system().parts()[at(status.part)].component;
    if (component.stages() > 1 && component.substeps() == 1) {  // √bᵢ times what they are
      const GaussStages& rule = gauss_stages(component.stages());
      const std::size_t each = out.inputs.size() / at(rule.count);
      for (std::size_t i = 0; i < out.inputs.size(); ++i) {
        out.inputs[i] /= std::sqrt(rule.b[i / each]);
      }
    }
    if (out.state.empty()) {
      out.state.resize(at(batch.batch->state_size()));
      waves_.get_state(status.part, now_.record.data(), out.state.data());
    }
  } catch (const std::exception&) {  // of a callback: nothing is known
  }
  return out;
}

/// A NaN or infinity was noticed: fails with the first part and iteration that made one. Returns
/// when none did before, or when steps do not repeat.
void WaveEngine::replay(int noticed_at) {
  if (!is_repeatable_ || slices_) return;
  if (lead_) lead_->lanes().note_written();
  fetch();
  const double* driven = waves_.driven() ? input_.data() : nullptr;
  const auto found = find_non_finite(waves_, update_, now_.record.data(), driven,
                                     {start_of(now_.b), now_.b.size()}, noticed_at, outcomes_);
  if (found) fail(found->failure, found->iteration);
}

// Steps that choose their size try steps, and take them back.

void WaveEngine::use(double step_s) {
  if (step_s == waves_.step_s()) return;
  if (slices_) throw ConfigError("/time/step_s", "a system in slices takes steps of one size");
  fetch();
  const std::vector<double> old(waves_.impedance().begin(), waves_.impedance().end());
  const double old_step_s = waves_.step_s();
  levels_.switch_to(step_s, waves_);
  if (clock_.steps() > 0) rescatter(waves_, old, old_step_s, now_.a, now_.b);
  if (interface_) interface_->change(old_step_s, levels_);
  rebind();
}

StepReport WaveEngine::attempt(double time_s) {
  Moments moments;
  freeze(time_s);
  const StepReport report = iterate_and_commit(moments);
  fetch_next();
  return report;
}

StepReport WaveEngine::attempt_to_book(double time_s) {
  retune();
  attempted_ = {};
  if (is_timed()) attempted_.start = Clock::now();
  freeze(time_s);
  const StepReport report = iterate_and_commit(attempted_);
  keep_within_tanks();
  return report;
}

void WaveEngine::book(StepReport& report, double end_s) {
  book(report, end_s, waves_.step_s());
  if (is_timed()) note_times(report, attempted_);
}

void WaveEngine::go_on() {
  std::swap(now_, next_);
  if (lead_) lead_->lanes().note_accepted();
  goes_on_ = true;
}

void WaveEngine::save() {
  fetch();
  saved_.record.assign(now_.record.begin(), now_.record.end());
  saved_.a.assign(now_.a.begin(), now_.a.end());
  saved_.b.assign(now_.b.begin(), now_.b.end());
  saved_.impedance.assign(waves_.impedance().begin(), waves_.impedance().end());
  saved_.step_s = waves_.step_s();
}

void WaveEngine::restore() {
  if (lead_) lead_->lanes().note_restored();
  std::ranges::copy(saved_.record, now_.record.begin());
  std::ranges::copy(saved_.a, now_.a.begin());
  std::ranges::copy(saved_.b, now_.b.begin());
  if (clock_.steps() > 0) rescatter(waves_, saved_.impedance, saved_.step_s, now_.a, now_.b);
  stale_ = true;
  goes_on_ = false;
}

}  // namespace portwave
