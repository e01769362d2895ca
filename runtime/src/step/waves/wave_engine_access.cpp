#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "parallel/expect_number.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "portwave/subsystems/idle/idle_ports.hpp"
#include "step/waves/wave_engine.hpp"
#include "step/waves/wave_start.hpp"

namespace portwave {
namespace {

/// Of ports without waves: those that are read there are those of an impedance of 1.
constexpr double kIdleImpedance = 1.0;

/// An impulse, or, without parts, the inputs whose jumps are moved.
struct JumpMessage {
  std::vector<StateConstraints::PartImpulse> parts;
  std::vector<MovedInputJump> moved;
};

void archive_jumps(StateArchive& archive, JumpMessage& message) {
  std::vector<StateConstraints::PartImpulse>& parts = message.parts;
  archive.vector(message.moved);
  std::uint64_t count = parts.size();
  archive.count(count, 1);
  parts.resize(static_cast<std::size_t>(count));
  for (StateConstraints::PartImpulse& own : parts) {
    archive.values(own.part, own.change_J, own.supplied_J, own.impact_J);
    archive.vector(own.state);
  }
}

std::vector<std::byte> bytes_of(JumpMessage message) {
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  archive_jumps(writer, message);
  writer.finish();
  return bytes;
}

}  // namespace

// The committed step.

std::span<const double> WaveEngine::state(int part) {
  expect_own(part);
  together().fetch();
  return states_.of(part, step_.now().record.data());
}

EffortFlow WaveEngine::effort_flow(int scalar_port) {
  expect_own(part_of_port(scalar_port));
  if (step_.clock().steps() == 0) return start_ports_.of(scalar_port, *this);
  together().fetch();
  if (has_pieces_) return port_means_[at(scalar_port)];
  return mean_at(scalar_port);
}

EffortFlow WaveEngine::mean_at(int scalar_port) const {
  if (run_.stages() == 1) return at_stage(scalar_port, 0);
  EffortFlow mean{0.0, 0.0};
  for (int i = 0; i < run_.stages(); ++i) {
    const EffortFlow own = at_stage(scalar_port, i);
    mean.effort += run_.weight(i) * own.effort;
    mean.flow += run_.weight(i) * own.flow;
  }
  return mean;
}

/// Effort and flow of a port, times the weight of the stage.
EffortFlow WaveEngine::at_stage(int scalar_port, int stage) const {
  if (run_.is_idle(scalar_port)) return at_idle_port(scalar_port, stage);
  return WaveTransform(impedance(scalar_port, stage), waves_.step_s())
      .to_effort_flow(waves_at(scalar_port, stage));
}

/// Of a port that has no waves: its input is 0, and the batch of its part knows what its output comes from.
EffortFlow WaveEngine::at_idle_port(int scalar_port, int stage) const {
  const int part = part_of_port(scalar_port);
  const std::vector<Port>& ports = system().parts()[at(part)].component->signature().ports;
  const int first = system().first_scalar_port(part);
  std::vector<double>& inputs = idle_inputs_;
  inputs.clear();
  bool takes_effort = false;
  for (const Port& port : ports) {
    for (int c = 0; c < port.dimension; ++c) {
      const int number = first + static_cast<int>(inputs.size());
      const bool is_effort = port.causality == Causality::effort_in;
      if (number == scalar_port) takes_effort = is_effort;
      if (run_.is_idle(number)) {
        inputs.push_back(0.0);
        continue;
      }
      const EffortFlow own = at_stage(number, stage);
      inputs.push_back(is_effort ? own.effort : own.flow);
    }
  }
  const PartSlot& slot = waves_.slot(part);
  const BatchSlot& batch = waves_.batch(slot.batch);
  const double output = dynamic_cast<const IdleOutputs&>(*batch.batch)
                            .idle_output(slot.lane, step_.now().record.data() + batch.record,
                                         scalar_port - first, stage, inputs);
  return takes_effort ? EffortFlow{0.0, output} : EffortFlow{output, 0.0};
}

double WaveEngine::storage(int part) {
  const Subsystem* physics = system().parts()[static_cast<std::size_t>(part)].port_hamiltonian();
  if (physics != nullptr) return physics->storage(state(part).data());
  expect_own(part);
  together().fetch_energies();
  return step_.ledger().storage(part);
}

PartEnergies WaveEngine::energies_of(int part) const {
  expect_number("part", part, system().parts().size());
  expect_own(part);
  together().fetch_energies();
  if (has_pieces_) return part_energies_[at(part)];
  return step_.ledger().part_energies(part);
}

WavePair WaveEngine::waves_at(int scalar_port, int stage) const {
  expect_port_and_stage(scalar_port, stage);
  expect_own(part_of_port(scalar_port));
  together().fetch();
  if (run_.is_idle(scalar_port)) {
    if (step_.clock().steps() == 0) return {0.0, 0.0};
    return WaveTransform(kIdleImpedance, waves_.step_s())
        .to_waves(at_idle_port(scalar_port, stage));
  }
  const std::size_t offset = offset_of(scalar_port, stage);
  return {step_.now().a[offset], step_.now().b[offset]};
}

double WaveEngine::impedance(int scalar_port, int stage) const {
  expect_port_and_stage(scalar_port, stage);
  if (run_.is_idle(scalar_port)) return kIdleImpedance;
  return waves_.impedance()[offset_of(scalar_port, stage)];
}

SwitchTimes WaveEngine::switch_times(int part) const {
  if (!together().has_whole()) return {};
  const PartSlot& slot = waves_.slot(part);
  const BatchSlot& batch = waves_.batch(slot.batch);
  const auto* const own = dynamic_cast<const SwitchSteps*>(batch.batch);
  if (own == nullptr) return {};
  return own->switch_times(slot.lane, step_.now().record.data() + batch.record);
}

double WaveEngine::tank(int island) const {
  expect_number("island", island, static_cast<std::size_t>(waves_.system().island_count()));
  return step_.ledger().tank(island);
}

int WaveEngine::iterations_of_island(int island) const {
  expect_number("island", island, step_.outcomes().size());
  return step_.outcomes()[static_cast<std::size_t>(island)].iterations;
}

void WaveEngine::expect_port_and_stage(int scalar_port, int stage) const {
  expect_number("scalar port", scalar_port, system().scalar_ports().size());
  expect_number("stage", stage, static_cast<std::size_t>(run_.stages()));
}

void WaveEngine::expect_own(int part) const {
  if (together().has_whole() || system().slice()->is_own(part)) return;
  throw std::out_of_range(fmt::format("part \"{}\" is outside this slice",
                                      system().parts()[static_cast<std::size_t>(part)].name));
}

/// The position of a time in the last step, from 0 to 1.
double WaveEngine::share_of_step(double time_s) const {
  return std::clamp(1.0 - (step_.clock().time_s() - time_s) / step_.clock().last_step_s(), 0.0,
                    1.0);
}

void WaveEngine::state_at(int part, double time_s, std::span<double> state) {
  together().fetch();
  sizes_->estimate().state_at(part, this->state(part).data(), share_of_step(time_s), state.data());
}

EffortFlow WaveEngine::port_at(int scalar_port, double time_s) {
  together().fetch();
  const StageRule& stages = run_.rule();
  EffortFlow sum{0.0, 0.0};
  for (int i = 0; i < run_.stages(); ++i) {
    // Value in the stepped system, √bᵢ times that in the given one.
    const EffortFlow own = at_stage(scalar_port, i);
    const double weight = stages.lagrange(i, share_of_step(time_s)) / run_.weight(i);
    sum.effort += weight * own.effort;
    sum.flow += weight * own.flow;
  }
  return sum;
}

// Accounts.

std::optional<double> WaveEngine::coupling_residual() {
  if (step_.has_tolerance() || !together().has_whole()) return std::nullopt;
  together().fetch();
  // The inner iterate of the next step serves as scratch: that step overwrites it.
  waves_.interconnection().exchange(step_.now().b.data(), step_.inner().data());
  GapSquares squares;
  for (std::size_t i = 0; i < step_.inner().size(); ++i) {
    const double gap = step_.inner()[i] - step_.now().a[i];
    squares.gap += gap * gap;
    squares.incident += step_.now().a[i] * step_.now().a[i];
    squares.outgoing += step_.now().b[i] * step_.now().b[i];
  }
  return squares.residual();
}

std::optional<DeadlineScheduler::Statistics> WaveEngine::deadline() const {
  if (!scheduler_) return std::nullopt;
  return scheduler_->statistics();
}

std::size_t WaveEngine::overhead_bytes() const {
  return runner_.executor->bytes() + waves_.bytes() + step_.bytes() +
         (sizes_ ? sizes_->bytes() : 0) + (pieces_ ? pieces_->bytes() : 0) +
         (watch_ ? watch_->bytes() : 0) + states_.bytes();
}

Profile WaveEngine::profile() {
  if (!profiler_) throw std::logic_error("StepperOptions::profile was not asked for");
  const LaneCosts costs = measured_costs(waves_, step_.now().record.data());
  return profiler_->profile(&waves_, &costs, &runner_.partition, &runner_.serial);
}

// Changes between two steps.

void WaveEngine::settings_changed() {
  const Together::Order order(together(), Together::Order::Kind::settings_changed);
  if (sizes_) sizes_->restart();
  if (watch_) watch_->look_closely(step_.clock().steps(), ResolutionWatch::kOutside);
  start_ports_.forget();
}

void WaveEngine::component_changed(int part, double more_J) {
  if (!together().is_alone()) throw std::invalid_argument("several ranks step the system");
  run_.component_changed(part);
  levels_.component_changed(part);
  const bool is_in_place = exchange_part(part);
  step_.ledger().revalue(part, more_J);
  if (change_over_) {
    change_over_->note(part, false);
    change_over_->component_changed(part);
  }
  levels_.leave_others_after_change(step_.clock().steps());
  tuned_.reset();
  bool is_new = !is_in_place;
  if (is_in_place) {
    step_.stale() = true;
    if (auto& interface = step_.interface()) {
      is_new = interface->current().take_over_part(part, InterfaceSolver::Derivatives::kept);
    }
    if (runner_.executor->keeps_places()) rebind();
  } else {
    take_over_maps();
  }
  if (scheduler_ && is_new) scheduler_->expect_new_work();
  settings_changed();
}

void WaveEngine::put_state(int part, std::span<const double> state, double more_J) {
  const PartSlot& slot = waves_.slot(part);
  const BatchSlot& batch = waves_.batch(slot.batch);
  double* const record = step_.now().record.data() + batch.record;
  batch.batch->set_state(slot.lane, state.data(), record);
  if (const auto* const idle = dynamic_cast<const IdleOutputs*>(batch.batch)) {
    idle->forget_step(slot.lane, record);
  }
  step_.ledger().revalue(part, more_J);
  step_.stale() = true;
  states_.forget();
}

void WaveEngine::component_restored(int part) {
  if (!together().is_alone()) return;
  start_ports_.forget();
  run_.component_restored(part);
  levels_.component_changed(part);
}

/// Prepares a part that was exchanged: in its lane alone, or with its whole batch made anew. False: the
/// latter. Errors: ConfigError, std::invalid_argument, nothing having changed.
bool WaveEngine::exchange_part(int part) {
  if (waves_.exchange_part(part)) return true;
  renew_batch(waves_.slot(part).batch);
  return false;
}

void WaveEngine::renew_batch(int number) {
  const BatchSlot& slot = waves_.batch(number);
  std::unique_ptr<StepBatch> batch = waves_.batch_anew(number);
  if (batch->record_size() != slot.batch->record_size()) {
    throw std::invalid_argument("it is solved in another way");
  }
  const auto size = static_cast<std::size_t>(slot.batch->state_size());
  std::vector<double> states(slot.parts.size() * size);
  double* const record = step_.now().record.data() + slot.record;
  for (std::size_t i = 0; i < slot.parts.size(); ++i) {
    slot.batch->get_state(static_cast<int>(i), record, states.data() + i * size);
  }
  waves_.take_batch(number, std::move(batch));
  for (std::size_t i = 0; i < slot.parts.size(); ++i) {
    slot.batch->set_state(static_cast<int>(i), states.data() + i * size, record);
  }
  states_.forget();
}

/// These parts are stepped with damped stages from now on, or without. With the first of them all batches that may have
/// such lanes are made for them, so that no bits depend on what shares a batch. A part whose damped step has no
/// solution stays as it is.
void WaveEngine::set_damped(std::span<const int> parts, bool damped) {
  if (parts.empty()) return;
  auto& interface = step_.interface();
  if (change_over_->engage()) {
    arrange_damping(change_over_->kept().states);
    states_.forget();
  }
  bool are_in_place = true;
  for (const int part : parts) {
    run_.set_damped(part, damped);
    try {
      const bool is_in_place = exchange_part(part);
      if (is_in_place && interface) interface->current().take_over_part(part);
      are_in_place = are_in_place && is_in_place;
    } catch (const ConfigError&) {
      run_.set_damped(part, !damped);
      continue;
    }
    change_over_->note(part, damped);
  }
  step_.stale() = true;
  levels_.leave_others();
  if (!are_in_place || runner_.executor->keeps_places()) take_over_maps();
}

std::string WaveEngine::integrator() const {
  if (!undamped_.empty()) return undamped_;
  std::string text = run_.integrators().text(system());
  if (in_pieces_.steps > 0) {
    text += fmt::format("{}{} of {} steps, in which {}, in {} pieces", text.empty() ? "" : "; ",
                        in_pieces_.steps, step_.clock().steps(),
                        run_.integrators().beside >= 0 || run_.integrators().thrown < 0
                            ? "one-sided parts changed over"
                            : "motion began that dies within one",
                        in_pieces_.pieces);
  }
  if (cut_steps_ > 0) {
    text += fmt::format("{}{} of {} steps cut where {} jump", text.empty() ? "" : "; ", cut_steps_,
                        step_.clock().steps(), sudden_ ? "inputs or parameters" : "parameters");
  }
  if (!change_over_) return text;
  const std::string changes = change_over_->text(system(), step_.clock().steps());
  return text.empty() || changes.empty() ? text + changes : text + "; " + changes;
}

void WaveEngine::states_changed(std::span<const double> states) {
  refuse_with_ranks();
  const double* own = states.data();
  for (int part = 0; part < static_cast<int>(waves_.slots().size()); ++part) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    const std::span<const double> before = state(part);
    const Subsystem& physics = *waves_.system().parts()[at(part)].port_hamiltonian();
    const double more_J = physics.storage(own) - physics.storage(before.data());
    if (more_J != 0.0) step_.ledger().revalue(part, more_J);
    double* const record = step_.now().record.data() + batch.record;
    batch.batch->set_state(slot.lane, own, record);
    if (const auto* const idle = dynamic_cast<const IdleOutputs*>(batch.batch)) {
      idle->forget_step(slot.lane, record);
    }
    own += before.size();
  }
  states_.forget();
  step_.restart_waves();
  levels_.forget_solvers();
  if (change_over_) change_over_->forget();
  if (pieces_) pieces_->restart();
  if (watch_) watch_->forget();
  settings_changed();
}

void WaveEngine::jump(std::span<const StateConstraints::PartImpulse> parts, bool is_start) {
  if (!together().is_alone()) {
    together().send_jump(bytes_of({.parts = {parts.begin(), parts.end()}, .moved = {}}));
  }
  carry_out_jump(parts, is_start);
}

void WaveEngine::move_jumps(std::span<const MovedInputJump> jumps) {
  if (!together().is_alone()) {
    together().send_jump(bytes_of({.parts = {}, .moved = {jumps.begin(), jumps.end()}}));
  }
  step_.moved_jumps().assign(jumps.begin(), jumps.end());
}

/// Another rank: never at the start, which every rank finds by itself.
void WaveEngine::take_jump(std::span<const std::byte> bytes) {
  StateArchive reader = StateArchive::reader(bytes);
  JumpMessage message;
  archive_jumps(reader, message);
  reader.finish();
  if (message.parts.empty()) {
    step_.moved_jumps() = std::move(message.moved);
  } else {
    carry_out_jump(message.parts, /*is_start=*/false);
  }
}

void WaveEngine::carry_out_jump(std::span<const StateConstraints::PartImpulse> parts,
                                bool is_start) {
  std::vector<ImpulseAtPart> energies;
  for (const StateConstraints::PartImpulse& own : parts) {
    energies.push_back({own.part, {own.change_J, own.supplied_J, own.impact_J}});
    if (own.state.empty()) continue;
    const PartSlot& slot = waves_.slot(own.part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    double* const record = step_.now().record.data() + batch.record;
    batch.batch->set_state(slot.lane, own.state.data(), record);
    if (const auto* const idle = dynamic_cast<const IdleOutputs*>(batch.batch)) {
      idle->forget_step(slot.lane, record);
    }
  }
  step_.ledger().impulse(energies, is_start);
  states_.forget();
  step_.states_jumped();
  if (change_over_) change_over_->forget();
  if (sizes_) sizes_->states_jumped();
  if (pieces_) pieces_->restart();
  if (watch_) {
    watch_->forget();
    watch_->look_closely(step_.clock().steps(), ResolutionWatch::kOutside);
  }
  start_ports_.forget();
  if (is_start) find_waves();
}

void WaveEngine::set_iterations(int iterations) {
  activity().expect_whole_step();
  refuse_with_ranks();
  if (iterations < 0) throw ConfigError("/method/iterations", "must be >= 0");
  options_.method.waves().iterations = step_.plan().rule.budget = iterations;
  levels_.set_iterations(iterations);
}

void WaveEngine::set_impedance(std::span<const double> by_port) {
  activity().expect_whole_step();
  refuse_with_ranks();
  std::vector<double> of_stepped;
  if (!run_.is_as_given()) {
    of_stepped = run_.at_all_stages(by_port);
    by_port = of_stepped;
  }
  scatter_again(by_port);
  levels_.leave(by_port);
  tuned_.reset();
}

void WaveEngine::tune_again() {
  activity().expect_whole_step();
  refuse_with_ranks();
  const std::vector<double> chosen = levels_.chosen_anew();
  scatter_again(chosen);
  levels_.accept(chosen);
  tuned_.reset();
}

void WaveEngine::refuse_with_ranks() const {
  if (together().is_alone()) return;
  throw std::logic_error("several ranks step the system: its method cannot be changed");
}

/// Other impedances between two steps: effort and flow of the last step stay, and so do the tanks.
void WaveEngine::scatter_again(std::span<const double> by_port) {
  together().fetch();
  left_.assign(waves_.impedance().begin(), waves_.impedance().end());
  const double before = half_square(waves_, step_.now().b);
  try {
    waves_.set_impedance(by_port);
  } catch (...) {  // the old ones are in force, in rebuilt maps
    take_over_maps();
    throw;
  }
  if (has_stepped()) rescatter(waves_, left_, waves_.step_s(), step_.now().a, step_.now().b);
  tuning_.rescattered_J += half_square(waves_, step_.now().b) - before;
  ++tuning_.changes;
  take_over_maps();
}

/// After step maps and junctions have changed.
void WaveEngine::take_over_maps() {
  if (auto& interface = step_.interface()) interface->current().take_over_maps();
  rebind();
}

void WaveEngine::rebind() {
  step_.stale() = true;
  runner_.executor->recompile();
  step_.bind(*runner_.executor);
}

}  // namespace portwave
