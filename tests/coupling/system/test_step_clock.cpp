// Time as state: equal steps are multiplied, not added up; a step of another size begins a new
// stretch.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

#include "portwave/coupling/system/step_clock.hpp"

namespace portwave::test_step_clock {
namespace {

constexpr double kSteps_s[] = {1e-9, 1e-3, 0.01, 0.1, 1.0 / 3.0, 7.0};

TEST(StepClock, OneStepSizeGivesTheBitsOfTheProduct) {
  for (const double h : kSteps_s) {
    StepClock clock;
    EXPECT_EQ(clock.time_s(), 0.0);
    for (std::int64_t n = 1; n <= 200000; ++n) {
      clock.advance(h);
      ASSERT_EQ(clock.time_s(), static_cast<double>(n) * h) << "h=" << h << " n=" << n;
      ASSERT_EQ(clock.steps(), n);
    }
    EXPECT_EQ(clock.last_step_s(), h);
  }
}

/// Control: a sum of the steps is something else.
TEST(StepClockControl, AddingUpIsNotTheSame) {
  double sum = 0.0;
  for (int n = 0; n < 200000; ++n) sum += 0.1;
  EXPECT_NE(sum, 200000 * 0.1);
}

TEST(StepClock, FarFromZeroTheErrorDoesNotGrowWithTheSteps) {
  constexpr double kStart_s = 1e9;
  StepClock clock(kStart_s);
  EXPECT_EQ(clock.time_s(), kStart_s);
  double summed = kStart_s, worst_of_sum = 0.0;
  const double ulp = std::nextafter(kStart_s, 2e9) - kStart_s;
  for (std::int64_t n = 1; n <= 100000; ++n) {
    clock.advance(0.01);
    summed += 0.01;
    const long double exact = static_cast<long double>(kStart_s) + n * 0.01L;
    ASSERT_LE(std::abs(static_cast<double>(clock.time_s() - exact)), ulp) << n;
    worst_of_sum = std::max(worst_of_sum, std::abs(static_cast<double>(summed - exact)));
  }
  EXPECT_GT(worst_of_sum, 100.0 * ulp) << "control: adding up would not do";
}

TEST(StepClock, AnotherStepSizeBeginsANewStretch) {
  StepClock clock;
  for (int n = 0; n < 1000; ++n) clock.advance(0.1);
  const double first = 1000 * 0.1;
  for (int n = 1; n <= 1000; ++n) {
    clock.advance(0.01);
    ASSERT_EQ(clock.time_s(), first + n * 0.01) << n;
  }
  const double second = clock.time_s();
  clock.advance(0.1);  // the first size again is a stretch of its own
  EXPECT_EQ(clock.time_s(), second + 0.1);
  EXPECT_EQ(clock.steps(), 2001);
  EXPECT_EQ(clock.last_step_s(), 0.1);
}

TEST(StepClock, TimeIncreasesWhenEveryStepIsAnother) {
  StepClock clock(5.0);
  long double exact = 5.0L;
  double before = clock.time_s();
  for (int n = 0; n < 10000; ++n) {
    const double h = 0.001 * (1.0 + 0.5 * std::sin(n));
    clock.advance(h);
    exact += h;
    ASSERT_GT(clock.time_s(), before) << n;
    before = clock.time_s();
  }
  EXPECT_NEAR(before, static_cast<double>(exact),
              10000 * 15.0 * std::numeric_limits<double>::epsilon());
  EXPECT_EQ(clock.steps(), 10000);
}

}  // namespace
}  // namespace portwave::test_step_clock
