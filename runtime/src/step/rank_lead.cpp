#include "step/rank_lead.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {

RankLead::RankLead(StepEngine& engine, const WaveDiscretisation& waves, const Partition& partition,
                   std::shared_ptr<RankShares> shares, EnergyLedger& ledger,
                   std::span<double> settings, const WaveState& now, const WaveState& next)
    : engine_(engine),
      waves_(waves),
      partition_(partition),
      slice_(waves.system().slice()),
      shares_(std::move(shares)),
      ranks_(shares_->ranks()),
      orders_(ranks_, settings),
      lanes_(*shares_, orders_, ledger, now, next, slice_ != nullptr) {}

RankLead::~RankLead() {
  try {
    orders_.send_if_leading({RankOrder::end});
  } catch (const RankError&) {  // then nobody waits for it
  }
}

void RankLead::follow(const StepEngine::Hooks& hooks) {
  hooks_ = &hooks;
  while (ranks_.rank() != 0) {
    const RankOrder order = orders_.receive();
    if (order.kind == RankOrder::end || order.kind == RankOrder::release) return;
    const RankOrders::Common common(&orders_);
    try {
      const auto report = carry_out(order);
      if (report && hooks.stepped) hooks.stepped(*report);
    } catch (const StepError&) {  // rank 0 tells of it
    } catch (const ConfigError&) {
    }
  }
}

/// Gives the report of a step.
std::optional<StepReport> RankLead::carry_out(const RankOrder& order) {
  const auto count = static_cast<std::size_t>(order.value);
  switch (order.kind) {
    case RankOrder::step:
      return engine_.step(order.value);
    case RankOrder::step_towards:
      return engine_.step_towards(order.value);
    case RankOrder::fetch:
      lanes_.fetch();
      break;
    case RankOrder::fetch_energies:
      lanes_.fetch_energies();
      break;
    case RankOrder::settings_changed:
      engine_.settings_changed();
      break;
    case RankOrder::take_state:
      receive_state(count);
      break;
    case RankOrder::prepare_channels: {
      std::vector<ScalarChannel> list(count);
      ranks_.broadcast(std::as_writable_bytes(std::span(list)));
      take_channels(std::move(list));
      break;
    }
    case RankOrder::read_channels:
      gather_channels(static_cast<int>(order.value), {});
      break;
    case RankOrder::tell:
      hear(count);
      break;
    case RankOrder::release:
    case RankOrder::end:
      break;
  }
  return std::nullopt;
}

void RankLead::tell_followers(std::span<const std::byte> message) {
  orders_.send({RankOrder::tell, static_cast<double>(message.size())});
  std::vector<std::byte> bytes(message.begin(), message.end());
  ranks_.broadcast(bytes);
  if (!is_anybody_deaf()) return;
  throw std::logic_error("a rank follows alone, and nobody there is told (Stepper::follow)");
}

void RankLead::hear(std::size_t bytes) {
  std::vector<std::byte> message(bytes);
  ranks_.broadcast(message);
  if (!is_anybody_deaf()) hooks_->told(message);
}

/// Whether one of the others follows without hooks. All ranks call it.
bool RankLead::is_anybody_deaf() const {
  const bool listens = ranks_.rank() == 0 || hooks_->told != nullptr;
  return std::ranges::any_of(gather_values(ranks_, listens ? 1 : 0),
                             [](int own) { return own == 0; });
}

void RankLead::send_state() {
  if (!orders_.is_leading()) return;
  std::vector<std::byte> bytes;
  StateArchive writer = StateArchive::writer(bytes);
  engine_.archive(writer);
  writer.finish();
  orders_.send({RankOrder::take_state, static_cast<double>(bytes.size())});
  ranks_.broadcast(bytes);
}

void RankLead::receive_state(std::size_t bytes) {
  std::vector<std::byte> state(bytes);
  ranks_.broadcast(state);
  StateArchive reader = StateArchive::reader(state);
  engine_.archive(reader);
  reader.finish();
}

int RankLead::rank_of_part(int part) const {
  if (slice_ != nullptr) return slice_->ranks[at(part)];
  if (rank_of_part_.empty()) {
    rank_of_part_ = ranks_of_parts(waves_, partition_, shares_->ranks_of_tasks());
  }
  return rank_of_part_[at(part)];
}

int RankLead::prepare_channels(std::span<const ScalarChannel> channels) {
  orders_.send({RankOrder::prepare_channels, static_cast<double>(channels.size())});
  std::vector<ScalarChannel> list(channels.begin(), channels.end());
  ranks_.broadcast(std::as_writable_bytes(std::span(list)));
  return take_channels(std::move(list));
}

int RankLead::take_channels(std::vector<ScalarChannel> list) {
  std::vector<int> ranks;
  for (const ScalarChannel& own : list) {
    const bool is_of_part =
        own.kind == ScalarChannel::Kind::state || own.kind == ScalarChannel::Kind::storage;
    ranks.push_back(
        rank_of_part(is_of_part ? own.part : engine_.system().scalar_ports()[at(own.index)].part));
  }
  channels_.emplace_back(std::move(list), ranks, ranks_);
  return static_cast<int>(channels_.size()) - 1;
}

void RankLead::read_channels(int set, std::span<double> values) {
  if (lanes_.has_all()) return read_own(channels_.at(at(set)).channels(), values);
  orders_.send({RankOrder::read_channels, static_cast<double>(set)});
  gather_channels(set, values);
}

void RankLead::gather_channels(int set, std::span<double> values) {
  const RankLanes::LookAtOwn own(lanes_);
  channels_.at(at(set)).gather(
      [this](const ScalarChannel& channel) { return read(engine_, channel); }, values);
}

void RankLead::read_own(std::span<const ScalarChannel> channels, std::span<double> values) {
  const RankLanes::LookAtOwn own(lanes_);
  for (std::size_t i = 0; i < channels.size(); ++i) values[i] = read(engine_, channels[i]);
}

}  // namespace portwave
