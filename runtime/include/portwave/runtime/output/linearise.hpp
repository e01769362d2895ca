#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/network/linearisation.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The system of a stepper at its present states, settable inputs and time. Efforts and flows that the states
/// leave open are taken from the last step. Its signal graph is not included: this is the system that a
/// controller sees.
/// `outputs`: states ("arm.q1"), efforts and flows ("motor.shaft.flow"), by name.
/// Errors: std::out_of_range with the nearest name; std::invalid_argument for an output of another
/// kind; and those of linearised.
Linearisation linearise(const Stepper& stepper, const std::vector<std::string>& outputs = {});

}  // namespace portwave
