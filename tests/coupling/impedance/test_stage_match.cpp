// Impedances of the stages of one port that leave no reflection after as many as there are stages.

#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "impedance/impedance_rules.hpp"
#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/system/derived_systems.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"
#include "support/systems/coupled_systems.hpp"

namespace portwave::test_stage_match {
namespace {

using Matrix = Eigen::MatrixXd;
using Vector = Eigen::VectorXd;

/// √bᵢ aᵢⱼ/√bⱼ: a lossless element that stores what flows.
Matrix element(int stages) {
  const StageRule& rule = gauss_stages(stages);
  Matrix out(stages, stages);
  for (std::size_t i = 0; i < static_cast<std::size_t>(stages); ++i) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(stages); ++j) {
      out(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)) =
          rule.A[i][j] * std::sqrt(rule.b[i] / rule.b[j]);
    }
  }
  return out;
}

Matrix reflection(const Matrix& B, const Vector& x) {
  const Matrix one = Matrix::Identity(B.rows(), B.cols()), scaled = x.asDiagonal() * B;
  return (one + scaled).inverse() * (one - scaled);
}

/// What is left after as many reflections as there are stages.
double left(const Matrix& B, const Vector& x) {
  const Matrix once = reflection(B, x);
  Matrix all = once;
  for (Eigen::Index i = 1; i < B.rows(); ++i) all = all * once;
  return all.norm();
}

/// Springs, masses, dampers, and all of them together; in any units.
std::vector<Matrix> responses(int stages) {
  const Matrix A = element(stages), one = Matrix::Identity(stages, stages);
  const Matrix spring_on_mass = (A.inverse() * 3.0 + 0.2 * one + 0.4 * A).inverse();
  std::vector<Matrix> out = {A,
                             A.inverse(),
                             one + A,
                             one + 0.01 * A,
                             0.05 * one + A,
                             spring_on_mass,
                             0.3 * one + spring_on_mass};
  for (std::size_t i = 0, count = out.size(); i < count; ++i) {
    out.emplace_back(1e9 * out[i]);
    out.emplace_back(1e-9 * out[i]);
  }
  return out;
}

TEST(StageMatch, LeavesNoReflection) {
  for (const int stages : {2, 3}) {
    for (const Matrix& B : responses(stages)) {
      const Vector x = stage_scales(B);
      ASSERT_EQ(x.size(), stages) << B;
      EXPECT_GT(x.minCoeff(), 0.0);
      EXPECT_LT(left(B, x), 1e-6) << B;
    }
  }
}

// The control: each stage matched by itself leaves √(1/13) = .28 each time.
TEST(StageMatchControl, StagesByThemselvesReflect) {
  const Matrix B = element(2);
  const Vector own = B.diagonal().cwiseInverse();
  const Matrix once = reflection(B, own);
  EXPECT_NEAR((once * once).eigenvalues().cwiseAbs().maxCoeff(), 1.0 / 13.0, 1e-12);
  EXPECT_GT(left(element(3), element(3).diagonal().cwiseInverse()), 0.02);
}

TEST(StageMatch, IsEmptyWhereThereIsNone) {
  EXPECT_EQ(stage_scales(-element(2)).size(), 0);
  EXPECT_EQ(stage_scales(Matrix::Zero(3, 3)).size(), 0);
  EXPECT_EQ(stage_scales(std::nan("") * element(3)).size(), 0);
  EXPECT_EQ(stage_scales(Matrix::Identity(1, 1)).size(), 0);
}

// Stages matched by themselves needed 26 and 51 evaluations here.
TEST(StageMatch, TakesAGridInFewEvaluations) {
  for (const auto& [stages, most] : {std::pair{2, 12}, std::pair{3, 15}}) {
    const System system = staged_system(testing::duffing_grid(8, 8), stages);
    const PortResponses responses(system, 1e-3);
    const PredictedRate rate =
        predict_rate(responses, tune_impedance(responses, ImpedanceKind::leaf).by_port,
                     WaveUpdate::peaceman_rachford, 1.0);
    EXPECT_TRUE(rate.converges);
    EXPECT_LE(rate.evaluations, most) << stages << " stages";
  }
}

}  // namespace
}  // namespace portwave::test_stage_match
