#pragma once

#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/partition.hpp"
#include "portwave/runtime/ranks/ranks.hpp"

namespace portwave {

/// The tasks of a system that several ranks step, and the rank of each.
struct RankCut {
  /// The rank of a task that every rank steps.
  static constexpr int kEvery = -1;

  Partition partition;
  std::vector<int> rank_of_task;  ///< 0 to ranks − 1, or kEvery
  bool is_by_graph = false;       ///< cut by the graph of exchanges, not along the locality order
};

/// Coupled parts stay together as far as the work remains even: along the locality order, or by METIS if that
/// leaves at most nine tenths of the waves to exchange (grids, trees). Results do not depend on the cut. An
/// island of one task whose interface equation may be solved (`may_solve`) belongs to every rank. `agreeing`:
/// the ranks, which all call this and take the result of METIS on rank 0, because METIS draws random numbers
/// from the state of its process.
RankCut cut_for_ranks(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                      int ranks, int threads, int iterations, bool may_solve,
                      Ranks* agreeing = nullptr);

/// The cut of a slice: its own parts, and those outside as tasks of the ranks that step them.
RankCut cut_of_slice(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                     int threads, int iterations);

}  // namespace portwave
