#include "ranks/rank_lanes.hpp"

#include <vector>

namespace portwave {

using Array = RankShares::Array;

RankLanes::RankLanes(RankShares& shares, RankOrders& orders, EnergyLedger& ledger,
                     const WaveState& now, const WaveState& next, bool is_slice)
    : shares_(shares),
      orders_(orders),
      ledger_(ledger),
      now_(now),
      next_(next),
      is_slice_(is_slice) {
  if (is_slice_) return;
  const auto share_entries = [this] {
    std::vector<Array> arrays;
    for (const std::span<double> column : ledger_.entries()) {
      arrays.push_back({Array::entries, column.data()});
    }
    shares_.share(arrays);
  };
  ledger_.before_entries(share_entries, [this] { fetch_next(); });
}

void RankLanes::fetch_now() {
  orders_.send_if_leading({RankOrder::fetch});
  shares_.share({{Array::record, now_.record.data()},
                 {Array::waves, now_.a.data()},
                 {Array::waves, now_.b.data()}});
  has_now_ = true;
}

void RankLanes::fetch_energies() {
  if (ledger_.has_entries() || looks_at_own_ || is_slice_) return;
  orders_.send_if_leading({RankOrder::fetch_energies});
  ledger_.need_entries();
}

void RankLanes::fetch_next() {
  if (has_next_ || is_slice_) return;
  shares_.share({{Array::record, now_.record.data()},
                 {Array::record, next_.record.data()},
                 {Array::waves, next_.a.data()},
                 {Array::waves, next_.b.data()}});
  has_next_ = true;
}

InterfaceResidual::Share RankLanes::largest_share(
    const InterfaceResidual& residual, const std::function<bool(int part)>& counts) const {
  InterfaceResidual::Share largest;
  for (const BatchRange& range : shares_.own_ranges()) {
    for (int lane = range.lanes.first; lane < range.lanes.last; ++lane) {
      const auto own = residual.largest_share(range.batch, {lane, lane + 1});
      if (counts(own.part)) largest.take(own);
    }
  }
  largest.part = shares_.number_of(largest.part);
  for (const auto& other : gather_values(shares_.ranks(), largest)) largest.take(other);
  return largest;
}

}  // namespace portwave
