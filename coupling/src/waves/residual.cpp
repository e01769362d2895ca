#include "portwave/coupling/waves/residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "kernels/ledger_kernels.hpp"

namespace portwave {
namespace {

/// max that keeps a NaN.
double largest_or_nan(double a, double b) { return (a >= b || std::isnan(a)) ? a : b; }

double residual_of(double gap, double incident, double outgoing) {
  return gap == 0.0 ? 0.0 : std::sqrt(gap / std::max(incident, outgoing));
}

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

void InterfaceResidual::measure_all(const double* u, const double* b, const double* exchanged) {
  for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
    measure(i, waves_.batch(i).all(), u, b, exchanged);
  }
}

InterfaceGap InterfaceResidual::gap(int island, bool per_part) const {
  const PartOrderReduction& parts = waves_.reduction();
  const double gap = parts.sum(island, gap_.data());
  const double incident = parts.sum(island, incident_.data());
  InterfaceGap out{residual_of(gap, incident, parts.sum(island, outgoing_.data())), 0.5 * gap};
  if (!per_part) return out;
  for (const int entry : parts.entries_of(island)) {
    const auto e = static_cast<std::size_t>(entry);
    out.residual = largest_or_nan(out.residual, residual_of(gap_[e], incident_[e], outgoing_[e]));
  }
  return out;
}

InterfaceResidual::Share InterfaceResidual::largest_share() const {
  return waves_.reduction().fold_all(Share{}, [&](Share& largest, int part) {
    const double own = 0.5 * gap_[static_cast<std::size_t>(waves_.slot(part).entry)];
    if (largest.part < 0 || own > largest.energy_J) largest = {part, own};
  });
}

std::size_t InterfaceResidual::bytes() const { return 3 * gap_.capacity() * sizeof(double); }

InterfaceGap InterfaceResidual::largest(bool per_part) const {
  InterfaceGap out;
  for (int island = 0; island < waves_.reduction().island_count(); ++island) {
    const InterfaceGap own = gap(island, per_part);
    out.residual = largest_or_nan(out.residual, own.residual);
    out.energy_J += own.energy_J;
  }
  return out;
}

}  // namespace portwave
