#pragma once

#include <cstdint>
#include <vector>

#include "portwave/runtime/scenario/scenario.hpp"
#include "rank_study/rank_model.hpp"

namespace portwave {

/// A cluster: its ranks and threads, and the two numbers of the α–β model (Interconnect).
struct RankPlanOptions {
  int ranks = 2;    ///< ≥ 1
  int threads = 1;  ///< of each, ≥ 1
  double latency_s = 2e-6;
  double bandwidth_B_per_s = 1e10;
  int steps = 20;  ///< steps taken here, to measure the cost of a step
};

/// The planned work of a rank.
struct PlannedRank {
  std::int64_t parts = 0;
  int tasks = 0;
  double iterate_s = 0.0;  ///< port solves of a step, on one thread
  double commit_s = 0.0;
  int neighbours = 0;
  std::int64_t waves_sent = 0;  ///< per evaluation, to all neighbours
};

/// The distribution of a scenario over ranks, and the predicted time of a step.
struct RankPlan {
  std::vector<PlannedRank> ranks;
  std::int64_t parts = 0;
  std::int64_t whole_parts = 0;  ///< of islands that every rank steps
  std::int64_t waves = 0;        ///< scalar ports, of all stages
  std::int64_t messages = 0;     ///< per evaluation
  std::int64_t waves_sent = 0;   ///< per evaluation
  double iterations = 0.0;       ///< evaluations of a step, as measured
  /// Bytes of a rank for sums of all, at most: where gaps are judged, and for the ledger.
  std::int64_t gathered_bytes_per_evaluation = 0;
  std::int64_t gathered_bytes_per_step = 0;
  double serial_step_s = 0.0;  ///< measured here, on one thread
  double common_s = 0.0;       ///< of a step, what every rank does for all islands
  double step_s = 0.0;         ///< predicted
  double waiting_s = 0.0;      ///< of that, for messages
  RankStepTime time;           ///< of that, all of its terms

  /// Work of the busiest rank over the mean.
  double imbalance() const;
  double speed_up() const { return step_s > 0.0 ? serial_step_s / step_s : 0.0; }
};

/// Measures the scenario here, on one thread, and plans.
/// Errors: ConfigError, also for a method without waves; std::invalid_argument for fewer than one rank,
/// thread or step, and for a latency or bandwidth out of range.
RankPlan plan_ranks(const Scenario& scenario, const RankPlanOptions& options);

}  // namespace portwave
