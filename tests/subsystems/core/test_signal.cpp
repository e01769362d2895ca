#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace portwave {
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

TEST(Signal, RefusesEmptyListsAndTimesThatDoNotIncrease) {
  EXPECT_EQ(issues_of([] { Signal::sine_product(1.0, {}); }).at(0).where, "/sines");
  EXPECT_EQ(issues_of([] { Signal::piecewise_linear({}); }).at(0).where, "/knots");
  const Issues knots = issues_of([] {
    Signal::piecewise_linear({{0, 0}, {1, 0}, {1, 0}, {0.5, kNaN}});
  });
  ASSERT_EQ(knots.size(), 3U);
  EXPECT_EQ(knots[0].where, "/knots/2/time_s");
  EXPECT_EQ(knots[0].what, "times must increase strictly: 1 follows 1");
  EXPECT_EQ(knots[1].where, "/knots/3/value");
  EXPECT_EQ(knots[2].where, "/knots/3/time_s");
}

// What is refused above is refused for its defect alone.
TEST(SignalControl, AcceptsTheSameWithoutTheDefect) {
  EXPECT_TRUE(issues_of([] { Signal::sine_product(2.0, {{1.0, 0.0}}, 1.0); }).empty());
  EXPECT_TRUE(issues_of([] { Signal::piecewise_linear({{0, 0}}); }).empty());
  EXPECT_TRUE(issues_of([] { Signal::piecewise_linear({{0, 0}, {1, 0}, {1.5, 0}}); }).empty());
}

}  // namespace
}  // namespace portwave
