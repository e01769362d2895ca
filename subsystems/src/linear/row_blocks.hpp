#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <Eigen/Core>

namespace portwave {

/// How kernels keep a matrix whose rows they sum some at a time: block of rows by block, each column
/// by column, so that a sweep over the coefficients is a sweep over memory.
class RowBlocks {
 public:
  /// As few blocks as can be with at most so many rows in each, and these as equal as can be.
  static RowBlocks balanced(int rows, int at_most);
  /// Blocks of so many rows, and what remains one by one.
  static RowBlocks of(int rows, int each);

  std::span<const unsigned char> sizes() const { return sizes_; }

  /// Where a row's coefficient of column 0 is in a matrix of so many columns, and how far the next
  /// one is.
  struct Run {
    int first;
    int step;
  };
  Run run(int row, int columns) const {
    const Place& place = places_[static_cast<std::size_t>(row)];
    return {place.begin * columns + row - place.begin, place.rows};
  }

  /// The rows of [m₁ m₂ …], as kernels keep them. `rows` are numbers of rows of the matrices.
  void append(std::span<const int> rows, std::span<const Eigen::MatrixXd* const> matrices,
              std::vector<double>& out) const;

 private:
  struct Place {
    int begin;  ///< of its block
    int rows;   ///< in its block
  };
  void add(int rows);

  std::vector<unsigned char> sizes_;
  std::vector<Place> places_;  ///< by row
};

}  // namespace portwave
