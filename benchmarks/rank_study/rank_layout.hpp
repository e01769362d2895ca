#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "rank_study/rank_model.hpp"
#include "rank_study/rank_plan.hpp"
#include "study/stepped_scenario.hpp"

namespace portwave {

/// A step of a scenario as measured on one thread, and the data of it that ranks must share.
struct MeasuredStep {
  StepTimes times;
  std::vector<double> impedance;  ///< as the method has chosen them
  double iterations = 0.0;        ///< per step, the mean
  bool is_judged = false;         ///< gaps, after every evaluation
  int products = 0;               ///< of an accelerated iteration, beside each gap
  bool has_ledger = false;        ///< energies, after the commit
  bool may_solve = false;         ///< the interface equation of an island, by every rank

  double step_s() const { return times.begin_s + times.iterate_s + times.commit_s; }
  /// What ranks have to share, from a stepper of the scenario.
  void take_method_of(const Stepper& stepper);
};

/// Divides a scenario among any number of ranks, as a run does, and gives the model of its steps.
class RankLayout {
 public:
  /// Measures the costs of the parts alone and of the accounts of islands, and scales them so that one thread
  /// takes the measured time. `scenario` must outlive this object. Errors: ConfigError.
  RankLayout(const Scenario& scenario, MeasuredStep measured);

  struct Dealt {
    RankStepModel model;
    std::vector<PlannedRank> ranks;
    std::int64_t parts = 0, whole_parts = 0;
    int tasks = 0;
  };
  Dealt deal(int ranks, int threads) const;

  const MeasuredStep& measured() const { return measured_; }
  double ledger_s() const { return ledger_s_; }  ///< accounts of all islands; 0 without a ledger
  std::int64_t waves() const;                    ///< scalar ports, of all stages
  int islands() const { return waves_.system().island_count(); }

 private:
  /// All but the ranks.
  RankStepModel frame(int ranks, bool is_any_cut) const;
  double iterate_s(std::span<const BatchRange> ranges) const;
  double commit_s(const Partition::Task& task) const;

  SteppedScenario stepped_;
  MeasuredStep measured_;
  WaveDiscretisation waves_;
  LaneCosts costs_;
  int iterations_;
  double copy_s_per_B_;
  double ledger_s_ = 0.0;
};

}  // namespace portwave
