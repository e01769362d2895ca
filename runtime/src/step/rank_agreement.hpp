#pragma once

#include "portwave/runtime/step/stepper.hpp"
#include "ranks/rank_cut.hpp"

namespace portwave {

// Ranks that step different systems would wait for one another, or give wrong results. All ranks call each
// of these functions, which fail on all of them with the same RankError.

/// Whether all have the same program, system, initial states and options.
void expect_same_inputs(const System& system, const StepperOptions& options);
/// Whether all have derived the same data: impedances and energies, which depend on parameters.
void expect_same_stepper(const Stepper& stepper, Ranks& ranks);

/// Whether all have cut the system alike.
void expect_same_cut(const RankCut& cut, Ranks& ranks);

}  // namespace portwave
