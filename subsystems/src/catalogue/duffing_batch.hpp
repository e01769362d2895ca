#pragma once

#include <memory>
#include <vector>

#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave {

/// Ports of a mass on a hardening spring: the free ends of coupling springs (flow-in) first, then
/// places on the mass itself (effort-in). State q, v, one elongation per spring; one force input.
enum class DuffingPorts {
  one_spring,              ///< duffing_oscillator
  two_springs_two_masses,  ///< duffing_node
};

/// The step solver of such parts: one increasing cubic per lane and solve, eight lanes side by
/// side, warm-started from the lane's last solve. All springs of a part are alike. `theta`: of a damped stage.
std::unique_ptr<StepBatch> make_duffing_batch(DuffingPorts ports,
                                              std::vector<DuffingOscillatorParameters> parts,
                                              double theta = 0.0);

/// The same with 2 or 3 stages, as `staged_part` counts ports and inputs: one cubic per stage, all
/// solved together by Newton's method.
std::unique_ptr<StepBatch> make_staged_duffing_batch(
    DuffingPorts ports, int stages, std::vector<DuffingOscillatorParameters> parts);

}  // namespace portwave
