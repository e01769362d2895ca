#pragma once

#include <vector>

#include "portwave/runtime/execution/stepper.hpp"

namespace portwave {

/// `system`, once `options` are found to fit it. Errors: ConfigError with every defect.
const System& checked(const System& system, const StepperOptions& options);
/// For what is about waves. Errors: ConfigError ("/method/kind") when the method has none.
void refuse_without_waves(const CouplingMethod& method);
/// γ per scalar port of the system.
std::vector<double> impedance_by_port(const System& system, const WaveCoupling& method);

}  // namespace portwave
