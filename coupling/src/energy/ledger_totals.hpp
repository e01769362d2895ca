#pragma once

#include "kernels/ledger_kernels.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/part_order_reduction.hpp"

namespace portwave {

/// The sum of two branches of the tree that PartOrderReduction sums by.
inline LedgerTotals added(const LedgerTotals& a, const LedgerTotals& b) {
  return {a.change + b.change,
          a.supply + b.supply,
          a.dissipated + b.dissipated,
          a.mismatch + b.mismatch,
          a.tolerance + b.tolerance,
          larger_or_nan(a.largest_residual, b.largest_residual),
          larger_or_nan(a.largest_excess, b.largest_excess)};
}

/// `columns` are by entry.
inline void find_totals(const PartOrderReduction& parts, int chunk, const LedgerKernels& kernels,
                        const LedgerColumns& columns, LedgerTotals& out) {
  const auto [shift, index, count] = parts.entries_of_chunk(chunk);
  kernels.totals({columns.change + shift, columns.supply + shift, columns.dissipated + shift,
                  columns.mismatch + shift, columns.residual + shift, columns.tolerance + shift,
                  columns.accepted},
                 index, count, &out);
}

}  // namespace portwave
