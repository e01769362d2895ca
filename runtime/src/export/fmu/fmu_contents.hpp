#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "export/exported_model.hpp"

namespace portwave::exported {

/// A name that is an identifier in C: of the library in the FMU.
std::string identifier_of(const std::string& name);
/// The folder of binaries for this machine.
std::string platform_of(int fmi);

/// What the descriptions say beside the variables.
struct Description {
  int fmi = 2;
  std::string about;  ///< of the scenario
  double start_s = 0.0, end_s = 0.0;
};

/// modelDescription.xml.
std::string model_description(const ExportedModel& model, const Description& description);
/// terminalsAndIcons.xml of FMI 3, and OspModelDescription.xml for FMI 2, which has no terminals. Empty where
/// there are no ports, or none that it knows.
std::string terminals(const ExportedModel& model);
std::string osp_description(const ExportedModel& model);

/// A file of an archive.
struct Member {
  std::string name;
  std::string content;         ///< unless `file` is given
  std::filesystem::path file;  ///< whose bytes it has
};
/// Writes a zip archive; `name` stands for it in errors. Errors: ConfigError.
void write_archive(const std::vector<Member>& members, const std::filesystem::path& out,
                   const std::filesystem::path& name);

/// The library that every FMU holds, loaded into this process, where it stays.
class Engine {
 public:
  /// Errors: ConfigError.
  explicit Engine(const std::filesystem::path& library);

  /// The shared libraries that it needs, wherever the system has found them, but for those that every Linux has.
  std::vector<std::filesystem::path> companions() const;
  /// Starts an FMU of these resources. Errors: ConfigError with what it says.
  void expect_start(int fmi, const std::string& token, const std::filesystem::path& resources,
                    double start_s) const;

 private:
  void* handle_;
};

}  // namespace portwave::exported
