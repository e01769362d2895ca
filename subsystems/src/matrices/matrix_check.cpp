#include "matrices/matrix_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <numeric>
#include <utility>

#include <Eigen/Dense>
#include <Eigen/SparseCholesky>
#include <fmt/format.h>

#include "portwave/subsystems/base/printable.hpp"
#include "portwave/subsystems/matrices/condensed_factors.hpp"
#include "portwave/subsystems/matrices/decompositions.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_rank.hpp"

namespace portwave {
namespace {

constexpr int kLargestDenseBlock = 400;
constexpr int kLargeBlock = 2000;  // rows from which supernodes pay

constexpr double kEps = std::numeric_limits<double>::epsilon();
// Diagonal entries below this part of those that they meet are taken for round-off.
constexpr double kRoundOff = 64.0 * kEps;

/// One connected component, renumbered from 0.
struct Block {
  int size = 0;
  SparseEntries entries;
};

// The diagonal of a block, and beside it the size that each row is judged by: that of its own
// diagonal entry. An entry that is missing, or mere round-off of the diagonals and entries that it
// meets, counts as that round-off: in a semidefinite matrix the rest of its row is then nothing but
// round-off too.
struct Diagonal {
  Eigen::VectorXd value, size;
  Eigen::VectorXi entries;  // in the row

  explicit Diagonal(const Block& block)
      : value(Eigen::VectorXd::Zero(block.size)), entries(Eigen::VectorXi::Zero(block.size)) {
    for (const auto& entry : block.entries) {
      if (entry.row() == entry.col()) value[entry.row()] += entry.value();
      ++entries[entry.row()];
    }
    size = value.cwiseAbs();
    Eigen::VectorXd met = Eigen::VectorXd::Zero(block.size);
    for (const auto& entry : block.entries) {
      if (entry.row() == entry.col()) continue;
      met[entry.row()] = std::max({met[entry.row()], std::abs(entry.value()), size[entry.col()]});
    }
    for (int i = 0; i < block.size; ++i) {
      const double floor = kRoundOff * met[i];
      if (size[i] > floor) continue;
      size[i] = value[i] = std::max(floor, std::numeric_limits<double>::min());
    }
  }
};

// D M D with a diagonal of ±1: it has the signs of M's eigenvalues and does not depend on the units
// of the variables.
Block scaled(const Block& block, const Diagonal& diagonal) {
  const Eigen::VectorXd scale = diagonal.size.cwiseSqrt().cwiseInverse();
  Block result{block.size, {}};
  for (int i = 0; i < block.size; ++i)
    result.entries.emplace_back(i, i, std::copysign(1.0, diagonal.value[i]));
  for (const auto& entry : block.entries) {
    if (entry.row() == entry.col()) continue;
    result.entries.emplace_back(entry.row(), entry.col(),
                                entry.value() * scale[entry.row()] * scale[entry.col()]);
  }
  return result;
}

// Connected components of the pattern of non-zero values, each ascending.
std::vector<std::vector<int>> connected_sets(const SparseMatrix& M) {
  std::vector<std::vector<int>> result;
  std::vector<bool> seen(static_cast<std::size_t>(M.rows()), false);
  for (int start = 0; start < M.rows(); ++start) {
    if (seen[static_cast<std::size_t>(start)]) continue;
    seen[static_cast<std::size_t>(start)] = true;
    std::vector<int> component = {start};
    for (std::size_t next = 0; next < component.size(); ++next) {
      for (SparseMatrix::InnerIterator it(M, component[next]); it; ++it) {
        const auto row = static_cast<std::size_t>(it.row());
        if (it.value() == 0.0 || seen[row]) continue;
        seen[row] = true;
        component.push_back(static_cast<int>(it.row()));
      }
    }
    std::sort(component.begin(), component.end());
    result.push_back(std::move(component));
  }
  return result;
}

// `position` is scratch of M.rows() entries.
Block block_of(const SparseMatrix& M, const std::vector<int>& component,
               std::vector<int>& position) {
  for (std::size_t i = 0; i < component.size(); ++i) {
    position[static_cast<std::size_t>(component[i])] = static_cast<int>(i);
  }
  Block block{static_cast<int>(component.size()), {}};
  for (std::size_t j = 0; j < component.size(); ++j) {
    for (SparseMatrix::InnerIterator it(M, component[j]); it; ++it) {
      if (it.value() == 0.0) continue;
      block.entries.emplace_back(position[static_cast<std::size_t>(it.row())], static_cast<int>(j),
                                 it.value());
    }
  }
  return block;
}

double smallest_eigenvalue(const Block& block) {
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(block.size, block.size);
  for (const auto& entry : block.entries) dense(entry.row(), entry.col()) = entry.value();
  if (block.size == 1) return dense(0, 0);
  return symmetric_eigenvalues(dense).minCoeff();
}

// Every diagonal entry outweighs the rest of its column: sufficient for a symmetric matrix to be
// positive semidefinite (Gershgorin), and what networks of springs and dampers give.
bool is_diagonally_dominant(const SparseMatrix& M) {
  for (int column = 0; column < M.outerSize(); ++column) {
    double diagonal = 0.0;
    double others = 0.0;
    for (SparseMatrix::InnerIterator it(M, column); it; ++it) {
      if (it.row() == column) {
        diagonal += it.value();
      } else {
        others += std::abs(it.value());
      }
    }
    if (!(diagonal >= others)) return false;
  }
  return true;
}

/// Of a block whose entries are in order, as those of block_of: scaled as `scaled` does, and its diagonal raised.
bool shifted_is_definite(const Block& block, const Diagonal& diagonal, double shift) {
  const Eigen::VectorXd scale = diagonal.size.cwiseSqrt().cwiseInverse();
  SparseMatrix matrix(block.size, block.size);
  matrix.reserve(static_cast<Eigen::Index>(block.entries.size()) + block.size);
  auto entry = block.entries.begin();
  for (int j = 0; j < block.size; ++j) {
    matrix.startVec(j);
    const auto add_until = [&](int end) {
      for (; entry != block.entries.end() && entry->col() == j && entry->row() < end; ++entry) {
        if (entry->row() == j) continue;
        matrix.insertBack(entry->row(), j) = entry->value() * scale[entry->row()] * scale[j];
      }
    };
    add_until(j);
    matrix.insertBack(j, j) = std::copysign(1.0, diagonal.value[j]) + shift;
    add_until(block.size);
  }
  matrix.finalize();
  if (block.size >= kLargeBlock) {
    CondensedFactors factors;
    return factors.factorise(matrix, {});
  }
  const Eigen::SimplicialLDLT<SparseMatrix> ldlt(matrix);
  return ldlt.info() == Eigen::Success && ldlt.vectorD().minCoeff() > 0.0;
}

// The most negative pivot of a small block, as a part of the row's own diagonal; no less than
// −tolerance where the block is semidefinite up to its round-off.
//
// LDLᵀ of the block scaled to a unit diagonal, rows with the largest diagonals first: what a soft
// part does beside a stiff one that floats is left for last, and judged by its own size, where an
// eigenvalue of the whole would be nothing beside the stiff one's. The diagonal is raised by the
// round-off that the entries of its row may carry, so that stiff parts leave none of theirs in soft
// ones.
double smallest_pivot(const Block& unit, const Diagonal& diagonal, double tolerance) {
  const int n = unit.size;
  std::vector<int> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return diagonal.size[a] > diagonal.size[b]; });
  Eigen::VectorXi position(n);
  for (int i = 0; i < n; ++i) position[order[static_cast<std::size_t>(i)]] = i;
  Eigen::MatrixXd L = Eigen::MatrixXd::Zero(n, n);
  for (const auto& entry : unit.entries) {
    // No entry of a semidefinite matrix is above the mean of its two diagonals.
    if (!(std::abs(entry.value()) <= 2.0)) return -std::numeric_limits<double>::max();
    L(position[entry.row()], position[entry.col()]) += entry.value();
  }
  for (int i = 0; i < n; ++i) {
    L(i, i) += 4.0 * kEps * (8.0 + diagonal.entries[order[static_cast<std::size_t>(i)]]);
  }
  double smallest = std::numeric_limits<double>::max();
  for (int k = 0; k < n; ++k) {
    smallest = std::min(smallest, L(k, k));
    if (smallest < -tolerance) return smallest;
    // A pivot that is mere round-off says nothing of the rows below.
    const double pivot = L(k, k) < 0.1 * tolerance ? tolerance : L(k, k);
    const int rest = n - k - 1;
    if (rest == 0) break;
    const Eigen::VectorXd column = L.col(k).tail(rest);
    L.bottomRightCorner(rest, rest)
        .selfadjointView<Eigen::Lower>()
        .rankUpdate(column, -1.0 / pivot);
  }
  return smallest;
}

}  // namespace

std::optional<NegativeBlock> find_negative_block(const SparseMatrix& M, double relative_tolerance) {
  if (is_diagonally_dominant(M)) return std::nullopt;
  std::vector<int> position(static_cast<std::size_t>(M.rows()));
  std::optional<NegativeBlock> worst;
  double worst_pivot = -relative_tolerance;
  for (std::vector<int>& component : connected_sets(M)) {
    const Block block = block_of(M, component, position);
    if (block.entries.empty()) continue;
    const Diagonal diagonal(block);
    if (block.size > kLargestDenseBlock) {
      if (shifted_is_definite(block, diagonal, relative_tolerance)) continue;
      return NegativeBlock{std::move(component), std::nullopt};
    }
    const double smallest = smallest_pivot(scaled(block, diagonal), diagonal, relative_tolerance);
    if (smallest >= worst_pivot) continue;
    worst_pivot = smallest;
    worst = NegativeBlock{std::move(component), smallest_eigenvalue(block)};
    // Beside large eigenvalues a small one is computed as round-off.
    if (!(*worst->smallest_eigenvalue < 0.0)) worst->smallest_eigenvalue.reset();
  }
  return worst;
}

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
