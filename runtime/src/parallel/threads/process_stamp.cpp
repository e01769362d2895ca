#include "parallel/threads/process_stamp.hpp"

#include <atomic>
#include <pthread.h>

namespace portwave {
namespace {

std::atomic<std::uint64_t> forks = 0;

}  // namespace

ProcessStamp::ProcessStamp() {
  static const int watched =
      ::pthread_atfork(nullptr, nullptr, [] { forks.fetch_add(1, std::memory_order_relaxed); });
  (void)watched;
  forks_ = forks.load(std::memory_order_relaxed);
}

bool ProcessStamp::is_own() const { return forks_ == forks.load(std::memory_order_relaxed); }

}  // namespace portwave
