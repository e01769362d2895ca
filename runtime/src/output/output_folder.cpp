#include <cerrno>
#include <charconv>
#include <csignal>
#include <fcntl.h>
#include <stdexcept>
#include <string_view>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/pending_file.hpp"
#include "portwave/runtime/output/file_recorder.hpp"

namespace portwave {
namespace {

/// Creates the folder and its parents; false when it was there.
bool make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  const bool created = std::filesystem::create_directories(folder, error);
  if (!error && !std::filesystem::is_directory(folder, error) && !error) {
    error = std::make_error_code(std::errc::not_a_directory);
  }
  if (error) {
    throw std::runtime_error(
        fmt::format("cannot create folder \"{}\": {}", folder.string(), error.message()));
  }
  return created;
}

/// Whether a name is that of a hidden file of results (PendingFile), of a process that is gone.
bool is_left_behind(std::string_view name) {
  constexpr std::string_view kEnd = ".part";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return false;
  name = name.substr(1, name.size() - 1 - kEnd.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return false;
  const std::string_view digits = name.substr(dot + 1), file = name.substr(0, dot);
  int process = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  if (error != std::errc{} || end != digits.data() + digits.size() || process <= 0) return false;
  const bool is_of_results = file.ends_with(".csv") || file.ends_with(".rows") ||
                             file.ends_with(".json") || file.ends_with(".h5");
  return is_of_results && ::kill(process, 0) != 0 && errno == ESRCH;
}

/// A process that was killed could not tidy up.
std::vector<std::filesystem::path> left_behind_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (is_left_behind(entry.path().filename().string())) out.push_back(entry.path());
  }
  return out;
}

/// The folder, unless files in it that were read would be written over or removed.
std::filesystem::path spared(std::filesystem::path folder,
                             std::initializer_list<const char*> names_of_files,
                             std::span<const std::filesystem::path> read) {
  if (read.empty()) return folder;
  for (const char* name : names_of_files) refuse_to_overwrite(read, folder / name);
  for (const std::filesystem::path& path : left_behind_in(folder)) refuse_to_overwrite(read, path);
  return folder;
}

}  // namespace

OutputFolder::OutputFolder(std::filesystem::path path)
    : path_(std::move(path)), created_(make_folder(path_)), process_(::getpid()) {
  lock();
  for (const std::filesystem::path& own : left_behind_in(path_)) ::unlink(own.c_str());
}

void OutputFolder::lock() {
  lock_ = ::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  // File systems without locks have to do without.
  if (lock_ < 0 || ::flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  ::close(lock_);
  throw std::runtime_error(
      fmt::format("another run writes to \"{}\": two would mix their files", path_.string()));
}

OutputFolder::OutputFolder(std::filesystem::path path,
                           std::initializer_list<const char*> names_of_files,
                           std::span<const std::filesystem::path> read)
    : OutputFolder(spared(std::move(path), names_of_files, read)) {
  // Opening is the only sure way to know whether files can be made.
  for (const char* name : names_of_files) PendingFile probe(path_ / name);
}

OutputFolder::~OutputFolder() {
  if (lock_ >= 0) ::close(lock_);
  std::error_code ignored;
  if (created_ && process_ == ::getpid()) std::filesystem::remove(path_, ignored);
}

}  // namespace portwave
