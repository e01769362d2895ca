#pragma once

#include <functional>
#include <memory>

#include "portwave/runtime/ranks/thread_ranks.hpp"

namespace portwave::testing {

/// Ranks that are threads of one process, and a transport that delivers messages as late as it likes.
class ThreadRanks {
 public:
  /// Runs body(ranks) as every rank and returns when all are done. `seed`: of random delays; 0: none.
  static void run(int size, const std::function<void(const std::shared_ptr<Ranks>&)>& body,
                  unsigned seed = 0) {
    run_thread_ranks(size, body, {.seed = seed});
  }
};

}  // namespace portwave::testing
