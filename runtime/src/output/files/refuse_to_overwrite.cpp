#include <optional>
#include <string>
#include <sys/stat.h>
#include <system_error>

#include <fmt/format.h>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave {
namespace {

/// A regular file, identified by device and number.
struct FileNumber {
  dev_t device = 0;
  ino_t number = 0;

  friend bool operator==(const FileNumber&, const FileNumber&) = default;
};

std::optional<FileNumber> file_number(const std::filesystem::path& path) {
  struct stat status = {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileNumber{status.st_dev, status.st_ino};
}

/// The one of `read` that a file is.
const std::filesystem::path* same_file(std::span<const std::filesystem::path> read,
                                       const std::filesystem::path& file) {
  const auto own = file_number(file);
  if (!own) return nullptr;
  for (const std::filesystem::path& path : read) {
    if (file_number(path) == own) return &path;
  }
  return nullptr;
}

}  // namespace

void refuse_to_overwrite(std::span<const std::filesystem::path> read,
                         const std::filesystem::path& place) {
  if (read.empty()) return;
  const auto expect_other = [&](const std::filesystem::path& file) {
    const std::filesystem::path* const same = same_file(read, file);
    if (same == nullptr) return;
    const std::string as =
        *same == file ? "" : fmt::format(" (it is the same file as {})", in_quotes(same->string()));
    throw ConfigError(
        "", fmt::format("{} is a file that this run reads{}, and what it writes would take the "
                        "place of that file or remove it.\n  Write to another folder or file, or "
                        "give the file that is read another name. Nothing was run, and nothing "
                        "was written.",
                        in_quotes(file.string()), as));
  };
  std::error_code error;
  if (!std::filesystem::is_directory(place, error)) return expect_other(place);
  for (auto own = std::filesystem::recursive_directory_iterator(place, error);
       !error && own != std::filesystem::recursive_directory_iterator(); own.increment(error)) {
    expect_other(own->path());
  }
}

}  // namespace portwave
