#include <cmath>
#include <functional>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/signal.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave::test_signal {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

template <class Make>
Issues issues_of(Make make) {
  try {
    make();
  } catch (const ConfigError& error) {
    return error.issues();
  }
  return {};
}

TEST(Signal, DefaultAndConstantDoNotDependOnTime) {
  for (const double t : {-1.0, 0.0, 0.3, 1e9}) {
    EXPECT_EQ(Signal()(t), 0.0) << "t=" << t;
    EXPECT_EQ(Signal::constant(-2.5)(t), -2.5) << "t=" << t;
  }
}

// The source of the circuit benchmark: i(t) = sin(2π50t) sin(2π500t).
TEST(Signal, SineProductIsTheProductOfItsSines) {
  const double pi = std::numbers::pi;
  const Signal current =
      Signal::sine_product(1.0, {{.frequency_Hz = 50.0}, {.frequency_Hz = 500.0}});
  const Signal shifted =
      Signal::sine_product(3.0, {{.frequency_Hz = 0.25, .phase_rad = pi / 2.0}}, 0.5);
  for (int i = 0; i <= 1000; ++i) {
    const double t = 1e-4 * i;
    EXPECT_NEAR(current(t), std::sin(2 * pi * 50 * t) * std::sin(2 * pi * 500 * t), 1e-12)
        << "t=" << t;
    EXPECT_NEAR(shifted(t), 0.5 + 3.0 * std::cos(0.5 * pi * t), 1e-12) << "t=" << t;
  }
  EXPECT_NEAR(current(0.0005), std::sin(0.05 * pi), 1e-12);  // a crest of the fast sine
}

TEST(Signal, AnExpressionIsAFunctionOfTime) {
  const Signal signal = Signal::expression("5*sin(2*pi*t) + if(t >= 1, 2, 0)");
  for (const double t : {-1.0, 0.0, 0.3, 0.999, 1.0, 7.5}) {
    EXPECT_EQ(signal(t), 5.0 * std::sin(2.0 * std::numbers::pi * t) + (t >= 1.0 ? 2.0 : 0.0)) << t;
  }
  EXPECT_EQ(signal.next_kink(0.0), kInfinity);
  const Issues issues = issues_of([] { (void)Signal::expression("sin(u)"); });
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_EQ(issues[0].where, "/expression");
}

TEST(Signal, PiecewiseLinearMeetsItsKnotsExactly) {
  const std::vector<Signal::Knot> knots = {{-1.0, 0.1}, {0.3, 0.7}, {0.4, -5.0}, {7.0, 1e300}};
  const Signal signal = Signal::piecewise_linear(knots);
  for (const Signal::Knot& knot : knots) EXPECT_EQ(signal(knot.time_s), knot.value);
  EXPECT_EQ(signal(-1e9), 0.1);
  EXPECT_EQ(signal(1e9), 1e300);
}

TEST(Signal, PiecewiseLinearIsLinearBetweenItsKnots) {
  const Signal signal = Signal::piecewise_linear({{1.0, 10.0}, {3.0, 20.0}, {4.0, 0.0}});
  for (int i = 0; i <= 100; ++i) {
    const double s = 0.01 * i;
    EXPECT_NEAR(signal(1.0 + 2.0 * s), 10.0 + 10.0 * s, 1e-13) << "s=" << s;
    EXPECT_NEAR(signal(3.0 + s), 20.0 - 20.0 * s, 1e-13) << "s=" << s;
  }
}

TEST(Signal, CallbackIsCalledWithTheTimeAndCopiesAgree) {
  const Signal square = Signal::callback([](double t) { return t * t; });
  const Signal copy = square;
  for (const double t : {-2.0, 0.0, 1.5}) {
    EXPECT_EQ(square(t), t * t);
    EXPECT_EQ(copy(t), t * t);
  }
}

TEST(Signal, RefusesWhatIsNotFinite) {
  EXPECT_EQ(issues_of([] { Signal::constant(kNaN); }).size(), 1U);
  EXPECT_EQ(issues_of([] { Signal::callback(nullptr); }).size(), 1U);
  const Issues sines = issues_of([] {
    Signal::sine_product(kNaN, {{1.0, 0.0}, {kInfinity, 0.0}, {1.0, kNaN}}, kInfinity);
  });
  ASSERT_EQ(sines.size(), 4U);
  EXPECT_EQ(sines[0].where, "/amplitude");
  EXPECT_EQ(sines[1].where, "/offset");
  EXPECT_EQ(sines[2].where, "/sines/1/frequency_Hz");
  EXPECT_EQ(sines[3].where, "/sines/2/phase_rad");
  EXPECT_EQ(sines[3].what, "must be finite, got nan");
}

TEST(Signal, RefusesEmptyListsAndTimesThatDecrease) {
  EXPECT_EQ(issues_of([] { Signal::sine_product(1.0, {}); }).at(0).where, "/sines");
  EXPECT_EQ(issues_of([] { Signal::piecewise_linear({}); }).at(0).where, "/knots");
  const Issues knots = issues_of([] {
    Signal::piecewise_linear({{0, 0}, {1, 0}, {1, 1}, {1, 2}, {0.5, kNaN}});
  });
  ASSERT_EQ(knots.size(), 3U);
  EXPECT_EQ(knots[0].where, "/knots/3/time_s");
  EXPECT_EQ(knots[0].what,
            "more than two knots at 1 s: a jump has two, the value before it and the one after");
  EXPECT_EQ(knots[1].where, "/knots/4/value");
  EXPECT_EQ(knots[2].where, "/knots/4/time_s");
  EXPECT_EQ(knots[2].what,
            "times must not decrease: 0.5 follows 1. Two knots of equal time are a jump");
}

// What is refused above is refused for its defect alone.
TEST(SignalControl, AcceptsTheSameWithoutTheDefect) {
  EXPECT_TRUE(issues_of([] { Signal::sine_product(2.0, {{1.0, 0.0}}, 1.0); }).empty());
  EXPECT_TRUE(issues_of([] { Signal::piecewise_linear({{0, 0}}); }).empty());
  EXPECT_TRUE(issues_of([] { Signal::piecewise_linear({{0, 0}, {1, 0}, {1.5, 0}}); }).empty());
  EXPECT_TRUE(issues_of([] {
                Signal::piecewise_linear({{0, 0}, {0, 1}, {1, 0}, {1, 2}});
              }).empty());
}

TEST(Signal, TwoKnotsOfEqualTimeAreAJump) {
  const Signal signal = Signal::piecewise_linear({{0, 1}, {0, 2}, {1, 4}, {1, -3}, {2, 0}, {2, 7}});
  EXPECT_EQ(signal(-1e-300), 1.0);
  EXPECT_EQ(signal(0.0), 2.0) << "at the jump it is what it is after it";
  EXPECT_EQ(signal(0.5), 3.0);
  EXPECT_NEAR(signal(std::nextafter(1.0, 0.0)), 4.0, 1e-14);
  EXPECT_EQ(signal(1.0), -3.0);
  EXPECT_EQ(signal(2.0), 7.0);
  EXPECT_EQ(signal(1e9), 7.0);
  EXPECT_EQ(signal.next_kink(0.0), 1.0);
  EXPECT_EQ(signal.next_kink(1.0), 2.0);
  EXPECT_EQ(signal.next_kink(2.0), kInfinity);
}

TEST(Signal, ASampleAtAJumpIsThatAfterItHoweverTheTimeWasRounded) {
  const Signal signal = Signal::piecewise_linear({{0, 0}, {0.35, 0}, {0.35, 1}, {1, 1}});
  const Signal far = Signal::piecewise_linear({{0, 0}, {1e6 + 0.3, 0}, {1e6 + 0.3, 1}});
  int before = 0;
  for (int n = 1; n <= 1000; ++n) {
    const double period = 0.35 / n;
    EXPECT_EQ(signal.at_sample(n * period, period), 1.0) << n;
    EXPECT_EQ(signal.at_sample((n - 0.01) * period, period), 0.0) << n;
    EXPECT_EQ(far.at_sample(1e6 + n * (0.3 / n), 0.3 / n), 1.0) << n;
    before += signal(n * period) == 0.0 ? 1 : 0;
  }
  EXPECT_GT(before, 0) << "control: rounding alone puts some of these before the jump";
}

/// ∫ of a table times τᵏ over a step, τ from 0 to 1 in it, by the trapezoidal rule between all knots and
/// many points between them, with the ends of each stretch taken from inside.
double moment(const Signal& signal, const std::vector<double>& breaks, double begin, double length,
              int k) {
  std::vector<double> ends = {begin};
  for (const double t : breaks) {
    if (t > begin && t < begin + length) ends.push_back(t);
  }
  ends.push_back(begin + length);
  double sum = 0.0;
  for (std::size_t i = 0; i + 1 < ends.size(); ++i) {
    constexpr int kPoints = 4000;
    const double width = (ends[i + 1] - ends[i]) / kPoints;
    for (int j = 0; j < kPoints; ++j) {
      const double t = ends[i] + (j + 0.5) * width;
      sum += width / length * signal(t) * std::pow((t - begin) / length, k);
    }
  }
  return sum;
}

double moment_of_stages(const Signal& signal, double begin, double length, int stages, int k) {
  const StageRule& rule = gauss_stages(stages);
  double sum = 0.0;
  for (int i = 0; i < stages; ++i) {
    const double c = rule.c[static_cast<std::size_t>(i)];
    const double u = signal.in_step({begin + c * length, begin, length, c, stages});
    sum += rule.b[static_cast<std::size_t>(i)] * std::pow(c, k) * u;
  }
  return sum;
}

TEST(Signal, AStepSeesTheMeanOfATableWhereverItsKnotsLie) {
  const std::vector<double> times = {0.13, 0.4, 0.4, 0.41, 0.42, 1.7, 1.7};
  std::vector<Signal::Knot> knots;
  for (std::size_t i = 0; i < times.size(); ++i) {
    knots.push_back({times[i], std::sin(9.0 * static_cast<double>(i)) + 0.3});
  }
  const Signal signal = Signal::piecewise_linear(knots);
  for (const double length : {0.05, 0.3, 0.77, 3.0}) {
    for (int n = -1; n < 20; ++n) {
      const double begin = 0.11 * n;
      for (int stages = 1; stages <= kMostStages; ++stages) {
        for (int k = 0; k < stages; ++k) {
          EXPECT_NEAR(moment_of_stages(signal, begin, length, stages, k),
                      moment(signal, times, begin, length, k), 2e-7)
              << "from " << begin << " for " << length << ", stages " << stages << ", moment " << k;
        }
      }
    }
  }
}

TEST(SignalControl, SamplesAtTheStagesMissTheMean) {
  const Signal table = Signal::piecewise_linear({{0, 0}, {1, 0}, {1, 0.1}, {4, 0.1}});
  const Signal sampled = Signal::callback([table](double t) { return table(t); });
  EXPECT_NEAR(moment_of_stages(table, 0.7, 0.5, 3, 0), 0.1 * 0.2 / 0.5, 1e-15);
  EXPECT_GT(std::abs(moment_of_stages(sampled, 0.7, 0.5, 3, 0) - 0.1 * 0.2 / 0.5), 1e-3);
}

TEST(Signal, WithoutKnotsInTheStepATableIsSampled) {
  const Signal signal = Signal::piecewise_linear({{0, 0.3}, {0.1, 0.7}, {0.7, -1.1}});
  for (int stages = 1; stages <= kMostStages; ++stages) {
    for (int i = 0; i < stages; ++i) {
      const double c = gauss_stages(stages).c[static_cast<std::size_t>(i)];
      // The ends of the step are knots but for rounding.
      const double begin = 0.1 * (1.0 - 1e-14), length = 0.6 * (1.0 + 1e-14);
      const double time = begin + c * length;
      EXPECT_EQ(signal.in_step({time, begin, length, c, stages}), signal(time));
    }
  }
}

// Rates: a flow source that follows a displacement.

/// What the stages of a step integrate of a rate.
double followed(const Signal& rate, double begin_s, double length_s, const StageRule& rule) {
  double sum = 0.0;
  for (int i = 0; i < rule.count; ++i) {
    const auto own = static_cast<std::size_t>(i);
    sum += length_s * rule.b[own] *
           rate.in_step({.time_s = begin_s + rule.c[own] * length_s,
                         .begin_s = begin_s,
                         .length_s = length_s,
                         .tau = rule.c[own],
                         .stages = rule.count});
  }
  return sum;
}

TEST(Signal, ARateLeadsToItsDisplacementAtEveryStepsEnd) {
  const std::vector<std::pair<Signal, std::function<double(double)>>> cases = {
      {Signal::expression("0.05*sin(2*pi*t) + t^2"),
       [](double t) { return 0.05 * std::sin(2 * std::numbers::pi * t) + t * t; }},
      {Signal::expression("abs(sin(3*t))"), [](double t) { return std::abs(std::sin(3 * t)); }},
      {Signal::expression("0.05*(t > 0.731)"), [](double t) { return t > 0.731 ? 0.05 : 0.0; }},
      {Signal::piecewise_linear({{0.2, 1.0}, {0.4, 2.0}, {0.4, -1.0}, {1.1, 3.0}}),
       Signal::piecewise_linear({{0.2, 1.0}, {0.4, 2.0}, {0.4, -1.0}, {1.1, 3.0}})},
      {Signal::sine_product(2.0, {{.frequency_Hz = 3.0}, {.frequency_Hz = 0.7, .phase_rad = 0.3}}),
       [](double t) {
         return 2.0 * std::sin(6 * std::numbers::pi * t) *
                std::sin(1.4 * std::numbers::pi * t + 0.3);
       }},
      {Signal::chirp({.amplitude = 0.1, .from_Hz = 1.0, .to_Hz = 9.0, .duration_s = 1.0}),
       Signal::chirp({.amplitude = 0.1, .from_Hz = 1.0, .to_Hz = 9.0, .duration_s = 1.0})},
      {Signal::noise({.standard_deviation = 0.1, .interval_s = 0.03}),
       Signal::noise({.standard_deviation = 0.1, .interval_s = 0.03})},
      {Signal::callback([](double t) { return std::exp(t); }),
       [](double t) { return std::exp(t); }},
  };
  for (std::size_t k = 0; k < cases.size(); ++k) {
    const Signal rate = Signal::rate_of(cases[k].first);
    EXPECT_TRUE(rate.is_rate());
    for (const StageNodes nodes : {StageNodes::gauss, StageNodes::radau}) {
      for (int stages = 1; stages <= kMostStages; ++stages) {
        const StageRule& rule = stage_rule(stages, nodes);
        double s = cases[k].second(0.0);
        constexpr double kStep_s = 0.0133;
        for (int n = 0; n < 120; ++n) {
          s += followed(rate, n * kStep_s, kStep_s, rule);
          EXPECT_NEAR(s, cases[k].second((n + 1) * kStep_s), 1e-12)
              << k << " " << stages << " " << n;
        }
      }
    }
  }
}

// The higher moments of what a step sees are those of the true rate: the first one, ∫τ ṡ, is s(1) − ∫s.
TEST(Signal, ARateHasTheMomentsOfTheTrueOne) {
  const Signal rate = Signal::rate_of(Signal::expression("0.3*(t > 0.2) + if(t < 0.5, t^2, 0.25)"));
  const StageRule& rule = gauss_stages(3);
  double first = 0.0, second = 0.0;
  for (int i = 0; i < 3; ++i) {
    const auto own = static_cast<std::size_t>(i);
    const double p = rate.in_step(
        {.time_s = rule.c[own], .begin_s = 0.0, .length_s = 1.0, .tau = rule.c[own], .stages = 3});
    first += rule.b[own] * rule.c[own] * p;
    second += rule.b[own] * rule.c[own] * rule.c[own] * p;
  }
  // ∫τ·2τ to 0.5, and the jump at 0.2.
  EXPECT_NEAR(first, 2.0 * 0.125 / 3.0 + 0.3 * 0.2, 1e-12);
  EXPECT_NEAR(second, 2.0 * 0.0625 / 4.0 + 0.3 * 0.04, 1e-12);
}

// What jumps at the common end of two steps belongs to the later one, whichever way the times were rounded.
TEST(Signal, AJumpOfADisplacementAtAStepsEndIsNeitherLostNorCountedTwice) {
  for (const Signal& s : {Signal::expression("0.05*(t >= 0.3)"),
                          Signal::piecewise_linear({{0.3, 0.0}, {0.3, 0.05}})}) {
    const Signal rate = Signal::rate_of(s);
    double sum = 0.0;
    for (int n = 0; n < 10; ++n) {
      const double own = followed(rate, n * 0.1, 0.1, gauss_stages(1));
      EXPECT_NEAR(own, n == 3 ? 0.05 : 0.0, 1e-15) << n;
      sum += own;
    }
    EXPECT_NEAR(sum, 0.05, 1e-15);
  }
}

TEST(Signal, StepsOfASweepCountAJumpOnce) {
  for (const Signal& s :
       {Signal::expression("0.05*(t >= 0.5)"), Signal::expression("0.05*(t > 0.5)"),
        Signal::expression("0.05*floor(2*t)"),
        Signal::piecewise_linear({{0.5, 0.0}, {0.5, 0.05}})}) {
    const Signal rate = Signal::rate_of(s);
    for (const double h : {0.01, 0.005, 0.001, 0.0125, 1.0 / 30.0}) {
      double sum = 0.0;
      for (int n = 0; n * h < 0.8; ++n) {
        const double mid_s = n * h + 0.5 * h;  // as steps know their times
        sum += followed(rate, mid_s - 0.5 * h, h, gauss_stages(2));
      }
      EXPECT_NEAR(sum, 0.05, 1e-14) << h;
    }
  }
}

TEST(Signal, StepsOfOtherLengthsAgreeAboutAJumpAtTheirCommonEnd) {
  const Signal rate = Signal::rate_of(Signal::expression("0.05*(t >= 0.5)"));
  for (const double off_s : {-1e-11, -1e-16, 0.0, 1e-16, 1e-11}) {
    const double end_s = 0.5 + off_s;
    const double sum = followed(rate, end_s - 0.25, 0.25, gauss_stages(1)) +
                       followed(rate, end_s, 1e-8, gauss_stages(2));
    EXPECT_NEAR(sum, 0.05, 1e-14) << off_s;
  }
}

// Both ends of a step are sampled by methods without waves: each sees the side of a jump that lies in the step.
TEST(Signal, AStepSeesItsOwnSideOfAJumpAtEitherEnd) {
  for (const Signal& u :
       {Signal::expression("if(t > 0.75, 30 + t, t)"),
        Signal::expression("if(t >= 0.75, 30 + t, t)"),
        Signal::piecewise_linear({{0.0, 0.0}, {0.75, 0.75}, {0.75, 30.75}, {2.0, 32.0}})}) {
    for (const double off_s : {0.0, -1e-16, 1e-16}) {
      const double jump_s = 0.75 + off_s, h = 0.25;
      EXPECT_NEAR(u.in_step({jump_s, jump_s, h, 0.0, 3}), 30.75, 1e-12) << off_s;
      EXPECT_NEAR(u.in_step({jump_s, jump_s - h, h, 1.0, 3}), 0.75, 1e-12) << off_s;
    }
    EXPECT_EQ(u.in_step({0.5, 0.5, 0.2, 0.0, 3}), u(0.5)) << "control: no jump";
    EXPECT_EQ(u.in_step({1.0, 1.0, 0.2, 0.0, 3}), u(1.0)) << "control: no jump";
  }
}

TEST(SignalControl, SampledRatesMissAJumpAndAKink) {
  const Signal s = Signal::expression("0.05*(t > 0.731) + abs(t - 0.5)");
  double sum = 0.5;
  for (int n = 0; n < 100; ++n) sum += 0.01 * Signal::rate_of(s)((n + 0.3) * 0.01);
  EXPECT_GT(std::abs(sum - s(1.0)), 0.04);
}

TEST(Signal, ARateAtAPointIsTheSlope) {
  const double pi = std::numbers::pi;
  const Signal own = Signal::rate_of(Signal::expression(
      "sin(2*pi*t)*exp(-t) + sqrt(1 + t^2) - log(2 + t)/(1 + t) + max(t, 0.2)^3 + atan2(t, 1 + t) "
      "+ tanh(t) + mod(3*t, 0.7) + if(t > 0.5, cos(t), asin(t/2)) + 2^t"));
  const auto slope = [&](double t) {
    return 2 * pi * std::cos(2 * pi * t) * std::exp(-t) - std::sin(2 * pi * t) * std::exp(-t) +
           t / std::sqrt(1 + t * t) - 1 / ((2 + t) * (1 + t)) +
           std::log(2 + t) / ((1 + t) * (1 + t)) + (t > 0.2 ? 3 * t * t : 0.0) +
           1.0 / ((1 + t) * (1 + t) + t * t) + 1 - std::pow(std::tanh(t), 2) + 3.0 +
           (t > 0.5 ? -std::sin(t) : 0.5 / std::sqrt(1 - t * t / 4)) + std::log(2) * std::pow(2, t);
  };
  for (const double t : {0.05, 0.3, 0.61, 0.9}) EXPECT_NEAR(own(t), slope(t), 1e-12) << t;
  const Signal table = Signal::rate_of(Signal::piecewise_linear({{0.0, 1.0}, {2.0, 4.0}}));
  EXPECT_EQ(table(-1.0), 0.0);
  EXPECT_EQ(table(0.0), 1.5);
  EXPECT_EQ(table(2.0), 0.0);
  EXPECT_NEAR(Signal::rate_of(Signal::callback([](double t) { return t * t; }))(3.0), 6.0, 1e-9);
  EXPECT_EQ(Signal::rate_of(Signal::constant(3.0))(1.0), 0.0);
}

TEST(Signal, WhatIsSetHasNoRate) {
  EXPECT_EQ(issues_of([] { (void)Signal::rate_of(Signal::settable()); }).size(), 1U);
  const Signal rate = Signal::rate_of(Signal::expression("t"));
  EXPECT_EQ(issues_of([&] { (void)Signal::rate_of(rate); }).size(), 1U);
  EXPECT_NE(rate.digest(), Signal::expression("t").digest());
  EXPECT_NE(rate.digest(), Signal::rate_of(Signal::expression("2*t")).digest());
}

TEST(Signal, JumpsOfADisplacementAreKnown) {
  const auto jump = [](const Signal& s, double from, double to) {
    return Signal::rate_of(s).displacement_jump(from, to);
  };
  const Signal step = Signal::expression("0.05*(t > 0.3) + abs(t - 0.2)");
  ASSERT_TRUE(jump(step, 0.0, 1.0).has_value());
  EXPECT_NEAR(jump(step, 0.0, 1.0)->time_s, 0.3, 1e-12);
  EXPECT_NEAR(jump(step, 0.0, 1.0)->after - jump(step, 0.0, 1.0)->before, 0.05, 1e-8);
  EXPECT_FALSE(jump(step, 0.0, 0.29).has_value()) << "the kink at 0.2 is none";
  EXPECT_FALSE(jump(step, 0.31, 9.0).has_value());
  const Signal table = Signal::piecewise_linear({{0.0, 0.0}, {1.0, 2.0}, {1.0, 5.0}});
  ASSERT_TRUE(jump(table, 0.5, 1.0).has_value());
  EXPECT_EQ(jump(table, 0.5, 1.0)->after, 5.0);
  EXPECT_FALSE(jump(table, 1.0, 2.0).has_value());
  EXPECT_FALSE(Signal::expression("t > 1").displacement_jump(0.0, 2.0).has_value());
}

}  // namespace
}  // namespace portwave::test_signal
