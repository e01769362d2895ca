#pragma once

// How messages name variables.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "adapters/fmi/standard/model_description.hpp"

namespace portwave::fmi {

inline constexpr std::size_t kMostShown = 12;  // names in a message

inline std::string_view role_name(Role role) {
  switch (role) {
    case Role::parameter:
      return "parameter";
    case Role::structural_parameter:
      return "structural parameter";
    case Role::calculated_parameter:
      return "calculated parameter";
    case Role::input:
      return "input";
    case Role::output:
      return "output";
    case Role::local:
      return "local variable";
    case Role::independent:
      return "independent variable";
  }
  return "variable";
}

inline std::string with_article(Role role) {
  const std::string_view name = role_name(role);
  const bool is_vowel = std::string_view("aeiou").find(name.front()) != std::string_view::npos;
  return fmt::format("{} {}", is_vowel ? "an" : "a", name);
}

inline std::string some_of(std::vector<std::string> names) {
  if (names.size() <= kMostShown) return fmt::format("{}", fmt::join(names, ", "));
  const std::size_t all = names.size();
  names.resize(kMostShown);
  return fmt::format("{}, ... ({} in all)", fmt::join(names, ", "), all);
}

inline std::string_view kind_of(VariableType type) {
  switch (type) {
    case VariableType::text:
      return "a text";
    case VariableType::clock:
      return "a clock";
    default:
      return "binary data";
  }
}

}  // namespace portwave::fmi
