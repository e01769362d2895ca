#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include <Eigen/LU>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave::elimination {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using Triplet = Eigen::Triplet<double>;
using Triplets = SparseEntries;

inline SparseMatrix matrix(Eigen::Index rows, Eigen::Index columns, const Triplets& entries) {
  SparseMatrix out(rows, columns);
  out.setFromTriplets(entries.begin(), entries.end());
  out.prune([](Eigen::Index, Eigen::Index, double value) { return value != 0.0; });
  return out;
}

/// Without what is round-off beside the sum of the terms it was made of.
inline SparseMatrix without_rounding(const SparseMatrix& value, const SparseMatrix& terms) {
  Triplets entries;
  for (int j = 0; j < value.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(value, j); it; ++it) {
      if (std::abs(it.value()) > 1e-11 * terms.coeff(it.row(), j)) {
        entries.emplace_back(static_cast<int>(it.row()), j, it.value());
      }
    }
  }
  return matrix(value.rows(), value.cols(), entries);
}

inline bool is_identity(const SparseMatrix& m) {
  double diagonal = 0.0;
  for (int j = 0; j < m.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(m, j); it; ++it) {
      if (it.row() == j ? it.value() != 1.0 : it.value() != 0.0) return false;
      if (it.row() == j) diagonal += 1.0;
    }
  }
  return diagonal == static_cast<double>(m.rows());
}

inline SparseMatrix clean_product(const SparseMatrix& a, const SparseMatrix& b) {
  return without_rounding(a * b, a.cwiseAbs() * b.cwiseAbs());
}

/// Columns that equations tie to one another, and those equations.
struct Cluster {
  std::vector<int> rows, columns;
};

/// The connected components of a pattern; rows without entries are components of their own.
inline std::vector<Cluster> clusters_of(const SparseMatrix& G) {
  std::vector<int> parent(at(static_cast<int>(G.rows() + G.cols())));
  std::iota(parent.begin(), parent.end(), 0);
  const auto root = [&parent](int i) {
    while (parent[at(i)] != i) i = parent[at(i)] = parent[at(parent[at(i)])];
    return i;
  };
  const auto rows = static_cast<int>(G.rows());
  for (int j = 0; j < G.outerSize(); ++j) {
    for (SparseMatrix::InnerIterator it(G, j); it; ++it) {
      parent[at(root(static_cast<int>(it.row())))] = root(rows + j);
    }
  }
  std::vector<int> number(parent.size(), -1);
  std::vector<Cluster> out;
  for (int i = 0; i < static_cast<int>(parent.size()); ++i) {
    int& own = number[at(root(i))];
    if (own < 0) {
      own = static_cast<int>(out.size());
      out.emplace_back();
    }
    (i < rows ? out[at(own)].rows : out[at(own)].columns).push_back(i < rows ? i : i - rows);
  }
  return out;
}

/// A matrix G, decomposed cluster by cluster.
class Elimination {
 public:
  explicit Elimination(const SparseMatrix& G) : G_(G), clusters_(clusters_of(G)) {
    place_.resize(at(static_cast<int>(std::max(G.rows(), G.cols()))));
    for (const Cluster& cluster : clusters_) decompose(cluster);
    kernel = matrix(G.cols(), kernel_size_, kernel_entries_);
    left_kernel = matrix(G.rows(), left_size_, left_entries_);
  }

  /// False: some cluster is too large to be decomposed where it is singular.
  bool is_decomposed() const { return is_decomposed_; }
  bool is_regular() const { return is_decomposed_ && kernel_size_ == 0 && left_size_ == 0; }
  /// G · kernel = 0, left_kernelᵀ · G = 0, by columns.
  SparseMatrix kernel, left_kernel;

  /// −G⁻¹ M; where G is singular a solution for those combinations of columns for which there is one.
  /// Empty where numbers overflow. Precondition: is_decomposed.
  std::optional<SparseMatrix> solve(const SparseMatrix& M) const {
    const SparseMatrix by_row = SparseMatrix(M.transpose());
    Triplets entries;
    for (std::size_t k = 0; k < clusters_.size(); ++k) {
      const Cluster& cluster = clusters_[k];
      std::vector<int> wanted;  // columns of M that this cluster sees
      for (const int row : cluster.rows) {
        for (SparseMatrix::InnerIterator it(by_row, row); it; ++it) {
          wanted.push_back(static_cast<int>(it.row()));
        }
      }
      std::ranges::sort(wanted);
      wanted.erase(std::unique(wanted.begin(), wanted.end()),
                   wanted.end());  // not ranges::unique: Clang 14
      const auto rows = static_cast<Eigen::Index>(cluster.rows.size());
      const auto columns = static_cast<Eigen::Index>(cluster.columns.size());
      if (rows == 0 || columns == 0) continue;
      MatrixXd right = MatrixXd::Zero(rows, static_cast<Eigen::Index>(wanted.size()));
      for (Eigen::Index r = 0; r < rows; ++r) {
        for (SparseMatrix::InnerIterator it(by_row, cluster.rows[at(static_cast<int>(r))]); it;
             ++it) {
          const auto column =
              std::ranges::lower_bound(wanted, static_cast<int>(it.row())) - wanted.begin();
          right(r, column) -= it.value();
        }
      }
      if (!solve(solvers_[k], right)) return std::nullopt;
      for (Eigen::Index j = 0; j < right.cols(); ++j) {
        for (Eigen::Index i = 0; i < columns; ++i) {
          entries.emplace_back(cluster.columns[at(static_cast<int>(i))],
                               wanted[at(static_cast<int>(j))], right(i, j));
        }
      }
    }
    return matrix(G_.cols(), M.cols(), entries);
  }

 private:
  struct Solver {
    VectorXd rows, columns;  // scales
    std::optional<Eigen::FullPivLU<MatrixXd>> dense;
    std::optional<SparseLu> sparse;
  };

  static bool solve(const Solver& own, MatrixXd& right) {
    right = own.rows.asDiagonal() * right;
    right = own.dense ? own.dense->solve(right).eval() : own.sparse->solve(right).eval();
    right = own.columns.asDiagonal() * right;
    return right.allFinite();
  }

  /// Rows and columns are scaled to entries near 1 first: efforts and flows have units.
  void decompose(const Cluster& cluster) {
    Solver& own = solvers_.emplace_back();
    const int rows = static_cast<int>(cluster.rows.size());
    const int columns = static_cast<int>(cluster.columns.size());
    for (int i = 0; rows == 0 && i < columns; ++i) {
      kernel_entries_.emplace_back(cluster.columns[at(i)], kernel_size_++, 1.0);
    }
    for (int i = 0; columns == 0 && i < rows; ++i) {
      left_entries_.emplace_back(cluster.rows[at(i)], left_size_++, 1.0);
    }
    if (rows == 0 || columns == 0) return;
    for (int i = 0; i < rows; ++i) place_[at(cluster.rows[at(i)])] = i;
    Triplets entries;
    for (int j = 0; j < columns; ++j) {
      for (SparseMatrix::InnerIterator it(G_, cluster.columns[at(j)]); it; ++it) {
        entries.emplace_back(place_[at(static_cast<int>(it.row()))], j, it.value());
      }
    }
    own.rows = VectorXd::Ones(rows);
    own.columns = VectorXd::Ones(columns);
    for (int sweep = 0; sweep < 4; ++sweep) {
      VectorXd row = VectorXd::Zero(rows), column = VectorXd::Zero(columns);
      for (const Triplet& entry : entries) {
        const double scaled =
            std::abs(own.rows[entry.row()] * entry.value() * own.columns[entry.col()]);
        row[entry.row()] = std::max(row[entry.row()], scaled);
        column[entry.col()] = std::max(column[entry.col()], scaled);
      }
      const auto factor = [](double size_of) {
        return size_of > 0.0 ? 1.0 / std::sqrt(size_of) : 1.0;
      };
      own.rows = own.rows.cwiseProduct(row.unaryExpr(factor));
      own.columns = own.columns.cwiseProduct(column.unaryExpr(factor));
    }
    for (Triplet& entry : entries) {
      entry = {entry.row(), entry.col(),
               own.rows[entry.row()] * entry.value() * own.columns[entry.col()]};
    }
    constexpr int kLargestDense = 300;
    if (std::max(rows, columns) > kLargestDense) {
      if (rows != columns) {
        is_decomposed_ = false;
        return;
      }
      SparseMatrix scaled(rows, columns);
      scaled.setFromTriplets(entries.begin(), entries.end());
      own.sparse.emplace();
      own.sparse->analyse(scaled);
      if (!own.sparse->factorise(scaled)) is_decomposed_ = false;
      return;
    }
    MatrixXd scaled = MatrixXd::Zero(rows, columns);
    for (const Triplet& entry : entries) scaled(entry.row(), entry.col()) += entry.value();
    own.dense.emplace(scaled);
    own.dense->setThreshold(kRank);
    if (rows == columns && own.dense->isInvertible()) return;
    Eigen::FullPivLU<MatrixXd> left(scaled.transpose());
    left.setThreshold(kRank);
    if (left.rank() != own.dense->rank()) {
      is_decomposed_ = false;
      return;
    }
    // Where there is none, kernel() gives a column of zeros.
    if (own.dense->dimensionOfKernel() > 0) {
      const MatrixXd own_kernel = own.columns.asDiagonal() * own.dense->kernel();
      for (Eigen::Index k = 0; k < own_kernel.cols(); ++k, ++kernel_size_) {
        for (int i = 0; i < columns; ++i) {
          kernel_entries_.emplace_back(cluster.columns[at(i)], kernel_size_, own_kernel(i, k));
        }
      }
    }
    if (left.dimensionOfKernel() > 0) {
      const MatrixXd own_kernel = own.rows.asDiagonal() * left.kernel();
      for (Eigen::Index k = 0; k < own_kernel.cols(); ++k, ++left_size_) {
        for (int i = 0; i < rows; ++i) {
          left_entries_.emplace_back(cluster.rows[at(i)], left_size_, own_kernel(i, k));
        }
      }
    }
  }

  static constexpr double kRank = 1e-12;

  const SparseMatrix& G_;
  std::vector<Cluster> clusters_;
  std::vector<Solver> solvers_;
  std::vector<int> place_;
  Triplets kernel_entries_, left_entries_;
  int kernel_size_ = 0, left_size_ = 0;
  bool is_decomposed_ = true;
};

}  // namespace portwave::elimination
