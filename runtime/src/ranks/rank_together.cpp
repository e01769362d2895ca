#include "ranks/rank_together.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <fmt/format.h>

#include "portwave/runtime/ranks/slice_builder.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"
#include "ranks/agreement.hpp"
#include "ranks/rank_executor.hpp"

namespace portwave {
namespace {

/// The first rank decides for all: every rank cuts the system alike.
LaneCosts costs_of_first(Ranks& ranks, LaneCosts own) {
  const auto agree = [&](std::vector<double>& costs) {
    const std::size_t bytes = costs.size() * sizeof(double);
    std::vector<std::size_t> sizes(static_cast<std::size_t>(ranks.size()), 0);
    sizes[0] = bytes;
    std::vector<double> all(costs.size());
    const std::span<const double> given =
        ranks.rank() == 0 ? std::span<const double>(costs) : std::span<const double>();
    ranks.gather(std::as_bytes(given), sizes, std::as_writable_bytes(std::span(all)));
    costs = std::move(all);
  };
  agree(own.scatter_ns);
  agree(own.advance_ns);
  return own;
}

}  // namespace

RankTogether::RankTogether(const System& system, std::shared_ptr<Ranks> ranks)
    : Together(Others{}), system_(system), slice_(system.slice()), ranks_(std::move(ranks)) {
  expect_same_program(*ranks_);
}

std::unique_ptr<Together> together_of(const System& system, const std::shared_ptr<Ranks>& ranks) {
  if (ranks == nullptr || ranks->size() == 1) return std::make_unique<Together>();
  return std::make_unique<RankTogether>(system, ranks);
}

// While the engine is built.

void RankTogether::agree(const char* what, const std::function<std::uint64_t()>& digest) {
  expect_same(*ranks_, digest(), what);
}

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

/// An island of one task belongs to one rank; if its interface equation may be solved, which takes all of
/// the island, the solve is every rank's work.
Runner RankTogether::make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                                 const double* record, LaneCosts& costs) {
  const int threads = first_single_threaded(waves) >= 0 ? 1 : options.threads;
  RankCut cut;
  if (slice_ != nullptr) {
    costs = measured_costs(waves, record);
    cut = cut_of_slice(waves, costs, options.grain, threads, options.iterations);
  } else {
    // The choice of waves that may be late affects results, so it must not depend on a measurement.
    costs = options.max_delay > 0 ? declared_costs(waves)
                                  : costs_of_first(*ranks_, measured_costs(waves, record));
    cut = cut_for_ranks(waves, costs, options.grain, ranks_->size(), threads, options.iterations,
                        options.may_solve, ranks_.get());
    expect_same_cut(cut, *ranks_);
  }
  shares_ = std::make_shared<RankShares>(waves, cut, ranks_);
  partition_ = cut.partition;
  return {make_rank_executor(waves, partition_, threads, shares_,
                             slice_ != nullptr ? 0 : options.max_delay),
          description(options.max_delay),
          partition_,
          {}};
}

std::string RankTogether::description(int max_delay) const {
  if (slice_ != nullptr) {
    return fmt::format("{} tasks on the first of {} ranks, in slices", shares_->own_tasks().size(),
                       ranks_->size());
  }
  const auto on_first = std::ranges::count_if(
      shares_->ranks_of_tasks(), [](int rank) { return rank == 0 || rank == RankShares::kEvery; });
  const std::string late =
      max_delay > 0 ? fmt::format(", waves up to {} late", max_delay) : std::string();
  return fmt::format("{} tasks on {} ranks, {} of them on the first{}", partition_.tasks.size(),
                     ranks_->size(), on_first, late);
}

void RankTogether::join(FollowingEngine& engine, const WaveDiscretisation& waves,
                        EnergyLedger& ledger, std::span<double> settings, const WaveState& now,
                        const WaveState& next) {
  engine_ = &engine;
  waves_ = &waves;
  orders_.emplace(*ranks_, settings);
  lanes_.emplace(*shares_, *orders_, ledger, now, next, slice_ != nullptr);
}

NetworkPeers* RankTogether::network_peers() {
  if (peers_ == nullptr) {
    peers_ = std::make_unique<RankPeers>(*ranks_, [this] {
      if (orders_) orders_->send_if_leading({RankOrder::fetch});
    });
  }
  return peers_.get();
}

void RankTogether::join(FollowingEngine& engine, std::span<double> settings) {
  engine_ = &engine;
  orders_.emplace(*ranks_, settings);
}

void RankTogether::leave() {
  if (!orders_) return;
  try {
    orders_->send_if_leading({RankOrder::end});
  } catch (const RankError&) {  // then nobody waits for it
  }
}

// Of a step.

PhaseStatus RankTogether::merged(PhaseStatus own) {
  return slice_ != nullptr ? shares_->merged(std::move(own)) : own;
}

PhaseStatus RankTogether::freeze(const WaveDiscretisation& waves, double* record,
                                 const double* driven, bool driven_only) {
  PhaseStatus failure;
  for (const BatchRange& range : shares_->own_ranges()) {
    if (driven_only && !waves.batch(range.batch).driven) continue;
    PhaseStatus own;
    if (!waves.freeze(range.batch, range.lanes, record, driven, own)) {
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
  if (!orders_) return;  // the engine steps alone
  constexpr auto kind_of = [](Order::Kind own) {
    if (own == Order::Kind::step) return RankOrder::step;
    return own == Order::Kind::step_towards ? RankOrder::step_towards : RankOrder::settings_changed;
  };
  orders_->send_if_leading({kind_of(kind), value});
  orders_->enter();
}

void RankTogether::follow(const std::function<void(std::span<const std::byte>)>& told) {
  told_ = &told;
  while (orders_ && ranks_->rank() != 0) {
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
      return lanes_ ? lanes_->fetch() : engine_->fetch_state();
    case RankOrder::fetch_energies:
      return lanes_->fetch_energies();
    case RankOrder::take_state:
      return receive_state(count);
    case RankOrder::take_jump: {
      std::vector<std::byte> jump(count);
      ranks_->broadcast(jump);
      return engine_->take_jump(jump);
    }
    case RankOrder::prepare_terms: {
      std::vector<QuantityTerm> list(count);
      ranks_->broadcast(std::as_writable_bytes(std::span(list)));
      take_terms(std::move(list));
      return;
    }
    case RankOrder::read_terms:
      return gather_terms(static_cast<int>(order.value), {});
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
  throw std::logic_error(
      "a rank follows without a Follower, and receives no messages (RankedStepper::follow)");
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

void RankTogether::send_jump(std::span<const std::byte> bytes) {
  if (!orders_->is_leading()) return;
  orders_->send({RankOrder::take_jump, static_cast<double>(bytes.size())});
  std::vector<std::byte> message(bytes.begin(), bytes.end());
  ranks_->broadcast(message);
}

void RankTogether::receive_state(std::size_t bytes) {
  std::vector<std::byte> state(bytes);
  ranks_->broadcast(state);
  StateArchive reader = StateArchive::reader(state);
  engine_->archive(reader);
  reader.finish();
}

// Terms.

int RankTogether::rank_of_part(int part) const {
  if (slice_ != nullptr) return slice_->ranks[at(part)];
  if (!lanes_) return 0;  // it fetches what it looks at
  if (rank_of_part_.empty()) {
    rank_of_part_ = ranks_of_parts(*waves_, partition_, shares_->ranks_of_tasks());
  }
  return rank_of_part_[at(part)];
}

int RankTogether::prepare_terms(std::span<const QuantityTerm> terms) {
  orders_->send({RankOrder::prepare_terms, static_cast<double>(terms.size())});
  std::vector<QuantityTerm> list(terms.begin(), terms.end());
  ranks_->broadcast(std::as_writable_bytes(std::span(list)));
  return take_terms(std::move(list));
}

int RankTogether::take_terms(std::vector<QuantityTerm> list) {
  std::vector<int> ranks;
  for (const QuantityTerm& own : list) {
    ranks.push_back(
        rank_of_part(is_of_a_part(own) ? own.part : system_.scalar_ports()[at(own.index)].part));
  }
  gathers_.emplace_back(std::move(list), ranks, *ranks_);
  return static_cast<int>(gathers_.size()) - 1;
}

void RankTogether::read_terms(int set, std::span<double> values) {
  if (!lanes_ || lanes_->has_all()) return read_own(gathers_.at(at(set)).terms(), values);
  orders_->send({RankOrder::read_terms, static_cast<double>(set)});
  gather_terms(set, values);
}

void RankTogether::gather_terms(int set, std::span<double> values) {
  const RankLanes::LookAtOwn own(*lanes_);
  gathers_.at(at(set)).gather([this](const QuantityTerm& term) { return engine_->read(term); },
                              values);
}

void RankTogether::read_own(std::span<const QuantityTerm> terms, std::span<double> values) {
  std::optional<RankLanes::LookAtOwn> own;
  if (lanes_) own.emplace(*lanes_);
  for (std::size_t i = 0; i < terms.size(); ++i) values[i] = engine_->read(terms[i]);
}

}  // namespace portwave
