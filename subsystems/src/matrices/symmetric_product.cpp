#include "portwave/subsystems/matrices/symmetric_product.hpp"

#include <algorithm>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

SymmetricProduct::SymmetricProduct(const SparseMatrix& M, std::span<const int> block)
    : diagonal_(at(static_cast<int>(M.rows())), 0.0) {
  constexpr std::size_t kLeast = 16;  // rows
  std::vector<int> place(diagonal_.size(), -1);
  for (std::size_t k = 0; k < block.size(); ++k) place[at(block[k])] = static_cast<int>(k);
  std::size_t inside = 0;
  for (const int j : block) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      inside += place[at(static_cast<int>(it.row()))] >= 0 ? 1U : 0U;
    }
  }
  if (block.size() >= kLeast && 2 * inside >= block.size() * block.size()) {
    block_.assign(block.begin(), block.end());
    const auto size = static_cast<Eigen::Index>(block.size());
    dense_.setZero(size, size);
  }
  begin_.push_back(0);
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      const auto i = static_cast<int>(it.row());
      if (i == j) {
        diagonal_[at(j)] += it.value();
        continue;
      }
      if (i < j || it.value() == 0.0) continue;
      if (!block_.empty() && place[at(i)] >= 0 && place[at(j)] >= 0) {
        const auto [low, high] = std::minmax(place[at(i)], place[at(j)]);
        dense_(high, low) += it.value();
        continue;
      }
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
  if (block_.empty()) return;
  const auto size = static_cast<Eigen::Index>(block_.size());
  Eigen::Map<Eigen::VectorXd> from(scratch, size), to(scratch + size, size);
  for (Eigen::Index k = 0; k < size; ++k) from[k] = x[block_[static_cast<std::size_t>(k)]];
  to.noalias() = dense_.selfadjointView<Eigen::Lower>() * from;
  for (Eigen::Index k = 0; k < size; ++k) y[block_[static_cast<std::size_t>(k)]] += factor * to[k];
}

}  // namespace portwave
