#pragma once

#include <cstddef>

#include "energy/account_limits.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"

namespace portwave {

/// The rules for the accounts of all islands.
struct AccountRules {
  bool guarded = false;  ///< the two laws of the guard are checked
  double cap_J = 0.0;    ///< of tanks
};

/// The energy account of one island [J], and the laws by which it is judged (IslandAccounts). The laws are
/// written once, here, for a single island and for the kernels that judge many side by side. Kernels compile
/// them for every instruction set; therefore every function is inlined, and makes choices without branches.
struct IslandAccount {
  // The step, as in LedgerTotals.
  double change, supply, dissipated, mismatch, tolerance, largest_residual;
  double tolerated_of_step;
  // The start.
  double tank_at_start;
  double size;  ///< Σ|Hᵢ| + T₀
  double per_initial_energy;
  // The run.
  CompensatedSum gained;  ///< Σ (H⁺ − H − supply)
  CompensatedSum tank, stored, supplied, dissipated_in_all, mismatched, given_up;
  double moved;      ///< Σ |supply|
  double by_waves;   ///< bound on the rounding in these sums that is due to energies and waves
  double by_states;  ///< the same due to states, in the steps in which it was examined
  double sent;       ///< largest energy of a step that sources were found to emit by themselves
  double tolerated;  ///< Σ tolerated_of_step, this step included
  double max_residual, max_stored, max_ratio;

  // Rounding.
  [[gnu::always_inline]] double rounding_of_step() const {
    return kRoundingPerJoule * (kTermsPerTolerance * tolerance) + kUnderflowOfStep_J;
  }
  [[gnu::always_inline]] double rounding() const { return by_waves + by_states; }

  // Energy available.
  [[gnu::always_inline]] double measure() const { return size + moved + sent; }
  [[gnu::always_inline]] double energies() const { return measure() + __builtin_fabs(supply); }
  /// T after the step.
  [[gnu::always_inline]] double prospect(const AccountRules& rules) const {
    const double filled = tank.value() + mismatch + tolerated_of_step;
    return rules.cap_J < filled ? rules.cap_J : filled;
  }

  // T ≥ 0.
  /// Whether the step leaves the tank below zero by more than `allowed` ≥ 0. A step that adds to the tank
  /// never does, whatever round-off has left there.
  [[gnu::always_inline]] bool is_short(const AccountRules& rules, double allowed) const {
    const double after = prospect(rules);
    return (mismatch < 0.0 ? after : 0.0) < -allowed;
  }

  /// The allowance for a step that is not in the account yet.
  [[gnu::always_inline]] double allowance_of_tank() const {
    return rounding() + rounding_of_step();
  }

  // H + T ≤ H₀ + T₀ + supply + tolerated.
  /// H + T − (H₀ + T₀ + supply + tolerated), this step included.
  [[gnu::always_inline]] double excess_of_balance(const AccountRules& rules) const {
    return gained.value() + (prospect(rules) - tank_at_start) - tolerated;
  }
  [[gnu::always_inline]] double allowance_of_balance() const {
    return kOfTheStart * size + rounding();
  }

  // H ≤ H₀ + T₀ + supply + tolerated.
  [[gnu::always_inline]] double growth() const {
    return gained.value() - tank_at_start - tolerated;
  }
  /// T may be below zero by the allowance of the second law. If there was energy at the start, the rounding
  /// of waves counts up to `largest_known` only: then large waves are no excuse.
  [[gnu::always_inline]] double allowance_of_growth() const {
    const double known = largest_known(), twice = 2.0 * by_waves;
    return kOfTheStart * size + (size > 0.0 && known < twice ? known : twice) + 2.0 * by_states;
  }

  // Whether the rounding in the account is small enough for a judgement.
  [[gnu::always_inline]] double largest_known() const { return kKnown * measure() + kUnderflow_J; }
  [[gnu::always_inline]] bool is_judged() const { return rounding() <= largest_known(); }

  // The step.
  [[gnu::always_inline]] void take_step() {
    gained.add(change - supply);
    moved += __builtin_fabs(supply);
    by_waves += rounding_of_step();
  }
  /// After `take_step`: the number of laws that need a closer look.
  [[gnu::always_inline]] double remarks(const AccountRules& rules) const {
    double found = growth() <= allowance_of_growth() ? 0.0 : 1.0;
    found += is_judged() ? 0.0 : 1.0;
    if (rules.guarded) {
      found += excess_of_balance(rules) <= allowance_of_balance() ? 0.0 : 1.0;
      found += is_short(rules, rounding()) ? 1.0 : 0.0;
    }
    return found;
  }
  /// Called once the step is judged: adds it to the tank and to the stored energy.
  [[gnu::always_inline]] void settle(const AccountRules& rules) {
    tank.add(mismatch);
    // Adding 0 changes nothing.
    tank.add(tolerated_of_step);
    const double full = tank.value();
    const bool is_over = full > rules.cap_J;
    given_up.add(is_over ? full - rules.cap_J : 0.0);
    tank = CompensatedSum::resumed(is_over ? rules.cap_J : tank.sum(), is_over ? 0.0 : tank.lost());
    stored.add(change);
  }
  /// After `settle`: the totals of the run.
  [[gnu::always_inline]] void add_to_totals() {
    supplied.add(supply);
    dissipated_in_all.add(dissipated);
    mismatched.add(mismatch);
    const double energy = stored.value(), held = tank.value();
    max_stored = larger(max_stored, energy);
    max_residual = larger(max_residual, largest_residual);
    const double reserve = held < 0.0 ? 0.0 : held;
    max_ratio = larger(max_ratio, (energy + reserve - supplied.value()) * per_initial_energy);
  }

  /// The numbers of an account.
  enum Column {
    // Of the step, in the order of LedgerTotals.
    kChange,
    kSupply,
    kDissipated,
    kMismatch,
    kTolerance,
    kLargestResidual,
    kLargestExcess,
    kToleratedOfStep,
    kRemarks,
    // Of the start.
    kStart,
    kTankAtStart,
    kSize,
    kPerInitialEnergy,
    // Of the run. A sum takes two columns: its value, and the error of its additions.
    kGained,
    kGainedLost,
    kTank,
    kTankLost,
    kStored,
    kStoredLost,
    kSupplied,
    kSuppliedLost,
    kDissipatedInAll,
    kDissipatedLost,
    kMismatched,
    kMismatchedLost,
    kGivenUp,
    kGivenUpLost,
    kMoved,
    kByWaves,
    kByStates,
    kLookedAt,  // `rounding` when sources were examined
    kTolerated,
    kMaxResidual,
    kMaxStored,
    kMaxRatio,
    kSent,
    kImpact,
    kImpactLost,
    kColumns
  };

 private:
  [[gnu::always_inline]] static double larger(double a, double b) { return a < b ? b : a; }
};

/// The accounts of islands, side by side: a column holds one number of every account. `IsOne`: there is one
/// island, so that distances are known at compile time.
template <bool IsOne>
struct AccountColumns {
  using enum IslandAccount::Column;
  using Column = IslandAccount::Column;

  double* values;
  std::ptrdiff_t islands;

  [[gnu::always_inline]] double& at(Column c, std::ptrdiff_t island) const {
    return IsOne ? values[c] : values[c * islands + island];
  }
  [[gnu::always_inline]] CompensatedSum sum(Column c, std::ptrdiff_t island) const {
    return CompensatedSum::resumed(at(c, island), at(static_cast<Column>(c + 1), island));
  }
  [[gnu::always_inline]] void set(Column c, std::ptrdiff_t island,
                                  const CompensatedSum& sum) const {
    at(c, island) = sum.sum();
    at(static_cast<Column>(c + 1), island) = sum.lost();
  }

  [[gnu::always_inline]] IslandAccount account(std::ptrdiff_t i) const {
    return {.change = at(kChange, i),
            .supply = at(kSupply, i),
            .dissipated = at(kDissipated, i),
            .mismatch = at(kMismatch, i),
            .tolerance = at(kTolerance, i),
            .largest_residual = at(kLargestResidual, i),
            .tolerated_of_step = at(kToleratedOfStep, i),
            .tank_at_start = at(kTankAtStart, i),
            .size = at(kSize, i),
            .per_initial_energy = at(kPerInitialEnergy, i),
            .gained = sum(kGained, i),
            .tank = sum(kTank, i),
            .stored = sum(kStored, i),
            .supplied = sum(kSupplied, i),
            .dissipated_in_all = sum(kDissipatedInAll, i),
            .mismatched = sum(kMismatched, i),
            .given_up = sum(kGivenUp, i),
            .moved = at(kMoved, i),
            .by_waves = at(kByWaves, i),
            .by_states = at(kByStates, i),
            .sent = at(kSent, i),
            .tolerated = at(kTolerated, i),
            .max_residual = at(kMaxResidual, i),
            .max_stored = at(kMaxStored, i),
            .max_ratio = at(kMaxRatio, i)};
  }
  /// The next three write back the changes by `take_step`, `settle` and `add_to_totals`.
  [[gnu::always_inline]] void keep_step(std::ptrdiff_t i, const IslandAccount& own) const {
    set(kGained, i, own.gained);
    at(kMoved, i) = own.moved;
    at(kByWaves, i) = own.by_waves;
  }
  [[gnu::always_inline]] void keep_settled(std::ptrdiff_t i, const IslandAccount& own) const {
    set(kTank, i, own.tank);
    set(kStored, i, own.stored);
    set(kGivenUp, i, own.given_up);
  }
  [[gnu::always_inline]] void keep_totals(std::ptrdiff_t i, const IslandAccount& own) const {
    set(kSupplied, i, own.supplied);
    set(kDissipatedInAll, i, own.dissipated_in_all);
    set(kMismatched, i, own.mismatched);
    at(kMaxResidual, i) = own.max_residual;
    at(kMaxStored, i) = own.max_stored;
    at(kMaxRatio, i) = own.max_ratio;
  }
};

/// The accounts of many islands (AccountColumns) after a step. First `judge`, then, once its remarks
/// are examined, `settle`.
struct IslandAccountsTask {
  double* columns = nullptr;
  int islands = 0;
  AccountRules rules;
  bool totals = false;  ///< totals of the run are kept, too
};

}  // namespace portwave
