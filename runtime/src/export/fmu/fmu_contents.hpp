#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "export/exported_model.hpp"

namespace portwave::exported {

/// A name that is an identifier in C: of the library in the FMU.
std::string identifier_of(const std::string& name);
/// The unit of the time integral of what has a unit.
std::string integral_unit(const std::string& unit);

/// What the descriptions say beside the variables.
struct Description {
  int fmi = 2;
  std::string about;  ///< of the scenario
  double start_s = 0.0, end_s = 0.0;
};

/// modelDescription.xml.
std::string model_description(const ExportedModel& model, const Description& description);
/// terminalsAndIcons.xml of FMI 3, and OspModelDescription.xml for FMI 2, which has no terminals. Empty where
/// there are no ports, or none whose domain OSP knows.
std::string terminals(const ExportedModel& model);
std::string osp_description(const ExportedModel& model);
bool is_known_to_osp(const PowerPort& port);

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

  /// The shared libraries that it needs, under the names by which it asks for them, but for those that every Linux
  /// has. Errors: ConfigError for one that this process has not loaded.
  std::vector<Member> companions() const;
  /// Starts an FMU of these resources. Errors: ConfigError with what it says.
  void expect_start(int fmi, const std::string& token, const std::filesystem::path& resources,
                    double start_s) const;

 private:
  void* handle_;
};

}  // namespace portwave::exported
