// The largest scaling of the waves of linear parts that the tank allows, in closed form.

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/energy/guard.hpp"

namespace portwave::test_guard_scaling {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();

/// g(α) in units of its terms' round-off; extended precision.
double in_round_off(double A0, double A1, double A2, double alpha) {
  const long double x = alpha, terms = A0 + std::abs(A1) * x + std::abs(A2) * x * x;
  if (terms == 0.0L) return 0.0;
  return static_cast<double>((A0 + A1 * x + A2 * x * x) / (terms * kEpsilon));
}

struct Quadratic {
  double A0, A1, A2;
};

/// g(0) ≥ 0 > g(1), in all proportions and of either curvature.
std::vector<Quadratic> quadratics(double scale, std::uint64_t seed, int count) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> exponent(-16.0, 0.0), sign(-1.0, 1.0);
  std::vector<Quadratic> out;
  while (static_cast<int>(out.size()) < count) {
    Quadratic q{std::pow(10.0, exponent(random)),
                std::copysign(std::pow(10.0, exponent(random)), sign(random)),
                std::copysign(std::pow(10.0, exponent(random)), sign(random))};
    if (random() % 16 == 0) q.A0 = 0.0;
    if (random() % 16 == 0) q.A1 = 0.0;
    if (random() % 16 == 0) q.A2 = 0.0;
    if (random() % 4 == 0) q.A2 = -(q.A0 + q.A1) * (1.0 + std::pow(10.0, exponent(random)));
    if (!(q.A0 + q.A1 + q.A2 < 0.0)) continue;
    out.push_back({q.A0 * scale, q.A1 * scale, q.A2 * scale});
  }
  return out;
}

TEST(LargestFeasibleScaling, IsTheRootBelowOne) {
  int convex = 0, concave = 0, close = 0;
  for (const double scale : {1e-280, 1e-150, 1e-20, 1.0, 1e20, 1e150, 1e280}) {
    for (const Quadratic& q : quadratics(scale, 7, 4000)) {
      const double alpha = largest_feasible_scaling(q.A0, q.A1, q.A2);
      ASSERT_TRUE(alpha >= 0.0 && alpha <= 1.0)
          << fmt::format("{} for {} {} {}", alpha, q.A0, q.A1, q.A2);
      ASSERT_LE(std::abs(in_round_off(q.A0, q.A1, q.A2, alpha)), 8.0)
          << fmt::format("alpha {:.17g} for {:.17g} {:.17g} {:.17g}", alpha, q.A0, q.A1, q.A2);
      convex += q.A2 > 0.0 ? 1 : 0;
      concave += q.A2 < 0.0 ? 1 : 0;
      close += alpha > 1.0 - 1e-6 ? 1 : 0;
    }
  }
  EXPECT_GT(convex, 1000);
  EXPECT_GT(concave, 1000);
  EXPECT_GT(close, 100);
}

TEST(LargestFeasibleScalingControl, TheMeasureSeesAHundredMillionth) {
  int seen = 0, all = 0;
  for (const Quadratic& q : quadratics(1.0, 7, 1000)) {
    const double alpha = largest_feasible_scaling(q.A0, q.A1, q.A2);
    if (alpha == 0.0 || alpha > 0.9) continue;
    ++all;
    seen += std::abs(in_round_off(q.A0, q.A1, q.A2, alpha * (1.0 + 1e-8))) > 8.0 ? 1 : 0;
  }
  EXPECT_GT(seen, 9 * all / 10);
}

TEST(LargestFeasibleScaling, KnowsTheEnds) {
  EXPECT_EQ(largest_feasible_scaling(-1e-30, 1.0, -3.0), 0.0);
  EXPECT_EQ(largest_feasible_scaling(0.0, -1.0, -1.0), 0.0);
  EXPECT_EQ(largest_feasible_scaling(0.0, 0.0, -1.0), 0.0);
  EXPECT_EQ(largest_feasible_scaling(1.0, 0.0, -4.0), 0.5);
  EXPECT_EQ(largest_feasible_scaling(1.0, -2.0, 0.0), 0.5);
  EXPECT_EQ(largest_feasible_scaling(0.0, 1.0, -2.0), 0.5);
  EXPECT_DOUBLE_EQ(largest_feasible_scaling(1.0, -3.0, 1.0), (3.0 - std::sqrt(5.0)) / 2.0);
  const double nan = std::nan("");
  EXPECT_EQ(largest_feasible_scaling(nan, 1.0, 1.0), 0.0);
  EXPECT_EQ(largest_feasible_scaling(1.0, nan, 1.0), 0.0);
  EXPECT_EQ(largest_feasible_scaling(1.0, -1.0, nan), 0.0);
}

}  // namespace
}  // namespace portwave::test_guard_scaling
