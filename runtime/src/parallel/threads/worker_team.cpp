#include "parallel/threads/worker_team.hpp"

#include <algorithm>
#include <chrono>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "parallel/clock.hpp"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace portwave {
namespace {

/// Turns of pausing before a waiting thread begins to yield.
constexpr int kPatience = 2000;
/// A worker without work for this long goes home.
constexpr std::chrono::microseconds kIdle{300};
/// Worker numbers are handed out as bits; further workers share the last number.
constexpr int kNumbers = 63;

}  // namespace

void back_off(int turns) {
  if (turns > kPatience) {
    std::this_thread::yield();
    return;
  }
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#endif
}

WorkerTeam::WorkerTeam(int threads, Work& work, const std::shared_ptr<Arena>& shared)
    : threads_(threads),
      state_(std::make_shared<State>()),
      arena_(arena_for_workers(shared, std::max(threads - 1, 1))) {
  state_->work = &work;
}

/// Keeps what calls that oneTBB has not started yet refer to: where it never gives a thread to them,
/// they are never unmade, and only they would know it. Later teams clear up what has been done with.
void WorkerTeam::keep_for_late_calls(std::shared_ptr<State> state) {
  struct Waiting {
    std::mutex mutex;
    std::vector<std::shared_ptr<State>> states;
  };
  static Waiting& waiting = *new Waiting;  // never unmade: calls may outlast static objects
  const std::lock_guard lock(waiting.mutex);
  std::erase_if(waiting.states,
                [](const auto& own) { return own->called.load(std::memory_order_relaxed) == 0; });
  waiting.states.push_back(std::move(state));
}

WorkerTeam::~WorkerTeam() {
  if (!process_.is_own()) {
    // What oneTBB's threads held when the process forked is held forever: nothing of it is touched.
    new auto(std::move(state_));
    new auto(std::move(arena_));
    return;
  }
  dismiss();
  if (state_->called.load(std::memory_order_relaxed) > 0) keep_for_late_calls(std::move(state_));
}

void WorkerTeam::dismiss() {
  if (!process_.is_own()) return;
  // Both sides write first and read then, in one total order: either a worker sees `closed`, or it
  // is seen here to be present.
  state_->closed.store(true, std::memory_order_seq_cst);
  for (int turns = 0; state_->present.load(std::memory_order_seq_cst) > 0; ++turns) back_off(turns);
}

void WorkerTeam::summon() {
  if (!process_.is_own()) return;
  int called = state_->called.load(std::memory_order_relaxed);
  while (called < threads_ - 1) {
    if (!state_->called.compare_exchange_weak(called, called + 1, std::memory_order_relaxed))
      continue;
    ++called;
    const Call call(state_, threads_);
    arena_->enqueue(call);
  }
}

void WorkerTeam::serve(State& state, int threads) {
  state.present.fetch_add(1, std::memory_order_seq_cst);
  if (!state.closed.load(std::memory_order_seq_cst)) {
    int number = 1;
    std::uint64_t numbers = state.numbers.load(std::memory_order_relaxed);
    for (;;) {
      number = 1;
      while (number < std::min(threads - 1, kNumbers) && (numbers >> number & 1U) != 0) ++number;
      if (state.numbers.compare_exchange_weak(numbers, numbers | std::uint64_t{1} << number,
                                              std::memory_order_relaxed)) {
        break;
      }
    }
    auto idle_since = Clock::now();
    int turns = 0;
    while (!state.closed.load(std::memory_order_relaxed)) {
      if (state.work->try_work(number)) {
        turns = 0;
        continue;
      }
      back_off(++turns);
      if (turns == 1) {
        idle_since = Clock::now();
      } else if (turns % 64 == 0 && Clock::now() - idle_since > kIdle) {
        break;
      }
    }
    state.numbers.fetch_and(~(std::uint64_t{1} << number), std::memory_order_relaxed);
  }
  state.called.fetch_sub(1, std::memory_order_relaxed);
  state.present.fetch_sub(1, std::memory_order_seq_cst);
}

}  // namespace portwave
