#include "portwave/coupling/waves/residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/ledger_kernels.hpp"

namespace portwave {
namespace {

/// max that keeps a NaN.
double largest_or_nan(double a, double b) { return (a >= b || std::isnan(a)) ? a : b; }

}  // namespace

InterfaceResidual::InterfaceResidual(const WaveDiscretisation& waves) : waves_(waves) {
  for (auto* v : {&gap_, &incident_, &outgoing_}) {
    v->resize(static_cast<std::size_t>(waves.entry_count()));
  }
}

void InterfaceResidual::measure(int batch, LaneRange lanes, const double* u, const double* b,
                                const double* exchanged) {
  const BatchSlot& slot = waves_.batch(batch);
  ledger_kernels().norms({lanes.first, lanes.last, slot.batch->wave_size(), slot.batch->stride(),
                          u + slot.wave, b + slot.wave, exchanged + slot.wave,
                          gap_.data() + slot.entry, incident_.data() + slot.entry,
                          outgoing_.data() + slot.entry});
}

InterfaceGap InterfaceResidual::gap(int island, bool per_part) const {
  const PartOrderReduction& parts = waves_.reduction();
  const GapSquares all{parts.sum(island, gap_.data()), parts.sum(island, incident_.data()),
                       parts.sum(island, outgoing_.data())};
  InterfaceGap out{all.residual(), 0.5 * all.gap};
  if (!per_part) return out;
  for (const int entry : parts.entries_of(island)) {
    const auto e = static_cast<std::size_t>(entry);
    const GapSquares own{gap_[e], incident_[e], outgoing_[e]};
    out.residual = largest_or_nan(out.residual, own.residual());
  }
  return out;
}

void InterfaceResidual::take_share(Share& largest, int part) const {
  const double own = 0.5 * gap_[static_cast<std::size_t>(waves_.slot(part).entry)];
  if (largest.part < 0 || own > largest.energy_J) largest = {part, own};
}

InterfaceResidual::Share InterfaceResidual::largest_share() const {
  return waves_.reduction().fold_all(Share{},
                                     [&](Share& largest, int part) { take_share(largest, part); });
}

InterfaceResidual::Share InterfaceResidual::largest_share(int island) const {
  return waves_.reduction().fold(island, Share{},
                                 [&](Share& largest, int part) { take_share(largest, part); });
}

std::size_t InterfaceResidual::bytes() const { return 3 * gap_.capacity() * sizeof(double); }

}  // namespace portwave
