// Arithmetic expressions: their values against C++, their grammar, and what is said of bad ones.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/expression.hpp"

namespace portwave::test_expression {
namespace {

const std::vector<std::string> kNames = {"x", "y", "mass_2"};

double value(const std::string& text, const std::vector<double>& values = {3.0, -2.0, 0.25}) {
  return Expression::parse(text, kNames)(values);
}

std::string error_of(const std::string& text) {
  try {
    (void)Expression::parse(text, kNames);
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 1U) << text;
    EXPECT_EQ(error.issues()[0].where, "") << text;
    return error.issues()[0].what;
  }
  return "";
}

std::string repeated(const std::string& text, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Expression, OperatorsBindAsInArithmetic) {
  EXPECT_EQ(value("1+2*3"), 7.0);
  EXPECT_EQ(value("(1+2)*3"), 9.0);
  EXPECT_EQ(value("10-4-3"), 3.0);
  EXPECT_EQ(value("16/4/2"), 2.0);
  EXPECT_EQ(value("2^3^2"), 512.0);
  EXPECT_EQ(value("-2^2"), -4.0);
  EXPECT_EQ(value("(-2)^2"), 4.0);
  EXPECT_EQ(value("2^-1"), 0.5);
  EXPECT_EQ(value("2*-x"), -6.0);
  EXPECT_EQ(value("--x - +-1"), 4.0);
  EXPECT_EQ(value("-x*y"), 6.0);
  EXPECT_EQ(value("1+1 < 3"), 1.0);
  EXPECT_EQ(value("3 < 1+1"), 0.0);
  EXPECT_EQ(value(" \tx *\ty "), -6.0);
  EXPECT_EQ(value("1e3 + .5 + 2.5e-1"), 1000.75);
}

TEST(Expression, ComparisonsAreOneOrZero) {
  for (const double x : {-1.0, 2.0, 3.0}) {
    for (const double y : {-1.0, 2.0, 3.0}) {
      const std::vector<double> at = {x, y, 0.0};
      EXPECT_EQ(value("x < y", at), x < y);
      EXPECT_EQ(value("x<=y", at), x <= y);
      EXPECT_EQ(value("x>y", at), x > y);
      EXPECT_EQ(value("x >= y", at), x >= y);
      EXPECT_EQ(value("x == y", at), x == y);
      EXPECT_EQ(value("x!=y", at), x != y);
      EXPECT_EQ(value("if(x < y, x, y)", at), std::min(x, y));
    }
  }
}

TEST(Expression, FunctionsAreThoseOfTheStandardLibrary) {
  struct Case {
    const char* name;
    double (*function)(double);
  };
  const Case cases[] = {
      {"sin", std::sin},   {"cos", std::cos},   {"tan", std::tan},     {"asin", std::asin},
      {"acos", std::acos}, {"atan", std::atan}, {"sinh", std::sinh},   {"cosh", std::cosh},
      {"tanh", std::tanh}, {"exp", std::exp},   {"log", std::log},     {"sqrt", std::sqrt},
      {"abs", std::fabs},  {"ceil", std::ceil}, {"floor", std::floor}, {"round", std::round}};
  for (const Case& each : cases) {
    for (const double x : {0.1, 0.5, 0.9, 1.0}) {
      EXPECT_EQ(value(std::string(each.name) + "(x)", {x, 0.0, 0.0}), each.function(x))
          << each.name << " " << x;
    }
  }
  EXPECT_EQ(value("atan2(y, x)"), std::atan2(-2.0, 3.0));
  EXPECT_EQ(value("min(x, y)"), -2.0);
  EXPECT_EQ(value("max(x, y)"), 3.0);
  EXPECT_EQ(value("mod(7, 3)"), 1.0);
  EXPECT_EQ(value("mod(-1, 24)"), 23.0);
  EXPECT_EQ(value("sign(-3) + 10*sign(4) + 100*sign(0)"), 9.0);
  EXPECT_EQ(value("pi"), std::numbers::pi);
  EXPECT_EQ(value("x*sin(2*pi*mass_2) + y^2/4"),
            3.0 * std::sin(2.0 * std::numbers::pi * 0.25) + 1.0);
}

TEST(Expression, ArithmeticIsThatOfDouble) {
  EXPECT_EQ(value("1/0"), std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(value("sqrt(-1)")));
  // What is not chosen may be anything.
  EXPECT_EQ(value("if(x > 0, 5, 1/0)"), 5.0);
}

TEST(Expression, SaysWhatIsWrongAndInWhichColumn) {
  struct Case {
    std::string text, said;
  };
  for (const Case& each : {
           Case{"", "column 1: a number, a name or \"(\" is expected here"},
           Case{"2*", "column 3: a number"},
           Case{"2 x", "column 3: an operator or the end is expected here"},
           Case{"(1+2", "column 5: \")\" is expected here"},
           Case{"1+2)", "column 4: an operator or the end"},
           Case{"2*sin", "column 6: \"(\" is expected after sin"},
           Case{"sin(1, 2)", "column 6: sin takes 1 number"},
           Case{"min(1)", "column 6: min takes 2 numbers"},
           Case{"if(1, 2)", "column 8: if takes 3 numbers"},
           Case{"sin()", "column 5: a number"},
           Case{"2*mas_2", "column 3: there is no \"mas_2\""},
           Case{"2*mas_2", "Did you mean \"mass_2\"?"},
           Case{"sine(x)", "Did you mean \"sin\"?"},
           Case{"sine(x)", "functions: sin, cos"},
           Case{"2*(x < 0 ? 1 : 2)", "column 10: \")\" is expected here; conditions are if("},
           Case{"x**2", "column 3: a number, a name or \"(\" is expected here; powers are x^2"},
           Case{"x > 0 && x < 1",
                "column 7: an operator or the end is expected here; \"and\" is min"},
           Case{"1e999", "column 1: this is not a number"},
           Case{".", "column 1: this is not a number"},
           Case{"0x10", "column 2: an operator or the end"},
           Case{"1.2.3", "column 4: an operator or the end"},
           Case{"x = 3", "column 3: an operator or the end"},
           Case{"x & y", "column 3: an operator or the end"},
           Case{"\"x\"", "column 1: a number"},
           Case{"\xC3\xA4", "column 1: a number"},
           Case{std::string("x\0y", 3), "column 2: an operator or the end"},
       }) {
    EXPECT_NE(error_of(each.text).find(each.said), std::string::npos)
        << each.text << ": " << error_of(each.text);
  }
}

TEST(Expression, WhatIsNestedTooDeeplyIsRefusedAndWhatIsLongIsNot) {
  for (const std::string& text :
       {repeated("(", 5000) + "1", repeated("sin(", 2000), "2" + repeated("^2", 3000),
        repeated("1+(", 3000), repeated("min(1,", 1500)}) {
    EXPECT_NE(error_of(text).find("nested too deeply"), std::string::npos) << text.substr(0, 20);
  }
  EXPECT_EQ(value("0" + repeated("+1", 4000)), 4000.0);
  EXPECT_EQ(value(repeated("-", 9000) + "x"), 3.0);
  EXPECT_EQ(value(repeated("(", 60) + "x" + repeated(")", 60)), 3.0);
  EXPECT_NE(error_of(repeated("1+", 10000) + "1").find("at most 10000 characters"),
            std::string::npos);
}

TEST(Expression, KnowsItsVariables) {
  const Expression own = Expression::parse("x + 0*mass_2", kNames);
  EXPECT_TRUE(own.uses(0));
  EXPECT_FALSE(own.uses(1));
  EXPECT_TRUE(own.uses(2));
  EXPECT_EQ(own(5.0, std::vector<double>{1.0, 2.0}), 5.0);
  // A variable hides a function of its name.
  const std::vector<std::string> hiding = {"sin"};
  EXPECT_EQ(Expression::parse("2*sin", hiding)(std::vector<double>{4.0}), 8.0);
}

TEST(Expression, TellsNamesFromOtherTexts) {
  for (const char* const name : {"x", "_", "mass_2", "A1"}) EXPECT_TRUE(Expression::is_name(name));
  for (const char* const text : {"", "2x", "a b", "a.b", "\xC3\xA4", "a-b"}) {
    EXPECT_FALSE(Expression::is_name(text)) << text;
  }
  EXPECT_TRUE(Expression::is_reserved("pi"));
  EXPECT_TRUE(Expression::is_reserved("atan2"));
  EXPECT_FALSE(Expression::is_reserved("x"));
}

}  // namespace
}  // namespace portwave::test_expression
