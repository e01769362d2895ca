#include "portwave/coupling/method/number_range.hpp"

#include <cmath>

#include <fmt/format.h>

namespace portwave {

bool NumberRange::contains(double value) const {
  const bool above = minimum_excluded ? value > minimum : value >= minimum;
  const bool below = maximum_excluded ? value < maximum : value <= maximum;
  return above && below && std::isfinite(value);
}

std::string NumberRange::describe() const {
  std::string text = "a number";
  if (std::isfinite(minimum)) text += fmt::format(" {} {}", minimum_excluded ? ">" : ">=", minimum);
  if (!std::isfinite(maximum)) return text;
  if (std::isfinite(minimum)) text += " and";
  return text + fmt::format(" {} {}", maximum_excluded ? "<" : "<=", maximum);
}

}  // namespace portwave
