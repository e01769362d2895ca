#include <cmath>
#include <limits>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/matrices/unpivoted_lu.hpp"

namespace portwave::test_unpivoted_lu {
namespace {

constexpr unsigned kSeed = 11;

/// A sparse matrix whose symmetric part is positive semidefinite, as I − PD is, and strongly skew.
Eigen::MatrixXd monotone(std::mt19937_64& random, int n) {
  std::normal_distribution<double> normal;
  std::uniform_int_distribution<int> place(0, n - 1);
  Eigen::MatrixXd A = 0.3 * Eigen::MatrixXd::Identity(n, n);
  for (int k = 0; k < 2 * n; ++k) {
    const int i = place(random), j = place(random);
    const double skew = 3.0 * normal(random), lossy = 0.2 * normal(random);
    A(i, j) += skew;
    A(j, i) -= skew;
    A(i, i) += lossy * lossy;
    A(j, j) += lossy * lossy;
    A(i, j) += lossy * lossy;
    A(j, i) += lossy * lossy;
  }
  return A;
}

struct Filled {
  explicit Filled(const Eigen::MatrixXd& given) : A(given) {
    std::vector<UnpivotedLu::Place> places;
    for (int i = 0; i < A.rows(); ++i) {
      for (int j = 0; j < A.cols(); ++j) {
        if (A(i, j) != 0.0) places.emplace_back(i, j);
      }
    }
    slots.resize(places.size());
    lu.analyse(static_cast<int>(A.rows()), places, slots);
    fill(A);
  }
  void fill(const Eigen::MatrixXd& values) {
    std::size_t k = 0;
    for (int i = 0; i < A.rows(); ++i) {
      for (int j = 0; j < A.cols(); ++j) {
        if (A(i, j) != 0.0) lu.values()[static_cast<std::size_t>(slots[k++])] = values(i, j);
      }
    }
  }
  Eigen::VectorXd solve(const Eigen::VectorXd& b) {
    Eigen::VectorXd x = b, scratch(b.size());
    lu.solve(x.data(), x.data(), scratch.data());
    return x;
  }

  Eigen::MatrixXd A;
  std::vector<int> slots;
  UnpivotedLu lu;
};

TEST(UnpivotedLu, SolvesMonotoneMatricesAsDenseEliminationWithExchangesDoes) {
  std::mt19937_64 random(kSeed);
  for (const int n : {1, 2, 7, 40, 150}) {
    const Eigen::MatrixXd A = monotone(random, n);
    Filled filled(A);
    ASSERT_TRUE(filled.lu.factorise()) << n;
    const Eigen::VectorXd b = Eigen::VectorXd::Random(n), x = A.partialPivLu().solve(b);
    EXPECT_LE((filled.solve(b) - x).norm(), 1e-11 * x.norm()) << n;
    EXPECT_EQ(Eigen::MatrixXd(filled.lu.matrix()), A);
    // A dissection may have some more.
    const auto expected =
        static_cast<double>(expected_lu_entries(A.sparseView(), std::numeric_limits<int>::max()));
    EXPECT_GE(static_cast<double>(filled.lu.nonzeros()), expected);
    EXPECT_LE(static_cast<double>(filled.lu.nonzeros()), 1.15 * expected);
  }
}

TEST(UnpivotedLu, OtherNumbersNeedNoOtherPattern) {
  std::mt19937_64 random(kSeed);
  const Eigen::MatrixXd A = monotone(random, 60);
  Filled filled(A);
  ASSERT_TRUE(filled.lu.factorise());
  const Eigen::MatrixXd B = A + 0.5 * A.transpose();
  const Eigen::MatrixXd other = (A.array() != 0.0).select(B, 0.0);
  filled.fill(other);
  ASSERT_TRUE(filled.lu.factorise());
  const Eigen::VectorXd b = Eigen::VectorXd::Ones(60);
  EXPECT_LE((other * filled.solve(b) - b).norm(), 1e-11);
  // The same bits as without the matrix before.
  Filled anew(A);
  anew.fill(other);
  ASSERT_TRUE(anew.lu.factorise());
  EXPECT_EQ(anew.solve(b), filled.solve(b));
}

// An entry without one across the diagonal, as of a part with one port whose wave goes into a part with many.
TEST(UnpivotedLu, WhatIsZeroForWantOfAnEntryIsNoEntry) {
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  for (const int n : {3, 50, 3000}) {
    std::vector<UnpivotedLu::Place> places;
    for (int i = 0; i < n; ++i) {
      places.emplace_back(i, i);
      if (i > 0) places.emplace_back(i, i - 1);
      if (i > 0 && i % 5 == 0) places.emplace_back(i - 1, i);
    }
    std::vector<int> slots(places.size());
    UnpivotedLu lu;
    lu.analyse(n, places, slots);
    for (std::size_t i = 0; i < places.size(); ++i) {
      lu.values()[static_cast<std::size_t>(slots[i])] =
          places[i].first == places[i].second ? 4.0 : normal(random);
    }
    ASSERT_TRUE(lu.factorise());
    const SparseMatrix A = lu.matrix();
    EXPECT_LT(static_cast<double>(lu.nonzeros()),
              0.85 * static_cast<double>(expected_lu_entries(A, 1U << 20)));
    const Eigen::VectorXd b = Eigen::VectorXd::Random(n);
    Eigen::VectorXd x(n), scratch(n);
    lu.solve(b.data(), x.data(), scratch.data());
    EXPECT_LE((A * x - b).norm(), 1e-13 * b.norm()) << n;
  }
}

TEST(UnpivotedLu, MatricesThatNeedExchangesAreRefused) {
  EXPECT_FALSE(Filled(Eigen::Matrix2d{{0.0, 1.0}, {1.0, 0.0}}).lu.factorise());
  EXPECT_FALSE(Filled(Eigen::Matrix2d{{1e-8, 1.0}, {1.0, 1e-8}}).lu.factorise());
  EXPECT_FALSE(Filled(Eigen::Matrix2d{{1.0, 1.0}, {1.0, 1.0}}).lu.factorise());  // singular
  const double nan = std::nan("");
  EXPECT_FALSE(Filled(Eigen::Matrix2d{{1.0, nan}, {0.5, 1.0}}).lu.factorise());
  EXPECT_FALSE(Filled(Eigen::Matrix2d{{1.0, 0.5}, {nan, 1.0}}).lu.factorise());
}

/// Runs bodies last first, and counts them and what is asked for.
class Backwards final : public ForEach {
 public:
  mutable int calls = 0, bodies = 0;

 private:
  void run(int count, void (*call)(const void* body, int i), const void* body) const override {
    ++calls;
    bodies += count;
    for (int i = count - 1; i >= 0; --i) call(body, i);
  }
};

// A ring of blocks: minimal degree goes round it in one chain, of which nothing could be shared.
TEST(UnpivotedLu, ALargeSolveIsSharedAndHasTheSameBitsInAnyOrder) {
  std::mt19937_64 random(kSeed);
  std::normal_distribution<double> normal;
  const int blocks = 400, width = 4, n = blocks * width;
  std::vector<UnpivotedLu::Place> places;
  for (int k = 0; k < blocks; ++k) {
    for (int i = 0; i < width; ++i) {
      for (int j = 0; j < width; ++j) places.emplace_back(k * width + i, k * width + j);
    }
    const int next = (k + 1) % blocks * width;
    places.emplace_back(k * width, next + 1);
    places.emplace_back(next + 1, k * width);
  }
  std::vector<int> slots(places.size());
  UnpivotedLu lu;
  lu.analyse(n, places, slots);
  for (std::size_t i = 0; i < places.size(); ++i) {
    lu.values()[static_cast<std::size_t>(slots[i])] =
        places[i].first == places[i].second ? 9.0 : normal(random);
  }
  ASSERT_TRUE(lu.factorise());
  const Eigen::VectorXd b = Eigen::VectorXd::Random(n);
  Eigen::VectorXd x(n), other = b, scratch(n);
  lu.solve(b.data(), x.data(), scratch.data());
  EXPECT_LE((lu.matrix() * x - b).norm(), 1e-12 * b.norm());
  const Backwards backwards;
  lu.solve(other.data(), other.data(), scratch.data(), backwards);
  EXPECT_EQ(other, x);
  EXPECT_EQ(backwards.calls, 2);
  EXPECT_GE(backwards.bodies, 2 * 8);

  // The factors, too; and what needs an exchange is seen in whichever portion it lies.
  ASSERT_TRUE(lu.factorise(backwards));
  EXPECT_EQ(backwards.calls, 3);
  lu.solve(b.data(), other.data(), scratch.data());
  EXPECT_EQ(other, x);
  int refused = 0;
  for (std::size_t i = 0; i < places.size(); i += places.size() / 40) {
    double& entry = lu.values()[static_cast<std::size_t>(slots[i])];
    const double before = std::exchange(entry, std::numeric_limits<double>::quiet_NaN());
    refused += lu.factorise(backwards) ? 0 : 1;
    EXPECT_FALSE(lu.factorise());
    entry = before;
  }
  EXPECT_GE(refused, 40);
  ASSERT_TRUE(lu.factorise(backwards)) << "control: it was for those entries";
  lu.solve(b.data(), other.data(), scratch.data());
  EXPECT_EQ(other, x);

  // An entry that changes takes along the rows that depend on it, and no others.
  const std::span<double> all = lu.values();
  ASSERT_TRUE(lu.factorise());
  for (std::size_t i = 0; i < places.size(); i += places.size() / 40) {
    lu.value(slots[i]) = places[i].first == places[i].second ? 7.0 : normal(random);
    ASSERT_TRUE(i % 2 == 0 ? lu.factorise() : lu.factorise(backwards));
  }
  lu.solve(b.data(), x.data(), scratch.data());
  all[static_cast<std::size_t>(slots[0])] = 8.0;
  ASSERT_TRUE(lu.factorise());
  lu.solve(b.data(), other.data(), scratch.data());
  EXPECT_EQ(other, x) << "control: nothing was said to be changed, and nothing is made again";
  lu.values()[static_cast<std::size_t>(slots[0])] = 7.0;
  ASSERT_TRUE(lu.factorise());
  lu.solve(b.data(), other.data(), scratch.data());
  EXPECT_EQ(other, x);
}

// As the interface equation does: waves lie elsewhere than the rows, and some rows are of no wave.
TEST(UnpivotedLu, TakesAndPutsNumbersWhereItIsToldTo) {
  std::mt19937_64 random(kSeed);
  const int n = 60, apart = 3;
  const Eigen::MatrixXd A = monotone(random, n);
  Filled filled(A);
  ASSERT_TRUE(filled.lu.factorise());
  std::vector<int> places(static_cast<std::size_t>(n));
  Eigen::VectorXd b = Eigen::VectorXd::Random(apart * n), right = Eigen::VectorXd::Zero(n);
  for (int i = 0; i < n; ++i) {
    places[static_cast<std::size_t>(i)] = i % 4 == 0 ? -1 : apart * (n - 1 - i);
    if (i % 4 != 0) right[i] = b[apart * (n - 1 - i)];
  }
  const Eigen::VectorXd expected = filled.solve(right);
  filled.lu.take_places(places);
  Eigen::VectorXd x = Eigen::VectorXd::Constant(b.size(), 7.0), scratch(n);
  const double square = filled.lu.solve(b.data(), x.data(), scratch.data());
  double sum = 0.0;
  for (int i = 0; i < n; ++i) {
    const int place = places[static_cast<std::size_t>(i)];
    if (place < 0) continue;
    EXPECT_EQ(x[place], expected[i]);
    sum += expected[i] * expected[i];
    x[place] = 7.0;
  }
  EXPECT_NEAR(square, sum, 1e-13 * sum);
  EXPECT_EQ(x, Eigen::VectorXd::Constant(b.size(), 7.0)) << "nothing else is written";
}

TEST(UnpivotedLu, CountingStopsWhereAskedTo) {
  const Eigen::MatrixXd full = Eigen::MatrixXd::Ones(50, 50);
  EXPECT_EQ(expected_lu_entries(full.sparseView(), 10000), 2500u);
  const std::size_t stopped = expected_lu_entries(full.sparseView(), 100);
  EXPECT_GT(stopped, 100u);
  EXPECT_LT(stopped, 110u);
}

}  // namespace
}  // namespace portwave::test_unpivoted_lu
