#include <cmath>

#include <gtest/gtest.h>

#include <portwave/runtime/study/rate_study.hpp>
#include <portwave/runtime/study/tune.hpp>

#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_tune {
namespace {

using testing::pair_scenario;

TEST(Tune, KnowsTheMatchesAndMarginsOfThePair) {
  const TuningReport report = tune(pair_scenario(), ImpedanceKind::given);
  ASSERT_EQ(report.ports.size(), 2U);
  EXPECT_EQ(report.ports[0].port, "A.coupling");
  EXPECT_EQ(report.ports[1].port, "B.coupling");
  // Z_B = 2 m2/h + k2 h/2. Source: arXiv 2603.16424 benchmark, independently recomputed.
  EXPECT_NEAR(report.ports[1].match, 800.25, 1e-9);
  EXPECT_NEAR(report.ports[0].match, 0.65, 0.01);
  for (const PortTuning& port : report.ports) EXPECT_EQ(port.impedance, 0.4);
  ASSERT_EQ(report.parts.size(), 2U);
  for (const PartMargins& part : report.parts) {
    EXPECT_GE(part.firm, -1e-12) << part.part;  // γ = 0.4 satisfies the bound of both
    EXPECT_GE(part.nonexpansive, -1e-12) << part.part;
  }
}

TEST(TuneControl, SeesImpedancesBeyondTheBound) {
  Scenario stiff = pair_scenario();
  stiff.options.method.waves().impedance = {5.0};
  const TuningReport report = tune(stiff, ImpedanceKind::given);
  EXPECT_LT(report.parts[0].firm, 0.0);
  EXPECT_GE(report.parts[0].nonexpansive, -1e-12);  // which needs no bound
}

TEST(Tune, ListsEveryRuleAndChoosesNoneWorse) {
  const TuningReport report = tune(pair_scenario());
  std::vector<std::string> names;
  for (const RuleRates& each : report.rules) names.push_back(each.rule);
  EXPECT_EQ(names,
            (std::vector<std::string>{"uniform", "fne", "matched", "leaf", "adapted", "across"}));
  EXPECT_TRUE(report.choice.rate.converges);
  for (const RuleRates& each : report.rules) {
    if (!each.problem.empty()) continue;
    ASSERT_EQ(each.updates.size(), 2U);
    for (const UpdateRate& own : each.updates) {
      EXPECT_LE(report.choice.rate.evaluations, own.predicted.evaluations)
          << each.rule << " " << own.update.rule()->name();
    }
    EXPECT_LE(report.choice.rate.evaluations, each.averaged.evaluations) << each.rule;
    // Halving the reflection of a match leaves a half, whatever else.
    if (each.rule == "matched") {
      EXPECT_NEAR(each.averaged.contraction, 0.5, 0.1);
    }
  }
  EXPECT_FALSE(report.choice.reason.empty());
}

TEST(Tune, HasNoValuesWhereTheScenarioGivesNone) {
  Scenario tuned = pair_scenario();
  tuned.options.method.waves().impedance_kind = ImpedanceKind::leaf;
  EXPECT_THROW(tune(tuned, ImpedanceKind::given), ConfigError);
  EXPECT_EQ(tune(tuned).rules.front().rule, "fne");
}

TEST(RateStudy, PredictsWhatNearlyLinearPartsDo) {
  Scenario scenario = pair_scenario();
  const std::vector<RateRow> rows = study_rate(scenario, {.steps = 10});
  ASSERT_EQ(rows.size(), 12U);
  for (const RateRow& row : rows) {
    ASSERT_EQ(row.problem, "") << row.impedance;
    EXPECT_EQ(row.observed.steps, 10) << row.impedance;
    EXPECT_LE(row.observed.contraction, row.observed.worst_contraction * (1.0 + 1e-12));
    if (!row.predicted.converges || row.predicted.contraction < 0.01) continue;
    EXPECT_NEAR(row.observed.contraction, row.predicted.contraction, 0.1)
        << row.impedance << " " << row.update.rule()->name();
    EXPECT_NEAR(row.observed.max_evaluations, row.predicted.evaluations,
                0.25 * row.predicted.evaluations + 2.0)
        << row.impedance << " " << row.update.rule()->name();
  }
}

TEST(RateStudy, FollowsThePublishedLinearRate) {
  // Source: arXiv 2603.16424 benchmark, independently recomputed.
  for (const RateRow& row : study_rate(pair_scenario(), {.steps = 5})) {
    if (row.impedance != "uniform" || row.update.rule() != &douglas_rachford()) continue;
    EXPECT_NEAR(row.predicted.contraction, 0.58, 0.03);
    EXPECT_NEAR(row.observed.contraction, 0.58, 0.03);
  }
}

TEST(RateStudy, NeedsNoMoreStepsThanThereAre) {
  Scenario brief = pair_scenario();
  brief.steps = 2;
  for (const RateRow& row : study_rate(brief)) EXPECT_LE(row.observed.steps, 2);
}

TEST(RateStudyControl, ASlowIterationIsSeenAsOne) {
  Scenario slow = pair_scenario();
  slow.options.method.waves().relaxation = 0.1;
  const auto uniform = [](const Scenario& scenario) {
    return study_rate(scenario, {.steps = 2}).front();
  };
  EXPECT_GT(uniform(slow).observed.contraction,
            uniform(pair_scenario()).observed.contraction + 0.1);
  EXPECT_GT(uniform(slow).observed.not_converged, 0);
}

}  // namespace
}  // namespace portwave::test_tune
