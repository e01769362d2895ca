#include <algorithm>
#include <cmath>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/study/order_study.hpp>

#include "support/systems/example_scenarios.hpp"

namespace portwave::test_order_study {
namespace {

using testing::example;

/// The ports of the second chain on its first position in place of its first momentum: a misprint
/// of the source.
const Override kOntoThePosition = {"/subsystems/1/parameters/G/entries/0/0", "1"};
const Override kMatchedWaves = {
    "/method",
    R"({"kind": "peaceman-rachford", "iterations": 200, "tolerance": 1e-13,
                                    "impedance": {"kind": "matched"}})"};

std::vector<OrderRow> rows_of(const OrderStudy& study, const std::string& method) {
  std::vector<OrderRow> rows;
  std::copy_if(study.rows.begin(), study.rows.end(), std::back_inserter(rows),
               [&](const OrderRow& row) { return row.method == method; });
  return rows;
}

/// As printed tables have them.
std::vector<std::string> errors_of(const OrderStudy& study, const std::string& method) {
  std::vector<std::string> errors;
  for (const OrderRow& row : rows_of(study, method)) {
    errors.push_back(fmt::format("{:.4e}", row.error));
  }
  return errors;
}

OrderStudy study(const Scenario& scenario, std::vector<double> steps_s,
                 std::optional<std::vector<MethodKind>> methods = {}) {
  return study_order(scenario,
                     {.steps_s = std::move(steps_s), .methods = std::move(methods), .repeat = 1});
}

const std::vector<double> kSingle = {0x1p-7, 0x1p-9, 0x1p-11};
const std::vector<double> kMulti = {0x1p-9, 0x1p-11, 0x1p-13};
using Errors = std::vector<std::string>;

// Source: the systems of Lorenz, Zwerschke, Günther & Schäfers, section 5, independently computed.
TEST(OrderStudy, ReproducesTheSinglerateTable) {
  const OrderStudy table = study(example("msd_singlerate"), kSingle);
  EXPECT_EQ(table.states, 101);
  EXPECT_EQ(table.reference, "the matrix exponential");
  const Errors midpoint = {"3.4678e-02", "2.1281e-03", "1.3285e-04"};
  EXPECT_EQ(errors_of(table, "midpoint (dense)"), midpoint);
  EXPECT_EQ(errors_of(table, "midpoint (sparse)"), midpoint);
  EXPECT_EQ(errors_of(table, "strang"), (Errors{"3.3606e-02", "2.0724e-03", "1.2941e-04"}));
  EXPECT_EQ(table.rows.size(), 9u);
}

TEST(OrderStudy, ReproducesTheMultirateTable) {
  const OrderStudy table = study(example("msd_multirate"), kMulti);
  const Errors midpoint = {"8.7325e-03", "6.0855e-04", "3.8278e-05"};
  EXPECT_EQ(errors_of(table, "midpoint (dense)"), midpoint);
  EXPECT_EQ(errors_of(table, "midpoint (sparse)"), midpoint);
  EXPECT_EQ(errors_of(table, "impulse"), (Errors{"9.8023e-05", "6.1327e-06", "3.8332e-07"}));
  EXPECT_EQ(rows_of(table, "strang").size(), 3u);
}

// Control: another system has other digits.
TEST(OrderStudy, SeesWhereTheCouplingEnters) {
  const OrderStudy table = study(example("msd_singlerate", {kOntoThePosition}), {0x1p-7});
  EXPECT_NE(errors_of(table, "midpoint (dense)").front(), "3.4678e-02");
  EXPECT_NE(errors_of(table, "strang").front(), "3.3606e-02");
}

TEST(OrderStudy, ObservesSecondOrder) {
  for (const char* name : {"msd_singlerate", "msd_multirate"}) {
    const OrderStudy table = study(example(name), kMulti);
    for (std::size_t i = 0; i < table.rows.size(); ++i) {
      const OrderRow& row = table.rows[i];
      const bool is_first = i == 0 || table.rows[i - 1].method != row.method;
      ASSERT_EQ(row.order.has_value(), !is_first) << name << " row " << i;
      if (is_first) continue;
      EXPECT_NEAR(*row.order, 2.0, i % 3 == 2 ? 0.01 : 0.1) << name << " " << row.method;
    }
  }
}

TEST(OrderStudy, CountsTheOperationsOfTheWholeRun) {
  const OrderStudy table = study(example("msd_singlerate"), {0x1p-7, 0x1p-9});
  const auto dense = rows_of(table, "midpoint (dense)");
  EXPECT_EQ(dense[0].steps, 256);
  EXPECT_EQ(dense[0].operations, 256.0 * 101 * 101);
  EXPECT_EQ(dense[0].operations_sparse, std::nullopt);
  const auto sparse = rows_of(table, "midpoint (sparse)");
  EXPECT_EQ(sparse[0].operations, std::nullopt);
  EXPECT_LT(*sparse[0].operations_sparse, 0.2 * *dense[0].operations);
  // Two chains of half the states each: half the operations of a dense step.
  const auto strang = rows_of(table, "strang");
  EXPECT_NEAR(*strang[0].operations / *dense[0].operations, 0.5, 0.01);
  EXPECT_EQ(*strang[1].operations, 4.0 * *strang[0].operations);
  for (const OrderRow& row : table.rows) EXPECT_GT(row.time_s, 0.0) << row.method;
}

TEST(OrderStudy, ComparesCostsAtEqualErrors) {
  const OrderStudy table = study(example("msd_singlerate"), kSingle);
  ASSERT_EQ(table.equal_error.size(), 2u);
  const EqualErrorCost& dense = table.equal_error[0];
  EXPECT_EQ(dense.baseline, "midpoint (dense)");
  EXPECT_FALSE(dense.extrapolated);
  // Half the operations per step, and steps that may be √(3.4678/3.3606) as long.
  EXPECT_NEAR(*dense.operations, 0.501 * std::sqrt(3.3606 / 3.4678), 0.002);
  EXPECT_EQ(table.equal_error[1].baseline, "midpoint (sparse)");

  // The impulse method is ahead by more than a row: its worst error is beyond the best midpoint's.
  const OrderStudy ahead =
      study(example("msd_multirate"), {0x1p-8, 0x1p-9}, {{SplittingKind::impulse}});
  ASSERT_EQ(ahead.equal_error.size(), 2u);
  EXPECT_TRUE(ahead.equal_error[0].extrapolated);
  EXPECT_LT(*ahead.equal_error[0].operations, 0.5);
  // Control: one step size is no line.
  EXPECT_TRUE(study(example("msd_singlerate"), {0x1p-7}).equal_error.empty());
}

// A force that is driven, but zero, turns the reference from the exponential to Radau IIA.
TEST(OrderStudy, BothReferencesAgree) {
  const std::vector<Override> driven = {
      {"/subsystems/1/parameters/inputs", R"([{"name": "force", "unit": "N"}])"},
      {"/subsystems/1/parameters/G/entries", "[[0, 0, 1], [0, 1, 1]]"},
      {"/subsystems/1/inputs", R"({"force": {"kind": "constant", "value": 0}})"}};
  const OrderStudy undriven = study(example("msd_singlerate"), {0x1p-7, 0x1p-9});
  const OrderStudy zero = study(example("msd_singlerate", driven), {0x1p-7, 0x1p-9});
  EXPECT_TRUE(zero.reference.starts_with("3-stage Radau IIA")) << zero.reference;
  ASSERT_EQ(zero.rows.size(), undriven.rows.size());
  for (std::size_t i = 0; i < zero.rows.size(); ++i) {
    EXPECT_NEAR(zero.rows[i].error, undriven.rows[i].error, 1e-7) << zero.rows[i].method;
  }
  // Control: a force that is not zero moves the masses, and second order shows that it is sampled
  // where it should be.
  std::vector<Override> moved = driven;
  moved.back().value =
      R"({"force": {"kind": "sine_product", "amplitude": 1, "sines": [{"frequency_Hz": 1}]}})";
  const OrderStudy forced = study(example("msd_singlerate", moved), {0x1p-7, 0x1p-9});
  for (const OrderRow& row : forced.rows) {
    if (row.order) {
      EXPECT_NEAR(*row.order, 2.0, 0.05) << row.method;
    }
  }
  EXPECT_GT(std::abs(forced.rows[0].error - zero.rows[0].error), 1e-6);
}

TEST(OrderStudy, ConvergedWavesAreTheMidpointRule) {
  const OrderStudy table = study(example("two_masses", {kMatchedWaves}), {0.05, 0.025});
  const auto midpoint = rows_of(table, "midpoint (dense)");
  const auto waves = rows_of(table, "peaceman-rachford");
  ASSERT_EQ(waves.size(), 2u);
  for (std::size_t i = 0; i < waves.size(); ++i) {
    EXPECT_NEAR(waves[i].error, midpoint[i].error, 1e-6 * midpoint[i].error);
    EXPECT_EQ(waves[i].operations, std::nullopt);
  }
}

/// The right mass with E = diag(2, 1): the momentum's own equation doubled.
const Override kRegularE = {"/subsystems/1", R"({
  "name": "right", "type": "descriptor_port_hamiltonian",
  "parameters": {
    "states": [{"name": "p2"}, {"name": "q2"}],
    "ports": [{"name": "mass", "domain": "translation", "causality": "effort_in"}],
    "E": [[2, 0], [0, 1]], "J": [[0, -1], [1, 0]], "R": [[0.75, 0], [0, 0]], "B": [[1], [0]],
    "Q": [[1, 0], [0, 2]]},
  "initial_state": {"p2": 0.05}})"};

// Whether E is singular decides, not whether it is the identity: the baseline is the same rule as
// the iteration's.
TEST(OrderStudy, TakesTheMidpointRuleWhereverEIsRegular) {
  const Override method = {"/method",
                           R"({"kind": "lions-mercier", "tolerance": 1e-10, "iterations": 1000})"};
  const OrderStudy regular = study(example("two_masses", {kRegularE, method}), {0.05, 0.025},
                                   {{IterationKind::lions_mercier}});
  EXPECT_EQ(regular.reference, "the matrix exponential");
  const auto dense = rows_of(regular, "midpoint (dense)");
  const auto sparse = rows_of(regular, "midpoint (sparse)");
  const auto iterated = rows_of(regular, "lions-mercier");
  ASSERT_EQ(dense.size(), 2u);
  ASSERT_EQ(sparse.size(), 2u);
  ASSERT_EQ(iterated.size(), 2u);
  for (std::size_t i = 0; i < 2; ++i) {
    EXPECT_NEAR(dense[i].error, sparse[i].error, 1e-9 * dense[i].error);
    EXPECT_NEAR(iterated[i].error, sparse[i].error, 1e-4 * sparse[i].error);
  }
  // Control: algebraic equations.
  const OrderStudy singular =
      study(example("circuit"), {2e-4}, std::optional(std::vector<MethodKind>{}));
  ASSERT_EQ(singular.rows.size(), 1u);
  EXPECT_EQ(singular.rows[0].method, "radau-iia (sparse)");
}

TEST(OrderStudy, AStepSizeThatIsRefusedIsARow) {
  const Override method = {"/method", R"({"kind": "lions-mercier", "mu": 2, "iterations": 60})"};
  const OrderStudy table =
      study(example("two_masses", {method}), {0.5, 0.25, 0.125}, {{IterationKind::lions_mercier}});
  const auto rows = rows_of(table, "lions-mercier");
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_NE(rows[0].failure.find("mu"), std::string::npos) << rows[0].failure;
  EXPECT_TRUE(std::isnan(rows[0].error));
  EXPECT_EQ(rows[1].failure, "");
  EXPECT_EQ(rows[1].order, std::nullopt) << "there is nothing before it";
  EXPECT_TRUE(rows[2].order.has_value());
  EXPECT_THROW(study(example("two_masses", {method}), {0.5, 1.0}, {{IterationKind::lions_mercier}}),
               ConfigError)
      << "control";
}

TEST(OrderStudy, ThreadsChangeNothingButTheTime) {
  OrderOptions options{.steps_s = {0x1p-7}, .repeat = 1, .threads = 2};
  const OrderStudy two = study_order(example("msd_singlerate"), options);
  const OrderStudy one = study(example("msd_singlerate"), {0x1p-7});
  for (std::size_t i = 0; i < one.rows.size(); ++i) {
    EXPECT_EQ(two.rows[i].error, one.rows[i].error) << one.rows[i].method;
  }
}

TEST(OrderStudy, RefusesStepsThatDoNotDivideTheEndTime) {
  try {
    study(example("msd_singlerate"), {0.3, 0.1, 0.7, -1.0});
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 3u);
    EXPECT_EQ(error.issues()[0].what, "a step of 0.3 s does not divide the end time, 2 s");
    EXPECT_EQ(error.issues()[1].what, "a step of 0.7 s does not divide the end time, 2 s");
  }
  EXPECT_THROW(study(example("msd_singlerate"), {}), ConfigError);
}

const Override kKicks = {"/method", R"({"kind": "kick-drift", "order": 4})"};

TEST(OrderStudy, OthersHaveTheirOwnOrders) {
  const OrderStudy table =
      study(example("msd_singlerate", {kKicks}), {0x1p-5, 0x1p-6},
            {{SplittingKind::kick_drift, SplittingKind::taylor, SplittingKind::strang}});
  const auto series = rows_of(table, "taylor"), own = rows_of(table, "kick-drift");
  const Override by_series = {"/method", R"({"kind": "taylor"})"};
  const OrderStudy alone = study(example("msd_singlerate", {by_series}), {0x1p-5, 0x1p-6});
  EXPECT_EQ(errors_of(table, "taylor"), errors_of(alone, "taylor"));
  EXPECT_LT(series[0].error, 1e-4 * own[0].error) << "order 16 beside 4";
  ASSERT_TRUE(own[1].order.has_value());
  EXPECT_NEAR(*own[1].order, 4.0, 0.8) << "the scenario's own";
  EXPECT_EQ(rows_of(table, "strang")[0].failure, "");
}

TEST(OrderStudy, ComparesNoCostsWhereErrorsDoNotFall) {
  const OrderStudy coarse = study(example("msd_singlerate", {kKicks}), {0x1p-1, 0x1p-2});
  const auto midpoint = rows_of(coarse, "midpoint (sparse)");
  ASSERT_TRUE(midpoint[1].order.has_value());
  ASSERT_LT(*midpoint[1].order, 0.5) << "steps of several radians of the fastest motion";
  EXPECT_TRUE(coarse.equal_error.empty());
  EXPECT_FALSE(study(example("msd_singlerate", {kKicks}), {0x1p-7, 0x1p-8}).equal_error.empty())
      << "control";
}

TEST(OrderStudy, TakesNonlinearSystemsBesideFineSteps) {
  const OrderStudy table = study(example("two_oscillators"), {0.04, 0.02, 0.01},
                                 {{SplittingKind::kick_drift, WaveUpdate::automatic}});
  EXPECT_EQ(table.reference, "waves of 3 Gauss stages with a step of 0.00125 s");
  EXPECT_EQ(table.states, 5);
  EXPECT_TRUE(table.equal_error.empty());
  EXPECT_TRUE(rows_of(table, "midpoint (sparse)").empty());
  const auto kicks = rows_of(table, "kick-drift"), waves = rows_of(table, "auto");
  ASSERT_EQ(kicks.size(), 3u);
  // Of the positions alone 1.78e-7 and 2.83e-9 by another program.
  EXPECT_GT(kicks[0].error, 1.7e-7);
  EXPECT_LT(kicks[0].error, 2e-5);
  EXPECT_NEAR(*kicks[1].order, 6.0, 0.5);
  EXPECT_NEAR(*waves[2].order, 2.0, 0.6);
}

TEST(OrderStudy, RefusesWhatDoesNotApply) {
  // Nonlinear parts have no condensed form; the impulse method needs to know which part is fast.
  EXPECT_THROW(study(example("two_oscillators"), {0.01}, {{SplittingKind::strang}}), ConfigError);
  EXPECT_THROW(study(example("msd_singlerate"), {0x1p-7}, {{SplittingKind::impulse}}), ConfigError);
}

}  // namespace
}  // namespace portwave::test_order_study
