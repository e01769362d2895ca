#pragma once

#include "portwave/runtime/step/stepper.hpp"
#include "ranks/rank_cut.hpp"

namespace portwave {

// Ranks that step different things would wait for one another, or give wrong results. Each of these
// is called by all ranks, and fails on all of them with the same RankError.

/// Whether all have the same program, system, initial states and options.
void expect_same_inputs(const System& system, const StepperOptions& options);
/// Whether all have made the same of them: impedances and energies, which parameters show in.
void expect_same_stepper(const Stepper& stepper, Ranks& ranks);

/// Whether all have cut the system alike.
void expect_same_cut(const RankCut& cut, Ranks& ranks);

}  // namespace portwave
