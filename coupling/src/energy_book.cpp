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
  if (const SparseMatrix* E = subsystem.linear_form().E) {
    for (int j = 0; j < E->outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(*E, j); it; ++it) {
        sum += std::abs(g[static_cast<std::size_t>(it.row())] * it.value() * x[j]);
      }
    }
    return sum;
  }
  for (std::size_t i = 0; i < g.size(); ++i) sum += std::abs(g[i] * x[i]);
  return sum;
}

}  // namespace

EnergyBook::EnergyBook(const WaveDiscretisation& waves, const double* record, const double* b,
                       const TankOptions& tank, bool guarded)
    : waves_(waves),
      memory_({{kColumns, static_cast<std::size_t>(waves.entry_count())}}),
      all_(all_parts(waves)),
      islands_(island_lists(waves)),
      parts_(waves.system()),
      cap_(tank.cap_J),
      guarded_(guarded),
      mismatch_(islands_.size(), 0.0),
      stored_(islands_.size(), 0.0),
      stored_before_(islands_.size(), 0.0),
      supplied_(islands_.size(), 0.0),
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
  for (int i = 0; i < parts_.count(); ++i) {
    const PartList& island = islands_[static_cast<std::size_t>(i)];
    const double stored = island.sum(column(kStorageBefore));
    const double initial = tank.initial_J.value_or(island.sum(column(kMismatch))) +
                           tank.initial_fraction * std::max(stored, 0.0);
    tank_.push_back(std::min(initial, cap_));
    if (!guarded) continue;
    stored_before_[static_cast<std::size_t>(i)] = stored;
    Balance balance;
    balance.start = stored + tank_.back();
    balance.size = tank_.back();
    for (const int part : parts_.of(i)) {
      balance.size += std::abs(column(kStorageBefore)[waves.place(part).entry]);
      const Part& own = waves.system().parts()[static_cast<std::size_t>(part)];
      balance.passive = balance.passive && !own.subsystem->is_active();
    }
    balance_.push_back(balance);
  }
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
  if (!tally()) return std::nullopt;
  return close(a, b);
}

bool EnergyBook::tally() {
  const int shift = all_.entries() == nullptr ? all_.first() : 0;
  const BookTotals sums = book_kernels().totals(
      {column(kStorage) + shift, column(kSupply) + shift, column(kDissipated) + shift,
       column(kMismatch) + shift, column(kResidual) + shift, column(kTolerance) + shift},
      all_.entries(), all_.size());
  tallied_ = {};
  tallied_.stored_J = sums.storage;
  tallied_.supplied_J = sums.supply;
  tallied_.dissipated_J = sums.dissipated;
  tallied_.max_passivity_residual_J = sums.largest_residual;
  worst_ratio_of_step_ = sums.largest_ratio;
  terms_of_step_J_ = sums.tolerance / passivity_tolerance(1.0);
  if (islands_.size() == 1) {
    mismatch_[0] = tallied_.mismatch_J = sums.mismatch;
    stored_[0] = sums.storage;
    supplied_[0] = sums.supply;
  } else {
    for (std::size_t i = 0; i < islands_.size(); ++i) {
      mismatch_[i] = islands_[i].sum(column(kMismatch));
      if (guarded_) {
        stored_[i] = islands_[i].sum(column(kStorage));
        supplied_[i] = islands_[i].sum(column(kSupply));
      }
      tallied_.mismatch_J += mismatch_[i];
    }
  }
  return std::isfinite(sums.storage) && std::isfinite(sums.supply) && std::isfinite(sums.mismatch);
}

bool EnergyBook::overdraws(int island, const double* a, const double* b) const {
  if (creates(island)) return true;
  const double after = prospect(island);
  // A step that adds to the tank takes nothing from it, whatever round-off has left there.
  const auto i = static_cast<std::size_t>(island);
  if (after >= 0.0 || mismatch_[i] >= 0.0) return false;
  // Converged runs come here often, by round-off: mostly one of the terms says enough.
  constexpr double kRoundOff = 8.0 * std::numeric_limits<double>::epsilon();
  if (after >= -kRoundOff * stored_[i]) return false;
  double terms = std::abs(tank(island));
  for (const int part : parts_.of(island)) {
    const PartPlace& place = waves_.place(part);
    terms += std::abs(column(kStorage)[place.entry]);
    for (int j = 0; j < waves_.batch(place.batch).batch->wave_size(); ++j) {
      const int w = place.wave + j * place.stride;
      terms += 0.5 * (a[w] * a[w] + b[w] * b[w]);
    }
  }
  return after < -kRoundOff * terms;
}

bool EnergyBook::creates(int island) const {
  const auto i = static_cast<std::size_t>(island);
  if (!guarded_ || !balance_[i].passive) return false;
  constexpr double kComputable = 1e-9;
  const double growth = (stored_[i] - stored_before_[i]) + mismatch_[i] - supplied_[i];
  if (growth <= kComputable * std::abs(stored_[i])) return false;
  double size = std::abs(tank_[i]);
  for (const int part : parts_.of(island)) {
    const int entry = waves_.place(part).entry;
    size += std::abs(column(kStorage)[entry]) + std::abs(column(kStorageBefore)[entry]) +
            std::abs(column(kSupply)[entry]);
  }
  return !(growth <= kComputable * size);
}

StepLedger EnergyBook::close(const double* a, const double* b, double alpha, double withheld_J) {
  StepLedger step = tallied_;
  step.alpha = alpha;
  step.withheld_J = withheld_J;
  judge_passivity(step.max_passivity_residual_J, worst_ratio_of_step_);
  if (guarded_) judge_laws(a, b);
  for (std::size_t i = 0; i < tank_.size(); ++i) {
    const double full = tank_[i] + mismatch_[i];
    tank_[i] = std::min(full, cap_);
    totals_.given_up_J += full - tank_[i];
  }
  stored_.swap(stored_before_);
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

/// T ≥ 0 and H + T ≤ H₀ + T₀ + supply, island by island, before the step is booked. The second up to
/// the round-off of all that was added up: what a commit rounds off is a few units in each of the sums
/// that its waves and states are, so that a single step with waves far larger than H + T, as after a
/// change of impedance, takes up to 8ε of its terms.
void EnergyBook::judge_laws(const double* a, const double* b) {
  constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
  const bool single = islands_.size() == 1;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    Balance& balance = balance_[i];
    const PartList& island = islands_[i];
    balance.supplied += supplied_[i];
    balance.moved += std::abs(supplied_[i]);
    balance.terms +=
        single ? terms_of_step_J_ : island.sum(column(kTolerance)) / passivity_tolerance(1.0);
    if (broken_law_) continue;
    const double excess =
        stored_[i] + prospect(static_cast<int>(i)) - balance.supplied - balance.start;
    // However large the waves were: a millionth too much is too much.
    const double allowance = std::min(1e-12 * balance.size + 16.0 * kEpsilon * balance.terms,
                                      1e-6 * (balance.size + balance.moved));
    if (!creates(static_cast<int>(i)) && overdraws(static_cast<int>(i), a, b)) {
      broken_law_ = {BrokenLaw::Law::tank, static_cast<int>(i), steps_};
    } else if (!(excess <= allowance)) {
      broken_law_ = {BrokenLaw::Law::balance, static_cast<int>(i), steps_};
    }
  }
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
  std::size_t lists = all_.bytes() + parts_.bytes() +
                      (tank_.capacity() + 4 * mismatch_.capacity()) * sizeof(double) +
                      balance_.capacity() * sizeof(Balance);
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
