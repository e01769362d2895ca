#include "energy/island_accounts.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "energy/account_limits.hpp"
#include "portwave/subsystems/base/state_archive.hpp"

namespace portwave {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoRatio = std::numeric_limits<double>::quiet_NaN();

/// Number of parts from which results for neighbouring parts are kept.
constexpr int kManyParts = 16;

}  // namespace

IslandAccounts::IslandAccounts(const WaveDiscretisation& waves, const TankOptions& tank,
                               bool guarded, bool totals, SlicesTogether* slices,
                               const double* tolerance, std::function<void()> need_states)
    : waves_(waves),
      parts_(waves.reduction()),
      kernels_(&ledger_kernels()),
      slices_(slices),
      tolerance_(tolerance),
      need_states_(std::move(need_states)),
      options_(tank),
      islands_(parts_.island_count()),
      columns_(static_cast<std::size_t>(kColumns * islands_), 0.0),
      task_{columns_.data(), islands_, {guarded, tank.cap_J}, totals},
      passive_(static_cast<std::size_t>(islands_), 1),
      closed_(passive_.size(), 0),
      findings_(passive_.size()),
      rounding_(waves),
      sums_of_parts_(waves.system(), parts_, slices != nullptr ? passive_.size() : 1, slices) {
  if (slices_ != nullptr && guarded) prepared_.resize(passive_.size());
}

void IslandAccounts::begin(int island, const Start& start) {
  for (int c = 0; c < kColumns; ++c) at(static_cast<Column>(c), island) = 0.0;
  const double wanted = options_.initial_J.value_or(start.waves_J) +
                        options_.initial_fraction * std::max(start.stored_J, 0.0);
  const double tank = std::min(wanted, options_.cap_J);
  at(kTank, island) = at(kTankAtStart, island) = tank;
  at(kSize, island) = tank + start.size_J;
  at(kStart, island) = at(kStored, island) = at(kMaxStored, island) = start.stored_J;
  const double energy = start.stored_J + tank;
  // Without energy at the start there is no ratio.
  const double per_energy = energy > 0.0 ? 1.0 / energy : kNoRatio;
  at(kPerInitialEnergy, island) = per_energy;
  at(kMaxRatio, island) = std::max(energy > 0.0 ? -kInfinite : kNoRatio,
                                   (start.stored_J + std::max(tank, 0.0)) * per_energy);
  at(kMaxResidual, island) = -kInfinite;
  const auto i = static_cast<std::size_t>(island);
  passive_[i] = start.is_passive ? 1 : 0;
  closed_[i] = 0;
  findings_[i] = {};
}

void IslandAccounts::set_sums(int island, const LedgerTotals& sums) {
  at(kChange, island) = sums.change;
  at(kSupply, island) = sums.supply;
  at(kDissipated, island) = sums.dissipated;
  at(kMismatch, island) = sums.mismatch;
  at(kTolerance, island) = sums.tolerance;
  at(kLargestResidual, island) = sums.largest_residual;
  at(kLargestExcess, island) = sums.largest_excess;
}

void IslandAccounts::direct(IslandSumsTask& task) {
  task.change = column(kChange);
  task.supply = column(kSupply);
  task.dissipated = column(kDissipated);
  task.mismatch = column(kMismatch);
  task.tolerance = column(kTolerance);
  task.largest_residual = column(kLargestResidual);
  task.largest_excess = column(kLargestExcess);
}

int IslandAccounts::first_non_finite() const {
  return with_columns([this](const auto& columns) {
    for (int i = 0; i < columns.islands; ++i) {
      const IslandAccount own = columns.account(i);
      // 0 times anything finite is 0.
      const bool is_finite =
          0.0 * own.change + 0.0 * own.supply + 0.0 * own.mismatch + 0.0 * own.dissipated == 0.0;
      if (!is_finite && is_open(i)) return i;
    }
    return -1;
  });
}

double IslandAccounts::total(Column c) const {
  const double* const values = column(c);
  if (islands_ == 1) return values[0];
  double p[8] = {};
  for (int i = 0; i < islands_; ++i) p[i % 8] += values[i];
  return ((p[0] + p[4]) + (p[2] + p[6])) + ((p[1] + p[5]) + (p[3] + p[7]));
}

StepLedger IslandAccounts::sum_of_step() const {
  StepLedger out;
  if (islands_ == 1) {
    const IslandAccount only = AccountColumns<true>{columns_.data(), 1}.account(0);
    out.stored_J = only.stored.value();
    out.changed_J = only.change;
    out.supplied_J = only.supply;
    out.dissipated_J = only.dissipated;
    out.mismatch_J = only.mismatch;
    out.tank_J = only.tank.value();
    out.max_passivity_residual_J = only.largest_residual;
    return out;
  }
  out.changed_J = total(kChange);
  out.supplied_J = total(kSupply);
  out.dissipated_J = total(kDissipated);
  out.mismatch_J = total(kMismatch);
  out.max_passivity_residual_J = at(kLargestResidual, 0);
  for (int i = 1; i < islands_; ++i) {
    out.max_passivity_residual_J =
        larger_or_nan(out.max_passivity_residual_J, at(kLargestResidual, i));
  }
  return out;
}

bool IslandAccounts::is_any_beyond() const {
  return with_columns([this](const auto& columns) {
    for (int i = 0; i < columns.islands; ++i) {
      if (!(columns.at(IslandAccount::kLargestExcess, i) <= 0.0) && is_open(i)) return true;
    }
    return false;
  });
}

// Rounding of states, and emission of sources.

double IslandAccounts::state_rounding(int part, const CommittedStep& step) const {
  need_states_();
  return rounding_.of_states(part, step, tolerance_[waves_.slot(part).entry]);
}

/// Finds the roundings of all `islands` at once.
void IslandAccounts::find_state_roundings(std::span<const int> islands,
                                          const CommittedStep& step) const {
  need_states_();
  // If nothing cancels, the rounding of states is within the allowance already.
  constexpr double kUsual = 1000.0 * kEpsilon;
  const bool is_many =
      islands.size() > 1 || std::ssize(parts_.parts_of(islands.front())) >= kManyParts;
  // Parts of small islands lie beside those of other islands.
  StepRounding::Beside beside;
  StepRounding::Beside* const used = is_many ? &beside : nullptr;
  sums_of_parts_.find_in_order(islands, [&](ExtendedSums::Terms& sums, int part) {
    const double tolerance = tolerance_[waves_.slot(part).entry];
    const double own = rounding_.of_states(part, step, tolerance, used);
    // The sum of a chunk in double precision, as accounts keep it.
    if (own > kUsual * (kTermsPerTolerance * tolerance)) {
      sums[0] = static_cast<double>(sums[0]) + own;
    }
    sums[1] = static_cast<double>(sums[1]) + own;
  });
}

IslandAccounts::StateRoundings IslandAccounts::found_roundings(std::size_t i) const {
  const ExtendedSums::Terms& sums = sums_of_parts_.of(i);
  return {static_cast<double>(sums[0]), static_cast<double>(sums[1])};
}

IslandAccounts::StateRoundings IslandAccounts::state_roundings(int island,
                                                               const CommittedStep& step) const {
  if (slices_ != nullptr) return prepared_[static_cast<std::size_t>(island)];
  find_state_roundings(std::span(&island, 1), step);
  return found_roundings(0);
}

/// With slices: prepares the results for later requests.
void IslandAccounts::prepare_state_roundings(std::span<const int> islands,
                                             const CommittedStep& step) const {
  if (islands.empty()) return;
  find_state_roundings(islands, step);
  for (std::size_t k = 0; k < islands.size(); ++k) {
    prepared_[static_cast<std::size_t>(islands[k])] = found_roundings(k);
  }
}

/// An upper bound of state_roundings(…).beyond_usual.
double IslandAccounts::bound_of_states(int island, const CommittedStep& step) const {
  std::atomic<bool> is_unknown = false;  // of one part: the others need not be looked at
  sums_of_parts_.find_chunks(
      std::span(&island, 1), [&](ExtendedSums::Terms& sum, std::span<const int> parts) {
        const bool ends = is_unknown.load(std::memory_order_relaxed);
        const double own = ends ? kInfinite : rounding_.bound_of_states(parts, step);
        if (std::isinf(own)) {
          is_unknown.store(true, std::memory_order_relaxed);
        }
        sum[0] = own;
      });
  return static_cast<double>(sums_of_parts_.of(0)[0]);
}

/// Records the energy that the sources of an island send by themselves, if it exceeds the largest so far.
void IslandAccounts::look_at_sources(int island, const CommittedStep& step) const {
  if (step.record == nullptr) return;
  need_states_();
  const double sent = static_cast<double>(
      sums_of_parts_.find_in_order(island, [&](ExtendedSums::Terms& sum, int part) {
        sum[0] += rounding_.sent_by_itself(part, step);
      })[0]);
  at(kSent, island) = std::max(at(kSent, island), sent);
}

// The interface for the guard.

double IslandAccounts::energies(int island) const { return account(island).energies(); }

double IslandAccounts::prospect(int island) const { return account(island).prospect(task_.rules); }

bool IslandAccounts::may_overdraw() const {
  return with_columns([this](const auto& columns) {
    bool found = false;
    for (int i = 0; i < columns.islands; ++i) {
      const IslandAccount own = columns.account(i);
      const bool is_low = own.tank.value() + own.mismatch < 0.0;
      const bool is_loud = own.rounding_of_step() > kPayable * own.energies();
      found = found || ((is_low || is_loud) && is_open(i));
    }
    return found;
  });
}

void IslandAccounts::prepare(const CommittedStep& step) const {
  if (slices_ == nullptr) return;
  std::vector<int> asked;
  for (int island = 0; island < islands_; ++island) {
    const IslandAccount own = account(island);
    if (own.is_short(task_.rules, own.allowance_of_tank())) asked.push_back(island);
  }
  prepare_state_roundings(asked, step);
}

bool IslandAccounts::overdraws(int island, const CommittedStep& step) const {
  if (!is_open(island)) return false;
  if (is_too_loud(island, step)) return true;
  const IslandAccount own = account(island);
  const double allowed = own.allowance_of_tank();
  if (!own.is_short(task_.rules, allowed)) return false;
  if (slices_ == nullptr) {
    need_states_();
    if (own.is_short(task_.rules, allowed + bound_of_states(island, step))) return true;
  }
  return own.is_short(task_.rules, allowed + state_roundings(island, step).beyond_usual);
}

bool IslandAccounts::is_too_loud(int island, const CommittedStep& step) const {
  if (!task_.rules.guarded || passive_[static_cast<std::size_t>(island)] == 0 || !is_open(island))
    return false;
  const double rounding = account(island).rounding_of_step();
  if (rounding <= kPayable * energies(island)) return false;
  look_at_sources(island, step);
  return rounding > kPayable * energies(island);
}

bool IslandAccounts::takes(int island, double deficit_J, const CommittedStep& step) const {
  // H⁺ ≤ H₀ + T₀ + supply without it: the energy that the interface took was lost in parts.
  const IslandAccount own = account(island);
  if (own.gained.value() + (own.change - own.supply) <= own.tank_at_start) return true;
  const double taken = own.tolerated + deficit_J;
  if (taken <= kTolerable * own.energies()) return true;
  look_at_sources(island, step);
  return taken <= kTolerable * energies(island);
}

// The judgement.

bool IslandAccounts::close(const CommittedStep& step, std::int64_t number,
                           std::span<const ToleratedDeficit> tolerated) {
  for (const ToleratedDeficit& own : tolerated) {
    at(kToleratedOfStep, own.island) = own.energy_J;
    at(kTolerated, own.island) += own.energy_J;
  }
  const bool is_news = islands_ == 1 ? close_only(step, number) : close_all(step, number);
  for (const ToleratedDeficit& own : tolerated) at(kToleratedOfStep, own.island) = 0.0;
  return is_news;
}

bool IslandAccounts::close_all(const CommittedStep& step, std::int64_t number) {
  kernels_->judge_islands(task_);
  const bool is_news = judge(step, number);
  kernels_->settle_islands(task_);
  return is_news;
}

/// Judges and settles the only island in registers. If there are remarks, or if the step before was not
/// judged, nothing has been written yet, and close_all does the whole work.
bool IslandAccounts::close_only(const CommittedStep& step, std::int64_t number) {
  if (unjudged_ > 0) return close_all(step, number);
  const AccountColumns<true> columns{columns_.data(), 1};
  const AccountRules rules = task_.rules;
  IslandAccount own = columns.account(0);
  own.take_step();
  if (own.remarks(rules) > 0.0) return close_all(step, number);
  own.settle(rules);
  columns.keep_step(0, own);
  columns.keep_settled(0, own);
  if (task_.totals) {
    own.add_to_totals();
    columns.keep_totals(0, own);
  }
  return false;
}

/// Examines the islands with remarks.
bool IslandAccounts::judge(const CommittedStep& step, std::int64_t number) {
  if (slices_ != nullptr && task_.rules.guarded) {
    std::vector<int> asked;
    for (int island = 0; island < islands_; ++island) {
      if (is_out(island)) asked.push_back(island);
    }
    prepare_state_roundings(asked, step);
  }
  bool is_news = unjudged_ > 0;
  unjudged_ = 0;
  for (int island = 0; island < islands_; ++island) {
    if (at(kRemarks, island) == 0.0 || !is_open(island)) continue;
    is_news = judge(island, step, number) || is_news;
  }
  return is_news || unjudged_ > 0;
}

/// Both laws of the guard, and whether H alone exceeds H₀ + T₀ + supply.
bool IslandAccounts::judge(int island, const CommittedStep& step, std::int64_t number) {
  LawFinding& finding = this->finding(island);
  bool is_news = false;
  if (task_.rules.guarded) {
    if (is_out(island)) at(kByStates, island) += state_roundings(island, step).all;
    if (!finding.broken_law) {
      const IslandAccount own = account(island);
      if (own.is_short(task_.rules, own.rounding())) {
        finding.broken_law = {BrokenLaw::Law::tank, island, number};
      } else if (!(own.excess_of_balance(task_.rules) <= own.allowance_of_balance())) {
        finding.broken_law = {BrokenLaw::Law::balance, island, number};
      }
      is_news = finding.broken_law.has_value();
    }
  }
  see_rounding(island, step);
  return see_growth(island, number) || is_news;
}

/// Whether a law of the guard fails unless the rounding of states explains it.
bool IslandAccounts::is_out(int island) const {
  const IslandAccount own = account(island);
  return own.is_short(task_.rules, own.rounding()) ||
         own.excess_of_balance(task_.rules) > own.allowance_of_balance();
}

bool IslandAccounts::is_judged(int island) const { return account(island).is_judged(); }

/// Counts the island if its account is not known well enough for a judgement.
void IslandAccounts::see_rounding(int island, const CommittedStep& step) {
  // As long as other energies are too small, the emission of sources is examined now and then.
  if (!is_judged(island) && rounding(island) > 2.0 * at(kLookedAt, island)) {
    at(kLookedAt, island) = rounding(island);
    look_at_sources(island, step);
  }
  if (!is_judged(island)) ++unjudged_;
}

bool IslandAccounts::see_growth(int island, std::int64_t number) {
  const IslandAccount own = account(island);
  const double beyond = own.growth();
  if (!(beyond > own.allowance_of_growth())) return false;
  LawFinding& finding = this->finding(island);
  if (finding.growth && beyond <= finding.growth->beyond_J) return false;
  const double start = at(kStart, island) + own.tank_at_start;
  finding.growth = EnergyGrowth{.island = island,
                                .step = number,
                                .beyond_J = beyond,
                                .ratio = start > 0.0 ? 1.0 + beyond / start : kInfinite};
  return true;
}

void IslandAccounts::revalue(int island, double more_J) {
  const AccountColumns<false> columns{columns_.data(), islands_};
  const auto add = [&](Column c) {
    CompensatedSum sum = columns.sum(c, island);
    sum.add(more_J);
    columns.set(c, island, sum);
  };
  add(kStored);
  add(kSupplied);
  at(kMaxStored, island) = std::max(at(kMaxStored, island), stored(island));
  at(kSize, island) += std::abs(more_J);
}

void IslandAccounts::add_impulse(int island, const ImpulseEnergies& energies) {
  const AccountColumns<false> columns{columns_.data(), islands_};
  const auto add = [&](Column c, double more_J) {
    CompensatedSum sum = columns.sum(c, island);
    sum.add(more_J);
    columns.set(c, island, sum);
  };
  add(kStored, energies.changed_J);
  add(kSupplied, energies.supplied_J);
  add(kImpact, energies.impact_J);
  add(kGained, -energies.impact_J);
  at(kMoved, island) += std::abs(energies.supplied_J);
}

void IslandAccounts::end_impulse() {
  for (int island = 0; island < islands_; ++island) {
    at(kMaxStored, island) = std::max(at(kMaxStored, island), stored(island));
  }
}

EnergyTotals IslandAccounts::totals(int island) const {
  return {.initial_J = at(kStart, island),
          .final_J = stored(island),
          .max_J = at(kMaxStored, island),
          .supplied_J = sum_at(kSupplied, island),
          .dissipated_J = sum_at(kDissipatedInAll, island),
          .mismatch_J = sum_at(kMismatched, island),
          .initial_tank_J = at(kTankAtStart, island),
          .tank_J = tank(island),
          .given_up_J = given_up(island),
          .tolerated_J = at(kTolerated, island),
          .metered_J = 0.0,
          .rounding_J = rounding(island),
          .impact_J = sum_at(kImpact, island),
          .max_energy_ratio = at(kMaxRatio, island)};
}

std::size_t IslandAccounts::bytes() const {
  return columns_.capacity() * sizeof(double) + passive_.capacity() + closed_.capacity() +
         findings_.capacity() * sizeof(LawFinding) + rounding_.bytes() + sums_of_parts_.bytes() +
         prepared_.capacity() * sizeof(StateRoundings);
}

void IslandAccounts::archive(StateArchive& archive) {
  archive.array(columns_);
  archive.values(unjudged_);
  for (LawFinding& own : findings_) {
    archive.values(own.worst_ratio, own.worst_part, own.worst_step, own.is_part_active,
                   own.broken_law, own.growth);
  }
}

}  // namespace portwave
