#pragma once

#include <string_view>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

// What a summary says as JSON and as text.

/// The run couples by waves.
bool has_waves(const RunSummary& summary);
/// It does, and nobody asked for convergence.
bool is_open(const RunSummary& summary);
/// Something of the method was left to "auto".
bool is_automatic(const CouplingMethod& method);
/// The law as people write it.
std::string_view name_of(BrokenLaw::Law law);
/// Whether H ever exceeded what was there and supplied.
std::string_view energy_safety(const RunSummary& summary);

}  // namespace portwave
