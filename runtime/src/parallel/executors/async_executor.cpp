#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/executors/async_schedule.hpp"
#include "parallel/executors/solo_step.hpp"
#include "parallel/gap_shares.hpp"
#include "parallel/step_trace.hpp"
#include "parallel/threads/shared_loop.hpp"
#include "parallel/threads/worker_team.hpp"

namespace portwave {
namespace {

using Schedule = AsyncSchedule<StandardAtomics>;

/// Checks of one's own tasks that find nothing, before those of others are taken.
constexpr int kFruitlessChecks = 24;

/// Tasks are claimed, phase by phase, by whoever is there (AsyncSchedule). `Follow`: NoTrace, or a trace.
template <class Follow>
class AsyncExecutor final : public Executor, private WorkerTeam::Work {
 public:
  AsyncExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads,
                const std::shared_ptr<Arena>& arena, Follow follow)
      : follow_(follow),
        threads_(threads),
        graph_(waves, partition),
        first_of_island_group_(static_cast<std::size_t>(waves.island_group_count()), nullptr),
        schedule_(graph_.size(), tasks_of_groups()),
        shares_(shares_of_groups(partition, waves.island_group_count()), threads,
                tasks_of_groups()),
        loop_(threads),
        worker_states_(static_cast<std::size_t>(threads)),
        team_(threads, *this, arena) {
    for (int i = 0; i < graph_.size(); ++i) {
      Task& task = graph_.task(i);
      solo_.push_back(task.alone() ? std::make_unique<SoloStep>(task, waves, exchanged_,
                                                                shares_.share(task.island_group()))
                                   : nullptr);
    }
    for (int w = 0; w < threads; ++w) {
      WorkerState& worker = worker_states_[static_cast<std::size_t>(w)];
      worker.first = graph_.size() * w / threads;
      worker.last = graph_.size() * (w + 1) / threads;
      worker.cursor.store(worker.first, std::memory_order_relaxed);
    }
  }

  // Workers must be gone before anything they use is.
  ~AsyncExecutor() override { team_.dismiss(); }
  AsyncExecutor(const AsyncExecutor&) = delete;
  AsyncExecutor& operator=(const AsyncExecutor&) = delete;

  int threads() const override { return threads_; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }
  bool keeps_places() const override { return graph_.keeps_places(); }

  StepResult do_execute(const StepArrays& s, const StepPlan& plan,
                        std::span<IslandOutcome> outcomes) override {
    prepare(s, plan, outcomes);
    const std::uint64_t limit =
        schedule_.open(*this, plan.rule.budget, plan.rule.checked(), plan.deadline != nullptr);
    team_.summon();
    work_until(limit);
    StepResult result;
    take_failure(graph_, result);
    result.out_of_time = schedule_.out_of_time() || has_left_.load(std::memory_order_relaxed);
    if (shares_time_) shares_.end(plan);
    if (plan.timed) result.inner_end = inner_end();
    return result;
  }

  const ForEach& for_each() const override { return each_; }
  const ForEach& for_each_within() const override { return each_; }

  // ---- What the schedule calls. The task is held, and the step cannot change. ----

  Task& task(int index) { return graph_.task(index); }

  int allowed(int done, int budget) {
    const int next = shares_time_ ? done + 1 : plan_.until_clock(done);
    return plan_.deadline->horizon(done, std::min(budget, next), Clock::now());
  }

  void iterate(Task& task, std::int64_t k, std::uint64_t number) {
    if (k == 0) task.begin(arrays_);
    task.iterate(arrays_, static_cast<int>(k), plan_.rule.update, number,
                 [&](PhaseStatus&& failure) { fail(task, k, std::move(failure)); });
  }

  void measure(Task& task, std::uint64_t number) {
    task.exchange(arrays_, number, arrays_.a);
    task.measure(arrays_, arrays_.a);
  }

  bool judge(Task& task, std::int64_t k) {
    const IslandIteration island(task, 0);
    IslandOutcome& outcome = outcomes_[static_cast<std::size_t>(island.island())];
    Clock::spend(portwave::Work::evaluation, shares_.share(task.island_group()));
    const bool stops =
        island.judge(arrays_, plan_.rule, static_cast<int>(k + 1), arrays_.a, outcome);
    // A long solve has sent workers home: tasks that wait for it are theirs, too.
    team_.summon();
    if (shares_time_) {
      shares_.note(task.island_group(), task.islands(), outcomes_, !stops);
      note_evaluation();
    }
    return stops || leaves_time_to_others(task);
  }

  void commit(Task& task, std::int64_t k, std::uint64_t number) {
    if (!plan_.recommit.empty()) return commit_again(task);
    note_inner_end();
    if (!plan_.rule.checked() &&
        first_of_island_group_[static_cast<std::size_t>(task.island_group())] == &task) {
      for (const int island : task.islands()) {
        outcomes_[static_cast<std::size_t>(island)].iterations = static_cast<int>(k);
      }
    }
    if (schedule_.is_void(Schedule::kNever)) return;
    choose_shadow(task, arrays_, plan_.rule, static_cast<int>(k), number);
    PhaseStatus failure;
    if (!task.commit(arrays_, failure)) fail(task, Schedule::kNever, std::move(failure));
  }

  bool run_alone(int index, Task& task, int to) {
    if (!plan_.recommit.empty()) {
      commit_again(task);
      return false;
    }
    SoloStep& step = *solo_[static_cast<std::size_t>(index)];
    if (to >= 0) {
      const bool open = shares_time_ ? step.iterate(arrays_, plan_, to, outcomes_, shares_)
                                     : step.iterate(arrays_, plan_.rule, to, outcomes_);
      if (task.outcome.failed_at >= 0) {
        note_outcome(task);
        return false;
      }
      if (shares_time_) note_evaluation();
      if (open && plan_.deadline != nullptr && !leaves_time_to_others(task)) return true;
    }
    note_inner_end();
    if (schedule_.is_void(Schedule::kNever)) return false;
    step.commit(arrays_, plan_.rule);
    if (task.outcome.failed_at >= 0) note_outcome(task);
    return false;
  }

 private:
  /// The same for the schedule, and what the task does is noted.
  struct Followed {
    AsyncExecutor& all;
    int worker, index;

    template <class Act>
    auto noted(ProfileEvent::Kind kind, Act act) {
      if (!all.follow_.is_on()) return act();
      struct Note {
        Followed& own;
        ProfileEvent::Kind kind;
        std::int64_t begin_ns = StepTrace::now_ns();
        ~Note() { own.all.follow_.trace->note(own.worker, own.index, kind, begin_ns); }
      } const note{*this, kind};
      return act();
    }
    Task& task(int i) { return all.task(i); }
    int allowed(int done, int budget) { return all.allowed(done, budget); }
    void iterate(Task& task, std::int64_t k, std::uint64_t number) {
      noted(ProfileEvent::Kind::iterate, [&] { all.iterate(task, k, number); });
    }
    void measure(Task& task, std::uint64_t number) {
      noted(ProfileEvent::Kind::exchange, [&] { all.measure(task, number); });
    }
    bool judge(Task& task, std::int64_t k) { return all.judge(task, k); }
    void commit(Task& task, std::int64_t k, std::uint64_t number) {
      noted(ProfileEvent::Kind::commit, [&] { all.commit(task, k, number); });
    }
    bool run_alone(int number, Task& task, int to) {
      return noted(ProfileEvent::Kind::iterate, [&] { return all.run_alone(number, task, to); });
    }
  };

  /// By the workers of the team.
  class TeamForEach final : public ForEach {
   public:
    explicit TeamForEach(AsyncExecutor& own) : own_(own) {}

   private:
    void run(int count, SharedLoop::Call call, const void* body) const override {
      if (count > 0) own_.loop_.run(count, call, body, own_.team_, worker_now_);
    }

    AsyncExecutor& own_;
  };

  /// A worker's own tasks, [first, last). Where more workers come than there are of these, some
  /// share one.
  struct alignas(128) WorkerState {
    int first = 0;
    int last = 0;
    std::atomic<int> cursor{0};
    std::atomic<int> fruitless{0};  ///< checks that found nothing since the last that did
  };
  static bool found(WorkerState& worker, int next) {
    worker.cursor.store(next < worker.last ? next : worker.first, std::memory_order_relaxed);
    worker.fruitless.store(0, std::memory_order_relaxed);
    return true;
  }

  /// Tasks by island group; notes the first one of each.
  std::vector<int> tasks_of_groups() {
    std::vector<int> tasks(first_of_island_group_.size(), 0);
    for (int i = 0; i < graph_.size(); ++i) {
      const auto group = static_cast<std::size_t>(graph_.task(i).island_group());
      if (tasks[group]++ == 0) first_of_island_group_[group] = &graph_.task(i);
    }
    return tasks;
  }

  /// Whether the island group, which could go on, stops since others make more of the time.
  bool leaves_time_to_others(const Task& task) {
    if (!shares_time_) return false;
    const double left_s = plan_.deadline->left_s(Clock::now()) - plan_.deadline->commit_s();
    if (!shares_.leaves_to_others(task.island_group(), left_s)) return false;
    shares_.leave(task.island_group());
    has_left_.store(true, std::memory_order_relaxed);
    return true;
  }

  /// Nobody is inside a task: everything that is not atomic may be written.
  void prepare(const StepArrays& s, const StepPlan& plan, std::span<IslandOutcome> outcomes) {
    arrays_ = s;
    plan_ = plan;
    outcomes_ = outcomes;
    inner_end_ns_.store(0, std::memory_order_relaxed);
    has_left_.store(false, std::memory_order_relaxed);
    shares_time_ = shares_.is_for(plan) && shares_.size() <= GapShares::kMostCompared;
    if (shares_time_) shares_.begin(threads_ * plan.deadline->iteration_s());
    for (int i = 0; i < graph_.size(); ++i) {
      graph_.task(i).outcome = {};
      if (solo_[static_cast<std::size_t>(i)] == nullptr || !plan.recommit.empty()) continue;
      solo_[static_cast<std::size_t>(i)]->begin();
    }
  }

  /// The calling thread works like the others until all tasks have reached `limit`.
  void work_until(std::uint64_t limit) {
    int turns = 0;
    for (int i = 0; i < graph_.size();) {
      if (schedule_.at_end(i, limit)) {
        ++i;
      } else if (try_work(0)) {
        turns = 0;
      } else {
        back_off(++turns);
      }
    }
  }

  bool try_task(int worker, int index, std::uint64_t limit) {
    if constexpr (std::is_same_v<Follow, FollowTasks>) {
      Followed followed{*this, worker, index};
      return schedule_.try_task(followed, index, limit);
    } else {
      return schedule_.try_task(*this, index, limit);
    }
  }

  bool try_work(int number) noexcept override {
    worker_now_ = number;
    if (loop_.try_work(number)) return true;
    const std::uint64_t limit = schedule_.limit();
    const int count = graph_.size();
    WorkerState& worker = worker_states_[static_cast<std::size_t>(std::min(number, threads_ - 1))];
    // Where the last task was found, so that a sweep over many tasks is one pass, not one per task.
    const int cursor = worker.cursor.load(std::memory_order_relaxed);
    for (int i = cursor; i < worker.last; ++i) {
      if (try_task(number, i, limit)) return found(worker, i + 1);
    }
    for (int i = worker.first; i < cursor; ++i) {
      if (try_task(number, i, limit)) return found(worker, i + 1);
    }
    // Others' tasks only after a while, unless those others are not there.
    const int fruitless = worker.fruitless.load(std::memory_order_relaxed) + 1;
    worker.fruitless.store(fruitless, std::memory_order_relaxed);
    if (fruitless < kFruitlessChecks && team_.present() == threads_ - 1) return false;
    for (int i = worker.last; i < worker.last + count - (worker.last - worker.first); ++i) {
      if (try_task(number, i % count, limit)) return true;
    }
    return false;
  }

  /// The task's own note comes first, and then the one that others see.
  void fail(Task& task, std::int64_t k, PhaseStatus&& failure) {
    const int at = k == Schedule::kNever ? TaskOutcome::kCommit : static_cast<int>(k);
    TaskOutcome& outcome = task.outcome;
    if (outcome.failed_at < 0) outcome = {at, {}};
    if (outcome.failed_at == at) outcome.failure.merge(std::move(failure));
    schedule_.note_fault(k);
  }
  /// The task has noted its failure itself.
  void note_outcome(Task& task) {
    TaskOutcome outcome = std::exchange(task.outcome, {});
    const bool in_commit = outcome.failed_at == TaskOutcome::kCommit;
    fail(task, in_commit ? Schedule::kNever : outcome.failed_at, std::move(outcome.failure));
  }

  void commit_again(Task& task) {
    task.recommit(arrays_, plan_.recommit);
    if (task.outcome.failed_at >= 0) note_outcome(task);
  }

  /// The first task that turns to its commit: what follows, iterations of slower tasks included, is
  /// what has to fit between the decision to stop and the deadline.
  void note_inner_end() {
    if (!plan_.timed || inner_end_ns_.load(std::memory_order_relaxed) != 0) return;
    const std::int64_t now = Clock::now().time_since_epoch().count();
    std::int64_t none = 0;
    inner_end_ns_.compare_exchange_strong(none, now, std::memory_order_relaxed);
  }
  /// Where island groups stop one by one the inner iteration ends with the last evaluation.
  void note_evaluation() {
    const std::int64_t now = Clock::now().time_since_epoch().count();
    std::int64_t seen = inner_end_ns_.load(std::memory_order_relaxed);
    while (seen < now &&
           !inner_end_ns_.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
    }
  }
  DeadlineScheduler::Time inner_end() const {
    return DeadlineScheduler::Time(
        DeadlineScheduler::Clock::duration(inner_end_ns_.load(std::memory_order_relaxed)));
  }

  /// Of this thread: a loop that it opens begins with the indices whose data it is likely to have.
  static inline thread_local int worker_now_ = 0;

  [[no_unique_address]] Follow follow_;
  int threads_;
  TaskGraph graph_;
  std::vector<const Task*> first_of_island_group_;
  AlignedVector exchanged_;                      // of SoloStep
  std::vector<std::unique_ptr<SoloStep>> solo_;  // of tasks that are alone
  // Written by `prepare` only, read by whoever has acquired the limit since.
  StepArrays arrays_;
  StepPlan plan_;
  std::span<IslandOutcome> outcomes_;
  Schedule schedule_;
  GapShares shares_;          // of island groups
  bool shares_time_ = false;  // in this step
  std::atomic<bool> has_left_{false};
  SharedLoop loop_;
  TeamForEach each_{*this};
  std::vector<WorkerState> worker_states_;
  alignas(128) std::atomic<std::int64_t> inner_end_ns_{0};
  WorkerTeam team_;
};

}  // namespace

std::unique_ptr<Executor> make_async_executor(const WaveDiscretisation& waves,
                                              const Partition& partition, int threads,
                                              const std::shared_ptr<Arena>& arena,
                                              StepTrace* trace) {
  if (trace != nullptr) {
    return std::make_unique<AsyncExecutor<FollowTasks>>(waves, partition, threads, arena,
                                                        FollowTasks{trace});
  }
  return std::make_unique<AsyncExecutor<NoTrace>>(waves, partition, threads, arena, NoTrace{});
}

}  // namespace portwave
