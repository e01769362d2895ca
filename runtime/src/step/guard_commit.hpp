#pragma once

#include <functional>
#include <span>

#include "parallel/executor.hpp"
#include "portwave/coupling/energy/guard.hpp"

namespace portwave {

/// Commits again, until the guard is content, what would overdraw a tank: with the nearest waves
/// that there is energy for. `guard` has begun on the step in `arrays`, which is tallied in
/// `ledger`. `committed_anew` is called after each commit, before anybody looks at it. Returns what
/// failed where no commit can be had.
PhaseStatus commit_within_tanks(PassivityGuard& guard, EnergyLedger& ledger, Executor& executor,
                                const StepArrays& arrays, std::span<IslandOutcome> outcomes,
                                const std::function<void()>& committed_anew);

/// For the guard, of an island with a tolerance: ½|P b̂ − u|² if it was met.
inline double met_gap_J(const IslandOutcome& outcome) {
  return outcome.converged ? outcome.gap.energy_J : PassivityGuard::kMissed;
}

/// The step in `arrays`, before it is accepted.
inline CommittedStep committed_in(const StepArrays& arrays) {
  return {arrays.record, arrays.next, arrays.a, arrays.b_next};
}

/// After a failed tally.
PhaseStatus energy_overflow(const EnergyLedger& ledger);

}  // namespace portwave
