#pragma once

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

/// Numbers as the studies write them; what is not known or not finite is left open.
namespace portwave::cli {

inline nlohmann::ordered_json number(std::optional<double> value) {
  return value && std::isfinite(*value) ? nlohmann::ordered_json(*value)
                                        : nlohmann::ordered_json(nullptr);
}

/// For tables: six significant digits.
inline std::string cell(std::optional<double> value) {
  return value && std::isfinite(*value) ? fmt::format("{:#.6g}", *value) : "-";
}

}  // namespace portwave::cli
