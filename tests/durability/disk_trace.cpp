#include "durability/disk_trace.hpp"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <mutex>
#include <set>
#include <unistd.h>
#include <utility>

namespace portwave::testing {
namespace {

std::mutex mutex;
bool tracing = false;
long room = -1;  // bytes
std::vector<DiskCall> trace;

std::string path_of(int descriptor) {
  char path[PATH_MAX] = {};
  const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
  return ::readlink(link.c_str(), path, sizeof(path) - 1) < 0 ? std::string() : std::string(path);
}

void note(DiskCall call) {
  const std::lock_guard lock(mutex);
  if (tracing) trace.push_back(std::move(call));
}

/// How much of a write there is room for.
size_t take_room(size_t count) {
  const std::lock_guard lock(mutex);
  if (room < 0) return count;
  const size_t taken = std::min(count, static_cast<size_t>(room));
  room -= static_cast<long>(taken);
  return taken;
}

using Kind = DiskCall::Kind;

}  // namespace

void begin_disk_trace() {
  const std::lock_guard lock(mutex);
  trace.clear();
  tracing = true;
}

std::vector<DiskCall> end_disk_trace() {
  const std::lock_guard lock(mutex);
  tracing = false;
  return std::exchange(trace, {});
}

void limit_disk(long bytes) {
  const std::lock_guard lock(mutex);
  room = bytes;
}

std::vector<std::string> renamed_unsynced(const std::vector<DiskCall>& calls) {
  std::vector<std::string> found;
  std::set<std::string> dirty;
  for (const DiskCall& call : calls) {
    if (call.kind == Kind::write) dirty.insert(call.path);
    if (call.kind == Kind::sync) dirty.erase(call.path);
    if (call.kind == Kind::rename && dirty.erase(call.path) > 0) found.push_back(call.path);
  }
  return found;
}

std::vector<std::string> left_unsynced(const std::vector<DiskCall>& calls) {
  std::set<std::string> dirty;
  for (const DiskCall& call : calls) {
    if (call.kind == Kind::write) dirty.insert(call.path);
    if (call.kind == Kind::sync || call.kind == Kind::unlink) dirty.erase(call.path);
  }
  return {dirty.begin(), dirty.end()};
}

std::vector<std::string> names_left_unsynced(const std::vector<DiskCall>& calls) {
  std::set<std::string> dirty;
  const auto folder_of = [](const std::string& path) {
    return std::filesystem::path(path).parent_path().string();
  };
  for (const DiskCall& call : calls) {
    if (call.kind == Kind::rename) dirty.insert({folder_of(call.to)});
    if (call.kind == Kind::sync) dirty.erase(call.path);
  }
  return {dirty.begin(), dirty.end()};
}

}  // namespace portwave::testing

using portwave::testing::DiskCall;

extern "C" {

ssize_t __real_write(int descriptor, const void* bytes, size_t count);
int __real_fsync(int descriptor);
int __real_fdatasync(int descriptor);
int __real_rename(const char* from, const char* to);
int __real_unlink(const char* path);

ssize_t __wrap_write(int descriptor, const void* bytes, size_t count) {
  portwave::testing::note({DiskCall::Kind::write, portwave::testing::path_of(descriptor), {}});
  const size_t taken = portwave::testing::take_room(count);
  if (taken > 0 || count == 0) return __real_write(descriptor, bytes, taken);
  errno = ENOSPC;
  return -1;
}
int __wrap_fsync(int descriptor) {
  portwave::testing::note({DiskCall::Kind::sync, portwave::testing::path_of(descriptor), {}});
  return __real_fsync(descriptor);
}
int __wrap_fdatasync(int descriptor) {
  portwave::testing::note({DiskCall::Kind::sync, portwave::testing::path_of(descriptor), {}});
  return __real_fdatasync(descriptor);
}
int __wrap_rename(const char* from, const char* to) {
  portwave::testing::note({DiskCall::Kind::rename, from, to});
  return __real_rename(from, to);
}
int __wrap_unlink(const char* path) {
  portwave::testing::note({DiskCall::Kind::unlink, path, {}});
  return __real_unlink(path);
}

}  // extern "C"
