#pragma once

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <stdexcept>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace portwave::testing {

/// How a process ended and what it said.
struct ProcessResult {
  int exit_code = -1;  ///< -1: ended by `signal`
  int signal = 0;
  std::string out;
  std::string err;
};

/// Where the output of a process goes.
struct SpawnOptions {
  enum class Stdout { capture, file, closed_pipe };
  Stdout stdout_to = Stdout::capture;
  std::string stdout_file = {};
  bool stderr_is_terminal = false;  ///< captured all the same
};

/// A child process without a shell, its stdout and stderr captured, its stdin empty. Killed when
/// it is still running at destruction.
class Subprocess {
 public:
  explicit Subprocess(std::vector<std::string> command, const SpawnOptions& options = {}) {
    Stream out = Stream::pipe();
    Stream err = options.stderr_is_terminal ? Stream::terminal() : Stream::pipe();
    if (options.stdout_to == SpawnOptions::Stdout::closed_pipe) out.close_reader();

    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (options.stdout_to == SpawnOptions::Stdout::file) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.stdout_file.c_str(),
                                       O_WRONLY, 0);
    } else {
      posix_spawn_file_actions_adddup2(&actions, out.writer(), STDOUT_FILENO);
    }
    posix_spawn_file_actions_adddup2(&actions, err.writer(), STDERR_FILENO);

    // A broken pipe must be able to end the child, whatever this process ignores.
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    posix_spawnattr_setsigdefault(&attributes, &broken_pipe);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);

    std::vector<char*> argv;
    for (std::string& word : command) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int error = ::posix_spawn(&pid_, argv[0], &actions, &attributes, argv.data(), environ);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    if (error != 0) throw std::runtime_error("cannot start " + command[0]);
    out_ = out.take_reader();
    err_ = err.take_reader();
  }

  ~Subprocess() {
    if (pid_ > 0) {
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
    }
    for (const int descriptor : {out_, err_}) {
      if (descriptor >= 0) ::close(descriptor);
    }
  }
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }

  /// True when the process has ended; it can still be waited for.
  bool has_ended() const {
    siginfo_t info = {};
    ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT);
    return info.si_pid == pid_;
  }

  /// Reads until stderr holds `text` or both outputs have ended.
  void read_until_stderr_has(const std::string& text) {
    while (result_.err.find(text) == std::string::npos && read_some()) {
    }
  }

  /// What stands on stderr from `begin` on up to `end`; all of it where they do not come.
  std::string stderr_until(const std::string& begin, const std::string& end) {
    for (;;) {
      const std::size_t first = result_.err.find(begin);
      const std::size_t last =
          first == std::string::npos ? first : result_.err.find(end, first + begin.size());
      if (last != std::string::npos) return result_.err.substr(first, last - first);
      if (!read_some()) return result_.err;
    }
  }

  /// Reads all it writes until it ends.
  ProcessResult wait() {
    while (read_some()) {
    }
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFEXITED(status)) result_.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result_.signal = WTERMSIG(status);
    return std::move(result_);
  }

 private:
  /// Two descriptors, what is written to one being read from the other.
  class Stream {
   public:
    static Stream pipe() {
      std::array<int, 2> ends = {};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
      return Stream(ends[0], ends[1]);
    }
    static Stream terminal() {
      const int reader = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      if (reader < 0 || ::grantpt(reader) != 0 || ::unlockpt(reader) != 0) {
        throw std::runtime_error("no terminal");
      }
      std::array<char, 64> name = {};
      if (::ptsname_r(reader, name.data(), name.size()) != 0) throw std::runtime_error("ptsname");
      return Stream(reader, ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
    }
    ~Stream() {
      close_reader();
      ::close(writer_);
    }
    Stream(const Stream&) = delete;
    Stream& operator=(const Stream&) = delete;

    int writer() const { return writer_; }
    int take_reader() { return std::exchange(reader_, -1); }
    void close_reader() {
      if (reader_ >= 0) ::close(std::exchange(reader_, -1));
    }

   private:
    Stream(int reader, int writer) : reader_(reader), writer_(writer) {}
    int reader_;
    int writer_;
  };

  /// Waits for some output; false when both outputs have ended.
  bool read_some() {
    // A negative descriptor is passed over by poll.
    std::array<pollfd, 2> ends = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
    if (out_ < 0 && err_ < 0) return false;
    if (::poll(ends.data(), ends.size(), -1) < 0) return errno == EINTR;
    if (ends[0].revents != 0) read_from(out_, result_.out);
    if (ends[1].revents != 0) read_from(err_, result_.err);
    return true;
  }

  /// Appends what is there; closes the descriptor at its end (for a terminal, an error).
  static void read_from(int& descriptor, std::string& text) {
    std::array<char, 4096> buffer;
    const ssize_t count = ::read(descriptor, buffer.data(), buffer.size());
    if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
    if (count == 0 || (count < 0 && errno != EINTR)) ::close(std::exchange(descriptor, -1));
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
  ProcessResult result_;
};

/// Runs a command to its end.
inline ProcessResult run_process(std::vector<std::string> command,
                                 const SpawnOptions& options = {}) {
  return Subprocess(std::move(command), options).wait();
}

}  // namespace portwave::testing
