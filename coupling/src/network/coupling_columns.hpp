#pragma once

#include <span>
#include <vector>

#include "network/block_groups.hpp"
#include "network/linear_solver.hpp"

namespace portwave {

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
