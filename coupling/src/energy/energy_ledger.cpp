#include "portwave/coupling/energy/energy_ledger.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <limits>
#include <utility>

#include "energy/account_limits.hpp"
#include "energy/ledger_totals.hpp"
#include "energy/step_rounding.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Fewer parts are summed up as fast later.
constexpr int kWorthSumming = 16;

}  // namespace

EnergyLedger::~EnergyLedger() = default;

/// What there is at the start, by entry: H, ½|b|², |H|, and 1 for active parts.
class EnergyLedger::Start final : public IslandSums {
 public:
  struct OfIsland {
    double stored = 0.0, waves = 0.0, size = 0.0;
    bool is_active = false;
  };

  Start(const PartOrderReduction& parts, std::array<std::span<double>, 4> columns)
      : parts_(parts),
        columns_(columns),
        islands_(static_cast<std::size_t>(parts.island_count())) {}
  int sums() const override { return 3; }
  int maxima() const override { return 1; }
  std::span<const std::span<double>> terms() override { return columns_; }
  void form(int chunk, double* values) const override {
    for (std::size_t i = 0; i < 3; ++i) {
      values[i] = parts_.sum_of_chunk(chunk, columns_[i].data());
    }
    const auto [shift, index, count] = parts_.entries_of_chunk(chunk);
    values[3] = 0.0;
    for (int i = 0; i < count; ++i) {
      const int entry = index == nullptr ? shift + i : index[i];
      values[3] = std::max(values[3], columns_[3][static_cast<std::size_t>(entry)]);
    }
  }
  void take(int island, const double* values) override {
    islands_[static_cast<std::size_t>(island)] = {values[0], values[1], values[2], values[3] > 0.0};
  }
  /// Where this process has all parts.
  void find() {
    for (int island = 0; island < parts_.island_count(); ++island) {
      double values[4];
      for (std::size_t i = 0; i < 3; ++i) values[i] = parts_.sum(island, columns_[i].data());
      values[3] = 0.0;
      for (const int entry : parts_.entries_of(island)) {
        values[3] = std::max(values[3], columns_[3][static_cast<std::size_t>(entry)]);
      }
      take(island, values);
    }
  }
  const std::vector<OfIsland>& islands() const { return islands_; }

 private:
  const PartOrderReduction& parts_;
  std::array<std::span<double>, 4> columns_;
  std::vector<OfIsland> islands_;
};

EnergyLedger::EnergyLedger(const WaveDiscretisation& waves, const double* record, const double* b,
                           const TankOptions& tank, bool guarded, SlicesTogether* slices)
    : waves_(waves),
      slices_(slices),
      kernels_(&ledger_kernels()),
      memory_({{kColumns, static_cast<std::size_t>(waves.entry_count())}}),
      parts_(waves.reduction()),
      cap_(tank.cap_J),
      guarded_(guarded),
      sent_(static_cast<std::size_t>(parts_.island_count()), 0.0),
      tolerated_(sent_.size(), 0.0),
      by_chunk_(static_cast<std::size_t>(parts_.chunk_count())),
      is_summed_(by_chunk_.size(), 0),
      mismatch_(static_cast<std::size_t>(parts_.island_count()), 0.0),
      by_island_(mismatch_.size()),
      is_known_(mismatch_.size(), 0),
      sums_of_parts_(waves.system(), parts_, slices != nullptr ? mismatch_.size() : 1, slices),
      max_residual_(-std::numeric_limits<double>::infinity()),
      worst_ratio_(-std::numeric_limits<double>::infinity()) {
  for (std::span<double>& c : columns_) {
    c = memory_.take(static_cast<std::size_t>(waves.entry_count()));
  }
  if (slices_ != nullptr && guarded_) state_roundings_.resize(mismatch_.size());
  name_terms();
  rounding_ = std::make_unique<StepRounding>(waves);
  Start start(parts_, {columns_[kStorageBefore], columns_[kMismatch], columns_[kTolerance],
                       columns_[kResidual]});
  for (int i = 0; i < parts_.part_count(); ++i) {
    const PartSlot& slot = waves.slot(i);
    const StepBatch& batch = *waves.batch(slot.batch).batch;
    const Part& part = waves.system().parts()[static_cast<std::size_t>(i)];
    if (part.port_hamiltonian() != nullptr) {
      column(kStorageBefore)[slot.entry] = rounding_->storage(i, record);
    }
    column(kTolerance)[slot.entry] = std::abs(column(kStorageBefore)[slot.entry]);
    column(kResidual)[slot.entry] = part.component->is_active() ? 1.0 : 0.0;
    if (!waves.batch(slot.batch).capabilities.knows_energy) metered_.push_back(i);
    double energy = 0.0;
    for (int j = 0; j < batch.wave_size(); ++j) {
      const double wave = b[slot.wave + j * slot.stride];
      energy += 0.5 * wave * wave;
    }
    column(kMismatch)[slot.entry] = energy;
  }
  slices_ == nullptr ? start.find() : slices_->share(start);
  std::ranges::fill(columns_[kTolerance], 0.0);
  std::ranges::fill(columns_[kResidual], 0.0);
  for (const Start::OfIsland& own : start.islands()) {
    Account account;
    account.start = own.stored;
    const double initial =
        tank.initial_J.value_or(own.waves) + tank.initial_fraction * std::max(account.start, 0.0);
    account.tank = std::min(initial, cap_);
    account.size = account.tank + own.size;
    account.passive = !own.is_active;
    tank_.emplace_back(account.tank);
    by_island_[accounts_.size()].change = account.start;
    accounts_.push_back(account);
  }
  totals_.initial_J = sum_of_islands(&LedgerTotals::change);
  totals_.final_J = totals_.max_J = totals_.initial_J;
  stored_ = CompensatedSum(totals_.initial_J);
  std::ranges::fill(by_island_, LedgerTotals{});
  totals_.tank_J = totals_.initial_tank_J = tank_sum();
  // Without energy at the start there is no ratio.
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  per_initial_energy_ = initial_energy() > 0.0 ? 1.0 / initial_energy() : kNone;
  totals_.max_energy_ratio =
      initial_energy() > 0.0 ? -std::numeric_limits<double>::infinity() : kNone;
  update_energy_ratio();
}

void EnergyLedger::name_terms() {
  terms_ = {columns_[kChange],   columns_[kSupply],   columns_[kDissipated],
            columns_[kMismatch], columns_[kResidual], columns_[kTolerance]};
}

void EnergyLedger::need_entries() const {
  if (has_entries_ || slices_ != nullptr) return;
  fetch_entries_();
  has_entries_ = true;
}

void EnergyLedger::need_states() const {
  need_entries();
  if (fetch_states_) fetch_states_();
}

EnergyColumns EnergyLedger::columns() {
  return {column(kChange), column(kSupply), column(kDissipated)};
}

void EnergyLedger::examine(int batch, LaneRange lanes, const double* a, const double* b) {
  const BatchSlot& slot = waves_.batch(batch);
  const int entry = slot.entry;
  LedgerTask task{lanes.first,
                  lanes.last,
                  slot.batch->wave_size(),
                  slot.batch->stride(),
                  a + slot.wave,
                  b + slot.wave,
                  {column(kChange) + entry, column(kSupply) + entry, column(kDissipated) + entry},
                  column(kStorageBefore) + entry,
                  column(kStorage) + entry,
                  column(kResidual) + entry,
                  column(kTolerance) + entry,
                  column(kMismatch) + entry};
  const bool is_metered = !slot.capabilities.knows_energy;
  if (is_metered || lanes.last - lanes.first < kWorthSumming) {
    kernels_->account(task);
    if (is_metered) meter(entry + lanes.first, entry + lanes.last);
    return;
  }
  const double accepted = std::min(worst_ratio_, 1.0);
  const auto account_until = [&](int last) {
    task.last = last;
    if (task.first < last) kernels_->account(task);
  };
  parts_.for_chunks_within(entry + lanes.first, entry + lanes.last, [&](int chunk) {
    const auto [shift, index, count] = parts_.entries_of_chunk(chunk);
    if (count < kWorthSumming) return;
    account_until(shift - entry);
    task.first = shift - entry;
    task.last = task.first + count;
    by_chunk_[static_cast<std::size_t>(chunk)] = kernels_->account_chunk(task, accepted);
    is_summed_[static_cast<std::size_t>(chunk)] = 1;
    task.first = task.last;
  });
  account_until(lanes.last);
}

bool EnergyLedger::prepare_island(int island) {
  const std::span<const int> parts = parts_.parts_of(island);
  if (slices_ != nullptr || fetch_entries_ || parts.size() > SmallIslandTask::kMostParts)
    return false;
  std::vector<PartPorts> own;
  for (const int part : parts) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    if (!batch.capabilities.knows_energy) return false;
    own.push_back({slot.entry, batch.batch->wave_size(), slot.wave, slot.stride});
  }
  small_.resize(mismatch_.size());
  small_[static_cast<std::size_t>(island)] = std::move(own);
  return true;
}

void EnergyLedger::forget_examined() {
  std::ranges::fill(is_known_, 0);
  std::ranges::fill(is_summed_, 0);
}

void EnergyLedger::examine_island(int island, const double* a, const double* b) {
  const auto i = static_cast<std::size_t>(island);
  kernels_->account_island({small_[i].data(), static_cast<int>(small_[i].size()), a, b, columns(),
                            column(kStorageBefore), column(kStorage), column(kResidual),
                            column(kTolerance), column(kMismatch), std::min(worst_ratio_, 1.0)},
                           &by_island_[i]);
  is_known_[i] = 1;
}

/// The energy of parts that do not know it is what went through their ports.
void EnergyLedger::meter(int first, int last) {
  for (int entry = first; entry < last; ++entry) {
    const double change = column(kSupply)[entry] - column(kMismatch)[entry];
    column(kChange)[entry] = change;
    column(kStorage)[entry] = column(kStorageBefore)[entry] + change;
    column(kDissipated)[entry] = column(kResidual)[entry] = 0.0;
  }
}

std::optional<StepLedger> EnergyLedger::account(const CommittedStep& step) {
  for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
    examine(i, waves_.batch(i).all(), step.a, step.b);
  }
  if (!tally(step)) return std::nullopt;
  return close(step);
}

bool EnergyLedger::tally(const CommittedStep& step) {
  if (!is_taken_) sum_islands();
  is_taken_ = false;
  sum_up();
  if (is_beyond_ && step.record != nullptr && refine(step)) {
    slices_ == nullptr ? sum_islands() : slices_->share(*this);
    is_taken_ = false;
    sum_up();
  }
  return std::isfinite(tallied_.changed_J) && std::isfinite(tallied_.supplied_J) &&
         std::isfinite(tallied_.mismatch_J) && std::isfinite(tallied_.dissipated_J);
}

/// Forms H⁺ − H again where it does not balance; whether it did anywhere.
bool EnergyLedger::refine(const CommittedStep& step) {
  need_states();
  const bool is_any = parts_.fold_all(false, [&](bool& any, int part) {
    const int entry = waves_.slot(part).entry;
    const double defect = std::abs(column(kResidual)[entry] + column(kDissipated)[entry]);
    if (defect <= column(kTolerance)[entry]) return;
    const std::optional<double> exact = rounding_->change(part, step);
    if (!exact) return;
    const double change = *exact;
    column(kResidual)[entry] += change - column(kChange)[entry];
    column(kStorage)[entry] = column(kStorageBefore)[entry] + change;
    column(kChange)[entry] = change;
    any = true;
  });
  return slices_ == nullptr ? is_any : slices_->any(is_any);
}

void EnergyLedger::find_totals(int chunk, LedgerTotals& out) const {
  portwave::find_totals(parts_, chunk, *kernels_,
                        {column(kChange), column(kSupply), column(kDissipated), column(kMismatch),
                         column(kResidual), column(kTolerance), std::min(worst_ratio_, 1.0)},
                        out);
}

void EnergyLedger::form(int chunk, double* values) const {
  const auto c = static_cast<std::size_t>(chunk);
  LedgerTotals own = by_chunk_[c];
  if (is_summed_[c] == 0) find_totals(chunk, own);
  std::ranges::copy(std::array{own.change, own.supply, own.dissipated, own.mismatch, own.tolerance,
                               own.largest_residual, own.largest_excess},
                    values);
}

void EnergyLedger::take(int island, const double* values) {
  const auto i = static_cast<std::size_t>(island);
  by_island_[i] = {values[0], values[1], values[2], values[3], values[4], values[5], values[6]};
  mismatch_[i] = values[3];
  is_taken_ = true;
  has_entries_ = false;
}

/// From the entries, island by island, where that was not done as they were examined.
void EnergyLedger::sum_islands() {
  for (int island = 0; island < parts_.island_count(); ++island) {
    const auto i = static_cast<std::size_t>(island);
    if (is_known_[i] != 0) {
      is_known_[i] = 0;
      mismatch_[i] = by_island_[i].mismatch;
      continue;
    }
    const auto [first, last] = parts_.chunks_of(island);
    if (last - first == 1 && is_summed_[static_cast<std::size_t>(first)] == 0) {
      find_totals(first, by_island_[i]);
    } else {
      for (int chunk = first; chunk < last; ++chunk) {
        const auto c = static_cast<std::size_t>(chunk);
        if (is_summed_[c] == 0) find_totals(chunk, by_chunk_[c]);
      }
      by_island_[i] = PartOrderReduction::tree<LedgerTotals>(
          first, last, [this](int chunk) { return by_chunk_[static_cast<std::size_t>(chunk)]; },
          added);
    }
    mismatch_[i] = by_island_[i].mismatch;
  }
}

/// In eight interleaved sums, as over parts.
double EnergyLedger::sum_of_islands(double LedgerTotals::*what) const {
  double p[8] = {};
  for (std::size_t i = 0; i < by_island_.size(); ++i) p[i % 8] += by_island_[i].*what;
  return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

/// From the islands.
void EnergyLedger::sum_up() {
  for (char& is_summed : is_summed_) is_summed = 0;
  tallied_ = {};
  const LedgerTotals& first = by_island_.front();
  is_beyond_ = !(first.largest_excess <= 0.0);
  tallied_.max_passivity_residual_J = first.largest_residual;
  if (by_island_.size() == 1) {
    tallied_.changed_J = first.change;
    tallied_.supplied_J = first.supply;
    tallied_.dissipated_J = first.dissipated;
    tallied_.mismatch_J = first.mismatch;
    return;
  }
  tallied_.changed_J = sum_of_islands(&LedgerTotals::change);
  tallied_.supplied_J = sum_of_islands(&LedgerTotals::supply);
  tallied_.dissipated_J = sum_of_islands(&LedgerTotals::dissipated);
  tallied_.mismatch_J = sum_of_islands(&LedgerTotals::mismatch);
  for (const LedgerTotals& island : by_island_) {
    tallied_.max_passivity_residual_J =
        larger_or_nan(tallied_.max_passivity_residual_J, island.largest_residual);
    is_beyond_ = is_beyond_ || !(island.largest_excess <= 0.0);
  }
}

/// What rounding may leave in the account of an island in this step, as far as waves and energies
/// say.
double EnergyLedger::rounding_of_step(int island) const {
  return rounding_of_terms(by_island_[static_cast<std::size_t>(island)].tolerance);
}

double EnergyLedger::state_rounding(int part, const CommittedStep& step) const {
  need_states();
  return rounding_->of_states(part, step, column(kTolerance)[waves_.slot(part).entry]);
}

/// Of each of `islands`, found for all of them at once.
void EnergyLedger::find_state_roundings(std::span<const int> islands,
                                        const CommittedStep& step) const {
  need_states();
  // Where nothing cancels, what states round off is within what is allowed already.
  constexpr double kUsual = 1000.0 * kEpsilon;
  const bool is_many =
      islands.size() > 1 || std::ssize(parts_.parts_of(islands.front())) >= kWorthSumming;
  // Parts of small islands lie beside those of other islands.
  StepRounding::Beside beside;
  StepRounding::Beside* const used = is_many ? &beside : nullptr;
  sums_of_parts_.find_in_order(islands, [&](ExtendedSums::Terms& sums, int part) {
    const double tolerance = column(kTolerance)[waves_.slot(part).entry];
    const double own = rounding_->of_states(part, step, tolerance, used);
    // Of a chunk in double precision, as accounts keep it.
    if (own > kUsual * (kTermsPerTolerance * tolerance)) {
      sums[0] = static_cast<double>(sums[0]) + own;
    }
    sums[1] = static_cast<double>(sums[1]) + own;
  });
}

EnergyLedger::StateRoundings EnergyLedger::found_roundings(std::size_t i) const {
  const ExtendedSums::Terms& sums = sums_of_parts_.of(i);
  return {static_cast<double>(sums[0]), static_cast<double>(sums[1])};
}

EnergyLedger::StateRoundings EnergyLedger::state_roundings(int island,
                                                           const CommittedStep& step) const {
  if (slices_ != nullptr) return state_roundings_[static_cast<std::size_t>(island)];
  find_state_roundings(std::span(&island, 1), step);
  return found_roundings(0);
}

/// What an island's tank may be below zero by, but for what its states round off.
double EnergyLedger::allowance_of_tank(int island) const {
  return accounts_[static_cast<std::size_t>(island)].rounding() + rounding_of_step(island);
}

bool EnergyLedger::is_short(int island, double allowed) const {
  // A step that adds to the tank takes nothing from it, whatever round-off has left there.
  return mismatch_[static_cast<std::size_t>(island)] < 0.0 && prospect(island) < -allowed;
}

void EnergyLedger::prepare(const CommittedStep& step) const {
  if (slices_ == nullptr) return;
  std::vector<int> asked;
  for (int island = 0; island < parts_.island_count(); ++island) {
    if (is_short(island, allowance_of_tank(island))) asked.push_back(island);
  }
  prepare_state_roundings(asked, step);
}

/// No less than state_roundings(…).beyond_usual.
double EnergyLedger::bound_of_states(int island, const CommittedStep& step) const {
  std::atomic<bool> is_unknown = false;  // of one part: the others need not be looked at
  sums_of_parts_.find_chunks(std::span(&island, 1),
                             [&](ExtendedSums::Terms& sum, std::span<const int> parts) {
                               const bool ends = is_unknown.load(std::memory_order_relaxed);
                               const double own = ends ? std::numeric_limits<double>::infinity()
                                                       : rounding_->bound_of_states(parts, step);
                               if (std::isinf(own))
                                 is_unknown.store(true, std::memory_order_relaxed);
                               sum[0] = own;
                             });
  return static_cast<double>(sums_of_parts_.of(0)[0]);
}

bool EnergyLedger::overdraws(int island, const CommittedStep& step) const {
  if (is_too_loud(island, step)) return true;
  if (!is_short(island, 0.0)) return false;
  if (!is_short(island, accounts_[static_cast<std::size_t>(island)].rounding())) return false;
  const double allowed = allowance_of_tank(island);
  if (!is_short(island, allowed)) return false;
  if (slices_ == nullptr) {
    need_states();
    if (is_short(island, allowed + bound_of_states(island, step))) return true;
  }
  return is_short(island, allowed + state_roundings(island, step).beyond_usual);
}

/// With slices: for those who ask for them later.
void EnergyLedger::prepare_state_roundings(std::span<const int> islands,
                                           const CommittedStep& step) const {
  if (islands.empty()) return;
  find_state_roundings(islands, step);
  for (std::size_t k = 0; k < islands.size(); ++k) {
    state_roundings_[static_cast<std::size_t>(islands[k])] = found_roundings(k);
  }
}

double EnergyLedger::energies(int island) const {
  const auto i = static_cast<std::size_t>(island);
  return measure_of(island, accounts_[i]) + std::abs(by_island_[i].supply);
}

double EnergyLedger::supplied(int island) const {
  return std::abs(by_island_[static_cast<std::size_t>(island)].supply);
}

double EnergyLedger::measure_of(int island, const Account& account) const {
  return account.size + account.moved + sent_[static_cast<std::size_t>(island)];
}

/// What the sources of an island send by themselves, if it is more than has been seen so far.
void EnergyLedger::look_at_sources(int island, const CommittedStep& step) const {
  if (step.record == nullptr) return;
  need_states();
  const double sent = static_cast<double>(
      sums_of_parts_.find_in_order(island, [&](ExtendedSums::Terms& sum, int part) {
        sum[0] += rounding_->sent_by_itself(part, step.record);
      })[0]);
  double& most = sent_[static_cast<std::size_t>(island)];
  most = std::max(most, sent);
}

bool EnergyLedger::is_too_loud(int island, const CommittedStep& step) const {
  if (!guarded_ || !accounts_[static_cast<std::size_t>(island)].passive) return false;
  const double rounding = rounding_of_step(island);
  if (rounding <= kPayable * energies(island)) return false;
  look_at_sources(island, step);
  return rounding > kPayable * energies(island);
}

bool EnergyLedger::takes(int island, double deficit_J, const CommittedStep& step) const {
  const auto i = static_cast<std::size_t>(island);
  const Account& account = accounts_[i];
  // H⁺ ≤ H₀ + T₀ + supply without it: what the interface took was lost in parts.
  const double gained = account.gained.value() + (by_island_[i].change - by_island_[i].supply);
  if (gained <= account.tank) return true;
  const double taken = account.tolerated + deficit_J;
  if (taken <= kTolerable * energies(island)) return true;
  look_at_sources(island, step);
  return taken <= kTolerable * energies(island);
}

void EnergyLedger::revalue(int part, double more_J) {
  column(kStorageBefore)[waves_.slot(part).entry] += more_J;
  stored_.add(more_J);
  revalued_J_ += more_J;
  run_.supplied.add(more_J);
  totals_.supplied_J = run_.supplied.value();
  totals_.final_J = stored_.value();
  totals_.max_J = std::max(totals_.max_J, totals_.final_J);
  Account& account = accounts_[static_cast<std::size_t>(waves_.system().island_of_part(part))];
  account.size += std::abs(more_J);
  account.supplied += more_J;
}

StepLedger EnergyLedger::close(const CommittedStep& step, double alpha, double withheld_J,
                               std::span<const ToleratedDeficit> tolerated) {
  StepLedger ledger = tallied_;
  ledger.alpha = alpha;
  ledger.withheld_J = withheld_J;
  for (const ToleratedDeficit& own : tolerated) {
    const auto i = static_cast<std::size_t>(own.island);
    tolerated_[i] = own.energy_J;
    accounts_[i].tolerated += own.energy_J;
    ledger.tolerated_J += own.energy_J;
  }
  max_residual_ = std::max(max_residual_, ledger.max_passivity_residual_J);
  if (is_beyond_) judge_passivity(step);
  if (!metered_.empty()) take_metered();
  stored_.add(ledger.changed_J);
  ledger.stored_J = stored_.value();
  totals_.rounding_J = 0.0;
  unjudged_count_ = 0;
  if (slices_ != nullptr && guarded_) prepare_judgement(step);
  for (int island = 0; island < parts_.island_count(); ++island) {
    judge_island(island, step);
    totals_.rounding_J += accounts_[static_cast<std::size_t>(island)].rounding();
  }
  for (std::size_t i = 0; i < tank_.size(); ++i) {
    tank_[i].add(mismatch_[i]);
    if (tolerated_[i] != 0.0) tank_[i].add(std::exchange(tolerated_[i], 0.0));
    const double full = tank_[i].value();
    if (full <= cap_) continue;
    run_.given_up.add(full - cap_);
    tank_[i] = CompensatedSum(cap_);
  }
  std::swap(columns_[kStorage], columns_[kStorageBefore]);
  ledger.tank_J = tank_sum();
  totals_.final_J = ledger.stored_J;
  totals_.max_J = std::max(totals_.max_J, ledger.stored_J);
  run_.supplied.add(ledger.supplied_J);
  run_.dissipated.add(ledger.dissipated_J);
  run_.mismatch.add(ledger.mismatch_J);
  totals_.supplied_J = run_.supplied.value();
  totals_.dissipated_J = run_.dissipated.value();
  totals_.mismatch_J = run_.mismatch.value();
  totals_.given_up_J = run_.given_up.value();
  totals_.tolerated_J += ledger.tolerated_J;
  totals_.tank_J = ledger.tank_J;
  update_energy_ratio();
  ++steps_;
  ledger.changed_J += revalued_J_;
  ledger.supplied_J += revalued_J_;
  revalued_J_ = 0.0;
  return ledger;
}

/// The step in the account of an island.
void EnergyLedger::take_step(int island, Account& account) const {
  const LedgerTotals& own = by_island_[static_cast<std::size_t>(island)];
  account.gained.add(own.change - own.supply);
  account.supplied += own.supply;
  account.moved += std::abs(own.supply);
  account.by_waves += rounding_of_step(island);
}

/// H + T − (H₀ + T₀ + supply + what was tolerated).
double EnergyLedger::excess_of(int island, const Account& account) const {
  return account.gained.value() + (prospect(island) - account.tank) - account.tolerated;
}

double EnergyLedger::allowance_of(const Account& account) {
  return kOfTheStart * account.size + account.rounding();
}

/// Whether a law does not hold unless states have rounded off that much.
bool EnergyLedger::is_out(int island, const Account& account) const {
  return is_short(island, account.rounding()) || excess_of(island, account) > allowance_of(account);
}

/// With slices: what the judgement of islands asks for.
void EnergyLedger::prepare_judgement(const CommittedStep& step) const {
  std::vector<int> asked;
  for (int island = 0; island < parts_.island_count(); ++island) {
    Account account = accounts_[static_cast<std::size_t>(island)];
    take_step(island, account);
    if (is_out(island, account)) asked.push_back(island);
  }
  prepare_state_roundings(asked, step);
}

/// T ≥ 0 and H + T ≤ H₀ + T₀ + supply on an island, before the step is booked, both up to what
/// rounding may have left in the account; and whether H alone exceeds H₀ + T₀ + supply.
void EnergyLedger::judge_island(int island, const CommittedStep& step) {
  const auto i = static_cast<std::size_t>(island);
  Account& account = accounts_[i];
  take_step(island, account);
  if (guarded_) {
    if (is_out(island, account)) account.by_states += state_roundings(island, step).all;
    if (!broken_law_) {
      if (is_short(island, account.rounding())) {
        broken_law_ = {BrokenLaw::Law::tank, island, steps_};
      } else if (!(excess_of(island, account) <= allowance_of(account))) {
        broken_law_ = {BrokenLaw::Law::balance, island, steps_};
      }
    }
  }
  see_rounding(island, account, step);
  see_growth(island, account);
}

/// Whether the account is known well enough to judge by it.
void EnergyLedger::see_rounding(int island, Account& account, const CommittedStep& step) {
  const auto is_known = [&] {
    return account.rounding() <= kKnown * measure_of(island, account) + kUnderflow_J;
  };
  // What sources send is looked at now and then, for as long as that is all there is.
  if (!is_known() && account.rounding() > 2.0 * account.looked_at) {
    account.looked_at = account.rounding();
    look_at_sources(island, step);
  }
  if (!is_known()) ++unjudged_count_;
}

void EnergyLedger::see_growth(int island, const Account& account) {
  const double beyond = account.gained.value() - account.tank - account.tolerated;
  // T may be below zero by as much as the second law is judged up to. That waves are large excuses nothing,
  // where there was energy at the start that they could be measured by.
  double by_waves = 2.0 * account.by_waves;
  if (account.size > 0.0) {
    by_waves = std::min(by_waves, kKnown * measure_of(island, account) + kUnderflow_J);
  }
  if (!(beyond > kOfTheStart * account.size + by_waves + 2.0 * account.by_states)) return;
  if (growth_ && beyond <= growth_->beyond_J) return;
  const double start = account.start + account.tank;
  growth_ = EnergyGrowth{
      .island = island,
      .step = steps_,
      .beyond_J = beyond,
      .ratio = start > 0.0 ? 1.0 + beyond / start : std::numeric_limits<double>::infinity()};
}

void EnergyLedger::take_metered() {
  need_entries();
  for (const int part : metered_) metered_J_.add(column(kChange)[waves_.slot(part).entry]);
  totals_.metered_J = metered_J_.value();
}

void EnergyLedger::judge_passivity(const CommittedStep& step) {
  need_entries();
  struct Worst {
    double measure = -std::numeric_limits<double>::infinity();
    std::int64_t part = -1;
    bool is_nan = false;
    bool is_violated = false;  ///< by this part or another

    void take(const Worst& other) {
      is_violated = is_violated || other.is_violated;
      if (is_nan || !(other.measure > measure || other.is_nan)) return;
      measure = other.measure;
      part = other.part;
      is_nan = other.is_nan;
    }
  };
  Worst worst = parts_.fold_all(Worst{}, [&](Worst& so_far, int part) {
    if (so_far.is_nan) return;
    const int entry = waves_.slot(part).entry;
    const double own = column(kResidual)[entry];
    // What does not balance counts for where it is worst; only energy from nowhere is a violation.
    const double defect = std::max(own, std::abs(own + column(kDissipated)[entry]));
    double limit = std::max(column(kTolerance)[entry], kUnderflow_J);
    if (defect > limit) limit += state_rounding(part, step);
    so_far.take({defect / limit, part, std::isnan(own), own > limit || std::isnan(own)});
  });
  if (slices_ != nullptr) {
    if (worst.part >= 0) worst.part = slices_->number_of(static_cast<int>(worst.part));
    Worst of_all;
    for (const Worst& other : slices_->gathered(worst)) of_all.take(other);
    worst = of_all;
  }
  violated_ = violated_ || worst.is_violated;
  if (worst.measure <= worst_ratio_) return;
  worst_ratio_ = worst.measure;
  worst_step_ = steps_;
  worst_part_ = static_cast<int>(worst.part);
}

int EnergyLedger::first_non_finite() const {
  need_entries();
  const int spoiled = parts_.first_part([this](int part) {
    const int entry = waves_.slot(part).entry;
    return !std::isfinite(column(kChange)[entry]) || !std::isfinite(column(kSupply)[entry]) ||
           !std::isfinite(column(kMismatch)[entry]) || !std::isfinite(column(kDissipated)[entry]);
  });
  const auto stored = [this](int part) { return column(kStorage)[waves_.slot(part).entry]; };
  const int largest = parts_.fold_all(-1, [&](int& so_far, int part) {
    if (so_far < 0 || stored(part) > stored(so_far)) so_far = part;
  });
  if (slices_ == nullptr) return spoiled >= 0 ? spoiled : largest;
  struct Found {
    std::int64_t spoiled, largest;
    double stored_J;
  };
  const auto number = [this](int part) { return part < 0 ? -1 : slices_->number_of(part); };
  const std::vector<Found> all = slices_->gathered(
      Found{number(spoiled), number(largest), largest < 0 ? 0.0 : stored(largest)});
  Found first{-1, -1, 0.0};
  for (const Found& own : all) {
    if (first.spoiled < 0) first.spoiled = own.spoiled;
    if (own.largest >= 0 && (first.largest < 0 || own.stored_J > first.stored_J)) {
      first.largest = own.largest;
      first.stored_J = own.stored_J;
    }
  }
  return static_cast<int>(first.spoiled >= 0 ? first.spoiled : first.largest);
}

std::size_t EnergyLedger::bytes() const {
  return memory_.bytes() + tank_.capacity() * sizeof(CompensatedSum) +
         mismatch_.capacity() * (sizeof(double) + sizeof(LedgerTotals)) +
         by_chunk_.capacity() * (sizeof(LedgerTotals) + 1) +
         accounts_.capacity() * sizeof(Account) + is_known_.capacity() +
         (sent_.capacity() + tolerated_.capacity()) * sizeof(double) +
         small_.capacity() * sizeof(small_.front()) + rounding_->bytes() + sums_of_parts_.bytes() +
         state_roundings_.capacity() * sizeof(StateRoundings);
}

void EnergyLedger::archive(StateArchive& archive) {
  if (archive.reads()) has_entries_ = true;
  archive.array(columns_[kStorageBefore]);
  archive.array(tank_);
  archive.array(sent_);
  archive.array(mismatch_);
  archive.array(accounts_);
  archive.values(unjudged_count_, tallied_, is_beyond_, stored_, metered_J_, totals_, run_,
                 per_initial_energy_, steps_, max_residual_, worst_ratio_, worst_part_, worst_step_,
                 revalued_J_, violated_, broken_law_, growth_);
}

double EnergyLedger::storage(int part) const {
  return column(kStorageBefore)[waves_.slot(part).entry];
}

PartEnergies EnergyLedger::part_energies(int part) const {
  if (steps_ == 0) return {};
  const int entry = waves_.slot(part).entry;
  return {.changed_J = column(kChange)[entry],
          .supplied_J = column(kSupply)[entry],
          .through_ports_J = -column(kMismatch)[entry],
          .dissipated_J = column(kDissipated)[entry]};
}

double EnergyLedger::tank_sum() const {
  double sum = 0.0;
  for (const CompensatedSum& tank : tank_) sum += tank.value();
  return sum;
}

void EnergyLedger::update_energy_ratio() {
  double reserve = 0.0;
  for (const CompensatedSum& tank : tank_) reserve += std::max(tank.value(), 0.0);
  totals_.max_energy_ratio =
      std::max(totals_.max_energy_ratio,
               (totals_.final_J + reserve - totals_.supplied_J) * per_initial_energy_);
}

}  // namespace portwave
