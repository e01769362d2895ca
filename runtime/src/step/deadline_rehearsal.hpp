#pragma once

#include "portwave/coupling/method/wave_coupling.hpp"
#include "portwave/runtime/step/options.hpp"

namespace portwave {

/// The rule of impedances that serves best where a deadline, or a pace, leaves no time to converge: some steps from
/// the start are made by each, in that time, and compared with converged ones. `automatic` where nothing can be said:
/// parts of other programs, which are not stepped for a trial, nothing that moves, large systems, long deadlines.
ImpedanceKind rule_for_deadline(const System& system, const StepperOptions& options);

}  // namespace portwave
