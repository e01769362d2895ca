#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernels/lane_kernels.hpp"
#include "network/linear_solver.hpp"
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

/// How the blocks of a lane group take part in the coupling: columns through which flow comes in
/// and is seen. A block has a channel for each of them or for some.
class CouplingColumns {
 public:
  CouplingColumns() = default;
  /// `into`, `seen` of the columns of `widest`; lanes by the blocks of the lane group.
  CouplingColumns(std::span<const CondensedBlock> blocks, const BlockGroup& lane_group,
                  const SparseMatrix& into, const SparseMatrix& seen, int widest);

  int count() const { return count_; }
  /// Of one block, seen twice and entered once.
  double operations() const {
    return static_cast<double>(into_.value.size() + 2 * seen_.value.size());
  }
  /// The channel of the whole behind a column of a lane; −1: none.
  int channel(int column, int lane) const {
    return channel_[static_cast<std::size_t>(column * width_ + lane)];
  }
  /// w[column][lane] = what is seen of x.
  void see(const double* x, double* w) const;
  /// y += Into f, by channels of the whole: f of the lanes that have the column; room for f.
  void enter(const double* channels, double* f, double* y) const;

 private:
  int count_ = 0;
  int width_ = 1;
  bool full_ = true;  ///< every lane has every column
  ColumnList into_, seen_;
  LaneMatrix into_rows_, seen_rows_;
  std::vector<int> channel_;
  std::vector<unsigned long long> mask_;
};

/// Groups of blocks of one class whose channels are some of one block's, in its order.
struct CouplingGroups {
  std::vector<int> of;      ///< group, by block
  std::vector<int> widest;  ///< a block with all the columns, by group
};
CouplingGroups group_by_coupling(std::span<const CondensedBlock> blocks,
                                 const BlockClasses& classes);

}  // namespace portwave
