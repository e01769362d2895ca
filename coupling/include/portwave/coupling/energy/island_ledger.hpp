#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/energy/guarded_accounts.hpp"
#include "portwave/coupling/energy/ledger.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/waves/extended_sums.hpp"
#include "portwave/subsystems/base/aligned.hpp"

namespace portwave {

struct LedgerKernels;
class StepRounding;

/// The energy ledgers of many alike islands: each has the totals, and is judged, as by an
/// EnergyLedger of its own, bit by bit. What is the same for all islands is done for many at once;
/// what is remarkable in one is looked at by itself.
///
/// All islands have the same number of parts, which know their energy. The acts are those of EnergyLedger; a step is booked for all islands at once.
/// Nothing is allocated after construction.
class IslandLedger final : public GuardedAccounts {
 public:
  IslandLedger(const WaveDiscretisation& waves, const TankOptions& tank, bool guarded);
  ~IslandLedger();
  IslandLedger(const IslandLedger&) = delete;
  IslandLedger& operator=(const IslandLedger&) = delete;

  /// A run begins from these states and outgoing waves. No island is closed.
  void begin(const double* record, const double* b);

  /// Where `WaveDiscretisation::advance` is to write the energies of the step.
  EnergyColumns columns();
  /// Looks at all lanes, `columns` being written.
  void examine(const double* a, const double* b);
  /// Sums up.
  void tally(const CommittedStep& step);
  /// Both for one island alone, which has been committed again.
  void tally_again(int island, const CommittedStep& step);
  /// After `tally`: the first open island whose energies are not finite; −1: none.
  int first_non_finite() const;
  /// Of such an island: the first part with an energy that is not finite; where only the sum is not,
  /// the part that stores most.
  int part_to_blame(int island) const;
  /// After `tally`: whether `overdraws` may hold for some island.
  bool may_overdraw() const;
  bool overdraws(int island, const CommittedStep& step) const override;
  bool is_too_loud(int island, const CommittedStep& step) const override;
  double energies(int island) const override;
  bool takes(int island, double deficit_J, const CommittedStep& step) const override;
  double stored(int island) const override;
  double supplied(int island) const override;
  double mismatch(int island) const override { return mismatch_[at(island)]; }
  double tank(int island) const override { return tank_[at(island)] + tank_lost_[at(island)]; }
  /// Books the tallied step, some deficits of which are tolerated.
  void close(const CommittedStep& step, std::span<const ToleratedDeficit> tolerated = {});

  /// An island has no part in what follows; its totals and findings stay as they are.
  void close_island(int island);

  /// As EnergyLedger::totals of an island by itself.
  EnergyTotals totals(int island) const;
  /// What the ledger can say of an island: of what is looked at elsewhere there is nothing.
  Certificate certificate(int island) const;
  double storage(int part) const { return before_[entry(part)]; }
  std::size_t bytes() const;

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  std::size_t entry(int part) const { return at(waves_.slot(part).entry); }
  void find_entries();
  void examine(const BatchSlot& slot, LaneRange lanes, const double* a, const double* b);
  void sum_up();
  void sum_up(int island);
  bool refine(int island, const CommittedStep& step);
  void judge_passivity(int island, const CommittedStep& step);
  void judge_account(int island, const CommittedStep& step);
  double prospect(int island) const;
  double rounding_of_step(int island) const;
  double rounding(int island) const { return rounding_[at(island)] + by_states_[at(island)]; }
  double measure_of(int island) const;
  void look_at_sources(int island, const CommittedStep& step) const;
  void see_rounding(int island, const CommittedStep& step);

  const WaveDiscretisation& waves_;
  const PartOrderReduction& parts_;
  const LedgerKernels* kernels_;
  TankOptions options_;
  bool guarded_;
  std::size_t islands_;
  std::vector<int> first_, step_;  // of the entries of parts; empty where these are irregular
  // By entry.
  AlignedVector change_of_, supply_of_, dissipated_of_, storage_, before_, residual_, tolerance_of_,
      mismatch_of_;
  // By island: of the step,
  AlignedVector change_, supply_, dissipated_, mismatch_, tolerance_, largest_residual_, excess_,
      accepted_, remarkable_;
  // of the start,
  AlignedVector stored_at_start_, tank_at_start_, size_, per_initial_energy_;
  // and of the run.
  AlignedVector gained_, gained_lost_, tank_, tank_lost_, stored_, stored_lost_, supplied_,
      supplied_lost_, dissipated_in_all_, dissipated_lost_, mismatched_, mismatched_lost_,
      given_up_, given_up_lost_, moved_, rounding_, by_states_, looked_at_, tolerated_,
      tolerated_of_step_, max_residual_, max_stored_, max_ratio_;
  mutable AlignedVector sent_;  // as in EnergyLedger
  std::vector<char> passive_;   // no part of the island is active
  std::vector<char> closed_;
  struct Finding {
    double worst_ratio = 0.0;
    int worst_part = -1;  // of the island, from 0
    std::int64_t worst_step = -1;
    bool violated = false;
    std::optional<BrokenLaw> broken_law;
    std::optional<EnergyGrowth> growth;
  };
  std::vector<Finding> findings_;
  struct Closed {
    EnergyTotals totals;
    Certificate certificate;
  };
  std::vector<std::unique_ptr<Closed>> kept_;  // of islands that are closed
  std::unique_ptr<StepRounding> rounding_of_;
  mutable ExtendedSums sums_of_parts_;
  std::int64_t steps_ = 0;
};

}  // namespace portwave
