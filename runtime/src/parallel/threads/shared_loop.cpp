#include "parallel/threads/shared_loop.hpp"

#include "parallel/threads/worker_team.hpp"

namespace portwave {

void SharedLoop::run(int count, Call call, const void* body, WorkerTeam& helpers, int worker) {
  if (is_taken_.test_and_set(std::memory_order_acquire)) {
    for (int i = 0; i < count; ++i) call(body, i);
    return;
  }
  left_.store(count, std::memory_order_relaxed);
  const auto shares = static_cast<std::int64_t>(ranges_.size());
  for (std::int64_t r = 0; r < shares; ++r) {
    const auto first = static_cast<std::uint64_t>(count * r / shares);
    const auto last = static_cast<std::uint64_t>(count * (r + 1) / shares);
    Range& range = ranges_[static_cast<std::size_t>(r)];
    range.call = call;
    range.body = body;
    range.word.store(last << 32U | first, std::memory_order_release);
  }
  is_open_.store(true, std::memory_order_release);
  if (ranges_.size() > 1) helpers.summon();
  work(static_cast<std::size_t>(worker) % ranges_.size());
  is_open_.store(false, std::memory_order_relaxed);
  for (int turns = 0; left_.load(std::memory_order_acquire) > 0; ++turns) back_off(turns);
  is_taken_.clear(std::memory_order_release);
}

bool SharedLoop::try_work(int worker) noexcept {
  if (!is_open_.load(std::memory_order_relaxed)) return false;
  return work(static_cast<std::size_t>(worker) % ranges_.size());
}

/// Runs what is left, one's own first. False when there was nothing.
bool SharedLoop::work(std::size_t own) {
  int done = 0;
  for (std::size_t i = 0; i < ranges_.size(); ++i) {
    Range& range = ranges_[(own + i) % ranges_.size()];
    for (;;) {
      const Indices taken = take(range);
      if (taken.first >= taken.last) break;
      for (int k = taken.first; k < taken.last; ++k) range.call(range.body, k);
      done += taken.last - taken.first;
    }
  }
  if (done > 0) left_.fetch_sub(done, std::memory_order_acq_rel);
  return done > 0;
}

/// A quarter of what is left, so that the ends are shared finely.
SharedLoop::Indices SharedLoop::take(Range& range) {
  std::uint64_t word = range.word.load(std::memory_order_relaxed);
  for (;;) {
    const auto first = static_cast<std::uint32_t>(word);
    const auto last = static_cast<std::uint32_t>(word >> 32U);
    if (first >= last) return {};
    const std::uint32_t some = first + 1 + (last - first - 1) / 4;
    const std::uint64_t rest = std::uint64_t{last} << 32U | some;
    if (range.word.compare_exchange_weak(word, rest, std::memory_order_acq_rel,
                                         std::memory_order_relaxed)) {
      return {static_cast<int>(first), static_cast<int>(some)};
    }
  }
}

}  // namespace portwave
