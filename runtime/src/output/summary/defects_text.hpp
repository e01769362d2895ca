#pragma once

#include <string>
#include <vector>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

/// "subsystem "a"" or "subsystems "a", "b"".
std::string subsystems_text(const std::vector<std::string>& names);
/// What was foretold of parts that take no step back, and what it missed; empty where there are none.
std::string defects_text(const RunSummary& summary);

}  // namespace portwave
