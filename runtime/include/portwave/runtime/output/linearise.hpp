#pragma once

#include <string>
#include <vector>

#include "portwave/coupling/network/linearisation.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The system of a stepper where the run has come to: at its states, settable inputs and time. What
/// efforts and flows the states leave open counts as in the last step. Its signal graph is not part
/// of it: this is what a controller sees.
/// `outputs`: states ("arm.q1"), efforts and flows ("motor.shaft.flow"), by name.
/// Errors: std::out_of_range with the nearest name; std::invalid_argument for an output of another
/// kind; and those of linearised.
Linearisation linearise(const Stepper& stepper, const std::vector<std::string>& outputs = {});

}  // namespace portwave
