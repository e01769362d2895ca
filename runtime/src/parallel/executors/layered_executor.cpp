#include "parallel/executors/layered_executor.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

#include "parallel/clock.hpp"

namespace portwave {

namespace {

std::vector<int> all_tasks_of(const Partition& partition) {
  std::vector<int> all(partition.tasks.size());
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<int> tasks_of_groups(const Partition& partition, int groups) {
  std::vector<int> tasks(static_cast<std::size_t>(groups), 0);
  for (const Partition::Task& task : partition.tasks) {
    ++tasks[static_cast<std::size_t>(task.island_group)];
  }
  return tasks;
}

}  // namespace

LayeredExecutor::LayeredExecutor(const WaveDiscretisation& waves, const Partition& partition,
                                 int threads)
    : LayeredExecutor(waves, partition, threads, all_tasks_of(partition)) {}

LayeredExecutor::LayeredExecutor(const WaveDiscretisation& waves, const Partition& partition,
                                 int threads, std::vector<int> own)
    : threads_(threads),
      graph_(waves, partition),
      own_(std::move(own)),
      stopped_(static_cast<std::size_t>(waves.island_group_count()), 0),
      shares_(shares_of_groups(partition, waves.island_group_count()), threads,
              tasks_of_groups(partition, waves.island_group_count())),
      first_of_island_group_(stopped_.size(), -1) {
  for (int i = graph_.size() - 1; i >= 0; --i) {
    first_of_island_group_[static_cast<std::size_t>(graph_.task(i).island_group())] = i;
  }
  solo_.resize(static_cast<std::size_t>(graph_.size()));
  for (const int i : own_) {
    Task& task = graph_.task(i);
    if (!task.alone()) continue;
    solo_[static_cast<std::size_t>(i)] =
        std::make_unique<SoloStep>(task, waves, exchanged_, shares_.share(task.island_group()));
  }
}

bool LayeredExecutor::is_any_cut_open() const {
  for (std::size_t island_group = 0; island_group < stopped_.size(); ++island_group) {
    const int first = first_of_island_group_[island_group];
    if (first >= 0 && stopped_[island_group] == 0 && !graph_.task(first).alone()) return true;
  }
  return false;
}

StepResult LayeredExecutor::do_execute(const StepArrays& arrays, const StepPlan& plan,
                                       std::span<IslandOutcome> outcomes) {
  arrays_ = arrays;
  plan_ = plan;
  if (!plan.recommit.empty()) {
    StepResult result;
    for (const int i : own_) graph_.task(i).outcome = {};
    for_tasks([&](int i) { graph_.task(i).recommit(arrays_, plan_.recommit); });
    take_failure(graph_, result);
    complete(result);
    ++base_;  // messages of the next one are others
    return result;
  }
  outcomes_ = outcomes;
  std::fill(stopped_.begin(), stopped_.end(), 0);
  failed_at_.store(TaskOutcome::kCommit, std::memory_order_relaxed);
  StepResult result;
  for (const int i : own_) {
    graph_.task(i).outcome = {};
    if (auto& solo = solo_[static_cast<std::size_t>(i)]) solo->begin();
  }
  const IterationRule& rule = plan.rule;
  // Processes would have to agree on what each of them measures.
  shares_time_ = shares_.is_for(plan) && shares_.size() <= GapShares::kMostCompared &&
                 static_cast<int>(own_.size()) == graph_.size();
  if (shares_time_) shares_.begin(threads_ * plan.deadline->iteration_s());
  int done = 0;
  if (plan.deadline == nullptr && !rule.checked() && run_fixed(rule.budget)) {
    done = rule.budget;
  } else {
    int horizon = plan.deadline == nullptr ? rule.budget : 0;
    bool is_ahead = false;  // iteration `done` is made already
    while (done < rule.budget) {
      if (done == horizon) {
        horizon = plan.deadline->horizon(done, plan.until_clock(done), Clock::now());
        if (horizon == done) {
          result.out_of_time = true;
          break;
        }
      }
      if (!is_ahead) iterate_all(done);
      if (rule.checked()) for_tasks([&](int i) { check(i, done); });
      take_failure(graph_, result);
      is_ahead = begin_gaps(done, result);
      if (is_ahead) iterate_all(done + 1);
      const bool goes_on = complete_gaps(done, result);
      ++done;
      if (!goes_on || result.failed_at >= 0) break;
      const bool is_done = judge(done);
      if (is_ahead) drop_failures(done);
      if (is_done) break;
      if (shares_time_ && leave_time_to_others()) result.out_of_time = true;
    }
  }
  take_failure(graph_, result);
  if (plan.timed) result.inner_end = Clock::now();
  if (result.failed_at < 0) for_tasks([&](int i) { commit(i, done); });
  take_failure(graph_, result);
  complete(result);
  if (shares_time_) shares_.end(plan);
  base_ += static_cast<std::uint64_t>(rule.budget) + 2;
  return result;
}

void LayeredExecutor::iterate(int index, int k) {
  if (k > failed_at_.load(std::memory_order_relaxed)) return;  // nobody will use it
  Task& task = graph_.task(index);
  if (auto& solo = solo_[static_cast<std::size_t>(index)]) {
    if (stopped_[static_cast<std::size_t>(task.island_group())] != 0) return;
    const bool goes_on = shares_time_ ? solo->iterate(arrays_, plan_, k + 1, outcomes_, shares_)
                                      : solo->iterate(arrays_, plan_.rule, k + 1, outcomes_);
    if (!goes_on && task.outcome.failed_at >= 0) {
      note_failure(task.outcome.failed_at);
    }
    return;
  }
  if (is_at_rest(index, k)) return;
  if (k == 0) task.begin(arrays_);
  task.iterate(arrays_, k, plan_.rule.update, number_of(k),
               [&](PhaseStatus&& failure) { take_fault(task, k, std::move(failure)); });
}

void LayeredExecutor::iterate_edge(int index, int k) {
  if (is_at_rest(index, k)) return;
  Task& task = graph_.task(index);
  if (k == 0) task.begin(arrays_);
  task.iterate_edge(arrays_, k, plan_.rule.update, number_of(k),
                    [&](PhaseStatus&& failure) { take_fault(task, k, std::move(failure)); });
}

void LayeredExecutor::iterate_core(int index, int k) {
  if (is_at_rest(index, k)) return;
  Task& task = graph_.task(index);
  task.iterate_core(arrays_, plan_.rule.update,
                    [&](PhaseStatus&& failure) { take_fault(task, k, std::move(failure)); });
}

/// Of a task that is cut: it has stopped, or has failed in an iteration before.
bool LayeredExecutor::is_at_rest(int index, int k) const {
  return k > failed_at_.load(std::memory_order_relaxed) ||
         stopped_[static_cast<std::size_t>(graph_.task(index).island_group())] != 0;
}

void LayeredExecutor::take_fault(Task& task, int k, PhaseStatus&& failure) {
  note_failure(k);
  if (task.outcome.failed_at < 0) task.outcome.failed_at = k;
  if (task.outcome.failed_at == k) task.outcome.failure.merge(std::move(failure));
}

void LayeredExecutor::note_failure(int k) {
  int earliest = failed_at_.load(std::memory_order_relaxed);
  while (k < earliest &&
         !failed_at_.compare_exchange_weak(earliest, k, std::memory_order_relaxed)) {
  }
}

void LayeredExecutor::check(int index, int k) {
  Task& task = graph_.task(index);
  if (task.alone() || stopped_[static_cast<std::size_t>(task.island_group())] != 0) return;
  task.exchange(arrays_, number_of(k), arrays_.a);
  task.measure(arrays_, arrays_.a);
}

/// True when every island has stopped.
bool LayeredExecutor::judge(int done) {
  bool open = false;
  const IterationRule& rule = plan_.rule;
  for (std::size_t island_group = 0; island_group < stopped_.size(); ++island_group) {
    const int first = first_of_island_group_[island_group];
    if (first < 0 || stopped_[island_group] != 0) continue;
    Task& task = graph_.task(first);
    if (task.alone()) {
      if (solo_[static_cast<std::size_t>(first)] == nullptr) continue;  // another process's
      for (const int island : task.islands()) {
        open = open || !outcomes_[static_cast<std::size_t>(island)].converged;
      }
      continue;
    }
    IslandOutcome& outcome = outcomes_[static_cast<std::size_t>(task.islands().front())];
    outcome.iterations = done;
    Clock::spend(Work::evaluation, shares_.share(static_cast<int>(island_group)));
    const bool stops =
        rule.checked() && IslandIteration(task, 0).judge(arrays_, rule, done, arrays_.a, outcome);
    if (shares_time_) shares_.note(task.island_group(), task.islands(), outcomes_, !stops);
    stopped_[island_group] = stops ? 1 : 0;
    open = open || !stops;
  }
  return !open;
}

/// Stops island groups whose time others use better. Returns whether there are such.
bool LayeredExecutor::leave_time_to_others() {
  const double left_s = plan_.deadline->left_s(Clock::now()) - plan_.deadline->commit_s();
  bool is_any = false;
  for (int group = 0; group < shares_.size(); ++group) {
    if (!shares_.goes_on(group) || !shares_.leaves_to_others(group, left_s)) continue;
    shares_.leave(group);
    stopped_[static_cast<std::size_t>(group)] = 1;
    is_any = true;
  }
  return is_any;
}

/// Iteration k was made before it was known which islands stop: for those it has not happened. Their â, of
/// the iteration before, stays in its place until the gaps of k are measured.
void LayeredExecutor::drop_failures(int k) {
  int earliest = TaskOutcome::kCommit;
  for (const int i : own_) {
    Task& task = graph_.task(i);
    const bool has_stopped = stopped_[static_cast<std::size_t>(task.island_group())] != 0;
    if (has_stopped && !task.alone() && task.outcome.failed_at == k) task.outcome = {};
    if (task.outcome.failed_at >= 0) earliest = std::min(earliest, task.outcome.failed_at);
  }
  failed_at_.store(earliest, std::memory_order_relaxed);
}

void LayeredExecutor::commit(int index, int iterations) {
  Task& task = graph_.task(index);
  if (auto& solo = solo_[static_cast<std::size_t>(index)]) {
    solo->commit(arrays_, plan_.rule);
    return;
  }
  choose_shadow(task, arrays_, plan_.rule, iterations,
                base_ + static_cast<std::uint64_t>(iterations));
  if (!plan_.rule.checked() &&
      first_of_island_group_[static_cast<std::size_t>(task.island_group())] == index) {
    outcomes_[static_cast<std::size_t>(task.islands().front())].iterations = iterations;
  }
  PhaseStatus failure;
  if (!task.commit(arrays_, failure)) {
    task.outcome = {TaskOutcome::kCommit, std::move(failure)};
  }
}

}  // namespace portwave
