#pragma once

#include <map>
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

/// What a network's parts cost, measured alone.
class NetworkCosts {
 public:
  explicit NetworkCosts(const Scenario& scenario, const Grain& grain);

  const Scenario& scenario() const { return stepped_.get(); }
  /// Null: a method without waves.
  const WaveDiscretisation* waves() const { return waves_ ? &*waves_ : nullptr; }
  const LaneCosts& lanes() const { return costs_; }

  /// Time of a part on a core that has one `threads`-th of the parts, over that on one that has all, ≤ 1: its
  /// caches hold more of them.
  struct Share {
    double solve = 1.0, commit = 1.0;
  };
  Share share(int threads) const;

  /// Batches of linear parts in the roofline.
  std::vector<KernelRoof> kernels() const;

 private:
  /// Seconds of a port solve and of a commit, the mean of the parts.
  Share measured_share(int threads) const;

  SteppedScenario stepped_;
  std::optional<WaveDiscretisation> waves_;
  LaneCosts costs_;
  mutable std::map<int, Share> shares_;
};

/// Predicts the step of a network on any number of cores. Without waves: as if all of the method's
/// work were that of the subsystems, in proportion to their states, which is optimistic.
class ScalingPredictor {
 public:
  /// `measured`: of this network. All must outlive it.
  ScalingPredictor(const NetworkCosts& costs, const ScalingOptions& options,
                   const ScalingModel& measured);

  /// Takes over what two threads cost one another, from `on_two`, the phases of a step on these. `solves`: between
  /// the iterations one thread solves interface equations, with loops that others share.
  void learn(const StepTimes& on_two, bool solves);
  /// What was measured, messages and `lines` with what was learnt.
  ScalingModel model() const;

  /// A row but for speed_up and efficiency, which compare it with others.
  ScalingRow predict(int threads) const;
  /// Tasks and imbalance of the partition for so many threads.
  ScalingRow partition_of(int threads) const;

 private:
  void model_blocks(const System& system);
  StepModel model_for(int threads) const;
  /// By tasks, with them.
  double step_s(const StepModel& model, int threads) const;

  const NetworkCosts& network_;
  const ScalingOptions& options_;
  ScalingModel measured_;
  double message_factor_ = 1.0;  // on what messages take between cores that do nothing else
  double apart_s_ =
      0.0;  // what one thread takes longer where all that it reads was written by other cores
  StepModel blocks_;  // without waves
  int budget_;
  bool waits_;
};

}  // namespace portwave
