// The stages of steps: coefficients beside those of the literature, and what damping makes of them.

#include <cmath>
#include <cstddef>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave::test_stage_rule {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

Matrix coefficients(const StageRule& rule) {
  Matrix A(rule.count, rule.count);
  for (int i = 0; i < rule.count; ++i) {
    for (int j = 0; j < rule.count; ++j) {
      A(i, j) = rule.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
    }
  }
  return A;
}

Vector weights(const StageRule& rule) {
  return Eigen::Map<const Vector>(rule.b.data(), rule.count);
}

/// R(z) = 1 + z bᵀ(I − zA)⁻¹(1, …, 1)ᵀ
double stability(const StageRule& rule, double z) {
  const Matrix A = coefficients(rule);
  const Vector ones = Vector::Ones(rule.count);
  return 1.0 +
         z * weights(rule).dot((Matrix::Identity(rule.count, rule.count) - z * A).lu().solve(ones));
}

// Hairer & Wanner, Solving Ordinary Differential Equations II (1996), tables IV.5.5 and IV.5.6.
TEST(StageRule, DampedOnTheNodesOfRadauIsRadauIIA) {
  const double r = std::sqrt(6.0);
  Matrix two(2, 2), three(3, 3);
  two << 5.0 / 12, -1.0 / 12, 3.0 / 4, 1.0 / 4;
  three << (88 - 7 * r) / 360, (296 - 169 * r) / 1800, (-2 + 3 * r) / 225,  //
      (296 + 169 * r) / 1800, (88 + 7 * r) / 360, (-2 - 3 * r) / 225,       //
      (16 - r) / 36, (16 + r) / 36, 1.0 / 9;
  const auto damped_radau = [](int stages) {
    return coefficients(damped(stage_rule(stages, StageNodes::radau)));
  };
  EXPECT_NEAR(damped_radau(1)(0, 0), 1.0, 1e-15);
  EXPECT_LT((damped_radau(2) - two).cwiseAbs().maxCoeff(), 1e-15);
  EXPECT_LT((damped_radau(3) - three).cwiseAbs().maxCoeff(), 1e-15);
  // Half the damping is something else.
  const Matrix half = coefficients(damped(stage_rule(2, StageNodes::radau), {.theta = 0.5}));
  EXPECT_GT((half - two).cwiseAbs().maxCoeff(), 1e-2);
}

TEST(StageRule, DampingOfWholeStagesLeavesNothingOfInfinitelyFastDecays) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (const StageNodes nodes : {StageNodes::gauss, StageNodes::radau}) {
      const StageRule& plain = stage_rule(stages, nodes);
      for (const double z : {-1e3, -1e6, -1e9, -1e12}) {
        EXPECT_NEAR(stability(damped(plain), z), 0.0, 20.0 / -z) << stages << ", z = " << z;
        EXPECT_NEAR(std::abs(stability(plain, z)), 1.0, 30.0 / -z) << stages << ", z = " << z;
      }
      // In between there is no overshoot either.
      for (double z = -1e-3; z > -1e6; z *= 1.3) {
        EXPECT_LT(std::abs(stability(damped(plain), z)), 1.0) << stages << ", z = " << z;
      }
    }
  }
}

// bᵢaᵢⱼ + bⱼaⱼᵢ − bᵢbⱼ = 2δθ bᵢP̂ᵢ bⱼP̂ⱼ: the energy balance of quadratic H.
TEST(StageRule, WhatDampingDissipatesIsASquare) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (const StageNodes nodes : {StageNodes::gauss, StageNodes::radau}) {
      for (const double theta : {0.0, 0.3, 1.0}) {
        const StageRule rule = damped(stage_rule(stages, nodes), {.theta = theta});
        const Matrix A = coefficients(rule);
        const Vector b = weights(rule), root = b.cwiseSqrt();
        const Matrix M = Matrix(b.asDiagonal() * A) + Matrix(b.asDiagonal() * A).transpose();
        const Vector top =
            root.cwiseProduct(Vector(Eigen::Map<const Vector>(rule.top.data(), rule.count)));
        const Matrix expected = b * b.transpose() + 2.0 * rule.damping * top * top.transpose();
        EXPECT_LT((M - expected).cwiseAbs().maxCoeff(), 1e-15) << stages << ", " << theta;
        EXPECT_NEAR(rule.damping, theta / (4.0 * stages - 2.0), 1e-16);
      }
      const StageRule& plain = stage_rule(stages, nodes);
      EXPECT_NEAR(Eigen::Map<const Vector>(plain.top.data(), stages).norm(), 1.0, 1e-15);
    }
  }
}

TEST(StageRule, RadauNodesIntegrateProductsOfTwoPolynomialsOfTheStages) {
  for (int stages = 1; stages <= kMostStages; ++stages) {
    const StageRule& rule = stage_rule(stages, StageNodes::radau);
    EXPECT_EQ(rule.c[static_cast<std::size_t>(stages - 1)], 1.0);
    for (int power = 0; power <= 2 * stages - 2; ++power) {
      double sum = 0.0;
      for (std::size_t i = 0; i < static_cast<std::size_t>(stages); ++i) {
        sum += rule.b[i] * std::pow(rule.c[i], power);
      }
      EXPECT_NEAR(sum, 1.0 / (power + 1), 1e-15) << stages << " stages, power " << power;
    }
  }
}

}  // namespace
}  // namespace portwave::test_stage_rule
