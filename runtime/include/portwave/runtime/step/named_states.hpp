#pragma once

#include <cstddef>
#include <span>

#include "portwave/coupling/system/cut_name.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The states of a stepper in the order of StateNames, part by part: those of a part that was cut count once.
/// `states` of the functions below has as many numbers. Errors: std::invalid_argument for another length.
std::size_t named_state_count(const System& system);
void get_named_states(const Stepper& stepper, std::span<double> states);
/// At a time within the last step. Errors: also as Stepper::state_at.
void get_named_states_at(const Stepper& stepper, double time_s, std::span<double> states);
/// Errors: also as Stepper::set_states.
void set_named_states(Stepper& stepper, std::span<const double> states);

}  // namespace portwave
