#include "portwave/runtime/output/checkpoint.hpp"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <span>
#include <stdexcept>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <zlib.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "output/files/durable_file.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/version.hpp"

namespace portwave {
namespace {

constexpr const char* kFolder = "checkpoint";
constexpr const char* kLast = "last.checkpoint";
constexpr const char* kBefore = "before.checkpoint";
constexpr const char* kNext = "next.checkpoint";
constexpr const char* kComplete = "complete.json";
constexpr const char* kLock = "lock";

/// Head of a file, before its members. Its checksum covers everything after it.
struct Head {
  char magic[24] = "portwave checkpoint";
  std::uint32_t format = 3;
  std::uint32_t checksum = 0;
  char version[16] = {};
  std::uint64_t run = 0, recorded = 0, snapshot = 0;  // bytes
};

std::uint32_t checksum_of(std::span<const std::byte> bytes) {
  const auto sum = ::crc32_z(0, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size());
  return static_cast<std::uint32_t>(sum);
}

constexpr std::size_t kCheckedFrom = offsetof(Head, checksum) + sizeof(Head::checksum);

/// An unfinished run, whether its checkpoints are usable or not.
bool holds_a_run(const std::filesystem::path& folder) {
  return is_there(folder / kLast) || is_there(folder / kBefore) || is_there(folder / kComplete);
}

/// Names of files in one folder: a list may be made up, and a name that is a path leads elsewhere.
std::vector<std::string> names_in(const nlohmann::json& list, const char* key) {
  auto names = list.at(key).get<std::vector<std::string>>();
  for (const std::string& name : names) {
    const bool is_name = !name.empty() && name != "." && name != ".." &&
                         name.find_first_of(std::string_view("/\0", 2)) == std::string::npos;
    if (!is_name)
      throw std::runtime_error(fmt::format("{} is no name of a result", in_quotes(name)));
  }
  return names;
}

/// Links lead where nobody has looked.
void refuse_link(const std::filesystem::path& folder) {
  std::error_code ignored;
  if (!std::filesystem::is_symlink(std::filesystem::symlink_status(folder, ignored))) return;
  throw std::runtime_error(
      fmt::format("\"{}\" is a link: checkpoints are in a folder of their own", folder.string()));
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::vector<std::byte> Checkpoint::to_bytes() const {
  const std::vector<std::byte> state = snapshot.to_bytes();
  Head head;
  std::string_view{kVersion}.copy(head.version, sizeof(head.version) - 1);
  head.run = run.size();
  head.recorded = recorded.size();
  head.snapshot = state.size();
  std::vector<std::byte> out(sizeof(head));
  out.reserve(sizeof(head) + run.size() + recorded.size() + state.size());
  out.insert(out.end(), bytes_of(run).begin(), bytes_of(run).end());
  out.insert(out.end(), recorded.begin(), recorded.end());
  out.insert(out.end(), state.begin(), state.end());
  std::memcpy(out.data(), &head, sizeof(head));
  head.checksum = checksum_of(std::span(out).subspan(kCheckedFrom));
  std::memcpy(out.data(), &head, sizeof(head));
  return out;
}

Checkpoint Checkpoint::from_bytes(std::span<const std::byte> bytes) {
  const auto refuse = [](std::string why) { throw std::invalid_argument(std::move(why)); };
  Head head;
  const Head own;
  if (bytes.size() < sizeof(head)) refuse("it is cut off: there is no whole head");
  std::memcpy(&head, bytes.data(), sizeof(head));
  if (std::memcmp(head.magic, own.magic, sizeof(head.magic)) != 0) refuse("it is no checkpoint");
  if (head.format != own.format) {
    refuse(fmt::format("its form is number {}, and this program knows number {}", head.format,
                       own.format));
  }
  head.version[sizeof(head.version) - 1] = '\0';
  const std::uint64_t rest = bytes.size() - sizeof(head);
  const bool fits = head.run <= rest && head.recorded <= rest - head.run &&
                    head.snapshot == rest - head.run - head.recorded;
  if (!fits) refuse("it is cut off, or was changed");
  if (checksum_of(bytes.subspan(kCheckedFrom)) != head.checksum) {
    refuse("it was changed: its checksum does not fit");
  }
  if (std::string_view{head.version} != kVersion) {
    refuse(fmt::format("it is of version {} of portwave, and this is {}", head.version, kVersion));
  }
  auto take = [&bytes, at = sizeof(head)](std::uint64_t size) mutable {
    const auto from = std::exchange(at, at + static_cast<std::size_t>(size));
    return bytes.subspan(from, static_cast<std::size_t>(size));
  };
  Checkpoint out;
  const std::span<const std::byte> run = take(head.run);
  out.run.assign(reinterpret_cast<const char*>(run.data()), run.size());
  const std::span<const std::byte> recorded = take(head.recorded);
  out.recorded.assign(recorded.begin(), recorded.end());
  out.snapshot = Snapshot::from_bytes(take(head.snapshot));
  return out;
}

CheckpointFolder::CheckpointFolder(std::filesystem::path results, For what)
    : results_(std::move(results)),
      folder_(results_ / kFolder),
      process_(::getpid()),
      goes_on_(what == For::going_on) {
  refuse_link(folder_);
  std::error_code error;
  if (goes_on_ && !std::filesystem::is_directory(folder_, error)) {
    throw nothing_to_go_on_with("it has no folder \"checkpoint\"");
  }
  std::filesystem::create_directories(folder_, error);
  if (error) {
    throw std::runtime_error(
        fmt::format("cannot create folder \"{}\": {}", folder_.string(), error.message()));
  }
  if (!goes_on_ && !is_there(folder_ / kLock) && !std::filesystem::is_empty(folder_, error)) {
    throw std::runtime_error(fmt::format(
        "\"{}\" is no folder of checkpoints, and would be removed at the end of the run",
        folder_.string()));
  }
  lock();
  has_checkpoint_ = holds_a_run(folder_);
  if (goes_on_ == has_checkpoint_) return;
  ::close(std::exchange(lock_, -1));
  if (goes_on_) throw nothing_to_go_on_with("there is no checkpoint yet");
  refuse_unfinished(results_);
}

std::filesystem::path CheckpointFolder::place_in(const std::filesystem::path& results) {
  return results / kFolder;
}

void CheckpointFolder::refuse_unfinished(const std::filesystem::path& results) {
  const std::filesystem::path folder = place_in(results);
  if (!holds_a_run(folder)) return;
  throw std::runtime_error(
      fmt::format("\"{}\" is that of a run that was not finished: go on with it (--resume), or "
                  "remove the folder",
                  folder.string()));
}

std::runtime_error CheckpointFolder::nothing_to_go_on_with(const char* why) const {
  return std::runtime_error(
      fmt::format("there is no run to go on with in \"{}\": {}", results_.string(),
                  is_there(results_ / "summary.json") ? "the one there has ended" : why));
}

CheckpointFolder::~CheckpointFolder() {
  if (lock_ < 0) return;
  if (!goes_on_ && !has_checkpoint_ && process_ == ::getpid()) {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  ::close(lock_);
}

void CheckpointFolder::lock() {
  const std::filesystem::path path = folder_ / kLock;
  lock_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (lock_ < 0) fail_at("write", path, errno);
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int error = errno;
  ::close(std::exchange(lock_, -1));
  if (error != EWOULDBLOCK) fail_at("lock", path, error);
  throw std::runtime_error(
      fmt::format("another process is at the run in \"{}\"", folder_.string()));
}

void CheckpointFolder::save(const Checkpoint& checkpoint) {
  const std::filesystem::path next = folder_ / kNext;
  try {
    write_through(next, checkpoint.to_bytes());
  } catch (const std::runtime_error&) {
    ::unlink(next.c_str());  // room for others
    throw;
  }
  // One that is not whole must not take the place of one that is.
  if (last_is_whole_) give_name(folder_ / kLast, folder_ / kBefore);
  last_is_whole_ = false;
  give_name(next, folder_ / kLast);
  sync_names(folder_);
  last_is_whole_ = true;
  if (!has_checkpoint_) sync_names(results_);
  has_checkpoint_ = true;
}

Checkpoint CheckpointFolder::load(std::vector<std::string>& refused) {
  for (const char* name : {kLast, kBefore}) {
    const std::filesystem::path path = folder_ / name;
    if (!is_there(path)) continue;
    try {
      Checkpoint out = Checkpoint::from_bytes(read_all(path));
      last_is_whole_ = name == kLast;
      return out;
    } catch (const std::exception& error) {
      refused.push_back(
          fmt::format("checkpoint \"{}\" is not used: {}", path.string(), error.what()));
    }
  }
  throw std::runtime_error(
      fmt::format("no checkpoint can be used:\n  {}", fmt::join(refused, "\n  ")));
}

void CheckpointFolder::publish(const std::vector<std::string>& names,
                               const std::vector<std::string>& obsolete,
                               const std::string& outcome) {
  const std::string list =
      nlohmann::json{{"publish", names}, {"remove", obsolete}, {"outcome", outcome}}.dump();
  const std::filesystem::path next = folder_ / kNext;
  write_through(next, bytes_of(list));
  give_name(next, folder_ / kComplete);
  sync_names(folder_);
  move_to_results(list);
}

bool CheckpointFolder::finish(std::string& outcome) {
  const std::filesystem::path path = folder_ / kComplete;
  if (!is_there(path)) return false;
  const std::vector<std::byte> bytes = read_all(path);
  const std::string list(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  try {
    outcome = nlohmann::json::parse(list).at("outcome").get<std::string>();
    move_to_results(list);
  } catch (const nlohmann::json::exception&) {
    throw std::runtime_error(fmt::format("\"{}\" was changed", path.string()));
  }
  return true;
}

void CheckpointFolder::move_to_results(const std::string& text) {
  const nlohmann::json list = nlohmann::json::parse(text);
  const std::vector<std::string> obsolete = names_in(list, "remove"),
                                 complete = names_in(list, "publish");
  // By a process that was killed; a result that stands there already is not obsolete.
  const auto was_moved = [&](const std::string& name) {
    return std::ranges::find(complete, name) != complete.end() && !is_there(folder_ / name);
  };
  for (const std::string& name : obsolete) {
    if (!was_moved(name)) remove_if_there(results_ / name);
  }
  for (const std::string& name : complete) {
    if (!was_moved(name)) give_name(folder_ / name, results_ / name);
  }
  sync_names(results_);
  for (const char* name : {kNext, kBefore, kLast, kComplete}) remove_if_there(folder_ / name);
  goes_on_ = has_checkpoint_ = false;  // the destructor removes the rest
}

}  // namespace portwave
