// Expressions as graphs: exact derivatives against differences, one node for what is equal, and programs whose
// lanes have the bits that they have alone.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/subsystems/base/error.hpp"
#include "portwave/subsystems/base/expression.hpp"
#include "portwave/subsystems/base/expression_graph.hpp"
#include "portwave/subsystems/base/expression_tape.hpp"

namespace portwave::test_expression_graph {
namespace {

using Node = ExpressionGraph::Node;
using Numbers = std::vector<double>;

const std::vector<std::string> kNames = {"x", "y", "z"};

struct Parsed {
  explicit Parsed(const std::string& text)
      : expression(Expression::parse(text, kNames)),
        graph(3),
        node(graph.add(expression, std::array<Node, 3>{0, 1, 2})) {}

  Numbers values(const std::vector<Node>& nodes, const Numbers& x) const {
    Numbers out(nodes.size());
    ExpressionTape(graph, nodes)(x.data(), out.data());
    return out;
  }
  double value(const Numbers& x) const { return values({node}, x)[0]; }

  Expression expression;
  ExpressionGraph graph;
  Node node;
};

/// The largest difference of the gradient and the Hessian from central differences with a step of 1e-5, beside 1
/// and the size of what is differentiated; `as` is what the graph is asked about.
double error_of_derivatives(const std::string& text, const std::string& as, const Numbers& x) {
  const Expression expression = Expression::parse(text, kNames);
  Parsed own(as);
  const std::vector<Node> gradient = own.graph.gradient(own.node);
  const std::vector<Node> hessian = own.graph.hessian(own.node);
  const Numbers g = own.values(gradient, x), h = own.values(hessian, x);
  constexpr double kStep = 1e-5;
  double worst = 0.0;
  for (std::size_t i = 0; i < 3; ++i) {
    Numbers back = x, ahead = x;
    back[i] -= kStep;
    ahead[i] += kStep;
    const auto compare = [&](double derivative, double low, double high) {
      const double difference = (high - low) / (2.0 * kStep);
      const double size = 1.0 + std::abs(derivative) + std::abs(low) + std::abs(high);
      worst = std::max(worst, std::abs(derivative - difference) / size);
    };
    compare(g[i], expression(back), expression(ahead));
    const Numbers low = own.values(gradient, back), high = own.values(gradient, ahead);
    for (std::size_t j = 0; j < 3; ++j) compare(h[i * 3 + j], low[j], high[j]);
  }
  return worst;
}

const std::vector<std::string> kExpressions = {
    "x + 2*y - z/3",
    "x*y*z + x^2*y - (x - y)^3",
    "1/x + y/z - 1/(x*y)",
    "x^-3 + y^2.5 + x^y + 2^z",
    "sqrt(x*y) + sqrt(z)",
    "sin(x*y) + cos(y - z)*x",
    "tan(x/3) + tanh(y*z) - tanh(x)",
    "asin(x/3) + acos(y/4) + atan(x*z)",
    "atan2(x, y) + atan2(y*z, x)",
    "sinh(x) + cosh(y*x)",
    "exp(x - y) + log(x + z^2)",
    "abs(x - 3)*x^2 + abs(y)",
    "min(x, y)^2 + max(x*y, z)",
    "mod(x*y, 0.7)*z",
    "if(x < y, x^2*y, y^3) + if(x > y, sin(x), cos(z)*y)",
    "sign(x)*x^2 + floor(y)*x + round(z)*y^2 + ceil(x)*z",
    "-(-x)^2*-y + --z*z",
    "(x^2 + y^2)^2/4 + x^2*y + z^2/(2*1.7)",
    "z^2/(2*1.2*0.8^2) + 1.2*9.81*0.8*(1 - cos(x))",
};

TEST(ExpressionGraph, DerivativesAreThoseOfTheExpression) {
  for (const std::string& text : kExpressions) {
    for (const Numbers& x : {Numbers{0.7, 1.3, 2.1}, Numbers{1.9, 0.4, 0.6}}) {
      EXPECT_LT(error_of_derivatives(text, text, x), 1e-8) << text << " at x = " << x[0];
      const Parsed own(text);
      EXPECT_NEAR(own.value(x), own.expression(x), 1e-14 * (1.0 + std::abs(own.expression(x))))
          << text;
    }
  }
}

TEST(ExpressionGraphControl, OtherDerivativesAreNoticed) {
  const Numbers x = {0.7, 1.3, 2.1};
  EXPECT_GT(error_of_derivatives("x*y*z + x^2*y", "x*y*z + x^2*y*1.000001", x), 1e-8);
  EXPECT_GT(error_of_derivatives("if(x < y, x^2, y)", "if(x > y, x^2, y)", x), 1e-2);
}

TEST(ExpressionGraph, ASlopeOfOneVariableIsThatOfForwardDifferentiation) {
  for (const std::string text :
       {"sin(x)*exp(-x^2)", "abs(x)", "min(x, 0.5*x)", "sqrt(x^2 + 1)", "tanh(x/0.1) + x"}) {
    const std::vector<std::string> name = {"x"};
    const Expression expression = Expression::parse(text, name);
    ExpressionGraph graph(1);
    const Node node = graph.add(expression, std::array<Node, 1>{0});
    const ExpressionTape tape(graph, graph.gradient(node));
    for (const double x : {-1.7, 0.0, 0.3, 2.0}) {
      double slope = 0.0;
      tape(&x, &slope);
      EXPECT_NEAR(slope, expression.slope(x), 1e-14) << text << " at " << x;
    }
  }
}

TEST(ExpressionGraph, WhatIsEqualIsOneNode) {
  Parsed own("sin(x*y)^2 + y*x*sin(y*x) + sin(x*y)");
  EXPECT_EQ(ExpressionTape(own.graph, std::vector<Node>{own.node}).operations(), 6);
  const Parsed other("sin(x*y)^2 + y*z*sin(y*x) + sin(z*y)");
  EXPECT_GT(ExpressionTape(other.graph, std::vector<Node>{other.node}).operations(), 6);
}

TEST(ExpressionGraph, Simplifies) {
  const auto is = [](const std::string& text, const std::string& simple) {
    Parsed own(text);
    const Node other =
        own.graph.add(Expression::parse(simple, kNames), std::array<Node, 3>{0, 1, 2});
    return own.node == other;
  };
  EXPECT_TRUE(is("0*x + 1*y - 0", "y"));
  EXPECT_TRUE(is("x - x + 2*3", "6"));
  EXPECT_TRUE(is("2*(3*x)", "6*x"));
  EXPECT_TRUE(is("x*x", "x^2"));
  EXPECT_TRUE(is("-(x - y)", "y - x"));
  EXPECT_TRUE(is("--x", "x"));
  EXPECT_TRUE(is("x/4", "0.25*x"));
  EXPECT_TRUE(is("y*x", "x*y"));
  EXPECT_TRUE(is("x^1 + y^0", "x + 1"));
  EXPECT_TRUE(is("if(2 > 1, x, y)", "x"));
  EXPECT_FALSE(is("x + y", "x - y"));
}

TEST(ExpressionGraph, KeepsTheDigitsOfASmallSwing) {
  for (const double q : {1e-3, 1e-6, 1e-9}) {
    const double exact = 3.0 * q * q / 2.0 * (1.0 - q * q / 12.0);
    EXPECT_NEAR(Parsed("3*(1 - cos(x))").value({q, 0.0, 0.0}), exact, 4e-15 * exact);
    EXPECT_NEAR(Parsed("3 - 3*cos(x)").value({q, 0.0, 0.0}), exact, 4e-15 * exact);
    EXPECT_NEAR(Parsed("2.5*(cos(x) - 1)*-1.2").value({q, 0.0, 0.0}), exact, 4e-15 * exact);
    const double other = 3.0 * q * q / 2.0 * (1.0 + q * q / 12.0);
    EXPECT_NEAR(Parsed("3*(cosh(x) - 1)").value({q, 0.0, 0.0}), other, 4e-15 * other);
    EXPECT_GT(std::abs(Parsed("3*(1 - 1.5*cos(x)/1.5001)").value({q, 0.0, 0.0}) - exact), 1e-5);
  }
  Parsed slope("1 - cos(x)");
  const Node sine =
      slope.graph.add(Expression::parse("sin(x)", kNames), std::array<Node, 3>{0, 1, 2});
  EXPECT_EQ(slope.graph.gradient(slope.node)[0], sine);
}

TEST(ExpressionGraph, KnowsTheDegreeOfAPolynomial) {
  const auto degree = [](const std::string& text) {
    const Parsed own(text);
    return own.graph.degree(own.node);
  };
  EXPECT_EQ(degree("3"), 0);
  EXPECT_EQ(degree("x^2/2 + x*y"), 2);
  EXPECT_EQ(degree("(x^2 - 1)^2*y/4"), 5);
  EXPECT_EQ(degree("x^4 - cos(0.3)*y"), 4);
  EXPECT_EQ(degree("sin(x)"), std::nullopt);
  EXPECT_EQ(degree("1/x"), std::nullopt);
  EXPECT_EQ(degree("x^0.5 + y"), std::nullopt);
}

TEST(ExpressionGraph, KnowsWhatCanChangeOver) {
  const auto can = [](const std::string& text) {
    const Parsed own(text);
    return own.graph.can_change_over(own.node);
  };
  EXPECT_TRUE(can("abs(x)"));
  EXPECT_TRUE(can("if(x > 0, x, 0)"));
  EXPECT_TRUE(can("max(x, 0)^2"));
  EXPECT_FALSE(can("tanh(x)*exp(y)/atan2(z, 2)"));
  EXPECT_FALSE(can("if(1 > 0, x, abs(y))"));
  const auto by = [](const std::string& text) {
    const Parsed own(text);
    return own.graph.change_over_by(own.node);
  };
  EXPECT_EQ(by("x*abs(y) + z^2"), (std::vector<bool>{false, true, false}));
  EXPECT_EQ(by("if(x < 0, sin(z), 1) + y"), (std::vector<bool>{true, false, true}));
}

TEST(ExpressionGraph, KnowsTheTermsThatCancel) {
  const auto terms = [](const std::string& text, double x) {
    Parsed own(text);
    const std::vector<Node> nodes = {own.node, own.graph.magnitude(own.node)};
    const ExpressionTape tape(own.graph, nodes);
    Numbers at(3, x), out(2), scratch(static_cast<std::size_t>(tape.scratch_size(1)));
    tape.run<1>(at.data(), out.data(), scratch.data());
    EXPECT_LE(std::abs(out[0]), out[1] * (1.0 + 1e-15)) << text;
    return out[1];
  };
  EXPECT_DOUBLE_EQ(terms("5*exp(x) - 5", 0.0), 10.0);
  EXPECT_DOUBLE_EQ(terms("(x^2 - 1)*x/-4", 1.0), 0.5);
  EXPECT_DOUBLE_EQ(terms("if(x > 0, x - 3, 7)", 3.0), 6.0);
  EXPECT_DOUBLE_EQ(terms("-(x - 4)^3", 2.0), 72.0);
  EXPECT_DOUBLE_EQ(terms("-(x - y)^3", 2.0), 0.0);  // no more than its slope there makes of x - y
  EXPECT_DOUBLE_EQ(terms("((x - 1)/2)^2*(y - 1)", 1.5), 0.5 * 0.25 * 1.25 * 2 + 0.0625 * 2.5);
  EXPECT_DOUBLE_EQ(terms("sin(x)", -1.0), std::sin(1.0));
}

TEST(ExpressionTape, ALaneHasTheBitsThatItHasAlone) {
  for (const std::string& text : kExpressions) {
    Parsed own(text);
    std::vector<Node> nodes = own.graph.hessian(own.node);
    for (const Node slope : own.graph.gradient(own.node)) nodes.push_back(slope);
    nodes.push_back(own.node);
    const ExpressionTape tape(own.graph, nodes);
    Numbers x(3 * 8), all(nodes.size() * 8), one(nodes.size());
    Numbers scratch(static_cast<std::size_t>(tape.scratch_size(8)));
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = 0.3 + 0.07 * static_cast<double>(k);
    tape.run<8>(x.data(), all.data(), scratch.data());
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const Numbers alone = {x[lane], x[8 + lane], x[16 + lane]};
      tape(alone.data(), one.data());
      for (std::size_t k = 0; k < nodes.size(); ++k) {
        const double value = all[8 * k + lane];
        EXPECT_TRUE(value == one[k] || (std::isnan(value) && std::isnan(one[k])))
            << text << ", lane " << lane << ": " << value << " beside " << one[k];
      }
    }
  }
}

/// The largest error of a function by a tape, in ulps of what long doubles give, or of 1 where that is less.
double ulps_of(const std::string& text, long double (*reference)(long double), double low,
               double high) {
  const Parsed own(text);
  double worst = 0.0;
  for (int k = 0; k <= 20'000; ++k) {
    const double x = low + (high - low) * k / 20'000.0;
    const long double exact = reference(x);
    const double unit =
        std::max(std::abs(static_cast<double>(exact)), text == "exp(x)" ? 0.0 : 1.0);
    const auto error = static_cast<double>(std::abs(own.value({x, 0, 0}) - exact));
    worst = std::max(worst, error / (unit * std::numeric_limits<double>::epsilon()));
  }
  return worst;
}

TEST(ExpressionTape, SinesAndExponentialsAreGoodToAnUlpOrTwo) {
  for (const auto& [low, high] : {std::pair(-4.0, 4.0), std::pair(-99'990.0, 1e5),
                                  std::pair(99'990.0, 100'010.0), std::pair(1e9, 1.1e9)}) {
    EXPECT_LT(ulps_of("sin(x)", sinl, low, high), 1.0) << low;
    EXPECT_LT(ulps_of("cos(x)", cosl, low, high), 1.0) << low;
  }
  for (const auto& [low, high] : {std::pair(-1.0, 1.0), std::pair(-708.0, 709.0)}) {
    EXPECT_LT(ulps_of("exp(x)", expl, low, high), 1.5) << low;
  }
  // The control: a difference of a few ulps is seen.
  EXPECT_GT(ulps_of("sin(x*1.000000000000001)", sinl, -4.0, 4.0), 2.0);
}

TEST(ExpressionTape, ASineAndACosineOfOneAngleAreOneOperation) {
  Parsed own("sin(x*y)*exp(z) + cos(x*y)");
  EXPECT_EQ(ExpressionTape(own.graph, std::vector<Node>{own.node}).operations(), 5);
  const Parsed other("sin(x*y)*exp(z) + cos(x*z)");
  EXPECT_EQ(ExpressionTape(other.graph, std::vector<Node>{other.node}).operations(), 7);
}

TEST(ExpressionTape, WholePowersAreProducts) {
  const Parsed own("x^10 + x^-2 + x^3");
  EXPECT_EQ(ExpressionTape(own.graph, std::vector<Node>{own.node}).operations(), 8);
  EXPECT_NEAR(own.value({-1.3, 0.0, 0.0}), std::pow(-1.3, 10) + 1.0 / 1.69 - 2.197, 1e-14);
}

TEST(ExpressionTape, TellsOfMoreThanItCanHold) {
  ExpressionGraph graph(2);
  std::vector<Node> results;
  for (int k = 0; k < 70'000; ++k) {
    results.push_back(graph.sum(graph.variable(0), graph.number(k + 0.5)));
  }
  EXPECT_THROW(ExpressionTape(graph, results), ConfigError);
}

}  // namespace
}  // namespace portwave::test_expression_graph
