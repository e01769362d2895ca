// What long calls say they are doing.

#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/study/iteration_study.hpp>
#include <portwave/runtime/study/order_study.hpp>
#include <portwave/runtime/study/rate_study.hpp>
#include <portwave/runtime/study/scaling.hpp>
#include <portwave/runtime/study/study.hpp>
#include <portwave/runtime/study/tune.hpp>

#include "support/systems/example_scenarios.hpp"
#include "support/systems/oscillator_pair.hpp"

namespace portwave::test_phases {
namespace {

using testing::example;
using testing::example_file;
using testing::pair_scenario;

using Lines = std::vector<std::string>;

/// "running combination 1/6", in the order told.
class Told {
 public:
  PhaseCallback listener() {
    return [this](const Phase& phase) {
      lines.push_back(phase.item == 0
                          ? std::string(phase.what)
                          : fmt::format("{} {}/{}", phase.what, phase.item, phase.items));
    };
  }
  Lines lines;
};

Lines counted(const std::string& what, int count) {
  Lines lines;
  for (int i = 1; i <= count; ++i) lines.push_back(fmt::format("{} {}/{}", what, i, count));
  return lines;
}

Lines operator+(Lines lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
  return lines;
}

TEST(Phases, OfLoadingAScenario) {
  Told told;
  const std::string file = example_file("published_douglas_rachford");
  load_scenario(file, {}, told.listener());
  const Lines last = {"reading the couplings", "joining the subsystems", "reading the outputs"};
  EXPECT_EQ(told.lines, Lines{"reading " + file} + counted("building subsystem", 2) + last);
}

TEST(Phases, OfTuning) {
  Told told;
  tune(pair_scenario(), ImpedanceKind::automatic, told.listener());
  const Lines first = {"linearising the subsystems", "choosing the method", "judging the ports"};
  EXPECT_EQ(told.lines, first + counted("predicting the rates of rule", 6));
}

TEST(Phases, OfTheStudiesCountWhatIsLeft) {
  Scenario pair = pair_scenario();
  pair.steps = 3;
  Told budget;
  study_budget_axes(pair, {.budgets = {0, 3, 8}, .guards = {true, false}}, 1, budget.listener());
  EXPECT_EQ(budget.lines,
            Lines{"stepping the monolithic reference"} + counted("running combination", 6));

  Told rate;
  study_rate(pair, {.steps = 1}, rate.listener());
  EXPECT_EQ(rate.lines, Lines{"linearising the subsystems"} +
                            counted("predicting the rates of rule", 6) +
                            counted("observing iteration", 12));

  Told iteration;
  study_iteration(example("two_masses"), {.iterations = 2}, iteration.listener());
  EXPECT_EQ(iteration.lines, Lines{"preparing the iteration"} + counted("iterating window", 1));

  const Scenario linear = example("msd_singlerate");
  const double end_s = static_cast<double>(linear.steps) * linear.options.step_s;
  Told order;
  const OrderStudy study =
      study_order(linear, {.steps_s = {end_s / 8, end_s / 16}, .repeat = 2}, order.listener());
  const Lines before = {"preparing the methods", "computing the reference"};
  EXPECT_EQ(order.lines,
            before + counted("measuring run", 2 * static_cast<int>(study.rows.size())));

  Told scaling;
  ScalingOptions options;
  options.threads = {1};
  options.repetitions = 2;
  options.steps = 2;
  study_strong_scaling(pair, options, scaling.listener());
  ASSERT_GE(scaling.lines.size(), 5U);
  EXPECT_EQ(scaling.lines.front(), "preparing the configurations");
  EXPECT_EQ(scaling.lines[1], "warming up");
  EXPECT_TRUE(scaling.lines[2].starts_with("taking measurement 1/")) << scaling.lines[2];
  EXPECT_EQ(scaling.lines.back(), "predicting other numbers of threads");
}

TEST(Phases, WhatIsComputedDoesNotDependOnThem) {
  Scenario pair = pair_scenario();
  pair.steps = 20;
  Told told;
  const auto heard = study_budget_axes(pair, {.budgets = {3}}, 1, told.listener());
  const auto unheard = study_budget_axes(pair, {.budgets = {3}});
  ASSERT_EQ(heard.size(), unheard.size());
  EXPECT_EQ(heard[0].rms, unheard[0].rms);
}

}  // namespace
}  // namespace portwave::test_phases
