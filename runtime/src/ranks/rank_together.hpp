#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "parallel/together.hpp"
#include "parallel/wave_state.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "ranks/channel_gather.hpp"
#include "ranks/rank_lanes.hpp"
#include "ranks/rank_orders.hpp"
#include "ranks/rank_shares.hpp"
#include "ranks/slice_sums.hpp"

namespace portwave {

/// The engine of a rank, as it is used by the first rank's orders.
class RankedEngine {
 public:
  /// Carries out an order. What fails is told by the first rank.
  virtual void carry_out(Together::Order::Kind kind, double value) = 0;
  virtual void archive(StateArchive& archive) = 0;
  virtual double read(const ScalarChannel& channel) = 0;

 protected:
  ~RankedEngine() = default;
};

/// What several ranks do together. Rank 0 is used as if it were alone, and tells the others what takes them
/// to do it; they follow.
class RankTogether final : public Together {
 public:
  RankTogether(const System& system, std::shared_ptr<Ranks> ranks);
  /// Rank 0 tells the others that the run is over.
  ~RankTogether() override;

  /// The engine of this rank is complete: it steps the tasks of `partition`. `now`, `next`: as of RankLanes.
  void join(RankedEngine& engine, const WaveDiscretisation& waves, const Partition& partition,
            std::shared_ptr<RankShares> shares, EnergyLedger& ledger, std::span<double> settings,
            const WaveState& now, const WaveState& next);
  /// The stepper is complete: from now on rank 0 tells the others what to do.
  void lead() { orders_->begin(); }

  bool is_first() const override { return ranks_->rank() == 0; }
  SlicesTogether* slices() override { return sums_.get(); }
  PhaseStatus merged(PhaseStatus own) override;
  PhaseStatus freeze(const WaveDiscretisation& waves, double* record, const double* driven,
                     bool driven_only) override;
  void note_written() override { lanes_->note_written(); }
  void note_restored() override { lanes_->note_restored(); }
  void fetch() override {
    if (lanes_) lanes_->fetch();
  }
  void fetch_energies() override {
    if (lanes_) lanes_->fetch_energies();
  }
  void fetch_next() override { lanes_->fetch_next(); }
  InterfaceResidual::Share largest_share(const System& system, const InterfaceResidual& residual,
                                         const std::function<bool(int island)>& counts) override;
  void failed_to_discretise() override;
  void discretised(const WaveDiscretisation& waves) override;
  bool any(bool own) override { return sums_ ? sums_->any(own) : own; }
  void check(const std::function<void()>& check) override {
    sums_ ? sums_->check_together(check) : check();
  }
  std::string name_of(const System& system, int part) override;
  std::string kept_name(const System& system, int number) const override {
    return sums_ ? sums_->kept_name(number) : system.name_of_part(number);
  }
  void send_state() override;

  // What the programs of the ranks ask for (RankedStepper).
  Ranks& ranks() const { return *ranks_; }
  /// Which rank steps a part.
  int rank_of_part(int part) const;
  /// On other ranks than 0: carries out what rank 0 says, until it releases them or ends. `told`: hears of
  /// `tell_followers`; empty: nobody does.
  void follow(const std::function<void(std::span<const std::byte>)>& told);
  void release_followers() { orders_->send_if_leading({RankOrder::release}); }
  /// Rank 0 tells all others some bytes. Errors: std::logic_error where one has nobody to hear them.
  void tell_followers(std::span<const std::byte> message);
  // Sets of channels that are read together (ChannelSet); on rank 0.
  int prepare_channels(std::span<const ScalarChannel> channels);
  void read_channels(int set, std::span<double> values);
  /// Any rank, of its own parts.
  void read_own(std::span<const ScalarChannel> channels, std::span<double> values);

 private:
  void begin_order(Order::Kind kind, double value) override;
  void end_order() override { orders_->leave(); }
  void committed() override { lanes_->note_committed(); }
  void accepted() override { lanes_->note_accepted(); }
  void name_kept(int use, std::int64_t number) override {
    if (sums_) sums_->keep_name(use, number);
  }
  bool has_failed_anywhere(bool here);
  void carry_out(const RankOrder& order);
  void receive_state(std::size_t bytes);
  void hear(std::size_t bytes);
  bool is_anybody_deaf() const;
  int take_channels(std::vector<ScalarChannel> list);
  void gather_channels(int set, std::span<double> values);

  const System& system_;
  const SystemSlice* slice_;  // null: every rank has the whole system
  std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<SliceSums> sums_;  // of slices
  // From `join` on.
  RankedEngine* engine_ = nullptr;
  const WaveDiscretisation* waves_ = nullptr;
  const Partition* partition_ = nullptr;
  std::shared_ptr<RankShares> shares_;
  std::optional<RankOrders> orders_;
  std::optional<RankLanes> lanes_;
  std::vector<ChannelGather> channels_;                                    // by set
  mutable std::vector<int> rank_of_part_;                                  // empty until asked for
  const std::function<void(std::span<const std::byte>)>* told_ = nullptr;  // while it follows
};

}  // namespace portwave
