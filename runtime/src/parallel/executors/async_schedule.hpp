#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "parallel/channel.hpp"

namespace portwave {

/// How phases and messages are numbered: through the whole run, so that no number comes twice.
struct PhaseNumbers {
  /// The first phase of the step after the one that ended at `limit`.
  static std::uint64_t next_base(std::uint64_t limit) { return limit; }
  /// The phase of a task that has committed in phase `current`: a step uses up its numbers even if
  /// it stops early.
  static std::uint64_t after_commit(std::uint64_t /*current*/, std::uint64_t limit) {
    return limit;
  }
  /// The message of iteration k. Channels begin with 0, which is the number of no message.
  static std::uint64_t message(std::uint64_t base, std::int64_t k) {
    return base + static_cast<std::uint64_t>(k) + 1;
  }
};

/// Who may do what, and when, in a macro-step of the async executor: threads claim tasks, phase by
/// phase, and never wait for one another. The protocol and its memory orders are argued in
/// docs/concepts/wave-exchange.md. There is no arithmetic in here, and no thread: that is the
/// business of `Work`. `tests/wave_exchange` runs this very code with other `Atomics`, under every
/// interleaving and every value that a load may return.
///
/// Phases are numbered through the whole run. A macro-step owns the phases [base, limit):
///   plain    base + k: iteration k, or the commit once k is the last;
///   checked  base + 2k: iteration k or the commit; base + 2k + 1: the gap after iteration k.
/// A task that has committed jumps to `limit`, which is the base of the next step.
///
/// Work offers
///   Task& task(int index)                        with  bool alone() const, int island_group() const,
///                                                bool ready(number) const, void publish(number)
///   void iterate(Task&, k, number)               iteration k, its message being `number`
///   void measure(Task&, number)                  the gap, between the messages `number`
///   bool judge(Task&, k)                         all have measured: whether the island stops
///   void commit(Task&, k, number)                after k iterations; `number`: of the last message
///   bool run_alone(int index, Task&, int to)     a task without neighbours: iterations up to `to`
///                                                (to < 0: none), then the commit, unless it returns
///                                                true: it wants to go on when the clock allows
///   int allowed(int done, int budget)            iterations that the clock allows in all, ≥ done;
///                                                called only in steps with a clock
template <class Atomics, class Numbers = PhaseNumbers>
class AsyncSchedule {
  template <class T>
  using Atomic = typename Atomics::template Atomic<T>;

 public:
  /// No fault so far, and the iteration at which the commit faults.
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
  /// Of a claim that has failed.
  static constexpr std::uint64_t kNoPhase = std::numeric_limits<std::uint64_t>::max();

  struct Step {
    std::uint64_t base = 0;
    int budget = 0;        ///< K ≥ 0
    bool checked = false;  ///< after every iteration the gap is judged
    bool timed = false;    ///< there is a clock
    bool operator==(const Step&) const = default;
  };

  /// `tasks_of_group`: how many tasks each island group is cut into.
  AsyncSchedule(int tasks, std::span<const int> tasks_of_group)
      : words_(static_cast<std::size_t>(tasks)), island_groups_(tasks_of_group.size()) {
    for (std::size_t i = 0; i < tasks_of_group.size(); ++i) {
      island_groups_[i].tasks = tasks_of_group[i];
    }
  }

  // ---- The calling thread, between two steps. ----

  /// Starts a step. Nobody is inside a task, so everything that is not atomic may be written before
  /// this is called: it happens before any phase of the step, since a worker acquires the limit
  /// that lets it claim one. Returns the limit, at which every task will end.
  template <class Work>
  std::uint64_t open(Work& work, int budget, bool checked, bool timed) {
    const std::uint64_t base = Numbers::next_base(limit_.load(std::memory_order_relaxed));
    step_.set({base, budget, checked, timed});
    hint_.store(2 * base + (checked ? 1 : 0), std::memory_order_relaxed);
    fault_at_.store(kNever, std::memory_order_relaxed);
    const bool waits_for_clock = timed && budget > 0;
    horizon_.store(waits_for_clock ? 0 : 2 * std::int64_t{budget} + 1, std::memory_order_relaxed);
    const bool no_time = checked && waits_for_clock && work.allowed(0, budget) == 0;
    out_of_time_.store(no_time, std::memory_order_relaxed);
    if (checked) {
      for (IslandGroup& group : island_groups_) {
        group.arrived.store(0, std::memory_order_relaxed);
        group.horizon.store(budget == 0 || no_time ? 1 : 2, std::memory_order_relaxed);
      }
    }
    const std::uint64_t limit = base + 2 * static_cast<std::uint64_t>(budget) + 4;
    limit_.store(limit, std::memory_order_release);
    return limit;
  }
  /// The task has done its part of the step that ends at `limit`.
  bool at_end(int index, std::uint64_t limit) const {
    return words_[static_cast<std::size_t>(index)].value.load(std::memory_order_acquire) ==
           2 * limit;
  }
  /// The clock ended the step; for the calling thread, after the end.
  bool out_of_time() const { return out_of_time_.load(std::memory_order_relaxed); }

  // ---- Any thread. ----

  /// Phases below may be run.
  std::uint64_t limit() const { return limit_.load(std::memory_order_acquire); }

  /// Runs the next phase of a task, if it is free and ready. False when nothing was done.
  template <class Work>
  bool try_task(Work& work, int index, std::uint64_t limit) {
    const std::uint64_t phase = claim(work, index, limit);
    return phase != kNoPhase && run(work, index, phase, limit);
  }

  /// Claims a task for its next phase, which it returns.
  template <class Work>
  std::uint64_t claim(Work& work, int index, std::uint64_t limit) {
    Atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(index)].value;
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    if ((seen & 1U) != 0 || seen / 2 >= limit) return kNoPhase;
    if (!worth_claiming(work.task(index), seen / 2)) return kNoPhase;
    if (!word.compare_exchange_strong(seen, seen | 1U, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return kNoPhase;
    }
    return seen / 2;
  }

  /// Runs a phase that was claimed, and lets go of the task. False when there was nothing to do yet.
  /// Not inlined, so that claims, which mostly find nothing, are.
  template <class Work>
  [[gnu::noinline]] bool run(Work& work, int index, std::uint64_t current, std::uint64_t limit) {
    // Only now it is sure that the step is the current one and stays as it is.
    const Step& step = step_.get();
    auto& task = work.task(index);
    const Phase phase =
        next_phase(work, task, step, static_cast<std::int64_t>(current - step.base));
    const std::uint64_t next = phase.act == Act::none
                                   ? current
                                   : run_phase(work, index, task, step, phase, current, limit);
    words_[static_cast<std::size_t>(index)].value.store(2 * next, std::memory_order_release);
    return phase.act != Act::none;
  }

  // ---- Whoever runs a task. ----

  /// Notes that iteration k of the task has failed; to be called before anything is published that
  /// depends on it.
  void note_fault(std::int64_t k) {
    std::int64_t earliest = fault_at_.load(std::memory_order_relaxed);
    while (k < earliest &&
           !fault_at_.compare_exchange_weak(earliest, k, std::memory_order_relaxed)) {
    }
  }
  /// After a fault at an earlier iteration there is nothing to compute, only others to let go.
  bool is_void(std::int64_t k) const { return fault_at_.load(std::memory_order_relaxed) < k; }

  /// visit(name, index, variable) for every variable that threads share.
  template <class Visit>
  void for_variables(const Visit& visit) {
    visit("limit", 0, limit_);
    visit("hint", 0, hint_);
    visit("horizon of all", 0, horizon_);
    visit("fault_at", 0, fault_at_);
    visit("out_of_time", 0, out_of_time_);
    for (std::size_t i = 0; i < words_.size(); ++i) visit("word", i, words_[i].value);
    for (std::size_t i = 0; i < island_groups_.size(); ++i) {
      visit("arrived", i, island_groups_[i].arrived);
      visit("horizon", i, island_groups_[i].horizon);
    }
    visit("parameters", 0, step_);
  }

 private:
  struct alignas(128) Word {
    Atomic<std::uint64_t> value{0};  ///< 2·(next phase) + (1 while somebody runs it)
  };
  /// Of an island group that is cut into several tasks, in checked iterations.
  struct alignas(128) IslandGroup {
    Atomic<std::int64_t> arrived{0};  ///< tasks whose gap is measured, over the whole step
    Atomic<std::int64_t> horizon{0};  ///< 2·(iterations allowed) + (1 when final)
    int tasks = 0;
  };
  enum class Act { none, iterate, check, commit };
  struct Phase {
    Act act = Act::none;
    std::int64_t k = 0;  ///< iteration; for the commit: how many were done
  };

  template <class Task>
  IslandGroup& group_of(const Task& task) {
    return island_groups_[static_cast<std::size_t>(task.island_group())];
  }

  /// Whether a claim is likely to find something to do. It reads atomics only, which may belong to
  /// different steps.
  template <class Task>
  bool worth_claiming(const Task& task, std::uint64_t current) {
    const std::uint64_t hint = hint_.load(std::memory_order_relaxed);
    const std::uint64_t base = hint / 2;
    if (current < base) return false;
    if (task.alone()) return true;
    const auto s = static_cast<std::int64_t>(current - base);
    if (hint % 2 == 0) return s == 0 || task.ready(Numbers::message(base, s - 1));
    const std::int64_t k = s / 2;
    if (s % 2 != 0) return task.ready(Numbers::message(base, k));
    const std::int64_t horizon = group_of(task).horizon.load(std::memory_order_relaxed);
    return k < horizon / 2 || horizon % 2 != 0;
  }

  /// What is to be done s phases after the first of the step; `none` while something is awaited.
  template <class Work, class Task>
  Phase next_phase(Work& work, const Task& task, const Step& step, std::int64_t s) {
    if (task.alone()) return step.timed ? within_horizon(work, step, s) : Phase{Act::iterate, 0};
    if (!step.checked) {
      if (s > 0 && !task.ready(Numbers::message(step.base, s - 1))) return {};
      return within_horizon(work, step, s);
    }
    const std::int64_t k = s / 2;
    if (s % 2 != 0) {
      return task.ready(Numbers::message(step.base, k)) ? Phase{Act::check, k} : Phase{};
    }
    return within(group_of(task).horizon.load(std::memory_order_acquire), k);
  }

  /// Iteration k if the horizon allows it, the commit if it is final.
  static Phase within(std::int64_t horizon, std::int64_t k) {
    if (k < horizon / 2) return {Act::iterate, k};
    return horizon % 2 != 0 ? Phase{Act::commit, k} : Phase{};
  }

  template <class Work>
  Phase within_horizon(Work& work, const Step& step, std::int64_t k) {
    std::int64_t horizon = horizon_.load(std::memory_order_acquire);
    if (k >= horizon / 2 && horizon % 2 == 0) horizon = extend(work, step, horizon);
    return within(horizon, k);
  }

  /// Asks the clock, for all tasks. Whoever is first decides.
  template <class Work>
  std::int64_t extend(Work& work, const Step& step, std::int64_t horizon) {
    const std::int64_t done = horizon / 2;
    const std::int64_t wanted = work.allowed(static_cast<int>(done), step.budget);
    const bool stop = wanted == done || fault_at_.load(std::memory_order_relaxed) != kNever;
    const std::int64_t next = stop ? 2 * done + 1 : 2 * wanted + (wanted == step.budget ? 1 : 0);
    if (!horizon_.compare_exchange_strong(horizon, next, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      return horizon;  // what the other one decided
    }
    if (stop) out_of_time_.store(true, std::memory_order_relaxed);
    return next;
  }

  /// Returns the phase that comes next.
  template <class Work, class Task>
  std::uint64_t run_phase(Work& work, int index, Task& task, const Step& step, const Phase& phase,
                          std::uint64_t current, std::uint64_t limit) {
    if (task.alone()) return run_alone(work, index, task, step, phase, limit);
    switch (phase.act) {
      case Act::iterate: {
        const std::uint64_t number = Numbers::message(step.base, phase.k);
        if (is_void(phase.k)) {
          task.publish(number);
        } else {
          work.iterate(task, phase.k, number);
        }
        return current + 1;
      }
      case Act::check:
        check(work, task, step, phase.k);
        return current + 1;
      default:
        work.commit(task, phase.k, Numbers::message(step.base, phase.k - 1));
        return Numbers::after_commit(current, limit);
    }
  }

  /// Without a clock the whole step at once; with one, up to the horizon.
  template <class Work, class Task>
  std::uint64_t run_alone(Work& work, int index, Task& task, const Step& step, const Phase& phase,
                          std::uint64_t limit) {
    int to = -1;
    if (phase.act == Act::iterate) {
      to =
          step.timed ? static_cast<int>(horizon_.load(std::memory_order_acquire) / 2) : step.budget;
    }
    const bool goes_on = work.run_alone(index, task, to);
    return goes_on ? step.base + static_cast<std::uint64_t>(to) : limit;
  }

  /// The gap after iteration k. The last task of the island group to arrive judges it for all.
  template <class Work, class Task>
  void check(Work& work, Task& task, const Step& step, std::int64_t k) {
    if (!is_void(k)) work.measure(task, Numbers::message(step.base, k));
    IslandGroup& group = group_of(task);
    const std::int64_t arrived = group.arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived != group.tasks * (k + 1)) return;
    bool stop = true;
    if (fault_at_.load(std::memory_order_relaxed) > k) {
      stop = work.judge(task, k);
      if (!stop && step.timed && work.allowed(static_cast<int>(k + 1), step.budget) == k + 1) {
        stop = true;
        out_of_time_.store(true, std::memory_order_relaxed);
      }
    }
    group.horizon.store(2 * (stop ? k + 1 : k + 2) + (stop ? 1 : 0), std::memory_order_release);
  }

  typename Atomics::template Plain<Step> step_;  // written by `open` only
  std::vector<Word> words_;
  std::vector<IslandGroup> island_groups_;
  alignas(128) Atomic<std::uint64_t> limit_{0};
  Atomic<std::uint64_t> hint_{0};  ///< 2·base + (1 when checked)
  /// As IslandGroup::horizon, of all plain iterations.
  alignas(128) Atomic<std::int64_t> horizon_{0};
  alignas(128) Atomic<std::int64_t> fault_at_{kNever};
  Atomic<bool> out_of_time_{false};
};

}  // namespace portwave
