#include "matrices/matrix_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/matrices/sparse_rank.hpp"
#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/base/shown_number.hpp"

namespace portwave {
namespace {

/// |M| + |M|ᵀ
SparseMatrix pair_sizes(const SparseMatrix& M) {
  const SparseMatrix size = M.cwiseAbs();
  return size + SparseMatrix(size.transpose());
}

/// A pair of entries that should mirror each other.
struct Pair {
  int row = 0;
  int column = 0;
  double excess = 0.0;  ///< of the defect over what is allowed, relative to it
};

}  // namespace

MatrixCheck::MatrixCheck(Issues& issues, std::string_view name, const SparseMatrix& matrix,
                         std::string_view where, const SparseMatrix* terms)
    : issues_(issues),
      name_(name),
      matrix_(matrix),
      terms_(terms),
      where_(where.empty() ? fmt::format("/{}", name) : std::string(where)) {}

bool MatrixCheck::has_shape(int rows, int columns) {
  if (matrix_.rows() == rows && matrix_.cols() == columns) return true;
  return fail(
      fmt::format("must be {}×{}, got {}×{}", rows, columns, matrix_.rows(), matrix_.cols()));
}

bool MatrixCheck::is_finite() {
  for (int column = 0; column < matrix_.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(matrix_, column); it; ++it) {
      if (!std::isfinite(it.value())) {
        return fail(fmt::format("{}({},{}) = {} is not finite", name_, it.row(), column,
                                shown_number(it.value())));
      }
    }
  }
  return true;
}

bool MatrixCheck::is_semidefinite(int states, const std::vector<std::string>& names,
                                  std::string_view more, double tolerance) {
  const auto found = find_negative_block(matrix_, tolerance);
  if (!found) return true;
  return fail(fmt::format("{} is not positive semidefinite: {}{}", name_,
                          describe(*found, states, names), more));
}

bool MatrixCheck::is_mirrored(std::string_view property, double sign) {
  if (is_mirrored_exactly(sign)) return true;
  // A defect is judged beside its own pair of entries, and beside the round-off that row and column
  // may have brought into it: with rows and columns scaled alike until all have a largest entry of
  // 1, which for a semidefinite matrix is scaling by its diagonal.
  const SparseMatrix sizes = terms_ == nullptr ? pair_sizes(matrix_) : pair_sizes(*terms_);
  const EvenScaling even(pair_sizes(matrix_));
  Eigen::VectorXd entries = Eigen::VectorXd::Zero(matrix_.rows());
  for (int column = 0; column < sizes.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(sizes, column); it; ++it) entries[it.row()] += 1.0;
  }
  Pair worst;
  for (int column = 0; column < matrix_.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(matrix_, column); it; ++it) {
      const auto row = static_cast<int>(it.row());
      const double defect = std::abs(it.value() - sign * matrix_.coeff(column, row));
      const double pair = std::max(std::abs(it.value()), std::abs(matrix_.coeff(column, row)));
      const double noise = 4.0 * std::numeric_limits<double>::epsilon() *
                           (8.0 + std::max(entries[row], entries[column]));
      double allowed = kMatrixTolerance * pair + noise / even.rows[row] / even.rows[column];
      if (terms_ != nullptr) allowed += kTermTolerance * sizes.coeff(row, column);
      if (defect <= allowed) continue;
      const double excess = allowed > 0.0 ? defect / allowed : std::numeric_limits<double>::max();
      if (excess > worst.excess) worst = {row, column, excess};
    }
  }
  if (worst.excess == 0.0) return true;
  const int i = std::min(worst.row, worst.column);
  const int j = std::max(worst.row, worst.column);
  const std::string upper = fmt::format("{}({},{}) = {}", name_, i, j, matrix_.coeff(i, j));
  const std::string lower =
      i == j ? "" : fmt::format(", {}({},{}) = {}", name_, j, i, matrix_.coeff(j, i));
  return fail(fmt::format("{} is not {}: {}{}", name_, property, upper, lower));
}

/// Whether all pairs are equal to 1e-12 of their own size, as they are where nobody computed them.
bool MatrixCheck::is_mirrored_exactly(double sign) {
  for (int column = 0; column < matrix_.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(matrix_, column); it; ++it) {
      const double mirrored = sign * matrix_.coeff(column, it.row());
      const double size = std::max(std::abs(it.value()), std::abs(mirrored));
      if (std::abs(it.value() - mirrored) > kMatrixTolerance * size) return false;
    }
  }
  return true;
}

bool MatrixCheck::fail(std::string what) {
  issues_.push_back({where_, std::move(what)});
  return false;
}

std::string name_of(int index, int states, const std::vector<std::string>& names) {
  if (static_cast<std::size_t>(index) < names.size()) {
    return printable(names[static_cast<std::size_t>(index)]);
  }
  return index < states ? fmt::format("state {}", index) : fmt::format("input {}", index - states);
}

std::string list_names(const std::vector<int>& indices, int states,
                       const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::string text;
  for (std::size_t i = 0; i < indices.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += name_of(indices[i], states, names);
  }
  if (indices.size() > kShown) text += fmt::format(" and {} more", indices.size() - kShown);
  return text;
}

std::string describe(const NegativeBlock& found, int states,
                     const std::vector<std::string>& names) {
  const std::string value = found.smallest_eigenvalue ? fmt::format("smallest eigenvalue {:.6g}",
                                                                    *found.smallest_eigenvalue)
                                                      : std::string("a negative eigenvalue");
  return fmt::format("{} (block of {})", value, list_names(found.indices, states, names));
}

}  // namespace portwave
