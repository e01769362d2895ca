#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "adapters/fmi/fmi_interface.hpp"
#include "adapters/fmi/fmu_archive.hpp"
#include "adapters/fmi/model_description.hpp"

namespace portwave::fmi {

/// The folder of binaries for this machine.
std::string platform_of(Version version);

/// An FMU file, unpacked and described, with its library loaded. Immutable; may be used by several threads.
///
/// The library is never unloaded: threads and handlers that it has made may outlive its instances. What was
/// unpacked is removed with the object.
class Fmu {
 public:
  /// Everything is checked before any code of the FMU runs; loading the library then runs its constructors.
  /// A file that is open already, and has not changed since, is shared.
  /// Errors: ConfigError: what FmuArchive and read_model_description refuse; no binary for this machine; a
  /// library that cannot be loaded, lacks functions, or is one of another version of FMI.
  static std::shared_ptr<const Fmu> open(const std::filesystem::path& file);

  Fmu(const Fmu&) = delete;
  Fmu& operator=(const Fmu&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const ModelDescription& description() const { return description_; }
  /// Ports that its terminals or its OSP description declare.
  const std::vector<DeclaredPort>& declared_ports() const { return ports_; }
  /// Null: it is of the other version.
  const v2::Functions* functions_2() const { return std::get_if<v2::Functions>(&functions_); }
  const v3::Functions* functions_3() const { return std::get_if<v3::Functions>(&functions_); }
  /// Its resources: a URI in FMI 2, a path with a slash at its end in FMI 3.
  std::string resources() const;

 private:
  explicit Fmu(const std::filesystem::path& file);
  void load_library();

  std::filesystem::path file_;
  ScratchFolder folder_;
  ModelDescription description_;
  std::vector<DeclaredPort> ports_;
  std::variant<v2::Functions, v3::Functions> functions_;
};

}  // namespace portwave::fmi
