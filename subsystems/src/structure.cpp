#include "portwave/subsystems/structure.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "definiteness.hpp"
#include "portwave/subsystems/printable.hpp"

namespace portwave {
namespace {

constexpr double kTolerance = 1e-12;

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

/// One named matrix of a part; the checks append what they find and return whether it passed.
class MatrixCheck {
 public:
  MatrixCheck(Issues& issues, std::string_view name, const SparseMatrix& matrix)
      : issues_(issues), name_(name), matrix_(matrix) {}

  bool has_shape(int rows, int columns) {
    if (matrix_.rows() == rows && matrix_.cols() == columns) return true;
    return fail(
        fmt::format("must be {}×{}, got {}×{}", rows, columns, matrix_.rows(), matrix_.cols()));
  }

  bool is_finite() {
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

  bool is_skew() { return is_mirrored("skew", -1.0); }
  bool is_symmetric() { return is_mirrored("symmetric", 1.0); }

 private:
  bool is_mirrored(std::string_view property, double sign) {
    if (largest_defect(sign) <= kTolerance * std::abs(largest_entry(matrix_).value)) return true;
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
  double largest_defect(double sign) const {
    double largest = 0.0;
    for (int column = 0; column < matrix_.outerSize(); ++column) {
      for (SparseMatrix::InnerIterator it(matrix_, column); it; ++it) {
        const double mirrored = matrix_.coeff(column, it.row());
        largest = std::max(largest, std::abs(it.value() - sign * mirrored));
      }
    }
    return largest;
  }

  bool fail(std::string what) {
    issues_.push_back({fmt::format("/{}", name_), std::move(what)});
    return false;
  }

  Issues& issues_;
  std::string_view name_;
  const SparseMatrix& matrix_;
};

std::string name_of(int index, int states, const std::vector<std::string>& names) {
  if (static_cast<std::size_t>(index) < names.size()) {
    return printable(names[static_cast<std::size_t>(index)]);
  }
  return index < states ? fmt::format("state {}", index) : fmt::format("input {}", index - states);
}

// "block of v1, coupling", shortened when the block is long.
std::string describe_block(const std::vector<int>& block, int states,
                           const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 4;
  std::string text = "block of ";
  for (std::size_t i = 0; i < block.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += name_of(block[i], states, names);
  }
  if (block.size() > kShown) text += fmt::format(" and {} more", block.size() - kShown);
  return text;
}

std::string describe(const NegativeBlock& found, int states,
                     const std::vector<std::string>& names) {
  const std::string value = found.smallest_eigenvalue ? fmt::format("smallest eigenvalue {:.6g}",
                                                                    *found.smallest_eigenvalue)
                                                      : std::string("a negative eigenvalue");
  return fmt::format("{} ({})", value, describe_block(found.indices, states, names));
}

void add_block(std::vector<Eigen::Triplet<double>>& entries, const SparseMatrix& block, int row,
               int column) {
  for (int k = 0; k < block.outerSize(); ++k) {
    for (SparseMatrix::InnerIterator it(block, k); it; ++it) {
      entries.emplace_back(row + static_cast<int>(it.row()), column + static_cast<int>(it.col()),
                           it.value());
    }
  }
}

}  // namespace

Structure Structure::zero(int states, int inputs) {
  return {SparseMatrix(states, states), SparseMatrix(states, states), SparseMatrix(states, inputs),
          SparseMatrix(states, inputs), SparseMatrix(inputs, inputs), SparseMatrix(inputs, inputs)};
}

SparseMatrix dissipation_matrix(const Structure& structure) {
  const int n = structure.states();
  const int m = structure.inputs();
  std::vector<Eigen::Triplet<double>> entries;
  add_block(entries, structure.R, 0, 0);
  add_block(entries, structure.P, 0, n);
  add_block(entries, SparseMatrix(structure.P.transpose()), n, 0);
  add_block(entries, structure.S, n, n);
  SparseMatrix matrix(n + m, n + m);
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

bool is_positive_semidefinite(const SparseMatrix& M, double relative_tolerance) {
  return !find_negative_block(M, relative_tolerance).has_value();
}

Issues validate(const Structure& structure, int states, int inputs, StructureRules rules) {
  Issues issues;
  const auto check = [&issues](std::string_view name, const SparseMatrix& matrix) {
    return MatrixCheck(issues, name, matrix);
  };
  const auto usable = [](MatrixCheck matrix, int rows, int columns) {
    return matrix.has_shape(rows, columns) && matrix.is_finite();
  };
  MatrixCheck J = check("J", structure.J);
  MatrixCheck R = check("R", structure.R);
  MatrixCheck S = check("S", structure.S);
  MatrixCheck N = check("N", structure.N);
  if (usable(J, states, states)) J.is_skew();
  const bool R_is_sound = usable(R, states, states) && R.is_symmetric();
  usable(check("G", structure.G), states, inputs);
  const bool P_is_sound = usable(check("P", structure.P), states, inputs);
  const bool S_is_sound = usable(S, inputs, inputs) && S.is_symmetric();
  if (usable(N, inputs, inputs)) N.is_skew();
  if (rules.allow_active || !R_is_sound || !P_is_sound || !S_is_sound) return issues;

  if (const auto found = find_negative_block(dissipation_matrix(structure), kTolerance)) {
    issues.push_back({"/R", fmt::format("[R P; P^T S] is not positive semidefinite: {}; a part "
                                        "that may create energy must say allow_active",
                                        describe(*found, states, rules.names))});
  }
  return issues;
}

Issues validate_storage(const SparseMatrix& Q, int states, const std::vector<std::string>& names) {
  Issues issues;
  MatrixCheck check(issues, "Q", Q);
  if (!check.has_shape(states, states) || !check.is_finite() || !check.is_symmetric()) {
    return issues;
  }
  if (const auto found = find_negative_block(Q, kTolerance)) {
    issues.push_back(
        {"/Q", fmt::format("Q is not positive semidefinite: {}", describe(*found, states, names))});
  }
  return issues;
}

}  // namespace portwave
