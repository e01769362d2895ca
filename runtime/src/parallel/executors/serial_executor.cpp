#include <cstdint>
#include <type_traits>
#include <vector>

#include "parallel/clock.hpp"
#include "parallel/executors/solo_step.hpp"
#include "parallel/step_trace.hpp"

namespace portwave {
namespace {

/// `Follow`: NoTrace, or a trace.
template <class Follow>
class SerialExecutor final : public Executor {
 public:
  SerialExecutor(const WaveDiscretisation& waves, const Partition& island_groups, Follow follow)
      : graph_(waves, island_groups), follow_(follow) {
    for (int i = 0; i < graph_.size(); ++i) {
      steps_.emplace_back(graph_.task(i), waves, exchanged_, 1.0 / graph_.size());
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
        graph_.task(static_cast<int>(i++)).recommit(s, plan.recommit);
        Clock::spend(Work::commit, 1.0 / static_cast<double>(graph_.size()));
      });
      take_failure(graph_, result);
      return result;
    }
    for (SoloStep& step : steps_) step.begin();
    if (plan.deadline == nullptr) {
      for_steps(ProfileEvent::Kind::iterate,
                [&](SoloStep& step) { step.iterate(s, plan.rule, plan.rule.budget, outcomes); });
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
    if constexpr (is_followed()) {
      if (follow_.is_on()) {
        for (std::size_t i = 0; i < steps_.size(); ++i) {
          const std::int64_t begin_ns = StepTrace::now_ns();
          act(steps_[i]);
          follow_.trace->note(0, -1 - static_cast<int>(i), kind, begin_ns);
        }
        return;
      }
    }
    for (SoloStep& step : steps_) act(step);
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

  TaskGraph graph_;
  AlignedVector exchanged_;  // of SoloStep
  std::vector<SoloStep> steps_;
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
