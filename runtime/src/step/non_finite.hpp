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

/// The failure of a step, and its iteration; −1: before the first.
struct FoundFault {
  int iteration = -1;
  PhaseStatus failure;
};

/// Finds the part that first made a NaN or infinity, and its iteration. The part that noticed it may only
/// have received it; so the iteration is run again from b, with every wave checked. Empty if no part made one
/// before it was noticed.
///
/// `record`: the record of the step; it is frozen again, with `input` if a part is driven. `noticed_at`: an
/// iteration or TaskOutcome::kCommit. `outcomes`: by island, those of the step that failed. Allocates.
std::optional<FoundFault> find_non_finite(const WaveDiscretisation& waves,
                                          const InnerUpdate& update, double* record,
                                          const double* input, std::span<const double> b,
                                          int noticed_at, std::span<const IslandOutcome> outcomes);

}  // namespace portwave
