#pragma once

#include <cstddef>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Numbers of an array of any number of dimensions, by rows: the last index runs fastest.
struct NumberArray {
  std::vector<std::size_t> shape;
  std::vector<double> values;
};

}  // namespace portwave
