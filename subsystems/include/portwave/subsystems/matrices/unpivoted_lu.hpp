#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/for_each.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Entries that a sparse LU with a diagonal order of minimal degree has, both factors and the diagonal, from the
/// pattern of A + Aᵀ alone. Stops counting beyond `most`.
std::size_t expected_lu_entries(const SparseMatrix& A, std::size_t most);

/// A sparse LU without row exchanges, for many matrices of one pattern: the order of elimination (approximate
/// minimal degree, or dissection by it) and the places of all entries are found once, and each matrix then costs
/// its arithmetic.
///
/// Monotone matrices (xᵀAx ≥ 0 for all x) hardly need exchanges; `factorise` sees where a matrix does.
class UnpivotedLu {
 public:
  using Place = std::pair<int, int>;  ///< row, column

  /// Takes the pattern of a matrix with `size` rows: `places` in any order, repeated at will; the diagonal is
  /// there in any case. `slots` receives the place in `values` of each. Allocates.
  void analyse(int size, std::span<const Place> places, std::span<int> slots);
  /// `solve` takes the right side of row i from b[places[i]] and puts what is found into x[places[i]], instead of from
  /// and to place i. −1: the right side is 0, and what is found is not wanted. After `analyse`.
  void take_places(std::span<const int> places);
  bool is_analysed() const { return !begin_.empty(); }

  int size() const { return static_cast<int>(diagonal_.size()); }
  /// Entries of L and U, with the diagonal of U.
  std::size_t nonzeros() const { return value_.size(); }
  std::size_t bytes() const;

  /// The entries of A, by slot: to be set before `factorise`, which leaves them.
  std::span<double> values() {
    is_changed_.assign(diagonal_.size(), 1);
    return value_;
  }
  /// One of them, to be changed. Rows of the factors that depend on none that was changed stay as they are.
  double& value(int slot);
  /// The matrix that `values` hold.
  SparseMatrix matrix() const;

  /// Allocates nothing. False: a pivot is too small beside its row or column, or a number is not finite; the
  /// factors are then of no use. Large ones by `each`, to the same bits.
  bool factorise(const ForEach& each = {});
  /// |pivot| of the last `factorise`, the least of all.
  double smallest_pivot() const;
  /// x = A⁻¹ b; x may be b. `scratch`: `size()` doubles. Large ones by `each`, to the same bits. Returns |x|².
  double solve(const double* b, double* x, double* scratch, const ForEach& each = {});

 private:
  struct Substitution;
  void find_pattern(const SparseMatrix& A);
  bool factorise_row(int row, double* work);
  bool factorise_rows(const ForEach& each);

  // Row by row in the order of elimination: L, the diagonal, U, each with increasing columns.
  std::vector<int> begin_, diagonal_, column_;
  std::vector<double> value_, factor_, inverse_, work_;
  std::vector<char> is_changed_;  ///< rows, since they were factorised
  std::vector<int> order_;        ///< place in that order, by row of A
  std::vector<int> row_at_;       ///< the row of A at a place
  std::vector<int> outside_at_;   ///< likewise, its place in b and x
  // Subtrees of the elimination tree, whose rows do not depend on those of others: rows [first, second) lie side
  // by side. Those above them depend on all.
  std::vector<Place> subtrees_;
  std::vector<int>
      first_of_block_;  ///< subtrees, dealt out in portions of about the same work; then their number
  std::vector<int> above_;            ///< rows, increasing
  std::vector<char> is_block_sound_;  ///< while the portions are factorised, by several threads
  std::vector<double> squares_;       ///< of portions of x, likewise
};

}  // namespace portwave
