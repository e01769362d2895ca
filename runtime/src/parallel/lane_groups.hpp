#pragma once

#include <vector>

#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// A group of lanes that are stepped together, and its cost. Tasks are made of such groups.
struct LaneGroupCost {
  int island_group;
  int owner;  ///< the rank that steps it
  int place;  ///< the position of its first part in the locality order
  BatchRange range;
  int parts;
  double scatter_ns;
  double advance_ns;

  double step_ns(int iterations) const { return iterations * scatter_ns + advance_ns; }
};

/// The lane groups of all batches, sorted by island group, owner (all 0) and locality.
std::vector<LaneGroupCost> lane_groups(const WaveDiscretisation& waves, const LaneCosts& costs);
/// Sorts lane groups in that order again after owners have changed.
void sort_by_owner(std::vector<LaneGroupCost>& groups);
/// By island group: whether it is a single island. Only such a group may be cut.
std::vector<bool> groups_of_one_island(const WaveDiscretisation& waves);
/// Like make_partition, but for given lane groups in their order; a task has one owner. `per_thread`: the
/// largest number of tasks per thread if the grain is automatic.
Partition cut_into_tasks(const WaveDiscretisation& waves, const std::vector<LaneGroupCost>& items,
                         Grain grain, int threads, int iterations, double per_thread);

}  // namespace portwave
