#pragma once

#include <filesystem>

#include "portwave/runtime/scenario/plugins.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// True when the library of that name is in this process, changed since or not.
bool is_loaded_plugin(const std::filesystem::path& file);

/// Reads "plugins" and loads what is there; names are relative to `folder`. False, and noted, when
/// some is missing: then types may be unknown that are none of the file's faults.
bool read_plugins(const Node& node, const std::filesystem::path& folder, Plugins plugins);
/// Schema of "plugins".
Json plugins_schema();

}  // namespace portwave::scenario_file
