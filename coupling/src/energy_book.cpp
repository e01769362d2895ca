#include "portwave/coupling/energy_book.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "kernels/book_kernels.hpp"

namespace portwave {
namespace {

/// StepEnergy::magnitude_J of a state that no step has made: |H| + Σ|∂H/∂xᵢ xᵢ|.
double magnitude(const Subsystem& subsystem, const double* x, double storage) {
  std::vector<double> g(static_cast<std::size_t>(subsystem.signature().state_size()));
  subsystem.gradient(x, g.data());
  double sum = std::abs(storage);
  for (std::size_t i = 0; i < g.size(); ++i) sum += std::abs(g[i] * x[i]);
  return sum;
}

}  // namespace

EnergyBook::EnergyBook(const WaveDiscretisation& waves, const double* record, const double* b)
    : waves_(waves),
      memory_({{kColumns, static_cast<std::size_t>(waves.entry_count())}}),
      all_(all_parts(waves)),
      islands_(island_lists(waves)),
      max_residual_(-std::numeric_limits<double>::infinity()),
      worst_ratio_(-std::numeric_limits<double>::infinity()) {
  for (std::span<double>& c : columns_) {
    c = memory_.take(static_cast<std::size_t>(waves.entry_count()));
  }
  std::vector<double> x;
  for (int i = 0; i < static_cast<int>(waves.places().size()); ++i) {
    const PartPlace& place = waves.place(i);
    const StepBatch& batch = *waves.batch(place.batch).batch;
    const Subsystem& subsystem = *waves.system().parts()[static_cast<std::size_t>(i)].subsystem;
    x.resize(static_cast<std::size_t>(batch.state_size()));
    waves.get_state(i, record, x.data());
    const double storage = subsystem.storage(x.data());
    column(kStorageBefore)[place.entry] = storage;
    column(kMagnitudeBefore)[place.entry] = magnitude(subsystem, x.data(), storage);
    double energy = 0.0;
    for (int j = 0; j < batch.wave_size(); ++j) {
      const double wave = b[place.wave + j * place.stride];
      energy += 0.5 * wave * wave;
    }
    column(kMismatch)[place.entry] = energy;
  }
  totals_.initial_J = all_.sum(column(kStorageBefore));
  totals_.final_J = totals_.max_J = totals_.initial_J;
  for (const PartList& island : islands_) tank_.push_back(island.sum(column(kMismatch)));
  totals_.tank_J = totals_.initial_tank_J = tank_sum();
  totals_.max_energy_ratio = -std::numeric_limits<double>::infinity();
  update_energy_ratio();
}

EnergyColumns EnergyBook::columns() {
  return {column(kStorage), column(kSupply), column(kDissipated), column(kMagnitude)};
}

EnergyColumns EnergyBook::next_columns() {
  return {column(kStorageBefore), column(kSupply), column(kDissipated), column(kMagnitudeBefore)};
}

void EnergyBook::examine(int batch, LaneRange lanes, const double* a, const double* b) {
  const BatchPlace& place = waves_.batch(batch);
  const int entry = place.entry;
  book_kernels().book({lanes.first, lanes.last, place.batch->wave_size(), place.batch->stride(),
                       a + place.wave, b + place.wave, columns().from(entry),
                       column(kStorageBefore) + entry, column(kMagnitudeBefore) + entry,
                       column(kResidual) + entry, column(kTolerance) + entry,
                       column(kMismatch) + entry});
}

std::optional<StepLedger> EnergyBook::book(const double* a, const double* b) {
  for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
    examine(i, waves_.batch(i).all(), a, b);
  }
  return close();
}

std::optional<StepLedger> EnergyBook::close() {
  const int shift = all_.entries() == nullptr ? all_.first() : 0;
  const BookTotals sums = book_kernels().totals(
      {column(kStorage) + shift, column(kSupply) + shift, column(kDissipated) + shift,
       column(kMismatch) + shift, column(kResidual) + shift, column(kTolerance) + shift},
      all_.entries(), all_.size());
  if (!std::isfinite(sums.storage) || !std::isfinite(sums.supply) ||
      !std::isfinite(sums.mismatch)) {
    return std::nullopt;
  }
  StepLedger step;
  step.stored_J = sums.storage;
  step.supplied_J = sums.supply;
  step.dissipated_J = sums.dissipated;
  if (islands_.size() == 1) {
    step.mismatch_J = sums.mismatch;
    tank_[0] += step.mismatch_J;
  } else {
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      const double mismatch = islands_[i].sum(column(kMismatch));
      tank_[i] += mismatch;
      step.mismatch_J += mismatch;
    }
  }
  step.max_passivity_residual_J = sums.largest_residual;
  judge_passivity(sums.largest_residual, sums.largest_ratio);
  std::swap(columns_[kStorage], columns_[kStorageBefore]);
  std::swap(columns_[kMagnitude], columns_[kMagnitudeBefore]);
  step.tank_J = tank_sum();
  totals_.final_J = step.stored_J;
  totals_.max_J = std::max(totals_.max_J, step.stored_J);
  totals_.supplied_J += step.supplied_J;
  totals_.dissipated_J += step.dissipated_J;
  totals_.mismatch_J += step.mismatch_J;
  totals_.tank_J = step.tank_J;
  update_energy_ratio();
  ++steps_;
  return step;
}

void EnergyBook::judge_passivity(double residual, double ratio) {
  max_residual_ = std::max(max_residual_, residual);
  if (!(ratio <= 1.0)) violated_ = true;
  if (!(ratio > worst_ratio_)) return;
  worst_ratio_ = ratio;
  worst_step_ = steps_;
  double best = -std::numeric_limits<double>::infinity();
  for (int i = 0; i < static_cast<int>(waves_.places().size()); ++i) {
    const int entry = waves_.place(i).entry;
    const double own = column(kResidual)[entry] /
                       std::max(column(kTolerance)[entry], std::numeric_limits<double>::min());
    if (own > best) {
      best = own;
      worst_part_ = i;
    }
  }
}

int EnergyBook::first_non_finite() const {
  int largest = -1;
  for (int i = 0; i < static_cast<int>(waves_.places().size()); ++i) {
    const int entry = waves_.place(i).entry;
    if (!std::isfinite(column(kStorage)[entry]) || !std::isfinite(column(kSupply)[entry]) ||
        !std::isfinite(column(kMismatch)[entry])) {
      return i;
    }
    if (largest < 0 || column(kStorage)[entry] > column(kStorage)[waves_.place(largest).entry]) {
      largest = i;
    }
  }
  return largest;
}

std::size_t EnergyBook::bytes() const {
  std::size_t lists = all_.bytes() + tank_.capacity() * sizeof(double);
  for (const PartList& island : islands_) lists += sizeof(PartList) + island.bytes();
  return memory_.bytes() + lists;
}

double EnergyBook::storage(int part) const {
  return column(kStorageBefore)[waves_.place(part).entry];
}

double EnergyBook::tank_sum() const {
  double sum = 0.0;
  for (const double tank : tank_) sum += tank;
  return sum;
}

void EnergyBook::update_energy_ratio() {
  double reserve = 0.0;
  for (const double tank : tank_) reserve += std::max(tank, 0.0);
  const double bound = initial_energy();
  if (bound > 0.0) {
    totals_.max_energy_ratio = std::max(totals_.max_energy_ratio,
                                        (totals_.final_J + reserve - totals_.supplied_J) / bound);
  } else {
    totals_.max_energy_ratio = std::numeric_limits<double>::quiet_NaN();
  }
}

}  // namespace portwave
