#include "output/files/pending_file.hpp"

#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include <fmt/core.h>

#include "portwave/runtime/output/file_recorder.hpp"

namespace portwave {
namespace {

/// The hidden files of this process. Handlers of signals read it, which may use nothing that waits. More
/// files than places are left to the next run.
std::array<std::atomic<const char*>, 64> hidden_files = {};
std::atomic<pid_t> owner = 0;
static_assert(std::atomic<const char*>::is_always_lock_free);

int note_hidden(const std::filesystem::path& path) {
  owner = ::getpid();
  for (std::size_t i = 0; i < hidden_files.size(); ++i) {
    const char* nobody = nullptr;
    if (hidden_files[i].compare_exchange_strong(nobody, path.c_str())) return static_cast<int>(i);
  }
  return -1;
}

void forget_hidden(int place) {
  if (place >= 0) hidden_files[static_cast<std::size_t>(place)] = nullptr;
}

std::filesystem::path hidden_path(const std::filesystem::path& path) {
  return path.parent_path() / fmt::format(".{}.{}.part", path.filename().string(), ::getpid());
}

}  // namespace

void remove_unfinished_files() noexcept {
  if (owner != ::getpid()) return;  // a child of the process that writes them
  for (const std::atomic<const char*>& file : hidden_files) {
    if (const char* const path = file.load(); path != nullptr) ::unlink(path);
  }
}

PendingFile::PendingFile(std::filesystem::path path)
    : path_(std::move(path)),
      hidden_(hidden_path(path_)),
      buffer_(std::make_unique<char[]>(kCapacity)) {
  std::error_code ignored;
  if (std::filesystem::is_directory(std::filesystem::symlink_status(path_, ignored))) fail(EISDIR);
  place_ = note_hidden(hidden_);  // before there is one, so that no signal leaves it
  descriptor_ =
      ::open(hidden_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ >= 0) return;
  const int error = errno;
  forget_hidden(place_);
  fail(error);
}

PendingFile::PendingFile(std::filesystem::path path, std::filesystem::path meanwhile, bool goes_on)
    : path_(std::move(path)),
      hidden_(std::move(meanwhile)),
      buffer_(std::make_unique<char[]>(kCapacity)),
      stays_(true) {
  const int fresh = goes_on ? 0 : O_TRUNC;
  descriptor_ =
      ::open(hidden_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW | fresh, 0666);
  if (descriptor_ < 0) fail(errno);
}

PendingFile::~PendingFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!published_ && !stays_ && process_.is_own()) ::unlink(hidden_.c_str());
  forget_hidden(place_);
}

void PendingFile::append(std::string_view text) {
  if (text.size() > kCapacity) {
    flush();
    write(text);
    return;
  }
  std::memcpy(reserve(text.size()), text.data(), text.size());
  used_ += text.size();
}

void PendingFile::append(double value) {
  char* const first = reserve(kLongestNumber);
  const auto end =
      std::to_chars(first, first + kLongestNumber, value, std::chars_format::general, 17).ptr;
  used_ += static_cast<std::size_t>(end - first);
}

void PendingFile::append(std::int64_t value) {
  char* const first = reserve(kLongestNumber);
  used_ +=
      static_cast<std::size_t>(std::to_chars(first, first + kLongestNumber, value).ptr - first);
}

void PendingFile::archive(StateArchive& archive) {
  struct stat status = {};
  if (!archive.reads()) {
    cut();
    flush();
    sync();
    if (::fstat(descriptor_, &status) != 0) fail(errno);
    std::int64_t length = status.st_size;
    archive.value(length);
    return;
  }
  std::int64_t length = 0;
  archive.value(length);
  if (::fstat(descriptor_, &status) != 0) fail(errno);
  if (length < 0 || status.st_size < length) {
    throw std::runtime_error(
        fmt::format("\"{}\" has {} bytes, and had {} when the checkpoint was made",
                    hidden_.string(), status.st_size, length));
  }
  used_ = 0;
  length_ = length;
}

/// Cuts the file at its archived length.
void PendingFile::cut() {
  if (length_ < 0) return;
  if (::ftruncate(descriptor_, std::exchange(length_, -1)) != 0) fail(errno);
}

void PendingFile::close() {
  cut();
  flush();
  if (stays_) sync();
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor_, -1)) != 0) fail(errno);
}

void PendingFile::publish() {
  if (::rename(hidden_.c_str(), path_.c_str()) != 0) fail(errno);
  published_ = true;
}

char* PendingFile::reserve(std::size_t count) {
  if (kCapacity - used_ < count) flush();
  return buffer_.get() + used_;
}

void PendingFile::flush() {
  write({buffer_.get(), used_});
  used_ = 0;
}

void PendingFile::sync() {
  if (::fdatasync(descriptor_) != 0 && errno != EINVAL) fail(errno);  // EINVAL: no such thing there
}

void PendingFile::write(std::string_view text) {
  cut();
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor_, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    text.remove_prefix(static_cast<std::size_t>(count));
  }
}

void PendingFile::fail(int error) const {
  throw std::runtime_error(fmt::format("cannot write \"{}\": {}", path_.string(),
                                       std::generic_category().message(error)));
}

}  // namespace portwave
