// Expressions over intervals: bounds hold, and change-overs are found wherever they are.

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/expression.hpp"

namespace portwave::test_expression_range {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

Expression of_time(const std::string& text) {
  static const std::vector<std::string> names = {"t"};
  return Expression::parse(text, names);
}

std::vector<double> changes(const std::string& text, double from, double to) {
  const Expression expression = of_time(text);
  std::vector<double> out;
  for (double t = from; out.size() < 100;) {
    t = expression.first_change(t, to);
    if (t == kNever) break;
    out.push_back(t);
  }
  return out;
}

void expect_near(const std::vector<double>& found, const std::vector<double>& want) {
  ASSERT_EQ(found.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) {
    EXPECT_NEAR(found[i], want[i], 1e-14 * std::abs(want[i])) << i;
  }
}

std::string random_expression(std::mt19937& random, int depth) {
  const auto pick = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  const auto sub = [&] { return random_expression(random, depth - 1); };
  if (depth == 0) {
    return pick(2) == 0 ? "t" : std::to_string(pick(9) - 4) + "." + std::to_string(pick(9) + 1);
  }
  switch (pick(16)) {
    case 0:
      return "(" + sub() + "+" + sub() + ")";
    case 1:
      return "(" + sub() + "-" + sub() + ")";
    case 2:
      return "(" + sub() + "*" + sub() + ")";
    case 3:
      return "(" + sub() + "/" + sub() + ")";
    case 4:
      return "(" + sub() + ")^" + std::to_string(pick(4));
    case 5:
      return "sin(" + sub() + ")";
    case 6:
      return "cos(" + sub() + ")";
    case 7:
      return "exp(" + sub() + ")";
    case 8:
      return "abs(" + sub() + ")";
    case 9:
      return "min(" + sub() + "," + sub() + ")";
    case 10:
      return "max(" + sub() + "," + sub() + ")";
    case 11:
      return "if(" + sub() + "<" + sub() + "," + sub() + "," + sub() + ")";
    case 12:
      return "floor(" + sub() + ")";
    case 13:
      return "mod(" + sub() + ",1.5)";
    case 14:
      return "tanh(" + sub() + ")";
    default:
      return "atan2(" + sub() + "," + sub() + ")";
  }
}

TEST(ExpressionRange, HoldsEveryValue) {
  std::mt19937 random(7);
  int bounded = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = random_expression(random, 1 + i % 4);
    const Expression expression = of_time(text);
    const double from = std::uniform_real_distribution(-4.0, 4.0)(random);
    const double to = from + std::exp(std::uniform_real_distribution(-12.0, 1.5)(random));
    const Expression::Range range = expression.over(from, to);
    bounded += std::isfinite(range.low) && std::isfinite(range.high) ? 1 : 0;
    for (int k = 1; k < 40; ++k) {
      const double t = from + (to - from) * k / 40.0;
      const double value = expression({&t, 1});
      if (!std::isfinite(value)) continue;
      const double slack = 1e-9 * (1.0 + std::abs(value));
      EXPECT_LE(range.low - slack, value) << text << " over " << from << ", " << to;
      EXPECT_GE(range.high + slack, value) << text << " over " << from << ", " << to;
    }
  }
  EXPECT_GT(bounded, 3000);
}

/// Between two change-overs an expression is as smooth as its samples say.
TEST(ExpressionRange, NothingJumpsWhereItIsCalledSmooth) {
  std::mt19937 random(11);
  int smooth = 0;
  for (int i = 0; i < 4000; ++i) {
    const std::string text = random_expression(random, 1 + i % 4);
    const Expression expression = of_time(text);
    const double from = std::uniform_real_distribution(-3.0, 3.0)(random);
    const double to = from + 0.3;
    const Expression::Range range = expression.over(from, to);
    if (!range.is_smooth || !(range.high - range.low < 10.0)) continue;
    ++smooth;
    // A jump is as high on a fine grid as on a coarse one.
    double coarse = 0.0, fine = 0.0;
    const auto value = [&](double t) { return expression({&t, 1}); };
    for (int k = 1; k < 3000; ++k) {
      const double t = from + (to - from) * k / 3000.0;
      fine = std::max(fine, std::abs(value(t + 1e-9) - value(t)));
      coarse = std::max(coarse, std::abs(value(t) - value(t - (to - from) / 3000.0)));
    }
    if (coarse > 0.1) continue;  // too fast for these samples
    EXPECT_LT(fine, 1e-2 * coarse + 1e-6) << text << " over " << from << ", " << to;
  }
  EXPECT_GT(smooth, 500);
}

TEST(ExpressionChanges, AreFoundOneByOne) {
  expect_near(changes("if(t >= 1, 1, 0)", 0, 10), {1.0});
  expect_near(changes("if(t<0.1,100,-1000)", 0, 10), {0.1});
  expect_near(changes("(t>=1)*(t<1.01)*10 - 5*((t>=4)*(t<4.01)) - (t>=5)*(t<5.01)", 0, 10),
              {1.0, 1.01, 4.0, 4.01, 5.0, 5.01});
  expect_near(changes("max(0, t-3) + abs(t-5)", 0, 10), {3.0, 5.0});
  expect_near(changes("mod(t, 2.5)", 0, 9), {2.5, 5.0, 7.5});
  expect_near(changes("floor(t) + round(t)", 0.1, 2.2), {0.5, 1.0, 1.5, 2.0});
  expect_near(changes("if(sin(2*pi*50*t) > 0, 1, 0)", 0, 0.045), {0.01, 0.02, 0.03, 0.04});
  expect_near(changes("sign(cos(t))", 0, 5), {std::acos(-1.0) / 2, 3 * std::acos(-1.0) / 2});
  expect_near(changes("if(t*t - t > 5, 1, 0)", 0, 10), {(1 + std::sqrt(21.0)) / 2});
}

TEST(ExpressionChanges, MeetTheNumberThatIsWritten) {
  for (const char* text : {"if(t >= 0.2535434, 1, 0)", "if(t > 0.2535434, 1, 0)",
                           "if(t < 0.2535434, 1, 0)", "abs(t - 0.2535434)"}) {
    EXPECT_EQ(changes(text, 0, 1), std::vector<double>{0.2535434}) << text;
    EXPECT_EQ(changes(text, 0, 0.2535434), std::vector<double>{0.2535434}) << text;
    EXPECT_EQ(changes(text, 0.2535434, 1), std::vector<double>{}) << text;
  }
  // Where halving the interval hits the change itself.
  EXPECT_EQ(changes("if(t >= 0.5, 1, 0)", 0, 1), std::vector<double>{0.5});
  EXPECT_EQ(changes("if(t > 0.25, 1, 0)*if(t < 0.75, 1, 0)", 0, 1),
            (std::vector<double>{0.25, 0.75}));
}

TEST(ExpressionChanges, AtZeroAreFoundFromBefore) {
  for (const char* text : {"if(t < 0, 0, 1)", "if(t <= 0, 0, 1)", "abs(t)", "sign(t/3)",
                           "max(0, 1000*t)", "if(mod(t, 0.4) < 0.15, 1, 0)"}) {
    for (const double from : {-0.0393, -0.1, -0x1p-7, -1e-9}) {
      EXPECT_EQ(of_time(text).first_change(from, 0.1), 0.0) << text << " from " << from;
      EXPECT_GT(of_time(text).first_change(0.0, 0.1), 0.1) << text;
    }
  }
}

TEST(ExpressionChanges, OfAMicrosecondAreSeenInAHundredSeconds) {
  std::mt19937 random(3);
  for (int i = 0; i < 200; ++i) {
    const double begin = std::uniform_real_distribution(0.0, 99.0)(random);
    const double end = begin + 1e-6;
    const std::string a = std::to_string(begin), b = std::to_string(end);
    const auto found = changes("if(t < " + a + ", 0, if(t < " + b + ", 1, 0))", 0, 100);
    ASSERT_EQ(found.size(), 2U) << a;
    EXPECT_EQ(found[0], std::stod(a));
    EXPECT_EQ(found[1], std::stod(b));
  }
}

TEST(ExpressionChanges, AreNotSeenWhereThereAreNone) {
  for (const char* text :
       {"5*sin(2*pi*t) + exp(-t)", "0*(t > 1)", "max(0, 1)", "if(1, t, -t)", "abs(t)",
        "if(t > 1, 2, 2)", "sqrt(t)", "t^3 - t", "mod(t, 100)", "1/(1 + t)", "(t > 20)*sin(t)"}) {
    EXPECT_EQ(changes(text, 0, 10), std::vector<double>{}) << text;
    EXPECT_TRUE(of_time(text).over(0, 10).is_smooth) << text;
  }
  EXPECT_EQ(changes("min(t, t + 1)", 0, 10),
            std::vector<double>{});  // seen in shorter intervals only
}

TEST(ExpressionChanges, ThatAccumulateEndTheSearch) {
  const Expression wild = of_time("if(sin(1/(t - 1)) > 0, 1, 0)");
  double t = 0.9;
  for (int i = 0; i < 50; ++i) {
    const double next = wild.first_change(t, 2.0);
    ASSERT_GT(next, t);
    if (next == kNever) break;
    t = next;
  }
}

TEST(ExpressionRange, FindsValuesOutsideOfBounds) {
  const Expression pulse = of_time("3*exp(-((t - 50.3)/1e-6)^2)");
  const auto found = pulse.farthest_outside(0.0, 100.0, 0.0, 0.0, 0.1);
  ASSERT_TRUE(found.has_value());
  EXPECT_NEAR(found->time, 50.3, 1e-6);
  EXPECT_GT(found->value, 2.5);
  EXPECT_EQ(found->value, pulse(found->time, {}));
  EXPECT_FALSE(pulse.farthest_outside(0.0, 50.0, 0.0, 0.0, 0.1).has_value());
  EXPECT_FALSE(pulse.farthest_outside(0.0, 100.0, 0.0, 0.0, 4.0).has_value());
  const auto below = of_time("1 - t^2").farthest_outside(-1.0, 2.0, 0.0, 1.0, 0.5);
  ASSERT_TRUE(below.has_value());
  EXPECT_LT(below->value, -2.0);
  EXPECT_FALSE(of_time("1/t").farthest_outside(1.0, 2.0, 0.5, 1.0, 1e-3).has_value());
}

TEST(ExpressionChanges, AreNotLookedForWhereNothingCan) {
  EXPECT_FALSE(of_time("3*sin(t) - t").can_change_over());
  EXPECT_TRUE(of_time("3*sin(t) - abs(t)").can_change_over());
}

}  // namespace
}  // namespace portwave::test_expression_range
