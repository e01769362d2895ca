#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <vector>

#include "execution/solo_step.hpp"

namespace portwave {

/// Executors that take a macro-step layer by layer: all tasks do iteration k, then all check the
/// gap, then all commit. Derived classes say how a layer is spread over threads; the plain ones, to
/// compare the async executor with.
class LayeredExecutor : public Executor {
 public:
  LayeredExecutor(const WaveDiscretisation& waves, const Partition& partition, int threads);

  int threads() const override { return threads_; }
  int tasks() const override { return graph_.size(); }
  std::size_t bytes() const override { return graph_.bytes(); }
  void bind(const StepArrays& s) override { graph_.bind(s); }
  void recompile() override { graph_.compile(); }
  StepResult run(const StepArrays& arrays, const StepPlan& plan,
                 std::span<IslandOutcome> outcomes) override;

 protected:
  /// body(i) for every task, all done on return.
  virtual void for_tasks(const std::function<void(int)>& body) = 0;
  /// All iterations of a fixed budget; true when the executor has a way of its own.
  virtual bool run_fixed([[maybe_unused]] int iterations) { return false; }

  /// Iteration k of a task; cut tasks use messages `k + 1` of this step.
  void iterate(int index, int k);
  TaskGraph& graph() { return graph_; }

 private:
  void note_failure(int k);
  void check(int index, int k);
  bool judge(int k);
  void commit(int index, int iterations);

  int threads_;
  TaskGraph graph_;
  AlignedVector exchanged_;  // of SoloStep
  std::vector<std::unique_ptr<SoloStep>> solo_;
  std::atomic<int> failed_at_{0};  ///< the earliest iteration that failed
  std::vector<char> stopped_;      // by island group, of cut island groups
  std::vector<int> first_of_island_group_;
  StepArrays arrays_;
  StepPlan plan_;
  std::span<IslandOutcome> outcomes_;
  std::uint64_t base_ = 0;
};

}  // namespace portwave
