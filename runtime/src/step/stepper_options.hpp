#pragma once

#include <vector>

#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// `system`, once `options` are found to fit it. Errors: ConfigError with every defect.
const System& checked(const System& system, const StepperOptions& options);
/// WaveCoupling::stages or, where they are left open, those that suit the tolerance of steps that
/// choose their size: what is cheapest at it on the examples. Errors: ConfigError where there is no
/// such tolerance.
int chosen_stages(const System& system, const StepperOptions& options);
/// For what is about waves. Errors: ConfigError ("/method/kind") when the method has none.
void refuse_without_waves(const CouplingMethod& method);
/// γ per scalar port of the system.
std::vector<double> impedance_by_port(const System& system, const WaveCoupling& method);

}  // namespace portwave
