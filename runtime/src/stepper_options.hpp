#pragma once

#include <vector>

#include "portwave/runtime/stepper.hpp"

namespace portwave {

/// `system`, once `options` are found to fit it. Errors: ConfigError with every defect.
const System& checked(const System& system, const StepperOptions& options);
/// γ per scalar port of the system.
std::vector<double> impedance_by_port(const System& system, const CouplingMethod& method);

}  // namespace portwave
