#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "parallel/clock.hpp"
#include "portwave/runtime/parallel/profile.hpp"

namespace portwave {

/// The actions of the tasks of one step, with their times, by thread. Executors whose tasks are followed
/// write to it.
class StepTrace {
 public:
  struct Event {
    std::int64_t begin_ns, end_ns;
    int task;
    ProfileEvent::Kind kind;
  };

  explicit StepTrace(int workers) : lists_(static_cast<std::size_t>(std::max(workers, 1))) {
    for (List& list : lists_) list.events = std::make_unique<Event[]>(kMost);
  }

  /// Called between steps: clears the lists, and events are noted from now on.
  void begin() {
    for (List& list : lists_) list.count.store(0, std::memory_order_relaxed);
    on_ = true;
  }
  void end() { on_ = false; }
  /// Whether events are noted. Does not change within a step.
  bool is_on() const { return on_; }

  static std::int64_t now_ns() { return Clock::now().time_since_epoch().count(); }
  void note(int worker, int task, ProfileEvent::Kind kind, std::int64_t begin_ns) {
    List& list = lists_[std::min(static_cast<std::size_t>(worker), lists_.size() - 1)];
    const std::size_t at = list.count.fetch_add(1, std::memory_order_relaxed);
    if (at < kMost) list.events[at] = {begin_ns, now_ns(), task, kind};
  }

  int workers() const { return static_cast<int>(lists_.size()); }
  /// The events of a worker; called after the step.
  std::span<const Event> events(int worker) const {
    const List& list = lists_[static_cast<std::size_t>(worker)];
    return {list.events.get(), std::min(kMost, list.count.load(std::memory_order_relaxed))};
  }
  std::int64_t dropped(int worker) const {
    const std::size_t count =
        lists_[static_cast<std::size_t>(worker)].count.load(std::memory_order_relaxed);
    return static_cast<std::int64_t>(count - std::min(kMost, count));
  }

 private:
  static constexpr std::size_t kMost = std::size_t{1} << 14;  // of a thread in a step
  struct alignas(128) List {
    std::atomic<std::size_t> count{0};
    std::unique_ptr<Event[]> events;
  };
  std::vector<List> lists_;
  bool on_ = false;
};

/// The policy of an executor that does not follow its tasks. It costs nothing.
struct NoTrace {
  static constexpr bool is_on() { return false; }
};
/// The policy of an executor that writes its tasks to a trace, which outlives it.
struct FollowTasks {
  StepTrace* trace;
  bool is_on() const { return trace->is_on(); }
};

}  // namespace portwave
