// Event mode, early return, values within steps, and clocks of FMI 3.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "adapters/discrete_fmu.hpp"
#include "adapters/fmi/fmu_program.hpp"

namespace portwave::test_fmu_events {
namespace {

using testing::add_discrete;
using testing::DiscreteRecipe;
using testing::failure_of;
using testing::FmuFolder;
using testing::has;
using testing::Json;

/// A ball that falls on a floor, as a part whose port is free.
Json ball(bool in_process = false) {
  Json out = Json::parse(R"({
    "name": "ball",
    "time": {"step_s": 0.05, "steps": 40},
    "subsystems": [
      {"name": "ball", "type": "fmu", "path": "discrete.fmu",
       "ports": [{"name": "top", "effort": "F", "flow": "v", "input": "effort", "integral": "x"}],
       "start": {"g": 9.81, "x0": 1, "bounces": 1}, "outputs": ["x", "v", "returns", "events"]}
    ],
    "couplings": [{"kind": "free", "ports": ["ball.top"]}]
  })");
  out["subsystems"][0]["process"] = in_process;
  return out;
}

/// Its height, bounce by bounce.
double height_of_ball(double t) {
  constexpr double g = 9.81;
  double speed = std::sqrt(2.0 * g), fall = speed / g;
  if (t <= fall) return 1.0 - 0.5 * g * t * t;
  t -= fall;
  for (speed *= 0.5; t > 2.0 * speed / g; speed *= 0.5) t -= 2.0 * speed / g;
  return speed * t - 0.5 * g * t * t;
}

std::vector<std::vector<double>> states_of(const FmuFolder& folder, const Json& json, int steps,
                                           int part = 0) {
  const Scenario scenario = read(folder, json);
  Stepper stepper(scenario.system, scenario.options);
  std::vector<std::vector<double>> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    const auto state = stepper.state(part);
    out.emplace_back(state.begin(), state.end());
  }
  return out;
}

TEST(FmuEvents, StepsThatReturnEarlyAreCompleted) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder);
    // Impacts at 0.45, 0.90, 1.13 and 1.24 s; after 1.35 s there are infinitely many.
    const auto states = states_of(folder, ball(in_process), 25);
    for (std::size_t n = 0; n < states.size(); ++n)
      EXPECT_NEAR(states[n][0], height_of_ball(0.05 * static_cast<double>(n + 1)), 1e-9) << n;
    EXPECT_EQ(states.back()[2], 4.0);
    EXPECT_GE(states.back()[3], 4.0);
  }
}

/// Without event mode, and where steps cannot be taken in pieces, the FMU bounces by itself.
TEST(FmuEvents, AreOfTheFmuWhereItHasNoEventModeOrTakesNoPieces) {
  for (const DiscreteRecipe& recipe :
       {DiscreteRecipe{.has_events = false}, DiscreteRecipe{.takes_any_step = false}}) {
    FmuFolder folder;
    add_discrete(folder, recipe);
    const auto states = states_of(folder, ball(), 25);
    EXPECT_NEAR(states.back()[0], height_of_ball(1.25), 1e-9);
    EXPECT_EQ(states.back()[2], 0.0);
  }
}

/// A ball between floor and spring: iterations take its steps back, with their events.
Json ball_on_spring() {
  Json out = ball();
  out["subsystems"].push_back(Json::parse(
      R"({"name": "spring", "type": "spring", "parameters": {"stiffness_N_per_m": 20},
          "initial_state": {"elongation": 1.2}})"));
  out["subsystems"][0]["start"]["x0"] = 3.2;  // above a rest at 1.5
  out["couplings"] = Json::parse(R"([
    {"kind": "common_flow", "ports": ["ball.top", "spring.right"]},
    {"kind": "fixed", "ports": ["spring.left"]}])");
  out["method"] = Json::parse(R"({"kind": "auto", "iterations": 30, "tolerance": 1e-12,
                                  "tank": {"initial_J": 100}})");
  out["time"]["step_s"] = 0.02;
  return out;
}

TEST(FmuEvents, AreTakenBackWithTheirSteps) {
  const auto heights = [](const DiscreteRecipe& recipe, const Json& json) {
    FmuFolder folder;
    add_discrete(folder, recipe);
    std::vector<double> out;
    for (const auto& state : states_of(folder, json, 150)) out.push_back(state[0]);
    return out;
  };
  const Json json = ball_on_spring();
  const auto by_itself = heights({.has_events = false}, json), by_events = heights({}, json);
  Json isolated = json;
  isolated["subsystems"][0]["process"] = true;
  EXPECT_EQ(heights({}, isolated), by_events);
  int bounces = 0;
  for (std::size_t n = 0; n < by_events.size(); ++n) {
    EXPECT_NEAR(by_events[n], by_itself[n], 1e-8) << n;
    EXPECT_GT(by_events[n], -1e-9);
    bounces += n > 1 && by_events[n - 1] < by_events[n] && by_events[n - 1] < by_events[n - 2];
  }
  EXPECT_GE(bounces, 2);
  Json other = json;
  other["subsystems"][0]["start"]["g"] = 9.8101;
  EXPECT_GT(std::abs(heights({}, other).back() - by_events.back()), 1e-7);
}

TEST(FmuEvents, DiscreteInputsAreSetThere) {
  Json json = ball();
  json["subsystems"][0]["inputs"]["gain"] = {{"kind", "constant"}, {"value", 3}};
  json["subsystems"][0]["outputs"] = {"doubled", "quadrupled", "events"};
  for (const bool in_process : {false, true}) {
    json["subsystems"][0]["process"] = in_process;
    FmuFolder folder;
    add_discrete(folder);
    // Its discrete states need two updates.
    const auto states = states_of(folder, json, 2);
    EXPECT_EQ(states[0][0], 6.0);
    EXPECT_EQ(states[0][1], 12.0);
    EXPECT_GE(states[0][2], 1.0);
  }
  // Control: the FMU refuses what is set in step mode.
  FmuFolder folder;
  add_discrete(folder, {.gain_variability = "continuous"});
  const std::string text = failure_of([&] { states_of(folder, json, 1); });
  EXPECT_TRUE(has(text, "discrete inputs are set in event mode")) << text;
}

/// Of a velocity whose integral is not named, the mean over a step from values within it.
TEST(FmuEvents, ValuesWithinStepsMakeMeansExact) {
  const auto ways = [](const DiscreteRecipe& recipe, const char* integral, bool in_process,
                       const Json& start) {
    FmuFolder folder;
    add_discrete(folder, recipe);
    Json json = ball_on_spring();
    json["time"]["step_s"] = 0.1;
    json["subsystems"][0]["start"] = start;
    json["subsystems"][0]["process"] = in_process;
    auto& port = json["subsystems"][0]["ports"][0];
    port.erase("integral");
    if (*integral != '\0') port["integral"] = integral;
    return states_of(folder, json, 20).back()[0];
  };
  // It swings 3 times a second by itself, in steps of 0.1 s; then one that bounces.
  const Json swings = {{"k", 400}, {"x0", 0.1}},
             bounces = {{"g", 9.81}, {"x0", 3.2}, {"bounces", 1}};
  const DiscreteRecipe tells = {.has_events = false, .provides_intermediate = true},
                       is_silent = {.has_events = false},
                       has_both = {.has_events = true, .provides_intermediate = true};
  const double exact = ways(is_silent, "x", false, swings);
  for (const bool in_process : {false, true})
    EXPECT_NEAR(ways(tells, "", in_process, swings), exact, 1e-9);
  EXPECT_GT(std::abs(ways(is_silent, "", false, swings) - exact), 1e-3);
  const double bounced = ways(is_silent, "x", false, bounces);
  // Pieces of a step between events tell it too.
  EXPECT_NEAR(ways({}, "", false, bounces), bounced, 1e-8);
  EXPECT_NEAR(ways(has_both, "", true, bounces), bounced, 1e-8);
  EXPECT_GT(std::abs(ways(is_silent, "", false, bounces) - bounced), 1e-3);
}

constexpr const char* kTicks = R"(intervalVariability="constant" intervalDecimal="0.02")";

/// A block that is ticked every 0.02 s: it samples the number of its ticks, and sums what it sampled.
Json clocked(double step_s) {
  Json out = Json::parse(R"({
    "name": "clocked",
    "time": {"step_s": 0.01, "steps": 20, "start_s": 3},
    "subsystems": [
      {"name": "seen", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 1}}
    ],
    "couplings": [{"kind": "free", "ports": ["seen.coupling"]}],
    "signals": {"blocks": [
      {"kind": "gain", "name": "back", "signal": "own[1]", "factor": 1},
      {"kind": "fmu", "name": "own", "path": "discrete.fmu", "signals": {"s": "back"},
       "outputs": ["held", "ticks", "sum", "clock"]}
    ]}
  })");
  out["time"]["step_s"] = step_s;
  return out;
}

TEST(FmuClocks, TickAtTheirPeriod) {
  for (const char* const clock :
       {kTicks, R"(intervalVariability="constant" intervalCounter="2" resolution="100")",
        R"(intervalVariability="fixed")"}) {
    for (const bool in_process : {false, true}) {
      for (const int every : {1, 2, 4}) {  // steps from tick to tick
        FmuFolder folder;
        add_discrete(folder, {.clock = clock});
        Json json = clocked(0.02 / every);
        json["signals"]["blocks"][1]["process"] = in_process;
        const Scenario scenario = read(folder, json);
        Stepper stepper(scenario.system, scenario.options);
        const auto value = [&](int output) {
          const std::string name = "own[" + std::to_string(output) + "]";
          return stepper
              .signals()[static_cast<std::size_t>(scenario.options.signals->find_signal(name))];
        };
        for (int n = 0; n < 20; ++n) {
          const int ticks = (n + every - 1) / every;  // before sample n
          EXPECT_EQ(value(1), ticks) << n;
          EXPECT_EQ(value(0), std::max(ticks - 1, 0)) << n;
          EXPECT_EQ(value(2), ticks * (ticks - 1) / 2) << n;
          EXPECT_EQ(value(3), n > 0 && (n - 1) % every == 0 ? 1.0 : 0.0) << n;
          stepper.step();
        }
      }
    }
  }
}

TEST(FmuClocks, ARunThatBeginsAgainHasNotTicked) {
  FmuFolder folder;
  add_discrete(folder, {.clock = kTicks});
  const Scenario scenario = read(folder, clocked(0.02));
  const auto at = static_cast<std::size_t>(scenario.options.signals->find_signal("own[3]"));
  for (int run = 0; run < 2; ++run) {
    Stepper stepper(scenario.system, scenario.options);
    EXPECT_EQ(stepper.signals()[at], 0.0) << run;
    stepper.step(3);
    EXPECT_EQ(stepper.signals()[at], 1.0) << run;
  }
}

/// Between ticks the FMU says anything.
TEST(FmuClocksControl, ValuesHaveToBeHeld) {
  FmuFolder folder;
  const auto fmu = fmi::Fmu::open(add_discrete(folder));
  const fmi::Variable* const held[] = {fmu->description().find("held")};
  const fmi::VariableList list(held);
  const auto value = [&](const fmi::Shown& shown) {
    const auto instance = fmi::start_instance(fmu, "own", {}, 0.0, {}, shown);
    for (int n = 0; n < 2; ++n) instance->step(0.01 * n, 0.01);
    double out = 0.0;
    instance->get(list, &out);
    return out;
  };
  EXPECT_EQ(value({}), 99.0);
  EXPECT_EQ(value({.watched = {}, .clocked = list}), 0.0);
}

TEST(FmuClocks, TicksWithinStepsAreRefused) {
  for (const bool in_process : {false, true}) {
    for (const double step : {0.03, 0.04, 0.015}) {
      FmuFolder folder;
      add_discrete(folder, {.clock = kTicks});
      Json json = clocked(step);
      json["signals"]["blocks"][1]["process"] = in_process;
      const std::string text = failure_of([&] {
        const Scenario scenario = read(folder, json);
        Stepper stepper(scenario.system, scenario.options);
        stepper.step(5);
      });
      EXPECT_TRUE(has(text, "has the clock \"clock\", which ticks every 0.02 s")) << text;
      EXPECT_TRUE(has(text, "Choose a step that divides it, such as 0.0")) << text;
    }
  }
  // Shifted by half a step.
  FmuFolder folder;
  add_discrete(folder, {.clock = R"(intervalVariability="constant" intervalDecimal="0.02")"
                                 R"( shiftDecimal="0.005")"});
  const std::string text = failure_of([&] {
    const Scenario scenario = read(folder, clocked(0.01));
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(5);
  });
  EXPECT_TRUE(has(text, "for the first time after 0.005 s")) << text;
}

TEST(FmuClocks, OutputClocksAreHeard) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder);
    Json json = ball(in_process);
    json["subsystems"][0]["outputs"] = {"hit", "hits", "impact", "x"};
    const auto states = states_of(folder, json, 25);
    double hits = 0.0, speed = std::sqrt(2.0 * 9.81);
    for (const auto& state : states) {
      EXPECT_EQ(state[1], hits + state[0]);  // one in a step at most
      hits = state[1];
      if (state[0] == 0.0) continue;
      EXPECT_NEAR(state[2], speed, 1e-9);
      speed *= 0.5;
    }
    EXPECT_EQ(hits, 4.0);
  }
}

TEST(FmuClocks, OthersAreRefusedByName) {
  FmuFolder folder;
  const auto report = [&](const DiscreteRecipe& recipe, const Json& json) {
    add_discrete(folder, recipe);
    return report_of(folder, json);
  };
  EXPECT_EQ(report({}, clocked(0.01)), "");
  std::string text = report({.clock = R"(intervalVariability="countdown")"}, clocked(0.01));
  EXPECT_TRUE(has(text, "the clock \"clock\" of the FMU has an interval that is countdown"))
      << text;
  text = report({.clock = R"(intervalVariability="constant")"}, clocked(0.01));
  EXPECT_TRUE(has(text, "is constant, and no value of it")) << text;
  text = report({.clock = R"(intervalVariability="triggered")"}, clocked(0.01));
  EXPECT_TRUE(has(text, "\"held\" waits for clock, which nobody ticks")) << text;
  text = report({.has_events = false}, clocked(0.01));
  EXPECT_TRUE(has(text, "the FMU has no event mode")) << text;
  Json json = clocked(0.01);
  json["signals"]["blocks"][1]["signals"] = {{"clock", "back"}};
  text = report({}, json);
  EXPECT_TRUE(has(text, "\"clock\" must be a single number, and is a clock")) << text;
  text = report({.more_variables = R"(<Float64 name="z" valueReference="91" clocks="7"/>)"}, json);
  EXPECT_TRUE(has(text, "variable \"z\" is of the clock \"7\", which there is not")) << text;
}

/// A mass that is kicked by events which it announces, and is due where its own sum of times is not below theirs.
Json kicked(double step_s, bool in_process) {
  Json out = ball(in_process);
  out["subsystems"][0]["start"] = {{"beat", 0.1}, {"kick", 0.5}};
  out["subsystems"][0]["outputs"] = {"x", "beats", "late", "v"};
  out["method"] = Json::parse(R"({"kind": "auto", "iterations": 30, "tolerance": 1e-12,
                                  "tank": {"initial_J": 1e6}})");
  out["time"]["step_s"] = step_s;
  return out;
}

constexpr const char* kNoClock = R"(intervalVariability="triggered")";

TEST(FmuEvents, AnnouncedOnesAreMetExactly) {
  // At ends of steps, whose times are rounded, and within steps.
  for (const double step_s : {0.01, 0.02, 0.1, 0.04, 0.03, 0.7}) {
    for (const bool in_process : {false, true}) {
      FmuFolder folder;
      add_discrete(folder, {.clock = kNoClock});
      const auto states = states_of(folder, kicked(step_s, in_process), 50);
      for (std::size_t n = 0; n < states.size(); ++n) {
        const double time_s = step_s * static_cast<double>(n + 1);
        const double beats = std::floor(time_s / 0.1 + 1e-6);
        EXPECT_EQ(states[n][1], beats) << time_s;
        EXPECT_NEAR(states[n][2], 0.0, 1e-14 * time_s) << time_s;
        // 0.5 (t - 0.1 k), k = 1, 2, ...
        EXPECT_NEAR(states[n][0], 0.5 * (beats * time_s - 0.05 * beats * (beats + 1.0)), 1e-9)
            << time_s;
      }
    }
  }
}

TEST(FmuEvents, AnnouncedOnesAreTakenBackWithTheirSteps) {
  const auto ways = [](double step_s, bool in_process) {
    FmuFolder folder;
    add_discrete(folder, {.clock = kNoClock});
    Json json = ball_on_spring();
    json["subsystems"][0]["start"] = {{"beat", 0.1}, {"kick", 0.5}, {"k", 50}, {"x0", 0.2}};
    json["subsystems"][0]["outputs"] = {"x", "beats", "late"};
    json["subsystems"][0]["process"] = in_process;
    json["time"]["step_s"] = step_s;
    return states_of(folder, json, 40);
  };
  for (const double step_s : {0.01, 0.04}) {
    const auto states = ways(step_s, false);
    EXPECT_EQ(states.back()[1], std::floor(40 * step_s / 0.1 + 1e-6));
    EXPECT_NEAR(states.back()[2], 0.0, 1e-14);
    EXPECT_EQ(ways(step_s, true), states);
  }
}

/// An answer that the FMU tells nothing of within steps, though of others.
TEST(FmuEvents, OnlyValuesThatAreToldWithinStepsAreReadThere) {
  const auto way = [](bool tells, const char* flow, bool in_process) {
    FmuFolder folder;
    add_discrete(folder, {.has_events = false, .provides_intermediate = tells});
    Json json = ball_on_spring();
    json["time"]["step_s"] = 0.1;
    json["subsystems"][0]["start"] = {{"k", 400}, {"x0", 0.1}};
    json["subsystems"][0]["process"] = in_process;
    json["subsystems"][0]["ports"][0].erase("integral");
    json["subsystems"][0]["ports"][0]["flow"] = flow;
    return states_of(folder, json, 20).back()[0];
  };
  const double by_ends = way(false, "v", false);
  for (const bool in_process : {false, true}) {
    EXPECT_NEAR(way(true, "speed", in_process), by_ends, 1e-9);
    EXPECT_GT(std::abs(way(true, "v", in_process) - by_ends), 1e-3);
  }
}

/// Some tell of the beginning of a step too, by a time of their own that is a rounding before it.
TEST(FmuEvents, ValuesTheyTellMayBeARoundingBeforeTheStep) {
  const auto way = [](const char* defect) {
    FmuFolder folder;
    add_discrete(folder, {.provides_intermediate = true, .defect = defect});
    Json json = ball();
    json["subsystems"][0]["ports"][0].erase("integral");
    return states_of(folder, json, 25);
  };
  EXPECT_EQ(way("tells_before"), way(""));
}

TEST(FmuEvents, StepsThatReturnARoundingEarlyAreCompleted) {
  FmuFolder folder;
  add_discrete(folder, {.defect = "stands_short"});
  Json json = ball();
  json["subsystems"][0]["start"] = {{"g", 9.81}, {"x0", 1}};
  const auto states = states_of(folder, json, 5);
  EXPECT_EQ(states.back()[2], 5.0);
}

/// Of what changes at ticks: between them the FMU says anything.
TEST(FmuClocks, MeansAreOfHeldValues) {
  for (const bool tells : {false, true}) {
    for (const bool in_process : {false, true}) {
      FmuFolder folder;
      const std::shared_ptr<const fmi::Fmu> fmu =
          fmi::Fmu::open(add_discrete(folder, {.provides_intermediate = tells}));
      const auto variable = [&](const char* name) { return fmu->description().find(name); };
      fmi::VariableList impact;
      impact.add(*variable("impact"));
      const fmi::StartValue start[] = {
          {variable("g"), 9.81}, {variable("x0"), 1.0}, {variable("bounces"), 1.0}};
      const auto instance = fmi::start_instance(fmu, "own", start, 0.0,
                                                {.in_a_process = in_process, .time_limit_s = 10.0},
                                                {.watched = impact, .clocked = impact});
      const double speed = std::sqrt(2.0 * 9.81), fall_s = speed / 9.81;
      for (int n = 0; n < 6; ++n) {
        instance->step(0.1 * n, 0.1);
        double mean = -1.0;
        instance->ask_means(&mean);
        instance->finish();
        const double after_s = std::clamp(0.1 * (n + 1) - fall_s, 0.0, 0.1);
        EXPECT_NEAR(mean, speed * after_s / 0.1, 1e-9) << n;
      }
    }
  }
}

/// Inputs that are set before a step cause ticks, which are of that step.
TEST(FmuClocks, TicksThatInputsCauseAreHeard) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder);
    Json json = ball(in_process);
    json["subsystems"][0]["inputs"]["gain"] = {{"kind", "constant"}, {"value", 3}};
    json["subsystems"][0]["outputs"] = {"changed", "doubled"};
    const auto states = states_of(folder, json, 3);
    EXPECT_EQ(states[0], (std::vector<double>{1, 6}));
    EXPECT_EQ(states[1], (std::vector<double>{0, 6}));
    EXPECT_EQ(states[2], (std::vector<double>{0, 6}));
  }
}

/// Times of long runs: sums of steps would have left the ticks.
TEST(FmuClocks, TickLateInLongRuns) {
  FmuFolder folder;
  add_discrete(folder, {.clock = kTicks});
  Json json = ball();
  json["subsystems"][0]["start"] = Json::object();
  json["subsystems"][0]["outputs"] = {"ticks"};
  json["time"] = {{"step_s", 0.01}, {"steps", 2000}, {"start_s", 1e6}};
  EXPECT_EQ(states_of(folder, json, 2000).back()[0], 1000.0);
}

/// Of an FMU without a state, handles of states may be null.
TEST(FmuEvents, HandlesOfStatesMayBeEqual) {
  FmuFolder folder;
  const auto fmu = fmi::Fmu::open(add_discrete(folder, {.defect = "no_state"}));
  fmi::Program program(fmu, "own", {}, 0.0, {}, {}, true);
  fmi::SavedState first, second;
  program.step(0.0, 0.01);
  program.save(first, 0.01);
  program.step(0.01, 0.01);
  program.save(second, 0.02);
  program.release(second);
  program.restore(first);
  program.step(0.01, 0.01);
  program.restore(program.initial());
  program.release(first);
}

struct Hostile {
  const char* defect;
  const char* words;
};

class HostileEvents : public ::testing::TestWithParam<Hostile> {};

/// The run ends where it was committed, with the part and what the FMU did.
TEST_P(HostileEvents, EndTheRunWithThePart) {
  for (const bool in_process : {false, true}) {
    FmuFolder folder;
    add_discrete(folder, {.provides_intermediate = true, .defect = GetParam().defect});
    Json json = ball(in_process);
    json["time"]["step_s"] = 0.02;
    json["subsystems"][0]["ports"][0].erase("integral");
    json["subsystems"][0]["inputs"]["gain"] = {{"kind", "constant"}, {"value", 3}};
    const Scenario scenario = read(folder, json);
    Stepper stepper(scenario.system, scenario.options);
    const std::string text = failure_of([&] { stepper.step(100); });
    EXPECT_TRUE(has(text, "part \"ball\" failed in step ")) << text;
    EXPECT_TRUE(has(text, GetParam().words)) << text;
    EXPECT_TRUE(has(text, "the state is that before the step")) << text;
    // 0.06 s is the first time at which it does so; the ball hits the floor at 0.45 s.
    const double last = GetParam().defect == std::string("not_a_number") ? 0.44 : 0.06;
    EXPECT_NEAR(stepper.time_s(), last, 1e-9);
    EXPECT_NEAR(stepper.state(0)[0], height_of_ball(last), 1e-9);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, HostileEvents,
    ::testing::Values(
        Hostile{"never_leaves", "does not leave event mode: at 0.06"},
        Hostile{"terminates", "asks to end the simulation, in fmi3UpdateDiscreteStates at 0.06"},
        Hostile{"past_event", "that its next event is at 0.0"},
        Hostile{"early_outside", "says that it has come to 0.1 s, which is not within the step"},
        Hostile{"early_nan", "says that it has come to nan s, which is not within the step"},
        Hostile{"early_stands", "returns early again and again from fmi3DoStep from 0.0"},
        Hostile{"update_outside", "tells values at 0.16 s in a step from 0.06"},
        Hostile{"not_a_number", "not finite"}),
    [](const auto& own) { return std::string(own.param.defect); });

TEST(HostileEventsControl, WithoutDefectItRuns) {
  FmuFolder folder;
  add_discrete(folder, {.provides_intermediate = true});
  Json json = ball();
  json["subsystems"][0]["ports"][0].erase("integral");
  EXPECT_NEAR(states_of(folder, json, 25).back()[0], height_of_ball(1.25), 1e-9);
}

TEST(HostileEvents, CrashesAndHangsInEventModeAreContained) {
  for (const auto& [defect, words] :
       {std::pair<const char*, const char*>{"crashes", "signal SIGABRT"},
        {"hangs", "did not return within 0.5 s from"}}) {
    FmuFolder folder;
    add_discrete(folder, {.defect = defect});
    Json json = ball(true);
    json["subsystems"][0]["time_limit_s"] = 0.5;
    json["subsystems"][0]["inputs"]["gain"] = {{"kind", "constant"}, {"value", 3}};
    const Scenario scenario = read(folder, json);
    Stepper stepper(scenario.system, scenario.options);
    const std::string text = failure_of([&] { stepper.step(10); });
    EXPECT_TRUE(has(text, words)) << text;
    EXPECT_TRUE(has(text, "part \"ball\" failed in step 2")) << text;
    EXPECT_NEAR(stepper.time_s(), 0.1, 1e-9);
  }
}

/// Where the FMU does not know it yet, the interval of the description counts.
TEST(FmuClocks, IntervalsMayNotBeKnownYet) {
  FmuFolder folder;
  add_discrete(folder, {.defect = "late_interval",
                        .clock = R"(intervalVariability="fixed" intervalDecimal="0.02")"});
  Json json = ball();
  json["subsystems"][0]["outputs"] = {"ticks"};
  json["time"]["step_s"] = 0.01;
  EXPECT_EQ(states_of(folder, json, 10).back()[0], 5.0);
  add_discrete(folder, {.defect = "late_interval", .clock = R"(intervalVariability="fixed")"});
  const std::string text = report_of(folder, json);
  EXPECT_TRUE(has(text, "does not tell the interval of its clock \"clock\"")) << text;
}

TEST(HostileEvents, AnIntervalThatIsNotToldIsRefused) {
  FmuFolder folder;
  add_discrete(folder, {.defect = "no_interval", .clock = R"(intervalVariability="fixed")"});
  const std::string text = report_of(folder, clocked(0.01));
  EXPECT_TRUE(has(text, "does not tell the interval of its clock \"clock\"")) << text;
}

}  // namespace
}  // namespace portwave::test_fmu_events
