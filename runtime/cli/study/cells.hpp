#pragma once

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <portwave/coupling/impedance/tuning.hpp>

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

/// A time in microseconds.
inline std::string us(std::optional<double> time_s) {
  return time_s ? fmt::format("{:.4g}", 1e6 * *time_s) : "-";
}

/// "0.58"; "< 1e-10" where a single evaluation is enough, "inf" where it grows without bounds.
inline std::string contraction_text(double contraction) {
  return contraction < 1e-10 ? "< 1e-10" : fmt::format("{:.3g}", contraction);
}

/// "43", or "> 100" where the limit was not enough.
inline std::string evaluations_text(const PredictedRate& rate) {
  return fmt::format("{}{}", rate.converges ? "" : "> ", rate.evaluations);
}

}  // namespace portwave::cli
