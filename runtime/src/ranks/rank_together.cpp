#include "ranks/rank_together.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

RankTogether::RankTogether(const System& system, std::shared_ptr<Ranks> ranks)
    : Together(Others{}),
      system_(system),
      slice_(system.slice()),
      ranks_(std::move(ranks)) {}

RankTogether::~RankTogether() {
  if (!orders_) return;
  try {
    orders_->send_if_leading({RankOrder::end});
  } catch (const RankError&) {  // then nobody waits for it
  }
}

// While the engine is built.

bool RankTogether::has_failed_anywhere(bool here) {
  const std::vector<char> all = gather_values(*ranks_, static_cast<char>(here ? 1 : 0));
  return std::ranges::any_of(all, [](char own) { return own != 0; });
}

void RankTogether::failed_to_discretise() {
  if (slice_ != nullptr) has_failed_anywhere(true);
}

void RankTogether::discretised(const WaveDiscretisation& waves) {
  if (slice_ == nullptr) return;
  if (has_failed_anywhere(false)) {
    throw SliceDefects("the slice of another rank has defects");
  }
  sums_ = std::make_unique<SliceSums>(waves, ranks_);
}

void RankTogether::join(RankedEngine& engine, const WaveDiscretisation& waves,
                        const Partition& partition, std::shared_ptr<RankShares> shares,
                        EnergyLedger& ledger, std::span<double> settings, const WaveState& now,
                        const WaveState& next) {
  engine_ = &engine;
  waves_ = &waves;
  partition_ = &partition;
  shares_ = std::move(shares);
  orders_.emplace(*ranks_, settings);
  lanes_.emplace(*shares_, *orders_, ledger, now, next, slice_ != nullptr);
}

// Of a step.

PhaseStatus RankTogether::merged(PhaseStatus own) {
  return slice_ != nullptr ? shares_->merged(std::move(own)) : own;
}

PhaseStatus RankTogether::freeze(const WaveDiscretisation& waves, double* record,
                                 const double* driven, bool driven_only) {
  PhaseStatus failure;
  for (const TaskSlice& slice : shares_->own_slices()) {
    if (driven_only && !waves.batch(slice.batch).driven) continue;
    PhaseStatus own;
    if (!waves.freeze(slice.batch, slice.lanes, record, driven, own)) {
      failure.merge(std::move(own));
    }
  }
  lanes_->note_written();
  return shares_->merged(std::move(failure));
}

InterfaceResidual::Share RankTogether::largest_share(
    const System& system, const InterfaceResidual& residual,
    const std::function<bool(int island)>& counts) {
  return lanes_->largest_share(residual,
                               [&](int part) { return counts(system.island_of_part(part)); });
}

std::string RankTogether::name_of(const System& system, int part) {
  return sums_ ? sums_->name_of(part) : system.name_of_part(part);
}

// Orders.

void RankTogether::begin_order(Order::Kind kind, double value) {
  constexpr auto kind_of = [](Order::Kind own) {
    if (own == Order::Kind::step) return RankOrder::step;
    return own == Order::Kind::step_towards ? RankOrder::step_towards : RankOrder::settings_changed;
  };
  orders_->send_if_leading({kind_of(kind), value});
  orders_->enter();
}

void RankTogether::follow(const std::function<void(std::span<const std::byte>)>& told) {
  told_ = &told;
  while (ranks_->rank() != 0) {
    const RankOrder order = orders_->receive();
    if (order.kind == RankOrder::end || order.kind == RankOrder::release) return;
    const RankOrders::Common common(*orders_);
    carry_out(order);
  }
}

void RankTogether::carry_out(const RankOrder& order) {
  const auto count = static_cast<std::size_t>(order.value);
  switch (order.kind) {
    case RankOrder::step:
      return engine_->carry_out(Order::Kind::step, order.value);
    case RankOrder::step_towards:
      return engine_->carry_out(Order::Kind::step_towards, order.value);
    case RankOrder::settings_changed:
      return engine_->carry_out(Order::Kind::settings_changed, order.value);
    case RankOrder::fetch:
      return lanes_->fetch();
    case RankOrder::fetch_energies:
      return lanes_->fetch_energies();
    case RankOrder::take_state:
      return receive_state(count);
    case RankOrder::prepare_channels: {
      std::vector<ScalarChannel> list(count);
      ranks_->broadcast(std::as_writable_bytes(std::span(list)));
      take_channels(std::move(list));
      return;
    }
    case RankOrder::read_channels:
      return gather_channels(static_cast<int>(order.value), {});
    case RankOrder::tell:
      return hear(count);
    case RankOrder::release:
    case RankOrder::end:
      return;
  }
}

void RankTogether::tell_followers(std::span<const std::byte> message) {
  orders_->send({RankOrder::tell, static_cast<double>(message.size())});
  std::vector<std::byte> bytes(message.begin(), message.end());
  ranks_->broadcast(bytes);
  if (!is_anybody_deaf()) return;
  throw std::logic_error("a rank follows alone, and nobody there is told (RankedStepper::follow)");
}

void RankTogether::hear(std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  ranks_->broadcast(message);
  if (!is_anybody_deaf()) (*told_)(message);
}

/// Whether one of the others follows without anybody to tell. All ranks call it.
bool RankTogether::is_anybody_deaf() const {
  const bool listens = ranks_->rank() == 0 || *told_ != nullptr;
  return std::ranges::any_of(gather_values(*ranks_, listens ? 1 : 0),
                             [](int own) { return own == 0; });
}

void RankTogether::send_state() {
  if (!orders_->is_leading()) return;
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  engine_->archive(writer);
  writer.finish();
  orders_->send({RankOrder::take_state, static_cast<double>(bytes.size())});
  ranks_->broadcast(bytes);
}

void RankTogether::receive_state(std::size_t bytes) {
  std::vector<std::byte> state(bytes);
  ranks_->broadcast(state);
  StateArchive reader = StateArchive::reader(state);
  engine_->archive(reader);
  reader.finish();
}

// Channels.

int RankTogether::rank_of_part(int part) const {
  if (slice_ != nullptr) return slice_->ranks[at(part)];
  if (rank_of_part_.empty()) {
    rank_of_part_ = ranks_of_parts(*waves_, *partition_, shares_->ranks_of_tasks());
  }
  return rank_of_part_[at(part)];
}

int RankTogether::prepare_channels(std::span<const ScalarChannel> channels) {
  orders_->send({RankOrder::prepare_channels, static_cast<double>(channels.size())});
  std::vector<ScalarChannel> list(channels.begin(), channels.end());
  ranks_->broadcast(std::as_writable_bytes(std::span(list)));
  return take_channels(std::move(list));
}

int RankTogether::take_channels(std::vector<ScalarChannel> list) {
  std::vector<int> ranks;
  for (const ScalarChannel& own : list) {
    const bool is_of_part =
        own.kind == ScalarChannel::Kind::state || own.kind == ScalarChannel::Kind::storage;
    ranks.push_back(
        rank_of_part(is_of_part ? own.part : system_.scalar_ports()[at(own.index)].part));
  }
  channels_.emplace_back(std::move(list), ranks, *ranks_);
  return static_cast<int>(channels_.size()) - 1;
}

void RankTogether::read_channels(int set, std::span<double> values) {
  if (lanes_->has_all()) return read_own(channels_.at(at(set)).channels(), values);
  orders_->send({RankOrder::read_channels, static_cast<double>(set)});
  gather_channels(set, values);
}

void RankTogether::gather_channels(int set, std::span<double> values) {
  const RankLanes::LookAtOwn own(*lanes_);
  channels_.at(at(set)).gather(
      [this](const ScalarChannel& channel) { return engine_->read(channel); }, values);
}

void RankTogether::read_own(std::span<const ScalarChannel> channels, std::span<double> values) {
  const RankLanes::LookAtOwn own(*lanes_);
  for (std::size_t i = 0; i < channels.size(); ++i) values[i] = engine_->read(channels[i]);
}

}  // namespace portwave
