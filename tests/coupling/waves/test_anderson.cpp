// The decisions of Anderson acceleration, on waves kept here: what it gains on linear maps, that it
// gives up on hard ones, and what a bad trial costs.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/waves/anderson.hpp"

namespace portwave::test_anderson {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

/// u ↦ P S(u), the plain update being u itself by the image (Peaceman–Rachford, θ = 1).
using Map = std::function<VectorXd(const VectorXd&)>;

struct Course {
  std::vector<double> residuals;  ///< of the last evaluation that stood, after each evaluation
  std::vector<VectorXd> points;   ///< where the map was evaluated
  std::vector<bool> stood;
  int rejections = 0;
};

/// `evaluations` of the map from `start`, as a stepper makes them; θ of the averaged iteration.
Course accelerate(const Map& map, const VectorXd& start, int memory, int evaluations,
                  double theta = 1.0) {
  AndersonSequence sequence;
  sequence.begin(memory);
  std::vector<VectorXd> kept_u(AndersonSequence::kMaxSlots, VectorXd::Zero(start.size()));
  std::vector<VectorXd> kept_image = kept_u;
  Course run;
  VectorXd u = start;
  double standing = 0.0;
  for (int k = 0; k < evaluations; ++k) {
    VectorXd image = map(u);
    const VectorXd gap = image - u;
    std::vector<double> products(AndersonSequence::kMaxSlots);
    for (std::size_t s = 0; s < products.size(); ++s) {
      products[s] = gap.dot(kept_image[s] - kept_u[s]);
    }
    const auto slot = static_cast<std::size_t>(sequence.slot());
    kept_u[slot] = u;
    kept_image[slot] = image;
    sequence.judge(products, gap.squaredNorm());
    if (sequence.stands()) {
      EXPECT_EQ(static_cast<std::size_t>(sequence.base()), slot);
      standing = gap.norm();
    }
    run.points.push_back(u);
    run.residuals.push_back(standing);
    run.stood.push_back(sequence.stands());
    run.rejections = sequence.rejections();
    if (!sequence.plain()) {
      double sum = 0.0;
      u.setZero();
      image.setZero();
      for (const auto& term : sequence.terms()) {
        u += term.weight * kept_u[static_cast<std::size_t>(term.slot)];
        image += term.weight * kept_image[static_cast<std::size_t>(term.slot)];
        sum += term.weight;
      }
      EXPECT_NEAR(sum, 1.0, 1e-9);
    }
    u += theta * (image - u);
  }
  return run;
}

VectorXd random_vector(Eigen::Index size, std::mt19937_64& random) {
  std::normal_distribution<double> normal;
  VectorXd v(size);
  for (double& x : v) x = normal(random);
  return v;
}

/// An orthogonal map, as P of an interconnection times S of lossless parts.
MatrixXd random_rotation(Eigen::Index size, std::mt19937_64& random) {
  MatrixXd m(size, size);
  for (Eigen::Index j = 0; j < size; ++j) m.col(j) = random_vector(size, random);
  return Eigen::HouseholderQR<MatrixXd>(m).householderQ();
}

struct Affine {
  MatrixXd M;
  VectorXd c;
  VectorXd operator()(const VectorXd& u) const { return M * u + c; }
};

/// Nonexpansive: singular values up to 1, most of them near.
Affine random_affine(Eigen::Index size, double loss, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const MatrixXd Q = random_rotation(size, random), R = random_rotation(size, random);
  VectorXd s(size);
  std::uniform_real_distribution<double> unit(0.0, 1.0);
  for (double& x : s) x = 1.0 - loss * unit(random);
  return {Q * s.asDiagonal() * R, random_vector(size, random)};
}

int evaluations_to(const Course& run, double residual) {
  for (std::size_t k = 0; k < run.residuals.size(); ++k) {
    if (run.residuals[k] <= residual) return static_cast<int>(k) + 1;
  }
  return std::numeric_limits<int>::max();
}

TEST(AndersonSequence, SolvesALinearMapInAboutAsManyEvaluationsAsItHasUnknowns) {
  for (const Eigen::Index n : {1, 2, 3, 5, 8}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      const Affine map = random_affine(n, 0.05, seed);
      const VectorXd start = VectorXd::Zero(n);
      const double target = 1e-10 * map.c.norm();
      const int plain = evaluations_to(accelerate(map, start, 0, 3000), target);
      const int fast = evaluations_to(accelerate(map, start, 10, 100), target);
      EXPECT_GT(plain, 200) << n << " seed " << seed;
      EXPECT_LE(fast, 2 * n + 6) << n << " seed " << seed;
    }
  }
}

// Without memory every update is the plain one.
TEST(AndersonSequence, NoMemoryIsThePlainIteration) {
  const Affine map = random_affine(6, 0.5, 3);
  for (const double theta : {0.3, 1.0}) {
    const Course run = accelerate(map, VectorXd::Zero(6), 0, 30, theta);
    VectorXd u = VectorXd::Zero(6);
    for (const VectorXd& point : run.points) {
      EXPECT_EQ(point, u);
      u += theta * (map(u) - u);
    }
  }
}

/// Nearly linear, so that combinations promise much, with a reflection that changes sides: they
/// keep little.
VectorXd kinked(const VectorXd& u) {
  VectorXd out(u.size());
  for (Eigen::Index i = 0; i < u.size(); ++i) {
    const auto next = (i + 1) % u.size();
    out[i] = u[next] > 0.3 ? 1.2 - u[next] : 0.95 * u[next] + 0.1 * std::sin(40.0 * u[next]);
  }
  return out;
}

TEST(AndersonSequence, TakesThePlainUpdateOfTheBaseAfterARejectionAndRestsAfterTwo) {
  int runs_with_two = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    const VectorXd start = random_vector(5, random);
    const Course run = accelerate(kinked, start, 5, 40);
    EXPECT_EQ(run.points.size(), 40u) << "rejected trials count";
    constexpr int kRounds = 40 / (AndersonSequence::kRest + AndersonSequence::kMaxRejections) + 1;
    EXPECT_LE(run.rejections, kRounds * AndersonSequence::kMaxRejections);
    VectorXd base = run.points[0];
    int rejected = 0, rested = 0;
    for (std::size_t k = 1; k < run.points.size(); ++k) {
      const bool previous_stood = run.stood[k - 1];
      if (previous_stood) {
        base = run.points[k - 1];
      } else {
        ++rejected;
      }
      const VectorXd plain = kinked(base);
      if (!previous_stood) {
        // Weights are 1 and nothing else: the bits are those of the base.
        EXPECT_EQ(run.points[k], VectorXd(base + (plain - base))) << "seed " << seed << " k " << k;
      }
      if (rejected == AndersonSequence::kMaxRejections && previous_stood &&
          rested < AndersonSequence::kRest) {
        EXPECT_EQ(run.points[k], VectorXd(base + (plain - base))) << "seed " << seed << " k " << k;
        EXPECT_TRUE(run.stood[k]);
        ++rested;
      }
    }
    if (rejected >= AndersonSequence::kMaxRejections) ++runs_with_two;
  }
  EXPECT_GT(runs_with_two, 10);
}

// A rejected trial costs one evaluation each, and there are two at the most. That is no theorem:
// with a memory of one, trials that stand can lead astray a little.
TEST(AndersonSequence, IsNeverMoreThanTwoEvaluationsBehindOnDampedRotations) {
  int ahead = 0, behind = 0, all = 0;
  for (const Eigen::Index n : {2, 4, 10, 30}) {
    for (const double loss : {0.02, 0.3, 1.0}) {
      for (std::uint64_t seed = 1; seed <= 10; ++seed) {
        const Affine map = random_affine(n, loss, seed);
        const VectorXd start = VectorXd::Zero(n);
        const Course plain = accelerate(map, start, 0, 50);
        for (const int memory : {1, 3, 10}) {
          const Course fast = accelerate(map, start, memory, 50);
          for (std::size_t k = 2; k < 50; ++k) {
            ++all;
            const double allowed = plain.residuals[k - 2] * (1.0 + 1e-9) + 1e-13 * map.c.norm();
            if (memory > 1 && fast.residuals[k] > allowed) ++behind;
            EXPECT_LE(fast.residuals[k], 1.5 * allowed)
                << "n=" << n << " loss " << loss << " seed " << seed << " memory " << memory;
            if (fast.residuals[k] < 0.5 * plain.residuals[k]) ++ahead;
          }
        }
      }
    }
  }
  EXPECT_EQ(behind, 0) << "of " << all;
  EXPECT_GT(ahead, all / 4);
}

TEST(AndersonSequence, SurvivesNaN) {
  const Affine map = random_affine(4, 0.1, 5);
  const double nan = std::nan("");
  for (const int at : {0, 1, 2, 3, 5}) {
    int calls = 0;
    const auto spoiled = [&](const VectorXd& u) {
      return calls++ == at ? VectorXd(VectorXd::Constant(4, nan)) : map(u);
    };
    const Course run = accelerate(spoiled, VectorXd::Zero(4), 4, 12);
    EXPECT_LE(run.rejections, AndersonSequence::kMaxRejections);
    for (const int k : {2, 3, 5}) {
      if (k != at) continue;
      EXPECT_FALSE(run.stood[static_cast<std::size_t>(k)]) << "a trial";
      EXPECT_TRUE(run.points.back().allFinite()) << "at " << at;
    }
  }
}

// Equal gaps say nothing about the map: the plain update is all there is.
TEST(AndersonSequence, FallsBackToPlainWhereGapsAreEqual) {
  const VectorXd shift = VectorXd::Constant(3, 0.25);
  const auto drift = [&](const VectorXd& u) { return VectorXd(u + shift); };
  const Course run = accelerate(drift, VectorXd::Zero(3), 5, 20);
  for (std::size_t k = 0; k < run.points.size(); ++k) {
    EXPECT_EQ(run.points[k], VectorXd(static_cast<double>(k) * shift)) << k;
  }
  EXPECT_EQ(run.rejections, 0);
  const auto at_rest = [](const VectorXd& u) { return u; };
  const Course still = accelerate(at_rest, VectorXd::Ones(3), 5, 20);
  for (const VectorXd& point : still.points) EXPECT_EQ(point, VectorXd::Ones(3));
}

}  // namespace
}  // namespace portwave::test_anderson
