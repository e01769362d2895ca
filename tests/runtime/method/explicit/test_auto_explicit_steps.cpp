// `auto` where it may leave waves: Taylor series, kicks and drifts, or waves after all.

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "runtime/method/states_of_stepper.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_auto_explicit_steps {
namespace {

constexpr const char* kFixed = R"({"step_s": 0.02, "end_s": 1})";
constexpr const char* kChosen =
    R"({"step": {"kind": "adaptive", "largest_s": 1, "tolerance": 1e-6}, "end_s": 3})";
const std::string kAuto = R"({"kind": "auto", "explicit_steps": true})";
const std::string kStages = R"({"kind": "auto", "stages": 3, "explicit_steps": true})";

/// Two chains of masses, springs and dampers; ω up to some 9 rad/s.
Scenario chains(const std::string& method, const std::string& time, double damping = 0.2,
                const std::string& force = "", double own_damping = 0.0) {
  return parse_scenario(
      fmt::format(
          R"({{"name": "chains", "subsystems": [
      {{"name": "A", "type": "linear_oscillator",
        "parameters": {{"mass_kg": 2, "stiffness_N_per_m": 40, "damping_Ns_per_m": {}}},
        "initial_state": {{"q2": 0.3}}{}}},
      {{"name": "S", "type": "spring_damper",
        "parameters": {{"stiffness_N_per_m": 30, "damping_Ns_per_m": {}}}}},
      {{"name": "B", "type": "linear_oscillator",
        "parameters": {{"mass_kg": 1, "stiffness_N_per_m": 30, "damping_Ns_per_m": 0}}}}],
      "couplings": [{{"kind": "connection", "ports": ["A.coupling", "S.left"]}},
                    {{"kind": "connection", "ports": ["S.right", "B.coupling"]}}],
      "outputs": {{"observe": ["A.q2"]}}, "time": {}, "method": {}}})",
          own_damping,
          force.empty() ? std::string() : fmt::format(R"(, "inputs": {{"force": {}}})", force),
          damping, time, method),
      "chains.json", ".");
}

std::string remarks_of(const Scenario& scenario) {
  return Stepper(scenario.system, scenario.options).remarks();
}

/// The scenario's run has the bits of that by `method`, and says so.
void expect_taken(const Scenario& chosen, const Splitting& method, const std::string& said) {
  StepperOptions options = chosen.options;
  options.method = method;
  Stepper own(chosen.system, options), taken(chosen.system, chosen.options);
  own.run_until(chosen.end_s);
  taken.run_until(chosen.end_s);
  EXPECT_EQ(taken.waves(), nullptr) << taken.remarks();
  EXPECT_NE(taken.remarks().find(said), std::string::npos) << taken.remarks();
  EXPECT_EQ(testing::all_states(taken), testing::all_states(own)) << said;
}

void expect_waves(const Scenario& scenario, const std::vector<std::string>& said) {
  const Stepper stepper(scenario.system, scenario.options);
  EXPECT_NE(stepper.waves(), nullptr) << stepper.remarks();
  for (const std::string& part : said) {
    EXPECT_NE(stepper.remarks().find(part), std::string::npos) << stepper.remarks();
  }
}

TEST(AutoExplicitSteps, LinearNetworksTakeTaylorSeriesOfTheOrderThatSuits) {
  for (const auto& [step_s, order] :
       {std::pair{0.02, 8}, std::pair{0.1, 12}, std::pair{0.2, 16}, std::pair{0.4, 24}}) {
    const std::string time = fmt::format(R"({{"step_s": {}, "steps": 40}})", step_s);
    for (const int stages : {2, 3}) {
      const std::string method =
          fmt::format(R"({{"kind": "auto", "stages": {}, "explicit_steps": true}})", stages);
      expect_taken(
          chains(method, time), {.kind = SplittingKind::taylor, .order = order},
          fmt::format("auto: Taylor series of order {}, as h times the fastest rate is", order));
    }
  }
  expect_waves(chains(kStages, R"({"step_s": 0.6, "steps": 40})"),
               {"not Taylor series: h times the fastest rate is", "more than 4",
                "not kicks and drifts: h times the highest frequency is"});
}

TEST(AutoExplicitSteps, DampersThatKicksAndDriftsRefuseAreNoneToTaylorSeries) {
  // h‖𝒟‖ = 0.02 s · 20 N s/m · (1/2 + 1) /kg = 0.6, shared.
  expect_taken(chains(kStages, kFixed, 20.0), {.kind = SplittingKind::taylor, .order = 12},
               "auto: Taylor series");
}

TEST(AutoExplicitSteps, ChosenStepsNeedNoStages) {
  const std::string method = R"({"kind": "auto", "explicit_steps": true})";
  expect_taken(chains(method, kChosen), {.kind = SplittingKind::taylor, .order = 16},
               "auto: Taylor series of order 16, as h times the fastest damping is");
  const System pair = testing::separable_pair();
  StepperOptions options = chains(method, kChosen).options;
  Stepper taken(pair, options);
  options.method = Splitting{.kind = SplittingKind::kick_drift, .order = 6};
  Stepper own(pair, options);
  own.run_until(3.0);
  taken.run_until(3.0);
  EXPECT_EQ(taken.waves(), nullptr) << taken.remarks();
  EXPECT_EQ(testing::all_states(taken), testing::all_states(own));
  EXPECT_NE(taken.remarks().find("auto: kicks and drifts, as"), std::string::npos);
  EXPECT_NE(taken.remarks().find("is not linear"), std::string::npos) << taken.remarks();
  EXPECT_NE(Stepper(chains(R"({"kind": "auto"})", kChosen).system,
                    chains(R"({"kind": "auto"})", kChosen).options)
                .waves(),
            nullptr)
      << "control";
}

TEST(AutoExplicitSteps, StiffDecaysStayWithWaves) {
  expect_waves(chains(kAuto, kChosen, 400.0),
               {"not Taylor series: the fastest damping is", "not kicks and drifts"});
  EXPECT_EQ(remarks_of(chains(kAuto, kChosen, 400.0)).find("auto: Taylor"), std::string::npos);
}

// A ball above the ground has no frequency, and dampers are slow beside the longest step.
TEST(AutoExplicitSteps, WhatDoesNotSwingAtTheStartIsNotStiff) {
  const auto ball = [](double damping, const std::string& end) {
    return parse_scenario(fmt::format(R"({{"name": "ball", "subsystems": [
      {{"name": "ball", "type": "mass", "parameters": {{"mass_kg": 2, "damping_Ns_per_m": {}}},
        "initial_state": {{"position": -1}}, "inputs": {{"force": 19.62}}}}{}],
      "time": {}, "method": {}, "outputs": {{"observe": ["ball.position"]}}}})",
                                      damping, end, kChosen, kAuto),
                          "ball.json", ".");
  };
  const std::string floor = R"(, {"name": "floor", "type": "contact",
        "parameters": {"force_N": 200, "compression_m": 0.05}, "initial_state": {"approach": -1}}],
      "couplings": [{"kind": "connection", "ports": ["ball.port", "floor.face"]})";
  const std::string nothing = R"(], "couplings": [{"kind": "free", "ports": ["ball.port"]})";
  const Splitting drifts{.kind = SplittingKind::kick_drift, .order = 6};
  expect_taken(ball(0.1, floor), drifts, "auto: kicks and drifts, as h times the fastest damping");
  expect_waves(ball(100.0, floor), {"not kicks and drifts: the fastest damping is"});
  const Splitting series{.kind = SplittingKind::taylor, .order = 16};
  expect_taken(ball(0.1, nothing), series, "auto: Taylor series of order 16, as h times");
  expect_waves(ball(100.0, nothing), {"not Taylor series: the fastest damping is"});
}

TEST(AutoExplicitSteps, InputsWithKinksAreForStepsThatEndThere) {
  const std::string jump = R"({"kind": "table", "knots": [[0, 0], [0.5, 0], [0.5, 3]]})";
  const std::string sine =
      R"({"kind": "sine_product", "amplitude": 3, "sines": [{"frequency_Hz": 1}]})";
  expect_taken(chains(kStages, kFixed, 0.2, sine), {.kind = SplittingKind::taylor, .order = 8},
               "auto: Taylor series");
  expect_taken(chains(kStages, kFixed, 0.2, jump), {.kind = SplittingKind::kick_drift, .order = 6},
               "not Taylor series: input \"A.force\" jumps or has a kink");
  expect_taken(chains(kAuto, kChosen, 0.2, jump), {.kind = SplittingKind::taylor, .order = 16},
               "auto: Taylor series of order 16");
}

TEST(AutoExplicitSteps, OneStageIsRefused) {
  const auto issues = [](const std::string& time) {
    try {
      const Scenario scenario =
          chains(R"({"kind": "auto", "stages": 1, "explicit_steps": true})", time);
      const Stepper stepper(scenario.system, scenario.options);
    } catch (const ConfigError& error) {
      return error.issues();
    }
    return Issues{};
  };
  for (const char* const time : {kFixed, kChosen}) {
    const Issues found = issues(time);
    ASSERT_EQ(found.size(), 1U) << time;
    EXPECT_EQ(found.front().where, "/method/explicit_steps");
    EXPECT_NE(found.front().what.find("2 or 3 \"stages\""), std::string::npos);
  }
}

TEST(AutoExplicitSteps, DeadlinesStayWithWaves) {
  Scenario scenario = chains(kStages, kFixed);
  scenario.options.time.deadline_s = 10.0;
  expect_waves(scenario, {"auto: waves, not Taylor series or kicks and drifts", "deadline"});
}

}  // namespace
}  // namespace portwave::test_auto_explicit_steps
