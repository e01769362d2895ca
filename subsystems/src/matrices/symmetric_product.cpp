#include "portwave/subsystems/matrices/symmetric_product.hpp"

#include <algorithm>
#include <map>
#include <utility>

#include "kernels/factor_kernels.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// Rows of the block that go into panels, those of one pattern together.
SymmetricProduct::Groups SymmetricProduct::groups_of(const SparseMatrix& M,
                                                     std::span<const int> block) const {
  constexpr std::size_t kLeast = 16, kLeastOfGroup = 4;  // rows
  if (block.size() < kLeast) return {};
  std::vector<char> is_inside(diagonal_.size(), 0);
  for (const int i : block) is_inside[at(i)] = 1;
  std::size_t inside = 0;
  std::map<std::vector<int>, std::vector<int>> rows_of;  // by pattern
  std::vector<int> pattern;
  for (const int j : block) {
    pattern.clear();
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      if (is_inside[at(i)] != 0) pattern.push_back(i);
    }
    inside += pattern.size();
    rows_of[pattern].push_back(j);
  }
  if (2 * inside >= block.size() * block.size()) return {{block.begin(), block.end()}};
  Groups groups;
  for (auto& [own, rows] : rows_of) {
    if (rows.size() >= kLeastOfGroup) groups.push_back(std::move(rows));
  }
  return groups;
}

/// `place` of the rows that are in panels; −1 for others.
void SymmetricProduct::add_panels(const SparseMatrix& M, const Groups& groups,
                                  std::vector<int>& place) {
  std::vector<std::size_t> group_of(place.size(), groups.size());
  for (std::size_t g = 0; g < groups.size(); ++g) {
    for (const int i : groups[g]) {
      place[at(i)] = static_cast<int>(block_.size());
      group_of[at(i)] = g;
      block_.push_back(i);
    }
  }
  std::vector<int> local(block_.size(), -1);  // row of the panel
  std::size_t values = 0;
  std::vector<char> is_met;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    FactorBlock panel;
    panel.first = place[at(groups[g].front())];
    panel.last = panel.first + static_cast<int>(groups[g].size());
    panel.below = panel_rows_.size();
    panel.values = values;
    is_met.assign(groups.size(), 0);
    for (SparseMatrix::InnerIterator it(M, groups[g].front()); it; ++it) {
      const std::size_t other = group_of[static_cast<std::size_t>(it.row())];
      if (other > g && other < groups.size()) is_met[other] = 1;
    }
    for (std::size_t other = g + 1; other < groups.size(); ++other) {
      if (is_met[other] == 0) continue;
      for (const int i : groups[other]) panel_rows_.push_back(place[at(i)]);
    }
    panel.below_count = static_cast<int>(panel_rows_.size() - panel.below);
    const auto width = panel.last - panel.first, height = width + panel.below_count;
    for (int k = 0; k < width; ++k) local[at(panel.first + k)] = k;
    for (int k = 0; k < panel.below_count; ++k) {
      local[at(panel_rows_[panel.below + at(k)])] = width + k;
    }
    values = (values + at(width) * at(height) + 7) / 8 * 8;
    panel_values_.resize(values, 0.0);
    longest_ = std::max(longest_, at(height));
    for (const int j : groups[g]) {
      const int column = place[at(j)] - panel.first;
      double* const own = panel_values_.data() + panel.values + at(column) * at(height);
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        const int i = place[static_cast<std::size_t>(it.row())];
        if (i > place[at(j)]) own[local[at(i)]] += it.value();
      }
    }
    panels_.push_back(panel);
  }
  if (panels_.size() == 1) longest_ = 0;
}

SymmetricProduct::SymmetricProduct(const SparseMatrix& M, std::span<const int> block)
    : diagonal_(at(static_cast<int>(M.rows())), 0.0) {
  std::vector<int> place(diagonal_.size(), -1);
  add_panels(M, groups_of(M, block), place);
  begin_.push_back(0);
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      if (i == j) diagonal_[at(j)] += it.value();
      if (i <= j || it.value() == 0.0 || (place[at(i)] >= 0 && place[at(j)] >= 0)) continue;
      row_.push_back(i);
      value_.push_back(it.value());
    }
    begin_.push_back(static_cast<int>(row_.size()));
  }
}

void SymmetricProduct::add(double factor, const double* x, double* y, double* scratch) const {
  const auto n = static_cast<int>(diagonal_.size());
  if (row_.empty()) {
    for (int j = 0; j < n; ++j) y[j] += factor * diagonal_[at(j)] * x[j];
  } else {
    for (int j = 0; j < n; ++j) {
      const double own = factor * x[j];
      double sum = diagonal_[at(j)] * x[j];
      for (int k = begin_[at(j)]; k < begin_[at(j) + 1]; ++k) {
        sum += value_[at(k)] * x[row_[at(k)]];
        y[row_[at(k)]] += value_[at(k)] * own;
      }
      y[j] += factor * sum;
    }
  }
  if (panels_.empty()) return;
  const std::size_t size = block_.size();
  double *const from = scratch, *const to = scratch + size;
  for (std::size_t k = 0; k < size; ++k) from[k] = x[block_[k]];
  std::fill_n(to, size, 0.0);
  const factor_columns::Kernels& kernels = factor_columns::kernels();
  for (const FactorBlock& panel : panels_) {
    const int width = panel.last - panel.first, below = panel.below_count;
    const double* const values = panel_values_.data() + panel.values;
    if (below == 0) {
      kernels.multiply(values, width, width, from + panel.first, to + panel.first);
      continue;
    }
    const int* const rows = panel_rows_.data() + panel.below;
    double *const own = to + size, *const out = own + longest_;
    std::copy_n(from + panel.first, width, own);
    for (int i = 0; i < below; ++i) own[width + i] = from[rows[i]];
    std::fill_n(out, width + below, 0.0);
    kernels.multiply(values, width, width + below, own, out);
    for (int k = 0; k < width; ++k) to[panel.first + k] += out[k];
    for (int i = 0; i < below; ++i) to[rows[i]] += out[width + i];
  }
  for (std::size_t k = 0; k < size; ++k) y[block_[k]] += factor * to[k];
}

}  // namespace portwave
