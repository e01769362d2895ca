#include "portwave/coupling/energy/island_ledger.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "energy/account_limits.hpp"
#include "energy/ledger_totals.hpp"
#include "energy/step_rounding.hpp"

namespace portwave {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr double kNoRatio = std::numeric_limits<double>::quiet_NaN();

}  // namespace

IslandLedger::~IslandLedger() = default;

IslandLedger::IslandLedger(const WaveDiscretisation& waves, const TankOptions& tank, bool guarded)
    : waves_(waves),
      parts_(waves.reduction()),
      kernels_(&ledger_kernels()),
      options_(tank),
      guarded_(guarded),
      islands_(at(waves.reduction().island_count())),
      passive_(islands_, 1),
      closed_(islands_, 0),
      findings_(islands_),
      kept_(islands_),
      rounding_of_(std::make_unique<StepRounding>(waves)),
      sums_of_parts_(waves.system(), parts_, 1, nullptr) {
  for (AlignedVector* own : {&change_of_, &supply_of_, &dissipated_of_, &storage_, &before_,
                             &residual_, &tolerance_of_, &mismatch_of_}) {
    own->assign(at(waves.entry_count()), 0.0);
  }
  for (AlignedVector* own : {&change_,
                             &supply_,
                             &dissipated_,
                             &mismatch_,
                             &tolerance_,
                             &largest_residual_,
                             &excess_,
                             &accepted_,
                             &remarkable_,
                             &stored_at_start_,
                             &tank_at_start_,
                             &size_,
                             &per_initial_energy_,
                             &gained_,
                             &gained_lost_,
                             &tank_,
                             &tank_lost_,
                             &stored_,
                             &stored_lost_,
                             &moved_,
                             &rounding_,
                             &by_states_,
                             &looked_at_,
                             &tolerated_,
                             &tolerated_of_step_,
                             &sent_,
                             &max_residual_,
                             &max_stored_,
                             &supplied_,
                             &supplied_lost_,
                             &dissipated_in_all_,
                             &dissipated_lost_,
                             &mismatched_,
                             &mismatched_lost_,
                             &given_up_,
                             &given_up_lost_,
                             &max_ratio_}) {
    own->assign(islands_, 0.0);
  }
  find_entries();
  for (int part = 0; part < parts_.part_count(); ++part) {
    if (!waves.system().parts()[at(part)].component->is_active()) continue;
    passive_[at(waves.system().island_of_part(part))] = 0;
  }
}

/// Where entries of the parts of an island lie at equal distances from those of the island before, and
/// all of them are one chunk.
void IslandLedger::find_entries() {
  const std::span<const int> first = parts_.entries_of(0);
  if (first.size() > PartOrderReduction::kChunk) return;
  first_.assign(first.begin(), first.end());
  step_.assign(first.size(), 1);
  for (int island = 1; island < static_cast<int>(islands_); ++island) {
    const std::span<const int> own = parts_.entries_of(island);
    for (std::size_t p = 0; p < first_.size(); ++p) {
      if (island == 1) step_[p] = own[p] - first_[p];
      if (own[p] == first_[p] + island * step_[p]) continue;
      first_.clear();
      return;
    }
  }
}

void IslandLedger::begin(const double* record, const double* b) {
  steps_ = 0;
  std::ranges::fill(closed_, 0);
  for (int part = 0; part < parts_.part_count(); ++part) {
    const PartSlot& slot = waves_.slot(part);
    before_[entry(part)] = rounding_of_->storage(part, record);
    double energy = 0.0;
    for (int j = 0; j < waves_.batch(slot.batch).batch->wave_size(); ++j) {
      const double wave = b[slot.wave + j * slot.stride];
      energy += 0.5 * wave * wave;
    }
    mismatch_of_[entry(part)] = energy;
  }
  for (AlignedVector* own :
       {&gained_, &gained_lost_, &tank_lost_, &stored_lost_, &moved_, &rounding_, &by_states_,
        &looked_at_, &tolerated_, &tolerated_of_step_, &sent_, &supplied_, &supplied_lost_,
        &dissipated_in_all_, &dissipated_lost_, &mismatched_, &mismatched_lost_, &given_up_,
        &given_up_lost_}) {
    std::ranges::fill(*own, 0.0);
  }
  for (int island = 0; island < static_cast<int>(islands_); ++island) {
    const std::size_t i = at(island);
    const double start = parts_.sum(island, before_.data());
    const double wanted = options_.initial_J.value_or(parts_.sum(island, mismatch_of_.data())) +
                          options_.initial_fraction * std::max(start, 0.0);
    tank_[i] = tank_at_start_[i] = std::min(wanted, options_.cap_J);
    size_[i] = parts_.fold(island, tank_[i],
                           [&](double& size, int part) { size += std::abs(before_[entry(part)]); });
    stored_[i] = stored_at_start_[i] = max_stored_[i] = start;
    const double energy = start + tank_[i];
    per_initial_energy_[i] = energy > 0.0 ? 1.0 / energy : kNoRatio;
    max_ratio_[i] = std::max(energy > 0.0 ? -kInfinite : kNoRatio,
                             (start + std::max(tank_[i], 0.0)) * per_initial_energy_[i]);
    max_residual_[i] = accepted_[i] = -kInfinite;
    findings_[i] = {};
    findings_[i].worst_ratio = -kInfinite;
    kept_[i].reset();
  }
}

EnergyColumns IslandLedger::columns() {
  return {change_of_.data(), supply_of_.data(), dissipated_of_.data()};
}

void IslandLedger::examine(const BatchSlot& slot, LaneRange lanes, const double* a,
                           const double* b) {
  const int entry = slot.entry;
  kernels_->account({lanes.first, lanes.last, slot.batch->wave_size(), slot.batch->stride(),
                     a + slot.wave, b + slot.wave, columns().from(entry), before_.data() + entry,
                     storage_.data() + entry, residual_.data() + entry,
                     tolerance_of_.data() + entry, mismatch_of_.data() + entry});
}

void IslandLedger::examine(const double* a, const double* b) {
  for (const BatchSlot& slot : waves_.batches()) examine(slot, slot.all(), a, b);
}

void IslandLedger::tally_again(int island, const CommittedStep& step) {
  for (const int part : parts_.parts_of(island)) {
    const PartSlot& slot = waves_.slot(part);
    examine(waves_.batch(slot.batch), {slot.lane, slot.lane + 1}, step.a, step.b);
  }
  sum_up(island);
  if (!(excess_[at(island)] <= 0.0) && refine(island, step)) sum_up(island);
}

void IslandLedger::sum_up() {
  IslandSumsTask task{.at = {static_cast<int>(islands_), static_cast<int>(first_.size()),
                             first_.data(), step_.data()},
                      .columns = {change_of_.data(), supply_of_.data(), dissipated_of_.data(),
                                  mismatch_of_.data(), residual_.data(), tolerance_of_.data(), 0.0},
                      .accepted = accepted_.data(),
                      .change = change_.data(),
                      .supply = supply_.data(),
                      .dissipated = dissipated_.data(),
                      .mismatch = mismatch_.data(),
                      .tolerance = tolerance_.data(),
                      .largest_residual = largest_residual_.data(),
                      .largest_excess = excess_.data()};
  if (!first_.empty()) return kernels_->island_sums(task);
  for (int island = 0; island < static_cast<int>(islands_); ++island) sum_up(island);
}

/// One island by itself.
void IslandLedger::sum_up(int island) {
  const std::size_t i = at(island);
  const LedgerColumns columns{change_of_.data(),   supply_of_.data(), dissipated_of_.data(),
                              mismatch_of_.data(), residual_.data(),  tolerance_of_.data(),
                              accepted_[i]};
  const auto [first, last] = parts_.chunks_of(island);
  const LedgerTotals own = PartOrderReduction::tree<LedgerTotals>(
      first, last,
      [&](int chunk) {
        LedgerTotals out;
        find_totals(parts_, chunk, *kernels_, columns, out);
        return out;
      },
      added);
  change_[i] = own.change;
  supply_[i] = own.supply;
  dissipated_[i] = own.dissipated;
  mismatch_[i] = own.mismatch;
  tolerance_[i] = own.tolerance;
  largest_residual_[i] = own.largest_residual;
  excess_[i] = own.largest_excess;
}

void IslandLedger::tally(const CommittedStep& step) {
  sum_up();
  for (int island = 0; island < static_cast<int>(islands_); ++island) {
    if (excess_[at(island)] <= 0.0 || closed_[at(island)] != 0) continue;
    if (refine(island, step)) sum_up(island);
  }
}

/// Forms H⁺ − H again where it does not balance; whether it did anywhere.
bool IslandLedger::refine(int island, const CommittedStep& step) {
  return parts_.fold(island, false, [&](bool& any, int part) {
    const std::size_t e = entry(part);
    if (std::abs(residual_[e] + dissipated_of_[e]) <= tolerance_of_[e]) return;
    const std::optional<double> change = rounding_of_->change(part, step);
    if (!change) return;
    residual_[e] += *change - change_of_[e];
    storage_[e] = before_[e] + *change;
    change_of_[e] = *change;
    any = true;
  });
}

int IslandLedger::first_non_finite() const {
  for (std::size_t i = 0; i < islands_; ++i) {
    // 0 times anything finite is 0.
    if (closed_[i] == 0 &&
        !(0.0 * change_[i] + 0.0 * supply_[i] + 0.0 * mismatch_[i] + 0.0 * dissipated_[i] == 0.0)) {
      return static_cast<int>(i);
    }
  }
  return -1;
}

int IslandLedger::part_to_blame(int island) const {
  const std::span<const int> parts = parts_.parts_of(island);
  int largest = parts.front();
  for (const int part : parts) {
    const std::size_t e = entry(part);
    if (!std::isfinite(change_of_[e]) || !std::isfinite(supply_of_[e]) ||
        !std::isfinite(mismatch_of_[e]) || !std::isfinite(dissipated_of_[e])) {
      return part;
    }
    if (storage_[e] > storage_[entry(largest)]) largest = part;
  }
  return largest;
}

double IslandLedger::prospect(int island) const {
  const std::size_t i = at(island);
  return std::min(tank(island) + mismatch_[i] + tolerated_of_step_[i], options_.cap_J);
}

double IslandLedger::rounding_of_step(int island) const {
  return rounding_of_terms(tolerance_[at(island)]);
}

double IslandLedger::measure_of(int island) const {
  return size_[at(island)] + moved_[at(island)] + sent_[at(island)];
}

double IslandLedger::energies(int island) const {
  return measure_of(island) + std::abs(supply_[at(island)]);
}

bool IslandLedger::takes(int island, double deficit_J, const CommittedStep& step) const {
  const std::size_t i = at(island);
  const double gained = (gained_[i] + gained_lost_[i]) + (change_[i] - supply_[i]);
  if (gained <= tank_at_start_[i]) return true;
  const double taken = tolerated_[i] + deficit_J;
  if (taken <= kTolerable * energies(island)) return true;
  look_at_sources(island, step);
  return taken <= kTolerable * energies(island);
}

double IslandLedger::stored(int island) const {
  return std::abs(stored_[at(island)] + stored_lost_[at(island)]);
}

double IslandLedger::supplied(int island) const { return std::abs(supply_[at(island)]); }

/// As in EnergyLedger.
void IslandLedger::look_at_sources(int island, const CommittedStep& step) const {
  if (step.record == nullptr) return;
  const double sent = static_cast<double>(
      sums_of_parts_.find_in_order(island, [&](ExtendedSums::Terms& sum, int part) {
        sum[0] += rounding_of_->sent_by_itself(part, step.record);
      })[0]);
  sent_[at(island)] = std::max(sent_[at(island)], sent);
}

bool IslandLedger::is_too_loud(int island, const CommittedStep& step) const {
  if (!guarded_ || passive_[at(island)] == 0 || closed_[at(island)] != 0) return false;
  const double rounding = rounding_of_step(island);
  if (rounding <= kPayable * energies(island)) return false;
  look_at_sources(island, step);
  return rounding > kPayable * energies(island);
}

bool IslandLedger::may_overdraw() const {
  bool found = false;
  for (std::size_t i = 0; i < islands_; ++i) {
    const bool is_short = mismatch_[i] < 0.0 && (tank_[i] + tank_lost_[i]) + mismatch_[i] < 0.0;
    const bool is_loud = rounding_of_terms(tolerance_[i]) >
                         kPayable * (size_[i] + moved_[i] + sent_[i] + std::abs(supply_[i]));
    found = found || ((is_short || is_loud) && closed_[i] == 0);
  }
  return found;
}

bool IslandLedger::overdraws(int island, const CommittedStep& step) const {
  const std::size_t i = at(island);
  if (is_too_loud(island, step)) return true;
  const double after = prospect(island);
  // A step that adds to the tank takes nothing from it, whatever round-off has left there.
  if (after >= 0.0 || mismatch_[i] >= 0.0 || closed_[i] != 0) return false;
  double allowed = rounding(island);
  if (after >= -allowed) return false;
  allowed += rounding_of_step(island);
  if (after >= -allowed) return false;
  // Where nothing cancels, what states round off is within what is allowed already.
  constexpr double kUsual = 1000.0 * kEpsilon;
  const auto sums = sums_of_parts_.find_in_order(island, [&](ExtendedSums::Terms& sum, int part) {
    const double tolerance = tolerance_of_[entry(part)];
    const double of_states = rounding_of_->of_states(part, step, tolerance);
    if (of_states > kUsual * (kTermsPerTolerance * tolerance)) {
      sum[0] = static_cast<double>(sum[0]) + of_states;
    }
  });
  return after < -(allowed + static_cast<double>(sums[0]));
}

void IslandLedger::close(const CommittedStep& step, std::span<const ToleratedDeficit> tolerated) {
  for (const ToleratedDeficit& own : tolerated) {
    tolerated_of_step_[at(own.island)] = own.energy_J;
    tolerated_[at(own.island)] += own.energy_J;
  }
  for (int island = 0; island < static_cast<int>(islands_); ++island) {
    if (excess_[at(island)] <= 0.0 || closed_[at(island)] != 0) continue;
    judge_passivity(island, step);
  }
  const IslandAccountsTask task{
      .islands = static_cast<int>(islands_),
      .guarded = guarded_,
      .cap = options_.cap_J,
      .limits = {.terms_per_tolerance = kTermsPerTolerance,
                 .rounding_per_joule = kRoundingPerJoule,
                 .underflow_of_step_J = kUnderflowOfStep_J,
                 .underflow_J = kUnderflow_J,
                 .of_the_start = kOfTheStart,
                 .known = kKnown},
      .change = change_.data(),
      .supply = supply_.data(),
      .dissipated = dissipated_.data(),
      .mismatch = mismatch_.data(),
      .tolerance = tolerance_.data(),
      .largest_residual = largest_residual_.data(),
      .tank_at_start = tank_at_start_.data(),
      .size = size_.data(),
      .per_initial_energy = per_initial_energy_.data(),
      .gained = {gained_.data(), gained_lost_.data()},
      .tank = {tank_.data(), tank_lost_.data()},
      .stored = {stored_.data(), stored_lost_.data()},
      .moved = moved_.data(),
      .rounding = rounding_.data(),
      .by_states = by_states_.data(),
      .sent = sent_.data(),
      .tolerated = tolerated_.data(),
      .tolerated_of_step = tolerated_of_step_.data(),
      .max_residual = max_residual_.data(),
      .max_stored = max_stored_.data(),
      .supplied = {supplied_.data(), supplied_lost_.data()},
      .dissipated_in_all = {dissipated_in_all_.data(), dissipated_lost_.data()},
      .mismatched = {mismatched_.data(), mismatched_lost_.data()},
      .given_up = {given_up_.data(), given_up_lost_.data()},
      .max_ratio = max_ratio_.data(),
      .remarkable = remarkable_.data()};
  kernels_->judge_islands(task);
  for (int island = 0; island < static_cast<int>(islands_); ++island) {
    if (remarkable_[at(island)] == 0.0 || closed_[at(island)] != 0) continue;
    judge_account(island, step);
  }
  kernels_->settle_islands(task);
  for (const ToleratedDeficit& own : tolerated) tolerated_of_step_[at(own.island)] = 0.0;
  std::swap(storage_, before_);
  ++steps_;
}

void IslandLedger::judge_passivity(int island, const CommittedStep& step) {
  struct Worst {
    double measure = -kInfinite;
    int part = -1;
    bool is_nan = false;
  };
  Finding& finding = findings_[at(island)];
  const Worst worst = parts_.fold(island, Worst{}, [&](Worst& so_far, int part) {
    if (so_far.is_nan) return;
    const std::size_t e = entry(part);
    const double own = residual_[e];
    // What does not balance counts for where it is worst; only energy from nowhere is a violation.
    const double defect = std::max(own, std::abs(own + dissipated_of_[e]));
    double limit = std::max(tolerance_of_[e], kUnderflow_J);
    if (defect > limit) limit += rounding_of_->of_states(part, step, tolerance_of_[e]);
    finding.violated = finding.violated || own > limit || std::isnan(own);
    const double measure = defect / limit;
    if (measure > so_far.measure || std::isnan(own)) so_far = {measure, part, std::isnan(own)};
  });
  if (worst.measure <= finding.worst_ratio) return;
  finding.worst_ratio = worst.measure;
  finding.worst_step = steps_;
  finding.worst_part = worst.part - parts_.parts_of(island).front();
  accepted_[at(island)] = std::min(finding.worst_ratio, 1.0);
}

/// Both laws of the guard, and whether H alone exceeds H₀ + T₀ + supply, as in EnergyLedger.
void IslandLedger::judge_account(int island, const CommittedStep& step) {
  const std::size_t i = at(island);
  Finding& finding = findings_[i];
  const double gained = gained_[i] + gained_lost_[i];
  if (guarded_) {
    const double after = prospect(island);
    const double excess = gained + (after - tank_at_start_[i]) - tolerated_[i];
    const auto is_overdrawn = [&] { return mismatch_[i] < 0.0 && after < -rounding(island); };
    const auto allowance = [&] { return kOfTheStart * size_[i] + rounding(island); };
    if (is_overdrawn() || excess > allowance()) {
      const auto sums =
          sums_of_parts_.find_in_order(island, [&](ExtendedSums::Terms& sum, int part) {
            const double own = rounding_of_->of_states(part, step, tolerance_of_[entry(part)]);
            sum[0] = static_cast<double>(sum[0]) + own;
          });
      by_states_[i] += static_cast<double>(sums[0]);
    }
    if (!finding.broken_law) {
      if (is_overdrawn()) {
        finding.broken_law = {BrokenLaw::Law::tank, 0, steps_};
      } else if (!(excess <= allowance())) {
        finding.broken_law = {BrokenLaw::Law::balance, 0, steps_};
      }
    }
  }
  see_rounding(island, step);
  const double beyond = gained - tank_at_start_[i] - tolerated_[i];
  double by_waves = 2.0 * rounding_[i];
  if (size_[i] > 0.0) by_waves = std::min(by_waves, kKnown * measure_of(island) + kUnderflow_J);
  if (!(beyond > kOfTheStart * size_[i] + by_waves + 2.0 * by_states_[i])) return;
  if (finding.growth && beyond <= finding.growth->beyond_J) return;
  const double start = stored_at_start_[i] + tank_at_start_[i];
  finding.growth = EnergyGrowth{.island = 0,
                                .step = steps_,
                                .beyond_J = beyond,
                                .ratio = start > 0.0 ? 1.0 + beyond / start : kInfinite};
}

/// As in EnergyLedger.
void IslandLedger::see_rounding(int island, const CommittedStep& step) {
  const auto is_known = [&] {
    return rounding(island) <= kKnown * measure_of(island) + kUnderflow_J;
  };
  if (is_known() || !(rounding(island) > 2.0 * looked_at_[at(island)])) return;
  looked_at_[at(island)] = rounding(island);
  look_at_sources(island, step);
}

void IslandLedger::close_island(int island) {
  if (closed_[at(island)] != 0) return;
  kept_[at(island)] = std::make_unique<Closed>(Closed{totals(island), certificate(island)});
  closed_[at(island)] = 1;
}

EnergyTotals IslandLedger::totals(int island) const {
  const std::size_t i = at(island);
  if (kept_[i] != nullptr) return kept_[i]->totals;
  return {.initial_J = stored_at_start_[i],
          .final_J = stored_[i] + stored_lost_[i],
          .max_J = max_stored_[i],
          .supplied_J = supplied_[i] + supplied_lost_[i],
          .dissipated_J = dissipated_in_all_[i] + dissipated_lost_[i],
          .mismatch_J = mismatched_[i] + mismatched_lost_[i],
          .initial_tank_J = tank_at_start_[i],
          .tank_J = tank(island),
          .given_up_J = given_up_[i] + given_up_lost_[i],
          .tolerated_J = tolerated_[i],
          .metered_J = 0.0,
          .rounding_J = rounding(island),
          .max_energy_ratio = max_ratio_[i]};
}

Certificate IslandLedger::certificate(int island) const {
  const std::size_t i = at(island);
  if (kept_[i] != nullptr) return kept_[i]->certificate;
  const Finding& finding = findings_[i];
  Certificate out;
  const bool is_known = rounding(island) <= kKnown * measure_of(island) + kUnderflow_J;
  if (finding.growth || !is_known) out.status = CertificateStatus::conditional;
  out.uncomputable_islands = is_known ? 0 : 1;
  if (finding.violated || finding.broken_law) out.status = CertificateStatus::violated;
  out.max_passivity_residual_J = max_residual_[i];
  out.is_part_active = finding.violated;
  out.worst_passivity_part = finding.worst_part;
  out.worst_passivity_step = finding.worst_step;
  out.broken_law = finding.broken_law;
  out.growth = finding.growth;
  return out;
}

std::size_t IslandLedger::bytes() const {
  return (8 * before_.capacity() + 37 * tank_.capacity()) * sizeof(double) +
         2 * closed_.capacity() + findings_.capacity() * sizeof(Finding) +
         kept_.capacity() * sizeof(void*) + 2 * first_.capacity() * sizeof(int) +
         rounding_of_->bytes() + sums_of_parts_.bytes();
}

}  // namespace portwave
