#pragma once

#include <algorithm>
#include <cstddef>
#include <ostream>

#include <fmt/core.h>
#include <oneapi/tbb/global_control.h>

#include <portwave/runtime/parallel/arena.hpp>

namespace portwave::cli {

/// While it exists, oneTBB gives the requested number of threads, even beyond the number of cores, up to the
/// limit that the system sets for this user. Without it, oneTBB gives fewer and warns on stderr.
class ThreadAllowance {
 public:
  /// `others`: threads that the program begins meanwhile.
  explicit ThreadAllowance(int wanted, int others = 0)
      : wanted_(wanted),
        threads_(threads_allowed(wanted, others)),
        control_(kParameter, std::max(static_cast<std::size_t>(threads_),
                                      tbb::global_control::active_value(kParameter))) {
    start_workers(threads_);
  }

  int threads() const { return threads_; }

  /// Says so where they are fewer.
  void tell(std::ostream& err) const {
    if (threads_ == wanted_) return;
    err << fmt::format("note: {} threads were requested, and {} are available here\n", wanted_,
                       threads_);
  }

 private:
  static constexpr auto kParameter = tbb::global_control::max_allowed_parallelism;

  int wanted_;
  int threads_;
  tbb::global_control control_;
};

}  // namespace portwave::cli
