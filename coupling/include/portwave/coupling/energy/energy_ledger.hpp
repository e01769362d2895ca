#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/energy/guarded_accounts.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/waves/extended_sums.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/staggered.hpp"

namespace portwave {

struct LedgerKernels;
struct LedgerTotals;
struct PartPorts;
class StateArchive;
class StepRounding;

/// Keeps the energy ledger and the passivity certificate of a run, step by step, from committed
/// states and waves alone. Sums run in part order. Nothing is allocated after construction.
///
/// Per part, r = H⁺ − H − ½(|a|² − |b|²) − supply ≤ 0 up to round-off; per island, a tank
/// T ← min(T + ½(|b|² − |a|²), cap) from T₀ = ½|b⁰|² or as TankOptions say. H⁺ − H and ½(|b|² −
/// |a|²) are formed from increments, x⁺ − x and b − a, and added up with compensation, so that
/// neither large states nor large waves drown them. What rounding may have left in an island's
/// account all the same is kept beside it (`rounding_J`). Where that is more than a millionth of all energy
/// there, the laws of the island are not judged (`unjudged_islands`).
///
/// Of a part that does not know its energy (Capabilities::knows_energy) the change H⁺ − H is by
/// definition what went in, ½(|a|² − |b|²) + supply, and H counts from 0: it is *metered*. Its r is
/// 0 and says nothing.
///
/// A step is booked in three acts: `examine`, lane by lane, which several threads may share;
/// `tally`, which sums up; and `close`, which makes it final. A step that is not closed has not
/// happened; lanes may be examined and tallied again. What a thread examines is summed up at once, as far as it
/// has whole chunks.
///
/// Of several processes each may examine some lanes. As IslandSums they then hear of the sums of the
/// others, and of single entries only when these matter (`before_entries`), which is rare.
class EnergyLedger final : public GuardedAccounts, public IslandSums {
 public:
  /// `record` and `b` are the initial states and outgoing waves, in the order of `waves`.
  /// `guarded`: the two laws of the guard are checked as well.
  /// `slices`: where `waves` are of a slice, what finds sums of the whole. All parts know their energy
  /// then; parts that it names are numbered as in the whole.
  EnergyLedger(const WaveDiscretisation& waves, const double* record, const double* b,
               const TankOptions& tank = {}, bool guarded = false,
               SlicesTogether* slices = nullptr);
  ~EnergyLedger();
  EnergyLedger(const EnergyLedger&) = delete;
  EnergyLedger& operator=(const EnergyLedger&) = delete;

  /// Where `WaveDiscretisation::advance` is to write the energies of the step.
  EnergyColumns columns();

  /// Looks at lanes that committed incident waves `a` and outgoing waves `b`; `columns` are
  /// written.
  void examine(int batch, LaneRange lanes, const double* a, const double* b);
  /// Makes ready to examine a whole island at once, which allocates. False where it has more than
  /// eight parts or one that does not know its energy, or somebody else examines some lanes.
  bool prepare_island(int island);
  /// The same as `examine` of all its lanes, and what they sum up to. Precondition: it is prepared.
  void examine_island(int island, const double* a, const double* b);
  /// Between steps: others may examine from now on. What was examined and not tallied counts no more.
  void forget_examined();
  /// Who helps where islands have many parts, as ChunkLoop. No result depends on it.
  void share_with(const ForEach* for_each, int threads) {
    sums_of_parts_.share_with(for_each, threads);
  }
  /// Whoever examines only some lanes: `entries` is called before entries of others are looked at, and
  /// fills in all `entries()`; `states` before records of a step are. Neither is called often.
  void before_entries(std::function<void()> entries, std::function<void()> states) {
    fetch_entries_ = std::move(entries);
    fetch_states_ = std::move(states);
  }
  void need_states() const override;
  /// All that is kept by entry.
  std::span<const std::span<double>> entries() const { return columns_; }
  /// Between steps: has entries of all lanes from here on, if it has not.
  void need_entries() const;
  bool has_entries() const { return has_entries_; }
  // As IslandSums.
  int sums() const override { return 5; }
  int maxima() const override { return 2; }
  std::span<const std::span<double>> terms() override { return terms_; }
  void form(int chunk, double* values) const override;
  void take(int island, const double* values) override;
  /// Sums up. False when an energy is not finite. Where a linear part does not balance up to
  /// round-off, its H⁺ − H is formed again from the states of `step` in extended precision: far
  /// from the origin the terms of even ½(x⁺ + x)ᵀQ(x⁺ − x) may cancel.
  bool tally(const CommittedStep& step = {});
  /// After `tally`: ½(|b|² − |a|²) of an island.
  double mismatch(int island) const override { return mismatch_[static_cast<std::size_t>(island)]; }
  /// After `tally`: T of an island as it will be.
  double prospect(int island) const {
    const auto i = static_cast<std::size_t>(island);
    return std::min(tank_[i].value() + mismatch_[i] + tolerated_[i], cap_);
  }
  /// After `tally`: whether the step takes more from an island's tank than is in it, by more than
  /// the rounding of the account so far, this step included; or is too loud.
  bool overdraws(int island, const CommittedStep& step) const override;
  bool is_too_loud(int island, const CommittedStep& step) const override;
  double energies(int island) const override;
  bool takes(int island, double deficit_J, const CommittedStep& step) const override;
  double stored(int island) const override {
    const Account& own = accounts_[static_cast<std::size_t>(island)];
    return std::abs(own.start + own.gained.value() + own.supplied);
  }
  double supplied(int island) const override;
  void prepare(const CommittedStep& step) const override;
  /// Books the tallied step, of which the guard has to say what `alpha` and `withheld_J` are, and which
  /// deficits are `tolerated`.
  StepLedger close(const CommittedStep& step, double alpha = 1.0, double withheld_J = 0.0,
                   std::span<const ToleratedDeficit> tolerated = {});
  /// After a failed `tally`: the first part whose energy is not finite; where only the sum is not,
  /// the part that stores most.
  int first_non_finite() const;
  /// All acts, for all lanes. Empty when an energy is not finite: nothing is booked then.
  std::optional<StepLedger> account(const CommittedStep& step);

  /// Between steps a part has become another one, which stores so much more in its state than the one
  /// before [J], finite: whoever exchanged it has put that in. It counts as supplied, and is part of the
  /// next step's columns. Precondition: the part knows its energy.
  void revalue(int part, double more_J);
  /// Islands of which the laws are not judged now: rounding may have left more than a millionth of all
  /// energy in the account.
  int unjudged_islands() const { return unjudged_count_; }

  /// H of a part as the ledger has it: at the start and the sum of its changes since [J].
  double storage(int part) const;
  /// Of the step that was tallied last; zeros before the first.
  PartEnergies part_energies(int part) const;
  /// The parts that do not know their energy.
  std::span<const int> metered_parts() const { return metered_; }
  const EnergyTotals& totals() const { return totals_; }
  /// H₀ + T₀ [J].
  double initial_energy() const { return totals_.initial_J + totals_.initial_tank_J; }
  /// T of an island [J].
  double tank(int island) const override { return tank_[static_cast<std::size_t>(island)].value(); }
  std::int64_t steps() const { return steps_; }
  std::size_t bytes() const;
  /// The book as it stands between two steps.
  void archive(StateArchive& archive);

  double max_passivity_residual() const { return max_residual_; }
  /// Where r was largest in relation to its tolerance; -1 before the first step.
  int worst_part() const { return worst_part_; }
  std::int64_t worst_step() const { return worst_step_; }
  /// Some r exceeded its tolerance and the rounding of its step.
  bool is_part_active() const { return violated_; }
  /// That; or, if guarded, a law of the guard did not hold on some island.
  bool violated() const { return violated_ || broken_law_.has_value(); }
  /// Nothing has to be said but where r was largest.
  bool is_sound() const { return !violated_ && !broken_law_ && !growth_ && unjudged_count_ == 0; }
  const std::optional<BrokenLaw>& broken_law() const { return broken_law_; }
  /// Where H of an island exceeded H₀ + T₀ + supply by most, beyond rounding; empty: nowhere.
  const std::optional<EnergyGrowth>& growth() const { return growth_; }

 private:
  enum Column {
    kChange,
    kSupply,
    kDissipated,
    kStorage,
    kStorageBefore,
    kResidual,
    kTolerance,
    kMismatch,
    kColumns
  };
  /// The account of an island.
  struct Account {
    double start = 0.0;      ///< H₀ [J]
    double tank = 0.0;       ///< T₀ [J]
    double size = 0.0;       ///< Σ|Hᵢ| + T₀ at the start
    bool passive = true;     ///< no part is active
    CompensatedSum gained;   ///< Σ (H⁺ − H − supply)
    double supplied = 0.0;   ///< Σ supply
    double moved = 0.0;      ///< Σ |supply|
    double tolerated = 0.0;  ///< what steps within their tolerance took beyond the tank
    /// What rounding may have left in these sums: by energies and waves, and, where that was looked
    /// at, by states.
    double by_waves = 0.0, by_states = 0.0;
    double looked_at = 0.0;  ///< what it was when sources were looked at

    double rounding() const { return by_waves + by_states; }

    friend constexpr std::array<std::size_t, 1> archive_flags(const Account*) {
      return {offsetof(Account, passive)};
    }
  };

  class Start;

  double* column(Column c) { return columns_[c].data(); }
  const double* column(Column c) const { return columns_[c].data(); }
  double tank_sum() const;
  void update_energy_ratio();
  void name_terms();
  void meter(int first, int last);
  void find_totals(int chunk, LedgerTotals& out) const;
  void sum_islands();
  double sum_of_islands(double LedgerTotals::*what) const;
  void take_metered();
  void judge_passivity(const CommittedStep& step);
  void sum_up();
  bool refine(const CommittedStep& step);
  double state_rounding(int part, const CommittedStep& step) const;
  /// What states round off on an island in a step [J].
  struct StateRoundings {
    double beyond_usual = 0.0;  ///< of parts in which terms cancel
    double all = 0.0;
  };
  void find_state_roundings(std::span<const int> islands, const CommittedStep& step) const;
  StateRoundings found_roundings(std::size_t i) const;
  double bound_of_states(int island, const CommittedStep& step) const;
  StateRoundings state_roundings(int island, const CommittedStep& step) const;
  double rounding_of_step(int island) const;
  double allowance_of_tank(int island) const;
  bool is_short(int island, double allowed) const;
  void prepare_state_roundings(std::span<const int> islands, const CommittedStep& step) const;
  void look_at_sources(int island, const CommittedStep& step) const;
  double measure_of(int island, const Account& account) const;
  void take_step(int island, Account& account) const;
  double excess_of(int island, const Account& account) const;
  static double allowance_of(const Account& account);
  bool is_out(int island, const Account& account) const;
  void prepare_judgement(const CommittedStep& step) const;
  void judge_island(int island, const CommittedStep& step);
  void see_rounding(int island, Account& account, const CommittedStep& step);
  void see_growth(int island, const Account& account);

  const WaveDiscretisation& waves_;
  SlicesTogether* slices_;
  const LedgerKernels* kernels_;
  StaggeredMemory memory_;
  std::span<double> columns_[kColumns];  // by entry
  std::array<std::span<double>, 6> terms_;
  const PartOrderReduction& parts_;
  std::vector<int> metered_;          // parts
  std::vector<CompensatedSum> tank_;  // by island
  double cap_;
  bool guarded_;
  int unjudged_count_ = 0;
  /// By island: the most that its sources were seen to send by themselves, ½|S(0)|² [J]. Looked at where
  /// waves are large beside what else there is, as on parts that are held.
  mutable std::vector<double> sent_;
  std::vector<double> tolerated_;  // by island: of the step that is closed, else zeros
  // Of the step that is tallied: sums of all parts, and some by island.
  StepLedger tallied_;
  bool is_beyond_ = false;  ///< some part balances worse than any so far, or than is tolerated
  std::vector<LedgerTotals> by_chunk_;
  std::vector<char> is_summed_;  // by chunk: by_chunk_ has it
  std::vector<double> mismatch_;
  std::vector<LedgerTotals> by_island_;
  // Of islands that are examined at once: their parts, and whether by_island_ has this step's sums.
  std::vector<std::vector<PartPorts>> small_;  // by island; empty: of none
  std::vector<char> is_known_;
  bool is_taken_ = false;            // these are what others found, too
  mutable bool has_entries_ = true;  // of all lanes
  std::vector<Account> accounts_;    // by island
  double revalued_J_ = 0.0;          // since the last step
  CompensatedSum stored_, metered_J_;
  std::unique_ptr<StepRounding> rounding_;
  mutable ExtendedSums sums_of_parts_;
  mutable std::vector<StateRoundings>
      state_roundings_;  // of slices, by island, of the tallied step
  EnergyTotals totals_;
  /// What its members are the values of: sums over all steps of terms of one sign.
  struct {
    CompensatedSum supplied, dissipated, mismatch, given_up;
  } run_;
  double per_initial_energy_ = 0.0;  ///< 1/(H₀ + T₀)
  std::int64_t steps_ = 0;
  double max_residual_;
  double worst_ratio_;
  int worst_part_ = -1;
  std::int64_t worst_step_ = -1;
  bool violated_ = false;
  std::optional<BrokenLaw> broken_law_;
  std::optional<EnergyGrowth> growth_;
  std::function<void()> fetch_entries_, fetch_states_;
};

}  // namespace portwave
