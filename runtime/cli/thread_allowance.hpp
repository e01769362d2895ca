#pragma once

#include <algorithm>
#include <cstddef>

#include <oneapi/tbb/global_control.h>

namespace portwave::cli {

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
