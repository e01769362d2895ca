// How step sizes follow from errors, apart from any system.

#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include "step/sizes/step_control.hpp"

namespace portwave::test_step_control {
namespace {

/// Steps to `end_s`, where a step of h at t has the error (h/natural(t))^power, relative to the
/// tolerance. Returns the accepted steps.
template <class Natural>
std::vector<double> steps_of(StepControl& control, int power, double end_s, const Natural& natural,
                             int& rejected) {
  std::vector<double> out;
  double now_s = 0.0;
  for (int n = 0; now_s < end_s && n < 100000; ++n) {
    const StepControl::Next next = control.next(now_s, end_s);
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

TEST(StepControl, SettlesOnTheLargestRungThatKeepsToTheTolerance) {
  for (const int power : {3, 4, 5}) {
    StepControl control(1.0, 1e-9, power);
    int rejected = 0;
    const auto steps = steps_of(
        control, power, 64.0, [](double) { return 0.35; }, rejected);
    EXPECT_LE(rejected, 2) << power;
    EXPECT_EQ(steps.back(), 0.25) << power;
  }
}

TEST(StepControl, GrowsOnlyWhereTheLargerLadderHasARung) {
  StepControl control(1.0, 1e-9, 4);
  int rejected = 0;
  const auto steps = steps_of(
      control, 4, 16.0, [](double t) { return t < 4.7 ? 0.08 : 0.9; }, rejected);
  double now_s = 0.0;
  for (const double h : steps) {
    EXPECT_EQ(std::fmod(now_s, h), 0.0) << "h = " << h << " at " << now_s;
    EXPECT_EQ(std::exp2(std::round(std::log2(h))), h);
    now_s += h;
  }
  EXPECT_EQ(steps.front(), 0.0625);
  EXPECT_EQ(steps.back(), 0.5);
}

TEST(StepControl, DoesNotFlutterAboutARung) {
  StepControl control(1.0, 1e-9, 6);
  int rejected = 0;
  const auto wavering = [](double t) { return 0.27 + 0.04 * std::sin(3.0 * t); };
  const auto steps = steps_of(control, 6, 500.0, wavering, rejected);
  int changes = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) changes += steps[i] != steps[i - 1] ? 1 : 0;
  EXPECT_LE(changes, static_cast<int>(steps.size()) / 20);
  EXPECT_LE(rejected, static_cast<int>(steps.size()) / 40);
}

TEST(StepControl, EndsWhereItMustWithoutATinyStep) {
  for (const double end_s : {0.7, 1.0 + 1e-13, 1.3, 2.6, 0.3}) {
    StepControl control(1.0, 1e-9, 4);
    int rejected = 0;
    const auto steps = steps_of(
        control, 4, end_s, [](double) { return 0.6; }, rejected);
    double least = 1.0;
    for (const double h : steps) least = std::min(least, h);
    EXPECT_GE(least, 0.25 * std::min(end_s, 0.5)) << end_s;
  }
}

TEST(StepControl, GoesNoFurtherDownThanItMay) {
  StepControl control(1.0, 0.1, 2);
  for (int i = 0; i < 10; ++i) control.reject(control.next(0.0, 100.0), 1e9);
  EXPECT_FALSE(control.can_shrink());
  EXPECT_EQ(control.next(0.0, 100.0).step_s, 0.125);
  control.reject(control.next(0.0, 100.0), std::numeric_limits<double>::infinity());
  EXPECT_EQ(control.next(0.0, 100.0).step_s, 0.125);
}

TEST(StepControl, TakesATimeFarFromZeroForWhatItIs) {
  // 1e9 s and a step of 1e-6 s: times are known to 1e-7 s.
  StepControl control(1e-6, 1e-9, 4);
  const double now_s = 1e9;
  const StepControl::Next next = control.next(now_s, now_s + 1e-6);
  EXPECT_TRUE(next.reaches_limit);
  EXPECT_EQ(next.step_s, 1e-6);
}

}  // namespace
}  // namespace portwave::test_step_control
