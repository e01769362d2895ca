#pragma once

#include <optional>
#include <span>

#include "parallel/island_iteration.hpp"
#include "portwave/coupling/energy/energy_ledger.hpp"
#include "portwave/coupling/waves/wave_iteration.hpp"

namespace portwave {

/// Errors: ConfigError where the energies of states, tanks or waves are not finite.
void refuse_non_finite_start(const WaveDiscretisation& waves, const EnergyLedger& ledger,
                             std::span<const double> b, const TankOptions& tank);

/// The failure of a step: iteration −1 is before the first.
struct FoundFault {
  int iteration = -1;
  PhaseStatus failure;
};

/// A NaN or infinity was noticed at some iteration or the commit, perhaps by a part that received it: the
/// iteration is run again from b, with every wave checked, for the first part and iteration that made one.
/// Empty if none did before.
///
/// `record`: that of the step, which is frozen again (with `input`, if any is driven).
/// `noticed_at`: an iteration or TaskOutcome::kCommit. `outcomes`: of the islands in the step that
/// failed. Allocates.
std::optional<FoundFault> find_non_finite(const WaveDiscretisation& waves,
                                          const InnerUpdate& update, double* record,
                                          const double* input, std::span<const double> b,
                                          int noticed_at, std::span<const IslandOutcome> outcomes);

}  // namespace portwave
