#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/lane_kernels.hpp"
#include "portwave/coupling/network/condensed.hpp"

namespace portwave {

/// Operations in time: a multiplication and an addition of a sparse solve wait for the ones before
/// them, by lanes as much as alone.
inline constexpr double kNanosecondsPerOperation = 2.0;

/// Blocks of one class that are solved together: side by side, or a single one by itself.
struct BlockGroup {
  int block_class = 0;
  bool by_lanes = false;
  std::vector<int> blocks;  ///< 1 … kLaneGroup, in ascending order
};

/// The parts of a state x of the whole that belong to a lane group: kLaneGroup of them if it has
/// lanes, where lanes without a block see the first one's.
template <class Number>
void lane_pointers(std::span<const CondensedBlock> blocks, const BlockGroup& lane_group, Number* x,
                   Number** out) {
  for (std::size_t l = 0; l < (lane_group.by_lanes ? kLaneGroup : 1); ++l) {
    const int block = lane_group.blocks[l < lane_group.blocks.size() ? l : 0];
    out[l] = x + blocks[static_cast<std::size_t>(block)].first;
  }
}

/// Classes of blocks with equal E, J, R and Q: what is prepared for one serves all.
class BlockClasses {
 public:
  explicit BlockClasses(std::span<const CondensedBlock> blocks);

  int count() const { return static_cast<int>(example_.size()); }
  int of(int block) const { return class_of_[static_cast<std::size_t>(block)]; }
  /// The first block of a class.
  int example(int block_class) const { return example_[static_cast<std::size_t>(block_class)]; }
  /// lane groups of these blocks (ascending), ordered by their first blocks. What is left of a class
  /// after full lane groups is a lane group too if it is large enough.
  std::vector<BlockGroup> lane_groups(std::span<const int> blocks) const {
    return lane_groups(blocks, class_of_);
  }
  /// Of one group each; groups are parts of classes, `group_of` by block.
  std::vector<BlockGroup> lane_groups(std::span<const int> blocks,
                                      std::span<const int> group_of) const;

 private:
  std::vector<int> class_of_, example_;
};

/// Tests compare results by lanes and without: the fewest blocks that make a lane group of lanes.
/// Above kLaneGroup: none do. Holds for what is constructed later.
int smallest_lane_group();
void set_smallest_lane_group(int blocks);
/// Likewise what a task should cost: 0 makes every lane group, and every stage of a coupling, one
/// of its own.
double task_nanoseconds();
void set_task_nanoseconds(double cost_ns);
inline constexpr double kDefaultTask_ns = 6000.0;

/// Cuts a list of things into runs worth a task, begins and the end: of few microseconds, but
/// several of them where there is work for several threads.
std::vector<int> cut_into_tasks(std::span<const double> cost_ns);

}  // namespace portwave
