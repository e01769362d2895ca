#pragma once

#include <memory>
#include <string>

#include "parallel/executors/executor.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave {

/// What runs the steps, and what Stepper::execution says of it.
struct Runner {
  std::unique_ptr<Executor> executor;
  std::string description;
  /// As the executor has cut it, of its serial one too; empty where it does not.
  Partition partition, serial;
  /// What of the step is whose, where there are several ranks.
  std::shared_ptr<RankShares> shares = {};
};

/// The executor that `options` ask for. Where that depends on costs they are measured, from
/// `record`, and left in `costs`. `iterations`: what a step is expected to take. `may_solve`: the interface
/// equation of an island may be solved as a whole.
Runner make_runner(const WaveDiscretisation& waves, const StepperOptions& options, int iterations,
                   bool may_solve, const double* record, LaneCosts& costs,
                   StepTrace* trace = nullptr);

WaveDiscretisation::Grouping grouping_for(const StepperOptions& options);

}  // namespace portwave
