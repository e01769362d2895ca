// Functions of numbers that write themselves down as expressions.

#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/catalogue/symbol.hpp"
#include "support/free_motion.hpp"

namespace portwave::test_symbol {
namespace {

// For numbers what expressions have for symbols.
double select(bool condition, double yes, double no) { return condition ? yes : no; }
double mod(double a, double b) { return a - b * std::floor(a / b); }
double sign(double x) { return static_cast<double>((x > 0.0) - (x < 0.0)); }

struct Case {
  std::string text;
  double (*of_numbers)(double, double);
};

template <class Function>
Case traced_case(Function) {
  return {traced(Function{}, "q", "p"),
          [](double q, double p) { return double{Function{}(q, p)}; }};
}

std::vector<Case> cases() {
  // NOLINTBEGIN(google-build-using-namespace): as users write them.
  using namespace std;
  return {
      traced_case([](auto q, auto p) { return p * p / 2 + 1 - cos(q); }),
      traced_case([](auto q, auto p) { return q - (p - q) - (q + p) * 3; }),
      traced_case([](auto q, auto p) { return q / (p / q) / p * (q / p); }),
      traced_case([](auto q, auto p) { return -q * -p - (-q - -p); }),
      traced_case([](auto q, auto p) { return pow(-q, 2) - pow(pow(q, 2), p) + pow(2, -q); }),
      traced_case([](auto q, auto p) { return -1.5 * q + q * -2 + p * 1e-7 - 1e20 * p; }),
      traced_case([](auto q, auto p) { return sqrt(abs(q)) + exp(-p) * log(fabs(q) + 1); }),
      traced_case([](auto q, auto p) { return asin(tanh(q)) + acos(tanh(p)) + atan2(q, p); }),
      traced_case([](auto q, auto p) { return sinh(q) + cosh(p) + tan(q / 3) + atan(p); }),
      traced_case([](auto q, auto p) { return floor(q) + ceil(p) + min(q, p) * max(q, 2 * p); }),
      traced_case([](auto q, auto p) { return mod(q, 0.3) + sign(p) + select(q < p, q, p * p); }),
      traced_case([](auto q, auto p) { return select((q <= p) == (p > 0.1), 1.0, q + (q != p)); }),
      traced_case([](auto q, auto p) {
        auto sum = 0 * q;
        for (int k = 1; k <= 4; ++k) sum += sin(k * q) * p / k;
        sum *= 2;
        sum -= q;
        sum /= 1 + p * p;
        return sum;
      }),
  };
  // NOLINTEND(google-build-using-namespace)
}

/// The text means what the function computes, operation by operation.
TEST(Symbols, AreWhatTheFunctionComputes) {
  const std::vector<std::string> names = {"q", "p"};
  std::mt19937 random(7);
  std::uniform_real_distribution<double> number(-2.0, 2.0);
  for (const Case& own : cases()) {
    const Expression expression = Expression::parse(own.text, names);
    for (int k = 0; k < 100; ++k) {
      const std::array<double, 2> at = {number(random), number(random)};
      const double value = expression(at), expected = own.of_numbers(at[0], at[1]);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(value)) << own.text;
      } else {
        EXPECT_NEAR(value, expected, 1e-15 * std::abs(expected)) << own.text;
      }
    }
  }
  // The values tell functions apart that differ by a pair of parentheses.
  const Expression other = Expression::parse("q - p - q - (q + p)*3", names);
  EXPECT_GT(std::abs(other(std::array{0.5, 0.25}) - cases()[1].of_numbers(0.5, 0.25)), 0.1);
}

TEST(Symbols, AreWrittenAsAPersonWould) {
  EXPECT_EQ(cases()[0].text, "p*p/2 + 1 - cos(q)");
  EXPECT_EQ(cases()[1].text, "q - (p - q) - (q + p)*3");
  EXPECT_EQ(cases()[2].text, "q/(p/q)/p*(q/p)");
  const auto matrix = [](auto q, auto p) { return 0 * q * q + q * 1 * p + 0.0 - 1 * p; };
  EXPECT_EQ(traced(matrix, "q", "p"), "q*p - p");
  const std::vector<StateVariable> states = {{"a", "m"}, {"b", "m"}, {"c", "m"}};
  const auto squares = [](auto x) {
    typename decltype(x)::value_type sum = 0.0;
    for (const auto& each : x) sum += each * each / 2;
    return sum;
  };
  EXPECT_EQ(traced(squares, states), "a*a/2 + b*b/2 + c*c/2");
  EXPECT_EQ(traced([](auto) { return 2.5; }, "q"), "2.5");
}

TEST(Symbols, RefuseWhatNoExpressionSays) {
  const auto error_of = [](const auto& make) -> std::string {
    try {
      make();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "none";
  };
  EXPECT_NE(error_of([] { Symbol::named("sin"); }).find("\"sin\" cannot be"), std::string::npos);
  EXPECT_NE(error_of([] { Symbol::named("2q"); }).find("\"2q\" cannot be the name"),
            std::string::npos);
  EXPECT_NE(
      error_of([] { Symbol(std::numeric_limits<double>::infinity()); }).find("finite, got inf"),
      std::string::npos);
  const auto doubles = [](auto q) {
    for (int k = 0; k < 64; ++k) q = q * q;
    return q;
  };
  EXPECT_NE(error_of([&] { traced(doubles, "q"); }).find("written out each time"),
            std::string::npos);
}

/// A part by a function is the part by the text.
TEST(Symbols, MakeParts) {
  const double m = 1.2, l = 0.5, g = 9.81;
  const auto pendulum = [&](std::string energy) -> std::shared_ptr<const Component> {
    return parts::port_hamiltonian(
               {.states = {{"q", "rad"}, {"p", "kg m^2/s"}},
                .ports = {{"shaft", Causality::effort_in, Domain::rotation, 1}},
                .constants = {{"m", m}, {"l", l}, {"g", g}},
                .energy = std::move(energy),
                .J = {{0, 1}, {-1, 0}},
                .R = {{0, 0}, {0, traced([](auto p) { return 0.02 + 0.1 * p * p; }, "p")}},
                .G = {{0}, {-1}}})
        .build();
  };
  const auto by_function = pendulum(
      traced([=](auto q, auto p) { return p * p / (2 * m * l * l) + m * g * l * (1 - cos(q)); },
             "q", "p"));
  const auto by_text = pendulum("p^2/(2*m*l^2) + m*g*l*(1 - cos(q))");
  const std::vector<double> x = testing::move_freely(by_function, 1, 0.01, 100, {2.5, 0.1});
  const std::vector<double> y = testing::move_freely(by_text, 1, 0.01, 100, {2.5, 0.1});
  EXPECT_NEAR(x[0], y[0], 1e-12);
  EXPECT_NEAR(x[1], y[1], 1e-12);
  EXPECT_GT(std::abs(x[0] - 2.5), 0.1);
}

}  // namespace
}  // namespace portwave::test_symbol
