#pragma once

#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include "portwave/subsystems/base/for_each.hpp"

#if defined(__SANITIZE_THREAD__)
#define PORTWAVE_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define PORTWAVE_THREAD_SANITIZER 1
#endif
#endif

#ifdef PORTWAVE_THREAD_SANITIZER
extern "C" void __tsan_acquire(void* address);  // NOLINT
extern "C" void __tsan_release(void* address);  // NOLINT
#endif

namespace portwave {

/// Runs body(0) … body(count − 1) in an arena and returns when all are done. Everything before the
/// call happens before every body, and every body before the return. The distribution libtbb is not
/// built for the thread sanitizer, which therefore cannot see that order; it is told here, and only
/// here, so that races between bodies stay visible.
class ForkJoin {
 public:
  explicit ForkJoin(int threads) : arena_(threads) {}

  template <class Body>
  void run(int count, const Body& body) {
    arena_.execute([&] {
      const auto task = [&](int i) {
        acquire(&fork_);
        body(i);
        release(&join_);
      };
      release(&fork_);  // here: the workers read the captures written above
      tbb::parallel_for(0, count, task, tbb::static_partitioner());
    });
    acquire(&join_);
  }

  /// The same order for other oneTBB constructs: called before tasks are spawned, around each body,
  /// and after they are awaited. Bodies are ordered one after another as the construct promises for
  /// those that depend on one another; see GraphExecutor.
  static void before_fork() { release(&fork_); }
  static void after_fork() { acquire(&fork_); }
  static void before_join() { release(&join_); }
  static void after_join() { acquire(&join_); }
  struct Ordered {
    Ordered() {
      acquire(&fork_);
      acquire(&join_);
    }
    ~Ordered() { release(&join_); }
    Ordered(const Ordered&) = delete;
    Ordered& operator=(const Ordered&) = delete;
  };

 private:
  static void acquire([[maybe_unused]] char* address) {
#ifdef PORTWAVE_THREAD_SANITIZER
    __tsan_acquire(address);
#endif
  }
  static void release([[maybe_unused]] char* address) {
#ifdef PORTWAVE_THREAD_SANITIZER
    __tsan_release(address);
#endif
  }

  tbb::task_arena arena_;
  // Names of the two orderings. Static, since a worker must acquire before it reads any object.
  static inline char fork_ = 0;
  static inline char join_ = 0;
};

/// As a ForEach.
class ForkJoinForEach final : public ForEach {
 public:
  explicit ForkJoinForEach(ForkJoin& fork_join) : fork_join_(fork_join) {}

 private:
  void run(int count, void (*call)(const void* body, int i), const void* body) const override {
    fork_join_.run(count, [call, body](int i) { call(body, i); });
  }

  ForkJoin& fork_join_;
};

}  // namespace portwave
