#include "portwave/subsystems/matrices/sparse_factors.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace portwave {
namespace {

/// Opens the factors that Eigen keeps protected.
class OpenSparseLU : public Eigen::SparseLU<SparseMatrix, Eigen::COLAMDOrdering<int>> {
 public:
  const auto& supernodes() const { return this->m_Lstore; }
  const auto& upper_blocks() const { return this->m_Ustore; }
};

}  // namespace

bool SparseFactors::factorise(const SparseMatrix& A) {
  OpenSparseLU lu;
  lu.compute(A);
  if (lu.info() != Eigen::Success) return false;
  const int n = static_cast<int>(A.rows());
  const auto& nodes = lu.supernodes();
  const auto& blocks = lu.upper_blocks();
  lower_ = {};
  upper_ = {};
  inverse_diagonal_.assign(static_cast<std::size_t>(n), 0.0);
  lower_.begin.push_back(0);
  upper_.begin.push_back(0);
  for (int j = 0; j < n; ++j) {
    // A supernode's columns share the row list of its first column; their values are padded, so the
    // row list's length counts.
    const auto first = nodes.supToCol()[nodes.colToSup()[j]];
    const auto rows = nodes.rowIndexPtr()[first];
    const auto values = nodes.colIndexPtr()[j];
    const auto count = std::min<Eigen::Index>(nodes.colIndexPtr()[j + 1] - values,
                                              nodes.rowIndexPtr()[first + 1] - rows);
    for (Eigen::Index i = 0; i < count; ++i) {
      const int row = static_cast<int>(nodes.rowIndex()[rows + i]);
      const double value = nodes.valuePtr()[values + i];
      if (row == j) {
        inverse_diagonal_[static_cast<std::size_t>(j)] = 1.0 / value;
      } else {
        Triangle& triangle = row > j ? lower_ : upper_;
        triangle.row.push_back(row);
        triangle.value.push_back(value);
      }
    }
    for (std::decay_t<decltype(blocks)>::InnerIterator it(blocks, j); it; ++it) {
      upper_.row.push_back(static_cast<int>(it.index()));
      upper_.value.push_back(it.value());
    }
    lower_.begin.push_back(static_cast<int>(lower_.row.size()));
    upper_.begin.push_back(static_cast<int>(upper_.row.size()));
  }
  const auto& pr = lu.rowsPermutation().indices();
  const auto& pc = lu.colsPermutation().indices();
  row_of_.assign(pr.data(), pr.data() + n);
  column_of_.assign(pc.data(), pc.data() + n);
  for (const double d : inverse_diagonal_) {
    if (!std::isfinite(d)) return false;
  }
  return true;
}

void SparseFactors::solve(const double* b, double* x, double* scratch) const {
  const int n = size();
  for (int i = 0; i < n; ++i) scratch[row_of_[static_cast<std::size_t>(i)]] = b[i];
  const int* begin = lower_.begin.data();
  for (int j = 0; j < n; ++j) {
    const double xj = scratch[j];
    for (int k = begin[j]; k < begin[j + 1]; ++k) {
      scratch[lower_.row[static_cast<std::size_t>(k)]] -=
          lower_.value[static_cast<std::size_t>(k)] * xj;
    }
  }
  begin = upper_.begin.data();
  for (int j = n - 1; j >= 0; --j) {
    const double xj = scratch[j] * inverse_diagonal_[static_cast<std::size_t>(j)];
    scratch[j] = xj;
    for (int k = begin[j]; k < begin[j + 1]; ++k) {
      scratch[upper_.row[static_cast<std::size_t>(k)]] -=
          upper_.value[static_cast<std::size_t>(k)] * xj;
    }
  }
  for (int j = 0; j < n; ++j) x[j] = scratch[column_of_[static_cast<std::size_t>(j)]];
}

Eigen::VectorXd SparseFactors::solve_transposed(const Eigen::VectorXd& b) const {
  const int n = size();
  Eigen::VectorXd y(n);
  for (int j = 0; j < n; ++j) y[column_of_[static_cast<std::size_t>(j)]] = b[j];
  for (int j = 0; j < n; ++j) {  // Uᵀ, from the top
    double sum = y[j];
    for (int k = upper_.begin[static_cast<std::size_t>(j)];
         k < upper_.begin[static_cast<std::size_t>(j) + 1]; ++k) {
      sum -= upper_.value[static_cast<std::size_t>(k)] * y[upper_.row[static_cast<std::size_t>(k)]];
    }
    y[j] = sum * inverse_diagonal_[static_cast<std::size_t>(j)];
  }
  for (int j = n - 1; j >= 0; --j) {  // Lᵀ, from the bottom
    double sum = y[j];
    for (int k = lower_.begin[static_cast<std::size_t>(j)];
         k < lower_.begin[static_cast<std::size_t>(j) + 1]; ++k) {
      sum -= lower_.value[static_cast<std::size_t>(k)] * y[lower_.row[static_cast<std::size_t>(k)]];
    }
    y[j] = sum;
  }
  Eigen::VectorXd x(n);
  for (int i = 0; i < n; ++i) x[i] = y[row_of_[static_cast<std::size_t>(i)]];
  return x;
}

}  // namespace portwave
