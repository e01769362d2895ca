#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <sys/types.h>

namespace portwave {

/// A folder as `lies_within` wants it: absolute, links resolved.
std::filesystem::path plain_folder(const std::filesystem::path& folder);
/// Whether a path leads to something in a folder, or below it, wherever links lead. False where
/// nobody can tell.
bool lies_within(const std::filesystem::path& plain_folder, const std::filesystem::path& path);

/// Results are read in their folder: where a link leads out of it, what was made up to do harm would be
/// read as a result. Errors: std::runtime_error naming the file.
void refuse_to_leave(const std::filesystem::path& folder, const std::filesystem::path& path);

/// Reads a regular file from its beginning on, and waits for nobody: what has no end, or nobody writes
/// to, is refused.
class InputFile {
 public:
  /// `pipe`: whether a pipe will do; then whoever reads waits for those that write to it.
  explicit InputFile(const std::filesystem::path& path, bool pipe = false);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  /// Why it cannot be read, such as "is a device, not a file"; empty where it can.
  const std::string& problem() const { return problem_; }
  /// How many bytes came, 0 at the end; negative where reading failed, with errno set.
  ssize_t read(char* to, std::size_t most) const;

 private:
  std::string problem_;
  int descriptor_ = -1;
};

}  // namespace portwave
