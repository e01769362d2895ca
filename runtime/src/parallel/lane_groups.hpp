#pragma once

#include <vector>

#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// Lanes that are stepped together, with what they cost: what tasks are made of.
struct LaneGroupCost {
  int island_group;
  int owner;  ///< the rank that steps it
  int place;  ///< of its first part in the locality order
  BatchRange range;
  int parts;
  double scatter_ns;
  double advance_ns;

  double step_ns(int iterations) const { return iterations * scatter_ns + advance_ns; }
};

/// Of all batches: by island group, owner (all 0) and locality.
std::vector<LaneGroupCost> lane_groups(const WaveDiscretisation& waves, const LaneCosts& costs);
/// Puts them into that order again after owners have changed.
void sort_by_owner(std::vector<LaneGroupCost>& groups);
/// By island group: whether it is one island, which may be cut.
std::vector<bool> groups_of_one_island(const WaveDiscretisation& waves);
/// As make_partition, of lane groups in their order: a task has one owner. `per_thread`: tasks of a
/// thread, at most, where the grain is automatic.
Partition cut_into_tasks(const WaveDiscretisation& waves, const std::vector<LaneGroupCost>& items,
                         Grain grain, int threads, int iterations, double per_thread);

}  // namespace portwave
