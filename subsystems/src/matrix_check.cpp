#include "matrix_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "portwave/subsystems/printable.hpp"

namespace portwave {
namespace {

struct Entry {
  int row = 0;
  int column = 0;
  double value = 0.0;
};

Entry largest_entry(const SparseMatrix& matrix) {
  Entry largest;
  for (int column = 0; column < matrix.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(matrix, column); it; ++it) {
      if (std::abs(it.value()) > std::abs(largest.value)) {
        largest = {static_cast<int>(it.row()), column, it.value()};
      }
    }
  }
  return largest;
}

}  // namespace

MatrixCheck::MatrixCheck(Issues& issues, std::string_view name, const SparseMatrix& matrix,
                         std::string_view where)
    : issues_(issues),
      name_(name),
      matrix_(matrix),
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
        return fail(
            fmt::format("{}({},{}) = {} is not finite", name_, it.row(), column, it.value()));
      }
    }
  }
  return true;
}

bool MatrixCheck::is_semidefinite(int states, const std::vector<std::string>& names,
                                  std::string_view more) {
  const auto found = find_negative_block(matrix_, kMatrixTolerance);
  if (!found) return true;
  return fail(fmt::format("{} is not positive semidefinite: {}{}", name_,
                          describe(*found, states, names), more));
}

bool MatrixCheck::is_mirrored(std::string_view property, double sign) {
  if (largest_defect(sign) <= kMatrixTolerance * std::abs(largest_entry(matrix_).value)) {
    return true;
  }
  const SparseMatrix transposed = matrix_.transpose();
  const SparseMatrix defect = matrix_ - sign * transposed;
  const Entry worst = largest_entry(defect);
  const int i = std::min(worst.row, worst.column);
  const int j = std::max(worst.row, worst.column);
  const std::string upper = fmt::format("{}({},{}) = {}", name_, i, j, matrix_.coeff(i, j));
  const std::string lower =
      i == j ? "" : fmt::format(", {}({},{}) = {}", name_, j, i, matrix_.coeff(j, i));
  return fail(fmt::format("{} is not {}: {}{}", name_, property, upper, lower));
}

/// The largest entry of matrix − sign·matrixᵀ, without making that.
double MatrixCheck::largest_defect(double sign) const {
  double largest = 0.0;
  for (int column = 0; column < matrix_.outerSize(); ++column) {
    for (SparseMatrix::InnerIterator it(matrix_, column); it; ++it) {
      const double mirrored = matrix_.coeff(column, it.row());
      largest = std::max(largest, std::abs(it.value() - sign * mirrored));
    }
  }
  return largest;
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
