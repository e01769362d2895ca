#pragma once

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>
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

/// Where the standard output of a process goes.
struct StdoutTo {
  enum class Kind { capture, file, closed_pipe };
  Kind kind = Kind::capture;
  std::string file;
};

/// A child process without a shell, its stdout and stderr captured, its stdin empty. Killed when
/// it is still running at destruction.
class Subprocess {
 public:
  explicit Subprocess(std::vector<std::string> command, const StdoutTo& stdout_to = {}) {
    Pipe out;
    Pipe err;
    if (stdout_to.kind == StdoutTo::Kind::closed_pipe) out.close_reader();
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (stdout_to.kind == StdoutTo::Kind::file) {
      posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, stdout_to.file.c_str(), O_WRONLY,
                                       0);
    } else {
      posix_spawn_file_actions_adddup2(&actions, out.writer, STDOUT_FILENO);
    }
    posix_spawn_file_actions_adddup2(&actions, err.writer, STDERR_FILENO);

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
    out_ = std::exchange(out.reader, -1);
    err_ = std::exchange(err.reader, -1);
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

  /// Reads all it writes until it ends.
  ProcessResult wait() {
    ProcessResult result;
    drain(result);
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    pid_ = -1;
    if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
    if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
    return result;
  }

 private:
  struct Pipe {
    Pipe() {
      std::array<int, 2> ends = {};
      if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe failed");
      reader = ends[0];
      writer = ends[1];
    }
    ~Pipe() {
      close_reader();
      ::close(writer);
    }
    Pipe(const Pipe&) = delete;
    Pipe& operator=(const Pipe&) = delete;
    void close_reader() {
      if (reader >= 0) ::close(std::exchange(reader, -1));
    }
    int reader = -1;
    int writer = -1;
  };

  void drain(ProcessResult& result) {
    std::array<pollfd, 2> ends = {pollfd{out_, POLLIN, 0}, pollfd{err_, POLLIN, 0}};
    std::array<std::string*, 2> texts = {&result.out, &result.err};
    std::array<char, 4096> buffer;
    // A negative descriptor is passed over by poll.
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
      if (::poll(ends.data(), ends.size(), -1) < 0) continue;
      for (std::size_t i = 0; i < ends.size(); ++i) {
        if (ends[i].fd < 0 || ends[i].revents == 0) continue;
        const ssize_t count = ::read(ends[i].fd, buffer.data(), buffer.size());
        if (count > 0) texts[i]->append(buffer.data(), static_cast<std::size_t>(count));
        if (count == 0) ends[i].fd = -1;
      }
    }
  }

  pid_t pid_ = -1;
  int out_ = -1;
  int err_ = -1;
};

/// Runs a command to its end.
inline ProcessResult run_process(std::vector<std::string> command, const StdoutTo& stdout_to = {}) {
  return Subprocess(std::move(command), stdout_to).wait();
}

}  // namespace portwave::testing
