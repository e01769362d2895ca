#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "adapters/files/scratch_folder.hpp"

namespace portwave::files {

/// What an archive may hold: limits that stop a small file from filling a disk.
namespace archive_limits {
inline constexpr std::uint64_t kFileBytes = std::uint64_t{1} << 30;
inline constexpr std::int64_t kMembers = 50'000;
inline constexpr std::uint64_t kDescriptionBytes = std::uint64_t{256} << 20;  ///< one XML file
/// Unpacked, all together: so much is always allowed, and beyond it kMostRatio times the file's own size.
inline constexpr std::uint64_t kFreeBytes = std::uint64_t{64} << 20;
inline constexpr std::uint64_t kMostRatio = 100;
inline constexpr std::uint64_t kUnpackedBytes = std::uint64_t{4} << 30;
}  // namespace archive_limits

/// An FMU or a package as a zip archive (libzip). Nothing is unpacked before it is asked for.
///
/// The whole archive is looked through at once: names that lead out of a folder, links, members that are
/// encrypted, and more or larger members than the limits allow are refused. Sizes that the archive states
/// are not trusted: bytes are counted as they come.
/// Errors  ConfigError.
class Archive {
 public:
  /// `what` it should be, for errors.
  explicit Archive(const std::filesystem::path& file, std::string_view what = "FMU");
  ~Archive();

  /// All of a member; empty where there is none.
  std::string content(std::string_view name) const;
  bool has(std::string_view name) const;
  /// Writes the members whose names begin with `prefix` to a folder, with their folders.
  void unpack(std::string_view prefix, const std::filesystem::path& folder) const;
  /// The folders below binaries/, for messages.
  std::string platforms() const;

 private:
  struct Zip;
  void check_members(std::uint64_t file_bytes);
  /// Calls `take` with one piece of a member after the other.
  void read(std::int64_t member, std::uint64_t most,
            const std::function<void(std::string_view)>& take) const;

  std::unique_ptr<Zip> zip_;
};

}  // namespace portwave::files
