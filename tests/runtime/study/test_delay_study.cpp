// Study of an asynchronous exchange: what is known of it beforehand, and that it can be done again.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/study/delay_study.hpp>
#include <portwave/runtime/study/study.hpp>

#include "support/files/source_folder.hpp"

namespace portwave::test_delay_study {
namespace {

Scenario pair() {
  Scenario scenario =
      load_scenario(testing::source_file("examples/published_douglas_rachford.json"));
  scenario.options.method.waves().guard = true;
  scenario.steps = 200;
  return scenario;
}

TEST(DelayStudy, WithoutDelayIsTheBudgetStudy) {
  const Scenario scenario = pair();
  const std::vector<BudgetRow> expected = study_budget(scenario, {3, 8});
  const std::vector<DelayRow> rows = study_delay(scenario, {.delays = {0}, .budgets = {3, 8}});
  ASSERT_EQ(rows.size(), 2U);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].rms, expected[i].rms);
    EXPECT_EQ(rows[i].max, expected[i].max);
    EXPECT_EQ(rows[i].final, expected[i].final);
    EXPECT_EQ(rows[i].guard_steps, expected[i].guard_steps);
    EXPECT_GT(rows[i].messages, 0);
  }
}

TEST(DelayStudy, WavesThatAreLaterNeedMoreIterations) {
  for (const bool is_scattered : {false, true}) {
    const std::vector<DelayRow> rows =
        study_delay(pair(), {.delays = {0, 1, 4}, .budgets = {16, 64}, .scattered = is_scattered});
    ASSERT_EQ(rows.size(), 6U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(rows[i].status, CertificateStatus::holds);
      EXPECT_LT(rows[i + 3].rms, 0.2 * rows[i].rms) << "more iterations, delay " << rows[i].delay;
      if (i > 0) {
        EXPECT_GT(rows[i].rms, 2.0 * rows[i - 1].rms) << "delay " << rows[i].delay;
      }
    }
  }
}

TEST(DelayStudy, SaysTheSameAgain) {
  const DelayOptions options{.ranks = 2, .delays = {3}, .budgets = {6}, .scattered = true};
  const DelayRow first = study_delay(pair(), options).at(0);
  for (int i = 0; i < 3; ++i) {
    const DelayRow again = study_delay(pair(), options).at(0);
    EXPECT_EQ(again.rms, first.rms);
    EXPECT_EQ(again.withheld_J, first.withheld_J);
  }
}

TEST(DelayStudy, RefusesWhatItCannotDo) {
  const Scenario scenario = pair();
  EXPECT_THROW(study_delay(scenario, {.ranks = 1}), std::invalid_argument);
  EXPECT_THROW(study_delay(scenario, {.delays = {}}), std::invalid_argument);
  EXPECT_THROW(study_delay(scenario, {.delays = {65}}), std::invalid_argument);
  EXPECT_THROW(study_delay(scenario, {.budgets = {-1}}), std::invalid_argument);
  Scenario automatic = pair();
  automatic.options.method = CouplingMethod::automatic();
  EXPECT_THROW(study_delay(automatic), ConfigError);
  Scenario whole = pair();
  whole.options.grain = Grain::of_parts(100);
  try {
    study_delay(whole);
    ADD_FAILURE() << "nothing can be late in it";
  } catch (const ConfigError& error) {
    EXPECT_NE(std::string(error.what()).find("cannot be cut"), std::string::npos);
  }
}

}  // namespace
}  // namespace portwave::test_delay_study
