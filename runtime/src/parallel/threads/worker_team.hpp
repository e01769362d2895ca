#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include <oneapi/tbb/task_arena.h>

#include "parallel/threads/arena_impl.hpp"
#include "parallel/threads/fork_join.hpp"
#include "parallel/threads/process_stamp.hpp"

namespace portwave {

/// Worker threads of a oneTBB arena that come when they are called, help while there is work and
/// leave when there has been none for a while. Nobody waits for a worker to come: the caller does
/// the work with however many are there. The threads are oneTBB's and go back to it. In a child of the
/// process that made the team there are none, and the caller works alone.
class WorkerTeam {
 public:
  /// What a worker does. `try_work` returns true when it found something; several workers call it
  /// at once. `worker` is 1 … threads − 1.
  class Work {
   public:
    virtual bool try_work(int worker) noexcept = 0;

   protected:
    ~Work() = default;
  };

  /// `shared`: whose threads they are; null: an arena of their own.
  WorkerTeam(int threads, Work& work, const std::shared_ptr<Arena>& shared = nullptr);
  ~WorkerTeam();
  WorkerTeam(const WorkerTeam&) = delete;
  WorkerTeam& operator=(const WorkerTeam&) = delete;

  int threads() const { return threads_; }
  /// Calls in those that are not there.
  void summon();
  /// Sends all home and waits until they have left `try_work`.
  void dismiss();
  int present() const {
    return process_.is_own() ? state_->present.load(std::memory_order_relaxed) : 0;
  }

 private:
  /// Outlives the team: a task that oneTBB starts late must find it closed.
  struct State {
    std::atomic<int> present{0};  ///< workers that may be in try_work
    std::atomic<int> called{0};   ///< calls that have not ended
    std::atomic<bool> closed{false};
    std::atomic<std::uint64_t> numbers{0};  ///< worker numbers in use, as bits
    Work* work = nullptr;
  };
  /// What is given to oneTBB. Its library is not built for the thread sanitizer, which is therefore
  /// told that a call is complete before it is made, and done with before its memory is used again.
  struct Call {
    Call(std::shared_ptr<State> s, int t) : state(std::move(s)), threads(t) {}
    Call(const Call& other) : state(other.state), threads(other.threads) {
      ForkJoin::before_fork();
    }
    Call& operator=(const Call&) = delete;
    void operator()() const {
      ForkJoin::after_fork();
      serve(*state, threads);
    }
    struct Memory {
      Memory() { ForkJoin::after_join(); }
      ~Memory() { ForkJoin::before_join(); }
      Memory(const Memory&) = delete;
      Memory& operator=(const Memory&) = delete;
    };
    Memory memory;  // first: made before the others, unmade after them
    std::shared_ptr<State> state;
    int threads;
  };
  static void serve(State& state, int threads);
  static void keep_for_late_calls(std::shared_ptr<State> state);

  ProcessStamp process_;
  int threads_;
  std::shared_ptr<State> state_;
  std::shared_ptr<tbb::task_arena> arena_;
};

/// One turn of a waiting loop: pauses, then yields the processor. `turns` counts the turns so far.
void back_off(int turns);

}  // namespace portwave
