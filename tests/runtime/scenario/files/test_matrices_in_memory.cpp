// Matrices that a program holds stand for files in the scenarios that it parses.

#include <cmath>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::test_matrices_in_memory {
namespace {

constexpr int kSize = 24;

ShapedMatrix band(double diagonal, double beside) {
  ShapedMatrix out{kSize, kSize, {}, {}};
  for (int i = 0; i < kSize; ++i) {
    out.entries.push_back({i, i, diagonal});
    if (i + 1 == kSize || beside == 0.0) continue;
    out.entries.push_back({i, i + 1, beside});
    out.entries.push_back({i + 1, i, beside});
  }
  return out;
}

std::vector<NamedMatrix> matrices() {
  return {{"the mass", band(2.0, 0.0)},
          {"the stiffness", band(20.0, -9.0)},
          {"the load", {kSize, 1, {{3, 0, 1.0}}, {}}}};
}

std::string text(const std::string& cut, const std::string& mass = "the mass") {
  return fmt::format(
      R"({{"name": "bar", "time": {{"step_s": 0.01, "end_s": 1}}, "method": {{"kind": "auto"}},
        "subsystems": [{{"name": "bar", "type": "second_order_system", {}
          "parameters": {{"coordinates": {{"count": {}, "name": "q", "unit": "m"}}, "ports": [],
            "inputs": ["load"], "M": {{"file": "{}"}}, "K": {{"file": "the stiffness"}},
            "B": {{"file": "the load"}}}},
          "inputs": {{"load": {{"kind": "constant", "value": 3}}}}}}],
        "couplings": []}})",
      cut, kSize, mass);
}

std::string report_of(const std::string& scenario, const std::vector<NamedMatrix>& known) {
  try {
    parse_scenario(scenario, "bar.json", ".", {}, Plugins::refused, known);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return {};
}

TEST(MatricesInMemory, MakeAPartWholeAndInPieces) {
  const std::vector<NamedMatrix> known = matrices();
  const Scenario whole = parse_scenario(text(""), "bar.json", ".", {}, Plugins::refused, known);
  const Scenario cut =
      parse_scenario(text(R"("cut": {"parts": 3},)"), "bar.json", ".", {}, Plugins::refused, known);
  Stepper one(whole.system, whole.options), pieces(cut.system, cut.options);
  EXPECT_GT(cut.system.parts().size(), 2U);
  EXPECT_TRUE(whole.files.empty());
  one.step(50);
  pieces.step(50);
  const auto x = one.state("bar"), y = pieces.state("bar");
  ASSERT_EQ(x.size(), y.size());
  EXPECT_GT(std::abs(x[3]), 1e-3);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-9) << i;
}

TEST(MatricesInMemory, AreKnownToOneCallAndTellTheirDefects) {
  std::vector<NamedMatrix> known = matrices();
  EXPECT_EQ(report_of(text(""), known), "");
  EXPECT_NE(report_of(text(""), {}), "");  // no longer
  EXPECT_NE(report_of(text("", "nobody"), known).find("nobody"), std::string::npos);
  known[0].matrix.entries[5].value = std::numeric_limits<double>::infinity();
  EXPECT_NE(
      report_of(text(""), known).find("/subsystems/0/parameters/M: entry (5,5) is not finite"),
      std::string::npos);
  known = matrices();
  known[1].matrix.entries[1].value = 7.0;  // (0, 1), and not (1, 0)
  EXPECT_NE(report_of(text(""), known).find("K is not symmetric"), std::string::npos)
      << report_of(text(""), known);
}

}  // namespace
}  // namespace portwave::test_matrices_in_memory
