#pragma once

#include <memory>
#include <vector>

#include "parallel/step_arrays.hpp"
#include "portwave/coupling/waves/small_island.hpp"
#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// The contents of a task, once it is built.
struct TaskShape {
  int island_group = 0;
  std::vector<int> islands;
  std::vector<std::vector<int>> island_waves;  ///< offsets by island, if there are several
  /// Lanes that share a junction with those of other tasks, and those that do not.
  std::vector<BatchRange> edge, core;
  std::vector<int> edge_junctions, core_junctions;
  /// Where the task has a part of an island: chunks (PartOrderReduction) all of whose parts it has.
  std::vector<int> chunks;
};

/// The port solves and commits of a task, bound to the arrays of steps if batches can do that. There are two
/// sets of arrays, told apart by the record: the next record of one set is the current record of the other.
class TaskCalls {
 public:
  /// `shape` is filled in later, and must outlive it.
  TaskCalls(const WaveDiscretisation& waves, const TaskShape& shape)
      : waves_(waves), shape_(shape) {}

  struct Call {
    BoundCall bound;
    BatchRange range;
  };
  struct Bound {
    const double* record = nullptr;
    std::vector<Call> edge, core, commit;
    std::unique_ptr<SmallIsland> small;  ///< null unless the task is alone and small
    bool examines_islands = false;       ///< a small task uses EnergyLedger::examine_island
  };
  const Bound& of(const StepArrays& s) {
    if (bound_[0].record == s.record) return bound_[0];
    if (bound_[1].record == s.record) return bound_[1];
    return bind(s);
  }
  const Bound& bind(const StepArrays& s);
  /// `alone`: whether the task shares no junction. `numbers`: scratch, −1 for every offset before and after
  /// the call.
  const Bound& bind(const StepArrays& s, bool alone, std::vector<int>& numbers);
  /// Whether one of the bound calls is that of a small island.
  bool keeps_places() const { return bound_[0].small != nullptr || bound_[1].small != nullptr; }
  /// Forgets the bound calls, because step maps have changed. Lists keep their memory.
  void forget() {
    for (Bound& bound : bound_) bound.record = nullptr;
  }

 private:
  std::unique_ptr<SmallIsland> bind_small(double* record, std::vector<int>& numbers) const;

  const WaveDiscretisation& waves_;
  const TaskShape& shape_;
  bool alone_ = false;  // when it was bound last
  Bound bound_[2];
};

}  // namespace portwave
