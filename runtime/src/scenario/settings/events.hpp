#pragma once

#include "scenario/reader/node.hpp"
#include "scenario/reader/schema_tools.hpp"
#include "scenario/settings/names.hpp"
#include "scenario/settings/settings.hpp"

namespace portwave::scenario_file {

/// "events", after "signals": what is watched.
void read_events(const Node& node, Names& names, RunSettings& settings);

/// Schema of "events".
Json events_schema();

}  // namespace portwave::scenario_file
