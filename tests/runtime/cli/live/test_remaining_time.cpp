// How long a run will take yet, without a clock: times are made up.

#include <cmath>
#include <cstdint>
#include <optional>

#include <gtest/gtest.h>

#include "live/remaining_time.hpp"

namespace portwave::cli::test_remaining_time {
namespace {

/// Steps of the same length, noted as a line on a terminal does: every 0.2 s.
struct EvenRun {
  std::int64_t steps;
  double step_s;

  std::optional<double> left_s(double now_s) const {
    RemainingTime remaining(steps, 1);
    double at_s = 0.0;
    for (; at_s <= now_s; at_s += 0.2) {
      remaining.note(static_cast<std::int64_t>(at_s / step_s), at_s);
    }
    return remaining.left_s(now_s);
  }
};

TEST(RemainingTime, OfEvenStepsIsRight) {
  for (const double step_s : {1e-6, 1e-3, 0.3}) {
    const EvenRun run{static_cast<std::int64_t>(60.0 / step_s), step_s};
    for (const double now_s : {2.0, 20.0, 50.0}) {
      const std::optional<double> left_s = run.left_s(now_s);
      ASSERT_TRUE(left_s) << "step " << step_s << " s, at " << now_s << " s";
      EXPECT_NEAR(*left_s, 60.0 - now_s, 0.1 * (60.0 - now_s) + 0.4)
          << "step " << step_s << " s, at " << now_s << " s";
    }
  }
}

TEST(RemainingTime, SaysNothingWithoutEvidence) {
  RemainingTime remaining(1'000'000, 1);
  EXPECT_FALSE(remaining.left_s(0.0));
  EXPECT_FALSE(remaining.left_s(30.0)) << "nothing was done yet";
  remaining.note(0, 30.0);
  EXPECT_FALSE(remaining.left_s(30.0));
  remaining.note(1, 30.0);
  EXPECT_FALSE(remaining.left_s(30.0)) << "one slow step, of a million";
  EXPECT_FALSE(remaining.rate());

  RemainingTime quick(1000, 1);
  quick.note(400, 0.2);
  EXPECT_FALSE(quick.left_s(0.2)) << "a fifth of a second";
}

TEST(RemainingTime, TheFirstStepIsForgotten) {
  RemainingTime remaining(10'001, 1);
  remaining.note(1, 5.0);  // touches all memory; then 1000 steps a second
  for (int i = 1; i <= 5; ++i) remaining.note(1 + 200 * i, 5.0 + 0.2 * i);
  ASSERT_TRUE(remaining.left_s(6.0));
  EXPECT_NEAR(*remaining.left_s(6.0), 9.0, 0.1);
  EXPECT_NEAR(*remaining.rate(), 1000.0, 1.0);
}

TEST(RemainingTime, CountsWindowsNotTheirSteps) {
  // Windows of 500 steps, each computed within 5 s in its first step; 20 of them.
  RemainingTime remaining(10'000, 500);
  remaining.note(1, 5.0);
  ASSERT_TRUE(remaining.left_s(5.0)) << "a twentieth is done";
  EXPECT_NEAR(*remaining.left_s(5.0), 95.0, 1e-9);
  remaining.note(2, 5.0);
  remaining.note(500, 5.001);
  EXPECT_NEAR(*remaining.left_s(5.001), 95.0, 0.01) << "the other steps are no news";

  RemainingTime many(1'000'000, 500);
  many.note(1, 5.0);
  EXPECT_FALSE(many.left_s(5.0)) << "one window of two thousand";
  many.note(501, 10.0);
  many.note(1001, 15.0);
  ASSERT_TRUE(many.left_s(15.0));
  EXPECT_NEAR(*many.left_s(15.0), 1997.0 * 5.0, 1.0);
}

TEST(RemainingTimeControl, StepByStepAWindowLooksAbsurd) {
  RemainingTime remaining(100'000, 1);  // told nothing of windows
  remaining.note(1, 5.0);
  remaining.note(2, 10.0);
  remaining.note(3, 15.0);
  EXPECT_GT(remaining.left_s(15.0).value_or(0.0), 4e5);
}

TEST(RemainingTime, FallsSmoothlyWithinAWindow) {
  RemainingTime remaining(5000, 500);
  for (int window = 0; window < 4; ++window) remaining.note(500 * window + 1, 5.0 * (window + 1));
  double before_s = *remaining.left_s(20.0);
  EXPECT_NEAR(before_s, 30.0, 1e-9);
  for (double now_s = 20.2; now_s < 25.0; now_s += 0.2) {  // as long as the windows before
    const double left_s = *remaining.left_s(now_s);
    EXPECT_NEAR(left_s, before_s - 0.2, 1e-9);
    before_s = left_s;
  }
  for (double now_s = 25.2; now_s < 60.0; now_s += 0.2) {  // and far longer
    const double left_s = *remaining.left_s(now_s);
    EXPECT_LT(std::abs(left_s - before_s), 0.5) << "no jumps, at " << now_s;
    before_s = left_s;
  }
  EXPECT_GT(before_s, 30.0) << "windows that take longer make it rise";
}

TEST(RemainingTime, SaysNothingOfALastWindowThatIsLate) {
  RemainingTime remaining(1000, 500);
  remaining.note(1, 5.0);
  EXPECT_NEAR(*remaining.left_s(9.0), 1.0, 1e-9);
  EXPECT_FALSE(remaining.left_s(11.0));
  remaining.note(501, 12.0);
  EXPECT_FALSE(remaining.left_s(12.0)) << "all is done";
}

TEST(RemainingTime, FollowsARunThatGetsSlower) {
  RemainingTime remaining(2'000'000, 1);
  std::int64_t done = 0;
  double now_s = 0.0;
  for (; now_s < 10.0; now_s += 0.2) remaining.note(done += 20'000, now_s);
  for (; now_s < 40.0; now_s += 0.2) remaining.note(done += 2'000, now_s);
  const double truth_s = static_cast<double>(2'000'000 - done) / 10'000.0;
  EXPECT_NEAR(*remaining.left_s(now_s - 0.2), truth_s, 0.25 * truth_s);
}

TEST(DurationText, ReadsAsPeopleSayIt) {
  EXPECT_EQ(duration_text(0.0), "0 s");
  EXPECT_EQ(duration_text(-1.0), "0 s");
  EXPECT_EQ(duration_text(41.6), "42 s");
  EXPECT_EQ(duration_text(59.6), "1 min 0 s");
  EXPECT_EQ(duration_text(200.0), "3 min 20 s");
  EXPECT_EQ(duration_text(2.0 * 3600.0 + 5.0 * 60.0), "2 h 5 min");
  EXPECT_EQ(duration_text(12.0 * 86400.0), "12 days");
  EXPECT_EQ(duration_text(1e300), "more than 1000 days");
  EXPECT_EQ(duration_text(std::nan("")), "more than 1000 days");
}

}  // namespace
}  // namespace portwave::cli::test_remaining_time
