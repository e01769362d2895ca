#include "ensemble/lane_chunk.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "step/fault_replay.hpp"
#include "step/guard_commit.hpp"
#include "step/wave_start.hpp"

namespace portwave {
namespace {

constexpr double kNoState = std::numeric_limits<double>::quiet_NaN();

}  // namespace

LaneChunk::LaneChunk(System system, int replicas, const StepperOptions& options)
    : system_(std::move(system)),
      run_(system_, options),
      replicas_(replicas),
      parts_(static_cast<int>(system_.parts().size()) / replicas),
      waves_(run_.stepped(), options.step_s, method().impedance,
             WaveDiscretisation::Grouping::together),
      memory_({{2, waves_.record_size()}, {6, at(waves_.wave_size())}}),
      record_(memory_.take(waves_.record_size())),
      next_(memory_.take(record_.size())),
      b_(memory_.take(at(waves_.wave_size()))),
      b_next_(memory_.take(b_.size())),
      a_(memory_.take(b_.size())),
      a_next_(memory_.take(b_.size())),
      u_(memory_.take(b_.size())),
      b_trial_(memory_.take(b_.size())),
      input_(waves_.input_size(), 0.0),
      settings_(system_.initial_settings()),
      outcomes_(at(replicas)),
      residual_(waves_),
      has_tolerance_(has_tolerance(run_.options().method)),
      statuses_(at(replicas)),
      met_gap_J_(has_tolerance_ && method().guard ? at(replicas) : 0),
      missed_(has_tolerance_ ? at(replicas) : 0) {
  const WaveCoupling& m = method();
  if (options.certify != Certify::none || m.guard) {
    ledger_ = std::make_unique<IslandLedger>(waves_, m.tank, m.guard);
  }
  if (m.guard) guard_ = std::make_unique<PassivityGuard>(waves_);
  if (m.acceleration > 0 && m.kind != WaveUpdate::interface) {
    acceleration_ = std::make_unique<Acceleration>(waves_, m.acceleration);
  }
  if (m.start == InnerStart::extrapolated) {
    extrapolated_ = std::make_unique<ExtrapolatedStart>(waves_, run_);
    start_.assign(b_.begin(), b_.end());
  }
  executor_ = make_serial_executor(waves_, whole_island_groups(waves_, declared_costs(waves_)));
  executor_->bind(arrays());
  executor_->bind(arrays(next_, record_, b_next_, b_, a_));
}

InnerUpdate LaneChunk::update() const {
  WaveCoupling own = method();
  if (own.kind == WaveUpdate::interface) own.relaxation = 1.0;
  return inner_update_of(own);
}

StepArrays LaneChunk::arrays(std::span<double> record, std::span<double> next, std::span<double> b,
                             std::span<double> b_next, std::span<double> a) {
  return {.record = record.data(),
          .next = next.data(),
          .b = extrapolated_ ? start_.data() : b.data(),
          .b_next = b_next.data(),
          .u = u_.data(),
          .b_trial = b_trial_.data(),
          .a = a.data(),
          .columns = ledger_ ? ledger_->columns() : EnergyColumns{},
          .residual = &residual_,
          .acceleration = acceleration_.get(),
          .interface = interface_.get()};
}

void LaneChunk::prepare_interface() {
  const WaveCoupling& m = method();
  const bool always = m.kind == WaveUpdate::interface;
  if (!always && m.interface_islands.empty() && m.rescue_after == 0) return;
  interface_ = std::make_unique<InterfaceSolver>(waves_, m.tolerance > 0.0 ? m.tolerance : 1e-10);
  const auto use = [&](int island) {
    if (interface_->use(island, true)) return;
    throw ConfigError("/method/kind", "\"interface\": the factors would take more than 1 GiB");
  };
  for (int island = 0; always && island < replicas_; ++island) use(island);
  for (const int island : m.interface_islands) use(island);
}

void LaneChunk::begin(const double* states) {
  std::ranges::fill(statuses_, ReplicaStatus{});
  std::ranges::fill(missed_, MissedTolerance{});
  std::ranges::fill(outcomes_, IslandOutcome{});
  alive_ = replicas_;
  resting_.clear();
  ignored_.assign(system_.parts().size(), 0);
  waves_.set_ignored({});
  clock_ = StepClock(run_.options().start_s);
  watch_ = {};
  if (extrapolated_) extrapolated_->forget();
  for (const std::span<double> own : {record_, next_, a_, a_next_}) {
    std::ranges::fill(own, 0.0);
  }
  std::ranges::copy(initial_waves(waves_, method()), b_.begin());
  const double* own = states;
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    batch.batch->set_state(slot.lane, own, record_.data() + batch.record);
    own += batch.batch->state_size();
  }
  prepare_interface();
  revocable_ = false;
  stale_ = true;
  if (ledger_) ledger_->begin(record_.data(), b_.data());
  check_states(states);
}

/// Replicas that cannot start where they are to.
void LaneChunk::check_states(const double* states) {
  const double* const first_states = states;
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    const Part& own = system_.parts()[at(part)];
    const auto size = at(own.component->signature().state_size());
    const std::span<const double> state(states, size);
    states += size;
    const int replica = replica_of(part);
    if (statuses_[at(replica)].failed) continue;
    std::string defect;
    if (!std::ranges::all_of(state, [](double value) { return std::isfinite(value); })) {
      defect = "a number in it is not finite";
    } else if (const Issues issues = own.component->check_initial_state(state.data());
               !issues.empty()) {
      defect = issues.front().what;
    } else if (ledger_ && !std::isfinite(ledger_->storage(part))) {
      defect = "its stored energy is not finite";
    }
    if (defect.empty()) continue;
    statuses_[at(replica)].part = own.name;
    statuses_[at(replica)].fault = StepFault::not_finite;
    take_out(replica,
             fmt::format("part {} cannot start from this state: {}", in_quotes(own.name), defect));
  }
  if (run_.options().start == Start::consistent) check_joints(first_states);
}

/// Replicas whose states violate a rigid joint. What enters such joints does not change in lanes.
void LaneChunk::check_joints(const double* states) {
  std::vector<std::span<const double>> by_part;
  for (const Part& part : system_.parts()) {
    const auto size = at(part.component->signature().state_size());
    by_part.emplace_back(states, size);
    states += size;
  }
  const StateInstant start = {.state = [&](int part) { return by_part[at(part)]; },
                              .input =
                                  [this](int part, int channel) {
                                    return system_.parts()[at(part)].inputs[at(channel)].at(
                                        0.0, settings_);
                                  }};
  const StateConstraints constraints(system_, start.state);
  for (const StateConstraints::Odds& odds : constraints.odds(start, kOddsShare)) {
    const int part = constraints.part(odds.violated.front());
    const int replica = replica_of(part);
    if (statuses_[at(replica)].failed) continue;
    statuses_[at(replica)].part = system_.parts()[at(part)].name;
    statuses_[at(replica)].fault = StepFault::at_odds;
    take_out(replica,
             fmt::format("states are at odds at {}: {}", constraints.joints(odds.violated.front()),
                         constraints.values(odds.violated.front(), start)));
  }
}

void LaneChunk::step(const double* settings) {
  const std::size_t inputs = settings_.size() / at(replicas_);
  std::copy_n(settings, settings_.size(), settings_.begin());
  for (std::size_t i = 0; i < settings_.size(); ++i) {
    if (std::isfinite(settings_[i])) continue;
    const int replica = static_cast<int>(i / inputs);
    settings_[i] = 0.0;
    if (statuses_[at(replica)].failed) continue;
    statuses_[at(replica)].fault = StepFault::not_finite;
    take_out(replica,
             fmt::format("settable input {} is not finite in step {}", i % inputs, clock_.steps()));
  }
  while (alive_ > 0 && !attempt()) {
  }
}

/// The macro-step. False: a replica has failed, and nothing has happened otherwise.
bool LaneChunk::attempt() {
  if (!resting_.empty()) rest();
  if (!freeze()) return false;
  const WaveCoupling& m = method();
  if (extrapolated_ && (m.iterations == 0 || !extrapolated_->form(start_.data()))) {
    std::ranges::copy(b_, start_.begin());
  }
  const bool interface = m.kind == WaveUpdate::interface || !m.interface_islands.empty();
  const StepPlan plan{.rule = {m.iterations, update(), m.tolerance, m.energy_tolerance_J,
                               m.tolerance_per_part, acceleration_ != nullptr, interface,
                               m.rescue_after}};
  if (acceleration_) acceleration_->begin();
  if (interface_) interface_->begin();
  revocable_ = true;
  const StepResult result = executor_->run(arrays(), plan, outcomes_);
  if (result.failed_at >= 0) return fail_at(result);
  if (ledger_) {
    ledger_->examine(a_next_.data(), b_next_.data());
    ledger_->tally(committed());
    if (!is_finite() || (guard_ && !keep_within_tanks())) return false;
    ledger_->close(committed(), guard_ ? guard_->tolerated() : std::span<const ToleratedDeficit>{});
  }
  count();
  accept();
  return true;
}

/// Parts of replicas that have failed.
void LaneChunk::rest() {
  for (const Resting& own : resting_) {
    const PartSlot& slot = waves_.slot(own.part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    batch.batch->set_state(slot.lane, own.state.data(), record_.data() + batch.record);
    for (int j = 0; j < batch.batch->wave_size(); ++j) {
      b_[at(slot.wave + j * slot.stride)] = 0.0;
    }
    const int inputs = batch.batch->input_size();
    for (int j = 0; j < inputs; ++j) input_[batch.input + at(slot.lane * inputs + j)] = 0.0;
    if (stale_ || batch.driven) continue;  // all is frozen below
    const int group = batch.batch->lane_group();
    const int first = slot.lane / group * group;
    PhaseStatus ignored;
    static_cast<void>(waves_.freeze(slot.batch,
                                    {first, std::min(first + group, batch.batch->lanes())},
                                    record_.data(), nullptr, ignored));
  }
}

bool LaneChunk::freeze() {
  if (!waves_.driven() && !stale_) return true;
  const double* driven = nullptr;
  PhaseStatus failure;
  if (waves_.driven()) {
    while (!waves_.sample_inputs(clock_.time_s(), input_.data(), failure, settings_)) {
      fail(failure.part, -1, failure.fault, failure.detail);
      if (alive_ == 0) return false;
      rest();
    }
    driven = input_.data();
  }
  failure = waves_.freeze_all(record_.data(), driven, /*driven_only=*/!stale_);
  if (!failure.ok()) {
    fail(failure.part, -1, failure.fault, failure.detail);
    return false;
  }
  stale_ = false;
  return true;
}

/// As for a stepper: a NaN is told of the part and the iteration that made it.
bool LaneChunk::fail_at(const StepResult& result) {
  const bool at_commit = result.failed_at == TaskOutcome::kCommit;
  const PhaseStatus& failure = result.failure;
  const int iteration = at_commit ? method().iterations : result.failed_at;
  if (failure.fault == StepFault::not_finite) {
    const std::span<const double> start = extrapolated_ ? std::span<const double>(start_) : b_;
    const double* driven = waves_.driven() ? input_.data() : nullptr;
    const auto found = find_non_finite(waves_, update(), record_.data(), driven, start,
                                       result.failed_at, outcomes_);
    stale_ = true;
    if (found && ignored_[at(found->failure.part)] == 0) {
      fail(found->failure.part, found->iteration, found->failure.fault, found->failure.detail);
      return false;
    }
  }
  fail(failure.part, iteration, failure.fault, failure.detail);
  return false;
}

/// Commits again, and tallies, the replicas that the guard searches: their lane groups, of which the
/// other lanes come to what they were.
bool LaneChunk::recommit(PhaseStatus& failure) {
  failure = {};
  const EnergyColumns columns = ledger_->columns();
  for (int i = 0; i < replicas_; ++i) {
    if (guard_->searching()[at(i)] == 0) continue;
    for (int part = i * parts_; part < (i + 1) * parts_; ++part) {
      const PartSlot& slot = waves_.slot(part);
      const StepBatch& batch = *waves_.batch(slot.batch).batch;
      const int first = slot.lane / batch.lane_group() * batch.lane_group();
      PhaseStatus own;
      if (!waves_.advance(slot.batch, {first, std::min(first + batch.lane_group(), batch.lanes())},
                          record_.data(), a_next_.data(), next_.data(), b_next_.data(), columns,
                          own)) {
        failure.merge(std::move(own));
      }
    }
  }
  if (!failure.ok()) return false;
  for (int i = 0; i < replicas_; ++i) {
    if (guard_->searching()[at(i)] != 0) ledger_->tally_again(i, committed());
  }
  return true;
}

/// What was tallied. False: replicas have failed.
bool LaneChunk::is_finite() {
  const int alive = alive_;
  for (int island = ledger_->first_non_finite(); island >= 0;
       island = ledger_->first_non_finite()) {
    fail(ledger_->part_to_blame(island), method().iterations, StepFault::not_finite,
         "its energy overflows");
  }
  return alive_ == alive;
}

/// As commit_within_tanks, for many. False: a replica has failed.
bool LaneChunk::keep_within_tanks() {
  guard_->forget();
  if (!ledger_->may_overdraw()) return true;
  for (std::size_t i = 0; i < met_gap_J_.size(); ++i) met_gap_J_[i] = met_gap_J(outcomes_[i]);
  if (!guard_->begin(*ledger_, record_.data(), committed(), met_gap_J_)) return true;
  do {
    guard_->propose(a_next_.data());
    PhaseStatus failure;
    while (!recommit(failure)) {
      if (!guard_->reject(replica_of(failure.part))) {
        fail(failure.part, method().iterations, failure.fault, failure.detail);
        return false;
      }
      guard_->propose(a_next_.data());
    }
    if (!is_finite()) return false;
  } while (!guard_->review(*ledger_, committed()));
  for (const GuardUse& use : guard_->uses()) {
    GuardStatistics& own = statuses_[at(use.island)].guard;
    ++own.steps;
    own.withheld_J += use.withheld_J;
    own.take(use, clock_.steps());
  }
  return true;
}

bool LaneChunk::is_checked() const {
  const WaveCoupling& m = method();
  return m.tolerance > 0.0 || m.energy_tolerance_J > 0.0 || acceleration_ != nullptr ||
         m.kind == WaveUpdate::interface || !m.interface_islands.empty();
}

void LaneChunk::count() {
  if (!is_checked()) return;
  for (int i = 0; i < replicas_; ++i) {
    ReplicaStatus& status = statuses_[at(i)];
    if (status.failed) continue;
    const IslandOutcome& outcome = outcomes_[at(i)];
    status.iterations += outcome.iterations;
    status.max_iterations = std::max(status.max_iterations, outcome.iterations);
    if (outcome.rescued) {
      interface_->use(i, true);
      watch_.hold(i, clock_.steps() + 1);
    }
    if (!has_tolerance_ || outcome.converged) continue;
    ++status.not_converged;
    MissedTolerance& missed = missed_[at(i)];
    ++missed.steps;
    if (missed.step >= 0 && !(outcome.gap.residual > missed.residual)) continue;
    const InterfaceResidual::Share share = residual_.largest_share(i);
    missed.residual = outcome.gap.residual;
    missed.gap_J = outcome.gap.energy_J;
    missed.step = clock_.steps();
    missed.part = share.part - i * parts_;
    missed.part_gap_J = share.energy_J;
  }
  if (interface_) {
    watch_.pass(clock_.steps() + 1, [this](int island) { interface_->use(island, false); });
  }
}

void LaneChunk::accept() {
  revocable_ = false;
  std::swap(record_, next_);
  std::swap(b_, b_next_);
  std::swap(a_, a_next_);
  clock_.advance(waves_.step_s());
  if (extrapolated_) extrapolated_->observe(a_.data(), b_.data(), waves_.step_s());
}

/// The replica of this part, in the step in progress.
void LaneChunk::fail(int part, int iteration, StepFault fault, const std::string& detail) {
  stale_ = true;
  if (interface_ && revocable_) interface_->revoke();
  revocable_ = false;
  const StepError error(system_.name_of_part(part), clock_.steps(), iteration, method().iterations,
                        fault, detail);
  ReplicaStatus& status = statuses_[at(replica_of(part))];
  status.part = error.part();
  status.fault = fault;
  take_out(replica_of(part), error.what());
}

void LaneChunk::take_out(int replica, std::string text) {
  ReplicaStatus& status = statuses_[at(replica)];
  status = this->status(replica);
  status.failed = true;
  status.error = std::move(text);
  status.steps = clock_.steps();
  if (ledger_) ledger_->close_island(replica);
  if (interface_ && interface_->is_used(replica)) interface_->use(replica, false);
  --alive_;
  stale_ = true;
  for (int part = replica * parts_; part < (replica + 1) * parts_; ++part) {
    ignored_[at(part)] = 1;
    resting_.push_back({part, system_.parts()[at(part)].component->default_state()});
  }
  waves_.set_ignored(ignored_);
}

void LaneChunk::read_states(double* out, std::size_t distance) const {
  const int all = static_cast<int>(waves_.slots().size());
  std::size_t offset = 0;
  for (int own = 0; own < parts_; ++own) {
    double* to = out + offset;
    for (int part = own; part < all; part += parts_, to += distance) {
      waves_.get_state(part, record_.data(), to);
    }
    offset += at(system_.parts()[at(own)].component->signature().state_size());
  }
  if (alive_ == replicas_) return;
  for (int i = 0; i < replicas_; ++i) {
    if (statuses_[at(i)].failed) std::fill_n(out + at(i) * distance, offset, kNoState);
  }
}

void LaneChunk::read_state(int replica, double* out) const {
  for (int own = 0; own < parts_; ++own) {
    const auto size = at(system_.parts()[at(own)].component->signature().state_size());
    if (statuses_[at(replica)].failed) {
      std::fill_n(out, size, kNoState);
    } else {
      waves_.get_state(replica * parts_ + own, record_.data(), out);
    }
    out += size;
  }
}

ReplicaStatus LaneChunk::status(int replica) const {
  ReplicaStatus out = statuses_[at(replica)];
  if (out.failed) return out;
  out.steps = clock_.steps();
  if (is_checked()) return out;
  out.iterations = out.steps * method().iterations;
  out.max_iterations = out.steps > 0 ? method().iterations : 0;
  return out;
}

Certificate LaneChunk::certificate(int replica) const {
  Certificate out = ledger_ ? ledger_->certificate(replica) : Certificate{};
  if (!ledger_) out.max_passivity_residual_J = -std::numeric_limits<double>::infinity();
  if (has_tolerance_) out.missed = missed_[at(replica)];
  return out;
}

EnergyTotals LaneChunk::energy(int replica) const {
  return ledger_ ? ledger_->totals(replica) : EnergyTotals{};
}

}  // namespace portwave
