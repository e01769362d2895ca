#include <vector>

#include "execution/solo_step.hpp"

namespace portwave {
namespace {

class SerialExecutor final : public Executor {
 public:
  SerialExecutor(const WaveDiscretisation& waves, const Partition& island_groups)
      : graph_(waves, island_groups) {
    for (int i = 0; i < graph_.size(); ++i) steps_.emplace_back(graph_.task(i), waves, exchanged_);
  }

  int threads() const override { return 1; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }

  StepResult run(const StepArrays& s, const StepPlan& plan,
                 std::span<IslandOutcome> outcomes) override {
    StepResult result;
    if (!plan.recommit.empty()) {
      for (int i = 0; i < graph_.size(); ++i) graph_.task(i).recommit(s, plan.recommit);
      take_failure(graph_, result);
      return result;
    }
    for (SoloStep& step : steps_) step.begin(s, plan.rule, outcomes);
    if (plan.deadline == nullptr) {
      for (SoloStep& step : steps_) step.iterate(s, plan.rule, plan.rule.budget, outcomes);
    } else {
      iterate_until_deadline(s, plan, outcomes, result);
    }
    if (plan.timed) result.inner_end = DeadlineScheduler::Clock::now();
    if (!has_failed()) {
      for (SoloStep& step : steps_) step.commit(s, plan.rule);
    }
    if (has_failed()) take_failure(graph_, result);
    return result;
  }

 private:
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
      const int horizon =
          plan.deadline->horizon(done, plan.rule.budget, DeadlineScheduler::Clock::now());
      if (horizon == done) {
        result.out_of_time = true;
        return;
      }
      bool open = false;
      for (SoloStep& step : steps_) open = step.iterate(s, plan.rule, horizon, outcomes) || open;
      done = horizon;
      if (!open) return;
    }
  }

  TaskGraph graph_;
  AlignedVector exchanged_;  // of SoloStep
  std::vector<SoloStep> steps_;
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
                                               const Partition& island_groups) {
  return std::make_unique<SerialExecutor>(waves, island_groups);
}

}  // namespace portwave
