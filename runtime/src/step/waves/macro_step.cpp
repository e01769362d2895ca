#include "step/waves/macro_step.hpp"

#include <algorithm>
#include <utility>

#include "parallel/clock.hpp"
#include "portwave/coupling/energy/step_certifier.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "step/non_finite.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {

// The step.

/// Accepting a step has frozen the record except for external inputs. After a failed step all of it is frozen
/// again, since solvers keep warm starts there.
bool MacroStep::freeze(double time_s) {
  revocable_ = false;
  if (!is_driven_ && !stale_) return true;
  const double* driven = nullptr;
  PhaseStatus failure;
  if (waves_.driven()) {
    waves_.sample_inputs(time_s, input_.data(), failure, settings_, moved_jumps_);
    driven = input_.data();
  }
  failure = together_.merged(std::move(failure));
  if (!failure.ok()) return fail(failure, -1);
  failure = together_.freeze(waves_, now_.record.data(), driven, /*driven_only=*/!stale_);
  if (!failure.ok()) return fail(failure, -1);
  stale_ = false;
  return true;
}

/// Runs the inner iteration and commits into the next state.
bool MacroStep::iterate() {
  begin_iteration();
  revocable_ = true;
  const StepResult result = execute(plan_);
  out_of_time_ = result.out_of_time;
  inner_end_ = result.inner_end;
  if (result.failed_at >= 0) return fail(result);
  together_.note_committed();
  return true;
}

/// Attempts that were not summed up, since others took their place, leave sums of chunks.
StepResult MacroStep::execute(const StepPlan& plan) {
  ledger_.forget_examined();
  return executor_->execute(arrays(), plan, outcomes_);
}

/// The inner iteration or the commit has failed.
bool MacroStep::fail(const StepResult& result) {
  const bool at_commit = result.failed_at == TaskOutcome::kCommit;
  if (result.failure.fault == StepFault::not_finite && is_repeatable_ && together_.has_whole()) {
    // The part that notices a NaN may have received it.
    together_.note_written();
    together_.fetch();
    stale_ = true;
    const auto found = find_non_finite(waves_, update_, now_.record.data(),
                                       waves_.driven() ? input_.data() : nullptr, start(),
                                       result.failed_at, outcomes_);
    if (found && !failures_.is_out(found->failure.part)) {
      return fail(found->failure, found->iteration);
    }
  }
  return fail(result.failure, at_commit ? plan_.rule.budget : result.failed_at);
}

bool MacroStep::guard() { return hold_to_tanks() && take_final_steps(); }

/// Sums up the committed step, and commits again the islands that would overdraw a tank.
bool MacroStep::hold_to_tanks() {
  if (!keeps_ledger_) return true;
  if (!ledger_.tally(committed())) return fail_at_commit(energy_overflow());
  if (plan_.deadline != nullptr) tallied_ = Clock::now();
  if (!guard_) return true;
  constexpr double kKept = 0.98;
  leisure_s_ *= kKept;  // what once took long may be short again
  for (std::size_t i = 0; i < met_gap_J_.size(); ++i) {
    met_gap_J_[i] = outcomes_[i].converged ? outcomes_[i].gap.energy_J : PassivityGuard::kMissed;
  }
  if (!ledger_.may_overdraw()) {
    guard_->forget();
    return true;
  }
  // Its own sums take about as long as a commit.
  const DeadlineScheduler* const deadline = plan_.deadline;
  is_hurried_ = false;
  if (deadline != nullptr &&
      !deadline->fits(Clock::now(), std::max(3.0 * deadline->commit_s(), leisure_s_))) {
    hurry_guard();
  }
  Clock::spend(Work::commit);
  const bool is_held =
      !guard_->begin(ledger_, now_.record.data(), committed(), met_gap_J_) || commit_within_tanks();
  if (deadline != nullptr && !is_hurried_) {
    leisure_s_ = std::max(leisure_s_, seconds(Clock::now() - tallied_));
  }
  return is_held;
}

void MacroStep::hurry_guard() {
  guard_->hurry();
  is_hurried_ = true;
}

/// Commits the nearest waves for which there is energy, until the guard accepts. Where a deadline leaves no time
/// for another such commit and one in reserve, those that the guard finds at once must do.
bool MacroStep::commit_within_tanks() {
  const DeadlineScheduler* const deadline = plan_.deadline;
  double trial_s = deadline == nullptr ? 0.0 : deadline->commit_s();
  do {
    const auto start = deadline == nullptr ? Clock::time_point() : Clock::now();
    if (deadline != nullptr && !deadline->fits(start, 2.0 * trial_s)) hurry_guard();
    guard_->propose(next_.a.data());
    for (;;) {
      StepPlan again;
      again.recommit = guard_->searching();
      const StepResult result = execute(again);
      if (result.failed_at < 0) break;
      const int island = guard_->island_of(std::max(result.failure.part, 0));
      if (!guard_->reject(island)) return fail_at_commit(result.failure);
      guard_->propose(next_.a.data());
    }
    together_.note_committed();
    together_.fetch_next();
    if (!ledger_.tally(committed())) return fail_at_commit(energy_overflow());
    if (deadline != nullptr) trial_s = seconds(Clock::now() - start);
  } while (!guard_->review(ledger_, committed()));
  return true;
}

/// Parts that cannot go back take their step, now that its waves are known. Their defects are supplied to them.
bool MacroStep::take_final_steps() {
  if (final_.empty()) return true;
  executor_->for_each()(static_cast<int>(final_.size()), [this](int i) { take(final_[at(i)]); });
  PhaseStatus failure;
  for (FinalBatch& own : final_) failure.merge(std::move(own.failure));
  if (!failure.ok()) return fail_at_commit(failure);
  for (const FinalBatch& own : final_) {
    const BatchSlot& slot = waves_.batch(own.batch);
    for (std::size_t lane = 0; lane < own.energies.size(); ++lane) {
      defects_[own.first_part + lane].add(own.energies[lane]);
      ledger_.columns().external_supply_J[at(slot.entry) + lane] = own.energies[lane].defect_J;
    }
    ledger_.examine(own.batch, slot.all(), next_.a.data(), next_.b.data());
  }
  if (!ledger_.tally(committed())) return fail_at_commit(energy_overflow());
  return true;
}

void MacroStep::take(FinalBatch& own) {
  const BatchSlot& slot = waves_.batch(own.batch);
  const auto fail = [&](int lane, StepFault fault, std::string detail) {
    own.failure = {slot.parts[at(std::max(lane, 0))], fault, std::move(detail)};
  };
  own.failure = {};
  try {
    const LaneStatus status = dynamic_cast<const FinalSteps&>(*slot.batch)
                                  .take(slot.all(), now_.record.data() + slot.record,
                                        next_.record.data() + slot.record, own.energies.data());
    if (!status.ok()) fail(status.lane, status.fault, "");
  } catch (const LaneException& error) {
    fail(error.lane(), StepFault::threw, error.what());
  } catch (const std::exception& error) {
    fail(0, StepFault::threw, error.what());
  }
}

StepLedger MacroStep::close() {
  if (!keeps_ledger_) return {};
  if (!guard_) return ledger_.close(committed());
  const StepLedger energy =
      ledger_.close(committed(), guard_->alpha(), guard_->withheld_J(), guard_->tolerated());
  guard_->count(clock_.steps());
  return energy;
}

WaveSums::Sums MacroStep::wave_sums() {
  for (int i = 0; !together_.is_alone() && i < std::ssize(waves_.batches()); ++i) {
    wave_sums_->take(i, waves_.batch(i).all(), next_.a.data(), next_.b.data());
  }
  return wave_sums_->total();
}

void MacroStep::accept(double step_s) {
  revocable_ = false;
  std::swap(now_, next_);
  together_.note_accepted();
  if (extrapolated_) extrapolated_->observe(now_.a.data(), now_.b.data(), step_s);
}

void MacroStep::go_on() {
  std::swap(now_, next_);
  together_.note_accepted();
  goes_on_ = true;
}

void MacroStep::restored() {
  together_.note_restored();
  stale_ = true;
  goes_on_ = false;
}

void MacroStep::read_back() {
  // Steps leave the lanes that pad a group as they are: on both sides these are what was read.
  std::ranges::copy(now_.record, next_.record.begin());
  std::ranges::copy(now_.a, next_.a.begin());
  std::ranges::copy(now_.b, next_.b.begin());
  together_.note_restored();
  goes_on_ = false;
}

StepReport MacroStep::report() const {
  StepReport report;
  if (plan_.is_unwatched()) {  // so that nothing else is known about it
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
  if (interface_ && !without_solves_) {
    report.linearisations = interface_->current().linearisation_evaluations();
  }
  report.converged = converged;
  if (converged) {
    report.reason = by_energy ? StopReason::energy_tolerance : StopReason::tolerance;
  } else if (out_of_time_) {
    report.reason = StopReason::deadline;
  }
  return report;
}

// Within a step.

void MacroStep::begin_iteration() {
  if (extrapolated_ &&
      (goes_on_ || plan_.rule.budget == 0 || !extrapolated_->form(start_.data()))) {
    std::ranges::copy(now_.b, start_.begin());
  }
  if (acceleration_) acceleration_->begin();
  if (interface_) begin_interface();
}

/// Where a deadline leaves no time for solves, or plain waves make more of it, the step is one of plain waves, and
/// as fast as these: those of the method, or where it has none averaged ones.
void MacroStep::begin_interface() {
  if (plan_.deadline == nullptr) return interface_->current().begin();
  const auto start = Clock::now();
  interface_->current().begin();  // makes the factors of linear islands where a part has changed
  plan_.deadline->took(DeadlineScheduler::Solve::none, seconds(Clock::now() - start));
  without_solves_ = !plan_.deadline->solves();
  const bool interface = method_.kind == WaveUpdate::interface;
  plan_.rule.interface = !without_solves_ && (interface || !method_.interface_islands.empty());
  plan_.rule.update =
      without_solves_ && interface ? InnerUpdate{update_rule_of(WaveUpdate::douglas_rachford), 1.0}
                                   : update_;
}

bool MacroStep::fail(const PhaseStatus& status, int iteration) {
  stale_ = true;
  residual_.forget();
  if (interface_ && std::exchange(revocable_, false)) interface_->current().revoke();
  failures_.failed(status, iteration);
  return false;
}

PhaseStatus MacroStep::energy_overflow() const {
  return {ledger_.first_non_finite(), StepFault::not_finite, "its energy overflows"};
}

// Setting up.

MacroStep::MacroStep(WaveDiscretisation& waves, const WaveCoupling& method,
                     std::vector<double> settings, const LedgerOptions& ledger, double start_s,
                     Failures& failures, Together& together)
    : waves_(waves),
      method_(method),
      failures_(failures),
      together_(together),
      memory_({{2, waves.record_size()}, {6, at(waves.wave_size())}}),
      now_{memory_.take(waves.initial_record()), memory_.take(at(waves.wave_size())),
           memory_.take(initial_waves(waves, method))},
      next_{memory_.take(now_.record.size()), memory_.take(now_.a.size()),
            memory_.take(now_.b.size())},
      u_(memory_.take(now_.b.size())),
      b_trial_(memory_.take(now_.b.size())),
      input_(waves.input_size(), 0.0),
      settings_(std::move(settings)),
      outcomes_(at(waves.system().island_count())),
      ledger_(waves, now_.record.data(), now_.b.data(), ledger),
      residual_(waves),
      clock_(start_s),
      is_driven_(together.any(waves.driven())),
      is_repeatable_(unrepeatable_parts(waves).empty()) {
  for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
    const BatchSlot& slot = waves.batch(i);
    if (dynamic_cast<const FinalSteps*>(slot.batch) == nullptr) continue;
    final_.push_back({i, defects_.size(), std::vector<FinalStep>(slot.parts.size()), {}});
    for (const int part : slot.parts) defects_.push_back({.part = part});
  }
}

void MacroStep::prepare(const WaveCoupling& method, const StagedRun& run, bool has_tolerance,
                        bool keeps_ledger) {
  method_ = method;
  const bool interface = method.kind == WaveUpdate::interface;
  if (interface) {
    method_.relaxation = 1.0;
    method_.acceleration = 0;
  }
  const WaveCoupling& m = method_;
  update_ = inner_update_of(m);
  has_tolerance_ = has_tolerance;
  keeps_ledger_ = keeps_ledger;
  if (m.tolerance_per_part) residual_.judge_parts();
  if (m.guard) guard_.emplace(waves_, together_.slices());
  if (m.guard && has_tolerance_) met_gap_J_.resize(outcomes_.size());
  if (m.start == InnerStart::extrapolated) {
    extrapolated_.emplace(waves_, run);
    start_.assign(now_.b.begin(), now_.b.end());
  }
  if (m.acceleration > 0) acceleration_.emplace(waves_, m.acceleration);
  if (InterfaceSolvers::are_needed(m)) interface_.emplace(waves_, m);
  plan_.rule = {.budget = m.iterations,
                .update = update_,
                .tolerance = m.tolerance,
                .energy_tolerance_J = m.energy_tolerance_J,
                .tolerance_per_part = m.tolerance_per_part,
                .accelerated = acceleration_.has_value(),
                .interface = interface || !m.interface_islands.empty(),
                .rescue_after = m.rescue_after};
}

void MacroStep::rewind(const WaveCoupling& method, double start_s) {
  std::ranges::fill(outcomes_, IslandOutcome{});
  for (PartDefects& own : defects_) own = {.part = own.part};
  for (const std::span<double> own : {now_.record, next_.record, now_.a, next_.a}) {
    std::ranges::fill(own, 0.0);
  }
  std::ranges::copy(initial_waves(waves_, method), now_.b.begin());
  clock_ = StepClock(start_s);
  if (extrapolated_) extrapolated_->forget();
  if (interface_) interface_->restart();
  revocable_ = goes_on_ = false;
  stale_ = true;
}

void MacroStep::restart_waves() {
  std::ranges::copy(initial_waves(waves_, method_), now_.b.begin());
  for (const std::span<double> own : {now_.a, next_.a}) std::ranges::fill(own, 0.0);
  if (extrapolated_) extrapolated_->forget();
  if (interface_) interface_->restart();
  revocable_ = goes_on_ = false;
  stale_ = true;
}

MacroStep::Rehearsal MacroStep::find_waves(int most) {
  constexpr int kRehearsals = 3;
  StepPlan given = plan_;
  Rehearsal out;
  plan_.timed = true;
  plan_.rule.budget = std::min(plan_.rule.budget, most);
  plan_.deadline = nullptr;
  plan_.rule.deadline = nullptr;
  plan_.rule.update = update_;
  plan_.rule.interface =
      method_.kind == WaveUpdate::interface || !method_.interface_islands.empty();
  without_solves_ = false;
  const auto leave = [&] {
    plan_ = std::move(given);
    std::ranges::fill(outcomes_, IslandOutcome{});
    residual_.forget();
    revocable_ = false;
    stale_ = true;
  };
  const auto attempt = [&] {
    if (!freeze(clock_.time_s())) return false;
    const auto frozen = Clock::now();
    if (!iterate() || (keeps_ledger_ && !ledger_.tally(committed()))) return false;
    const auto end = Clock::now();
    const int evaluations = report().iterations;
    out.take(evaluations == 1 ? seconds(inner_end_ - frozen) : Rehearsal::kUnknown,
             seconds(end - inner_end_));
    stale_ = true;
    return true;
  };
  try {
    if (attempt()) {
      std::ranges::copy(next_.b, now_.b.begin());
      out = {};  // caches were cold
      for (int i = 0; i < kRehearsals && attempt(); ++i) {
      }
    }
  } catch (...) {
    leave();
    throw;
  }
  leave();
  freeze(clock_.time_s());
  return out;
}

void MacroStep::states_jumped() {
  if (extrapolated_) extrapolated_->forget();
  revocable_ = goes_on_ = false;
  stale_ = true;
}

void MacroStep::bind(Executor& executor) {
  executor_ = &executor;
  if (wave_sums_) wave_sums_->arrange();
  arrays_[0] = arrays_between(now_, next_);
  arrays_[1] = arrays_between(next_, now_);
  for (const StepArrays& arrays : arrays_) executor.bind(arrays);
}

StepArrays MacroStep::arrays_between(const WaveState& from, const WaveState& to) {
  return {.record = from.record.data(),
          .next = to.record.data(),
          .b = extrapolated_ ? start_.data() : from.b.data(),
          .b_next = to.b.data(),
          .u = u_.data(),
          .b_trial = b_trial_.data(),
          .a = to.a.data(),
          .ledger = keeps_ledger_ ? &ledger_ : nullptr,
          .columns = keeps_ledger_ ? ledger_.columns() : EnergyColumns{},
          .sums = wave_sums_ ? &*wave_sums_ : nullptr,
          .residual = &residual_,
          .next_iterate = next_iterate()};
}

NextIterate MacroStep::next_iterate() {
  const bool solves = interface_ && !without_solves_;
  return {acceleration_ ? &*acceleration_ : nullptr, solves ? &interface_->current() : nullptr};
}

/// The interface solver for the step size; not used if no solve fits.
const StepArrays& MacroStep::arrays() {
  StepArrays& own = arrays_[arrays_[0].record == now_.record.data() ? 0 : 1];
  if (interface_) own.next_iterate = next_iterate();
  return own;
}

std::size_t MacroStep::bytes() const {
  const std::size_t wave = now_.b.size() * sizeof(double);
  return ledger_.bytes() + residual_.bytes() + (wave_sums_ ? wave_sums_->bytes() : 0) +
         (extrapolated_ ? extrapolated_->bytes() + wave : 0) + (guard_ ? guard_->bytes() : 0) +
         (acceleration_ ? acceleration_->bytes() : 0) +
         (interface_ ? interface_->current().bytes() : 0) + 6 * wave +
         outcomes_.capacity() * sizeof(IslandOutcome) + input_.capacity() * sizeof(double);
}

}  // namespace portwave
