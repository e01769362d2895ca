#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/committed_step.hpp"
#include "portwave/coupling/energy/compensated_sum.hpp"
#include "portwave/coupling/energy/guarded_accounts.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/island_sums.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

class IslandAccounts;
struct LedgerKernels;
struct LedgerTotals;
struct PartPorts;
class StateArchive;

/// The findings against an island.
struct LawFinding {
  /// The largest defect of a part in relation to its tolerance, with the part and the step; −1: none yet.
  double worst_ratio = -std::numeric_limits<double>::infinity();
  std::int64_t worst_part = -1;
  std::int64_t worst_step = -1;
  bool is_part_active = false;  ///< some r exceeded its tolerance and the rounding of its step
  std::optional<BrokenLaw> broken_law;  ///< the first law of the guard that did not hold
  std::optional<EnergyGrowth>
      growth;  ///< largest excess of H over H₀ + T₀ + supply, beyond rounding

  bool is_violated() const { return is_part_active || broken_law.has_value(); }
};

struct LedgerOptions {
  TankOptions tank = {};
  bool guarded = false;  ///< the two laws of the guard are checked as well
  /// For a slice: finds sums over the whole system; null: all parts are here. With slices, all parts must
  /// know their energy, and the ledger numbers the parts that it names as in the whole system.
  SlicesTogether* slices = nullptr;
  /// The islands are replicas of one system, in lanes of common batches. Each has its own totals and
  /// findings, and nothing is summed over islands.
  bool replicas = false;
  /// Stages of parts may be damped later.
  bool may_damp = false;
};

/// Keeps the energy ledger and the passivity certificate of a run, step by step, from committed
/// states and waves alone. Accounts are kept, and judged, island by island; an ordinary run has few
/// islands, an ensemble many. Sums run in part order. Nothing is allocated after construction.
///
/// Per part, r = H⁺ − H − ½(|a|² − |b|²) − supply ≤ 0 up to round-off; per island, a tank
/// T ← min(T + ½(|b|² − |a|²), cap) from T₀ = ½|b⁰|² or as TankOptions say. H⁺ − H and ½(|b|² −
/// |a|²) are formed from increments, x⁺ − x and b − a, and added up with compensation, so that
/// neither large states nor large waves drown them. A bound on the remaining rounding in an island's account
/// is kept beside it (`rounding_J`). If it exceeds a millionth of all energy there, the laws of the island
/// are not judged (`unjudged_islands`).
///
/// For a part that does not know its energy (Capabilities::knows_energy) the change H⁺ − H is by
/// definition the energy received, ½(|a|² − |b|²) + supply, and H counts from 0: it is *metered*. Its r is
/// 0 and proves nothing, unless it has no source (HoldsEnergy): r is then what it has given beyond what it held
/// and received, and beyond a thousandth of all that went through its ports, to and fro.
///
/// A step is recorded in three acts: `examine`, lane by lane, which several threads may share;
/// `tally`, which sums up; and `close`, which makes it final. A step that is not closed leaves no trace;
/// lanes may be examined and tallied again. Each thread sums the complete chunks it examines.
///
/// With several processes, each may examine some of the lanes. The ledger then receives the sums of the
/// others as IslandSums, and their single entries only when these matter (`before_entries`), which is rare.
class EnergyLedger final : public GuardedAccounts, public IslandSums {
 public:
  /// `record` and `b` are the initial states and outgoing waves, in the order of `waves`.
  EnergyLedger(const WaveDiscretisation& waves, const double* record, const double* b,
               const LedgerOptions& options = {});
  ~EnergyLedger();
  EnergyLedger(const EnergyLedger&) = delete;
  EnergyLedger& operator=(const EnergyLedger&) = delete;

  /// Begins another run from these states and outgoing waves. All islands are open again.
  void begin(const double* record, const double* b);

  /// The arrays into which `WaveDiscretisation::advance` writes the energies of the step.
  EnergyColumns columns();

  /// Examines lanes that committed incident waves `a` and outgoing waves `b`. Precondition: their entries of
  /// `columns` are written.
  void examine(int batch, LaneRange lanes, const double* a, const double* b);
  /// Sums up a chunk (PartOrderReduction) whose lanes are all examined; each that is not is summed up by `tally`.
  void sum_chunk(int chunk);
  /// Prepares to examine a whole island at once, which allocates. False if the island has more than eight
  /// parts or one that does not know its energy, if another process examines some lanes, and for replicas.
  bool prepare_island(int island);
  /// Does the same as `examine` for all lanes of an island, and forms their sums. Precondition: the island is
  /// prepared.
  void examine_island(int island, const double* a, const double* b);
  /// To be called before tasks commit: discards sums of lanes that were examined but not tallied. Other tasks may
  /// examine from now on.
  void forget_examined();
  /// Sets helpers for islands with many parts, as ChunkLoop does. No result depends on them.
  void share_with(const ForEach* for_each, int threads);
  /// For a caller that examines only some lanes. `entries` is called before entries of other lanes are read,
  /// and fills in all `entries()`; `states` is called before records of a step are read. Both calls are rare.
  void before_entries(std::function<void()> entries, std::function<void()> states) {
    fetch_entries_ = std::move(entries);
    fetch_states_ = std::move(states);
  }
  void need_states() const override;
  /// All data kept by entry.
  std::span<const std::span<double>> entries() const { return columns_; }
  /// Called between steps: fetches the entries of all lanes unless they are here.
  void need_entries() const;
  bool has_entries() const { return has_entries_; }
  // As IslandSums.
  int sums() const override { return damps_ ? 6 : 5; }
  int maxima() const override { return 2; }
  std::span<const std::span<double>> terms() override {
    return std::span(terms_).first(damps_ ? 7 : 6);
  }
  void form(int chunk, double* values) const override;
  void take(int island, const double* values) override;

  /// Sums up the examined lanes. Returns false if an energy is not finite. For a linear part that does not
  /// balance up to round-off, H⁺ − H is formed again from the states of `step` in extended precision, because
  /// far from the origin even the terms of ½(x⁺ + x)ᵀQ(x⁺ − x) may cancel.
  bool tally(const CommittedStep& step = {});
  /// The result of `tally`; for replicas, without islands closed since.
  bool is_finite() const;
  /// After a failed `tally`: the first part whose energy is not finite; if only the sum is not finite, the
  /// part that stores most. For replicas, in the first such open island.
  int first_non_finite() const;

  /// After `tally`: whether `overdraws` may hold for some island.
  bool may_overdraw() const;
  // As GuardedAccounts.
  void prepare(const CommittedStep& step) const override;
  bool overdraws(int island, const CommittedStep& step) const override;
  bool is_too_loud(int island, const CommittedStep& step) const override;
  bool takes(int island, double deficit_J, const CommittedStep& step) const override;
  double energies(int island) const override;
  double stored(int island) const override;
  double supplied(int island) const override;
  double mismatch(int island) const override;
  double tank(int island) const override;
  /// T after the step [J].
  double prospect(int island) const;

  /// Makes the tallied step final, with the guard's `alpha` and `withheld_J`, and the deficits that are
  /// `tolerated`. For replicas the returned sums are zero.
  StepLedger close(const CommittedStep& step, double alpha = 1.0, double withheld_J = 0.0,
                   std::span<const ToleratedDeficit> tolerated = {});
  /// All three acts, for all lanes. Empty if an energy is not finite; the step then leaves no trace.
  std::optional<StepLedger> account(const CommittedStep& step);

  /// Called between steps when a part was exchanged. The new one stores `more_J` more in its state than the
  /// old one [J], finite: energy that the user has put in. It counts as supplied, in the columns of the next
  /// step. Precondition: the part knows its energy.
  void revalue(int part, double more_J);
  /// Called between steps when an impulse has changed the states of these parts, or was supplied by them. Counts
  /// in the columns of the next step, unless `is_start`: then the run begins with it. Allocates.
  void impulse(std::span<const ImpulseAtPart> parts, bool is_start);
  /// Excludes an island from later steps; its totals and findings stay as they are.
  void close_island(int island);

  /// H of a part in the ledger: the initial value and the sum of its changes since [J].
  double storage(int part) const;
  /// Energies of the step that was tallied last, with impulses before it; before the first step, of impulses at
  /// the start.
  PartEnergies part_energies(int part) const;
  /// The parts that do not know their energy.
  std::span<const int> metered_parts() const { return metered_; }
  /// Totals of all islands; not of replicas.
  EnergyTotals totals() const;
  /// Totals of an island; of replicas only.
  EnergyTotals totals(int island) const;
  /// H₀ + T₀ [J].
  double initial_energy() const { return totals_.initial_J + totals_.initial_tank_J; }
  std::int64_t steps() const { return steps_; }
  /// What was closed last is a piece of a step, and the next is one of the same: findings count such as one.
  void join_next() { ++joined_; }
  std::size_t bytes() const;
  /// The state of the ledger between two steps.
  void archive(StateArchive& archive);

  double max_passivity_residual() const { return max_residual_; }
  /// Over all islands: the largest r, and the first law that did not hold.
  LawFinding finding() const;
  const LawFinding& finding(int island) const;
  /// The ledger's findings on an island, without those of other observers. Parts are counted from the first
  /// of the island.
  Certificate certificate(int island) const;
  /// Number of islands whose laws are not judged at present, because rounding in their accounts may exceed a
  /// millionth of all energy there.
  int unjudged_islands() const;
  /// The last step that changed `finding` or `unjudged_islands`; -1: none has.
  std::int64_t found_at() const { return found_at_; }

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
    kNumerical,  // of kDissipated; zeros where no stage is damped
    kColumns
  };
  class Start;
  /// The account of a closed island.
  struct Kept {
    EnergyTotals totals;
    Certificate certificate;
  };

  double* column(Column c) { return columns_[c].data(); }
  const double* column(Column c) const { return columns_[c].data(); }
  void find_regular_entries();
  void begin_accounts(const double* record, const double* b);
  double tank_sum() const;
  void update_energy_ratio();
  void meter(int first, int last);
  void find_totals(int chunk, LedgerTotals& out) const;
  double accepted_of_chunk(int chunk) const;
  bool is_summed(int chunk) const {
    return !is_summed_.empty() && is_summed_[static_cast<std::size_t>(chunk)] != 0;
  }
  void sum_islands();
  void sum_island(int island);
  bool refine(const CommittedStep& step);
  void take_metered();
  void find_held();
  void judge_held(int first, int last);
  void take_numerical(StepLedger& ledger);
  bool judge_passivity(const CommittedStep& step);
  bool judge_passivity(int island, const CommittedStep& step);
  void add_up(StepLedger& ledger);
  /// An impulse before step number `step`; −1: at the start.
  struct KnownImpulse {
    std::int64_t step = -1;
    ImpulseAtPart at_part;
  };

  const WaveDiscretisation& waves_;
  SlicesTogether* slices_;
  bool replicas_;
  const LedgerKernels* kernels_;
  StaggeredMemory memory_;
  std::span<double> columns_[kColumns];  // by entry
  std::array<std::span<double>, 7> terms_;
  const PartOrderReduction& parts_;
  std::vector<int> metered_;  // parts
  /// Those of them that have no source.
  struct Held {
    int entry;
    double held_J, exchanged_J;
  };
  std::vector<Held> held_;
  std::unique_ptr<IslandAccounts> accounts_;
  bool damps_;                       // some stages are damped
  std::vector<double> numerical_J_;  // by island, of the step; empty if none are
  bool adds_up_;  // several islands: `tallied_`, `stored_`, `run_` and `totals_` are sums over them
  std::vector<double>
      accepted_;        // by island: parts with at most this defect, in tolerances, are skipped
  StepLedger tallied_;  // if adds_up_: sums of all islands
  // Sums formed while lanes are examined.
  std::vector<LedgerTotals> by_chunk_;
  std::vector<char> is_summed_;  // by chunk: by_chunk_ has it; empty: all chunks are small
  std::vector<int> island_of_chunk_;
  std::vector<std::vector<PartPorts>> small_;  // by island: its parts, if it is examined at once
  std::vector<char> is_known_;                 // by island: its sums are in the accounts
  std::vector<int> first_,
      step_;  // of replicas: entries of their parts; empty where these are irregular
  bool is_beyond_ =
      false;  // some part balances worse than any of its island so far, or than is tolerated
  bool is_taken_ = false;               // the sums in the accounts include those of other processes
  mutable bool has_entries_ = true;     // of all lanes
  double revalued_J_ = 0.0;             // since the last step
  ImpulseEnergies jumped_;              // likewise
  std::vector<KnownImpulse> impulses_;  // before the last step and the next one
  CompensatedSum stored_, metered_J_;
  EnergyTotals totals_;
  /// Compensated sums over all steps, from which members of `totals_` are computed.
  struct RunSums {
    CompensatedSum supplied, dissipated, mismatch, impact;
  };
  RunSums run_;
  std::vector<CompensatedSum> numerical_in_all_J_;  // by island
  double per_initial_energy_ = 0.0;                 ///< 1/(H₀ + T₀)
  std::int64_t steps_ = 0;
  std::int64_t found_at_ = -1;
  std::int64_t joined_ = 0;  // closed steps that belong to the next one
  double max_residual_ = -std::numeric_limits<double>::infinity();
  std::vector<std::unique_ptr<Kept>> kept_;  // by replica: its account, once it is closed
  std::function<void()> fetch_entries_, fetch_states_;
};

}  // namespace portwave
