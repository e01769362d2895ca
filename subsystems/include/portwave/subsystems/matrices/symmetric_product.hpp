#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/matrices/factor_block.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Products with a symmetric matrix, from its diagonal and the entries below it. What is full of it may be kept in
/// dense panels: all of a block of rows and columns that is mostly full, or else groups of rows with one pattern, which
/// meet one another in full blocks. So is a sum of full matrices of some rows each.
class SymmetricProduct {
 public:
  SymmetricProduct() = default;
  /// `block`: rows that may be in panels.
  explicit SymmetricProduct(const SparseMatrix& M, std::span<const int> block = {});

  /// Doubles that `add` needs as scratch: at most four for each row of the block.
  std::size_t scratch_size() const { return 2 * (block_.size() + longest_); }
  /// y += factor · M x
  void add(double factor, const double* x, double* y, double* scratch) const;
  std::size_t bytes() const {
    return 12 * value_.size() + 12 * diagonal_.size() + 8 * panel_values_.size();
  }
  /// Below the diagonal.
  std::size_t entries() const { return value_.size() + panel_values_.size(); }

 private:
  using Groups = std::vector<std::vector<int>>;

  Groups groups_of(const SparseMatrix& M, std::span<const int> block) const;
  void add_panels(const SparseMatrix& M, const Groups& groups, std::vector<int>& place);

  std::vector<double> diagonal_, value_;
  std::vector<int> begin_, row_;
  std::vector<int> block_;           ///< rows in panels, group by group
  std::vector<FactorBlock> panels_;  ///< of the places in block_; zero on the diagonal
  std::vector<int> panel_rows_;
  AlignedVector panel_values_;
  std::size_t longest_ = 0;  ///< panel, where there are several
};

}  // namespace portwave
