#pragma once

#include <limits>
#include <string>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// The numbers that a value may take.
struct NumberRange {
  double minimum = -std::numeric_limits<double>::infinity();
  bool minimum_excluded = false;
  double maximum = std::numeric_limits<double>::infinity();
  bool maximum_excluded = false;

  static NumberRange positive() { return {.minimum = 0.0, .minimum_excluded = true}; }
  static NumberRange non_negative() { return {.minimum = 0.0}; }
  bool contains(double value) const;
  std::string describe() const;  ///< "a number > 0"
};

}  // namespace portwave
