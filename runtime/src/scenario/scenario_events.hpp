#pragma once

#include "scenario/scenario_names.hpp"
#include "scenario/scenario_reader.hpp"
#include "scenario/scenario_settings.hpp"
#include "scenario/schema_tools.hpp"

namespace portwave::scenario_file {

/// "events", after "signals": what is watched.
void read_events(const Node& node, Names& names, RunSettings& settings);

/// Schema of "events".
Json events_schema();

}  // namespace portwave::scenario_file
