#include "portwave/subsystems/matrices/sparse_rank.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <Eigen/OrderingMethods>
#include <Eigen/SparseQR>

#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"

namespace portwave {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;
using SparseQr = Eigen::SparseQR<SparseMatrix, Eigen::COLAMDOrdering<int>>;

constexpr double kZero = 1e-12;          // singular values below this part of the largest
constexpr double kSurelyRegular = 1e10;  // condition that needs no second opinion
constexpr int kLargestDense = 400;

double power_of_two(double value) { return std::exp2(std::round(std::log2(value))); }

/// Rows and columns that hang together through entries ≠ 0.
struct Component {
  std::vector<int> rows, columns;
  SparseEntries entries;  // renumbered

  SparseMatrix matrix() const {
    return sparse_matrix(static_cast<Eigen::Index>(rows.size()),
                         static_cast<Eigen::Index>(columns.size()), entries);
  }
  bool is_square() const { return rows.size() == columns.size(); }
  bool is_dense() const {
    return std::max(rows.size(), columns.size()) <= static_cast<std::size_t>(kLargestDense);
  }
};

/// Rows come before columns.
class Forest {
 public:
  explicit Forest(int size) : parent_(static_cast<std::size_t>(size)) {
    std::iota(parent_.begin(), parent_.end(), 0);
  }
  int root(int i) {
    while (parent(i) != i) i = parent(i) = parent(parent(i));
    return i;
  }
  void join(int i, int j) {
    i = root(i);
    j = root(j);
    parent(std::max(i, j)) = std::min(i, j);
  }

 private:
  int& parent(int i) { return parent_[static_cast<std::size_t>(i)]; }
  std::vector<int> parent_;
};

std::vector<Component> components(const SparseMatrix& M) {
  const int rows = static_cast<int>(M.rows());
  const int columns = static_cast<int>(M.cols());
  Forest forest(rows + columns);
  for (int j = 0; j < columns; ++j) {
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() != 0.0) forest.join(static_cast<int>(it.row()), rows + j);
    }
  }
  std::vector<Component> found;
  std::vector<int> number(static_cast<std::size_t>(rows + columns), -1);
  std::vector<int> position(static_cast<std::size_t>(rows));
  const auto component_of = [&](int i) -> Component& {
    int& own = number[static_cast<std::size_t>(forest.root(i))];
    if (own < 0) {
      own = static_cast<int>(found.size());
      found.emplace_back();
    }
    return found[static_cast<std::size_t>(own)];
  };
  for (int i = 0; i < rows; ++i) {
    Component& own = component_of(i);
    position[static_cast<std::size_t>(i)] = static_cast<int>(own.rows.size());
    own.rows.push_back(i);
  }
  for (int j = 0; j < columns; ++j) {
    Component& own = component_of(rows + j);
    const int column = static_cast<int>(own.columns.size());
    own.columns.push_back(j);
    for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
      if (it.value() == 0.0) continue;
      own.entries.emplace_back(position[static_cast<std::size_t>(it.row())], column, it.value());
    }
  }
  return found;
}

/// The span of the columns by a basis that is easy to read: every vector has an entry 1 of its own.
void simplify(Matrix& N) {
  std::vector<bool> taken(static_cast<std::size_t>(N.rows()), false);
  for (Eigen::Index k = 0; k < N.cols(); ++k) {
    Eigen::Index row = -1, column = k;
    for (Eigen::Index j = k; j < N.cols(); ++j) {
      for (Eigen::Index i = 0; i < N.rows(); ++i) {
        if (taken[static_cast<std::size_t>(i)]) continue;
        if (row < 0 || std::abs(N(i, j)) > std::abs(N(row, column))) {
          row = i;
          column = j;
        }
      }
    }
    taken[static_cast<std::size_t>(row)] = true;
    N.col(k).swap(N.col(column));
    N.col(k) /= N(row, k);
    for (Eigen::Index j = 0; j < N.cols(); ++j) {
      if (j == k) continue;
      N.col(j) -= N(row, j) * N.col(k);
      N(row, j) = 0.0;
    }
  }
  for (double& value : N.reshaped()) {
    if (std::abs(value) < 1e-13) value = 0.0;
  }
}

struct Kernels {
  Eigen::Index rank = 0;
  Matrix left, right;
};

/// Columns that span the right kernel of a scaled component, by its sparse QR.
Matrix kernel_by_qr(const SparseMatrix& M) {
  SparseQr qr;
  qr.setPivotThreshold(kZero);
  qr.compute(M);
  const Eigen::Index r = qr.rank();
  const Eigen::Index n = M.cols();
  const SparseMatrix R = qr.matrixR();
  Matrix top = -Matrix(R.topRightCorner(r, n - r));
  const SparseMatrix R_11 = R.topLeftCorner(r, r);
  R_11.triangularView<Eigen::Upper>().solveInPlace(top);
  Matrix N = Matrix::Zero(n, n - r);
  N.topRows(r) = top;
  N.bottomRows(n - r).setIdentity();
  N = qr.colsPermutation() * N;
  N -= qr.solve(Matrix(M * N));  // one step of refinement
  return N;
}

Kernels kernels_of(const Component& component, const SparseMatrix& scaled) {
  const Eigen::Index rows = scaled.rows(), columns = scaled.cols();
  Kernels found;
  if (component.entries.empty()) {
    found.left = Matrix::Identity(rows, rows);
    found.right = Matrix::Identity(columns, columns);
    return found;
  }
  found.rank = std::min(rows, columns);
  if (component.is_square()) {
    if (rows == 1) return found;
    ScaledFactors lu;
    if (rows > 16 && lu.factorise(scaled) && lu.condition() < kSurelyRegular) return found;
  }
  if (component.is_dense()) {
    const SingularValues svd = singular_values(Matrix(scaled));
    const Vector& s = svd.values;
    found.rank = (s.array() > kZero * s[0]).count();
    found.left = svd.left.rightCols(rows - found.rank);
    found.right = svd.right.rightCols(columns - found.rank);
  } else {
    found.right = kernel_by_qr(scaled);
    found.rank = columns - found.right.cols();
    found.left = kernel_by_qr(SparseMatrix(scaled.transpose()));
  }
  simplify(found.left);
  simplify(found.right);
  return found;
}

/// Appends the columns of N, rows renumbered and scaled back, each to a largest entry of 1.
void append_columns(const Matrix& N, const std::vector<int>& positions, const Vector& scale,
                    int& column, SparseEntries& entries) {
  for (Eigen::Index j = 0; j < N.cols(); ++j, ++column) {
    const Vector v = N.col(j).cwiseProduct(scale);
    Eigen::Index largest = 0;
    v.cwiseAbs().maxCoeff(&largest);
    for (Eigen::Index i = 0; i < v.size(); ++i) {
      if (v[i] == 0.0) continue;
      entries.emplace_back(positions[static_cast<std::size_t>(i)], column, v[i] / v[largest]);
    }
  }
}

}  // namespace

EvenScaling::EvenScaling(const SparseMatrix& M)
    : rows(Vector::Ones(M.rows())), columns(Vector::Ones(M.cols())) {
  constexpr int kSweeps = 20;
  for (int sweep = 0; sweep < kSweeps; ++sweep) {
    Vector row = Vector::Zero(M.rows()), column = Vector::Zero(M.cols());
    for (int j = 0; j < M.outerSize(); ++j) {
      for (SparseMatrix::InnerIterator it(M, j); it; ++it) {
        const double value = std::abs(it.value()) * rows[it.row()] * columns[j];
        row[it.row()] = std::max(row[it.row()], value);
        column[j] = std::max(column[j], value);
      }
    }
    double worst = 0.0;
    const auto scale_by = [&worst](Vector& scale, const Vector& size) {
      for (Eigen::Index i = 0; i < size.size(); ++i) {
        if (!(size[i] > 0.0) || !std::isfinite(size[i])) continue;
        worst = std::max(worst, std::abs(std::log2(size[i])));
        scale[i] /= std::sqrt(size[i]);
      }
    };
    scale_by(rows, row);
    scale_by(columns, column);
    if (worst < 0.5) break;
  }
  for (double& scale : rows) scale = power_of_two(scale);
  for (double& scale : columns) scale = power_of_two(scale);
}

SparseMatrix EvenScaling::apply(const SparseMatrix& M) const {
  return rows.asDiagonal() * M * columns.asDiagonal();
}

SparseMatrix clean_product(const SparseMatrix& A, const SparseMatrix& B, double relative) {
  SparseMatrix product = A * B;
  const SparseMatrix size = SparseMatrix(A.cwiseAbs()) * SparseMatrix(B.cwiseAbs());
  SparseEntries entries;
  for (int j = 0; j < product.outerSize(); ++j) {
    SparseMatrix::InnerIterator terms(size, j);
    for (SparseMatrix::InnerIterator it(product, j); it; ++it) {
      while (terms.row() < it.row()) ++terms;
      if (std::abs(it.value()) > relative * terms.value()) {
        entries.emplace_back(static_cast<int>(it.row()), j, it.value());
      }
    }
  }
  return sparse_matrix(product.rows(), product.cols(), entries);
}

SparseRank::SparseRank(const SparseMatrix& M)
    : rows_(static_cast<int>(M.rows())), columns_(static_cast<int>(M.cols())) {
  SparseEntries left, right;
  int left_columns = 0, right_columns = 0;
  for (const Component& component : components(M)) {
    const SparseMatrix own = component.matrix();
    const EvenScaling scale(own);
    const Kernels found = kernels_of(component, scale.apply(own));
    rank_ += static_cast<int>(found.rank);
    append_columns(found.left, component.rows, scale.rows, left_columns, left);
    append_columns(found.right, component.columns, scale.columns, right_columns, right);
  }
  left_ = sparse_matrix(rows_, left_columns, left);
  right_ = sparse_matrix(columns_, right_columns, right);
}

SparseMatrix solve_in_range(const SparseMatrix& M, const SparseMatrix& B) {
  SparseEntries entries;
  const SparseMatrix by_row = B.transpose();
  for (const Component& component : components(M)) {
    if (component.entries.empty()) continue;
    std::vector<int> wanted;  // columns of B that this component sees
    for (const int row : component.rows) {
      for (SparseMatrix::InnerIterator it(by_row, row); it; ++it) {
        if (it.value() != 0.0) wanted.push_back(static_cast<int>(it.row()));
      }
    }
    std::sort(wanted.begin(), wanted.end());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    if (wanted.empty()) continue;
    const auto k = static_cast<Eigen::Index>(wanted.size());
    const SparseMatrix own = component.matrix();
    const EvenScaling scale(own);
    const SparseMatrix scaled = scale.apply(own);
    Matrix b = Matrix::Zero(own.rows(), k);
    for (std::size_t i = 0; i < component.rows.size(); ++i) {
      for (SparseMatrix::InnerIterator it(by_row, component.rows[i]); it; ++it) {
        const auto at = std::lower_bound(wanted.begin(), wanted.end(), it.row());
        if (at == wanted.end() || *at != it.row()) continue;
        b(static_cast<Eigen::Index>(i), at - wanted.begin()) = it.value();
      }
    }
    b = scale.rows.asDiagonal() * b;
    Matrix x(own.cols(), k);
    ScaledFactors lu;
    if (component.is_square() && lu.factorise(scaled) && lu.condition() < kSurelyRegular) {
      Vector scratch(own.rows());
      for (Eigen::Index j = 0; j < k; ++j)
        lu.solve(b.col(j).data(), x.col(j).data(), scratch.data());
    } else if (component.is_dense()) {
      x = least_squares(Matrix(scaled), b, kZero);
    } else {
      SparseQr qr;
      qr.setPivotThreshold(kZero);
      qr.compute(scaled);
      x = qr.solve(b);
    }
    x = scale.columns.asDiagonal() * x;
    for (Eigen::Index j = 0; j < k; ++j) {
      const double noise = 1e-14 * x.col(j).cwiseAbs().maxCoeff();
      for (Eigen::Index i = 0; i < x.rows(); ++i) {
        if (std::abs(x(i, j)) <= noise) continue;
        entries.emplace_back(component.columns[static_cast<std::size_t>(i)],
                             wanted[static_cast<std::size_t>(j)], x(i, j));
      }
    }
  }
  return sparse_matrix(M.cols(), B.cols(), entries);
}

SparseMatrix orthonormalised(const SparseMatrix& basis) {
  SparseEntries entries;
  int column = 0;
  for (const Component& component : components(basis)) {
    if (component.entries.empty()) continue;
    const Matrix own(component.matrix());
    const Matrix Q = orthonormal_columns(own);
    for (Eigen::Index j = 0; j < Q.cols(); ++j, ++column) {
      for (Eigen::Index i = 0; i < Q.rows(); ++i) {
        if (std::abs(Q(i, j)) < 1e-16) continue;
        entries.emplace_back(component.rows[static_cast<std::size_t>(i)], column, Q(i, j));
      }
    }
  }
  return sparse_matrix(basis.rows(), column, entries);
}

bool ScaledFactors::factorise(const SparseMatrix& M) {
  const EvenScaling scale(M);
  rows_ = scale.rows;
  columns_ = scale.columns;
  SparseMatrix scaled = scale.apply(M);
  scaled.makeCompressed();
  norm_ = 0.0;
  for (int j = 0; j < scaled.outerSize(); ++j) {
    double sum = 0.0;
    for (SparseMatrix::InnerIterator it(scaled, j); it; ++it) sum += std::abs(it.value());
    norm_ = std::max(norm_, sum);
  }
  return lu_.factorise(scaled);
}

void ScaledFactors::solve(const double* b, double* x, double* scratch) const {
  const int n = lu_.size();
  for (int i = 0; i < n; ++i) x[i] = rows_[i] * b[i];
  lu_.solve(x, x, scratch);
  for (int i = 0; i < n; ++i) x[i] *= columns_[i];
}

Vector ScaledFactors::solve_transposed(const Vector& b) const {
  return rows_.cwiseProduct(lu_.solve_transposed(columns_.cwiseProduct(b)));
}

/// Hager's estimate of ‖M̂⁻¹‖₁ (Higham, Accuracy and Stability of Numerical Algorithms, alg. 15.1).
double ScaledFactors::condition() const {
  const Eigen::Index n = lu_.size();
  if (n == 0) return 1.0;
  Vector x = Vector::Constant(n, 1.0 / static_cast<double>(n));
  Vector y(n), scratch(n);
  double estimate = 0.0;
  for (int k = 0; k < 5; ++k) {
    lu_.solve(x.data(), y.data(), scratch.data());
    const double size = y.cwiseAbs().sum();
    if (!std::isfinite(size)) return size;
    estimate = std::max(estimate, size);
    const Vector z =
        lu_.solve_transposed(y.unaryExpr([](double v) { return std::copysign(1.0, v); }));
    Eigen::Index largest = 0;
    const double gain = z.cwiseAbs().maxCoeff(&largest);
    if (gain <= z.dot(x)) break;
    x = Vector::Unit(n, largest);
  }
  for (Eigen::Index i = 0; i < n; ++i) {  // a vector that meets what the search may miss
    const double size =
        1.0 + static_cast<double>(i) / static_cast<double>(std::max<Eigen::Index>(1, n - 1));
    x[i] = i % 2 == 0 ? size : -size;
  }
  lu_.solve(x.data(), y.data(), scratch.data());
  estimate = std::max(estimate, 2.0 * y.cwiseAbs().sum() / (3.0 * static_cast<double>(n)));
  return norm_ * estimate;
}

}  // namespace portwave
