#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "scenario/settings/names.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_scenario_patterns {
namespace {

using testing::source_file;
using Labels = std::vector<std::string>;

Labels observed(const std::string& example, const std::string& outputs) {
  const Scenario scenario =
      load_scenario(source_file("examples/" + example), {{"/outputs", outputs}});
  Labels labels;
  for (const Quantity& quantity : scenario.recording.quantities) labels.push_back(quantity.label);
  return labels;
}

std::string refused(const std::string& example, const std::string& outputs) {
  try {
    observed(example, outputs);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return {};
}

TEST(Patterns, StandForWhatTheySay) {
  const auto matches = scenario_file::matches;
  for (const char* pattern :
       {"arm.q", "*", "arm.*", "*.q", "a*q", "?rm.q", "***", "*m*.*", "arm.q*"}) {
    EXPECT_TRUE(matches("arm.q", pattern)) << pattern;
  }
  for (const char* pattern : {"", "arm", "?", "*.p", "arm.q?", "b*", "*arm", "????", "*q*m*"}) {
    EXPECT_FALSE(matches("arm.q", pattern)) << pattern;
  }
  EXPECT_TRUE(matches("", "*"));
  EXPECT_TRUE(matches("x[1].a.b", "x[?].*.b"));
  // The worst case of a search that goes back does not take forever.
  EXPECT_FALSE(matches(std::string(3000, 'a'), "*a*a*a*a*a*a*a*a*a*a*a*a*b"));
}

TEST(ScenarioPatterns, QuantitiesOfAllParts) {
  EXPECT_EQ(observed("published_douglas_rachford.json", R"({"observe": ["*.storage"]})"),
            (Labels{"A.storage", "B.storage"}));
  EXPECT_EQ(observed("published_douglas_rachford.json",
                     R"({"observe": ["B.coupling.*", "*.coupling.flow"]})"),
            (Labels{"B.coupling.effort", "B.coupling.flow", "A.coupling.flow"}));
  EXPECT_EQ(observed("published_douglas_rachford.json", R"({"observe": ["*.outgoing"]})"),
            (Labels{"A.coupling.outgoing", "B.coupling.outgoing"}));
  // As it would be without a pattern, unit and all.
  const Scenario all = load_scenario(source_file("examples/published_douglas_rachford.json"),
                                     {{"/outputs", R"({"observe": ["A.q*"]})"}});
  ASSERT_FALSE(all.recording.quantities.empty());
  EXPECT_EQ(all.recording.quantities[0].label, "A.q1");
  EXPECT_EQ(all.recording.quantities[0].unit, "m");
}

TEST(ScenarioPatterns, AWholePart) {
  const Labels labels =
      observed("published_douglas_rachford.json", R"({"observe": ["B", "A.storage"]})");
  EXPECT_EQ(labels.back(), "A.storage");
  EXPECT_NE(std::find(labels.begin(), labels.end(), "B.coupling.effort"), labels.end());
  EXPECT_NE(std::find(labels.begin(), labels.end(), "B.storage"), labels.end());
  EXPECT_EQ(std::find(labels.begin(), labels.end(), "B.coupling.incident"), labels.end());
}

// Two columns of one name could not be told apart, and HDF5 has no such thing.
TEST(ScenarioPatterns, WhatIsThereAlreadyIsNotTakenAgain) {
  const Labels once = observed("published_douglas_rachford.json", R"({"observe": ["B"]})");
  EXPECT_EQ(observed("published_douglas_rachford.json",
                     R"({"observe": ["B", "B.storage", "B.q2", "B.*"]})"),
            once);
  const Labels other = observed("published_douglas_rachford.json", R"({"observe": ["B.q2", "B"]})");
  EXPECT_EQ(other.size(), once.size());
  EXPECT_EQ(other.front(), "B.q2");
}

TEST(ScenarioPatterns, PartsOfAssembliesAndSignals) {
  const Labels motors = observed("robot_arm.json", R"({"observe": ["*/motor.speed"]})");
  EXPECT_GT(motors.size(), 2U);
  for (const std::string& label : motors) EXPECT_TRUE(label.ends_with("/motor.speed")) << label;
  EXPECT_EQ(observed("drive_pid.json", R"({"observe": ["targ*"]})"), (Labels{"target"}));
}

TEST(ScenarioPatterns, NothingCalledSoIsAnError) {
  EXPECT_NE(refused("published_douglas_rachford.json", R"({"observe": ["A.z*"]})")
                .find("/outputs/observe/0: nothing is called like \"A.z*\""),
            std::string::npos);
  EXPECT_NE(refused("published_douglas_rachford.json", R"({"observe": ["C"]})"), "");
}

TEST(ScenarioPatterns, WavesOfStagesAreRefusedAsWithoutAPattern) {
  const std::string why = [] {
    try {
      load_scenario(source_file("examples/published_douglas_rachford.json"),
                    {{"/method", R"({"kind": "auto", "stages": 3})"},
                     {"/outputs", R"({"observe": ["*.incident"]})"}});
    } catch (const ScenarioError& error) {
      return error.report();
    }
    return std::string();
  }();
  EXPECT_NE(why.find("with 3 stages a port has as many waves"), std::string::npos) << why;
}

}  // namespace
}  // namespace portwave::test_scenario_patterns
