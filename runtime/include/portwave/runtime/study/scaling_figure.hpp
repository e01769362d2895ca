#pragma once

#include <cstdint>
#include <string>

#include "portwave/runtime/study/scaling.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

enum class FigureFormat : std::uint8_t { svg, pdf };

/// The figure of a paper, 7 inches wide, as vectors: speed-up with the ideal line, efficiency, time per step
/// with its extremes, and weak scaling or the rate of steps of parts. Measured points are filled, predicted ones
/// open; dashed lines are predictions. Colours are told apart by people who see few.
std::string scaling_figure(const ScalingStudy& study, FigureFormat format);

}  // namespace portwave
