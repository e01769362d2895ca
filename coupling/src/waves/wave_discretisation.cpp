#include "portwave/coupling/waves/wave_discretisation.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <exception>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <tuple>
#include <typeindex>
#include <typeinfo>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/core/lane_exchange.hpp"
#include "portwave/subsystems/nonlinear/switch_steps.hpp"

namespace portwave {
namespace {

Issues check(const System& system, double step_s, std::span<const double> impedance) {
  Issues issues;
  if (!(step_s > 0.0) || !std::isfinite(step_s)) {
    issues.push_back({"/time/step_s", "must be a finite number > 0"});
  }
  if (impedance.size() != system.scalar_ports().size()) {
    issues.push_back({"/method/impedance", "must have one value per scalar port (" +
                                               std::to_string(system.scalar_ports().size()) + ")"});
    return issues;
  }
  for (std::size_t j = 0; j < impedance.size(); ++j) {
    if (!(impedance[j] > 0.0) || !std::isfinite(impedance[j])) {
      issues.push_back({"/method/impedance", "must be finite and > 0 at port \"" +
                                                 system.port_label(static_cast<int>(j)) + "\""});
    }
  }
  return issues;
}

/// Islands of at least this many parts are island groups of their own; smaller ones are gathered
/// until they have that many.
constexpr int kSmallestAlone = 64;

/// The process that steps a part: for parts outside a slice, the rank that does.
int owner_of(const System& system, int part) {
  const SystemSlice* const slice = system.slice();
  return slice == nullptr || slice->is_own(part) ? -1
                                                 : slice->ranks[static_cast<std::size_t>(part)];
}

/// Batches, in order of first appearance: parts of one island group, owner, class and key, that is, of
/// one shape; their numbers may differ. Parts with an empty key stay alone.
std::vector<std::vector<int>> group_parts(const System& system, std::span<const int> order,
                                          std::span<const int> island_group, bool by_shape) {
  std::vector<std::vector<int>> groups;
  std::map<std::tuple<int, int, std::type_index, std::string>, std::size_t> group_of_key;
  for (const int i : order) {
    const Component& component = *system.parts()[static_cast<std::size_t>(i)].component;
    std::string key = by_shape ? component.batch_key() : std::string();
    if (key.empty()) {
      groups.push_back({i});
      continue;
    }
    const auto [it, is_new] =
        group_of_key.try_emplace({island_group[static_cast<std::size_t>(i)], owner_of(system, i),
                                  typeid(component), std::move(key)},
                                 groups.size());
    if (is_new) groups.emplace_back();
    groups[it->second].push_back(i);
  }
  return groups;
}

template <class Size>
Size round_up(Size size, Size unit) {
  return (size + unit - 1) / unit * unit;
}

}  // namespace

WaveDiscretisation::WaveDiscretisation(const System& system, double step_s,
                                       std::span<const double> impedance, Grouping grouping,
                                       StageIncrements increments)
    : system_(system), increments_(increments) {
  own_.step_s = step_s;
  throw_if_any(check(system, step_s, impedance));
  slots_.resize(system.parts().size());
  wave_of_port_.resize(system.scalar_ports().size());
  const std::vector<int> order = locality_order(system);
  gather_island_groups(order, grouping == Grouping::together);
  for (const std::vector<int>& group :
       group_parts(system, order, island_group_of_part_, grouping != Grouping::none)) {
    add_batch(group);
  }
  std::vector<int> entry_of_part;
  for (const PartSlot& slot : slots_) entry_of_part.push_back(slot.entry);
  reduction_ = PartOrderReduction(system, entry_of_part);
  part_of_wave_.assign(static_cast<std::size_t>(wave_size_), -1);
  impedance_.assign(static_cast<std::size_t>(wave_size_), 1.0);
  for (std::size_t j = 0; j < impedance.size(); ++j) {
    part_of_wave_[static_cast<std::size_t>(wave_of_port_[j])] = system.scalar_ports()[j].part;
  }
  own_.impedance.assign(impedance.begin(), impedance.end());
  prepare(own_);
  put_in_force(std::move(own_));
}

void WaveDiscretisation::set_impedance(std::span<const double> impedance) {
  throw_if_any(check(system_, own_.step_s, impedance));
  wanted_.assign(static_cast<std::size_t>(wave_size_), 1.0);
  put_by_wave(impedance, wanted_);
  // Maps of parts that keep their impedances are as they are.
  affected_.clear();
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    const auto first = static_cast<std::size_t>(batches_[i].wave);
    const auto count = static_cast<std::size_t>(batches_[i].batch->wave_count());
    const double* const own = wanted_.data() + first;  // of parts without ports perhaps the end
    if (!std::equal(own, own + count, impedance_.data() + first)) {
      affected_.push_back(static_cast<int>(i));
    }
  }
  try {
    prepare(own_, affected_, wanted_);
    own_.interconnection->set_impedance(wanted_);
  } catch (...) {
    prepare(own_, affected_, impedance_);
    own_.interconnection->set_impedance(impedance_);
    throw;
  }
  own_.impedance.assign(impedance.begin(), impedance.end());
  std::ranges::copy(wanted_, impedance_.begin());
}

WaveDiscretisation::Preparation WaveDiscretisation::prepared_for(
    double step_s, std::span<const double> impedance) const {
  throw_if_any(check(system_, step_s, impedance));
  Preparation out{step_s, {impedance.begin(), impedance.end()}, made_batches(), nullptr};
  prepare(out);
  return out;
}

WaveDiscretisation::Preparation WaveDiscretisation::exchange(Preparation other) {
  Preparation before = std::move(own_);
  put_in_force(std::move(other));
  return before;
}

void WaveDiscretisation::put_in_force(Preparation preparation) {
  own_ = std::move(preparation);
  for (std::size_t i = 0; i < batches_.size(); ++i) batches_[i].use(*own_.batches[i]);
  put_by_wave(own_.impedance, impedance_);
}

void WaveDiscretisation::put_by_wave(std::span<const double> by_port,
                                     std::span<double> by_wave) const {
  for (std::size_t j = 0; j < by_port.size(); ++j) {
    by_wave[static_cast<std::size_t>(wave_of_port_[j])] = by_port[j];
  }
}

std::vector<std::unique_ptr<StepBatch>> WaveDiscretisation::made_batches() const {
  std::vector<std::unique_ptr<StepBatch>> out;
  for (const BatchSlot& slot : batches_) out.push_back(made_batch(slot));
  return out;
}

std::unique_ptr<StepBatch> WaveDiscretisation::made_batch(const BatchSlot& slot) const {
  std::vector<const Component*> components;
  for (const int part : slot.parts) {
    components.push_back(system_.parts()[static_cast<std::size_t>(part)].component.get());
  }
  return components[0]->make_batch(components);
}

/// Announces the later requests to a batch, before it is prepared.
void WaveDiscretisation::announce(const BatchSlot& slot, StepBatch& batch) const {
  batch.expect({.inputs = slot.driven, .stage_increments = increments_ == StageIncrements::kept});
}

bool WaveDiscretisation::exchange_part(int part) {
  const PartSlot& place = slot(part);
  auto* const lanes =
      dynamic_cast<LaneExchange*>(own_.batches[static_cast<std::size_t>(place.batch)].get());
  if (lanes == nullptr) return false;
  const Component* const component =
      system_.parts()[static_cast<std::size_t>(part)].component.get();
  const std::unique_ptr<StepBatch> one = component->make_batch(std::span(&component, 1));
  return lanes->exchange(place.lane, *one, impedance_.data() + batch(place.batch).wave);
}

std::unique_ptr<StepBatch> WaveDiscretisation::batch_anew(int batch) const {
  const BatchSlot& slot = batches_[static_cast<std::size_t>(batch)];
  std::unique_ptr<StepBatch> out = made_batch(slot);
  announce(slot, *out);
  out->prepare(own_.step_s, impedance_.data() + slot.wave);
  return out;
}

void WaveDiscretisation::take_batch(int batch, std::unique_ptr<StepBatch> prepared) {
  std::unique_ptr<StepBatch>& own = own_.batches[static_cast<std::size_t>(batch)];
  own = std::move(prepared);
  batches_[static_cast<std::size_t>(batch)].use(*own);
}

void WaveDiscretisation::gather_island_groups(std::span<const int> order, bool together) {
  std::vector<int> island_size(static_cast<std::size_t>(system_.island_count()), 0);
  for (const int part : order) {
    ++island_size[static_cast<std::size_t>(system_.island_of_part(part))];
  }
  island_group_of_part_.resize(order.size());
  position_of_part_.resize(order.size());
  int island_group = -1, gathered = kSmallestAlone, previous_island = -1;
  for (std::size_t position = 0; position < order.size(); ++position) {
    const int part = order[position];
    const int island = system_.island_of_part(part);
    if (island != previous_island) {
      const int size = island_size[static_cast<std::size_t>(island)];
      const bool is_cut = system_.slice() != nullptr && system_.slice()->is_cut(island);
      const bool is_large = gathered >= kSmallestAlone || size >= kSmallestAlone || is_cut;
      if (island_group < 0 || (is_large && !together)) {
        ++island_group;
        gathered = 0;
      }
      gathered += is_cut ? kSmallestAlone : size;
      previous_island = island;
    }
    island_group_of_part_[static_cast<std::size_t>(part)] = island_group;
    position_of_part_[static_cast<std::size_t>(part)] = static_cast<int>(position);
  }
  island_group_count_ = island_group + 1;
}

void WaveDiscretisation::add_batch(const std::vector<int>& parts) {
  std::vector<const Component*> components;
  components.reserve(parts.size());
  for (const int part : parts) {
    components.push_back(system_.parts()[static_cast<std::size_t>(part)].component.get());
  }
  BatchSlot slot;
  own_.batches.push_back(components[0]->make_batch(components));
  slot.use(*own_.batches.back());
  slot.parts = parts;
  slot.capabilities = components[0]->capabilities();
  slot.island_group = island_group_of_part_[static_cast<std::size_t>(parts.front())];
  const StepBatch& batch = *slot.batch;
  constexpr std::size_t kLine = kAlignment / sizeof(double);
  slot.record = record_size_;
  const bool new_island_group =
      batches_.empty() || batches_.back().island_group != slot.island_group;
  if (batch.stride() > 1 ||
      new_island_group) {  // lane groups and island groups begin at cache lines
    wave_size_ = round_up(wave_size_, kLaneGroup);
    entry_count_ = round_up(entry_count_, kLaneGroup);
  }
  slot.wave = wave_size_;
  slot.input = input_size_;
  slot.entry = entry_count_;
  const bool is_of_switch = dynamic_cast<const SwitchSteps*>(&batch) != nullptr;
  for (int lane = 0; lane < batch.lanes(); ++lane) {
    const int index = parts[static_cast<std::size_t>(lane)];
    const Part& part = system_.parts()[static_cast<std::size_t>(index)];
    slots_[static_cast<std::size_t>(index)] = {static_cast<int>(batches_.size()), lane,
                                               wave_size_ + lane, batch.stride(),
                                               entry_count_ + lane};
    for (int j = 0; j < batch.wave_size(); ++j) {
      wave_of_port_[static_cast<std::size_t>(system_.first_scalar_port(index) + j)] =
          wave_size_ + j * batch.stride() + lane;
    }
    for (int j = 0; j < batch.input_size(); ++j) {
      if (!part.input_is_driven[static_cast<std::size_t>(j)]) continue;
      const auto driven = static_cast<std::size_t>(lane * batch.input_size() + j);
      driven_.push_back({&part, input_size_ + driven, index, j, is_of_switch});
      slot.driven = true;
    }
  }
  record_size_ += round_up(batch.record_size(), kLine);
  wave_size_ += batch.wave_count();
  entry_count_ += batch.stride();
  input_size_ +=
      static_cast<std::size_t>(batch.lanes()) * static_cast<std::size_t>(batch.input_size());
  batches_.push_back(std::move(slot));
}

void WaveDiscretisation::prepare(Preparation& preparation) const {
  std::vector<int> all(batches_.size());
  std::iota(all.begin(), all.end(), 0);
  AlignedVector by_wave(static_cast<std::size_t>(wave_size_), 1.0);
  put_by_wave(preparation.impedance, by_wave);
  prepare(preparation, all, by_wave);
  preparation.interconnection =
      std::make_unique<Interconnection>(system_.junctions(), wave_of_port_, by_wave);
}

void WaveDiscretisation::prepare(Preparation& preparation, std::span<const int> batches,
                                 std::span<const double> by_wave) const {
  Issues issues;
  for (const int i : batches) {
    const BatchSlot& slot = batches_[static_cast<std::size_t>(i)];
    StepBatch& batch = *preparation.batches[static_cast<std::size_t>(i)];
    try {
      announce(slot, batch);
      batch.prepare(preparation.step_s, by_wave.data() + slot.wave);
    } catch (const ConfigError& error) {
      for (const Issue& issue : error.issues()) {
        issues.push_back(
            {"/subsystems/" + std::to_string(slot.parts.front()) + issue.where, issue.what});
      }
    }
  }
  throw_if_any(std::move(issues));
}

namespace {

/// Runs act(range), which returns the outcome of the lanes. After a failure the lanes behind it are
/// run too, so that the failing part with the lowest number is found however the lanes were cut.
/// spoiled(lane) reports further failures in the lane group of the first one.
template <class Act, class Spoiled>
bool guarded(const BatchSlot& slot, std::span<const char> ignored, LaneRange lanes,
             PhaseStatus& failure, const Act& act, const Spoiled& spoiled) {
  PhaseStatus found;
  const auto note = [&](int lane, StepFault fault, const char* detail) {
    const int part = slot.parts[static_cast<std::size_t>(lane)];
    if (!ignored.empty() && ignored[static_cast<std::size_t>(part)] != 0) return;
    found.merge({part, fault, detail});
  };
  const auto fail = [&](int lane, StepFault fault, const char* detail) {
    note(lane, fault, detail);
    const int group = slot.batch->lane_group();
    lanes.first = (lane / group + 1) * group;
    for (int l = lane + 1; l < std::min(lanes.first, lanes.last); ++l) {
      if (spoiled(l)) note(l, fault, detail);
    }
  };
  while (lanes.first < lanes.last) {
    try {
      const LaneStatus status = act(lanes);
      if (status.ok()) break;
      fail(status.lane, status.fault, "");
    } catch (const LaneException& error) {
      fail(error.lane(), StepFault::threw, error.what());
    } catch (const std::exception& error) {
      fail(lanes.first, StepFault::threw, error.what());
    } catch (...) {
      fail(lanes.first, StepFault::threw, "an exception that is no std::exception");
    }
  }
  if (found.ok()) return true;
  failure = std::move(found);
  return false;
}

bool spoiled_waves(const BatchSlot& slot, int lane, const double* b) {
  for (int j = 0; j < slot.batch->wave_size(); ++j) {
    if (!std::isfinite(b[slot.wave + j * slot.batch->stride() + lane])) return true;
  }
  return false;
}

}  // namespace

bool WaveDiscretisation::freeze(int batch, LaneRange lanes, double* record, const double* input,
                                PhaseStatus& failure) const {
  const BatchSlot& slot = batches_[static_cast<std::size_t>(batch)];
  const bool driven = input != nullptr && slot.driven;
  const auto act = [&](LaneRange range) {
    slot.batch->freeze(range, record + slot.record, driven ? input + slot.input : nullptr);
    return LaneStatus{};
  };
  return guarded(slot, ignored_, lanes, failure, act, [](int) { return false; });
}

bool WaveDiscretisation::scatter(int batch, LaneRange lanes, double* record, const double* a,
                                 double* b, PhaseStatus& failure) const {
  const BatchSlot& slot = batches_[static_cast<std::size_t>(batch)];
  const auto act = [&](LaneRange range) {
    return slot.batch->scatter(range, record + slot.record, a + slot.wave, b + slot.wave);
  };
  return guarded(slot, ignored_, lanes, failure, act,
                 [&](int lane) { return spoiled_waves(slot, lane, b); });
}

bool WaveDiscretisation::inexact_scatter(int batch, LaneRange lanes, double* record,
                                         const double* a, double* b, PhaseStatus& failure) const {
  const BatchSlot& slot = batches_[static_cast<std::size_t>(batch)];
  const auto act = [&](LaneRange range) {
    return slot.batch->inexact_scatter(range, record + slot.record, a + slot.wave, b + slot.wave);
  };
  return guarded(slot, ignored_, lanes, failure, act,
                 [&](int lane) { return spoiled_waves(slot, lane, b); });
}

bool WaveDiscretisation::advance(int batch, LaneRange lanes, double* record, const double* a,
                                 double* next, double* b, const EnergyColumns& energy,
                                 PhaseStatus& failure) const {
  const BatchSlot& slot = batches_[static_cast<std::size_t>(batch)];
  const auto act = [&](LaneRange range) {
    return slot.batch->advance(range, record + slot.record, a + slot.wave, next + slot.record,
                               b + slot.wave, energy.from(slot.entry));
  };
  return guarded(slot, ignored_, lanes, failure, act,
                 [&](int lane) { return spoiled_waves(slot, lane, b); });
}

PhaseStatus WaveDiscretisation::freeze_all(double* record, const double* input,
                                           bool driven_only) const {
  PhaseStatus status, failure;
  for (int i = 0; i < static_cast<int>(batches_.size()); ++i) {
    if (driven_only && !batch(i).driven) continue;
    if (!freeze(i, batch(i).all(), record, input, failure)) status.merge(failure);
  }
  return status;
}

PhaseStatus WaveDiscretisation::scatter_all(double* record, const double* a, double* b) const {
  PhaseStatus status, failure;
  for (int i = 0; i < static_cast<int>(batches_.size()); ++i) {
    if (!scatter(i, batch(i).all(), record, a, b, failure)) status.merge(failure);
  }
  return status;
}

PhaseStatus WaveDiscretisation::inexact_scatter_all(double* record, const double* a,
                                                    double* b) const {
  PhaseStatus status, failure;
  for (int i = 0; i < static_cast<int>(batches_.size()); ++i) {
    if (!inexact_scatter(i, batch(i).all(), record, a, b, failure)) status.merge(failure);
  }
  return status;
}

PhaseStatus WaveDiscretisation::advance_all(double* record, const double* a, double* next,
                                            double* b, const EnergyColumns& energy) const {
  PhaseStatus status, failure;
  for (int i = 0; i < static_cast<int>(batches_.size()); ++i) {
    if (!advance(i, batch(i).all(), record, a, next, b, energy, failure)) status.merge(failure);
  }
  return status;
}

std::size_t WaveDiscretisation::bytes() const {
  std::size_t sum = slots_.capacity() * sizeof(PartSlot) +
                    (impedance_.capacity() + wanted_.capacity()) * sizeof(double) +
                    driven_.capacity() * sizeof(DrivenInput) + own_.interconnection->bytes() +
                    reduction_.bytes();
  for (const auto* v :
       {&wave_of_port_, &part_of_wave_, &island_group_of_part_, &position_of_part_}) {
    sum += v->capacity() * sizeof(int);
  }
  for (const BatchSlot& slot : batches_) {
    sum += sizeof(BatchSlot) + slot.parts.capacity() * sizeof(int);
  }
  return sum;
}

AlignedVector WaveDiscretisation::initial_record() const {
  AlignedVector record(record_size_, 0.0);
  for (std::size_t i = 0; i < slots_.size(); ++i) {
    const BatchSlot& own = batch(slots_[i].batch);
    own.batch->set_state(slots_[i].lane, system_.parts()[i].initial_state.data(),
                         record.data() + own.record);
  }
  const PhaseStatus status = freeze_all(record.data(), nullptr);
  if (!status.ok()) {
    throw ConfigError("/subsystems/" + std::to_string(status.part) + "/initial_state",
                      "cannot be frozen: " + status.detail);
  }
  return record;
}

void WaveDiscretisation::get_state(int part, const double* record, double* x) const {
  const BatchSlot& own = batch(slot(part).batch);
  own.batch->get_state(slot(part).lane, record + own.record, x);
}

/// Inputs of stages and substeps follow one another, with all inputs of the part in each.
int WaveDiscretisation::input_before_stages(const DrivenInput& driven) {
  const Component& component = *driven.in->component;
  const int inputs = static_cast<int>(component.signature().inputs.size());
  return driven.input % (inputs / (component.stages() * component.substeps()));
}

bool WaveDiscretisation::sample_inputs(double time_s, double* input, PhaseStatus& failure,
                                       std::span<const double> set_values,
                                       std::span<const MovedInputJump> moved) const {
  const double mid_s = time_s + 0.5 * own_.step_s;
  const DrivenInput* current = nullptr;
  const auto failed = [&](std::string_view what) {
    const Part& part = system_.parts()[static_cast<std::size_t>(current->part)];
    const auto number = static_cast<std::size_t>(current->input);
    failure = {
        current->part, StepFault::threw,
        fmt::format("input \"{}\": {}", part.component->signature().inputs[number].name, what)};
    return false;
  };
  try {
    for (const DrivenInput& driven : driven_) {
      if (is_ignored(driven.part)) continue;
      current = &driven;
      if (driven.is_of_switch) {
        const auto number = static_cast<std::size_t>(driven.input);
        const std::vector<InputNode>& nodes = driven.in->input_nodes;
        const InputNode node = nodes.empty() ? InputNode{} : nodes[number];
        input[driven.slot] =
            node.scale * closed_share(driven.in->inputs[number], mid_s + node.begin * own_.step_s,
                                      node.length * own_.step_s, set_values);
        continue;
      }
      const auto with = [&](const Signal::MovedJump* jump) {
        return driven.in->input_at(static_cast<std::size_t>(driven.input), mid_s, own_.step_s,
                                   set_values, jump);
      };
      const double sampled = with(nullptr);
      input[driven.slot] = sampled;
      for (const MovedInputJump& own : moved) {  // the sum of what each adds
        if (own.part != driven.part || own.input != input_before_stages(driven)) continue;
        input[driven.slot] += with(&own.jump) - sampled;
      }
    }
  } catch (const std::exception& error) {
    return failed(error.what());
  } catch (...) {
    return failed("an exception that is no std::exception");
  }
  return true;
}

}  // namespace portwave
