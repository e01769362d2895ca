#include "output/files/durable_file.hpp"

#include <cerrno>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

namespace portwave {
namespace {

/// A descriptor that is closed at the end.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  bool is_open() const { return number_ >= 0; }
  int number() const { return number_; }
  int close() { return ::close(std::exchange(number_, -1)); }
  int release() { return std::exchange(number_, -1); }

 private:
  int number_;
};

constexpr int kToRead = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;  // what is no file makes nobody wait

}  // namespace

void fail_at(const char* what, const std::filesystem::path& path, int error) {
  throw std::runtime_error(fmt::format("cannot {} \"{}\": {}", what, path.string(),
                                       std::generic_category().message(error)));
}

void sync_names(const std::filesystem::path& folder) {
  const Descriptor descriptor(folder, O_RDONLY | O_DIRECTORY);
  if (!descriptor.is_open()) fail_at("read", folder, errno);
  if (::fsync(descriptor.number()) != 0 && errno != EINVAL) fail_at("write", folder, errno);
}

void write_through(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  Descriptor descriptor(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW);
  if (!descriptor.is_open()) fail_at("write", path, errno);
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor.number(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_at("write", path, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  if (::fsync(descriptor.number()) != 0 && errno != EINVAL) fail_at("write", path, errno);
  if (descriptor.close() != 0) fail_at("write", path, errno);
}

void give_name(const std::filesystem::path& from, const std::filesystem::path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) fail_at("write", to, errno);
}

void remove_if_there(const std::filesystem::path& path) {
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail_at("replace", path, errno);
}

bool is_there(const std::filesystem::path& path) {
  struct stat status = {};
  return ::lstat(path.c_str(), &status) == 0;
}

std::vector<std::byte> read_all(const std::filesystem::path& path) {
  const Descriptor descriptor(path, kToRead);
  if (!descriptor.is_open()) fail_at("read", path, errno);
  struct stat status = {};
  if (::fstat(descriptor.number(), &status) != 0) fail_at("read", path, errno);
  if (!S_ISREG(status.st_mode)) throw std::invalid_argument("it is no file");
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size));
  std::size_t read = 0;
  while (read < bytes.size()) {
    const ssize_t count = ::read(descriptor.number(), bytes.data() + read, bytes.size() - read);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail_at("read", path, errno);
    if (count == 0) break;
    read += static_cast<std::size_t>(count);
  }
  bytes.resize(read);
  return bytes;
}

std::FILE* open_own(const std::filesystem::path& path) {
  Descriptor descriptor(path, kToRead);
  if (!descriptor.is_open()) fail_at("read", path, errno);
  std::FILE* const file = ::fdopen(descriptor.number(), "rb");
  if (file == nullptr) fail_at("read", path, errno);
  descriptor.release();
  return file;
}

}  // namespace portwave
