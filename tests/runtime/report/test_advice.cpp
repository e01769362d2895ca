// What to try, and that nothing is said of a run that is as it should be.

#include <functional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "report/advice.hpp"

namespace portwave::report::test_advice {
namespace {

using Json = nlohmann::json;

/// The summary of a run with which everything is well.
Json good_summary() {
  return Json::parse(R"({
    "scenario": "x", "steps": 1000, "completed": true, "failure": null, "wall_s": 1.0,
    "recording_wait_s": 0.0,
    "method_options": {"iterations": 30, "tolerance": 1e-8, "energy_tolerance_J": 0.0,
                       "impedance": {"kind": "matched"}},
    "iterations": {"windows": 1000, "mean": 4.0, "max": 9, "not_converged": 0},
    "guard": {"steps": 0, "withheld_J": 0.0},
    "energy": {"max_J": 10.0, "mismatch_J": 1e-9},
    "step_sizes": {"rejected": 10, "rejected_for_coupling": 0},
    "time_budget": null,
    "certificate": {"status": "holds", "broken_law": null, "worst_passivity_part": "A",
                    "energy_safety": {"status": "kept"}, "uncomputable_islands": 0}
  })");
}

struct Poor {
  std::string rule, says;
  std::function<void(Json&)> change;
};

void PrintTo(const Poor& poor, std::ostream* out) { *out << poor.rule; }

const std::vector<Poor>& poor_runs() {
  static const std::vector<Poor> kRuns = {
      {"failed", "The run failed", [](Json& s) { s["failure"] = "part \"A\": no solution"; }},
      {"violated", "A part creates energy",
       [](Json& s) { s["certificate"]["status"] = "violated"; }},
      {"coupling_creates_energy", "The coupling created energy",
       [](Json& s) {
         s["guard"] = nullptr;
         s["certificate"]["status"] = "conditional";
         s["certificate"]["energy_safety"]["status"] = "not_kept";
       }},
      {"coupled_poorly", "coupling is poor",
       [](Json& s) {
         s["coupling"] = {{"poor", true}, {"mismatch_share", 0.3}, {"moved_J", 10.0}};
       }},
      {"starts_at_odds", "at odds",
       [](Json& s) {
         s["starts_at_odds"] = {{"count", 1}, {"first_s", 0.5}, {"first", "common_flow of a, b"}};
       }},
      {"budget_too_small", "too small", [](Json& s) { s["iterations"]["not_converged"] = 500; }},
      {"wrong_impedance", "converges slowly",
       [](Json& s) {
         s["method_options"]["impedance"] = {{"kind", "uniform"}, {"value", 1.0}};
         s["iterations"]["mean"] = 25.0;
       }},
      {"not_looked_at", "takes part in the energy",
       [](Json& s) {
         s["method_options"]["tolerance"] = 0.0;
         s["energy"]["mismatch_J"] = -1.0;
       }},
      {"guard_changed_the_motion", "changed the motion",
       [](Json& s) { s["guard"]["missed_steps"] = 3; }},
      {"not_resolved", "do not resolve",
       [](Json& s) {
         s["resolution"] = {{"status", "alternates"}, {"part", "c"}, {"share", 0.5}};
       }},
      {"finer_steps_differ", "lead elsewhere",
       [](Json& s) {
         s["agreement"] = {{"far", true}, {"state", "m.velocity"}, {"share", 0.5}, {"time_s", 1.0}};
       }},
      {"guard_acts_often", "guard acts often", [](Json& s) { s["guard"]["steps"] = 400; }},
      {"deadline_missed", "Deadlines are missed",
       [](Json& s) {
         s["time_budget"] = {{"steps", 1000}, {"misses", 20}, {"unexplained_misses", 3}};
       }},
      {"steps_rejected", "taken back", [](Json& s) { s["step_sizes"]["rejected"] = 600; }},
      {"far_impedances", "not judged",
       [](Json& s) { s["certificate"]["uncomputable_islands"] = 1; }},
      {"waits_for_files", "wait for the files", [](Json& s) { s["recording_wait_s"] = 0.5; }},
      {"impulses", "An impulse acted",
       [](Json& s) {
         s["impulses"] = {
             {"count", 1},
             {"impact_J", 24.0},
             {"first", Json::array({{{"time_s", 0.0}, {"jumps", "a.speed 10 -> 4"}}})}};
       }},
      {"unjudged", "Not all parts", [](Json& s) { s["certificate"]["unjudged_parts"] = {"fmu"}; }},
  };
  return kRuns;
}

TEST(Advice, OfAGoodRunThereIsNone) {
  EXPECT_TRUE(advice_for(good_summary()).empty());
  EXPECT_EQ(verdict_of(good_summary()).level, Level::good);
}

TEST(Advice, OfOpaquePartsNamesNoStepsThatTheyRefuse) {
  for (const Poor& poor : poor_runs()) {
    Json summary = good_summary();
    poor.change(summary);
    summary["certificate"]["unjudged_parts"] = {"fmu"};
    for (const Advice& own : advice_for(summary)) {
      EXPECT_EQ(own.text.find("adaptive"), std::string::npos) << poor.rule << ": " << own.text;
    }
  }
}

TEST(Advice, EveryRuleHasARunThatItSpeaksOf) {
  std::vector<std::string_view> tested;
  for (const Poor& poor : poor_runs()) tested.push_back(poor.rule);
  EXPECT_EQ(tested, advice_rules());
}

class PoorRuns : public ::testing::TestWithParam<Poor> {};

TEST_P(PoorRuns, AreToldOnceAndWithSomethingToTry) {
  Json summary = good_summary();
  GetParam().change(summary);
  const std::vector<Advice> advice = advice_for(summary);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_NE(advice[0].title.find(GetParam().says), std::string::npos) << advice[0].title;
  EXPECT_GT(advice[0].text.size(), 40u);
  EXPECT_EQ(std::ranges::count(advice[0].title + advice[0].text, '`') % 2, 0);
}

INSTANTIATE_TEST_SUITE_P(Rules, PoorRuns, ::testing::ValuesIn(poor_runs()),
                         [](const auto& poor) { return poor.param.rule; });

TEST(Advice, ABudgetWithBadImpedancesIsToldOnce) {
  Json summary = good_summary();
  summary["method_options"]["impedance"] = {{"kind", "uniform"}, {"value", 1e6}};
  summary["iterations"]["mean"] = 30.0;
  summary["iterations"]["not_converged"] = 1000;
  const std::vector<Advice> advice = advice_for(summary);
  ASSERT_EQ(advice.size(), 1u);
  EXPECT_NE(advice[0].text.find("\"auto\""), std::string::npos) << advice[0].text;
}

TEST(Advice, WhatIsNoSummaryIsNoReasonToStop) {
  for (const char* text : {"{}", "{\"certificate\": 3}", "{\"iterations\": [], \"steps\": \"x\"}",
                           "{\"failure\": {}, \"guard\": 1, \"method_options\": null}"}) {
    EXPECT_NO_THROW({
      advice_for(Json::parse(text));
      verdict_of(Json::parse(text));
    }) << text;
  }
}

TEST(Verdict, SaysWhatEachStatusMeans) {
  const auto verdict = [](const char* status) {
    Json summary = good_summary();
    summary["certificate"]["status"] = status;
    return verdict_of(summary);
  };
  EXPECT_EQ(verdict("conditional").level, Level::warn);
  EXPECT_EQ(verdict("violated").level, Level::bad);
  EXPECT_EQ(verdict("not_checked").level, Level::warn);
  Json summary = good_summary();
  summary["iterations"]["not_converged"] = 3;
  EXPECT_EQ(verdict_of(summary).level, Level::warn);
  EXPECT_NE(verdict_of(summary).text.find("3 of 1000"), std::string::npos);
  summary["completed"] = false;
  EXPECT_NE(verdict_of(summary).text.find("interrupted"), std::string::npos);
}

}  // namespace
}  // namespace portwave::report::test_advice
