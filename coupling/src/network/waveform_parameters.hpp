#pragma once

#include "portwave/coupling/network/dynamic_iteration.hpp"

namespace portwave {

/// The settings of an iteration with everything chosen that was left open. Errors: ConfigError with
/// every reason (see WaveformIteration).
DynamicParameters resolve_parameters(const CondensedSystem& system, double step_s,
                                     const DynamicIteration& given);

}  // namespace portwave
