#pragma once

#include <cstddef>

namespace portwave {

/// A number of parts, ports or lanes as an index of a standard container. Precondition: i >= 0.
constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace portwave
