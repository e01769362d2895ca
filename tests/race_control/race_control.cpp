// A race on purpose: two tasks of one fork write the same place, and both wait for each other so
// that two threads surely take part. The thread sanitizer must report it.

#include <atomic>
#include <cstdio>

#include <oneapi/tbb/global_control.h>

#include "parallel/threads/fork_join.hpp"

int main() {
  const tbb::global_control two(tbb::global_control::max_allowed_parallelism, 2);
  portwave::ForkJoin fork_join(2);
  int shared = 0;
  std::atomic<int> arrived{0};
  fork_join.run(2, [&](int i) {
    arrived.fetch_add(1, std::memory_order_relaxed);
    for (long spin = 0; arrived.load(std::memory_order_relaxed) < 2 && spin < 4000000000L; ++spin) {
    }
    shared += i;
  });
  std::printf("%d\n", shared);
}
