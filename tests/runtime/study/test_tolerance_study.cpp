// Work against precision of steps that choose their size, and how scenarios ask for such steps.

#include <cmath>
#include <cstdio>
#include <sstream>
#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/output/file_recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/study/order_study.hpp"
#include "portwave/runtime/study/rate_study.hpp"
#include "portwave/runtime/study/study.hpp"
#include "portwave/runtime/study/tolerance_study.hpp"
#include "support/files/source_folder.hpp"
#include "support/files/temporary_folder.hpp"
#include "support/files/text_file.hpp"
#include "support/systems/scenario_fixtures.hpp"

namespace portwave::test_tolerance_study {
namespace {

Scenario pair_with(const std::string& time, const std::string& outputs = "{}") {
  return load_scenario(
      testing::source_folder() / "examples" / "published_douglas_rachford.json",
      {{"/time", time}, {"/method", R"({"kind": "auto", "stages": 2})"}, {"/outputs", outputs}});
}

TEST(ToleranceStudy, ErrorsFallAndWorkGrowsWithTheTolerance) {
  const Scenario scenario = pair_with(R"({"step_s": 0.01, "end_s": 4})");
  const ToleranceStudy study =
      study_tolerance(scenario, {.tolerances = {1e-3, 1e-5, 1e-7}, .stages = {2, 3}});
  ASSERT_EQ(study.rows.size(), 6u);
  EXPECT_EQ(study.reference, "auto, 3 stages, tolerance 1e-10");
  for (std::size_t i = 0; i < 6; ++i) {
    const ToleranceRow& row = study.rows[i];
    EXPECT_EQ(row.failure, "");
    EXPECT_EQ(row.stages, i < 3 ? 2 : 3);
    EXPECT_LT(row.error, 100.0 * row.tolerance);
    EXPECT_GT(row.error, 1e-4 * row.tolerance);
    EXPECT_GE(row.evaluations, 2 * row.steps);
    if (i % 3 == 0) continue;
    EXPECT_LT(row.error, 0.2 * study.rows[i - 1].error);
    EXPECT_GT(row.steps, study.rows[i - 1].steps);
  }
  // More stages, fewer steps.
  EXPECT_LT(study.rows[5].steps, study.rows[2].steps / 2);
}

TEST(ToleranceStudy, StepsOfMethodsWithoutWavesAreStudiedAgainstWaves) {
  for (const char* const method :
       {R"({"kind": "kick-drift", "order": 4})", R"({"kind": "kick-drift", "order": 6})"}) {
    const Scenario scenario = load_scenario(
        testing::source_folder() / "examples" / "two_oscillators.json", {{"/method", method}});
    const ToleranceStudy study = study_tolerance(scenario, {.tolerances = {1e-4, 1e-6, 1e-8}});
    EXPECT_EQ(study.reference, "auto, 3 stages, tolerance 1e-11");
    EXPECT_EQ(study.method.find("kick-drift, order"), 0u) << study.method;
    ASSERT_EQ(study.rows.size(), 3u);
    for (const ToleranceRow& row : study.rows) {
      EXPECT_EQ(row.failure, "");
      EXPECT_EQ(row.stages, 0);
      EXPECT_LT(row.error, 20.0 * row.tolerance) << method;
      EXPECT_GT(row.error, 5e-3 * row.tolerance) << method;
    }
    EXPECT_GT(study.rows[2].steps, study.rows[0].steps);
    EXPECT_THROW(study_tolerance(scenario, {.tolerances = {1e-4}, .stages = {3}}), ConfigError);
  }
  const Scenario strang = load_scenario(testing::source_folder() / "examples" / "msd_64x50.json",
                                        {{"/method", R"({"kind": "strang"})"}});
  EXPECT_THROW(study_tolerance(strang, {.tolerances = {1e-4}}), ConfigError);
}

TEST(ToleranceStudy, WhatAMethodWithoutWavesRefusesIsToldBeforeTheReferenceRuns) {
  const auto phases = [](const char* method) {
    const Scenario scenario =
        load_scenario(testing::source_folder() / "examples" / "two_oscillators.json",
                      {{"/method", method}, {"/time", R"({"step_s": 0.01, "end_s": 0.1})"}});
    int count = 0;
    try {
      study_tolerance(scenario, {.tolerances = {1e-3}}, [&count](const auto&) { ++count; });
    } catch (const ConfigError& error) {
      EXPECT_NE(std::string(error.what()).find("not quadratic"), std::string::npos);
      return -1 - count;
    }
    return count;
  };
  EXPECT_EQ(phases(R"({"kind": "taylor"})"), -1);
  EXPECT_EQ(phases(R"({"kind": "kick-drift"})"), 2) << "control";
}

// A reference by a method that does not converge would agree with a run that does not either.
TEST(ToleranceStudy, AMethodThatDoesNotConvergeIsFoundOut) {
  const Scenario scenario =
      load_scenario(testing::source_folder() / "examples" / "published_douglas_rachford.json",
                    {{"/method/iterations", "4"}, {"/time", R"({"step_s": 0.01, "end_s": 4})"}});
  const ToleranceStudy study =
      study_tolerance(scenario, {.tolerances = {1e-3, 1e-6}, .stages = {3}});
  for (const ToleranceRow& row : study.rows) {
    EXPECT_GT(row.missed, row.steps / 2);
    EXPECT_GT(row.error, 1e-4) << row.tolerance;
  }
}

TEST(ToleranceStudy, WhatCannotBeStudiedIsRefused) {
  const Scenario scenario = pair_with(R"({"step_s": 0.01, "end_s": 4})");
  try {
    study_tolerance(scenario, {.tolerances = {1e-3, 1.0, 1e-20}});
    FAIL() << "was studied";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().size(), 2u) << error.what();
  }
  EXPECT_THROW(study_tolerance(scenario, {.tolerances = {}}), ConfigError);
}

TEST(ToleranceStudy, OtherStudiesWantStepsOfOneSize) {
  const Scenario scenario =
      pair_with(R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 4})");
  EXPECT_THROW(study_budget(scenario, {3}, 1), ConfigError);
  EXPECT_THROW(study_rate(scenario, {}), ConfigError);
  EXPECT_THROW(study_order(scenario, {.steps_s = {0.01}}), ConfigError);
}

TEST(ScenarioTime, StepsThatChooseTheirSize) {
  const Scenario scenario = pair_with(
      R"({"step": {"kind": "adaptive", "tolerance": 1e-5, "smallest_s": 1e-7}, "end_s": 4})",
      R"({"every_s": 0.25})");
  ASSERT_TRUE(scenario.options.sizes.has_value());
  EXPECT_EQ(scenario.options.sizes->tolerance, 1e-5);
  EXPECT_EQ(scenario.options.sizes->smallest_s, 1e-7);
  EXPECT_EQ(scenario.options.step_s, 0.5);
  EXPECT_EQ(scenario.end_s, 4.0);
  EXPECT_EQ(scenario.steps, 0);
  EXPECT_EQ(scenario.recording.every_s, 0.25);
}

TEST(ScenarioTime, EveryDefectOfStepsThatChooseTheirSize) {
  const auto defects_of = [](const std::string& time, const std::string& outputs = "{}") {
    try {
      pair_with(time, outputs);
    } catch (const ScenarioError& error) {
      return error.report();
    }
    return std::string("none");
  };
  EXPECT_EQ(defects_of(R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 4})"), "none");
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string both =
      defects_of(R"({"step": {"kind": "adaptive", "tolerance": 1e-5}, "step_s": 0.1, "steps": 5})");
  EXPECT_TRUE(has(both, "/time/step_s")) << both;
  EXPECT_TRUE(has(both, "/time/steps")) << both;
  EXPECT_TRUE(has(both, "end_s")) << both;
  const std::string numbers = defects_of(
      R"({"step": {"kind": "fixed", "tolerance": 2, "largest_s": -1, "speed": 3}, "end_s": 4})");
  for (const char* place :
       {"/time/step/kind", "/time/step/tolerance", "/time/step/largest_s", "speed"}) {
    EXPECT_TRUE(has(numbers, place)) << numbers;
  }
  const std::string small = defects_of(
      R"({"step": {"kind": "adaptive", "tolerance": 1e-5, "smallest_s": 3}, "end_s": 4})");
  EXPECT_TRUE(has(small, "/time/step/smallest_s")) << small;
  const std::string rows = defects_of(R"({"step_s": 0.01, "end_s": 4})", R"({"every_s": 0.255})");
  EXPECT_TRUE(has(rows, "/outputs/every_s")) << rows;
}

/// Files of a run say every time, and its rows lie on the grid that was asked for.
TEST(ScenarioTime, RowsOnAGridOfTheirOwn) {
  const Scenario scenario =
      pair_with(R"({"step": {"kind": "adaptive", "tolerance": 1e-6}, "end_s": 1})",
                R"({"every_s": 0.1, "observe": ["A.q1", "A.storage", "A.coupling.effort"]})");
  const testing::TemporaryFolder folder;
  FileRecorder recorder(folder.path() / "out", scenario.recording);
  Stepper stepper(scenario.system, scenario.options);
  StepperOptions fine_options = scenario.options;
  fine_options.method.waves().stages = 3;
  fine_options.sizes->tolerance = 1e-11;
  Stepper fine(scenario.system, fine_options);
  recorder.record_initial(stepper);
  std::size_t steps = 0;
  while (stepper.time_s() < 1.0) {
    recorder.record(stepper, stepper.step_towards(1.0));
    ++steps;
  }
  recorder.finish();
  std::istringstream in(testing::read_text(folder.path() / "out" / "trajectory.csv"));
  std::string line;
  std::getline(in, line);
  std::getline(in, line);  // t = 0
  for (int row = 1; row <= 10; ++row) {
    ASSERT_TRUE(std::getline(in, line)) << row;
    double time_s = 0.0, q = 0.0, stored = 0.0, effort = 0.0;
    ASSERT_EQ(std::sscanf(line.c_str(), "%lf,%lf,%lf,%lf", &time_s, &q, &stored, &effort), 4);
    EXPECT_NEAR(time_s, 0.1 * row, 1e-15);
    fine.run_until(time_s);
    EXPECT_NEAR(q, fine.state(0)[0], 1e-4) << time_s;
    EXPECT_NEAR(stored, fine.storage(0), 5e-2) << time_s;
  }
  EXPECT_FALSE(std::getline(in, line));
  std::istringstream energy(testing::read_text(folder.path() / "out" / "energy.csv"));
  std::size_t rows = 0;
  while (std::getline(energy, line)) ++rows;
  EXPECT_EQ(rows, steps + 2);
}

}  // namespace
}  // namespace portwave::test_tolerance_study
