#include "portwave/subsystems/matrices/unpivoted_lu.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "matrices/elimination_order.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// A pivot so much smaller than an entry of its row or column calls for an exchange.
constexpr double kMostGrowth = 1e3;
/// Entries of factors that are worth several threads: solves of some 5 us.
constexpr std::size_t kWorthSharing = 8192;

}  // namespace

void UnpivotedLu::analyse(int size, std::span<const Place> places, std::span<int> slots) {
  const std::size_t n = at(size);
  std::vector<Eigen::Triplet<double>> entries;
  entries.reserve(places.size() + n);
  for (const auto& [row, column] : places) entries.emplace_back(row, column, 1.0);
  for (int i = 0; i < size; ++i) entries.emplace_back(i, i, 1.0);
  SparseMatrix pattern(size, size);
  pattern.setFromTriplets(entries.begin(), entries.end());
  EliminationTree tree;
  order_ = elimination_order(pattern, tree);
  row_at_.resize(n);
  for (int row = 0; row < size; ++row) row_at_[at(order_[at(row)])] = row;

  outside_at_ = row_at_;
  find_pattern(pattern);
  value_.assign(column_.size(), 0.0);
  factor_.assign(column_.size(), 0.0);
  inverse_.assign(n, 0.0);
  work_.assign(n, 0.0);
  is_changed_.assign(n, 1);

  for (std::size_t k = 0; k < places.size(); ++k) {
    const int row = order_[at(places[k].first)], column = order_[at(places[k].second)];
    const auto first = column_.begin() + begin_[at(row)],
               last = column_.begin() + begin_[at(row) + 1];
    slots[k] = static_cast<int>(std::lower_bound(first, last, column) - column_.begin());
  }
  subtrees_.clear();
  if (2 * tree.entries_in_all() - n < kWorthSharing) return;
  EliminationTree::Cut cut = tree.cut(row_at_);
  subtrees_ = std::move(cut.subtrees);
  first_of_block_ = std::move(cut.first_of_block);
  above_ = std::move(cut.above);
  is_block_sound_.assign(first_of_block_.size() - 1, 0);
  squares_.assign(is_block_sound_.size(), 0.0);
  work_.assign(n * is_block_sound_.size(), 0.0);
}

/// The places of L and U. The elimination tree allows those of A + Aᵀ; what of them is zero because A has no entry
/// there or across the diagonal is left out.
void UnpivotedLu::find_pattern(const SparseMatrix& A) {
  const std::size_t n = order_.size();
  std::vector<int> first(n + 1, 0), own(at(static_cast<int>(A.nonZeros())));  // of A, row by row
  const auto for_entries = [&](const auto& act) {
    for (int j = 0; j < static_cast<int>(n); ++j) {
      for (SparseMatrix::InnerIterator it(A, j); it; ++it) {
        act(at(order_[at(static_cast<int>(it.row()))]), order_[at(j)]);
      }
    }
  };
  for_entries([&](std::size_t row, int) { ++first[row + 1]; });
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<int> next(first.begin(), first.end() - 1);
  for_entries([&](std::size_t row, int column) { own[at(next[row]++)] = column; });

  std::vector<std::vector<int>> left(n);  // of A + Aᵀ
  eliminate(A, order_, [&](int row, int column) {
    left[at(row)].push_back(column);
    return true;
  });
  begin_.assign(1, 0);
  diagonal_.resize(n);
  column_.clear();
  std::vector<int> mark(n, -1), row;
  for (int i = 0; i < static_cast<int>(n); ++i) {
    row.clear();
    const auto take = [&](int column) {
      if (std::exchange(mark[at(column)], i) != i) row.push_back(column);
    };
    for (int p = first[at(i)]; p < first[at(i) + 1]; ++p) take(own[at(p)]);
    std::ranges::sort(left[at(i)]);
    for (const int k : left[at(i)]) {
      if (mark[at(k)] != i) continue;
      for (int p = diagonal_[at(k)] + 1; p < begin_[at(k) + 1]; ++p) take(column_[at(p)]);
    }
    std::ranges::sort(row);
    const auto below = std::ranges::lower_bound(row, i) - row.begin();
    diagonal_[at(i)] = begin_.back() + static_cast<int>(below);
    column_.insert(column_.end(), row.begin(), row.end());
    begin_.push_back(static_cast<int>(column_.size()));
  }
}

void UnpivotedLu::take_places(std::span<const int> places) {
  for (std::size_t i = 0; i < row_at_.size(); ++i) outside_at_[i] = places[at(row_at_[i])];
}

SparseMatrix UnpivotedLu::matrix() const {
  std::vector<Eigen::Triplet<double>> entries;
  for (int i = 0; i < size(); ++i) {
    for (int p = begin_[at(i)]; p < begin_[at(i) + 1]; ++p) {
      if (value_[at(p)] == 0.0) continue;
      entries.emplace_back(row_at_[at(i)], row_at_[at(column_[at(p)])], value_[at(p)]);
    }
  }
  SparseMatrix out(size(), size());
  out.setFromTriplets(entries.begin(), entries.end());
  return out;
}

double& UnpivotedLu::value(int slot) {
  const auto row = std::ranges::upper_bound(begin_, slot) - begin_.begin() - 1;
  is_changed_[static_cast<std::size_t>(row)] = 1;
  return value_[at(slot)];
}

/// A row of the factors, from those of the rows before that it has entries for. `work`: `size()` doubles of this
/// thread. One that depends on nothing that was changed is there.
bool UnpivotedLu::factorise_row(int i, double* work) {
  const int* const column = column_.data();
  double* const factor = factor_.data();
  const int begin = begin_[at(i)], diagonal = diagonal_[at(i)], end = begin_[at(i) + 1];
  if (is_changed_[at(i)] == 0) {
    const auto is_other = [&](int k) { return is_changed_[at(k)] != 0; };
    if (std::none_of(column + begin, column + diagonal, is_other)) return true;
    is_changed_[at(i)] = 1;
  }
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
  return most_lower <= kMostGrowth && most_upper <= kMostGrowth * std::abs(pivot) &&
         std::isfinite(inverse_[at(i)]);
}

bool UnpivotedLu::factorise(const ForEach& each) {
  const bool is_sound = factorise_rows(each);
  std::ranges::fill(is_changed_, is_sound ? 0 : 1);  // not all rows were reached
  return is_sound;
}

bool UnpivotedLu::factorise_rows(const ForEach& each) {
  const auto rows = [&](int first, int last, double* work) {
    for (int i = first; i < last; ++i) {
      if (!factorise_row(i, work)) return false;
    }
    return true;
  };
  if (subtrees_.empty()) return rows(0, size(), work_.data());
  // Each portion has its own row to work on, at the same places: of the rows above all have entries.
  const int blocks = static_cast<int>(first_of_block_.size()) - 1;
  each(blocks, [&](int block) {
    double* const work = work_.data() + at(block) * at(size());
    bool is_sound = true;
    for (int t = first_of_block_[at(block)]; t < first_of_block_[at(block) + 1]; ++t) {
      is_sound = is_sound && rows(subtrees_[at(t)].first, subtrees_[at(t)].second, work);
    }
    is_block_sound_[at(block)] = is_sound ? 1 : 0;
  });
  if (std::ranges::find(is_block_sound_, 0) != is_block_sound_.end()) return false;
  return std::ranges::all_of(above_, [&](int i) { return factorise_row(i, work_.data()); });
}

/// The substitutions, with the addresses of the arrays in registers.
struct UnpivotedLu::Substitution {
  Substitution(const UnpivotedLu& lu, const double* right, double* solution, double* own)
      : begin(lu.begin_.data()),
        diagonal(lu.diagonal_.data()),
        column(lu.column_.data()),
        outside_at(lu.outside_at_.data()),
        factor(lu.factor_.data()),
        inverse(lu.inverse_.data()),
        b(right),
        x(solution),
        scratch(own) {}

  void forward(int row) const {
    const int outside = outside_at[row];
    double sum = outside < 0 ? 0.0 : b[outside];
    const int last = diagonal[row];
    for (int p = begin[row]; p < last; ++p) sum -= factor[p] * scratch[column[p]];
    scratch[row] = sum;
  }
  /// Returns x² of the row.
  double backward(int row) const {
    double sum = scratch[row];
    // Those that were found last come last, so that the others need not wait for them.
    for (int p = begin[row + 1] - 1; p > diagonal[row]; --p) {
      sum -= factor[p] * scratch[column[p]];
    }
    sum *= inverse[row];
    scratch[row] = sum;
    const int outside = outside_at[row];
    if (outside < 0) return 0.0;
    x[outside] = sum;
    return sum * sum;
  }

  const int *begin, *diagonal, *column, *outside_at;
  const double *factor, *inverse, *b;
  double *x, *scratch;
};

double UnpivotedLu::solve(const double* b, double* x, double* scratch, const ForEach& each) {
  const int n = size();
  const Substitution rows(*this, b, x, scratch);
  double square = 0.0;
  if (subtrees_.empty()) {
    for (int i = 0; i < n; ++i) rows.forward(i);
    for (int i = n - 1; i >= 0; --i) square += rows.backward(i);
    return square;
  }
  const int blocks = static_cast<int>(first_of_block_.size()) - 1;
  each(blocks, [&](int block) {
    for (int t = first_of_block_[at(block)]; t < first_of_block_[at(block) + 1]; ++t) {
      for (int i = subtrees_[at(t)].first; i < subtrees_[at(t)].second; ++i) rows.forward(i);
    }
  });
  for (const int i : above_) rows.forward(i);
  for (auto i = above_.rbegin(); i != above_.rend(); ++i) square += rows.backward(*i);
  each(blocks, [&](int block) {
    double own = 0.0;
    for (int t = first_of_block_[at(block)]; t < first_of_block_[at(block) + 1]; ++t) {
      for (int i = subtrees_[at(t)].second - 1; i >= subtrees_[at(t)].first; --i) {
        own += rows.backward(i);
      }
    }
    squares_[at(block)] = own;
  });
  for (const double own : squares_) square += own;
  return square;
}

double UnpivotedLu::smallest_pivot() const {
  double largest = 0.0;
  for (const double inverse : inverse_) largest = std::max(largest, std::abs(inverse));
  return 1.0 / largest;
}

std::size_t UnpivotedLu::bytes() const {
  return (begin_.capacity() + diagonal_.capacity() + column_.capacity() + order_.capacity() +
          row_at_.capacity() + outside_at_.capacity() + first_of_block_.capacity() +
          above_.capacity()) *
             sizeof(int) +
         subtrees_.capacity() * sizeof(Place) + is_block_sound_.capacity() +
         is_changed_.capacity() +
         (value_.capacity() + factor_.capacity() + inverse_.capacity() + work_.capacity() +
          squares_.capacity()) *
             sizeof(double);
}

}  // namespace portwave
