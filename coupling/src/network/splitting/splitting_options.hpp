#pragma once

#include <vector>

#include "portwave/coupling/method/splitting.hpp"
#include "portwave/coupling/network/condensed.hpp"

namespace portwave {

/// What is wrong with options of `strang` or `impulse`, or with a system for them.
Issues splitting_defects(const CondensedSystem& system, double step_s, const Splitting& options);

/// By block, whether it belongs to the slow flow of `impulse`. Errors: ConfigError where none does.
std::vector<bool> slow_blocks(const CondensedSystem& system, const Splitting& options);

/// Inputs at a place of a step, in `values`. Errors: NetworkFault.
void sample_inputs(const CondensedSystem& system, const Signal::StepPlace& place, double* values);

}  // namespace portwave
