#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "matrices/quadruple.hpp"
#include "portwave/subsystems/matrices/sparse_entries.hpp"
#include "portwave/subsystems/matrices/sparse_factors.hpp"

namespace portwave::test_refined_solves {
namespace {

TEST(LongDifference, KeepsWhatADoubleRoundsAway) {
  // 1 − (1 + ε)(1 − ε) = ε²
  constexpr double kEps = 0x1p-30;
  LongDifference own(1.0);
  own.subtract(1.0 + kEps, 1.0 - kEps);
  EXPECT_EQ(own.value(), kEps * kEps);
  EXPECT_EQ(1.0 - (1.0 + kEps) * (1.0 - kEps), 0.0) << "control: rounded";
  // Large terms that cancel leave the small one among them.
  LongDifference sum(3.0);
  for (const double a : {1e17, 1.0, -1e17, 0.5}) sum.subtract(a, 1.0);
  EXPECT_EQ(sum.value(), 1.5);
}

TEST(LongDifference, AgreesWithQuadruplePrecision) {
  double x = 0.37;
  for (int n = 0; n < 200; ++n) {
    LongDifference own(x);
    Quadruple exact = x;
    for (int i = 0; i < 50; ++i) {
      const double a = std::sin(13.0 * i + n) * std::ldexp(1.0, (7 * i) % 40);
      x = std::cos(5.0 * i + 3.0 * n);
      own.subtract(a, x);
      exact -= static_cast<Quadruple>(a) * x;
    }
    const double value = static_cast<double>(exact);
    EXPECT_NEAR(own.value(), value, 1e-15 * std::abs(value)) << n;
  }
}

/// A chain of stiff springs, softly held: conditioned like 1/hold.
SparseMatrix chain(int n, double hold) {
  SparseEntries entries;
  for (int i = 0; i < n; ++i) {
    entries.emplace_back(i, i, (i == 0 || i == n - 1 ? 1.0 : 2.0) + hold);
    if (i > 0) entries.emplace_back(i, i - 1, -1.0);
    if (i + 1 < n) entries.emplace_back(i, i + 1, -1.0 + 0.25 * hold);
  }
  return sparse_matrix(n, n, entries);
}

TEST(RefinedSolves, AreAsExactAsTheirRounding) {
  constexpr int kSize = 40;
  const SparseMatrix matrix = chain(kSize, 0x1p-30);
  SparseFactors factors;
  ASSERT_TRUE(factors.factorise(matrix));
  RefinedSolves solves(factors, matrix);
  Eigen::VectorXd wanted(kSize);
  for (int i = 0; i < kSize; ++i)
    wanted[i] = 1.0 + 0.125 * (i % 5);  // with products that are exact
  for (const bool transposed : {false, true}) {
    const Eigen::VectorXd b = transposed ? Eigen::VectorXd(matrix.transpose() * wanted)
                                         : Eigen::VectorXd(matrix * wanted);
    const Eigen::VectorXd own = transposed ? solves.solve_transposed(b) : solves.solve(b);
    EXPECT_LE((own - wanted).cwiseAbs().maxCoeff(), 4e-16) << transposed;
    Eigen::VectorXd plain(kSize), scratch(factors.scratch_size());
    if (transposed) {
      plain = factors.solve_transposed(b);
    } else {
      factors.solve(b.data(), plain.data(), scratch.data());
    }
    EXPECT_GT((plain - wanted).cwiseAbs().maxCoeff(), 1e-12) << "control: " << transposed;
  }
}

}  // namespace
}  // namespace portwave::test_refined_solves
