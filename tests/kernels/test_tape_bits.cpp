// Expressions give the same bits on every instruction set: also where lanes near 0 lie beside lanes whose numbers
// are so large that the C library takes them.

#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "kernels/numbers.hpp"
#include "portwave/subsystems/base/expression_tape.hpp"
#include "support/instruction_sets.hpp"

namespace portwave {
namespace {

using testing::Digest;

/// What eight lanes and each of them alone give for numbers of up to this size, every third a thousandth of it.
Digest values_of(const std::string& text, double size, bool nudge) {
  const std::vector<std::string> names = {"x", "y"};
  ExpressionGraph graph(2);
  const ExpressionGraph::Node node =
      graph.add(Expression::parse(text, names), std::array{graph.variable(0), graph.variable(1)});
  std::vector<ExpressionGraph::Node> results = graph.gradient(node);
  results.push_back(node);
  const ExpressionTape tape(graph, results);
  std::vector<double> scratch(static_cast<std::size_t>(tape.scratch_size(8)));
  std::vector<double> all(8 * results.size()), one(results.size());
  testing::Numbers random(11);
  Digest digest;
  for (int k = 0; k < 50; ++k) {
    std::vector<double> x = random.draw(16, -size, size);
    for (std::size_t i = 0; i < x.size(); i += 3) x[i] *= 1e-3;
    if (nudge && k == 20) x[5] *= 1.0 + 1e-12;
    tape.run<8>(x.data(), all.data(), scratch.data());
    digest.add_all(all);
    for (std::size_t lane = 0; lane < 8; ++lane) {
      tape(std::array{x[lane], x[8 + lane]}.data(), one.data());
      for (std::size_t i = 0; i < one.size(); ++i) EXPECT_EQ(one[i], all[8 * i + lane]) << text;
    }
  }
  return digest;
}

const testing::DigestSuite kTapeBitsDigests("TapeBits", [] {
  const std::vector<std::string> texts = {"sin(x) + y", "sin(x)*cos(x) - cos(y)", "exp(x/300)*y",
                                          "if(x < y, sqrt(x^2 + y^2), abs(x)/(1 + y^2))"};
  for (const std::string& text : texts) {
    for (const double size : {1.0, 1e3, 3e5, 1e7}) {
      if (text.starts_with("exp") && size > 1e6) continue;
      const std::string name = std::to_string(&text - texts.data()) + "_" + std::to_string(size);
      values_of(text, size, false).print(name);
      values_of(text, size, true).print(name + "'");
    }
  }
});

TEST(TapeBits, AreTheSameOnEveryInstructionSet) { testing::expect_equal_digests("TapeBits", 30); }

TEST(TapeBits, ALaneHasThoseThatItHasAlone) {
  for (const double size : {1.0, 3e5})
    values_of("sin(x)*cos(x) - cos(y) + exp(x/300)", size, false);
}

}  // namespace
}  // namespace portwave
