#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Number of lanes that the kernels take side by side: parts of a batch, or blocks of one class.
inline constexpr int kLaneGroup = 8;

}  // namespace portwave
