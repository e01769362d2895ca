#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "ranks/channel_gather.hpp"
#include "ranks/rank_lanes.hpp"
#include "ranks/rank_orders.hpp"
#include "ranks/rank_shares.hpp"
#include "step/step_engine.hpp"

namespace portwave {

/// How several ranks use one engine: rank 0 as if it were alone, and what of that takes the others it
/// tells them to do; they follow.
class RankLead {
 public:
  /// `engine` of this rank, which steps the tasks of `partition`. `now`, `next`: as of RankLanes.
  RankLead(StepEngine& engine, const WaveDiscretisation& waves, const Partition& partition,
           std::shared_ptr<RankShares> shares, EnergyLedger& ledger, std::span<double> settings,
           const WaveState& now, const WaveState& next);
  /// Rank 0 tells the others that the run is over.
  ~RankLead();
  RankLead(const RankLead&) = delete;
  RankLead& operator=(const RankLead&) = delete;

  RankOrders& orders() { return orders_; }
  RankLanes& lanes() { return lanes_; }

  /// On other ranks than 0: carries out what rank 0 says, until it releases them or ends.
  void follow(const StepEngine::Hooks& hooks);
  void release_followers() { orders_.send_if_leading({RankOrder::release}); }
  /// Rank 0 tells all others some bytes. Errors: std::logic_error where one has nobody to hear them.
  void tell_followers(std::span<const std::byte> message);
  /// Of rank 0, where it leads: all others take over the state of its engine, after it was read back.
  void send_state();

  /// Which rank steps a part.
  int rank_of_part(int part) const;
  // Channels, as of Stepper::prepare_channels; on rank 0.
  int prepare_channels(std::span<const ScalarChannel> channels);
  void read_channels(int set, std::span<double> values);
  /// Any rank, of its own parts.
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values);

 private:
  std::optional<StepReport> carry_out(const RankOrder& order);
  void receive_state(std::size_t bytes);
  void hear(std::size_t bytes);
  bool is_anybody_deaf() const;
  int take_channels(std::vector<ScalarChannel> list);
  void gather_channels(int set, std::span<double> values);

  StepEngine& engine_;
  const WaveDiscretisation& waves_;
  const Partition& partition_;
  const SystemSlice* slice_;  // null: every rank has the whole system
  std::shared_ptr<RankShares> shares_;
  Ranks& ranks_;
  RankOrders orders_;
  RankLanes lanes_;
  std::vector<ChannelGather> channels_;       // by set
  mutable std::vector<int> rank_of_part_;     // empty until asked for
  const StepEngine::Hooks* hooks_ = nullptr;  // while it follows
};

}  // namespace portwave
