#pragma once

#include <cmath>
#include <string>

#include <fmt/format.h>

namespace portwave {

/// A number in a message: NaN is shown without a sign.
inline std::string shown_number(double value) {
  return std::isnan(value) ? "nan" : fmt::format("{}", value);
}

}  // namespace portwave
