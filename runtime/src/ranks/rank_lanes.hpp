#pragma once

#include <functional>

#include "parallel/step_arrays.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "ranks/rank_orders.hpp"
#include "ranks/rank_shares.hpp"

namespace portwave {

/// The lanes of other ranks in this rank's arrays. A step writes its own lanes only; the others' are
/// fetched when somebody looks at them. Fetching changes nothing that can be seen. Of slices there is
/// nothing to fetch.
class RankLanes {
 public:
  /// `now`, `next`: what a step leads from and to.
  RankLanes(RankShares& shares, RankOrders& orders, EnergyLedger& ledger, const WaveState& now,
            const WaveState& next, bool is_slice);

  /// What was committed last.
  void fetch() {
    if (!has_now_ && !looks_at_own_ && !is_slice_) fetch_now();
  }
  /// What the ledger keeps by entry.
  void fetch_energies();
  /// What is being committed. All ranks call it.
  void fetch_next();
  /// What was committed last and its energies are here.
  bool has_all() const { return has_now_ && ledger_.has_entries(); }

  // What has become of the arrays.
  void note_written() { has_now_ = false; }     ///< the current record was written
  void note_committed() { has_next_ = false; }  ///< so was what is next
  void note_accepted() { has_now_ = has_next_; }
  void note_restored() { has_now_ = true; }  ///< all lanes of the current state were

  /// The part with most of the last gap, of all ranks and those for which counts(part) holds. All call it.
  InterfaceResidual::Share largest_share(const InterfaceResidual& residual,
                                         const std::function<bool(int part)>& counts) const;

  /// While it lives, this rank looks at its own lanes, and nothing is fetched.
  class LookAtOwn {
   public:
    explicit LookAtOwn(RankLanes& lanes) : lanes_(lanes) { lanes_.looks_at_own_ = true; }
    ~LookAtOwn() { lanes_.looks_at_own_ = false; }
    LookAtOwn(const LookAtOwn&) = delete;
    LookAtOwn& operator=(const LookAtOwn&) = delete;

   private:
    RankLanes& lanes_;
  };

 private:
  void fetch_now();

  RankShares& shares_;
  RankOrders& orders_;
  EnergyLedger& ledger_;
  const WaveState& now_;
  const WaveState& next_;
  bool is_slice_;
  bool has_now_ = true, has_next_ = true;  // all lanes are here
  bool looks_at_own_ = false;
};

}  // namespace portwave
