#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "portwave/subsystems/base/for_each.hpp"

namespace portwave::testing {

/// Whether two bodies that wait for one another see each other: they can on two threads only. A worker may
/// be long in coming, so that they wait no longer than a while; in one of many tries it comes.
inline bool runs_two_bodies_at_once(const ForEach& each, int tries = 200) {
  for (int n = 0; n < tries; ++n) {
    std::atomic<int> here = 0, saw_both = 0;
    each(2, [&](int) {
      ++here;
      const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(100);
      while (here < 2 && std::chrono::steady_clock::now() < end) {
        std::this_thread::sleep_for(std::chrono::microseconds(50));  // leaves others the processor
      }
      if (here == 2) ++saw_both;
    });
    if (saw_both == 2) return true;  // a body that runs after the other sees both as well
  }
  return false;
}

}  // namespace portwave::testing
