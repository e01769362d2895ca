#include "portwave/subsystems/matrices/unpivoted_lu.hpp"

#include <algorithm>
#include <cmath>

#include <Eigen/OrderingMethods>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// A pivot so much smaller than an entry of its row or column calls for an exchange.
constexpr double kMostGrowth = 1e3;

/// The order of minimal degree: place of each row.
std::vector<int> minimal_degree(const SparseMatrix& A) {
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> inverse;
  Eigen::AMDOrdering<int>()(A, inverse);
  std::vector<int> order(at(static_cast<int>(A.rows())));
  for (int place = 0; place < static_cast<int>(order.size()); ++place) {
    order[at(inverse.indices()[place])] = place;
  }
  return order;
}

/// The rows of L of a matrix with the pattern of A + Aᵀ, by its elimination tree: `found(row, column)` for every
/// entry, row by row, columns in no order. Ends where that returns false.
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

}  // namespace

std::size_t expected_lu_entries(const SparseMatrix& A, std::size_t most) {
  std::size_t lower = 0;
  const auto count = [&] { return 2 * lower + at(static_cast<int>(A.rows())); };
  eliminate(A, minimal_degree(A), [&](int, int) {
    ++lower;
    return count() <= most;
  });
  return count();
}

void UnpivotedLu::analyse(int size, std::span<const Place> places, std::span<int> slots) {
  const std::size_t n = at(size);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(places.size() + n);
  for (const auto& [row, column] : places) entries.emplace_back(row, column, 1.0);
  for (int i = 0; i < size; ++i) entries.emplace_back(i, i, 1.0);
  SparseMatrix pattern(size, size);
  pattern.setFromTriplets(entries.begin(), entries.end());
  order_ = minimal_degree(pattern);

  std::vector<Place> lower;
  eliminate(pattern, order_, [&](int row, int column) {
    lower.emplace_back(row, column);
    return true;
  });
  // L by rows, and U, which has its transposed pattern.
  std::ranges::sort(lower);
  std::vector<int> left(n, 0), right(n, 0);
  for (const auto& [row, column] : lower) {
    ++left[at(row)];
    ++right[at(column)];
  }
  begin_.assign(n + 1, 0);
  diagonal_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    diagonal_[i] = begin_[i] + left[i];
    begin_[i + 1] = diagonal_[i] + 1 + right[i];
  }
  column_.assign(at(begin_[n]), 0);
  std::vector<int> next_left(begin_.begin(), begin_.end() - 1), next_right = diagonal_;
  for (int i = 0; i < size; ++i) column_[at(diagonal_[at(i)])] = i;
  for (const auto& [row, column] : lower) {
    column_[at(next_left[at(row)]++)] = column;
    column_[at(++next_right[at(column)])] = row;
  }
  value_.assign(column_.size(), 0.0);
  factor_.assign(column_.size(), 0.0);
  inverse_.assign(n, 0.0);
  work_.assign(n, 0.0);

  for (std::size_t k = 0; k < places.size(); ++k) {
    const int row = order_[at(places[k].first)], column = order_[at(places[k].second)];
    const auto first = column_.begin() + begin_[at(row)],
               last = column_.begin() + begin_[at(row) + 1];
    slots[k] = static_cast<int>(std::lower_bound(first, last, column) - column_.begin());
  }
}

SparseMatrix UnpivotedLu::matrix() const {
  std::vector<int> row_at(order_.size());
  for (int row = 0; row < size(); ++row) row_at[at(order_[at(row)])] = row;
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < size(); ++i) {
    for (int p = begin_[at(i)]; p < begin_[at(i) + 1]; ++p) {
      if (value_[at(p)] == 0.0) continue;
      entries.emplace_back(row_at[at(i)], row_at[at(column_[at(p)])], value_[at(p)]);
    }
  }
  SparseMatrix out(size(), size());
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

bool UnpivotedLu::factorise() {
  const int n = size();
  const int* const column = column_.data();
  double *const work = work_.data(), *const factor = factor_.data();
  for (int i = 0; i < n; ++i) {
    const int begin = begin_[at(i)], diagonal = diagonal_[at(i)], end = begin_[at(i) + 1];
    for (int p = begin; p < end; ++p) work[column[p]] = value_[at(p)];
    double most_lower = 0.0;
    for (int p = begin; p < diagonal; ++p) {
      const int k = column[p];
      const double l = work[k] * inverse_[at(k)];
      factor[p] = l;
      most_lower = std::max(most_lower, std::abs(l));
      const int last = begin_[at(k) + 1];
      for (int q = diagonal_[at(k)] + 1; q < last; ++q) work[column[q]] -= l * factor[q];
    }
    const double pivot = work[i];
    double most_upper = 0.0;
    for (int p = diagonal + 1; p < end; ++p) {
      factor[p] = work[column[p]];
      most_upper = std::max(most_upper, std::abs(factor[p]));
    }
    factor[diagonal] = pivot;
    inverse_[at(i)] = 1.0 / pivot;
    const bool is_sound = most_lower <= kMostGrowth &&
                          most_upper <= kMostGrowth * std::abs(pivot) &&
                          std::isfinite(inverse_[at(i)]);
    if (!is_sound) return false;
  }
  return true;
}

void UnpivotedLu::solve(const double* b, double* x, double* scratch) const {
  const int n = size();
  const int* const column = column_.data();
  const double* const factor = factor_.data();
  for (int row = 0; row < n; ++row) scratch[order_[at(row)]] = b[row];
  for (int i = 0; i < n; ++i) {
    double sum = scratch[i];
    for (int p = begin_[at(i)]; p < diagonal_[at(i)]; ++p) sum -= factor[p] * scratch[column[p]];
    scratch[i] = sum;
  }
  for (int i = n - 1; i >= 0; --i) {
    double sum = scratch[i];
    for (int p = diagonal_[at(i)] + 1; p < begin_[at(i) + 1]; ++p) {
      sum -= factor[p] * scratch[column[p]];
    }
    scratch[i] = sum * inverse_[at(i)];
  }
  for (int row = 0; row < n; ++row) x[row] = scratch[order_[at(row)]];
}

std::size_t UnpivotedLu::bytes() const {
  return (begin_.capacity() + diagonal_.capacity() + column_.capacity() + order_.capacity()) *
             sizeof(int) +
         (value_.capacity() + factor_.capacity() + inverse_.capacity() + work_.capacity()) *
             sizeof(double);
}

}  // namespace portwave
