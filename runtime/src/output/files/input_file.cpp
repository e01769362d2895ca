#include "output/files/input_file.hpp"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

/// The kind of an existing file that is not a regular one; empty otherwise.
std::string_view other_than_file(mode_t mode) {
  if (S_ISDIR(mode)) return "a folder";
  if (S_ISFIFO(mode)) return "a pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return S_ISCHR(mode) || S_ISBLK(mode) ? "a device" : "";
}

}  // namespace

std::filesystem::path plain_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const std::filesystem::path whole =
      std::filesystem::absolute(folder.empty() ? "." : folder, error);
  std::filesystem::path plain = std::filesystem::weakly_canonical(whole, error);
  if (error) plain = folder.lexically_normal();
  return plain.has_filename() ? plain : plain.parent_path();  // "folder/"
}

bool lies_within(const std::filesystem::path& plain_folder, const std::filesystem::path& path) {
  if (path.native().find('\0') != std::string::npos) return false;
  std::error_code error;
  // `weakly_canonical` leaves a relative path relative if no part of it exists.
  const std::filesystem::path whole = std::filesystem::absolute(path, error);
  if (error) return false;
  const std::filesystem::path plain = std::filesystem::weakly_canonical(whole, error);
  if (error) return false;  // links in a circle, and folders that may not be entered
  return std::ranges::mismatch(plain_folder, plain).in1 == plain_folder.end();
}

void refuse_to_leave(const std::filesystem::path& folder, const std::filesystem::path& path) {
  if (lies_within(plain_folder(folder), path)) return;
  throw std::runtime_error(
      fmt::format("\"{}\" leads out of the folder of the results, and is not read", path.string()));
}

InputFile::InputFile(const std::filesystem::path& path, bool pipe) {
  struct stat status = {};
  const auto is_refused = [&] {
    const bool is_pipe = S_ISFIFO(status.st_mode);
    const std::string_view other =
        pipe && is_pipe ? std::string_view() : other_than_file(status.st_mode);
    if (!other.empty()) problem_ = fmt::format("is {}, not a file", other);
    return !other.empty();
  };
  // Before it is opened, which some devices notice.
  if (::stat(path.c_str(), &status) == 0 && is_refused()) return;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor_ < 0 || ::fstat(descriptor_, &status) != 0) {
    problem_ = fmt::format("cannot be opened: {}", std::generic_category().message(errno));
    return;
  }
  if (is_refused()) return;  // what is there may be another by now
  if (S_ISFIFO(status.st_mode)) ::fcntl(descriptor_, F_SETFL, 0);
}

InputFile::InputFile(InputFile&& other) noexcept
    : problem_(std::move(other.problem_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

ssize_t InputFile::read(char* to, std::size_t most) const {
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, to, most);
  } while (count < 0 && errno == EINTR);
  return count;
}

}  // namespace portwave
