#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "adapters/files/xml_file.hpp"
#include "adapters/structures/structure_files.hpp"

namespace portwave::structures {

/// The descriptions and packages within a structure: each is read and unpacked once, whoever names it.
class SspPackages {
 public:
  /// `outermost`: the file of the structure, by whose size it is limited what the packages in it may unpack to.
  SspPackages(const StructureFiles& files, const std::filesystem::path& outermost,
              std::vector<std::shared_ptr<const void>>& unpacked);

  /// A package within the structure, unpacked.
  /// Errors: ConfigError: as StructureFiles; packages that are too large all together.
  const StructureFiles& package(const std::filesystem::path& file);
  /// A file of XML; `name` stands before its errors. Errors: ConfigError.
  const files::XmlFile& xml(const std::filesystem::path& file, const std::string& name);

  /// A description while it is read: it cannot hold itself.
  class Reading {
   public:
    /// Errors: ConfigError where it is being read already.
    Reading(SspPackages& packages, const std::filesystem::path& file);
    ~Reading() { packages_.on_the_way_.erase(key_); }
    Reading(const Reading&) = delete;
    Reading& operator=(const Reading&) = delete;

   private:
    SspPackages& packages_;
    std::string key_;
  };

 private:
  static std::string key_of(const std::filesystem::path& file);

  std::vector<std::shared_ptr<const void>>& unpacked_;
  std::uint64_t most_bytes_, bytes_ = 0;
  std::map<std::string, std::shared_ptr<const StructureFiles>> packages_;
  std::map<std::string, std::unique_ptr<const files::XmlFile>> texts_;
  std::set<std::string> on_the_way_;
};

}  // namespace portwave::structures
