// How step sizes that may be any follow from errors, apart from any system.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "step/sizes/size_control.hpp"

namespace portwave::test_size_control {
namespace {

/// Steps to `end_s`, where a step of h at t has the error (h/natural(t))^power, relative to the tolerance.
template <class Natural>
std::vector<double> steps_of(SizeControl& control, int power, double end_s, const Natural& natural,
                             int& rejected) {
  std::vector<double> out;
  double now_s = 0.0;
  for (int n = 0; now_s < end_s && n < 100000; ++n) {
    const SizeControl::Next next = control.next(now_s, end_s);
    const double error = std::pow(next.step_s / natural(now_s), power);
    if (error > 1.0) {
      ++rejected;
      control.reject(next, error);
      continue;
    }
    control.accept(next, error);
    now_s = next.reaches_limit ? end_s : now_s + next.step_s;
    out.push_back(next.step_s);
  }
  EXPECT_EQ(now_s, end_s);
  return out;
}

TEST(SizeControl, SettlesOnOneSizeWithAnErrorNearTheTolerance) {
  for (const int power : {5, 7, 18}) {
    for (const double first_s : {1e-4, 0.3, 10.0}) {
      SizeControl control(first_s, 10.0, 0.0, power);
      int rejected = 0;
      const auto steps = steps_of(
          control, power, 400.0, [](double) { return 0.35; }, rejected);
      EXPECT_LE(rejected, 2) << power << ", " << first_s;
      const double settled = steps[steps.size() / 2], error = std::pow(settled / 0.35, power);
      EXPECT_GT(error, 0.05) << power << ", " << first_s;
      EXPECT_LT(error, 0.9) << power << ", " << first_s;
      for (std::size_t i = steps.size() / 2; i + 3 < steps.size(); ++i) {
        EXPECT_EQ(steps[i], settled) << "sizes stay while the error is near its aim";
      }
    }
  }
}

TEST(SizeControl, FollowsSizesThatChange) {
  SizeControl control(1.0, 10.0, 0.0, 7);
  int rejected = 0;
  const auto natural = [](double t) { return 0.1 + 0.09 * std::sin(t); };
  const auto steps = steps_of(control, 7, 100.0, natural, rejected);
  EXPECT_LT(rejected, static_cast<int>(steps.size()) / 8);
  double shortest = 1.0, longest = 0.0;
  for (const double h : steps) {
    shortest = std::min(shortest, h);
    longest = std::max(longest, h);
  }
  EXPECT_GT(longest, 8.0 * shortest);
}

TEST(SizeControl, StopsAtLimitsWithoutRemnants) {
  SizeControl control(0.3, 0.3, 0.0, 5);
  SizeControl::Next next = control.next(0.0, 0.5);
  EXPECT_EQ(next.step_s, 0.25);
  EXPECT_FALSE(next.is_whole);
  EXPECT_FALSE(next.reaches_limit);
  control.accept(next, 1e-3);
  EXPECT_EQ(control.step_s(), 0.3) << "a step cut for a limit says nothing about the size";
  next = control.next(0.25, 0.5);
  EXPECT_TRUE(next.reaches_limit);
  EXPECT_EQ(next.step_s, 0.25);
  EXPECT_TRUE(control.next(0.2, 0.5 - 1e-13).is_whole) << "but for rounding";
  EXPECT_EQ(control.next(0.0, std::numeric_limits<double>::infinity()).step_s, 0.3);
}

TEST(SizeControl, ShrinksAfterRejectionsAndDoesNotGrowAtOnce) {
  SizeControl control(0.1, 10.0, 1e-3, 5);
  const SizeControl::Next first = control.next(0.0, 10.0);
  control.reject(first, 32.0);
  const double shrunk = control.step_s();
  EXPECT_LT(shrunk, 0.05);
  EXPECT_GT(shrunk, 0.03);
  const SizeControl::Next second = control.next(0.0, 10.0);
  control.accept(second, 1e-3);
  EXPECT_EQ(control.step_s(), shrunk);
  control.accept(second, 1e-3);
  EXPECT_GT(control.step_s(), shrunk) << "control";
  control.reject(second, std::numeric_limits<double>::infinity());
  EXPECT_EQ(control.step_s(), 0.25 * second.step_s);
  EXPECT_TRUE(control.can_shrink({.step_s = 2.1e-3}, 0.0));
  EXPECT_FALSE(control.can_shrink({.step_s = 1.9e-3}, 0.0));
  EXPECT_FALSE(control.can_shrink({.step_s = 2e-3}, 1e14)) << "it would not change the time";
}

TEST(SizeControl, GrowsOnAlthoughTheLastErrorWasNone) {
  SizeControl control(1e-6, 1.0, 0.0, 5);
  for (int n = 0; n < 30; ++n) {
    const double before = control.step_s();
    control.accept(control.next(0.0, 100.0), n % 2 == 0 ? 0.0 : 1e-3);
    EXPECT_TRUE(control.step_s() > 1.3 * before || control.step_s() == 1.0) << n;
  }
  EXPECT_EQ(control.step_s(), 1.0);
}

}  // namespace
}  // namespace portwave::test_size_control
