#pragma once

#include <cstddef>
#include <stdexcept>
#include <string_view>

#include <fmt/format.h>

namespace portwave {

/// Checks a number that a caller has given: 0 ≤ number < count. Errors: std::out_of_range.
inline void expect_number(std::string_view what, int number, std::size_t count) {
  if (number >= 0 && static_cast<std::size_t>(number) < count) return;
  throw std::out_of_range(fmt::format("there is no {} {} of {}", what, number, count));
}

/// Checks the length of an array that a caller has given to be written to. Errors: std::invalid_argument.
inline void expect_room(std::size_t wanted, std::size_t given) {
  if (given == wanted) return;
  throw std::invalid_argument(
      fmt::format("there are {} numbers to read, and room for {} is given", wanted, given));
}

}  // namespace portwave
