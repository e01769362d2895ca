#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Whether a scenario may load plugins: code that may do everything that the program may.
enum class Plugins {
  refused,  ///< except plugins that the program has loaded already
  allowed,
};

/// A plugin in this process.
struct LoadedPlugin {
  std::filesystem::path file;      ///< absolute, links resolved
  std::vector<std::string> types;  ///< names of its types, in the order in which it added them
};

/// Loads a shared library that was written with PORTWAVE_PLUGIN
/// (<portwave/subsystems/catalogue/plugin.hpp>) and takes its types into the catalogue, for the life
/// of the program. A library that is loaded already stays as it is.
///
/// The library takes portwave's functions from the program, which must export all of them: in CMake
/// portwave_enable_plugins(program). A plugin that brings a copy of portwave works in programs that
/// do not.
///
/// Errors  ConfigError with every defect. Before any code of the library runs: the file does not
///         exist, cannot be read, is no shared library or one for another processor, has no entry
///         of a plugin, or was built with another version of portwave, another standard library,
///         Eigen or sanitizer; it has changed since it was loaded. Then: the system cannot load it,
///         such as for missing symbols; its entry throws; it adds no type, or types with defects,
///         whose `where` is "/<type>" and the pointer of Catalogue::add. Nothing is added then.
/// Thread-safety  as Catalogue::add: not while another thread reads scenarios or the catalogue.
const LoadedPlugin& load_plugin(const std::filesystem::path& file);

}  // namespace portwave
