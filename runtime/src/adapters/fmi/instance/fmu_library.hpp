#pragma once

#include <cstdint>
#include <filesystem>
#include <variant>

#include "adapters/fmi/standard/fmi_interface.hpp"
#include "adapters/fmi/standard/model_description.hpp"

namespace portwave::fmi {

/// The functions of an FMU's library, of either version.
using Functions = std::variant<v2::Functions, v3::Functions>;

/// What a library must have, by the description of its FMU.
struct LibraryNeeds {
  static LibraryNeeds of(const ModelDescription& model);

  bool has(VariableType type) const { return (types & bit_of(type)) != 0; }
  static std::uint32_t bit_of(VariableType type) {
    return std::uint32_t{1} << static_cast<unsigned>(type);
  }

  Version version = Version::v2;
  bool saves_state = false, writes_state = false;
  bool configures = false;  ///< structural parameters
  bool has_events = false, has_clocks = false;
  std::uint32_t types = 0;  ///< of its variables, one bit each
};

/// Loads a library into this process, which runs its constructors. It is never unloaded: threads and handlers
/// that it has made may outlive its instances.
/// Errors: ConfigError: a file that is no whole shared library for this processor, that cannot be loaded, lacks
/// functions, or is of another version of FMI.
Functions load_library(const std::filesystem::path& path, const LibraryNeeds& needs);

}  // namespace portwave::fmi
