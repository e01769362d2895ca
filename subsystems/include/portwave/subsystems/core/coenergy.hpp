#pragma once

#include "portwave/subsystems/base/export.hpp"
#include "portwave/subsystems/core/component.hpp"

namespace PORTWAVE_EXPORT portwave {

/// ∂H/∂xᵢ of a part: the speed that belongs to a momentum, the force of an elongation, the current of a flux linkage.
/// Not a number where the part does not show its physics.
double coenergy(const Component& part, const double* x, int state);

}  // namespace portwave
