#include "portwave/runtime/parallel/arena.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <latch>
#include <malloc.h>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <oneapi/tbb/global_control.h>

#include "parallel/threads/arena_impl.hpp"
#include "portwave/runtime/parallel/executor_kind.hpp"

namespace portwave {
namespace {

/// Of this process, as the system counts them; 0 where it does not tell.
nlink_t count_threads() {
  struct stat status = {};
  return ::stat("/proc/self/task", &status) == 0 ? status.st_nlink : 0;
}

/// What this process may still map where that is limited (ulimit -v, -d); 0 where it is not.
std::size_t mappable_bytes() {
  std::ifstream sizes("/proc/self/statm");
  std::uint64_t all = 0, resident = 0, shared = 0, text = 0, library = 0, data = 0;
  if (!(sizes >> all >> resident >> shared >> text >> library >> data)) return 0;
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::uint64_t least = 0;
  for (const auto& [resource, used] : {std::pair(RLIMIT_AS, all), std::pair(RLIMIT_DATA, data)}) {
    rlimit limit = {};
    if (::getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) continue;
    const std::uint64_t most = limit.rlim_cur, own = used * page;
    const std::uint64_t left = most > own ? most - own : 1;
    least = least == 0 ? left : std::min(least, left);
  }
  return least;
}

/// Address space that is held back, for what comes after. Nothing is in it, and it counts all the same.
class Reserve {
 public:
  explicit Reserve(std::size_t bytes) : bytes_(bytes) {
    if (bytes_ == 0) return;
    place_ = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  }
  ~Reserve() {
    if (place_ != MAP_FAILED) ::munmap(place_, bytes_);
  }
  Reserve(const Reserve&) = delete;
  Reserve& operator=(const Reserve&) = delete;

 private:
  std::size_t bytes_;
  void* place_ = MAP_FAILED;
};

/// The C library maps 64 MiB for the heap of a thread when that first allocates: more than its stack.
/// From now on threads share the heaps that there are.
void share_heaps() {
#ifdef M_ARENA_MAX
  ::mallopt(M_ARENA_MAX, 1);
#endif
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
  const std::size_t mappable = mappable_bytes();
  if (mappable > 0) share_heaps();
  // Threads take address space. Half of it is left to the work, in which nobody could be told any more
  // that a thread is missing.
  const Reserve reserve(mappable / 2);
  std::latch end(1);
  std::vector<std::thread> had;
  had.reserve(static_cast<std::size_t>(std::max(most, 0)));
  try {
    while (static_cast<int>(had.size()) < most) had.emplace_back([&end] { end.wait(); });
  } catch (const std::system_error&) {
    // No more are to be had.
  } catch (const std::bad_alloc&) {
    // Likewise.
  }
  end.count_down();
  for (std::thread& thread : had) thread.join();
  // The system counts a thread that was joined for a moment more, and might refuse another one.
  for (int i = 0; i < 1000 && count_threads() > before; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  return static_cast<int>(had.size());
}

void start_workers(int threads) {
  if (mappable_bytes() == 0) return;
  using Control = tbb::global_control;
  const auto most = Control::active_value(Control::max_allowed_parallelism);
  const int workers =
      static_cast<int>(std::min<std::size_t>(static_cast<std::size_t>(threads), most)) - 1;
  if (workers < 1) return;
  struct Muster {
    std::atomic<int> come = 0;
    std::atomic<bool> is_over = false;
  };
  const auto muster = std::make_shared<Muster>();
  tbb::task_arena arena(workers, /*reserved_for_masters=*/0);
  for (int i = 0; i < workers; ++i) {
    arena.enqueue([muster] {
      muster->come.fetch_add(1, std::memory_order_relaxed);
      while (!muster->is_over.load(std::memory_order_relaxed)) std::this_thread::yield();
    });
  }
  // oneTBB may have fewer than it is asked for.
  for (int i = 0; i < 2000 && muster->come.load(std::memory_order_relaxed) < workers; ++i) {
    std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  muster->is_over = true;
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
    start_workers(std::min(wanted, found.allowed));
  }
  return std::min(wanted, found.allowed);
}

}  // namespace portwave
