#pragma once

#include <vector>

#include "portwave/subsystems/subsystem.hpp"

namespace portwave {

/// The impedance that each scalar port of a part presents to one step of `step_s`, the other ports
/// at rest: 1/Y_jj where the port takes an effort, Z_jj where it takes a flow, of the part linearised
/// at its default state. Waves of that impedance are not reflected within the step.
std::vector<double> matched_impedances(const Subsystem& part, double step_s);

}  // namespace portwave
