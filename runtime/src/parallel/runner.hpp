#pragma once

#include <memory>
#include <string>

#include "parallel/executors/executor.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/parallel/executor_kind.hpp"
#include "portwave/runtime/parallel/grain.hpp"
#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// How the steps of a run are to be carried out.
struct RunnerOptions {
  ExecutorKind executor = ExecutorKind::automatic;
  Grain grain = {};
  int threads = 1;
  std::shared_ptr<Arena> arena = {};  ///< null: the run's own workers
  int iterations = 0;                 ///< expected number in a step
  bool may_solve = false;  ///< the interface equation of an island may be solved as a whole
  int max_delay = 0;       ///< evaluations that waves of other processes may be late
  StepTrace* trace = nullptr;
};

/// The executor of the steps, and its description in Stepper::execution.
struct Runner {
  std::unique_ptr<Executor> executor;
  std::string description;
  /// The partitions of the executor and of its serial alternative; empty if it has none.
  Partition partition, serial;
};

/// The executor that `options` ask for, in a process that steps the system alone. If the choice depends on
/// costs, they are measured from `record` and left in `costs`.
Runner make_runner(const WaveDiscretisation& waves, const RunnerOptions& options,
                   const double* record, LaneCosts& costs);

/// The first part that only one thread at a time may step; −1: none.
int first_single_threaded(const WaveDiscretisation& waves);

/// The grouping of lanes that suits a grain: none if every part becomes a task of its own.
WaveDiscretisation::Grouping grouping_for(const Grain& grain);

}  // namespace portwave
