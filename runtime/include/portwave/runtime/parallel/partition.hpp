#pragma once

#include <vector>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/runtime/parallel/grain.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Lanes of one batch.
struct BatchRange {
  int batch = 0;
  LaneRange lanes;
};

/// A step cut into tasks: whole lane groups, gathered so that coupled parts meet in one task. Every
/// task belongs to one island group (see WaveDiscretisation); an island group of several islands is
/// one task.
struct Partition {
  struct Task {
    int island_group = 0;
    std::vector<BatchRange> ranges;
    double cost_ns = 0.0;  ///< estimate: one port solve of each lane
  };
  std::vector<Task> tasks;
  double iteration_cost_ns = 0.0;  ///< all port solves of one inner iteration
  double commit_cost_ns = 0.0;
};

/// Cost of the batches' lanes [ns], by batch: declared by the parts or measured.
struct LaneCosts {
  std::vector<double> scatter_ns;
  std::vector<double> advance_ns;
};
LaneCosts declared_costs(const WaveDiscretisation& waves);
/// Times port solves and commits of every batch at the given record, whose warm starts alone change. A port
/// solve that fails keeps the declared cost, and so do parts whose steps do not repeat.
LaneCosts measured_costs(const WaveDiscretisation& waves, const double* record);

/// One task per island group: for one thread.
Partition whole_island_groups(const WaveDiscretisation& waves, const LaneCosts& costs);

/// Tasks in the locality order, cut where the cost (or the number of parts) is reached; a lane
/// group that costs more than a task should is a task of its own. `iterations` weighs port solves
/// against commits. No junction ends up in so many tasks that their messages outweigh the waves.
Partition make_partition(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                         int threads, int iterations);

}  // namespace portwave
