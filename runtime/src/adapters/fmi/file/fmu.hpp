#pragma once

#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "adapters/files/archive.hpp"
#include "adapters/fmi/instance/fmu_library.hpp"
#include "adapters/fmi/standard/model_description.hpp"

namespace portwave::fmi {

/// The folder of binaries for this machine.
std::string platform_of(Version version);

/// OspModelDescription.xml, wherever an FMU has it; empty: there is none.
std::string osp_description(const files::Archive& archive);

/// An FMU file, unpacked and described. May be used by several threads. What was unpacked is removed with the
/// object.
class Fmu {
 public:
  /// Everything is checked, and no code of the FMU runs. A file that is open already, and has not changed since,
  /// is shared.
  /// Errors: ConfigError: what files::Archive and read_model_description refuse; no binary for this machine.
  static std::shared_ptr<const Fmu> open(const std::filesystem::path& file);

  Fmu(const Fmu&) = delete;
  Fmu& operator=(const Fmu&) = delete;

  const std::filesystem::path& file() const { return file_; }
  const ModelDescription& description() const { return description_; }
  /// Ports that its terminals or its OSP description declare.
  const std::vector<DeclaredPort>& declared_ports() const { return ports_; }
  std::filesystem::path library() const;
  /// Of its library, which is loaded into this process at the first call. Errors: as load_library.
  const Functions& functions() const;
  /// Its resources: a URI in FMI 2, a path with a slash at its end in FMI 3.
  std::string resources() const;

 private:
  explicit Fmu(const std::filesystem::path& file);

  std::filesystem::path file_;
  files::ScratchFolder folder_;
  ModelDescription description_;
  std::vector<DeclaredPort> ports_;
  mutable std::mutex loading_;
  mutable std::optional<Functions> functions_;
};

}  // namespace portwave::fmi
