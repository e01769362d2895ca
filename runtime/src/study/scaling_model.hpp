#pragma once

#include <optional>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/study/scaling.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {

/// So that one thread takes what it was measured to take: port solves stand for the junctions too, and
/// the parts' commits for their share of the ledger. `whole`: all parts, by the costs as they are.
void scale_costs(LaneCosts& costs, const Partition& whole, int iterations, double iterate_s,
                 double commit_s);

/// The model of a partition: costs as given, neighbours as the tasks exchange messages.
StepModel step_model(const WaveDiscretisation& waves, const LaneCosts& costs,
                     const Partition& partition, int iterations);

/// Predicts the step of a network on any number of cores. Without waves: as if all of the method's
/// work were that of the subsystems, in proportion to their states, which is optimistic.
class ScalingPredictor {
 public:
  /// `measured`: of this network. Measures what its parts cost alone.
  ScalingPredictor(const Scenario& scenario, const ScalingOptions& options,
                   const ScalingModel& measured);

  /// A row but for speed_up and efficiency, which compare it with others.
  ScalingRow predict(int threads) const;
  /// Tasks and imbalance of the partition for so many threads.
  ScalingRow partition_of(int threads) const;

 private:
  void model_waves();
  void model_blocks(const System& system);
  StepModel model_for(int threads) const;

  SteppedScenario stepped_;
  ScalingOptions options_;
  ScalingModel measured_;
  std::optional<WaveDiscretisation> waves_;  // empty: a method without
  LaneCosts costs_;
  StepModel blocks_;  // then
  int budget_;
  bool waits_;
};

}  // namespace portwave
