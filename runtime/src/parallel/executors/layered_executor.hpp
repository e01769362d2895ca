#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "parallel/executors/solo_step.hpp"
#include "parallel/gap_shares.hpp"

namespace portwave {

/// Executors that take a macro-step layer by layer: all tasks do iteration k, then all check the
/// gap, then all commit. Derived classes say how a layer is spread over threads; the plain ones, to
/// compare the async executor with.
class LayeredExecutor : public Executor {
 public:
  LayeredExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads);
  /// `own`: the tasks that this process steps.
  LayeredExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads,
                  std::vector<int> own);

  int threads() const override { return threads_; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }
  bool keeps_places() const override { return graph_.keeps_places(); }
  StepResult do_execute(const StepArrays& arrays, const StepPlan& plan,
                        std::span<IslandOutcome> outcomes) override;

 protected:
  /// body(i) for every own task, all done on return.
  virtual void for_tasks(const std::function<void(int)>& body) = 0;
  /// All iterations of a fixed budget; true when the executor has a way of its own.
  virtual bool run_fixed([[maybe_unused]] int iterations) { return false; }
  /// Iteration k of all tasks.
  virtual void iterate_all(int k) {
    for_tasks([&](int i) { iterate(i, k); });
  }
  /// The gaps of iteration k are measured, and may be on their way from here on. True where iteration
  /// k + 1 is to be made before they are judged.
  virtual bool begin_gaps([[maybe_unused]] int k, [[maybe_unused]] const StepResult& result) {
    return false;
  }
  /// The gaps of iteration k are about to be judged. False where another process has
  /// failed, and nothing is to be judged any more.
  virtual bool complete_gaps([[maybe_unused]] int k, [[maybe_unused]] const StepResult& result) {
    return true;
  }
  /// The step, or the commit once more of some islands, is done here.
  virtual void complete([[maybe_unused]] StepResult& result) {}

  /// Iteration k of a task; cut tasks use messages `number_of(k)`.
  void iterate(int index, int k);
  /// The same in two: up to where a cut task has sent its waves, and what is left.
  void iterate_edge(int index, int k);
  void iterate_core(int index, int k);
  std::uint64_t number_of(int k) const { return base_ + static_cast<std::uint64_t>(k) + 1; }
  TaskGraph& graph() { return graph_; }
  std::span<const int> own() const { return own_; }
  const StepArrays& arrays() const { return arrays_; }
  const StepPlan& plan() const { return plan_; }
  std::span<IslandOutcome> outcomes() const { return outcomes_; }
  /// Some island that is cut into tasks goes on, whoever steps them.
  bool is_any_cut_open() const;

 private:
  bool is_at_rest(int index, int k) const;
  void note_failure(int k);
  void take_fault(Task& task, int k, PhaseStatus&& failure);
  void check(int index, int k);
  bool judge(int k);
  bool leave_time_to_others();
  void drop_failures(int k);
  void commit(int index, int iterations);

  int threads_;
  TaskGraph graph_;
  std::vector<int> own_;
  AlignedVector exchanged_;  // of SoloStep
  std::vector<std::unique_ptr<SoloStep>> solo_;
  std::atomic<int> failed_at_{0};  ///< the earliest iteration that failed
  std::vector<char>
      stopped_;       // by island group: those that are cut, and those that leave time to others
  GapShares shares_;  // of island groups
  bool shares_time_ = false;  // in this step
  std::vector<int> first_of_island_group_;
  StepArrays arrays_;
  StepPlan plan_;
  std::span<IslandOutcome> outcomes_;
  std::uint64_t base_ = 0;
};

}  // namespace portwave
