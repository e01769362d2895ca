#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "portwave/coupling/method/method.hpp"
#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "scenario/settings/names.hpp"

namespace portwave::scenario_file {

/// Whether a text holds "*" or "?".
bool is_pattern(std::string_view text);
/// "*" stands for any characters, dots included, "?" for one.
bool matches(std::string_view text, std::string_view pattern);

/// The quantities of a pattern, or of a whole part: states, efforts, flows and storages, and signals;
/// waves only where the pattern ends with their name. In the order of the parts; none: nothing is
/// called so.
std::vector<Quantity> quantities_like(const std::string& pattern, Names& names,
                                      const SignalGraph* signals, MethodKind method);
std::vector<Quantity> quantities_of_part(const std::string& name, Names& names, MethodKind method);

}  // namespace portwave::scenario_file
