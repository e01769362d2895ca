#pragma once

#include <string>

#include <fmt/format.h>

#include <portwave/coupling/impedance/tuning.hpp>

/// Predicted rates as `tune` and `study rate` write them.
namespace portwave::cli {

/// "0.58"; "< 1e-10" where a single evaluation is enough, "inf" where it grows without bounds.
inline std::string contraction_text(double contraction) {
  return contraction < 1e-10 ? "< 1e-10" : fmt::format("{:.3g}", contraction);
}

/// "43", or "> 100" where the limit was not enough.
inline std::string evaluations_text(const PredictedRate& rate) {
  return fmt::format("{}{}", rate.converges ? "" : "> ", rate.evaluations);
}

}  // namespace portwave::cli
