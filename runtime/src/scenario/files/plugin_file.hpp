#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "portwave/subsystems/catalogue/plugin.hpp"

namespace portwave::scenario_file {

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
