#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/scenario_fixtures.hpp"

// Scenarios that the documentation shows as worked examples do what it says of them.

namespace portwave::test_documented_scenarios {
namespace {

/// The JSON blocks of a page by their "name".
std::map<std::string, testing::Json> scenarios_of(const std::string& page) {
  const std::string text = testing::read_text(testing::source_folder() / page);
  std::map<std::string, testing::Json> found;
  const std::string open = "\n```json\n", close = "\n```";
  for (std::size_t at = text.find(open); at != std::string::npos; at = text.find(open, at)) {
    at += open.size();
    const testing::Json json = testing::Json::parse(text.substr(at, text.find(close, at) - at));
    found[json.at("name")] = json;
  }
  return found;
}

/// The JSON block of a page that is a scenario of this name; others may be parts of scenarios.
testing::Json scenario_of(const std::string& page, const std::string& name) {
  const std::string text = testing::read_text(testing::source_folder() / page);
  const std::string open = "\n```json\n", close = "\n```";
  const std::size_t at = text.find(open + "{\n  \"name\": \"" + name + "\"");
  if (at == std::string::npos) throw std::logic_error(page + " has no scenario " + name);
  const std::size_t begin = at + open.size();
  return testing::Json::parse(text.substr(begin, text.find(close, begin) - begin));
}

Scenario parsed(testing::Json scenario, const std::string& kind) {
  if (!kind.empty()) scenario["method"] = {{"kind", kind}};
  if (kind == "lions-mercier") {
    scenario["method"].update({{"iterations", 2000}, {"tolerance", 1e-12}});
  }
  if (kind == "impulse") {
    scenario["method"]["fast"] = {scenario["subsystems"].size() > 2 ? "link" : "a"};
  }
  return parse_scenario(scenario.dump(), "page.json", ".");
}

TEST(DocumentedScenarios, TwoMassesAreJoinedRigidlyByWavesAndByALinkOtherwise) {
  const auto scenarios = scenarios_of("docs/concepts/choosing-a-method.md");
  ASSERT_TRUE(scenarios.contains("rigid") && scenarios.contains("linked"));
  const Scenario rigid = parsed(scenarios.at("rigid"), "");
  Stepper exact(rigid.system, rigid.options);

  for (const std::string kind : {"strang", "impulse", "lions-mercier", "jacobi"}) {
    const auto make = [&](const char* name) {
      const Scenario scenario = parsed(scenarios.at(name), kind);
      const Stepper stepper(scenario.system, scenario.options);
    };
    try {
      make("rigid");
      ADD_FAILURE() << kind << " must refuse a constraint";
    } catch (const std::exception& error) {
      EXPECT_NE(std::string(error.what()).find("a.right, b.left"), std::string::npos)
          << error.what();
    }
    EXPECT_NO_THROW(make("linked")) << kind;
  }

  const Scenario linked = parsed(scenarios.at("linked"), "");
  Stepper split(linked.system, linked.options);
  double apart = 0.0, amplitude = 0.0;
  for (int n = 0; n < 2000; ++n) {
    exact.step();
    split.step();
    for (const int j : {0, 2}) {
      for (const int part : {0, 1}) {
        const double x = exact.state(part)[static_cast<std::size_t>(j)];
        amplitude = std::max(amplitude, std::abs(x));
        apart = std::max(apart, std::abs(split.state(2 * part)[static_cast<std::size_t>(j)] - x));
      }
    }
  }
  EXPECT_GT(amplitude, 0.009);
  EXPECT_LT(apart, 4e-5);
  EXPECT_GT(apart, 1e-6) << "the page says how far the link gives";
}

TEST(DocumentedScenarios, FourLegsSwingAlikeButForTheirPhases) {
  const testing::Json file = scenario_of("docs/reference/scenario.md", "four_legs");
  const Scenario scenario = parse_scenario(file.dump(), "page.json", ".");
  ASSERT_EQ(scenario.system.parts().size(), 8U);
  ASSERT_EQ(scenario.recording.quantities.size(), 2U);
  Stepper stepper(scenario.system, scenario.options);
  double largest = 0.0;
  for (int n = 0; n < 1000; ++n) {
    stepper.step();
    // Opposite phases at first: pendulums swing alike to both sides.
    const double first = observe(stepper, scenario.recording.quantities[0]);
    const double opposite = observe(stepper, scenario.recording.quantities[1]);
    EXPECT_NEAR(first, -opposite, 1e-9 * (1.0 + std::abs(first))) << n;
    largest = std::max(largest, std::abs(first));
  }
  EXPECT_GT(largest, 0.01);
}

TEST(DocumentedScenarios, TheLoopOfTheSignalsPageRuns) {
  const testing::Json file = scenario_of("docs/concepts/signals.md", "position control");
  const Scenario scenario = parse_scenario(file.dump(), "page.json", ".");
  EXPECT_NE(scenario.options.signals, nullptr);
}

}  // namespace
}  // namespace portwave::test_documented_scenarios
