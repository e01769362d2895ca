#pragma once

#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// The tasks of a system that several ranks step, and whose each is.
struct RankCut {
  /// As rank of a task: every rank steps it.
  static constexpr int kEvery = -1;

  Partition partition;
  std::vector<int> rank_of_task;  ///< 0 to ranks − 1, or kEvery
  bool is_by_graph = false;       ///< cut by the graph of exchanges, not along the locality order
};

/// What is coupled stays together as far as work is even: along the locality order, or by METIS where that
/// leaves at most nine tenths of the waves to exchange (grids, trees). Results do not depend on it. An
/// island of one task whose interface equation may be solved (`may_solve`) is every rank's. `agreeing`: the
/// ranks, which all call this and take what METIS gives the first: it has random numbers that a process
/// shares.
RankCut cut_for_ranks(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                      int ranks, int threads, int iterations, bool may_solve,
                      Ranks* agreeing = nullptr);

/// Of a slice: its own parts, and those outside as tasks of the ranks that step them.
RankCut cut_of_slice(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                     int threads, int iterations);

}  // namespace portwave
