#include "step/guard_commit.hpp"

#include <algorithm>

namespace portwave {

PhaseStatus commit_within_tanks(PassivityGuard& guard, EnergyLedger& ledger, Executor& executor,
                                const StepArrays& arrays, std::span<IslandOutcome> outcomes,
                                const std::function<void()>& committed_anew) {
  for (;;) {
    guard.propose(arrays.a);
    StepPlan plan;
    plan.recommit = guard.searching();
    const StepResult result = executor.run(arrays, plan, outcomes);
    if (result.failed_at >= 0) {
      const int island = guard.island_of(std::max(result.failure.part, 0));
      if (!guard.reject(island)) return result.failure;
      continue;
    }
    committed_anew();
    if (!ledger.tally(committed_in(arrays))) return energy_overflow(ledger);
    if (guard.review(ledger, committed_in(arrays))) return {};
  }
}

PhaseStatus energy_overflow(const EnergyLedger& ledger) {
  return {ledger.first_non_finite(), StepFault::not_finite, "its energy overflows"};
}

}  // namespace portwave
