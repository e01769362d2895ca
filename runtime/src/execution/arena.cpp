#include "portwave/runtime/execution/arena.hpp"

#include <algorithm>
#include <chrono>
#include <latch>
#include <mutex>
#include <stdexcept>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "execution/arena_impl.hpp"
#include "portwave/runtime/execution/stepper.hpp"

namespace portwave {
namespace {

/// Of this process, as the system counts them; 0 where it does not tell.
nlink_t count_threads() {
  struct stat status = {};
  return ::stat("/proc/self/task", &status) == 0 ? status.st_nlink : 0;
}

}  // namespace

Arena::Arena(int threads) {
  if (threads < 1 || threads > kMaxThreads) {
    throw std::invalid_argument(
        fmt::format("an arena has 1 to {} threads, got {}", kMaxThreads, threads));
  }
  impl_ =
      std::make_unique<Impl>(tbb::task_arena(threads_allowed(threads), /*reserved_for_masters=*/1));
}

Arena::Arena(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Arena::~Arena() = default;

std::shared_ptr<Arena> Arena::current() {
  auto impl = std::make_unique<Impl>(tbb::task_arena(tbb::task_arena::attach()));
  return std::shared_ptr<Arena>(new Arena(std::move(impl)));
}

int Arena::threads() const { return impl_->arena.max_concurrency(); }

int threads_to_be_had(int most) {
  const auto before = count_threads();
  std::latch end(1);
  std::vector<std::thread> had;
  had.reserve(static_cast<std::size_t>(std::max(most, 0)));
  try {
    while (static_cast<int>(had.size()) < most) had.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error&) {
    // No more are to be had.
  }
  end.count_down();
  for (std::thread& thread : had) thread.join();
  // The system counts a thread that was joined for a moment more, and might refuse another one.
  for (int i = 0; i < 1000 && count_threads() > before; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return static_cast<int>(had.size());
}

int threads_allowed(int wanted, int others) {
  struct Found {
    std::mutex mutex;
    int allowed = 1;
    bool is_all = false;
  };
  static Found& found = *new Found;  // never unmade: static objects may step
  const std::scoped_lock lock(found.mutex);
  if (wanted > found.allowed && !found.is_all) {
    const int had = std::max(1, threads_to_be_had(wanted - 1 + others) - others + 1);
    found.is_all = had < wanted;
    found.allowed = std::max(found.allowed, had);
  }
  return std::min(wanted, found.allowed);
}

}  // namespace portwave
