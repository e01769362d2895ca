#pragma once

#include <algorithm>
#include <cstddef>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include <oneapi/tbb/global_control.h>

namespace portwave::cli {

/// As many of the threads that are wanted as this user may have, at least 1. oneTBB ends the program
/// where it is refused one, so that has to be found out before: by having them for a moment, and one
/// more for the files.
inline int threads_allowed(int wanted) {
  if (wanted <= 1) return wanted;
  std::latch end(1);
  std::vector<std::thread> had;
  try {
    while (static_cast<int>(had.size()) < wanted) had.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error&) {
  }
  end.count_down();
  for (std::thread& thread : had) thread.join();
  return std::max(1, static_cast<int>(had.size()));
}

/// While alive, oneTBB gives as many threads as were asked for, also beyond the number of cores;
/// else it gives fewer and warns on stderr.
class ThreadAllowance {
 public:
  explicit ThreadAllowance(int threads)
      : control_(kParameter, std::max(static_cast<std::size_t>(threads),
                                      tbb::global_control::active_value(kParameter))) {}

 private:
  static constexpr auto kParameter = tbb::global_control::max_allowed_parallelism;

  tbb::global_control control_;
};

}  // namespace portwave::cli
