#pragma once

#include <memory>
#include <string>

#include "parallel/executors/executor.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// The executor of the steps, and its description in Stepper::execution.
struct Runner {
  std::unique_ptr<Executor> executor;
  std::string description;
  /// The partition of the executor, also of its serial one; empty if it has none.
  Partition partition, serial;
  /// The assignment of the step's work to ranks, if there are several.
  std::shared_ptr<RankShares> shares = {};
};

/// The executor that `options` ask for. If that depends on costs they are measured, from
/// `record`, and left in `costs`. `iterations`: expected number in a step. `may_solve`: the interface
/// equation of an island may be solved as a whole.
Runner make_runner(const WaveDiscretisation& waves, const StepperOptions& options, int iterations,
                   bool may_solve, const double* record, LaneCosts& costs,
                   StepTrace* trace = nullptr);

WaveDiscretisation::Grouping grouping_for(const StepperOptions& options);

}  // namespace portwave
