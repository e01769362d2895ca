#pragma once

#include <cstddef>

#include "core/lane_values.hpp"

namespace portwave {

/// Values of a lane group side by side.
template <int W>
struct Row {
  using Values = LaneValues<W>;
  static Values at(const double* values, int k) {
    return Values::from(values + static_cast<std::ptrdiff_t>(k) * W);
  }
  static void put(double* values, int k, const Values& what) {
    what.to(values + static_cast<std::ptrdiff_t>(k) * W);
  }
};

}  // namespace portwave
