#pragma once

#include <string>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace portwave {

// What an ensemble asks of its replicas.

Issues check_ensemble(const System& one, int replicas, const StepperOptions& options,
                      const EnsembleOptions& ensemble);
/// Why replicas cannot lie in lanes whatever their impedances; empty: they can.
std::string find_obstacle(const System& one, const StepperOptions& options);
/// Callbacks are called by one thread only, and some parts by one at a time.
bool allows_threads(const System& system);
/// Whether they share all components and laws of couplings.
bool have_same_parts(const System& a, const System& b);
/// Errors: ConfigError, unless `other` has the shape of the first one.
void refuse_other_shape(const System& one, const System& other, int replica);

}  // namespace portwave
