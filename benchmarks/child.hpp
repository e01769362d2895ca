#pragma once

// Measurements in processes of their own, because peaks of memory do not go down.

#include <cstdio>
#include <stdexcept>
#include <sys/resource.h>
#include <sys/wait.h>
#include <type_traits>
#include <unistd.h>

#include <fmt/format.h>

namespace portwave::bench {

/// Most memory that this process has had so far.
inline double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

/// Runs `act` in a child process and returns its result. What it prints is the program's.
template <class Act, class Result = std::invoke_result_t<Act>>
Result in_child(const Act& act) {
  static_assert(std::is_trivially_copyable_v<Result>);
  int ends[2];
  if (pipe(ends) != 0) throw std::runtime_error("no pipe");
  std::fflush(stdout);
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("cannot fork");
  if (child == 0) {
    Result result;
    try {
      result = act();
    } catch (const std::exception& error) {
      fmt::print(stderr, "{}\n", error.what());
      _exit(1);
    }
    (void)!write(ends[1], &result, sizeof result);
    _exit(0);
  }
  close(ends[1]);
  Result result{};
  const bool came = read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!came || status != 0) throw std::runtime_error("a measuring process failed");
  return result;
}

}  // namespace portwave::bench
