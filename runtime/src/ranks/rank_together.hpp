#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "parallel/together.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "ranks/rank_lanes.hpp"
#include "ranks/rank_orders.hpp"
#include "ranks/rank_peers.hpp"
#include "ranks/rank_shares.hpp"
#include "ranks/slice_sums.hpp"
#include "ranks/term_gather.hpp"

namespace portwave {

/// The joint work of several ranks. The program of rank 0 uses its stepper as if it were alone; rank 0 sends
/// the others an order for everything that needs them, and they follow.
class RankTogether final : public Together {
 public:
  /// All ranks construct it. Errors: RankError if they run different programs.
  RankTogether(const System& system, std::shared_ptr<Ranks> ranks);

  bool is_first() const override { return ranks_->rank() == 0; }
  bool has_whole() const override { return slice_ == nullptr; }
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
  void agree(const char* what, const std::function<std::uint64_t()>& digest) override;
  void failed_to_discretise() override;
  void discretised(const WaveDiscretisation& waves) override;
  Runner make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                     const double* record, LaneCosts& costs) override;
  void join(FollowingEngine& engine, const WaveDiscretisation& waves, EnergyLedger& ledger,
            std::span<double> settings, const WaveState& now, const WaveState& next) override;
  NetworkPeers* network_peers() override;
  void join(FollowingEngine& engine, std::span<double> settings) override;
  void lead() override {
    if (orders_) orders_->begin();
  }
  void leave() override;
  void follow(const std::function<void(std::span<const std::byte>)>& told) override;
  bool any(bool own) override { return sums_ ? sums_->any(own) : own; }
  void check(const std::function<void()>& check) override {
    sums_ ? sums_->check_together(check) : check();
  }
  std::string name_of(const System& system, int part) override;
  std::string kept_name(const System& system, int number) const override {
    return sums_ ? sums_->kept_name(number) : system.name_of_part(number);
  }
  void send_jump(std::span<const std::byte> bytes) override;
  void send_state() override;

  // For the programs of the ranks (RankedStepper), after an engine has joined.
  bool has_engine() const { return engine_ != nullptr; }
  Ranks& ranks() const { return *ranks_; }
  /// The rank that steps a part.
  int rank_of_part(int part) const;
  void release_followers() { orders_->send_if_leading({RankOrder::release}); }
  /// Sends a message from rank 0 to all others. Errors: std::logic_error if one follows without a Follower.
  void tell_followers(std::span<const std::byte> message);
  // Sets of terms that are read together (TermGather); on rank 0.
  int prepare_terms(std::span<const QuantityTerm> terms);
  void read_terms(int set, std::span<double> values);
  /// On any rank: terms of its own parts.
  void read_own(std::span<const QuantityTerm> terms, std::span<double> values);

 private:
  void begin_order(Order::Kind kind, double value) override;
  void end_order() override {
    if (orders_) orders_->leave();
  }
  void committed() override { lanes_->note_committed(); }
  void accepted() override { lanes_->note_accepted(); }
  void name_kept(int use, std::int64_t number) override {
    if (sums_) sums_->keep_name(use, number);
  }
  bool has_failed_anywhere(bool here);
  /// Runner::description.
  std::string description(int max_delay) const;
  void carry_out(const RankOrder& order);
  void receive_state(std::size_t bytes);
  void hear(std::size_t bytes);
  bool is_anybody_deaf() const;
  int take_terms(std::vector<QuantityTerm> list);
  void gather_terms(int set, std::span<double> values);

  const System& system_;
  const SystemSlice* slice_;  // null: every rank has the whole system
  std::shared_ptr<Ranks> ranks_;
  std::unique_ptr<SliceSums> sums_;  // of slices
  // From `make_runner` on.
  std::shared_ptr<RankShares> shares_;
  Partition partition_;
  // From `join` on.
  FollowingEngine* engine_ = nullptr;
  const WaveDiscretisation* waves_ = nullptr;
  std::optional<RankOrders> orders_;
  std::optional<RankLanes> lanes_;                                         // of waves
  std::unique_ptr<RankPeers> peers_;                                       // without waves
  std::vector<TermGather> gathers_;                                        // by set
  mutable std::vector<int> rank_of_part_;                                  // empty until asked for
  const std::function<void(std::span<const std::byte>)>* told_ = nullptr;  // while it follows
};

/// The object for the joint work of `ranks`: a plain Together if `ranks` is null or a single process. All
/// ranks call it. Errors: as RankTogether.
std::unique_ptr<Together> together_of(const System& system, const std::shared_ptr<Ranks>& ranks);

}  // namespace portwave
