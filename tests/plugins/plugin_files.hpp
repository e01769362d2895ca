#pragma once

#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <stdexcept>
#include <string>

#include <portwave/subsystems/catalogue/plugin.hpp>

#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"

namespace portwave::testing {

/// A plugin that was built with the tests: tests/fixtures/plugins, and the example.
inline std::filesystem::path built_plugin(const std::string& stem) {
  return std::filesystem::path(PORTWAVE_PLUGINS) / (stem + ".so");
}

/// A folder of plugins that a test makes.
class PluginFolder {
 public:
  std::filesystem::path path() const { return folder_.path(); }

  /// The plugin `faulty` by a name that says what it does.
  std::filesystem::path copy_of_faulty(const std::string& name) const {
    const std::filesystem::path file = folder_ / (name + ".so");
    std::filesystem::copy_file(built_plugin("faulty"), file,
                               std::filesystem::copy_options::overwrite_existing);
    return file;
  }
  /// The same, built with something else.
  std::filesystem::path built_with(const std::string& name,
                                   const std::function<void(PluginBuild&)>& change) const {
    std::string bytes = read_text(built_plugin("faulty"));
    PluginBuild build = plugin_build();
    const std::string own(reinterpret_cast<const char*>(&build), sizeof(build));
    const std::size_t place = bytes.find(own);
    if (place == std::string::npos) throw std::logic_error("the plugin does not say its build");
    change(build);
    std::memcpy(bytes.data() + place, &build, sizeof(build));
    return write(name + ".so", bytes);
  }
  std::filesystem::path write(const std::string& name, const std::string& bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }

 private:
  TemporaryFolder folder_;
};

/// The scenario of the example, with these plugins.
inline std::string solenoid_scenario(const std::string& plugins) {
  std::string text = read_text(source_folder() / "examples" / "plugin" / "solenoid.json");
  const std::string own = R"(["build/libsolenoid.so"])";
  return text.replace(text.find(own), own.size(), plugins);
}

}  // namespace portwave::testing
