#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace portwave {

class WorkerTeam;

/// A loop that one thread opens and others help with, if they look by. Indices that are still to be run
/// are in one word per thread, [first, last): one's own are run first, and then those of others. A range is
/// taken from by compare and swap, so that each index is taken once. The loop is over when all bodies have
/// returned; until then nobody writes the call beside a word, and whoever has taken indices reads that of the
/// loop that the indices belong to: a word that compared equal holds indices of the present loop, whichever
/// it is. It comes with the cache line of the word.
///
/// Bodies must not throw. Nothing is allocated after construction.
class SharedLoop {
 public:
  using Call = void (*)(const void* body, int i);

  explicit SharedLoop(int threads) : ranges_(static_cast<std::size_t>(threads)) {}

  /// Calls call(body, 0) … call(body, count − 1) and returns when all are done. `helpers` are summoned; their
  /// work is to call `try_work`. Nobody waits for one who has not come. Whoever comes while another loop is open
  /// runs all alone. `worker`: who calls, which begins with its own range as in `try_work`.
  void run(int count, Call call, const void* body, WorkerTeam& helpers, int worker = 0);
  /// What a helper does: runs what is left. False when there was nothing.
  bool try_work(int worker) noexcept;

 private:
  struct alignas(128) Range {
    std::atomic<std::uint64_t> word{0};  ///< last · 2³² + first; empty: first ≥ last
    // Of the loop. Written before `word` is.
    Call call = nullptr;
    const void* body = nullptr;
  };
  struct Indices {
    int first = 0, last = 0;
  };

  bool work(std::size_t own);
  static Indices take(Range& range);

  std::atomic_flag is_taken_;
  alignas(128) std::atomic<int> left_{0};  ///< bodies that have not returned
  alignas(128) std::atomic<bool> is_open_{
      false};                  ///< all ranges are written: helpers look at this alone until then
  std::vector<Range> ranges_;  ///< by thread
};

}  // namespace portwave
