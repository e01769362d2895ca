#include "portwave/coupling/energy/energy_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "energy/account_limits.hpp"
#include "energy/island_accounts.hpp"
#include "energy/ledger_totals.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

/// Number of parts from which a chunk is summed while it is examined. Smaller ones are summed as fast later.
constexpr int kWorthSumming = 16;

}  // namespace

/// Values at the start, by entry: H, ½|b|², |H|, and 1 for active parts.
class EnergyLedger::Start final : public IslandSums {
 public:
  Start(const PartOrderReduction& parts, std::array<std::span<double>, 4> columns)
      : parts_(parts), columns_(columns), islands_(at(parts.island_count())) {}
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
      values[3] = std::max(values[3], columns_[3][at(index == nullptr ? shift + i : index[i])]);
    }
  }
  void take(int island, const double* values) override {
    islands_[at(island)] = {values[0], values[1], values[2], !(values[3] > 0.0)};
  }
  /// For a process that has all parts.
  void find() {
    for (int island = 0; island < parts_.island_count(); ++island) {
      double values[4];
      for (std::size_t i = 0; i < 3; ++i) values[i] = parts_.sum(island, columns_[i].data());
      values[3] = 0.0;
      for (const int entry : parts_.entries_of(island)) {
        values[3] = std::max(values[3], columns_[3][at(entry)]);
      }
      take(island, values);
    }
  }
  const std::vector<IslandAccounts::Start>& islands() const { return islands_; }

 private:
  const PartOrderReduction& parts_;
  std::array<std::span<double>, 4> columns_;
  std::vector<IslandAccounts::Start> islands_;
};

EnergyLedger::~EnergyLedger() = default;

EnergyLedger::EnergyLedger(const WaveDiscretisation& waves, const double* record, const double* b,
                           const LedgerOptions& options)
    : waves_(waves),
      slices_(options.slices),
      replicas_(options.replicas),
      kernels_(&ledger_kernels()),
      memory_({{kColumns, at(waves.entry_count())}}),
      parts_(waves.reduction()),
      damps_(options.may_damp ||
             std::ranges::any_of(
                 waves.system().parts(),
                 [](const Part& part) { return part.component->stage_rule().is_damped(); })),
      numerical_J_(damps_ ? at(parts_.island_count()) : 0),
      adds_up_(!replicas_ && parts_.island_count() > 1),
      accepted_(at(parts_.island_count())),
      by_chunk_(at(parts_.chunk_count())),
      is_known_(accepted_.size(), 0),
      kept_(replicas_ ? accepted_.size() : 0) {
  for (std::span<double>& c : columns_) c = memory_.take(at(waves.entry_count()));
  terms_ = {columns_[kChange],   columns_[kSupply],    columns_[kDissipated], columns_[kMismatch],
            columns_[kResidual], columns_[kTolerance], columns_[kNumerical]};
  accounts_ = std::make_unique<IslandAccounts>(waves, options.tank, options.guarded, !adds_up_,
                                               options.slices, column(kTolerance),
                                               [this] { need_states(); });
  for (int chunk = 0; chunk < parts_.chunk_count(); ++chunk) {
    if (parts_.entries_of_chunk(chunk).count >= kWorthSumming) is_summed_.resize(by_chunk_.size());
  }
  for (int island = 0; island < parts_.island_count(); ++island) {
    const auto [first, last] = parts_.chunks_of(island);
    island_of_chunk_.insert(island_of_chunk_.end(), at(last - first), island);
  }
  for (int part = 0; part < parts_.part_count(); ++part) {
    if (!waves.batch(waves.slot(part).batch).capabilities.knows_energy) metered_.push_back(part);
  }
  find_held();
  if (replicas_) find_regular_entries();
  begin(record, b);
}

/// Finds islands whose parts' entries lie at equal distances from those of the island before, if all of them
/// are one chunk.
void EnergyLedger::find_regular_entries() {
  const std::span<const int> first = parts_.entries_of(0);
  if (first.size() > PartOrderReduction::kChunk) return;
  first_.assign(first.begin(), first.end());
  step_.assign(first.size(), 1);
  for (int island = 1; island < parts_.island_count(); ++island) {
    const std::span<const int> own = parts_.entries_of(island);
    for (std::size_t p = 0; p < first_.size(); ++p) {
      if (island == 1) step_[p] = own[p] - first_[p];
      if (own[p] == first_[p] + island * step_[p]) continue;
      first_.clear();
      return;
    }
  }
}

void EnergyLedger::begin(const double* record, const double* b) {
  steps_ = 0;
  found_at_ = -1;
  joined_ = 0;
  max_residual_ = -std::numeric_limits<double>::infinity();
  std::ranges::fill(accepted_, -std::numeric_limits<double>::infinity());
  for (std::unique_ptr<Kept>& kept : kept_) kept.reset();
  begin_accounts(record, b);
  tallied_ = {};
  totals_ = {};
  jumped_ = {};
  impulses_.clear();
  run_ = RunSums();
  numerical_in_all_J_.assign(numerical_J_.size(), CompensatedSum());
  totals_.initial_J = accounts_->sum_of_starts();
  totals_.final_J = totals_.max_J = totals_.initial_J;
  stored_ = CompensatedSum(totals_.initial_J);
  metered_J_ = CompensatedSum();
  for (Held& own : held_) own.exchanged_J = 0.0;
  totals_.tank_J = totals_.initial_tank_J = tank_sum();
  // Without energy at the start there is no ratio.
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  per_initial_energy_ = initial_energy() > 0.0 ? 1.0 / initial_energy() : kNone;
  totals_.max_energy_ratio =
      initial_energy() > 0.0 ? -std::numeric_limits<double>::infinity() : kNone;
  update_energy_ratio();
}

void EnergyLedger::begin_accounts(const double* record, const double* b) {
  Start start(parts_, {columns_[kStorageBefore], columns_[kMismatch], columns_[kTolerance],
                       columns_[kResidual]});
  for (int i = 0; i < parts_.part_count(); ++i) {
    const PartSlot& slot = waves_.slot(i);
    const StepBatch& batch = *waves_.batch(slot.batch).batch;
    const Part& part = waves_.system().parts()[at(i)];
    column(kStorageBefore)[slot.entry] =
        part.port_hamiltonian() != nullptr ? accounts_->storage(i, record) : 0.0;
    column(kTolerance)[slot.entry] = std::abs(column(kStorageBefore)[slot.entry]);
    column(kResidual)[slot.entry] = part.component->is_active() ? 1.0 : 0.0;
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
  for (int island = 0; island < accounts_->count(); ++island) {
    accounts_->begin(island, start.islands()[at(island)]);
  }
}

void EnergyLedger::share_with(const ForEach* for_each, int threads) {
  accounts_->share_with(for_each, threads);
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
  return {column(kChange), column(kSupply), column(kDissipated),
          damps_ ? column(kNumerical) : nullptr};
}

// Lanes are examined.

void EnergyLedger::examine(int batch, LaneRange lanes, const double* a, const double* b) {
  const BatchSlot& slot = waves_.batch(batch);
  const int entry = slot.entry;
  LedgerTask task{lanes.first,
                  lanes.last,
                  slot.batch->wave_size(),
                  slot.batch->stride(),
                  a + slot.wave,
                  b + slot.wave,
                  columns().from(entry),
                  column(kStorageBefore) + entry,
                  column(kStorage) + entry,
                  column(kResidual) + entry,
                  column(kTolerance) + entry,
                  column(kMismatch) + entry};
  const bool is_metered = !slot.capabilities.knows_energy;
  if (is_metered || replicas_ || lanes.last - lanes.first < kWorthSumming) {
    kernels_->account(task);
    if (is_metered) meter(entry + lanes.first, entry + lanes.last);
    return;
  }
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
    by_chunk_[at(chunk)] = kernels_->account_chunk(task, accepted_of_chunk(chunk));
    is_summed_[at(chunk)] = 1;
    task.first = task.last;
  });
  account_until(lanes.last);
}

void EnergyLedger::sum_chunk(int chunk) {
  if (is_summed_.empty() || is_summed(chunk)) return;
  find_totals(chunk, by_chunk_[at(chunk)]);
  is_summed_[at(chunk)] = 1;
}

bool EnergyLedger::prepare_island(int island) {
  const std::span<const int> parts = parts_.parts_of(island);
  if (replicas_ || slices_ != nullptr || fetch_entries_ ||
      parts.size() > SmallIslandTask::kMostParts) {
    return false;
  }
  std::vector<PartPorts> own;
  for (const int part : parts) {
    const PartSlot& slot = waves_.slot(part);
    const BatchSlot& batch = waves_.batch(slot.batch);
    if (!batch.capabilities.knows_energy) return false;
    own.push_back({slot.entry, batch.batch->wave_size(), slot.wave, slot.stride});
  }
  small_.resize(is_known_.size());
  small_[at(island)] = std::move(own);
  return true;
}

void EnergyLedger::forget_examined() {
  std::ranges::fill(is_known_, 0);
  std::ranges::fill(is_summed_, 0);
}

/// A small island is one chunk: the sums of the kernel are those of the island, and go into its account.
void EnergyLedger::examine_island(int island, const double* a, const double* b) {
  const std::vector<PartPorts>& own = small_[at(island)];
  kernels_->account_island({own.data(), static_cast<int>(own.size()), a, b, columns(),
                            column(kStorageBefore), column(kStorage), column(kResidual),
                            column(kTolerance), column(kMismatch), accepted_[at(island)],
                            accounts_->sums_of(island), accounts_->count()});
  is_known_[at(island)] = 1;
}

/// The energy of parts that do not know it is the energy received through their ports.
void EnergyLedger::meter(int first, int last) {
  for (int entry = first; entry < last; ++entry) {
    const double change = column(kSupply)[entry] - column(kMismatch)[entry];
    column(kChange)[entry] = change;
    column(kStorage)[entry] = column(kStorageBefore)[entry] + change;
    column(kDissipated)[entry] = column(kResidual)[entry] = 0.0;
  }
  if (!held_.empty()) judge_held(first, last);
}

std::optional<StepLedger> EnergyLedger::account(const CommittedStep& step) {
  for (int i = 0; i < static_cast<int>(waves_.batches().size()); ++i) {
    examine(i, waves_.batch(i).all(), step.a, step.b);
  }
  if (!tally(step)) return std::nullopt;
  return close(step);
}

// The step is summed up.

bool EnergyLedger::tally(const CommittedStep& step) {
  if (!is_taken_) {
    sum_islands();
    for (int island = 0; damps_ && island < accounts_->count(); ++island) {
      numerical_J_[at(island)] = parts_.sum(island, column(kNumerical));
    }
  }
  std::ranges::fill(is_summed_, 0);
  is_beyond_ = accounts_->is_any_beyond();
  if (is_beyond_ && step.record != nullptr) {
    const bool is_any = refine(step);
    if (slices_ != nullptr && slices_->any(is_any)) slices_->share(*this);
    is_beyond_ = accounts_->is_any_beyond();
  }
  is_taken_ = false;
  if (adds_up_) tallied_ = accounts_->sum_of_step();
  return is_finite();
}

bool EnergyLedger::is_finite() const {
  if (!adds_up_) return accounts_->first_non_finite() < 0;
  return std::isfinite(tallied_.changed_J) && std::isfinite(tallied_.supplied_J) &&
         std::isfinite(tallied_.mismatch_J) && std::isfinite(tallied_.dissipated_J);
}

/// Forms H⁺ − H again for parts that do not balance; returns whether there were any.
bool EnergyLedger::refine(const CommittedStep& step) {
  need_states();
  bool is_any = false;
  for (int island = 0; island < accounts_->count(); ++island) {
    if (accounts_->excess(island) <= 0.0 || !accounts_->is_open(island)) continue;
    const bool is_own = parts_.fold(island, false, [&](bool& any, int part) {
      const int entry = waves_.slot(part).entry;
      const double defect = std::abs(column(kResidual)[entry] + column(kDissipated)[entry]);
      if (defect <= column(kTolerance)[entry]) return;
      const std::optional<double> exact = accounts_->exact_change(part, step);
      if (!exact) return;
      const double change = *exact;
      column(kResidual)[entry] += change - column(kChange)[entry];
      column(kStorage)[entry] = column(kStorageBefore)[entry] + change;
      column(kChange)[entry] = change;
      any = true;
    });
    if (is_own && slices_ == nullptr) sum_island(island);
    is_any = is_any || is_own;
  }
  return is_any;
}

double EnergyLedger::accepted_of_chunk(int chunk) const {
  return accepted_[at(island_of_chunk_[at(chunk)])];
}

void EnergyLedger::find_totals(int chunk, LedgerTotals& out) const {
  portwave::find_totals(parts_, chunk, *kernels_,
                        {column(kChange), column(kSupply), column(kDissipated), column(kMismatch),
                         column(kResidual), column(kTolerance), accepted_of_chunk(chunk)},
                        out);
}

void EnergyLedger::form(int chunk, double* values) const {
  LedgerTotals own = by_chunk_[at(chunk)];
  if (!is_summed(chunk)) find_totals(chunk, own);
  values =
      std::ranges::copy(
          std::array{own.change, own.supply, own.dissipated, own.mismatch, own.tolerance}, values)
          .out;
  if (damps_) *values++ = parts_.sum_of_chunk(chunk, column(kNumerical));
  *values++ = own.largest_residual;
  *values = own.largest_excess;
}

void EnergyLedger::take(int island, const double* values) {
  const double* const maxima = values + sums();
  accounts_->set_sums(
      island, {values[0], values[1], values[2], values[3], values[4], maxima[0], maxima[1]});
  if (damps_) numerical_J_[at(island)] = values[5];
  is_taken_ = true;
  has_entries_ = false;
}

/// Sums from the entries, if they were not formed during examination.
void EnergyLedger::sum_islands() {
  if (!first_.empty()) {
    IslandSumsTask task{
        .at = {accounts_->count(), static_cast<int>(first_.size()), first_.data(), step_.data()},
        .columns = {column(kChange), column(kSupply), column(kDissipated), column(kMismatch),
                    column(kResidual), column(kTolerance), 0.0},
        .accepted = accepted_.data()};
    accounts_->direct(task);
    return kernels_->island_sums(task);
  }
  for (int island = 0; island < accounts_->count(); ++island) sum_island(island);
}

void EnergyLedger::sum_island(int island) {
  if (std::exchange(is_known_[at(island)], 0) != 0) return;
  const auto [first, last] = parts_.chunks_of(island);
  for (int chunk = first; chunk < last; ++chunk) {
    if (!is_summed(chunk)) find_totals(chunk, by_chunk_[at(chunk)]);
  }
  if (last - first == 1) return accounts_->set_sums(island, by_chunk_[at(first)]);
  accounts_->set_sums(island,
                      PartOrderReduction::tree<LedgerTotals>(
                          first, last, [this](int chunk) { return by_chunk_[at(chunk)]; }, added));
}

int EnergyLedger::first_non_finite() const {
  need_entries();
  const auto is_spoiled = [this](int part) {
    const int entry = waves_.slot(part).entry;
    return !std::isfinite(column(kChange)[entry]) || !std::isfinite(column(kSupply)[entry]) ||
           !std::isfinite(column(kMismatch)[entry]) || !std::isfinite(column(kDissipated)[entry]);
  };
  const auto stored = [this](int part) { return column(kStorage)[waves_.slot(part).entry]; };
  const auto take_larger = [&](int& so_far, int part) {
    if (so_far < 0 || stored(part) > stored(so_far)) so_far = part;
  };
  if (replicas_) {
    const std::span<const int> parts = parts_.parts_of(accounts_->first_non_finite());
    const auto spoiled = std::ranges::find_if(parts, is_spoiled);
    if (spoiled != parts.end()) return *spoiled;
    int largest = -1;
    for (const int part : parts) take_larger(largest, part);
    return largest;
  }
  const int spoiled = parts_.first_part(is_spoiled);
  const int largest = parts_.fold_all(-1, take_larger);
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

// The interface for the guard.

bool EnergyLedger::may_overdraw() const { return accounts_->may_overdraw(); }
void EnergyLedger::prepare(const CommittedStep& step) const { accounts_->prepare(step); }
bool EnergyLedger::overdraws(int island, const CommittedStep& step) const {
  return accounts_->overdraws(island, step);
}
bool EnergyLedger::is_too_loud(int island, const CommittedStep& step) const {
  return accounts_->is_too_loud(island, step);
}
bool EnergyLedger::takes(int island, double deficit_J, const CommittedStep& step) const {
  return accounts_->takes(island, deficit_J, step);
}
double EnergyLedger::energies(int island) const { return accounts_->energies(island); }
double EnergyLedger::stored(int island) const { return std::abs(accounts_->stored(island)); }
double EnergyLedger::supplied(int island) const { return std::abs(accounts_->supply(island)); }
double EnergyLedger::mismatch(int island) const { return accounts_->mismatch(island); }
double EnergyLedger::prospect(int island) const { return accounts_->prospect(island); }
double EnergyLedger::tank(int island) const { return accounts_->tank(island); }

// The step is final.

StepLedger EnergyLedger::close(const CommittedStep& step, double alpha, double withheld_J,
                               std::span<const ToleratedDeficit> tolerated) {
  const bool is_part_news = is_beyond_ && judge_passivity(step);
  const bool is_news = accounts_->close(step, steps_ - joined_, tolerated);
  if (!metered_.empty()) take_metered();
  std::swap(columns_[kStorage], columns_[kStorageBefore]);
  StepLedger ledger;
  if (adds_up_) {
    ledger = tallied_;
  } else if (!replicas_) {
    ledger = accounts_->sum_of_step();
  }
  ledger.alpha = alpha;
  ledger.withheld_J = withheld_J;
  for (const ToleratedDeficit& own : tolerated) ledger.tolerated_J += own.energy_J;
  if (damps_) take_numerical(ledger);
  if (adds_up_) add_up(ledger);
  if (!replicas_) {
    ledger.changed_J += revalued_J_;
    ledger.supplied_J += revalued_J_;
    if (jumped_.impact_J != 0.0 || jumped_.changed_J != 0.0 || jumped_.supplied_J != 0.0) {
      ledger.changed_J += jumped_.changed_J;
      ledger.supplied_J += jumped_.supplied_J;
      ledger.impact_J = jumped_.impact_J;
    }
    max_residual_ = std::max(max_residual_, ledger.max_passivity_residual_J);
  }
  revalued_J_ = 0.0;
  jumped_ = {};
  if (is_part_news || is_news) found_at_ = steps_;
  ++steps_;
  return ledger;
}

/// Adds the sums of the step to those of the run.
void EnergyLedger::add_up(StepLedger& ledger) {
  stored_.add(ledger.changed_J);
  run_.supplied.add(ledger.supplied_J);
  run_.dissipated.add(ledger.dissipated_J);
  run_.mismatch.add(ledger.mismatch_J);
  ledger.stored_J = stored_.value();
  ledger.tank_J = tank_sum();
  totals_.final_J = ledger.stored_J;
  totals_.max_J = std::max(totals_.max_J, ledger.stored_J);
  totals_.supplied_J = run_.supplied.value();
  totals_.dissipated_J = run_.dissipated.value();
  totals_.mismatch_J = run_.mismatch.value();
  totals_.tolerated_J += ledger.tolerated_J;
  totals_.tank_J = ledger.tank_J;
  totals_.rounding_J = totals_.given_up_J = 0.0;
  for (int island = 0; island < accounts_->count(); ++island) {
    totals_.rounding_J += accounts_->rounding(island);
    totals_.given_up_J += accounts_->given_up(island);
  }
  update_energy_ratio();
}

void EnergyLedger::take_numerical(StepLedger& ledger) {
  for (int island = 0; island < accounts_->count(); ++island) {
    if (!accounts_->is_open(island)) continue;
    numerical_in_all_J_[at(island)].add(numerical_J_[at(island)]);
    if (!replicas_) ledger.numerical_dissipation_J += numerical_J_[at(island)];
  }
  ledger.dissipated_J -= ledger.numerical_dissipation_J;
}

void EnergyLedger::take_metered() {
  need_entries();
  for (const int part : metered_) metered_J_.add(column(kChange)[waves_.slot(part).entry]);
  for (Held& own : held_) own.exchanged_J += std::abs(column(kChange)[own.entry]);
}

/// Judges islands with a part that balances worse than any so far, or than tolerated.
bool EnergyLedger::judge_passivity(const CommittedStep& step) {
  need_entries();
  bool is_news = false;
  for (int island = 0; island < accounts_->count(); ++island) {
    if (accounts_->excess(island) <= 0.0 || !accounts_->is_open(island)) continue;
    is_news = judge_passivity(island, step) || is_news;
  }
  return is_news;
}

bool EnergyLedger::judge_passivity(int island, const CommittedStep& step) {
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
  Worst worst = parts_.fold(island, Worst{}, [&](Worst& so_far, int part) {
    if (so_far.is_nan) return;
    const int entry = waves_.slot(part).entry;
    const double own = column(kResidual)[entry];
    // A defect of either sign counts for the worst place; only energy from nowhere is a violation.
    const double defect = std::max(own, std::abs(own + column(kDissipated)[entry]));
    double limit = std::max(column(kTolerance)[entry], kUnderflow_J);
    if (defect > limit) limit += accounts_->state_rounding(part, step);
    so_far.take({defect / limit, part, std::isnan(own), own > limit || std::isnan(own)});
  });
  if (slices_ != nullptr) {
    if (worst.part >= 0) worst.part = slices_->number_of(static_cast<int>(worst.part));
    Worst of_all;
    for (const Worst& other : slices_->gathered(worst)) of_all.take(other);
    worst = of_all;
  }
  LawFinding& finding = accounts_->finding(island);
  const bool is_first = worst.is_violated && !finding.is_part_active;
  finding.is_part_active = finding.is_part_active || worst.is_violated;
  if (worst.measure <= finding.worst_ratio) return is_first;
  finding.worst_ratio = worst.measure;
  finding.worst_step = steps_ - joined_;
  finding.worst_part = worst.part;
  accepted_[at(island)] = std::min(worst.measure, 1.0);
  return true;
}

void EnergyLedger::close_island(int island) {
  if (!accounts_->is_open(island)) return;
  kept_[at(island)] = std::make_unique<Kept>(Kept{totals(island), certificate(island)});
  accounts_->close_island(island);
}

}  // namespace portwave
