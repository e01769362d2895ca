#include "adapters/structures/ssp_packages.hpp"

#include <algorithm>
#include <system_error>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::structures {
namespace {

std::uint64_t bytes_in(const std::filesystem::path& folder) {
  std::uint64_t sum = 0;
  for (const auto& own : std::filesystem::recursive_directory_iterator(folder)) {
    if (own.is_regular_file()) sum += own.file_size();
  }
  return sum;
}

/// As for one archive: what packages in it unpack to counts as if it were in it.
std::uint64_t most_bytes_of(const std::filesystem::path& outermost) {
  using namespace files::archive_limits;
  std::error_code error;
  const std::uint64_t own = std::filesystem::file_size(outermost, error);
  return error ? kFreeBytes : std::clamp(kMostRatio * own, kFreeBytes, kUnpackedBytes);
}

}  // namespace

SspPackages::SspPackages(const StructureFiles& files, const std::filesystem::path& outermost,
                         std::vector<std::shared_ptr<const void>>& unpacked)
    : unpacked_(unpacked),
      most_bytes_(files.is_package() ? most_bytes_of(outermost)
                                     : files::archive_limits::kUnpackedBytes) {}

std::string SspPackages::key_of(const std::filesystem::path& file) {
  std::error_code error;
  const std::filesystem::path plain = std::filesystem::canonical(file, error);
  return error ? file.lexically_normal().string() : plain.string();
}

const StructureFiles& SspPackages::package(const std::filesystem::path& file) {
  std::shared_ptr<const StructureFiles>& known = packages_[key_of(file)];
  if (known != nullptr) return *known;
  const auto unpacked = std::make_shared<const StructureFiles>(file);
  bytes_ += unpacked->is_package() ? bytes_in(unpacked->folder()) : 0;
  if (bytes_ > most_bytes_) {
    throw ConfigError("",
                      fmt::format("the packages within the structure hold more than {} MiB: they "
                                  "are not unpacked",
                                  most_bytes_ >> 20));
  }
  known = unpacked;
  unpacked_.push_back(unpacked);
  return *known;
}

const files::XmlFile& SspPackages::xml(const std::filesystem::path& file, const std::string& name) {
  std::unique_ptr<const files::XmlFile>& known = texts_[key_of(file)];
  if (known == nullptr) {
    known = std::make_unique<const files::XmlFile>(name, StructureFiles::text_of(file));
  }
  return *known;
}

SspPackages::Reading::Reading(SspPackages& packages, const std::filesystem::path& file)
    : packages_(packages), key_(key_of(file)) {
  if (packages_.on_the_way_.insert(key_).second) return;
  throw ConfigError("", "is within itself: a structure cannot be a component of its own");
}

}  // namespace portwave::structures
