#pragma once

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The version of portwave that these headers belong to, "major.minor.patch". A program may be linked
/// with another one: `version()` in runtime returns that.
inline constexpr char kVersion[] = "0.1.0";

}  // namespace portwave
