#include "network/linear_solver.hpp"

#include <cstddef>

#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

constexpr int kLargestInverse = 96;
constexpr double kVectorGain = 4.0;  // a term of a dense product against one of a sparse solve

/// x = M b by columns, all sums in registers.
template <int N>
void small_product(const double* M, const double* b, double* x) {
  double sum[N] = {};
  for (int j = 0; j < N; ++j) {
    for (int i = 0; i < N; ++i) sum[i] += M[j * N + i] * b[j];
  }
  for (int i = 0; i < N; ++i) x[i] = sum[i];
}

}  // namespace

ColumnList::ColumnList(const SparseMatrix& M) {
  begin.push_back(0);
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() == 0.0) continue;
      row.push_back(static_cast<int>(it.row()));
      value.push_back(it.value());
    }
    begin.push_back(static_cast<int>(row.size()));
  }
}

bool LinearSolver::factorise(const SparseMatrix& L) {
  size_ = static_cast<int>(L.rows());
  SparseMatrix compressed = L;
  compressed.makeCompressed();
  if (size_ == 0) return true;
  if (!factors_.factorise(compressed)) return false;
  const double n = size_;
  dense_ =
      size_ <= kLargestInverse && n * n <= kVectorGain * static_cast<double>(factors_.nonzeros());
  if (!dense_) return true;
  const Eigen::MatrixXd full(compressed);
  inverse_ = lu_inverse(full);
  inverse_ += inverse_ * (Eigen::MatrixXd::Identity(size_, size_) - full * inverse_);
  factors_ = {};
  return inverse_.allFinite();
}

void LinearSolver::solve(const double* b, double* x, double* scratch) const {
  if (!dense_) {
    if (size_ > 0) factors_.solve(b, x, scratch);
    return;
  }
  switch (size_) {
    case 1:
      return small_product<1>(inverse_.data(), b, x);
    case 2:
      return small_product<2>(inverse_.data(), b, x);
    case 3:
      return small_product<3>(inverse_.data(), b, x);
    case 4:
      return small_product<4>(inverse_.data(), b, x);
    default:
      break;
  }
  // By columns, which the compiler turns into vector code; no work arrays.
  for (int i = 0; i < size_; ++i) x[i] = 0.0;
  for (int j = 0; j < size_; ++j) {
    const double* column = inverse_.data() + static_cast<std::ptrdiff_t>(j) * size_;
    const double bj = b[j];
    for (int i = 0; i < size_; ++i) x[i] += column[i] * bj;
  }
}

void LinearSolver::prepare_lanes() {
  if (!dense_ && !lanes_) lanes_.emplace(factors_);
}

void LinearSolver::solve_lanes(const double* b, double* x, double* scratch) const {
  if (dense_) {
    lane_kernels().dense_product(inverse_.data(), size_, size_, b, x);
  } else if (size_ > 0) {
    lane_kernels().solve(lanes_->triangles(), b, x, scratch);
  }
}

Eigen::MatrixXd LinearSolver::solve(const SparseMatrix& columns) const {
  const Eigen::MatrixXd b(columns);
  Eigen::MatrixXd x(b.rows(), b.cols());
  Eigen::VectorXd scratch(b.rows());
  for (Eigen::Index j = 0; j < b.cols(); ++j)
    solve(b.col(j).data(), x.col(j).data(), scratch.data());
  return x;
}

double LinearSolver::operations() const {
  return dense_ ? static_cast<double>(size_) * size_ : static_cast<double>(factors_.nonzeros());
}

}  // namespace portwave
