#pragma once

#include <memory>
#include <span>
#include <vector>

#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_resistance.hpp"

namespace portwave {

/// Parts whose laws saturate, in lane groups.
std::unique_ptr<StepBatch> make_saturation_batch(std::vector<const NonlinearResistance*> parts);

}  // namespace portwave
