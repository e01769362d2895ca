#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "adapters/files/archive.hpp"

namespace portwave::structures {

/// The files of a structure: a package (.ssp), which is unpacked to a folder of its own, or the folder in which
/// its description lies.
class StructureFiles {
 public:
  /// Errors: ConfigError: what files::Archive refuses; a package without SystemStructure.ssd.
  explicit StructureFiles(const std::filesystem::path& file);

  /// The description: "SystemStructure.ssd", or the name of the file.
  const std::string& main() const { return main_; }
  const std::filesystem::path& folder() const { return folder_; }
  bool is_package() const { return scratch_ != nullptr; }
  /// The folder of an unpacked package; null: there is none.
  std::shared_ptr<const void> unpacked() const { return scratch_; }

  /// The file that a relative URI names, or one for a process on this machine (proxied_file). Nothing, and `refusal`
  /// told why: another scheme, a path that leads out of the package, no such file.
  std::optional<std::filesystem::path> find(const std::string& uri, std::string& refusal) const;
  /// Its text. Errors: ConfigError.
  static std::string text_of(const std::filesystem::path& file);

 private:
  std::shared_ptr<files::ScratchFolder> scratch_;
  std::filesystem::path folder_;
  std::string main_;
};

/// The URI of the file in "proxyfmu://localhost?file=URI", by which OSP names FMUs that run in a process of their own
/// on this machine; empty: it is none.
std::string_view proxied_file(std::string_view uri);

}  // namespace portwave::structures
