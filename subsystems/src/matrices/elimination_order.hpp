#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// The rows of L of a matrix with the pattern of A + Aᵀ, by its elimination tree: `found(row, column)` for every
/// entry, row by row, columns in no order. `order`: the place of each row of A. Ends where `found` returns false.
template <class Found>
void eliminate(const SparseMatrix& A, const std::vector<int>& order, const Found& found) {
  const std::size_t n = order.size();
  // Neighbours that are eliminated before, by row.
  std::vector<int> begin(n + 1, 0), before(at(static_cast<int>(A.nonZeros())));
  const auto for_entries = [&](const auto& act) {
    for (int j = 0; j < static_cast<int>(n); ++j) {
      for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
        const int r = order[at(static_cast<int>(it.row()))], c = order[at(j)];
        if (r != c) act(std::max(r, c), std::min(r, c));
      }
    }
  };
  for_entries([&](int row, int) { ++begin[at(row) + 1]; });
  for (std::size_t i = 0; i < n; ++i) begin[i + 1] += begin[i];
  std::vector<int> next(begin.begin(), begin.end() - 1);
  for_entries([&](int row, int column) { before[at(next[at(row)]++)] = column; });

  std::vector<int> parent(n, -1), mark(n, -1);
  for (int k = 0; k < static_cast<int>(n); ++k) {
    mark[at(k)] = k;
    for (int place = begin[at(k)]; place < begin[at(k) + 1]; ++place) {
      for (int i = before[at(place)]; mark[at(i)] != k; i = parent[at(i)]) {
        if (parent[at(i)] < 0) parent[at(i)] = k;
        mark[at(i)] = k;
        if (!found(k, i)) return;
      }
    }
  }
}

/// A forest: the parent of each node, which has a higher number; −1 for roots. Subtrees lie side by side, roots last.
struct EliminationTree {
  std::vector<int> parent;
  std::vector<int> entries;  ///< of L by column, without the diagonal

  /// Subtrees [first, second) none of which has more than a 16th of all entries, or an 8th where otherwise more than
  /// a 16th would be above them, sorted by the middle one of their rows,
  /// and the nodes above them in increasing order. What is below does not depend on what is beside it.
  struct Cut {
    std::vector<std::pair<int, int>> subtrees;
    std::vector<int> above;
    std::size_t entries_above = 0;
    /// The first subtree of each portion of about a 16th of the entries; then their number.
    std::vector<int> first_of_block;
  };
  /// `row_at`: the row of the matrix, by node, so that threads that have the first rows in their caches have the first
  /// portions, too; empty: without portions, and in no order.
  Cut cut(std::span<const int> row_at = {}) const;
  std::size_t entries_in_all() const;
};

/// The place of each row, in an order of elimination on the diagonal whose tree is in postorder: minimal degree,
/// or nested dissection by it where that leaves more to do side by side for hardly more entries. `tree`: its tree.
std::vector<int> elimination_order(const SparseMatrix& A, EliminationTree& tree);

}  // namespace portwave
