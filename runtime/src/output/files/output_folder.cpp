#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "output/files/pending_file.hpp"
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

/// Start time of a process [s since 1970], by the present clock; nothing where the system does not tell it.
std::optional<double> start_of(int process) {
  const auto text_of = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  const std::string stat = text_of(fmt::format("/proc/{}/stat", process));
  const std::string system = text_of("/proc/stat");
  const std::size_t boot = system.find("btime "), end_of_name = stat.rfind(')');
  if (boot == std::string::npos || end_of_name == std::string::npos) return std::nullopt;
  std::istringstream fields(stat.substr(end_of_name + 1));
  std::string field;  // the third of the file first; the 22nd is wanted (proc(5))
  for (int i = 3; i <= 22; ++i) fields >> field;
  const double ticks = std::atof(field.c_str());
  return std::atof(system.c_str() + boot + 6) + ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

/// Whether the process of this number is not the one that wrote a file: it is gone, or it began after the
/// file was written to. In containers all runs may have the same number.
bool is_another_process(int process, const std::filesystem::path& file) {
  if (::kill(process, 0) != 0 && errno == ESRCH) return true;
  constexpr double kClocks_s = 2.0;  // the start is counted in ticks since the system was
  struct stat status = {};
  const std::optional<double> start = start_of(process);
  return start && ::lstat(file.c_str(), &status) == 0 &&
         static_cast<double>(status.st_mtime) + kClocks_s < *start;
}

/// The name of the file that a hidden one is the beginning of (PendingFile), where the process that wrote
/// it is gone; empty otherwise.
std::string left_behind_of(const std::filesystem::path& path) {
  const std::string all = path.filename().string();
  std::string_view name = all;
  constexpr std::string_view kEnd = ".part";
  if (!name.starts_with('.') || !name.ends_with(kEnd)) return {};
  name = name.substr(1, name.size() - 1 - kEnd.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos) return {};
  const std::string_view digits = name.substr(dot + 1), file = name.substr(0, dot);
  int process = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), process);
  if (error != std::errc{} || end != digits.data() + digits.size() || process <= 0) return {};
  return is_another_process(process, path) ? std::string(file) : std::string();
}

bool is_of_results(std::string_view file) {
  return file.ends_with(".csv") || file.ends_with(".rows") || file.ends_with(".json") ||
         file.ends_with(".h5") || file.ends_with(".html");
}

/// A process that was killed could not tidy up.
std::vector<std::filesystem::path> left_behind_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (is_of_results(left_behind_of(entry.path()))) out.push_back(entry.path());
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

void remove_left_behind(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.parent_path();
  std::error_code ignored;
  for (const auto& entry :
       std::filesystem::directory_iterator(folder.empty() ? "." : folder, ignored)) {
    if (left_behind_of(entry.path()) == file.filename().string()) ::unlink(entry.path().c_str());
  }
}

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
