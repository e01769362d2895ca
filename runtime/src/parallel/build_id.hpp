#pragma once

#include <cstddef>
#include <span>

namespace portwave {

/// What the linker has called this program, or the shared library that portwave is in: another build has
/// another name. Empty where there is none.
std::span<const std::byte> build_id();

}  // namespace portwave
