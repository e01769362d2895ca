#include "adapters/files/scratch_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

#include <fmt/format.h>

#include "portwave/subsystems/base/error.hpp"

namespace portwave::files {
namespace {

constexpr std::string_view kScratchPrefix = "portwave-fmu-", kScratchMarks = "XXXXXX";
constexpr const char* kLockName = ".portwave-lock";
constexpr const char* kNewLockName = ".portwave-lock-new";

/// A lock that is held from the moment it has its name. -1: files cannot be locked there.
int make_lock(const std::filesystem::path& folder) {
  const std::string fresh = (folder / kNewLockName).string();
  const int lock = ::open(fresh.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (lock < 0) return -1;
  if (::flock(lock, LOCK_EX | LOCK_NB) == 0 &&
      ::rename(fresh.c_str(), (folder / kLockName).c_str()) == 0) {
    return lock;
  }
  ::unlink(fresh.c_str());
  ::close(lock);
  return -1;
}

/// The folder is this user's, and nobody holds its lock; it is held while it is removed.
void remove_if_abandoned(const std::filesystem::path& folder) {
  struct stat info = {};
  if (::lstat(folder.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || info.st_uid != ::geteuid())
    return;
  const int lock = ::open((folder / kLockName).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (lock < 0) return;
  if (::fstat(lock, &info) == 0 && S_ISREG(info.st_mode) && ::flock(lock, LOCK_EX | LOCK_NB) == 0) {
    std::error_code ignored;
    std::filesystem::remove_all(folder, ignored);
  }
  ::close(lock);
}

}  // namespace

ScratchFolder::ScratchFolder() {
  std::error_code error;
  std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  if (error) parent = "/tmp";
  static std::once_flag once;
  std::call_once(once, [&] { remove_abandoned_scratch(parent); });
  std::string name = (parent / fmt::format("{}{}", kScratchPrefix, kScratchMarks)).string();
  if (::mkdtemp(name.data()) == nullptr) {
    throw ConfigError("", fmt::format("cannot be unpacked to {}: {}", parent.string(),
                                      std::generic_category().message(errno)));
  }
  path_ = name;
  lock_ = make_lock(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  if (lock_ >= 0) ::close(lock_);
}

void remove_abandoned_scratch(const std::filesystem::path& parent) {
  std::error_code error;
  for (std::filesystem::directory_iterator own(parent, error), end; !error && own != end;
       own.increment(error)) {
    const std::string name = own->path().filename().string();
    const bool is_scratch = name.starts_with(kScratchPrefix) &&
                            name.size() == kScratchPrefix.size() + kScratchMarks.size();
    if (is_scratch) remove_if_abandoned(own->path());
  }
}

}  // namespace portwave::files
