#pragma once

#include <span>
#include <vector>

#include "parallel/executors/executor.hpp"
#include "parallel/gap_shares.hpp"

namespace portwave {

/// The macro-step of a task that shares no junction with others: one or more whole islands, which
/// stop on their own. An island that has stopped keeps its â; its port solves go on with the
/// others' in the same batches, unnoticed.
class SoloStep {
 public:
  /// `exchanged` is scratch that the steps of one executor share: each uses the offsets of its
  /// task. It is given the size of a wave array when a task needs it. `share`: of the system, for simulated time.
  SoloStep(Task& task, const WaveDiscretisation& waves, AlignedVector& exchanged,
           double share = 1.0);

  void begin();
  /// Iterates until `limit` iterations are done in all. False when there is nothing left to do:
  /// every island has stopped, or one has failed.
  bool iterate(const StepArrays& s, const IterationRule& rule, int limit,
               std::span<IslandOutcome> outcomes);
  /// The same and, for island groups that share time under a deadline, further iterations while this one gains more
  /// than any other.
  bool iterate(const StepArrays& s, const StepPlan& plan, int limit,
               std::span<IslandOutcome> outcomes, GapShares& shares);
  void commit(const StepArrays& s, const IterationRule& rule);

 private:
  bool solve(const StepArrays& s, const IterationRule& rule);
  void judge(const StepArrays& s, const IterationRule& rule, std::span<IslandOutcome> outcomes);
  bool has_stopped(int part) const;

  double share_;
  Task& task_;
  const WaveDiscretisation& waves_;
  std::vector<IslandIteration> islands_;
  std::vector<char> stopped_;  // by island of the task
  int open_ = 0;               // islands that have not stopped
  int done_ = 0;
  bool has_shadow_ = false;   // â is in its place
  AlignedVector& exchanged_;  // P b̂, where islands stop one by one
};

}  // namespace portwave
