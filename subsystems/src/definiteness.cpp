#include "definiteness.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Dense>
#include <Eigen/SparseCholesky>

namespace portwave {
namespace {

constexpr int kLargestDenseBlock = 400;

// Diagonal entries below this part of their block's largest entry are taken for round-off.
constexpr double kRoundOff = 64.0 * std::numeric_limits<double>::epsilon();

using Entries = std::vector<Eigen::Triplet<double>>;

/// One connected component, renumbered from 0.
struct Block {
  int size = 0;
  Entries entries;

  double largest_entry() const {
    double largest = 0.0;
    for (const auto& entry : entries) largest = std::max(largest, std::abs(entry.value()));
    return largest;
  }
};

// D M D with a diagonal of ±1: it has the signs of M's eigenvalues and does not depend on the units
// of the variables. Diagonal entries that are mere round-off, or missing, count as that round-off.
Block scaled(const Block& block) {
  const double floor = kRoundOff * block.largest_entry();
  Eigen::VectorXd diagonal = Eigen::VectorXd::Zero(block.size);
  for (const auto& entry : block.entries) {
    if (entry.row() == entry.col()) diagonal[entry.row()] = entry.value();
  }
  for (double& value : diagonal) {
    if (std::abs(value) < floor) value = floor;
  }
  const Eigen::VectorXd scale = diagonal.cwiseAbs().cwiseSqrt().cwiseInverse();
  Block result{block.size, {}};
  for (int i = 0; i < block.size; ++i)
    result.entries.emplace_back(i, i, std::copysign(1.0, diagonal[i]));
  for (const auto& entry : block.entries) {
    if (entry.row() == entry.col()) continue;
    result.entries.emplace_back(entry.row(), entry.col(),
                                entry.value() * scale[entry.row()] * scale[entry.col()]);
  }
  return result;
}

// Connected components of the pattern of non-zero values, each ascending.
std::vector<std::vector<int>> components(const SparseMatrix& M) {
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

// `place` is scratch of M.rows() entries.
Block block_of(const SparseMatrix& M, const std::vector<int>& component, std::vector<int>& place) {
  for (std::size_t i = 0; i < component.size(); ++i) {
    place[static_cast<std::size_t>(component[i])] = static_cast<int>(i);
  }
  Block block{static_cast<int>(component.size()), {}};
  for (std::size_t j = 0; j < component.size(); ++j) {
    for (SparseMatrix::InnerIterator it(M, component[j]); it; ++it) {
      if (it.value() == 0.0) continue;
      block.entries.emplace_back(place[static_cast<std::size_t>(it.row())], static_cast<int>(j),
                                 it.value());
    }
  }
  return block;
}

double smallest_eigenvalue(const Block& block) {
  Eigen::MatrixXd dense = Eigen::MatrixXd::Zero(block.size, block.size);
  for (const auto& entry : block.entries) dense(entry.row(), entry.col()) = entry.value();
  if (block.size == 1) return dense(0, 0);
  return Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(dense, Eigen::EigenvaluesOnly)
      .eigenvalues()
      .minCoeff();
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

bool shifted_is_definite(const Block& block, double shift) {
  Entries entries = block.entries;
  for (int i = 0; i < block.size; ++i) entries.emplace_back(i, i, shift);
  SparseMatrix matrix(block.size, block.size);
  matrix.setFromTriplets(entries.begin(), entries.end());
  const Eigen::SimplicialLDLT<SparseMatrix> ldlt(matrix);
  return ldlt.info() == Eigen::Success && ldlt.vectorD().minCoeff() > 0.0;
}

}  // namespace

std::optional<NegativeBlock> find_negative_block(const SparseMatrix& M, double relative_tolerance) {
  if (is_diagonally_dominant(M)) return std::nullopt;
  std::vector<int> place(static_cast<std::size_t>(M.rows()));
  std::optional<NegativeBlock> worst;
  double worst_scaled = -relative_tolerance;
  for (std::vector<int>& component : components(M)) {
    const Block block = block_of(M, component, place);
    if (block.entries.empty()) continue;
    const Block unit = scaled(block);
    if (block.size > kLargestDenseBlock) {
      if (shifted_is_definite(unit, relative_tolerance)) continue;
      return NegativeBlock{std::move(component), std::nullopt};
    }
    const double smallest = smallest_eigenvalue(unit);
    if (smallest >= worst_scaled) continue;
    worst_scaled = smallest;
    worst = NegativeBlock{std::move(component), smallest_eigenvalue(block)};
  }
  return worst;
}

}  // namespace portwave
