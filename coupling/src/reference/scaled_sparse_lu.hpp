#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/structure.hpp"

namespace portwave {

/// Row and column scalings that bring the largest entry of every row and column near 1 (Ruiz).
struct Equilibration {
  Eigen::VectorXd rows, columns;

  explicit Equilibration(SparseMatrix matrix)
      : rows(Eigen::VectorXd::Ones(matrix.rows())), columns(Eigen::VectorXd::Ones(matrix.cols())) {
    for (int sweep = 0; sweep < 4; ++sweep) {
      Eigen::VectorXd row = Eigen::VectorXd::Zero(matrix.rows());
      Eigen::VectorXd column = Eigen::VectorXd::Zero(matrix.cols());
      for (int j = 0; j < matrix.outerSize(); ++j) {
        for (SparseMatrix::InnerIterator it(matrix, j); it; ++it) {
          row[it.row()] = std::max(row[it.row()], std::abs(it.value()));
          column[j] = std::max(column[j], std::abs(it.value()));
        }
      }
      const auto factor = [](double size) { return size > 0.0 ? 1.0 / std::sqrt(size) : 1.0; };
      row = row.unaryExpr(factor);
      column = column.unaryExpr(factor);
      matrix = row.asDiagonal() * matrix * column.asDiagonal();
      rows = rows.cwiseProduct(row);
      columns = columns.cwiseProduct(column);
    }
  }
};

/// Direct solver for matrices of mixed units: equilibrated, refined once, and the ordering kept
/// while the pattern stays the same.
class ScaledSparseLu {
 public:
  /// x with matrix · x = b. When the matrix is singular: empty, and why in `reason`.
  Eigen::VectorXd solve(const SparseMatrix& matrix, const Eigen::VectorXd& b, std::string& reason) {
    const Equilibration scaling(matrix);
    SparseMatrix scaled = scaling.rows.asDiagonal() * matrix * scaling.columns.asDiagonal();
    scaled.makeCompressed();
    if (!has_pattern_of(scaled)) {
      outer_.assign(scaled.outerIndexPtr(), scaled.outerIndexPtr() + scaled.outerSize() + 1);
      inner_.assign(scaled.innerIndexPtr(), scaled.innerIndexPtr() + scaled.nonZeros());
      lu_.analyse(scaled);
    }
    if (!lu_.factorise(scaled)) {
      reason = "the coupled step is singular: " + lu_.error();
      return {};
    }
    const Eigen::VectorXd scaled_b = scaling.rows.cwiseProduct(b);
    Eigen::VectorXd y = lu_.solve(scaled_b);
    const Eigen::VectorXd reached = scaled * y;
    y += lu_.solve(Eigen::VectorXd(scaled_b - reached));
    if (!y.allFinite()) {
      reason = "the coupled step is singular to working precision";
      return {};
    }
    return scaling.columns.cwiseProduct(y);
  }

 private:
  bool has_pattern_of(const SparseMatrix& matrix) const {
    return std::equal(outer_.begin(), outer_.end(), matrix.outerIndexPtr(),
                      matrix.outerIndexPtr() + matrix.outerSize() + 1) &&
           std::equal(inner_.begin(), inner_.end(), matrix.innerIndexPtr(),
                      matrix.innerIndexPtr() + matrix.nonZeros());
  }

  SparseLu lu_;
  std::vector<int> outer_;
  std::vector<int> inner_;
};

}  // namespace portwave
