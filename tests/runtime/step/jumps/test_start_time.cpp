// Runs that begin at another time than 0: steps are counted from the start, all else goes by the time.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"

namespace portwave::test_start_time {
namespace {

using Json = nlohmann::json;

System driven(const Signal& force, std::vector<double> state = {0.0, 0.0}) {
  SystemBuilder builder;
  builder.add("m", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 30}),
              {.initial_state = std::move(state), .inputs = {{"force", force}}});
  builder.join(joint::Free{}, {"m.coupling"});
  return builder.build();
}

const Signal kForces[] = {Signal::expression("3*sin(t*t) + (t > 5.05)"),
                          Signal::piecewise_linear({{0, 0}, {5.03, 2}, {5.03, -4}, {6, 1}}),
                          Signal::noise({.standard_deviation = 2, .interval_s = 0.013, .seed = 7}),
                          Signal::chirp({.from_Hz = 0.5, .to_Hz = 3, .duration_s = 8}),
                          Signal::callback([](double t) { return std::cos(3.0 * t); })};

TEST(StartTime, ARunFromTheStateOfAnotherRepeatsIt) {
  for (const Signal& force : kForces) {
    for (const bool by_waves : {true, false}) {
      const CouplingMethod method =
          by_waves ? CouplingMethod::automatic() : CouplingMethod(Splitting{});
      const System whole = driven(force, {0.1, 0.2});
      Stepper stepper(whole, {.step_s = 0.01, .method = method});
      stepper.step(500);
      const std::vector<double> x(stepper.state("m").begin(), stepper.state("m").end());
      const System later = driven(force, x);
      Stepper second(later, {.step_s = 0.01, .start_s = 5.0, .method = method});
      EXPECT_EQ(second.time_s(), 5.0);
      stepper.step(37);
      second.step(37);
      EXPECT_EQ(second.time_s(), 5.0 + 37 * 0.01);
      EXPECT_EQ(second.step_index(), 37);
      for (std::size_t i = 0; i < x.size(); ++i) {
        EXPECT_NEAR(second.state("m")[i], stepper.state("m")[i], 1e-12);
      }
      // Control: from 0 it is another run.
      Stepper third(later, {.step_s = 0.01, .method = method});
      third.step(37);
      EXPECT_GT(std::abs(third.state("m")[1] - stepper.state("m")[1]), 1e-4);
    }
  }
}

TEST(StartTime, LongTimesKeepTheirStepCounts) {
  const System system = driven(Signal::constant(1.0));
  for (const double start : {1e9, -1e9, 3.7e8, -0.3}) {
    Stepper stepper(system, {.step_s = 1e-3, .start_s = start});
    for (int n = 1; n <= 2000; ++n) {
      stepper.step();
      ASSERT_EQ(stepper.time_s(), start + n * 1e-3);
    }
    stepper.run_until(start + 3.0);
    EXPECT_EQ(stepper.step_index(), 3000) << start;
    EXPECT_FALSE(stepper.step_if_before(start + 3.0)) << start;
    EXPECT_TRUE(stepper.step_if_before(start + 3.0005)) << "a part of a step, from " << start;
  }
}

TEST(StartTime, StepsThatChooseTheirSizeMeetKnotsAndTheEnd) {
  const System system = driven(kForces[1]);
  StepperOptions options{.step_s = 0.2, .sizes = StepSizes{}, .start_s = 5.0};
  Stepper stepper(system, options);
  bool met = false;
  while (stepper.step_if_before(6.0)) met = met || stepper.time_s() == 5.03;
  EXPECT_TRUE(met);
  EXPECT_EQ(stepper.time_s(), 6.0);
}

TEST(StartTime, ASnapshotRestoresItsOwnTime) {
  const System system = driven(kForces[0]);
  Stepper early(system, {.step_s = 0.01});
  early.step(10);
  const Snapshot snapshot = early.snapshot();
  Stepper late(system, {.step_s = 0.01, .start_s = -7.0});
  late.step(3);
  late.restore(snapshot);
  EXPECT_EQ(late.time_s(), early.time_s());
  early.step(20);
  late.step(20);
  EXPECT_EQ(late.time_s(), early.time_s());
  EXPECT_EQ(late.state("m")[1], early.state("m")[1]);
  Stepper clone = late.clone();
  EXPECT_EQ(clone.time_s(), late.time_s());
}

TEST(StartTime, EnsemblesBeginThereToo) {
  const System system = driven(kForces[0]);
  const StepperOptions options{.step_s = 0.01, .start_s = 5.0};
  Stepper stepper(system, options);
  stepper.step(30);
  Ensemble ensemble(system, 3, options);
  ensemble.step(30);
  double state[2] = {};
  ensemble.get_state(1, state);
  EXPECT_NEAR(state[1], stepper.state("m")[1], 1e-13);
}

TEST(StartTime, IsRefusedWhereItIsNotFinite) {
  const System system = driven(Signal());
  EXPECT_THROW(Stepper(system, {.start_s = std::numeric_limits<double>::infinity()}), ConfigError);
}

Json loop(double start_s, const std::string& step) {
  Json json = Json::parse(R"({
    "name": "loop", "time": {"end_s": 8},
    "subsystems": [{"name": "m", "type": "linear_oscillator",
      "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4},
      "inputs": {"force": {"kind": "signal", "signal": "slow"}}}],
    "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
    "method": {"kind": "auto"},
    "signals": {"blocks": [
      {"name": "clock", "kind": "expression", "expression": "t", "signals": {}},
      {"name": "slow", "kind": "expression", "expression": "t", "signals": {}, "every": 10},
      {"name": "jump", "kind": "table", "knots": [[0, 0], [5.07, 0], [5.07, 1], [9, 1]]}]}})");
  json["time"].update(Json::parse(step));
  json["time"]["start_s"] = start_s;
  if (json["time"].contains("step")) json["signals"]["every_s"] = 0.01;
  return json;
}

TEST(StartTime, SamplesAreAtMultiplesOfTheirPeriod) {
  for (const std::string step :
       {R"({"step_s": 0.01})", R"({"step": {"kind": "adaptive", "tolerance": 1e-5}})"}) {
    for (const double start : {5.0, 5.04, -0.03}) {
      const Scenario scenario = parse_scenario(loop(start, step).dump(), "file", ".");
      Stepper stepper(scenario.system, scenario.options);
      const SignalGraph& graph = *scenario.options.signals;
      const auto value = [&](const char* name) {
        return stepper.signals()[static_cast<std::size_t>(graph.find_signal(name))];
      };
      EXPECT_EQ(value("clock"), start) << step;
      EXPECT_EQ(value("slow"), start) << "all are sampled at the start";
      for (int n = 0; n < 40; ++n) {
        if (stepper.step_sizes() == nullptr) {
          stepper.step();
        } else {
          stepper.run_until(start + 0.01 * (n + 1) + 1e-6);  // the sample lies behind
        }
        const double t = stepper.time_s();
        EXPECT_NEAR(value("clock"), t, 2e-6) << step;
        const double tenth = 0.1 * std::floor(t / 0.1 + 1e-9);
        EXPECT_NEAR(value("slow"), std::max(tenth, start), 1e-12) << step << " at " << t;
        EXPECT_EQ(value("jump"), t > 5.07 - 1e-9 ? 1.0 : 0.0) << step << " at " << t;
      }
    }
  }
}

TEST(StartTime, RunsBesideATableAreTold) {
  const auto notes_of = [](double start, double end) {
    Json json = loop(start, R"({"step_s": 0.01})");
    json["time"]["end_s"] = end;
    json["subsystems"][0]["inputs"]["force"] = {{"kind", "table"}, {"knots", {{1, 0.5}, {4, 0.7}}}};
    const Scenario scenario = parse_scenario(json.dump(), "file", ".");
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(scenario.steps);
    const RunSummary summary = summarize("loop", scenario.options, stepper, 1.0);
    EXPECT_EQ(summary.notes.size(), scenario.notes.size());
    EXPECT_TRUE(summary.is_all_well());
    return summary.notes;
  };
  EXPECT_EQ(
      notes_of(4.0, 5.2),
      (std::vector<std::string>{
          "the table of \"m\" (force) goes from 1 s to 4 s, and the run from 4 s to 5.2 s lies "
          "wholly after it: there it is 0.7 throughout"}));
  EXPECT_EQ(notes_of(-1.0, 0.5).size(), 1U) << "before that of the input";
  EXPECT_EQ(notes_of(9.0, 9.5).size(), 2U) << "after that of the block, too";
  EXPECT_TRUE(notes_of(0.0, 1.5).empty()) << "control";
  EXPECT_TRUE(notes_of(3.9, 5.0).empty()) << "control";
}

TEST(StartTime, TheEndOfAScenarioIsAfterItsStart) {
  const auto defect_of = [](const Json& time) {
    Json json = loop(0.0, R"({"step_s": 0.01})");
    json["time"] = time;
    try {
      return std::to_string(parse_scenario(json.dump(), "file", ".").steps);
    } catch (const ScenarioError& error) {
      return error.issues().front().where + ": " + error.issues().front().what;
    }
  };
  EXPECT_EQ(defect_of({{"start_s", 5}, {"step_s", 0.01}, {"end_s", 4}}),
            "/time/end_s: must be later than \"start_s\", which is 5 s, got 4");
  EXPECT_EQ(
      defect_of({{"start_s", 5}, {"step_s", 0.01}, {"end_s", 5.255}}),
      "/time/end_s: must be a whole number of steps of 0.01 s after \"start_s\" = 5, got 5.255.\n"
      "5.25 or 5.26 would do.");
  EXPECT_EQ(defect_of({{"start_s", 1e9}, {"step_s", 1e-3}, {"end_s", 1000000007.123}}), "7123");
  EXPECT_EQ(defect_of({{"start_s", -2}, {"step_s", 0.5}, {"end_s", -1}}), "2");
  EXPECT_EQ(defect_of({{"step_s", 0.5}, {"end_s", -1}}).substr(0, 12), "/time/end_s:");
}

}  // namespace
}  // namespace portwave::test_start_time
