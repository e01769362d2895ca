#include "network/linear_solver.hpp"

#include <algorithm>
#include <cstddef>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/base/instruction_set.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"

namespace portwave {
namespace {

struct Entry {
  int line;
  double value;
};
using Lines = std::vector<std::vector<Entry>>;

/// Lines in the order of how many others must come before them, first those that need none.
std::vector<int> by_level(const Lines& lines, bool ascending) {
  const int n = static_cast<int>(lines.size());
  std::vector<int> level(lines.size(), 0), order(lines.size());
  for (int k = 0; k < n; ++k) {
    const int i = ascending ? k : n - 1 - k;
    order[at(k)] = i;
    for (const Entry& e : lines[at(i)])
      level[at(i)] = std::max(level[at(i)], level[at(e.line)] + 1);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return level[at(a)] < level[at(b)]; });
  return order;
}

std::vector<int> inverse(const std::vector<int>& permutation) {
  std::vector<int> out(permutation.size());
  for (std::size_t i = 0; i < out.size(); ++i) out[at(permutation[i])] = static_cast<int>(i);
  return out;
}

}  // namespace

LaneMatrix::LaneMatrix(const SparseMatrix& M, By by) {
  const auto lines = static_cast<std::size_t>(by == By::rows ? M.rows() : M.cols());
  Lines found(lines);
  for (int j = 0; j < M.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      const int i = static_cast<int>(it.row());
      found[at(by == By::rows ? i : j)].push_back({by == By::rows ? j : i, it.value()});
    }
  }
  for (const std::vector<Entry>& line : found) {
    for (const Entry& e : line) {
      offset_.push_back(kLaneGroup * e.line);
      value_.push_back(e.value);
    }
    begin_.push_back(static_cast<int>(offset_.size()));
  }
}

LaneFactors::LaneFactors(const SparseFactors& factors) {
  const int n = factors.size();
  Lines lower(at(n)), upper(at(n));
  // Entries of a line in the order in which a solve by columns comes to them.
  const SparseFactors::Triangle& L = factors.lower();
  const SparseFactors::Triangle& U = factors.upper();
  for (int j = 0; j < n; ++j) {
    for (int k = L.begin[at(j)]; k < L.begin[at(j) + 1]; ++k)
      lower[at(L.row[at(k)])].push_back({j, L.value[at(k)]});
  }
  for (int j = n - 1; j >= 0; --j) {
    for (int k = U.begin[at(j)]; k < U.begin[at(j) + 1]; ++k)
      upper[at(U.row[at(k)])].push_back({j, U.value[at(k)]});
  }
  const std::vector<int> source = inverse(factors.row_of()), target = inverse(factors.column_of());
  const std::vector<int> down = by_level(lower, true), up = by_level(upper, false);
  const std::vector<int> offset = inverse(down);
  const auto put = [](Triangle& triangle, const std::vector<Entry>& line,
                      const std::vector<int>& offsets) {
    for (const Entry& e : line) {
      triangle.offset.push_back(kLaneGroup * offsets[at(e.line)]);
      triangle.value.push_back(e.value);
    }
    triangle.begin.push_back(static_cast<int>(triangle.offset.size()));
  };
  for (const int i : down) {
    put(lower_, lower[at(i)], offset);
    source_.push_back(kLaneGroup * source[at(i)]);
  }
  for (const int i : up) {
    put(upper_, upper[at(i)], target);
    from_.push_back(kLaneGroup * offset[at(i)]);
    target_.push_back(kLaneGroup * target[at(i)]);
    inverse_diagonal_.push_back(factors.inverse_diagonal()[at(i)]);
  }
}

LaneTriangles LaneFactors::triangles() const {
  return {lower_.lines(), upper_.lines(), source_.data(),
          from_.data(),   target_.data(), inverse_diagonal_.data()};
}

const LaneKernels& lane_kernels() {
  static const LaneKernels& kernels = PORTWAVE_KERNELS(kLaneKernels);
  return kernels;
}

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
