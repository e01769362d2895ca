#pragma once

#include <string_view>

#include "portwave/runtime/output/summary.hpp"

namespace portwave {

// Facts of a summary that both its JSON and its text contain.

/// The run couples by waves.
bool has_waves(const RunSummary& summary);
/// It does, and no tolerance was set.
bool is_open(const RunSummary& summary);
/// Something of the method was left to "auto".
bool is_automatic(const CouplingMethod& method);
/// The law as people write it.
std::string_view name_of(BrokenLaw::Law law);
/// Whether H ever exceeded the initial and supplied energy.
std::string_view energy_safety(const RunSummary& summary);

}  // namespace portwave
