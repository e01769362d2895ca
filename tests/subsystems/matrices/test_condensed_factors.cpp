#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include <portwave/subsystems/matrices/condensed_factors.hpp>
#include <portwave/subsystems/matrices/symmetric_product.hpp>

#include "support/large_structures.hpp"

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

}  // namespace
}  // namespace portwave::test_condensed_factors
