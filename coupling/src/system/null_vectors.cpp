#include <cmath>
#include <functional>
#include <map>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"
#include "system/constraint_search.hpp"

namespace portwave {
namespace {

/// The sums of equal places, without what only rounding has left of them.
SparseMatrix summed(int rows, int columns, const SparseEntries& entries) {
  SparseMatrix sum(rows, columns), size(rows, columns);
  sum.setFromTriplets(entries.begin(), entries.end());
  SparseEntries magnitudes = entries;
  for (auto& own : magnitudes) own = {own.row(), own.col(), std::abs(own.value())};
  size.setFromTriplets(magnitudes.begin(), magnitudes.end());
  SparseEntries kept;
  for (int j = 0; j < columns; ++j) {
    SparseMatrix::InnerIterator terms(size, j);  // the same pattern
    for (SparseMatrix::InnerIterator it(sum, j); it; ++it, ++terms) {
      if (std::abs(it.value()) > 1e-13 * terms.value()) {
        kept.emplace_back(static_cast<int>(it.row()), j, it.value());
      }
    }
  }
  return sparse_matrix(rows, columns, kept);
}

/// Eliminates rows and columns with one entry, in order, and extends null vectors of the rest to them.
///
/// A row whose only column is j fixes that unknown: v_j = 0, and its weight in a left null vector follows
/// from column j. A column whose only row is i is what that row determines: n_i = 0, and v_j follows from
/// row i.
class Elimination {
 public:
  explicit Elimination(const SparseMatrix& M)
      : by_column_(M),
        by_row_(M.transpose()),
        row_(at(static_cast<int>(M.rows()))),
        column_(at(static_cast<int>(M.cols()))) {
    for (int i = 0; i < static_cast<int>(M.rows()); ++i) row_[at(i)].entries = count(by_row_, i);
    for (int j = 0; j < static_cast<int>(M.cols()); ++j) {
      column_[at(j)].entries = count(by_column_, j);
    }
    eliminate();
  }

  NullVectors null_vectors() const {
    std::vector<int> rows, columns;
    std::vector<int> place(row_.size(), -1);
    for (int i = 0; i < static_cast<int>(row_.size()); ++i) {
      if (row_[at(i)].order >= 0) continue;
      place[at(i)] = static_cast<int>(rows.size());
      rows.push_back(i);
    }
    SparseEntries entries;
    for (int j = 0; j < static_cast<int>(column_.size()); ++j) {
      if (column_[at(j)].order >= 0) continue;
      for (SparseMatrix::InnerIterator it(by_column_, j); it; ++it) {
        const int row = place[at(static_cast<int>(it.row()))];
        if (row >= 0) entries.emplace_back(row, static_cast<int>(columns.size()), it.value());
      }
      columns.push_back(j);
    }
    SparseMatrix rest =
        sparse_matrix(static_cast<int>(rows.size()), static_cast<int>(columns.size()), entries);
    const SparseRank rank(rest);
    NullVectors out;
    for (int k = 0; k < rank.left_kernel().cols(); ++k) {
      out.left.push_back(
          extended(rank.left_kernel(), k, rows, by_row_, by_column_, row_, column_, true));
    }
    for (int k = 0; k < rank.right_kernel().cols(); ++k) {
      out.right.push_back(
          extended(rank.right_kernel(), k, columns, by_column_, by_row_, column_, row_, false));
    }
    return out;
  }

 private:
  /// A row or a column.
  struct Line {
    int entries = 0;
    int order = -1;       // in which it was eliminated; −1: it was not
    int partner = -1;     // the other one of the two
    bool by_row = false;  // it was the row that had one entry
    double pivot = 0.0;
  };

  static int count(const SparseMatrix& M, int line) {
    return M.outerIndexPtr()[line + 1] - M.outerIndexPtr()[line];
  }

  void eliminate() {
    std::vector<std::pair<bool, int>> due;  // (is a row, number)
    for (int i = 0; i < static_cast<int>(row_.size()); ++i) {
      if (row_[at(i)].entries == 1) due.emplace_back(true, i);
    }
    for (int j = 0; j < static_cast<int>(column_.size()); ++j) {
      if (column_[at(j)].entries == 1) due.emplace_back(false, j);
    }
    int order = 0;
    for (std::size_t next = 0; next < due.size(); ++next) {
      const auto [is_row, number] = due[next];
      const SparseMatrix& lines = is_row ? by_row_ : by_column_;
      std::vector<Line>& own = is_row ? row_ : column_;
      std::vector<Line>& others = is_row ? column_ : row_;
      if (own[at(number)].order >= 0 || own[at(number)].entries != 1) continue;
      for (SparseMatrix::InnerIterator it(lines, number); it; ++it) {
        const int other = static_cast<int>(it.row());
        if (others[at(other)].order >= 0) continue;
        own[at(number)] = {0, order, other, is_row, it.value()};
        others[at(other)] = {0, order, number, is_row, it.value()};
        ++order;
        // What the other one had in further lines is gone.
        const SparseMatrix& across = is_row ? by_column_ : by_row_;
        for (SparseMatrix::InnerIterator rest(across, other); rest; ++rest) {
          Line& line = own[at(static_cast<int>(rest.row()))];
          if (line.order < 0 && --line.entries == 1) {
            due.emplace_back(is_row, static_cast<int>(rest.row()));
          }
        }
        break;
      }
    }
  }

  /// Of a vector over `lines` (rows from the left, columns from the right). Those that were eliminated the
  /// last follow first.
  static SparseVector extended(const SparseMatrix& kernel, int k, const std::vector<int>& numbers,
                               const SparseMatrix& lines, const SparseMatrix& across,
                               const std::vector<Line>& own, const std::vector<Line>& others,
                               bool of_rows) {
    std::map<int, double> value;
    std::map<int, int, std::greater<>> due;  // order → line
    const auto touch = [&](int line) {
      for (SparseMatrix::InnerIterator it(lines, line); it; ++it) {
        const Line& crossed = others[at(static_cast<int>(it.row()))];
        const bool follows = crossed.order >= 0 && crossed.by_row == of_rows &&
                             (own[at(line)].order < 0 || crossed.order < own[at(line)].order);
        if (follows) due.emplace(crossed.order, crossed.partner);
      }
    };
    for (SparseMatrix::InnerIterator it(kernel, k); it; ++it) {
      const int line = numbers[at(static_cast<int>(it.row()))];
      value[line] = it.value();
      touch(line);
    }
    while (!due.empty()) {
      const int line = due.begin()->second;
      due.erase(due.begin());
      const Line& it_is = own[at(line)];
      double sum = 0.0, size = 0.0;
      for (SparseMatrix::InnerIterator it(across, it_is.partner); it; ++it) {
        const auto found = value.find(static_cast<int>(it.row()));
        if (found == value.end() || found->first == line) continue;
        sum += found->second * it.value();
        size += std::abs(found->second * it.value());
      }
      if (std::abs(sum) <= 1e-13 * size) continue;
      value[line] = -sum / it_is.pivot;
      touch(line);
    }
    return {value.begin(), value.end()};
  }

  SparseMatrix by_column_, by_row_;
  std::vector<Line> row_, column_;
};

}  // namespace

NullVectors null_vectors(int rows, int columns, const SparseEntries& entries) {
  return Elimination(summed(rows, columns, entries)).null_vectors();
}

}  // namespace portwave
