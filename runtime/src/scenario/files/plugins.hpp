#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/runtime/scenario/plugins.hpp"
#include "portwave/subsystems/catalogue/plugin.hpp"
#include "scenario/reader/node.hpp"

namespace portwave::scenario_file {

/// True when the library of that name is in this process, changed since or not.
bool is_loaded_plugin(const std::filesystem::path& file);

/// Reads "plugins" and loads what is there; names are relative to `folder`. False, and noted, when
/// some is missing: then types may be unknown that are none of the file's faults.
bool read_plugins(const Node& node, const std::filesystem::path& folder, Plugins plugins);
/// Schema of "plugins".
Json plugins_schema();

/// What a file says of itself before it is loaded.
struct PluginFile {
  PluginBuild build = {};
  std::string problem;  ///< empty: it is a plugin, and `build` is what it was built with

  bool ok() const { return problem.empty(); }
};

/// Looks into a shared library without running any of it.
PluginFile inspect_plugin(const std::filesystem::path& file);
/// The same of its bytes.
PluginFile inspect_plugin_bytes(std::string_view bytes);

/// What keeps a plugin from working in a program, each in words; empty: nothing.
std::vector<std::string> differences(const PluginBuild& plugin, const PluginBuild& program);

}  // namespace portwave::scenario_file
