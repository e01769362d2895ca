#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "execution/solo_step.hpp"
#include "execution/worker_team.hpp"

namespace portwave {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
/// Looks at one's own tasks in vain before those of others are taken.
constexpr int kFruitlessChecks = 24;

/// Tasks are claimed, phase by phase, by whoever is there. The protocol and its memory orders are
/// argued in docs/concepts/wave-exchange.md.
///
/// Phases are numbered through the whole run. A macro-step owns the phases [base, limit):
///   plain    base + k: iteration k, or the commit once k is the last;
///   checked  base + 2k: iteration k or the commit; base + 2k + 1: the gap after iteration k.
/// A task that has committed jumps to `limit`, which is the base of the next step.
class WaveExecutor final : public Executor, private WorkerTeam::Work {
 public:
  WaveExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads)
      : threads_(threads),
        graph_(waves, partition),
        words_(static_cast<std::size_t>(graph_.size())),
        island_groups_(static_cast<std::size_t>(waves.island_group_count())),
        worker_states_(static_cast<std::size_t>(threads)),
        team_(threads, *this) {
    for (int i = 0; i < graph_.size(); ++i) {
      Task& task = graph_.task(i);
      solo_.push_back(task.alone() ? std::make_unique<SoloStep>(task, waves, exchanged_) : nullptr);
      IslandGroup& island_group = island_groups_[static_cast<std::size_t>(task.island_group())];
      if (island_group.tasks++ == 0) island_group.first = &task;
    }
    for (int w = 0; w < threads; ++w) {
      WorkerState& post = worker_states_[static_cast<std::size_t>(w)];
      post.first = graph_.size() * w / threads;
      post.last = graph_.size() * (w + 1) / threads;
      post.cursor.store(post.first, std::memory_order_relaxed);
    }
  }

  // Workers must be gone before anything they use is.
  ~WaveExecutor() override { team_.dismiss(); }
  WaveExecutor(const WaveExecutor&) = delete;
  WaveExecutor& operator=(const WaveExecutor&) = delete;

  int threads() const override { return threads_; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }

  StepResult run(const StepArrays& s, const StepPlan& plan,
                 std::span<IslandOutcome> outcomes) override {
    begin(s, plan, outcomes);
    team_.summon();
    work_until_done();
    StepResult result;
    take_failure(graph_, result);
    result.out_of_time = out_of_time_.load(std::memory_order_relaxed);
    if (plan.timed) result.inner_end = inner_end();
    return result;
  }

 private:
  struct alignas(128) Word {
    std::atomic<std::uint64_t> value{0};  ///< 2·(next phase) + (1 while somebody runs it)
  };
  /// Of a island_group that is cut into several tasks, in checked iterations.
  struct alignas(128) IslandGroup {
    std::atomic<std::int64_t> arrived{0};  ///< tasks whose gap is measured, over the whole step
    std::atomic<std::int64_t> horizon{0};  ///< 2·(iterations allowed) + (1 when final)
    int tasks = 0;
    const Task* first = nullptr;
  };
  /// A worker's own tasks, [first, last). Where more workers come than there are posts, some share.
  struct alignas(128) WorkerState {
    int first = 0;
    int last = 0;
    std::atomic<int> cursor{0};
    std::atomic<int> vain{0};  ///< looks in vain since the last find
  };
  static bool found(WorkerState& post, int next) {
    post.cursor.store(next < post.last ? next : post.first, std::memory_order_relaxed);
    post.vain.store(0, std::memory_order_relaxed);
    return true;
  }
  enum class Act { none, iterate, check, commit };
  struct Phase {
    Act act = Act::none;
    std::int64_t k = 0;  ///< iteration; for the commit: how many were done
  };

  /// Nobody is inside a task: everything that is not atomic may be written.
  void begin(const StepArrays& s, const StepPlan& plan, std::span<IslandOutcome> outcomes) {
    arrays_ = s;
    plan_ = plan;
    outcomes_ = outcomes;
    base_ = limit_.load(std::memory_order_relaxed);
    hint_base_.store(base_, std::memory_order_relaxed);
    hint_checked_.store(plan.rule.checked(), std::memory_order_relaxed);
    const std::int64_t budget = plan.rule.budget;
    fault_at_.store(kNever, std::memory_order_relaxed);
    out_of_time_.store(false, std::memory_order_relaxed);
    inner_end_ns_.store(0, std::memory_order_relaxed);
    horizon_.store(plan.deadline == nullptr ? 2 * budget + 1 : 0, std::memory_order_relaxed);
    if (plan.deadline != nullptr && budget == 0) horizon_.store(1, std::memory_order_relaxed);
    if (plan.rule.checked()) {
      const bool no_time =
          plan.deadline != nullptr && budget > 0 &&
          plan.deadline->horizon(0, plan.rule.budget, DeadlineScheduler::Clock::now()) == 0;
      if (no_time) out_of_time_.store(true, std::memory_order_relaxed);
      for (IslandGroup& island_group : island_groups_) {
        island_group.arrived.store(0, std::memory_order_relaxed);
        island_group.horizon.store(budget == 0 || no_time ? 1 : 2, std::memory_order_relaxed);
      }
    }
    for (int i = 0; i < graph_.size(); ++i) {
      Task& task = graph_.task(i);
      task.outcome = {};
      if (solo_[static_cast<std::size_t>(i)] == nullptr || !plan.recommit.empty()) continue;
      solo_[static_cast<std::size_t>(i)]->begin(s, plan.rule, outcomes);
    }
    // Everything above happens before any phase of this step: a worker acquires the limit that
    // lets it claim one.
    limit_.store(base_ + 2 * static_cast<std::uint64_t>(budget) + 4, std::memory_order_release);
  }

  void work_until_done() {
    const std::uint64_t end = 2 * limit_.load(std::memory_order_relaxed);
    int turns = 0;
    for (std::size_t i = 0; i < words_.size();) {
      if (words_[i].value.load(std::memory_order_acquire) == end) {
        ++i;
      } else if (try_work(0)) {
        turns = 0;
      } else {
        back_off(++turns);
      }
    }
  }

  bool try_work(int worker) noexcept override {
    const std::uint64_t limit = limit_.load(std::memory_order_acquire);
    const int count = graph_.size();
    WorkerState& post = worker_states_[static_cast<std::size_t>(std::min(worker, threads_ - 1))];
    // Where the last task was found, so that a sweep over many tasks is one pass, not one per task.
    const int cursor = post.cursor.load(std::memory_order_relaxed);
    for (int i = cursor; i < post.last; ++i) {
      if (try_task(i, limit)) return found(post, i + 1);
    }
    for (int i = post.first; i < cursor; ++i) {
      if (try_task(i, limit)) return found(post, i + 1);
    }
    // Others' tasks only after a while, unless those others are not there.
    const int vain = post.vain.load(std::memory_order_relaxed) + 1;
    post.vain.store(vain, std::memory_order_relaxed);
    if (vain < kFruitlessChecks && team_.present() == threads_ - 1) return false;
    for (int i = post.last; i < post.last + count - (post.last - post.first); ++i) {
      if (try_task(i % count, limit)) return true;
    }
    return false;
  }

  bool try_task(int index, std::uint64_t limit) {
    std::atomic<std::uint64_t>& word = words_[static_cast<std::size_t>(index)].value;
    std::uint64_t seen = word.load(std::memory_order_relaxed);
    if ((seen & 1U) != 0 || seen / 2 >= limit) return false;
    Task& task = graph_.task(index);
    if (!worth_claiming(task, seen / 2)) return false;
    if (!word.compare_exchange_strong(seen, seen | 1U, std::memory_order_acquire,
                                      std::memory_order_relaxed)) {
      return false;
    }
    // Only now it is sure that the step is the current one and its plan stays as it is.
    const Phase phase = next_phase(task, static_cast<std::int64_t>(seen / 2 - base_));
    const std::uint64_t next =
        phase.act == Act::none ? seen / 2 : run_phase(index, task, phase, seen / 2, limit);
    word.store(2 * next, std::memory_order_release);
    return phase.act != Act::none;
  }

  /// Whether a claim is likely to find something to do. A hint: it reads atomics only, and may mix
  /// those of two steps.
  bool worth_claiming(const Task& task, std::uint64_t current) const {
    const std::uint64_t base = hint_base_.load(std::memory_order_relaxed);
    if (current < base) return false;
    if (task.alone()) return true;
    const auto s = static_cast<std::int64_t>(current - base);
    if (!hint_checked_.load(std::memory_order_relaxed)) {
      return s == 0 || task.ready(base + static_cast<std::uint64_t>(s));
    }
    const std::int64_t k = s / 2;
    if (s % 2 != 0) return task.ready(base + static_cast<std::uint64_t>(k) + 1);
    const std::int64_t horizon =
        island_groups_[static_cast<std::size_t>(task.island_group())].horizon.load(
            std::memory_order_relaxed);
    return k < horizon / 2 || horizon % 2 != 0;
  }

  /// What is to be done at place s of a step; `none` while something is awaited.
  Phase next_phase(const Task& task, std::int64_t s) {
    if (task.alone()) {
      return plan_.deadline == nullptr ? Phase{Act::iterate, 0} : beyond_horizon(s);
    }
    if (!plan_.rule.checked()) {
      if (s > 0 && !task.ready(number(s - 1))) return {};
      return beyond_horizon(s);
    }
    const std::int64_t k = s / 2;
    if (s % 2 != 0) return task.ready(number(k)) ? Phase{Act::check, k} : Phase{};
    const std::int64_t horizon =
        island_groups_[static_cast<std::size_t>(task.island_group())].horizon.load(
            std::memory_order_acquire);
    if (k < horizon / 2) return {Act::iterate, k};
    return horizon % 2 != 0 ? Phase{Act::commit, k} : Phase{};
  }

  /// Iteration k if the clock allows it, the commit if it is over.
  Phase beyond_horizon(std::int64_t k) {
    std::int64_t horizon = horizon_.load(std::memory_order_acquire);
    if (k >= horizon / 2 && horizon % 2 == 0) horizon = extend(horizon);
    if (k < horizon / 2) return {Act::iterate, k};
    return horizon % 2 != 0 ? Phase{Act::commit, k} : Phase{};
  }

  /// Looks at the clock for all tasks. Whoever is first decides.
  std::int64_t extend(std::int64_t horizon) {
    const std::int64_t done = horizon / 2, budget = plan_.rule.budget;
    const auto now = DeadlineScheduler::Clock::now();
    std::int64_t wanted =
        plan_.deadline->horizon(static_cast<int>(done), static_cast<int>(budget), now);
    const bool stop = wanted == done || fault_at_.load(std::memory_order_relaxed) != kNever;
    const std::int64_t next = stop ? 2 * done + 1 : 2 * wanted + (wanted == budget ? 1 : 0);
    if (!horizon_.compare_exchange_strong(horizon, next, std::memory_order_acq_rel,
                                          std::memory_order_acquire)) {
      return horizon;  // what the other one decided
    }
    if (stop) out_of_time_.store(true, std::memory_order_relaxed);
    return next;
  }

  /// Number of the messages of iteration k.
  std::uint64_t number(std::int64_t k) const { return base_ + static_cast<std::uint64_t>(k) + 1; }

  std::uint64_t run_phase(int index, Task& task, const Phase& phase, std::uint64_t current,
                          std::uint64_t limit) {
    if (task.alone()) return run_alone(index, task, phase, current, limit);
    switch (phase.act) {
      case Act::iterate:
        iterate(task, phase.k);
        return current + 1;
      case Act::check:
        check(task, phase.k);
        return current + 1;
      default:
        commit(task, phase.k);
        return limit;
    }
  }

  /// After a fault at an earlier iteration there is nothing to compute, only others to let go.
  bool is_void(std::int64_t k) const { return fault_at_.load(std::memory_order_relaxed) < k; }

  void fail(Task& task, std::int64_t k, PhaseStatus&& failure) {
    const int at = k == kNever ? TaskOutcome::kCommit : static_cast<int>(k);
    TaskOutcome& outcome = task.outcome;
    if (outcome.failed_at < 0) outcome = {at, {}};
    if (outcome.failed_at == at) outcome.failure.merge(std::move(failure));
    std::int64_t earliest = fault_at_.load(std::memory_order_relaxed);
    while (k < earliest &&
           !fault_at_.compare_exchange_weak(earliest, k, std::memory_order_relaxed)) {
    }
  }

  void iterate(Task& task, std::int64_t k) {
    if (is_void(k)) {
      task.publish(number(k));
      return;
    }
    if (k == 0) task.start(arrays_, arrays_.u);
    task.iterate(arrays_, static_cast<int>(k), plan_.rule.update, number(k),
                 [&](PhaseStatus&& failure) { fail(task, k, std::move(failure)); });
  }

  /// The gap after iteration k. The last task of the island_group to arrive judges it for all.
  void check(Task& task, std::int64_t k) {
    if (!is_void(k)) {
      task.exchange(arrays_, number(k), arrays_.a);
      task.measure(arrays_, arrays_.a);
    }
    IslandGroup& island_group = island_groups_[static_cast<std::size_t>(task.island_group())];
    const std::int64_t arrived = island_group.arrived.fetch_add(1, std::memory_order_acq_rel) + 1;
    if (arrived != island_group.tasks * (k + 1)) return;
    const IslandIteration island(task, 0);
    const IterationRule& rule = plan_.rule;
    bool stop = true;
    if (fault_at_.load(std::memory_order_relaxed) > k) {
      IslandOutcome& outcome = outcomes_[static_cast<std::size_t>(island.island())];
      stop = island.judge(arrays_, rule, static_cast<int>(k + 1), arrays_.a, outcome);
      if (!stop && plan_.deadline != nullptr &&
          plan_.deadline->horizon(static_cast<int>(k + 1), rule.budget,
                                  DeadlineScheduler::Clock::now()) == k + 1) {
        stop = true;
        out_of_time_.store(true, std::memory_order_relaxed);
      }
    }
    island_group.horizon.store(2 * (stop ? k + 1 : k + 2) + (stop ? 1 : 0),
                               std::memory_order_release);
  }

  void commit(Task& task, std::int64_t k) {
    if (!plan_.recommit.empty()) return commit_again(task);
    note_inner_end();
    if (!plan_.rule.checked() || k == 0) {
      const IslandGroup& island_group =
          island_groups_[static_cast<std::size_t>(task.island_group())];
      if (island_group.first == &task) {
        for (const int island : task.islands()) {
          outcomes_[static_cast<std::size_t>(island)] = {.iterations = static_cast<int>(k)};
        }
      }
    }
    if (is_void(kNever)) return;
    choose_shadow(task, arrays_, plan_.rule, static_cast<int>(k), number(k - 1));
    PhaseStatus failure;
    if (!task.commit(arrays_, failure)) fail(task, kNever, std::move(failure));
  }

  void commit_again(Task& task) {
    task.recommit(arrays_, plan_.recommit);
    if (task.outcome.failed_at < 0) return;
    TaskOutcome outcome = std::exchange(task.outcome, {});
    fail(task, kNever, std::move(outcome.failure));
  }

  /// Without a deadline the whole step at once; with one, up to the horizon.
  std::uint64_t run_alone(int index, Task& task, const Phase& phase, std::uint64_t current,
                          std::uint64_t limit) {
    if (!plan_.recommit.empty()) {
      commit_again(task);
      return limit;
    }
    SoloStep& step = *solo_[static_cast<std::size_t>(index)];
    const bool whole = plan_.deadline == nullptr;
    if (phase.act == Act::iterate) {
      const std::int64_t horizon = horizon_.load(std::memory_order_acquire) / 2;
      const int to = whole ? plan_.rule.budget : static_cast<int>(horizon);
      const bool open = step.iterate(arrays_, plan_.rule, to, outcomes_);
      if (task.outcome.failed_at >= 0) {
        TaskOutcome outcome = std::exchange(task.outcome, {});
        fail(task, outcome.failed_at, std::move(outcome.failure));
        return limit;
      }
      if (!whole && open) return base_ + static_cast<std::uint64_t>(to);
    }
    (void)current;
    note_inner_end();
    if (is_void(kNever)) return limit;
    step.commit(arrays_, plan_.rule);
    if (task.outcome.failed_at >= 0) {
      TaskOutcome outcome = std::exchange(task.outcome, {});
      fail(task, kNever, std::move(outcome.failure));
    }
    return limit;
  }

  /// The first task that turns to its commit: what follows, iterations of slower tasks included, is
  /// what has to fit between the decision to stop and the deadline.
  void note_inner_end() {
    if (!plan_.timed || inner_end_ns_.load(std::memory_order_relaxed) != 0) return;
    const std::int64_t now = DeadlineScheduler::Clock::now().time_since_epoch().count();
    std::int64_t none = 0;
    inner_end_ns_.compare_exchange_strong(none, now, std::memory_order_relaxed);
  }
  DeadlineScheduler::Time inner_end() const {
    return DeadlineScheduler::Time(
        DeadlineScheduler::Clock::duration(inner_end_ns_.load(std::memory_order_relaxed)));
  }

  int threads_;
  TaskGraph graph_;
  AlignedVector exchanged_;                      // of SoloStep
  std::vector<std::unique_ptr<SoloStep>> solo_;  // of tasks that are alone
  // Written by `begin` only, read by whoever has acquired `limit_` since.
  StepArrays arrays_;
  StepPlan plan_;
  std::span<IslandOutcome> outcomes_;
  std::uint64_t base_ = 0;
  std::vector<Word> words_;
  std::vector<IslandGroup> island_groups_;
  std::vector<WorkerState> worker_states_;
  alignas(128) std::atomic<std::uint64_t> limit_{0};
  std::atomic<std::uint64_t> hint_base_{0};
  std::atomic<bool> hint_checked_{false};
  alignas(128) std::atomic<std::int64_t> horizon_{
      0};  ///< as IslandGroup::horizon, of all plain iterations
  alignas(128) std::atomic<std::int64_t> fault_at_{kNever};
  std::atomic<std::int64_t> inner_end_ns_{0};
  std::atomic<bool> out_of_time_{false};
  WorkerTeam team_;
};

}  // namespace

std::unique_ptr<Executor> make_wave_executor(const WaveDiscretisation& waves,
                                             const Partition& partition, int threads) {
  return std::make_unique<WaveExecutor>(waves, partition, threads);
}

}  // namespace portwave
