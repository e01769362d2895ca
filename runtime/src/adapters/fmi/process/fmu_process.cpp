#include "adapters/fmi/process/fmu_process.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <new>
#include <spawn.h>
#include <string_view>
#include <sys/mman.h>
#include <sys/wait.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/printable.hpp"

namespace portwave::fmi {
namespace {

using SteadyClock = Doorbell::Clock;

constexpr const char* kHostName = "portwave-fmu-host";
constexpr const char* kHostVariable = "PORTWAVE_FMU_HOST";
constexpr std::size_t kFirstArea = std::size_t{64} << 10;
constexpr double kStartLimit_s = 60.0;
constexpr double kStartsCallWithin_s = 30.0;
constexpr auto kLookEvery = std::chrono::milliseconds(20);  // whether the process is still there

std::chrono::nanoseconds duration_of(double seconds) {
  constexpr double kMost_s = 1e9;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(1e9 * std::min(seconds, kMost_s)));
}

[[noreturn]] void refuse_start(std::string_view what, int error) {
  throw ConfigError("/process", fmt::format("the process of the FMU cannot be started: {}: {}",
                                            what, std::generic_category().message(error)));
}

std::byte* mapped(int memory, std::size_t begin, std::size_t bytes) {
  void* const out =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, static_cast<off_t>(begin));
  if (out == MAP_FAILED) refuse_start("shared memory", errno);
  return static_cast<std::byte*>(out);
}

/// Folders in which the host may lie.
std::vector<std::filesystem::path> host_folders() {
  std::vector<std::filesystem::path> out;
  const auto add_around = [&](const std::filesystem::path& folder) {
    if (folder.empty()) return;
    for (const char* const way : {".", "../libexec/portwave", "../../libexec/portwave"}) {
      out.push_back((folder / way).lexically_normal());
    }
  };
  std::error_code ignored;
  add_around(std::filesystem::read_symlink("/proc/self/exe", ignored).parent_path());
  Dl_info own = {};
  if (::dladdr(reinterpret_cast<const void*>(&find_fmu_host), &own) != 0 &&
      own.dli_fname != nullptr) {
    add_around(std::filesystem::canonical(own.dli_fname, ignored).parent_path());
  }
#ifdef PORTWAVE_LIBEXEC
  out.emplace_back(PORTWAVE_LIBEXEC);
#endif
  std::vector<std::filesystem::path> once;
  for (const auto& folder : out) {
    if (std::ranges::find(once, folder) == once.end()) once.push_back(folder);
  }
  return once;
}

/// A descriptor that keeps clear of those that the host gets.
int out_of_the_way(int descriptor) {
  constexpr int kLeast = 16;
  if (descriptor < 0) return descriptor;
  const int moved = ::fcntl(descriptor, F_DUPFD_CLOEXEC, kLeast);
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return moved;
}

class SpawnSettings {
 public:
  SpawnSettings(int channel, int lifeline) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, channel, kChannelDescriptor);
    ::posix_spawn_file_actions_adddup2(&actions_, lifeline, kLifelineDescriptor);
    ::posix_spawn_file_actions_addclosefrom_np(&actions_, kLifelineDescriptor + 1);
    ::posix_spawnattr_init(&attributes_);
    // An interrupt from the terminal is for the engine, which ends the run in order.
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  }
  ~SpawnSettings() {
    ::posix_spawnattr_destroy(&attributes_);
    ::posix_spawn_file_actions_destroy(&actions_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  int spawn(pid_t& process, const std::filesystem::path& program) const {
    std::string name = program.string();
    std::string word = "--channel";
    char* const arguments[] = {name.data(), word.data(), nullptr};
    return ::posix_spawn(&process, name.c_str(), &actions_, &attributes_, arguments, environ);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

template <std::size_t size>
std::string text_in(const char (&bytes)[size]) {
  return {bytes, ::strnlen(bytes, size)};
}

}  // namespace

std::filesystem::path find_fmu_host() {
  std::error_code ignored;
  if (const char* const given = std::getenv(kHostVariable); given != nullptr && *given != '\0') {
    if (std::filesystem::is_regular_file(given, ignored)) return given;
    throw ConfigError(
        "/process", fmt::format("{}, which {} names, is no file", in_quotes(given), kHostVariable));
  }
  std::vector<std::string> places;
  for (const std::filesystem::path& folder : host_folders()) {
    const std::filesystem::path file = folder / kHostName;
    if (std::filesystem::is_regular_file(file, ignored)) return file;
    places.push_back(file.string());
  }
  throw ConfigError(
      "/process",
      fmt::format("needs the program {}, which is built and installed with portwave, and was not "
                  "found.\nLooked for: {}.\n{} names another place",
                  kHostName, fmt::join(places, ", "), kHostVariable));
}

HostProcess::HostProcess() : owner_(::getpid()) {
  const std::filesystem::path program = find_fmu_host();
  try {
    start(program);
    expect_this_version(program);
  } catch (...) {
    kill();
    close_all();
    throw;
  }
}

HostProcess::~HostProcess() {
  kill();
  close_all();
}

void HostProcess::start(const std::filesystem::path& program) {
  memory_ = out_of_the_way(::memfd_create("portwave-fmu", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (memory_ < 0) refuse_start("shared memory", errno);
  // What is mapped here must not be taken away by the other side.
  if (::fcntl(memory_, F_ADD_SEALS, F_SEAL_SHRINK) != 0) refuse_start("shared memory", errno);
  if (!enlarge_area(kFirstArea)) refuse_start("shared memory", ENOMEM);
  channel_ = new (mapped(memory_, 0, kAreaBegins)) Channel();
  map_area();
  std::strncpy(channel_->engine_version, PORTWAVE_VERSION, Channel::kVersionBytes - 1);

  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) refuse_start("pipe", errno);
  const int theirs = out_of_the_way(ends[0]);
  lifeline_ = out_of_the_way(ends[1]);
  pid_t process = -1;
  const int error =
      theirs < 0 || lifeline_ < 0 ? EMFILE : SpawnSettings(memory_, theirs).spawn(process, program);
  if (theirs >= 0) ::close(theirs);
  if (error != 0) refuse_start(in_quotes(program.string()), error);
  process_ = process;
}

void HostProcess::expect_this_version(const std::filesystem::path& program) {
  const std::string name = in_quotes(program.string());
  switch (call(1, kStartLimit_s)) {
    case End::answered:
      break;
    case End::broken:
    case End::ended:
      throw ConfigError("/process",
                        fmt::format("{} ended with {} before it ran anything: is it the {} of this "
                                    "portwave?",
                                    name, how_it_ended(), kHostName));
    case End::timed_out:
      throw ConfigError("/process", fmt::format("{} did not answer within {} s: is it the {} of "
                                                "this portwave?",
                                                name, kStartLimit_s, kHostName));
  }
  const std::string version = text_in(channel_->host_version);
  if (channel_->host_protocol == kFmuProtocol && version == PORTWAVE_VERSION) return;
  throw ConfigError(
      "/process",
      fmt::format("{} is of portwave {}, protocol {}, and this is portwave {}, protocol {}: "
                  "install both from one build; {} names another one",
                  name, printable(version), channel_->host_protocol, PORTWAVE_VERSION, kFmuProtocol,
                  kHostVariable));
}

bool HostProcess::enlarge_area(std::size_t bytes) {
  // Here, so that writing to it cannot fail.
  const auto all = static_cast<off_t>(kAreaBegins + bytes);
  if (::posix_fallocate(memory_, 0, all) != 0) return false;
  area_bytes_ = bytes;
  return true;
}

void HostProcess::map_area() {
  std::byte* const area = mapped(memory_, kAreaBegins, area_bytes_);
  if (!area_.empty()) ::munmap(area_.data(), area_.size());
  area_ = {area, area_bytes_};
}

void HostProcess::close_all() {
  if (channel_ != nullptr) ::munmap(channel_, kAreaBegins);
  if (!area_.empty()) ::munmap(area_.data(), area_.size());
  channel_ = nullptr;
  area_ = {};
  for (int* const own : {&memory_, &lifeline_}) {
    if (*own >= 0) ::close(*own);
    *own = -1;
  }
}

bool HostProcess::is_ours() const { return ::getpid() == owner_; }

HostProcess::End HostProcess::call(std::size_t calls, double time_limit_s) {
  const std::uint32_t seen = channel_->answer.rung();
  const auto limit = duration_of(time_limit_s);
  const SteadyClock::time_point start = SteadyClock::now();
  // Until the host begins a call it may have to wait for a processor, which is no fault of the FMU.
  const SteadyClock::time_point begins = start + std::max(limit, duration_of(kStartsCallWithin_s));
  const SteadyClock::time_point last =
      begins + duration_of(time_limit_s * static_cast<double>(calls));
  channel_->request.ring();
  for (;;) {
    // When it began the call that it is in: what it says of that may be anything.
    const std::int64_t since_ns = channel_->since_ns.load();
    const SteadyClock::time_point since{std::chrono::nanoseconds(since_ns)};
    const bool has_begun = since >= start && since <= SteadyClock::now();
    const SteadyClock::time_point until = std::min(has_begun ? since + limit : begins, last);
    if (channel_->answer.wait(seen, std::min(until, SteadyClock::now() + kLookEvery))) {
      return channel_->answer.rung() == seen + 1 ? End::answered : End::broken;
    }
    if (has_ended() && channel_->answer.rung() == seen)
      return is_whole() ? End::ended : End::broken;
    const bool is_in_the_same = channel_->since_ns.load() == since_ns;
    if (SteadyClock::now() >= until && (is_in_the_same || until == last)) {
      return is_whole() ? End::timed_out : End::broken;
    }
  }
}

bool HostProcess::is_whole() const { return channel_->magic == Channel::kMagic; }

bool HostProcess::has_ended() {
  if (process_ < 0) return true;
  siginfo_t info = {};
  const int result =
      ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT);
  if (result != 0) return errno == ECHILD;  // where the program ignores SIGCHLD
  return info.si_pid == process_;
}

bool HostProcess::ends_within(double seconds) {
  const SteadyClock::time_point last = SteadyClock::now() + duration_of(seconds);
  auto pause = std::chrono::microseconds(50);
  while (!has_ended()) {
    if (SteadyClock::now() >= last) return false;
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(2000));
  }
  return true;
}

void HostProcess::kill() {
  if (process_ < 0 || !is_ours()) return;
  // While it is not waited for, no other process group can have its number.
  siginfo_t info = {};
  const bool is_known =
      ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOHANG | WNOWAIT) == 0;
  if (is_known) {
    ::kill(-process_, SIGKILL);
    if (info.si_pid != process_) ::kill(process_, SIGKILL);
    while (::waitpid(process_, &status_, 0) < 0 && errno == EINTR) {
    }
  }
  process_ = -1;
}

std::string HostProcess::how_it_ended() {
  kill();
  if (WIFEXITED(status_)) return fmt::format("exit code {}", WEXITSTATUS(status_));
  if (!WIFSIGNALED(status_)) return "an unknown status";
  const int signal = WTERMSIG(status_);
  const char* const name = ::sigabbrev_np(signal);
  const char* const words = ::sigdescr_np(signal);
  if (name == nullptr || words == nullptr) return fmt::format("signal {}", signal);
  return fmt::format("signal SIG{} ({})", name, words);
}

bool HostProcess::was_ended_from_outside() const {
  if (!WIFSIGNALED(status_)) return false;
  const int signal = WTERMSIG(status_);
  return signal == SIGKILL || signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

}  // namespace portwave::fmi
