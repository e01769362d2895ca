#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "energy/island_account.hpp"
#include "energy/step_rounding.hpp"
#include "kernels/ledger_kernels.hpp"
#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/committed_step.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/extended_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

class StateArchive;

/// The energy accounts of the islands of a system: the only place where the energy of islands is judged, by
/// the laws of IslandAccount. (EnergyLedger judges the passivity of single parts.) Numbers are kept by
/// island, side by side, so that one pass judges all islands; islands with remarks are then examined one by
/// one.
///
/// With H the stored energy, T the tank, and all sums since the start, of an island
///   T ≥ 0  and  H + T ≤ H₀ + T₀ + supply + tolerated   (guarded),
///   H ≤ H₀ + T₀ + supply + tolerated                    (growth),
/// each up to the rounding in the account. If that is more than a millionth of all energy there, the island
/// is not judged.
///
/// Nothing is allocated after construction.
class IslandAccounts {
 public:
  /// `totals`: whether the totals of the run are kept for each island (`totals`, `max_residual`).
  /// `tolerance`: the tolerances of passivity residuals, by entry [J]; they are read whenever states are
  /// examined. `need_states`: called before records are read.
  IslandAccounts(const WaveDiscretisation& waves, const TankOptions& tank, bool guarded,
                 bool totals, SlicesTogether* slices, const double* tolerance,
                 std::function<void()> need_states);

  int count() const { return islands_; }

  struct Start {
    double stored_J = 0.0, waves_J = 0.0, size_J = 0.0;  ///< H₀, ½|b⁰|², Σ|Hᵢ|
    bool is_passive = true;                              ///< no part is active
  };
  /// Begins the account of an island for a run.
  void begin(int island, const Start& start);

  // The sums of a step, before it is judged.
  void set_sums(int island, const LedgerTotals& sums);
  /// The array for the result of LedgerKernels::island_sums.
  void direct(IslandSumsTask& task);
  /// The first sum of an island, for SmallIslandTask. The others follow at distances of `count()`.
  double* sums_of(int island) { return &at(kChange, island); }
  double supply(int island) const { return at(kSupply, island); }
  double mismatch(int island) const { return at(kMismatch, island); }
  double excess(int island) const { return at(kLargestExcess, island); }
  /// The first open island whose sums are not finite; −1: none.
  int first_non_finite() const;
  /// The sums over all islands, formed as eight interleaved sums like those over parts. If there is only one
  /// island, H and T too.
  StepLedger sum_of_step() const;
  /// H₀ of all islands.
  double sum_of_starts() const { return total(kStart); }
  bool is_any_beyond() const;

  // The interface for the guard (EnergyLedger).
  bool may_overdraw() const;
  void prepare(const CommittedStep& step) const;
  bool overdraws(int island, const CommittedStep& step) const;
  bool is_too_loud(int island, const CommittedStep& step) const;
  bool takes(int island, double deficit_J, const CommittedStep& step) const;
  double energies(int island) const;
  double stored(int island) const { return sum_at(kStored, island); }
  double tank(int island) const { return sum_at(kTank, island); }
  /// T after the step.
  double prospect(int island) const;

  /// Judges the step with this number, then adds it to the accounts. True if there is a new finding.
  bool close(const CommittedStep& step, std::int64_t number,
             std::span<const ToleratedDeficit> tolerated);
  /// A part was exchanged, and the island stores `more_J` more: energy that was put in.
  void revalue(int island, double more_J);
  /// An impulse at one of its parts: what it takes is lost like what is dissipated. The tank stays.
  void add_impulse(int island, const ImpulseEnergies& energies);
  /// All parts of an impulse are added.
  void end_impulse();

  /// Allowance for r of a part beyond its tolerance, found by examining states [J].
  double state_rounding(int part, const CommittedStep& step) const;
  /// H⁺ − H of a part in a precision in which nothing cancels; empty if unknown.
  std::optional<double> exact_change(int part, const CommittedStep& step) const {
    return rounding_.change(part, step);
  }
  double storage(int part, const double* record) const { return rounding_.storage(part, record); }

  /// Excludes an island from later steps; its account stays as it is.
  void close_island(int island) { closed_[static_cast<std::size_t>(island)] = 1; }
  bool is_open(int island) const { return closed_[static_cast<std::size_t>(island)] == 0; }

  LawFinding& finding(int island) { return findings_[static_cast<std::size_t>(island)]; }
  const LawFinding& finding(int island) const {
    return findings_[static_cast<std::size_t>(island)];
  }
  bool is_judged(int island) const;
  int unjudged() const { return unjudged_; }
  EnergyTotals totals(int island) const;
  double rounding(int island) const { return at(kByWaves, island) + at(kByStates, island); }
  double given_up(int island) const { return sum_at(kGivenUp, island); }
  double max_residual(int island) const { return at(kMaxResidual, island); }

  void share_with(const ForEach* for_each, int threads) {
    sums_of_parts_.share_with(for_each, threads);
  }
  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  using enum IslandAccount::Column;
  using Column = IslandAccount::Column;

  double* column(Column c) const { return columns_.data() + c * islands_; }
  double& at(Column c, int island) const { return column(c)[island]; }
  double sum_at(Column c, int island) const { return at(c, island) + column(c)[islands_ + island]; }
  double total(Column c) const;
  /// Calls act(columns), with the distances of a single island known at compile time.
  template <class Act>
  auto with_columns(const Act& act) const {
    return islands_ == 1 ? act(AccountColumns<true>{columns_.data(), 1})
                         : act(AccountColumns<false>{columns_.data(), islands_});
  }
  IslandAccount account(int island) const {
    return AccountColumns<false>{columns_.data(), islands_}.account(island);
  }

  /// The rounding error of the states of an island in a step [J].
  struct StateRoundings {
    double beyond_usual = 0.0;  ///< of parts in which terms cancel
    double all = 0.0;
  };
  void find_state_roundings(std::span<const int> islands, const CommittedStep& step) const;
  StateRoundings found_roundings(std::size_t i) const;
  StateRoundings state_roundings(int island, const CommittedStep& step) const;
  void prepare_state_roundings(std::span<const int> islands, const CommittedStep& step) const;
  double bound_of_states(int island, const CommittedStep& step) const;
  void look_at_sources(int island, const CommittedStep& step) const;

  bool is_out(int island) const;
  bool close_all(const CommittedStep& step, std::int64_t number);
  bool close_only(const CommittedStep& step, std::int64_t number);
  bool judge(const CommittedStep& step, std::int64_t number);
  bool judge(int island, const CommittedStep& step, std::int64_t number);
  void see_rounding(int island, const CommittedStep& step);
  bool see_growth(int island, std::int64_t number);

  const WaveDiscretisation& waves_;
  const PartOrderReduction& parts_;
  const LedgerKernels* kernels_;
  SlicesTogether* slices_;
  const double* tolerance_;
  std::function<void()> need_states_;
  TankOptions options_;
  int islands_;
  int unjudged_ = 0;
  mutable AlignedVector columns_;
  IslandAccountsTask task_;
  std::vector<char> passive_, closed_;
  std::vector<LawFinding> findings_;
  StepRounding rounding_;
  mutable ExtendedSums sums_of_parts_;
  mutable std::vector<StateRoundings> prepared_;  // with slices: by island, for this step
};

}  // namespace portwave
