#pragma once

#include <string_view>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// As the functions of this name in part_recipes.hpp, without a scenario: for parts that were built from the
/// catalogue and whose parameters are numbers, truth values and choices (description_of). `NetworkBuilder` and
/// scenarios also know lists.
/// Errors: the same; std::logic_error for other parts.
void set_parameter(Stepper& stepper, std::string_view path, double value);
double parameter(const Stepper& stepper, std::string_view path);

}  // namespace portwave
