#include <cmath>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include <portwave/subsystems/matrices/condensed_factors.hpp>
#include <portwave/subsystems/matrices/symmetric_product.hpp>

#include "support/systems/large_structures.hpp"

namespace portwave::test_condensed_factors {
namespace {

SparseMatrix membrane(int nx, int ny) {
  const SecondOrderForm form = testing::membrane_form(nx, ny, 1, false, 0.0);
  return form.M + form.K;
}

std::vector<int> every(int step, int n) {
  std::vector<int> rows;
  for (int i = step - 1; i < n; i += step) rows.push_back(n - 1 - i);
  return rows;
}

// For boundaries of no row, of some and of all.
TEST(CondensedFactors, SolveByTheirSchurComplement) {
  const SparseMatrix A = membrane(17, 9);
  const auto n = static_cast<int>(A.rows());
  for (const int step : {n + 1, 50, 7, 2}) {
    CondensedFactors factors;
    const std::vector<int> boundary = every(step, n);
    ASSERT_TRUE(factors.factorise(A, boundary));
    ASSERT_EQ(factors.boundary(), static_cast<int>(boundary.size()));
    const Eigen::VectorXd b = Eigen::VectorXd::LinSpaced(n, -1.0, 2.0);
    Eigen::VectorXd w(n), scratch(static_cast<Eigen::Index>(factors.scratch_size()));
    for (int k = 0; k < n; ++k) w[k] = b[factors.order()[static_cast<std::size_t>(k)]];
    factors.reduce(w.data(), scratch.data());
    const Eigen::Index outer = factors.boundary();
    if (outer > 0) w.tail(outer) = factors.schur().llt().solve(Eigen::VectorXd(w.tail(outer)));
    factors.expand(w.data(), scratch.data());
    Eigen::VectorXd x(n);
    for (int k = 0; k < n; ++k) x[factors.order()[static_cast<std::size_t>(k)]] = w[k];
    EXPECT_LE((A * x - b).norm(), 1e-12 * b.norm()) << step;
    if (outer == 0) continue;
    const Eigen::MatrixXd inverse = Eigen::MatrixXd(A).inverse();  // that of Σ is a block of it
    Eigen::MatrixXd block(outer, outer);
    for (Eigen::Index i = 0; i < outer; ++i) {
      for (Eigen::Index j = 0; j < outer; ++j) {
        block(i, j) =
            inverse(boundary[static_cast<std::size_t>(i)], boundary[static_cast<std::size_t>(j)]);
      }
    }
    EXPECT_LE((block * factors.schur() - Eigen::MatrixXd::Identity(outer, outer)).norm(), 1e-9);
  }
}

// Of full matrices a factor is one block: columns and rows of all remainders.
TEST(CondensedFactors, LeaveTheSchurComplementOfFullMatrices) {
  for (const int inner : {1, 3, 8, 9, 31, 33, 70}) {
    for (const int outer : {1, 5, 8, 21}) {
      const int n = inner + outer;
      Eigen::MatrixXd root(n, n);
      for (int i = 0; i < n; ++i) {
        for (int j = 0; j < n; ++j) root(i, j) = std::sin(1.0 + 3.7 * i * i + 1.9 * j + i * j);
      }
      const Eigen::MatrixXd A = root * root.transpose() + Eigen::MatrixXd::Identity(n, n);
      std::vector<int> boundary;
      for (int i = inner; i < n; ++i) boundary.push_back(i);
      CondensedFactors factors;
      ASSERT_TRUE(factors.factorise(A.sparseView(), boundary));
      const Eigen::LDLT<Eigen::MatrixXd> within(A.topLeftCorner(inner, inner));
      const Eigen::MatrixXd taken =
          A.bottomLeftCorner(outer, inner) * within.solve(A.topRightCorner(inner, outer));
      const Eigen::MatrixXd rest = A.bottomRightCorner(outer, outer);
      EXPECT_LE((factors.schur() - (rest - taken)).norm(), 1e-12 * rest.norm())
          << inner << " " << outer;
      EXPECT_GT((factors.schur() - rest).norm(), 1e-6 * rest.norm());  // control
    }
  }
}

TEST(CondensedFactors, RefuseWhatIsNotPositiveDefinite) {
  SparseMatrix A = membrane(12, 8);
  CondensedFactors factors;
  EXPECT_TRUE(factors.factorise(A, {}));
  EXPECT_GT(factors.smallest_pivot(), 0.0);
  A.coeffRef(40, 40) = -1.0;
  EXPECT_FALSE(factors.factorise(A, {}));
}

// A floating membrane: K has the kernel 1, which the last pivot shows; it is skipped or refused.
TEST(CondensedFactors, SkipPivotsOfSemidefiniteMatrices) {
  SparseMatrix A(4, 4);
  for (int i = 0; i < 3; ++i) {  // an edge from 0 to each other one
    A.coeffRef(0, 0) += 1.0;
    A.coeffRef(i + 1, i + 1) += 1.0;
    A.coeffRef(0, i + 1) = A.coeffRef(i + 1, 0) = -1.0;
  }
  A.makeCompressed();
  CondensedFactors factors;
  EXPECT_FALSE(factors.factorise(A, {}));
  EXPECT_TRUE(factors.factorise(A, {}, CondensedFactors::Pivots::semidefinite));
}

// By counting: a strip of constant width takes work and memory in proportion to its length.
TEST(CondensedFactors, WorkOfAStripGrowsWithItsLength) {
  CondensedFactors one, four;
  ASSERT_TRUE(one.factorise(membrane(200, 5), {}));
  ASSERT_TRUE(four.factorise(membrane(800, 5), {}));
  EXPECT_LT(four.work(), 5.0 * one.work());
  EXPECT_LT(static_cast<double>(four.entries()), 5.0 * static_cast<double>(one.entries()));
  CondensedFactors square;  // control: one that grows both ways takes more
  ASSERT_TRUE(square.factorise(membrane(70, 70), {}));
  EXPECT_GT(square.work(), 8.0 * four.work() * 71 * 71 / (801 * 6) / 8.0);
}

TEST(SymmetricProduct, IsThatOfTheMatrixWithAndWithoutABlock) {
  const SparseMatrix A = membrane(6, 6);
  const auto n = static_cast<int>(A.rows());
  SparseMatrix full = A;
  const std::vector<int> block = every(2, n);
  for (const int i : block) {
    for (const int j : block) full.coeffRef(i, j) += 0.01 * (i + j);
  }
  full.makeCompressed();
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(n, 1.0, -3.0);
  for (const auto& rows : {std::vector<int>{}, block}) {
    const SymmetricProduct product(full, rows);
    EXPECT_EQ(product.scratch_size(), 2 * rows.size());
    Eigen::VectorXd y = x, scratch(static_cast<Eigen::Index>(product.scratch_size()));
    product.add(-2.0, x.data(), y.data(), scratch.data());
    EXPECT_LE((y - (x - 2.0 * (full * x))).norm(), 1e-12 * y.norm());
  }
}

/// A sum of full matrices over ranges of rows that overlap, and of a few rows that none of them has.
SparseMatrix sum_of_full_matrices(const std::vector<std::pair<int, int>>& ranges, int n) {
  SparseMatrix A(n, n);
  for (const auto& [first, last] : ranges) {
    for (int i = first; i < last; ++i) {
      for (int j = first; j < last; ++j) A.coeffRef(i, j) += 0.1 * (1 + (7 * i * j) % 11);
    }
  }
  for (int i = 0; i < n; ++i) A.coeffRef(i, i) += 50.0;
  for (int i = 1; i < n; i += 9) A.coeffRef(0, i) = A.coeffRef(i, 0) = 0.25;
  A.makeCompressed();
  return A;
}

// Rows of one pattern are panels, whatever their number modulo that of a kernel's columns and lanes; entries
// that meet in no full block stay entries.
TEST(SymmetricProduct, TakesSumsOfFullMatricesInPanels) {
  for (const int width : {5, 8, 23}) {
    const int n = 6 * width + 3;
    const SparseMatrix A = sum_of_full_matrices(
        {{0, 2 * width}, {width, 3 * width}, {3 * width, 5 * width}, {4 * width, 6 * width}}, n);
    std::vector<int> rows;
    for (int i = 0; i < n; ++i) rows.push_back((i * 5) % n);  // n is no multiple of 5
    const SymmetricProduct panels(A, rows), entries(A);
    EXPECT_GT(panels.scratch_size(), 2 * rows.size());
    EXPECT_LE(panels.scratch_size(), 4 * rows.size());
    EXPECT_EQ(entries.scratch_size(), 0U);
    Eigen::VectorXd x(n);
    for (int i = 0; i < n; ++i) x[i] = std::sin(3.0 * i) + (i == 2 ? 1e3 : 0.0);
    Eigen::VectorXd y = x, scratch(static_cast<Eigen::Index>(panels.scratch_size()));
    panels.add(-2.0, x.data(), y.data(), scratch.data());
    const Eigen::VectorXd wanted = x - 2.0 * (A * x);
    EXPECT_LE((y - wanted).cwiseAbs().maxCoeff(), 1e-14 * wanted.cwiseAbs().maxCoeff()) << width;
  }
}

// By columns of L and by Σ, for factors whose blocks are of any width and height.
TEST(CondensedFactors, PassesAreThoseOfTheirMatrices) {
  const SparseMatrix A = membrane(23, 19);
  const auto n = static_cast<int>(A.rows());
  const std::vector<int> boundary = every(11, n);
  CondensedFactors factors;
  ASSERT_TRUE(factors.factorise(A, boundary));
  const Eigen::Index outer = factors.boundary();
  const Eigen::VectorXd x = Eigen::VectorXd::LinSpaced(outer, -2.0, 1.0);
  Eigen::VectorXd y(outer);
  factors.multiply_schur(x.data(), y.data());
  EXPECT_LE((y - factors.schur() * x).norm(), 1e-14 * y.norm());
  // The two passes are transposes: ⟨reduce(u), v⟩ = ⟨u, expand(v)⟩ on the interior, with nothing on the boundary.
  Eigen::VectorXd u = Eigen::VectorXd::LinSpaced(n, 1.0, 3.0), v = u.reverse();
  u.tail(outer).setZero();
  v.tail(outer).setZero();
  Eigen::VectorXd reduced = u, expanded = v,
                  scratch(static_cast<Eigen::Index>(factors.scratch_size()));
  factors.reduce(reduced.data(), scratch.data());
  factors.expand(expanded.data(), scratch.data());
  const Eigen::Index inner = factors.interior();
  EXPECT_NEAR(reduced.head(inner).dot(v.head(inner)), u.head(inner).dot(expanded.head(inner)),
              1e-12 * std::abs(reduced.head(inner).dot(v.head(inner))));
}

}  // namespace
}  // namespace portwave::test_condensed_factors
