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
      guarded_(guarded),
      totals_(totals),
      islands_(parts_.island_count()),
      columns_(static_cast<std::size_t>(kColumns * islands_), 0.0),
      task_(task()),
      passive_(static_cast<std::size_t>(islands_), 1),
      closed_(passive_.size(), 0),
      findings_(passive_.size()),
      rounding_(waves),
      sums_of_parts_(waves.system(), parts_, slices != nullptr ? passive_.size() : 1, slices) {
  if (slices_ != nullptr && guarded_) prepared_.resize(passive_.size());
}

IslandAccountsTask IslandAccounts::task() const {
  return {.islands = islands_,
          .guarded = guarded_,
          .totals = totals_,
          .cap = options_.cap_J,
          .limits = {.terms_per_tolerance = kTermsPerTolerance,
                     .rounding_per_joule = kRoundingPerJoule,
                     .underflow_of_step_J = kUnderflowOfStep_J,
                     .underflow_J = kUnderflow_J,
                     .of_the_start = kOfTheStart,
                     .known = kKnown},
          .change = column(kChange),
          .supply = column(kSupply),
          .dissipated = column(kDissipated),
          .mismatch = column(kMismatch),
          .tolerance = column(kTolerance),
          .largest_residual = column(kLargestResidual),
          .tank_at_start = column(kTankAtStart),
          .size = column(kSize),
          .per_initial_energy = column(kPerInitialEnergy),
          .gained = sum_columns(kGained),
          .tank = sum_columns(kTank),
          .stored = sum_columns(kStored),
          .moved = column(kMoved),
          .rounding = column(kRounding),
          .by_states = column(kByStates),
          .sent = column(kSent),
          .tolerated = column(kTolerated),
          .tolerated_of_step = column(kToleratedOfStep),
          .given_up = sum_columns(kGivenUp),
          .max_residual = column(kMaxResidual),
          .max_stored = column(kMaxStored),
          .supplied = sum_columns(kSupplied),
          .dissipated_in_all = sum_columns(kDissipatedInAll),
          .mismatched = sum_columns(kMismatched),
          .max_ratio = column(kMaxRatio),
          .remarkable = column(kRemarkable)};
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
  const double* const change = column(kChange);
  const double* const supply = column(kSupply);
  const double* const mismatch = column(kMismatch);
  const double* const dissipated = column(kDissipated);
  for (int i = 0; i < islands_; ++i) {
    // 0 times anything finite is 0.
    if (is_open(i) &&
        !(0.0 * change[i] + 0.0 * supply[i] + 0.0 * mismatch[i] + 0.0 * dissipated[i] == 0.0)) {
      return i;
    }
  }
  return -1;
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
    out.changed_J = change(0);
    out.supplied_J = supply(0);
    out.dissipated_J = at(kDissipated, 0);
    out.mismatch_J = mismatch(0);
    out.max_passivity_residual_J = at(kLargestResidual, 0);
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
  for (int i = 0; i < islands_; ++i) {
    if (!(at(kLargestExcess, i) <= 0.0) && is_open(i)) return true;
  }
  return false;
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
        sum[0] += rounding_.sent_by_itself(part, step.record);
      })[0]);
  at(kSent, island) = std::max(at(kSent, island), sent);
}

// Limits.

/// Bound on the rounding in the account of an island in this step, according to waves and energies.
double IslandAccounts::rounding_of_step(int island) const {
  return rounding_of_terms(at(kTolerance, island));
}

double IslandAccounts::measure_of(int island) const {
  return at(kSize, island) + at(kMoved, island) + at(kSent, island);
}

double IslandAccounts::energies(int island) const {
  return measure_of(island) + std::abs(supply(island));
}

double IslandAccounts::prospect(int island) const {
  return std::min(tank(island) + mismatch(island) + at(kToleratedOfStep, island), options_.cap_J);
}

bool IslandAccounts::is_short(int island, double allowed) const {
  // A step that adds to the tank takes nothing from it, whatever round-off has left there.
  return mismatch(island) < 0.0 && prospect(island) < -allowed;
}

/// H + T − (H₀ + T₀ + supply + tolerated), this step included.
double IslandAccounts::excess_of_balance(int island) const {
  return sum_at(kGained, island) + (prospect(island) - at(kTankAtStart, island)) -
         at(kTolerated, island);
}

double IslandAccounts::allowance_of_balance(int island) const {
  return kOfTheStart * at(kSize, island) + rounding(island);
}

/// Whether a law fails unless the rounding of states explains it.
bool IslandAccounts::is_out(int island) const {
  return is_short(island, rounding(island)) ||
         excess_of_balance(island) > allowance_of_balance(island);
}

bool IslandAccounts::is_judged(int island) const {
  return rounding(island) <= kKnown * measure_of(island) + kUnderflow_J;
}

// The interface for the guard.

bool IslandAccounts::may_overdraw() const {
  bool found = false;
  for (int i = 0; i < islands_; ++i) {
    const bool is_low = tank(i) + mismatch(i) < 0.0;
    const bool is_loud = rounding_of_step(i) > kPayable * energies(i);
    found = found || ((is_low || is_loud) && is_open(i));
  }
  return found;
}

void IslandAccounts::prepare(const CommittedStep& step) const {
  if (slices_ == nullptr) return;
  std::vector<int> asked;
  for (int island = 0; island < islands_; ++island) {
    if (is_short(island, allowance_of_tank(island))) asked.push_back(island);
  }
  prepare_state_roundings(asked, step);
}

bool IslandAccounts::overdraws(int island, const CommittedStep& step) const {
  if (!is_open(island)) return false;
  if (is_too_loud(island, step)) return true;
  if (!is_short(island, rounding(island))) return false;
  const double allowed = allowance_of_tank(island);
  if (!is_short(island, allowed)) return false;
  if (slices_ == nullptr) {
    need_states_();
    if (is_short(island, allowed + bound_of_states(island, step))) return true;
  }
  return is_short(island, allowed + state_roundings(island, step).beyond_usual);
}

bool IslandAccounts::is_too_loud(int island, const CommittedStep& step) const {
  if (!guarded_ || passive_[static_cast<std::size_t>(island)] == 0 || !is_open(island))
    return false;
  const double rounding = rounding_of_step(island);
  if (rounding <= kPayable * energies(island)) return false;
  look_at_sources(island, step);
  return rounding > kPayable * energies(island);
}

bool IslandAccounts::takes(int island, double deficit_J, const CommittedStep& step) const {
  // H⁺ ≤ H₀ + T₀ + supply without it: the energy that the interface took was lost in parts.
  const double gained = sum_at(kGained, island) + (change(island) - supply(island));
  if (gained <= at(kTankAtStart, island)) return true;
  const double taken = at(kTolerated, island) + deficit_J;
  if (taken <= kTolerable * energies(island)) return true;
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
  kernels_->judge_islands(task_);
  if (slices_ != nullptr && guarded_) {
    std::vector<int> asked;
    for (int island = 0; island < islands_; ++island) {
      if (is_out(island)) asked.push_back(island);
    }
    prepare_state_roundings(asked, step);
  }
  bool is_news = unjudged_ > 0;
  unjudged_ = 0;
  for (int island = 0; island < islands_; ++island) {
    if (at(kRemarkable, island) == 0.0 || !is_open(island)) continue;
    is_news = judge(island, step, number) || is_news;
  }
  kernels_->settle_islands(task_);
  for (const ToleratedDeficit& own : tolerated) at(kToleratedOfStep, own.island) = 0.0;
  return is_news || unjudged_ > 0;
}

/// Both laws of the guard, and whether H alone exceeds H₀ + T₀ + supply.
bool IslandAccounts::judge(int island, const CommittedStep& step, std::int64_t number) {
  LawFinding& own = finding(island);
  bool is_news = false;
  if (guarded_) {
    if (is_out(island)) at(kByStates, island) += state_roundings(island, step).all;
    if (!own.broken_law) {
      if (is_short(island, rounding(island))) {
        own.broken_law = {BrokenLaw::Law::tank, island, number};
      } else if (!(excess_of_balance(island) <= allowance_of_balance(island))) {
        own.broken_law = {BrokenLaw::Law::balance, island, number};
      }
      is_news = own.broken_law.has_value();
    }
  }
  see_rounding(island, step);
  return see_growth(island, number) || is_news;
}

/// Whether the account is known well enough for a judgement.
void IslandAccounts::see_rounding(int island, const CommittedStep& step) {
  // The emission of sources is examined now and then, for as long as there is nothing else.
  if (!is_judged(island) && rounding(island) > 2.0 * at(kLookedAt, island)) {
    at(kLookedAt, island) = rounding(island);
    look_at_sources(island, step);
  }
  if (!is_judged(island)) ++unjudged_;
}

bool IslandAccounts::see_growth(int island, std::int64_t number) {
  const double size = at(kSize, island);
  const double beyond = sum_at(kGained, island) - at(kTankAtStart, island) - at(kTolerated, island);
  // T may be below zero by the tolerance of the second law. Large waves are no excuse if there was energy at
  // the start to measure them by.
  double by_waves = 2.0 * at(kRounding, island);
  if (size > 0.0) by_waves = std::min(by_waves, kKnown * measure_of(island) + kUnderflow_J);
  if (!(beyond > kOfTheStart * size + by_waves + 2.0 * at(kByStates, island))) return false;
  LawFinding& own = finding(island);
  if (own.growth && beyond <= own.growth->beyond_J) return false;
  const double start = at(kStart, island) + at(kTankAtStart, island);
  own.growth = EnergyGrowth{.island = island,
                            .step = number,
                            .beyond_J = beyond,
                            .ratio = start > 0.0 ? 1.0 + beyond / start : kInfinite};
  return true;
}

void IslandAccounts::revalue(int island, double more_J) {
  const auto add = [&](Column c) {
    CompensatedSum sum = CompensatedSum::resumed(at(c, island), column(c)[islands_ + island]);
    sum.add(more_J);
    at(c, island) = sum.sum();
    column(c)[islands_ + island] = sum.lost();
  };
  add(kStored);
  add(kSupplied);
  at(kMaxStored, island) = std::max(at(kMaxStored, island), stored(island));
  at(kSize, island) += std::abs(more_J);
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
