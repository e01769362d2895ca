#include <algorithm>
#include <chrono>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/executors/solo_step.hpp"
#include "parallel/gap_shares.hpp"
#include "parallel/step_trace.hpp"

namespace portwave {
namespace {

/// `Follow`: NoTrace, or a trace.
template <class Follow>
class SerialExecutor final : public Executor {
 public:
  SerialExecutor(const WaveDiscretisation& waves, const Partition& island_groups, Follow follow)
      : graph_(waves, island_groups), shares_(shares_of_tasks(island_groups)), follow_(follow) {
    for (int i = 0; i < graph_.size(); ++i) {
      steps_.emplace_back(graph_.task(i), waves, exchanged_, shares_.share(i));
    }
    is_one_task_ = graph_.size() == 1 && !is_followed();
  }

  int threads() const override { return 1; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }
  bool keeps_places() const override { return graph_.keeps_places(); }

  StepResult do_execute(const StepArrays& s, const StepPlan& plan,
                        std::span<IslandOutcome> outcomes) override {
    StepResult result;
    if (is_one_task_ && plan.is_unwatched() && step_at_once(s, plan.rule, outcomes, result)) {
      return result;
    }
    if (!plan.recommit.empty()) {
      std::size_t i = 0;
      for_steps(ProfileEvent::Kind::commit, [&](SoloStep& /*step*/) {
        graph_.task(static_cast<int>(i)).recommit(s, plan.recommit);
        Clock::spend(Work::commit, shares_.share(static_cast<int>(i++)));
      });
      take_failure(graph_, result);
      return result;
    }
    for (SoloStep& step : steps_) step.begin();
    if (plan.deadline == nullptr) {
      for_steps(ProfileEvent::Kind::iterate,
                [&](SoloStep& step) { step.iterate(s, plan.rule, plan.rule.budget, outcomes); });
    } else if (shares_.is_for(plan)) {
      iterate_where_most_is_gained(s, plan, outcomes, result);
    } else {
      iterate_until_deadline(s, plan, outcomes, result);
    }
    if (plan.timed) result.inner_end = Clock::now();
    if (!has_failed()) {
      for_steps(ProfileEvent::Kind::commit, [&](SoloStep& step) { step.commit(s, plan.rule); });
    }
    if (has_failed()) take_failure(graph_, result);
    return result;
  }

 private:
  static constexpr bool is_followed() { return std::is_same_v<Follow, FollowTasks>; }
  /// A fixed budget of the only task, if it is small: no phase of it has to wait for others. False
  /// where it is not, or a port solve fails: then nothing was done.
  bool step_at_once(const StepArrays& s, const IterationRule& rule,
                    std::span<IslandOutcome> outcomes, StepResult& result) {
    Task& task = graph_.task(0);
    if (!task.iterate_at_once(s, rule.budget, rule.update)) return false;
    for (IslandOutcome& outcome : outcomes) outcome.iterations = rule.budget;
    if (!task.commit(s, result.failure)) result.failed_at = TaskOutcome::kCommit;
    return true;
  }
  template <class Act>
  void for_steps(ProfileEvent::Kind kind, Act act) {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      follow(static_cast<int>(i), kind, [&] { act(steps_[i]); });
    }
  }
  template <class Act>
  void follow(int i, ProfileEvent::Kind kind, Act act) {
    if constexpr (is_followed()) {
      if (follow_.is_on()) {
        const std::int64_t begin_ns = StepTrace::now_ns();
        act();
        return follow_.trace->note(0, -1 - i, kind, begin_ns);
      }
    }
    act();
  }
  bool has_failed() const {
    for (int i = 0; i < graph_.size(); ++i) {
      if (graph_.task(i).outcome.failed_at >= 0) return true;
    }
    return false;
  }
  void iterate_until_deadline(const StepArrays& s, const StepPlan& plan,
                              std::span<IslandOutcome> outcomes, StepResult& result) {
    int done = 0;
    while (done < plan.rule.budget) {
      const int horizon = plan.deadline->horizon(done, plan.until_clock(done), Clock::now());
      if (horizon == done) {
        result.out_of_time = true;
        return;
      }
      bool open = false;
      for_steps(ProfileEvent::Kind::iterate, [&](SoloStep& step) {
        open = step.iterate(s, plan.rule, horizon, outcomes) || open;
      });
      done = horizon;
      if (!open) return;
    }
  }

  /// Evaluations of one island group after the other. A first one of all comes first where it fits: without one
  /// nothing is known of a group in this step.
  void iterate_where_most_is_gained(const StepArrays& s, const StepPlan& plan,
                                    std::span<IslandOutcome> outcomes, StepResult& result) {
    // Evaluations that are shorter than reading the clock is worth are timed together.
    constexpr double kUnread_s = 2e-6;
    const DeadlineScheduler& deadline = *plan.deadline;
    shares_.begin(deadline.iteration_s());
    int most = 0;  // evaluations of a group
    Clock::time_point read = Clock::now();
    double unread_s = 0.0;
    const auto now = [&] {
      return read +
             std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(unread_s));
    };
    const auto evaluate = [&](int i) {
      bool open = false;
      const int next = shares_.evaluations(i) + 1;
      SoloStep& step = steps_[static_cast<std::size_t>(i)];
      follow(i, ProfileEvent::Kind::iterate,
             [&] { open = step.iterate(s, plan.rule, next, outcomes); });
      most = std::max(most, next);
      const bool is_first = unread_s == 0.0;
      double took_s = 0.0;
      unread_s += shares_.cost_s(i);
      if (unread_s >= kUnread_s) {
        const Clock::time_point end = Clock::now();
        if (is_first) took_s = seconds(end - read);
        read = end;
        unread_s = 0.0;
      }
      shares_.note(i, graph_.task(i).islands(), outcomes, open, took_s);
    };
    const bool has_budget = plan.rule.budget > 0;
    if (has_budget && deadline.horizon(0, 1, read) > 0) {
      for (int i = 0; i < graph_.size(); ++i) evaluate(i);
      shares_.sort();
    }
    while (has_budget && !has_failed()) {
      const int next = shares_.take_best();
      if (next < 0) break;
      const bool is_any_in_time = most > 0 && deadline.horizon(most, most + 1, now()) > most;
      if (!is_any_in_time && !deadline.fits(now(), shares_.cost_s(next) + deadline.commit_s())) {
        continue;  // nor will it later
      }
      evaluate(next);
      if (shares_.goes_on(next)) shares_.put_back(next);
    }
    for (int i = 0; i < graph_.size(); ++i) {
      result.out_of_time = result.out_of_time || shares_.goes_on(i);
    }
    shares_.end(plan);
  }
  static GapShares shares_of_tasks(const Partition& island_groups) {
    std::vector<double> costs;
    for (const Partition::Task& task : island_groups.tasks) costs.push_back(task.cost_ns);
    return GapShares(shares_of(std::move(costs)));
  }

  TaskGraph graph_;
  AlignedVector exchanged_;  // of SoloStep
  std::vector<SoloStep> steps_;
  GapShares shares_;  // of the tasks, which are the island groups
  bool is_one_task_ = false;
  [[no_unique_address]] Follow follow_;
};

}  // namespace

void take_failure(const TaskGraph& graph, StepResult& result) {
  for (int i = 0; i < graph.size(); ++i) {
    const TaskOutcome& outcome = graph.task(i).outcome;
    PartOrderReduction::take_failure(result.failed_at, result.failure, outcome.failed_at,
                                     outcome.failure);
  }
}

std::unique_ptr<Executor> make_serial_executor(const WaveDiscretisation& waves,
                                               const Partition& island_groups, StepTrace* trace) {
  if (trace != nullptr) {
    return std::make_unique<SerialExecutor<FollowTasks>>(waves, island_groups, FollowTasks{trace});
  }
  return std::make_unique<SerialExecutor<NoTrace>>(waves, island_groups, NoTrace{});
}

}  // namespace portwave
