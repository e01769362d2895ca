#pragma once

#include <string>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

/// Steps that were made although states were at odds.
std::string starts_at_odds_text(const RunSummary& summary);
/// What impulses took in all, and a line for each of the first few.
std::string impulses_text(const RunSummary& summary);

}  // namespace portwave
