#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <sys/types.h>

#include "adapters/fmi/process/fmu_message.hpp"

namespace portwave::fmi {

/// The program that runs FMUs in processes of their own: where PORTWAVE_FMU_HOST says; else beside the program or
/// the library that this code is in, or in the libexec folder of either; else where portwave was installed to.
/// Errors: ConfigError at "/process", with all places.
std::filesystem::path find_fmu_host();

/// A process that runs one instance of an FMU, as its engine sees it. One thread at a time.
///
/// It is started by posix_spawn, in a process group of its own, and has no descriptor of this process but the
/// channel, the lifeline and what the FMU writes to: stdout and stderr. When this process is gone, however it ended,
/// the lifeline ends, and so does the host. With the object the process is gone, and waited for.
class HostProcess {
 public:
  /// Started and of this version. Errors: ConfigError.
  HostProcess();
  ~HostProcess();
  HostProcess(const HostProcess&) = delete;
  HostProcess& operator=(const HostProcess&) = delete;

  Channel& channel() { return *channel_; }
  /// For calls and answers.
  std::span<std::byte> area() { return area_; }
  /// Takes more memory for the area; false where there is none. The area stays as it is until `map_area`.
  bool enlarge_area(std::size_t bytes);
  /// Of the size that it was given last. Errors: ConfigError.
  void map_area();
  std::size_t area_bytes() const { return area_bytes_; }

  enum class End {
    answered,
    ended,
    timed_out,
    broken,  ///< something has been written over the channel
  };
  /// Rings, and waits for the answer: for each of so many calls at most the limit.
  End call(std::size_t calls, double time_limit_s);
  /// Waits until the process ends by itself.
  bool ends_within(double seconds);
  /// Ends the process, with all that it has started, and waits for it.
  void kill();
  /// After `ended`: such as "signal SEGV (Segmentation fault)" or "exit code 3".
  std::string how_it_ended();
  /// After that: whether somebody else ended it, such as the system where memory runs out.
  bool was_ended_from_outside() const;
  /// False in a process that was forked from the one that made this.
  bool is_ours() const;

 private:
  void start(const std::filesystem::path& program);
  void expect_this_version(const std::filesystem::path& program);
  bool has_ended();
  bool is_whole() const;  ///< whether the beginning of the channel is what was written there
  void close_all();

  Channel* channel_ = nullptr;
  std::span<std::byte> area_;
  std::size_t area_bytes_ = 0;
  int memory_ = -1, lifeline_ = -1;
  pid_t process_ = -1, owner_ = -1;
  int status_ = -1;  ///< as waitpid says it, once it was waited for
};

}  // namespace portwave::fmi
