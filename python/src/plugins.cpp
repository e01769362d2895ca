// Plugins: shared libraries whose types of parts go into the catalogue of this module.

#include "plugins.hpp"

#include <dlfcn.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <string>
#include <utility>
#include <vector>

#include "portwave/runtime/scenario/plugins.hpp"
#include "portwave/subsystems/base/error.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

/// The library that holds an address, as the system knows it.
std::string library_of(const void* address) {
  Dl_info info = {};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

/// Shows portwave's functions to the plugins. Python loads a module so that nobody sees its symbols;
/// they stay shown from here on, which is why this is not done before a plugin is loaded.
void show_portwave_to_plugins() {
  const std::string module = library_of(reinterpret_cast<const void*>(&show_portwave_to_plugins));
  // It is loaded already, and stays so: this handle is not closed.
  if (::dlopen(module.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_GLOBAL) == nullptr) {
    const char* const text = ::dlerror();
    throw portwave::ConfigError("", "this module cannot be shown to plugins: " +
                                        std::string(text == nullptr ? module.c_str() : text));
  }
  // portwave::catalogue(), a function that plugins use.
  const std::string shown = library_of(::dlsym(RTLD_DEFAULT, "_ZN8portwave9catalogueEv"));
  if (shown != module) {
    throw portwave::ConfigError(
        "",
        "this process has another portwave, which a plugin would use in place of this module: " +
            (shown.empty() ? "none is shown" : shown));
  }
}

/// The file, links resolved, and the names of its types.
std::pair<std::string, std::vector<std::string>> load_plugin(const std::string& path) {
  show_portwave_to_plugins();
  try {
    const portwave::LoadedPlugin& plugin = portwave::load_plugin(path);
    return {plugin.file.string(), plugin.types};
  } catch (const portwave::ConfigError& error) {
    portwave::Issues issues = error.issues();
    for (portwave::Issue& issue : issues) {
      issue.what.insert(0, "the plugin \"" + path + "\"" + (issue.where.empty() ? " " : ": "));
    }
    throw portwave::ConfigError(std::move(issues));
  }
}

}  // namespace

void bind_plugins(nb::module_& m) {
  m.def("load_plugin", &load_plugin, "path"_a);
  m.def("show_portwave_to_plugins", &show_portwave_to_plugins);
}
