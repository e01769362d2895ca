#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "line/commands.hpp"
#include "live/status_line.hpp"
#include "study/cells.hpp"

namespace portwave::cli {

inline constexpr const char* kScalingFile = "scaling.json";

/// A time in microseconds.
inline std::string us(std::optional<double> time_s) {
  return time_s ? fmt::format("{:.4g}", 1e6 * *time_s) : "-";
}

/// The scenario of the arguments; and a generated one of that size.
Scenario loaded(const StudyScalingArguments& arguments, StatusLine& status);
Scenario generated(const StudyScalingArguments& arguments, int size, StatusLine& status);

/// `portwave study scaling --ranks`, on every rank. Returns the exit code.
int study_over_ranks(const StudyScalingArguments& arguments, std::ostream& out, std::ostream& err);

}  // namespace portwave::cli
