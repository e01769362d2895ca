#pragma once

#include <functional>

#include "parallel/step_arrays.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/residual.hpp"
#include "ranks/rank_orders.hpp"
#include "ranks/rank_shares.hpp"

namespace portwave {

/// The lanes of other ranks in this rank's arrays. A step writes only its own lanes; those of others are
/// fetched when somebody reads them. Fetching has no effect that can be seen. With slices nothing is
/// fetched.
class RankLanes {
 public:
  /// `now`, `next`: the states before and after a step.
  RankLanes(RankShares& shares, RankOrders& orders, EnergyLedger& ledger, const WaveState& now,
            const WaveState& next, bool is_slice);

  /// Fetches the state that was committed last.
  void fetch() {
    if (!has_now_ && !looks_at_own_ && !is_slice_) fetch_now();
  }
  /// Fetches the entries of the ledger.
  void fetch_energies();
  /// Fetches the state that is being committed. All ranks call it.
  void fetch_next();
  /// Whether all lanes of the state that was committed last are here, with its energies.
  bool has_all() const { return has_now_ && ledger_.has_entries(); }

  // Changes of the arrays, as in Together.
  void note_written() { has_now_ = false; }     ///< own lanes of the current record were written
  void note_committed() { has_next_ = false; }  ///< own lanes of the next record were written
  void note_accepted() { has_now_ = has_next_; }
  void note_restored() { has_now_ = true; }  ///< all lanes of the current record were written

  /// The part with the largest share of the last gap, on any rank, among those for which counts(part) holds.
  /// All ranks call it.
  InterfaceResidual::Share largest_share(const InterfaceResidual& residual,
                                         const std::function<bool(int part)>& counts) const;

  /// While such an object exists, this rank reads only its own lanes, and nothing is fetched.
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
