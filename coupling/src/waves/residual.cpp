#include "portwave/coupling/waves/residual.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "kernels/ledger_kernels.hpp"

namespace portwave {

double InterfaceGap::residual_since(double before) const {
  constexpr double kMostGrowth = 1e4;
  constexpr double kRounding = 1e-16;
  const double most = kMostGrowth * kMostGrowth * before;
  if (!(before > 0.0) || !(size > most)) return residual;
  const double gap = std::max(2.0 * energy_J, kRounding * kRounding * size);
  return larger_or_nan(residual, std::sqrt(gap / most));
}

InterfaceResidual::InterfaceResidual(const WaveDiscretisation& waves) : waves_(waves) {
  for (auto* v : {&gap_, &incident_, &outgoing_}) {
    v->resize(static_cast<std::size_t>(waves.entry_count()));
  }
  by_chunk_.resize(static_cast<std::size_t>(waves.reduction().chunk_count()));
  is_summed_.resize(by_chunk_.size());
  terms_ = {gap_, incident_, outgoing_};
}

void InterfaceResidual::judge_parts() {
  if (!rounded_.empty()) return;
  rounded_.resize(gap_.size());
  magnitudes_.resize(static_cast<std::size_t>(waves_.wave_size()));
  terms_.emplace_back(rounded_);
  lulls_.resize(static_cast<std::size_t>(waves_.system().island_count()));
}

void InterfaceResidual::measure(int batch, LaneRange lanes, const double* u, const double* b,
                                const double* exchanged) {
  const BatchSlot& slot = waves_.batch(batch);
  ledger_kernels().norms({lanes.first, lanes.last, slot.batch->wave_size(), slot.batch->stride(),
                          u + slot.wave, b + slot.wave, exchanged + slot.wave,
                          gap_.data() + slot.entry, incident_.data() + slot.entry,
                          outgoing_.data() + slot.entry});
  if (rounded_.empty()) return;
  for (int lane = lanes.first; lane < lanes.last; ++lane) {
    double sum = 0.0;
    for (int port = 0; port < slot.batch->wave_size(); ++port) {
      const double m =
          magnitudes_[static_cast<std::size_t>(slot.wave + port * slot.batch->stride() + lane)];
      sum += m * m;
    }
    rounded_[static_cast<std::size_t>(slot.entry + lane)] = sum;
  }
}

double InterfaceResidual::residual_of(std::size_t entry) const {
  constexpr double kRounding = 16.0 * std::numeric_limits<double>::epsilon();
  const GapSquares own{gap_[entry], incident_[entry], outgoing_[entry]};
  const double rounded = rounded_.empty() ? 0.0 : rounded_[entry];
  const bool is_rounding = own.gap <= kRounding * kRounding * rounded && std::isfinite(rounded);
  return is_rounding ? 0.0 : own.residual();
}

GapSquares InterfaceResidual::sum_of_chunk(int chunk) const {
  const PartOrderReduction& parts = waves_.reduction();
  return {parts.sum_of_chunk(chunk, gap_.data()), parts.sum_of_chunk(chunk, incident_.data()),
          parts.sum_of_chunk(chunk, outgoing_.data())};
}

void InterfaceResidual::sum_chunk(int chunk) {
  by_chunk_[static_cast<std::size_t>(chunk)] = sum_of_chunk(chunk);
  is_summed_[static_cast<std::size_t>(chunk)] = 1;
}

GapSquares InterfaceResidual::sum_of(int island) {
  const PartOrderReduction& parts = waves_.reduction();
  const auto [first, last] = parts.chunks_of(island);
  if (last - first < 2) {
    return {parts.sum(island, gap_.data()), parts.sum(island, incident_.data()),
            parts.sum(island, outgoing_.data())};
  }
  return PartOrderReduction::tree<GapSquares>(
      first, last,
      [&](int chunk) {
        const auto i = static_cast<std::size_t>(chunk);
        return std::exchange(is_summed_[i], 0) != 0 ? by_chunk_[i] : sum_of_chunk(chunk);
      },
      [](const GapSquares& a, const GapSquares& b) {
        return GapSquares{a.gap + b.gap, a.incident + b.incident, a.outgoing + b.outgoing};
      });
}

MeasuredGap InterfaceResidual::gap(int island, bool per_part) {
  if (!taken_.empty() && taken_[static_cast<std::size_t>(island)].is_taken) {
    const auto& [squares, largest, is_taken] = taken_[static_cast<std::size_t>(island)];
    MeasuredGap all{{squares.residual(), 0.5 * squares.gap, squares.size()}, squares.outgoing};
    if (per_part) all.residual = larger_or_nan(all.residual, largest);
    return all;
  }
  const PartOrderReduction& parts = waves_.reduction();
  const GapSquares all = sum_of(island);
  MeasuredGap out{{all.residual(), 0.5 * all.gap, all.size()}, all.outgoing};
  if (!per_part) return out;
  for (const int entry : parts.entries_of(island)) {
    out.residual = larger_or_nan(out.residual, residual_of(static_cast<std::size_t>(entry)));
  }
  return out;
}

bool InterfaceResidual::is_rounding(int island, int evaluation, const InterfaceGap& gap) {
  constexpr double kRounding = 1e-14;
  constexpr double kFalls = 0.9;
  constexpr int kPatience = 12;  // evaluations: a rescue comes first
  if (lulls_.empty()) return false;
  Lull& own = lulls_[static_cast<std::size_t>(island)];
  const bool is_small = 2.0 * gap.energy_J <= kRounding * kRounding * gap.size;
  const bool is_new = evaluation <= own.since;  // the step
  if (is_new || !is_small || gap.residual < kFalls * own.residual) own = {gap.residual, evaluation};
  return is_small && evaluation - own.since >= kPatience;
}

void InterfaceResidual::form(int chunk, double* values) const {
  const PartOrderReduction& parts = waves_.reduction();
  for (int i = 0; i < sums(); ++i) {
    values[i] = parts.sum_of_chunk(chunk, terms_[static_cast<std::size_t>(i)].data());
  }
  const auto [shift, index, count] = parts.entries_of_chunk(chunk);
  values[3] = 0.0;
  for (int i = 0; i < count; ++i) {
    const auto e = static_cast<std::size_t>(index == nullptr ? shift + i : index[i]);
    values[3] = larger_or_nan(values[3], residual_of(e));
  }
}

void InterfaceResidual::take(int island, const double* values) {
  if (taken_.empty()) taken_.resize(static_cast<std::size_t>(waves_.system().island_count()));
  taken_[static_cast<std::size_t>(island)] = {{values[0], values[1], values[2]}, values[3], true};
}

InterfaceResidual::Share InterfaceResidual::share_of(int part) const {
  return {part, 0.5 * gap_[static_cast<std::size_t>(waves_.slot(part).entry)]};
}

InterfaceResidual::Share InterfaceResidual::largest_share(int island) const {
  return waves_.reduction().fold(island, Share{},
                                 [&](Share& largest, int part) { largest.take(share_of(part)); });
}

InterfaceResidual::Share InterfaceResidual::largest_share(int batch, LaneRange lanes) const {
  Share largest;
  for (int lane = lanes.first; lane < lanes.last; ++lane) {
    largest.take(share_of(waves_.batch(batch).parts[static_cast<std::size_t>(lane)]));
  }
  return largest;
}

std::size_t InterfaceResidual::bytes() const {
  return by_chunk_.capacity() * (sizeof(GapSquares) + 1) +
         (3 * gap_.capacity() + rounded_.capacity() + magnitudes_.capacity()) * sizeof(double);
}

}  // namespace portwave
