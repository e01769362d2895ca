#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "ensemble/chunks.hpp"
#include "portwave/coupling/system/state_constraints.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {
namespace {

constexpr double kNoState = std::numeric_limits<double>::quiet_NaN();

}  // namespace

std::string not_finite(const Part& part, std::span<const double> state) {
  const auto bad = std::ranges::find_if(state, [](double value) { return !std::isfinite(value); });
  if (bad == state.end()) return {};
  const auto number = at(static_cast<int>(bad - state.begin()));
  return fmt::format("state {} is not finite: {}",
                     in_quotes(part.component->signature().states[number].name),
                     shown_number(*bad));
}

LaneChunk::LaneChunk(System system, int replicas, const StepperOptions& options,
                     std::unique_ptr<const Following> follows)
    : system_(std::move(system)),
      run_(system_, options),
      replicas_(replicas),
      parts_(static_cast<int>(system_.parts().size()) / replicas),
      waves_(run_.stepped(), options.step_s, method().impedance,
             WaveDiscretisation::Grouping::together),
      step_(waves_, method(), system_.initial_settings(),
            {.tank = method().tank, .guarded = method().guard, .replicas = true}, options.start_s,
            *this, together_),
      statuses_(at(replicas)),
      follows_(std::move(follows)) {
  step_.prepare(method(), run_, has_tolerance(run_.options().method),
                options.certify != Certify::none || method().guard);
  if (step_.has_tolerance()) missed_.resize(at(replicas));
  executor_ = make_serial_executor(waves_, whole_island_groups(waves_, declared_costs(waves_)));
  step_.bind(*executor_);
}

void LaneChunk::begin(const double* states) {
  std::ranges::fill(statuses_, ReplicaStatus{});
  std::ranges::fill(missed_, MissedTolerance{});
  alive_ = replicas_;
  resting_.clear();
  ignored_.assign(system_.parts().size(), 0);
  waves_.set_ignored({});
  if (follows_ != nullptr) follow(states);
  step_.begin(method(), run_.options().start_s, [&](double* record) {
    const double* own = states;
    for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
      const PartSlot& slot = waves_.slot(part);
      const BatchSlot& batch = waves_.batch(slot.batch);
      batch.batch->set_state(slot.lane, own, record + batch.record);
      own += batch.batch->state_size();
    }
  });
  check_states(states);
}

/// Impedances by the states that a run begins from, as the stepper of each replica chooses them.
void LaneChunk::follow(const double* states) {
  std::size_t size = 0;
  for (int i = 0; i < parts_; ++i) size += system_.parts()[at(i)].initial_state.size();
  const System* const only[] = {follows_->one};
  followers_.clear();
  wanted_.clear();
  tuned_.clear();
  for (int r = 0; r < replicas_; ++r) {
    const double* const own = states + at(r) * size;
    const bool is_sound = std::all_of(own, own + size, [](double x) { return std::isfinite(x); });
    System one = gathered_system(only, is_sound ? own : nullptr);
    for (int i = 0; i < parts_; ++i) {
      const std::shared_ptr<const Component>& part = this->part(r, i).component;
      if (one.parts()[at(i)].component != part) exchange_component(one, i, part);
    }
    try {
      followers_.push_back(std::make_unique<Follower>(std::move(one), *follows_));
    } catch (const ConfigError&) {  // no impedances from here: those of the system will do
      followers_.push_back(std::make_unique<Follower>(gathered_system(only), *follows_));
    }
    const std::vector<double>& chosen = followers_.back()->tuner.choice().method.waves().impedance;
    wanted_.insert(wanted_.end(), chosen.begin(), chosen.end());
    tuned_.push_back(r);
  }
  set_impedance(tuned_);
}

/// In force are those of wanted_, which are others for these replicas.
void LaneChunk::set_impedance(std::span<const int> replicas) {
  waves_.set_impedance(wanted_);
  take_over_maps(replicas);
}

/// The others keep what they know of their interface equations, as a stepper of each does.
void LaneChunk::take_over_maps(std::span<const int> replicas) {
  step_.stale() = true;
  for (const int r : replicas) {
    if (auto& interface = step_.interface()) interface->current().take_over_maps(r);
  }
  executor_->recompile();
  step_.bind(*executor_);
}

/// As the stepper of each replica does: those that are off are set again, and the others keep theirs.
void LaneChunk::retune() {
  const std::int64_t steps = step_.clock().steps();
  const std::size_t ports = wanted_.size() / at(replicas_);
  const auto own_ports = [&](int r) { return std::span(wanted_).subspan(at(r) * ports, ports); };
  tuned_.clear();
  for (int r = 0; r < replicas_; ++r) {
    Tuner& tuner = followers_[at(r)]->tuner;
    if (statuses_[at(r)].failed || !tuner.is_due(steps)) continue;
    const auto state_of = [&](int part) -> std::span<const double> {
      const int own = r * parts_ + part;
      looked_at_.resize(system_.parts()[at(own)].initial_state.size());
      waves_.get_state(own, step_.now().record.data(), looked_at_.data());
      return looked_at_;
    };
    try {
      const auto tuned = tuner.retuned(steps, state_of);
      if (!tuned) continue;
      std::ranges::copy(*tuned, own_ports(r).begin());
      tuned_.push_back(r);
    } catch (const std::exception&) {  // those in force stay
      tuner.refuse(steps);
    }
  }
  if (tuned_.empty()) return;
  left_impedance_.assign(waves_.impedance().begin(), waves_.impedance().end());
  try {
    set_impedance(tuned_);
    for (const int r : tuned_) {
      followers_[at(r)]->tuner.accept({own_ports(r).begin(), own_ports(r).end()});
    }
    rescatter(waves_, left_impedance_, waves_.step_s(), step_.now().a, step_.now().b);
  } catch (const std::exception&) {  // all stay: whose they are is not known
    for (const int r : tuned_) {
      const std::vector<double>& in_force =
          followers_[at(r)]->tuner.choice().method.waves().impedance;
      std::ranges::copy(in_force, own_ports(r).begin());
      followers_[at(r)]->tuner.refuse(steps);
    }
    take_over_maps(tuned_);
  }
}

/// Takes out replicas that cannot start from their initial states.
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
    if (!not_finite(own, state).empty()) {
      defect = not_finite(own, state);
    } else if (const Issues issues = own.component->check_initial_state(state.data());
               !issues.empty()) {
      defect = issues.front().what;
    } else if (step_.keeps_ledger() && !std::isfinite(step_.ledger().storage(part))) {
      defect = "its stored energy is not finite";
    }
    if (defect.empty()) continue;
    statuses_[at(replica)].part = own.name;
    statuses_[at(replica)].fault = StepFault::not_finite;
    take_out(replica,
             fmt::format("part {} cannot start from this state: {}", in_quotes(own.name), defect));
  }
  if (run_.options().start != Start::as_given) check_joints(first_states);
}

/// Where states violate a rigid joint the impulse acts, or the replica is taken out. In lanes, the inputs of such
/// joints do not change.
void LaneChunk::check_joints(const double* states) {
  std::vector<std::span<const double>> by_part;
  for (const Part& part : system_.parts()) {
    const auto size = at(part.component->signature().state_size());
    by_part.emplace_back(states, size);
    states += size;
  }
  const StateInstant start = {.state = [&](int part) { return by_part[at(part)]; },
                              .input =
                                  [this](int part, int input) {
                                    return system_.parts()[at(part)].inputs[at(input)].at(
                                        step_.clock().time_s(), step_.settings());
                                  }};
  const StateConstraints constraints(system_, start.state);
  for (const StateConstraints::Odds& odds : constraints.odds(start, kOddsShare)) {
    const int part = constraints.part(odds.violated.front());
    const int replica = replica_of(part);
    if (statuses_[at(replica)].failed || constraints.is_without_domain(odds)) continue;
    if (run_.options().start == Start::consistent && odds.is_consistent && odds.is_passive) {
      let_jump(odds);
      continue;
    }
    statuses_[at(replica)].part = system_.parts()[at(part)].name;
    statuses_[at(replica)].fault = StepFault::at_odds;
    take_out(replica,
             fmt::format("states are at odds at {}: {}", constraints.joints(odds.violated.front()),
                         constraints.values(odds.violated.front(), start)));
  }
}

void LaneChunk::let_jump(const StateConstraints::Odds& odds) {
  std::vector<ImpulseAtPart> energies;
  for (const StateConstraints::PartImpulse& own : odds.parts) {
    energies.push_back({own.part, {own.change_J, own.supplied_J, own.impact_J}});
    if (own.state.empty()) continue;
    const PartSlot& slot = waves_.slot(own.part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    batch.batch->set_state(slot.lane, own.state.data(), step_.now().record.data() + batch.record);
  }
  step_.ledger().impulse(energies, /*is_start=*/true);
}

void LaneChunk::step(const double* settings) {
  std::vector<double>& own = step_.settings();
  const std::size_t inputs = own.size() / at(replicas_);
  std::copy_n(settings, own.size(), own.begin());
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (std::isfinite(own[i])) continue;
    const int replica = static_cast<int>(i / inputs);
    own[i] = 0.0;
    if (statuses_[at(replica)].failed) continue;
    statuses_[at(replica)].fault = StepFault::not_finite;
    const System::SettableInput& input = system_.settable_inputs()[i];
    statuses_[at(replica)].part = system_.parts()[at(input.part)].name;
    take_out(replica, fmt::format("settable input {} is not finite in step {}: {}",
                                  in_quotes(system_.input_label(input)), step_.clock().steps(),
                                  shown_number(settings[i])));
  }
  while (alive_ > 0 && !attempt()) {
  }
}

/// The macro-step. False: a replica has failed, and nothing else has happened.
bool LaneChunk::attempt() {
  if (!followers_.empty()) retune();
  if (!resting_.empty()) rest();
  const StepClock& clock = step_.clock();
  if (!step_.freeze(clock.time_s()) || !step_.iterate() || !step_.guard()) return false;
  note_guard();
  step_.close();
  count();
  step_.accept(waves_.step_s());
  step_.clock().advance(waves_.step_s());
  return true;
}

/// Sets the parts of replicas that have failed to rest.
void LaneChunk::rest() {
  const WaveState& now = step_.now();
  for (const Resting& own : resting_) {
    const PartSlot& slot = waves_.slot(own.part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    batch.batch->set_state(slot.lane, own.state.data(), now.record.data() + batch.record);
    for (int j = 0; j < batch.batch->wave_size(); ++j) {
      now.b[at(slot.wave + j * slot.stride)] = 0.0;
    }
    const int inputs = batch.batch->input_size();
    for (int j = 0; j < inputs; ++j) {
      step_.input()[batch.input + at(slot.lane * inputs + j)] = 0.0;
    }
    if (step_.stale() || batch.driven) continue;  // everything is frozen below
    const int group = batch.batch->lane_group();
    const int first = slot.lane / group * group;
    PhaseStatus ignored;
    static_cast<void>(waves_.freeze(slot.batch,
                                    {first, std::min(first + group, batch.batch->lanes())},
                                    now.record.data(), nullptr, ignored));
  }
}

void LaneChunk::note_guard() {
  if (!step_.passivity_guard()) return;
  for (const GuardUse& use : step_.passivity_guard()->uses()) {
    GuardStatistics& own = statuses_[at(use.island)].guard;
    ++own.steps;
    own.withheld_J += use.withheld_J;
    own.take(use, step_.clock().steps());
  }
}

bool LaneChunk::is_checked() const {
  const WaveCoupling& m = method();
  return m.tolerance > 0.0 || m.energy_tolerance_J > 0.0 || step_.is_accelerated() ||
         m.kind == WaveUpdate::interface || !m.interface_islands.empty();
}

void LaneChunk::count() {
  if (!is_checked()) return;
  const std::int64_t step = step_.clock().steps();
  bool is_any_rescued = false;
  for (int i = 0; i < replicas_; ++i) {
    ReplicaStatus& status = statuses_[at(i)];
    IslandOutcome& outcome = step_.outcomes()[at(i)];
    if (status.failed) {
      outcome.rescued = false;
      continue;
    }
    status.iterations += outcome.iterations;
    status.max_iterations = std::max(status.max_iterations, outcome.iterations);
    if (!followers_.empty()) {
      followers_[at(i)]->tuner.observe(step + 1, outcome.iterations, outcome.converged,
                                       outcome.rescued);
    }
    is_any_rescued = is_any_rescued || outcome.rescued;
    if (!step_.has_tolerance() || outcome.converged) continue;
    ++status.not_converged;
    MissedTolerance& missed = missed_[at(i)];
    ++missed.steps;
    if (missed.step >= 0 && !(outcome.gap.residual > missed.residual)) continue;
    const InterfaceResidual::Share share = step_.residual().largest_share(i);
    missed.residual = outcome.gap.residual;
    missed.gap_J = outcome.gap.energy_J;
    missed.step = step;
    missed.part = share.part - i * parts_;
    missed.part_gap_J = share.energy_J;
  }
  if (auto& interface = step_.interface()) {
    interface->watch(step_.outcomes(), is_any_rescued, step + 1);
  }
}

/// Takes out the replica of the part that failed.
void LaneChunk::failed(const PhaseStatus& status, int iteration) {
  const StepError error(system_.name_of_part(status.part), step_.clock().steps(), iteration,
                        method().iterations, status.fault, status.detail);
  ReplicaStatus& own = statuses_[at(replica_of(status.part))];
  own.part = error.part();
  own.fault = status.fault;
  take_out(replica_of(status.part), error.what());
}

void LaneChunk::take_out(int replica, std::string text) {
  ReplicaStatus& status = statuses_[at(replica)];
  status = this->status(replica);
  status.failed = true;
  status.error = std::move(text);
  status.steps = step_.clock().steps();
  if (step_.keeps_ledger()) step_.ledger().close_island(replica);
  if (auto& interface = step_.interface(); interface && interface->current().is_used(replica)) {
    interface->current().use(replica, false);
  }
  --alive_;
  step_.stale() = true;
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
      waves_.get_state(part, step_.now().record.data(), to);
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
      waves_.get_state(replica * parts_ + own, step_.now().record.data(), out);
    }
    out += size;
  }
}

ReplicaStatus LaneChunk::status(int replica) const {
  ReplicaStatus out = statuses_[at(replica)];
  if (out.failed) return out;
  out.steps = step_.clock().steps();
  if (is_checked()) return out;
  out.iterations = out.steps * method().iterations;
  out.max_iterations = out.steps > 0 ? method().iterations : 0;
  return out;
}

Certificate LaneChunk::certificate(int replica) const {
  Certificate out;
  if (step_.keeps_ledger()) {
    out = step_.ledger().certificate(replica);
  } else {
    out.max_passivity_residual_J = -std::numeric_limits<double>::infinity();
  }
  if (step_.has_tolerance()) out.missed = missed_[at(replica)];
  return out;
}

EnergyTotals LaneChunk::energy(int replica) const {
  return step_.keeps_ledger() ? step_.ledger().totals(replica) : EnergyTotals{};
}

}  // namespace portwave
