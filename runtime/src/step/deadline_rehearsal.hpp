#pragma once

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/runtime/step/options.hpp"

namespace portwave {

/// What serves best where a deadline, or a pace, leaves little time: some steps from the start are made in each way, in
/// that time, and compared with converged ones. `usual` where nothing can be said: parts of other programs, which are
/// not stepped for a trial, nothing that moves, large systems, long deadlines.
Anytime way_for_deadline(const System& system, const StepperOptions& options, const Anytime& usual);

}  // namespace portwave
