// Events: where something passes its level, within a step that chooses its size and at the ends of
// those of one size; contacts; and controllers that are sampled by time. Times are compared with
// formulas.

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_events {
namespace {

constexpr double kGravity = 9.81, kMass_kg = 2.0, kHeight_m = 1.0, kStiffness = 2e5;

std::string adaptive(double tolerance, double largest_s, double end_s,
                     const std::string& more = "") {
  return R"({"step": {"kind": "adaptive", "tolerance": )" + std::to_string(tolerance * 1e12) +
         R"(e-12, "largest_s": )" + std::to_string(largest_s) + more + R"(}, "end_s": )" +
         std::to_string(end_s) + "}";
}

/// A ball that falls on an elastic floor, from kHeight_m; positions point down. `far_m`: where it
/// touches.
Scenario ball(const std::string& time, double damping = 0.0, double gap_m = 0.0,
              double far_m = 0.0) {
  const auto below = [](double m) { return std::to_string(m - kHeight_m); };
  return parse_scenario(R"({"name": "ball", "time": )" + time + R"(,
  "subsystems": [
    {"name": "ball", "type": "mass", "parameters": {"mass_kg": 2},
     "inputs": {"force": {"kind": "constant", "value": 19.62}},
     "initial_state": {"position": )" +
                            below(far_m) + R"(}},
    {"name": "floor", "type": "contact",
     "parameters": {"force_N": 2000, "compression_m": 0.01, "gap_m": )" +
                            std::to_string(gap_m) + R"(, "damping_s_per_m": )" +
                            std::to_string(damping) + R"(},
     "initial_state": {"approach": )" +
                            below(gap_m) + R"(}}],
  "couplings": [{"kind": "connection", "ports": ["ball.port", "floor.face"]}],
  "method": {"kind": "auto"}})",
                        "ball.json", ".");
}

struct Seen {
  int watch;
  bool rising;
  double time_s;
  double end_s;  ///< of its step
};

std::vector<Seen> run(Stepper& stepper, double end_s, int most_steps = 400000) {
  std::vector<Seen> seen;
  const bool is_chosen = stepper.step_sizes() != nullptr;
  while (stepper.time_s() < end_s * (1.0 - 1e-12) && most_steps-- > 0) {
    is_chosen ? stepper.step_towards(end_s) : stepper.step();
    for (const Event& event : stepper.events()) {
      seen.push_back({event.watch, event.rising, event.time_s, stepper.time_s()});
    }
  }
  EXPECT_GE(most_steps, 0) << "the run does not come to its end";
  return seen;
}

/// When the elastic floor is touched and left, n-th time.
std::pair<double, double> contact_times(int n) {
  const double fall_s = std::sqrt(2.0 * kHeight_m / kGravity), speed = kGravity * fall_s;
  const double frequency = std::sqrt(kStiffness / kMass_kg);
  const double rest_m = kMass_kg * kGravity / kStiffness;
  const double touch_s =
      2.0 * (std::numbers::pi - std::atan(speed / frequency / rest_m)) / frequency;
  const double first_s = fall_s + n * (2.0 * fall_s + touch_s);
  return {first_s, first_s + touch_s};
}

/// H, of nothing but the states, less what gravity has given.
double energy_J(const Stepper& stepper) {
  const double z = stepper.state("ball")[0], v = stepper.state("ball")[1];
  const double s = std::max(0.0, stepper.state("floor")[0]);
  return 0.5 * kMass_kg * v * v + 0.5 * kStiffness * s * s - kMass_kg * kGravity * (z + kHeight_m);
}

TEST(Events, ABallTouchesAndLeavesTheFloorWhenFormulasSay) {
  const Scenario scenario = ball(adaptive(1e-8, 0.05, 4.0));
  Stepper stepper(scenario.system, scenario.options);
  ASSERT_EQ(stepper.watches().size(), 1U);
  EXPECT_EQ(stepper.watches()[0].name, "floor");
  EXPECT_EQ(stepper.watches()[0].rising, "closes");
  EXPECT_EQ(stepper.watches()[0].falling, "opens");
  const std::vector<Seen> seen = run(stepper, 4.0);
  ASSERT_EQ(seen.size(), 8U);  // 4 bounces of .9 s
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_EQ(seen[i].rising, i % 2 == 0);
    const auto [closes_s, opens_s] = contact_times(static_cast<int>(i / 2));
    EXPECT_NEAR(seen[i].time_s, i % 2 == 0 ? closes_s : opens_s, i == 0 ? 1e-12 : 1e-6) << i;
    EXPECT_GE(seen[i].end_s, seen[i].time_s);
    EXPECT_LE(seen[i].end_s - seen[i].time_s, 1e-9 * 0.05);
  }
  EXPECT_GE(stepper.step_sizes()->shortened, 8);
  EXPECT_EQ(stepper.event_counts()[0].rising, 4);
  EXPECT_EQ(stepper.event_counts()[0].falling, 4);
  EXPECT_EQ(stepper.event_counts()[0].last_s, seen.back().time_s);
  EXPECT_NEAR(energy_J(stepper), 0.0, 1e-10);
}

TEST(EventsControl, ACoarseToleranceEndsStepsLater) {
  const Scenario scenario = ball(adaptive(1e-5, 0.05, 4.0, R"(, "event_tolerance_s": 0.05)"));
  Stepper stepper(scenario.system, scenario.options);
  const std::vector<Seen> seen = run(stepper, 4.0);
  double latest_s = 0.0;
  for (const Seen& each : seen) latest_s = std::max(latest_s, each.end_s - each.time_s);
  EXPECT_GT(latest_s, 1e-6);
  EXPECT_EQ(stepper.step_sizes()->shortened, 0);
}

TEST(Events, OfABallFarAwayAreTheSame) {
  for (const auto& [gap_m, far_m] : {std::pair(0.0, 1e7), std::pair(1e3, 1e3)}) {
    const Scenario scenario = ball(adaptive(1e-8, 0.05, 2.0), 0.0, gap_m, far_m);
    Stepper stepper(scenario.system, scenario.options);
    const std::vector<Seen> seen = run(stepper, 2.0);
    ASSERT_EQ(seen.size(), 4U);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      const auto [closes_s, opens_s] = contact_times(static_cast<int>(i / 2));
      EXPECT_NEAR(seen[i].time_s, i % 2 == 0 ? closes_s : opens_s, 1e-6) << i;
    }
  }
}

TEST(Events, WithStepsOfOneSizeAreAtTheirEndsAndKeepTheEnergy) {
  constexpr double kStep_s = 1e-4;
  const Scenario scenario = ball(R"({"step_s": 1e-4, "end_s": 4})");
  Stepper stepper(scenario.system, scenario.options);
  const std::vector<Seen> seen = run(stepper, 4.0);
  ASSERT_EQ(seen.size(), 8U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    const auto [closes_s, opens_s] = contact_times(static_cast<int>(i / 2));
    EXPECT_NEAR(seen[i].time_s, i % 2 == 0 ? closes_s : opens_s, kStep_s) << i;
    EXPECT_GE(seen[i].end_s, seen[i].time_s);
    EXPECT_LE(seen[i].end_s - seen[i].time_s, kStep_s * (1.0 + 1e-9));
  }
  EXPECT_NEAR(energy_J(stepper), 0.0, 1e-9);  // of 20 J, in 40 000 steps
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(Events, AContactThatChattersComesToRest) {
  // Restitution ever nearer to 1: bounces without end in finite time, were they all looked for.
  for (const double damping : {0.05, 0.5, 5.0}) {
    const Scenario scenario = ball(adaptive(1e-6, 0.1, 30.0), damping);
    Stepper stepper(scenario.system, scenario.options);
    double before_J = energy_J(stepper), lost_J = 0.0;
    int steps = 0;
    while (stepper.time_s() < 30.0 && steps < 100000) {
      const StepReport report = stepper.step_towards(30.0);
      const double now_J = energy_J(stepper);
      // The book explains every step, those in which the contact closes or opens too.
      const double explained_J = report.energy.dissipated_J + report.energy.mismatch_J;
      EXPECT_NEAR(before_J - now_J, explained_J, 1e-11) << damping << " " << stepper.time_s();
      EXPECT_LE(std::abs(report.energy.mismatch_J), 1e-6);
      lost_J += report.energy.dissipated_J;
      before_J = now_J;
      ++steps;
    }
    EXPECT_GT(lost_J, 10.0);  // of 20
    EXPECT_EQ(stepper.time_s(), 30.0) << damping;
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    EXPECT_LT(stepper.state("ball")[0], 0.02);
    if (damping == 5.0) {
      EXPECT_NEAR(stepper.state("ball")[0], kMass_kg * kGravity / kStiffness, 1e-5);
    }
  }
}

Scenario oscillator(const std::string& time, const std::string& events,
                    const std::string& more = "") {
  return parse_scenario(R"({"name": "oscillator", "time": )" + time + R"(,
  "subsystems": [{"name": "m", "type": "linear_oscillator",
                  "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4},
                  "initial_state": {"q2": 1}}],
  "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
  "method": {"kind": "auto", "stages": 3},
  "events": )" + events + more +
                            "}",
                        "oscillator.json", ".");
}

TEST(Events, CrossingsOfAStateAreLocatedInBothDirections) {
  const Scenario scenario = oscillator(adaptive(1e-11, 1.0, 10.0),
                                       R"([{"of": "m.q2", "level": 0.5},
                     {"name": "up", "of": "m.q2", "direction": "rising"},
                     {"name": "never", "of": "m.q2", "level": 1.0001},
                     {"name": "down", "of": "m.v2", "direction": "falling"}])");
  Stepper stepper(scenario.system, scenario.options);
  EXPECT_EQ(stepper.watches()[0].name, "m.q2");
  const std::vector<Seen> seen = run(stepper, 10.0);
  std::array<int, 4> count{};
  for (const Seen& each : seen) {
    const int n = count[static_cast<std::size_t>(each.watch)]++;
    double expected_s = std::numeric_limits<double>::quiet_NaN();
    if (each.watch == 0) {  // cos 2t = 1/2
      const double turn_s = std::numbers::pi * (n / 2);
      expected_s =
          each.rising ? turn_s + std::numbers::pi * 5.0 / 6.0 : turn_s + std::numbers::pi / 6.0;
      EXPECT_EQ(each.rising, n % 2 == 1);
    } else if (each.watch == 1) {
      expected_s = std::numbers::pi * (n + 0.75);
    } else if (each.watch == 3) {  // -2 sin 2t falls through 0
      expected_s = std::numbers::pi * (n + 1.0);
    }
    EXPECT_NEAR(each.time_s, expected_s, 1e-8) << each.watch << " " << n;
    EXPECT_LE(each.end_s - each.time_s, 1e-9);
  }
  EXPECT_EQ(count, (std::array<int, 4>{7, 3, 0, 3}));
}

TEST(Events, LeavingALevelAtTheStartIsNone) {
  // v starts on its level 0, q falls from 1: what leaves is no passage.
  const Scenario scenario = oscillator(R"({"step_s": 0.01, "end_s": 1})",
                                       R"([{"of": "m.v2"}, {"of": "m.q2", "level": 1}])");
  Stepper stepper(scenario.system, scenario.options);
  EXPECT_TRUE(run(stepper, 1.0).empty());
}

TEST(Events, OfACoastingMassFarOutAndInSmallUnits) {
  for (const double unit : {1e-9, 1.0, 1e9}) {
    const auto in = [unit](double value) { return std::to_string(value * unit * 1e15) + "e-15"; };
    const Scenario scenario =
        parse_scenario(R"({"name": "coast", "time": )" + adaptive(1e-8, 10.0, 100.0) + R"(,
  "subsystems": [{"name": "m", "type": "mass", "parameters": {"mass_kg": 3},
                  "initial_state": {"position": )" +
                           in(1e6) + R"(, "velocity": )" + in(2.0) + R"(}}],
  "couplings": [{"kind": "free", "ports": ["m.port"]}],
  "method": {"kind": "auto"},
  "events": [{"of": "m.position", "level": )" +
                           in(1e6 + 123.0) + "}]}",
                       "coast.json", ".");
    Stepper stepper(scenario.system, scenario.options);
    const std::vector<Seen> seen = run(stepper, 100.0);
    ASSERT_EQ(seen.size(), 1U) << unit;
    EXPECT_NEAR(seen[0].time_s, 61.5, 1e-7) << unit;
    EXPECT_NEAR(stepper.state("m")[0], (1e6 + 200.0) * unit, 1e-7 * unit);
  }
}

TEST(Events, OfEffortsFlowsAndEnergies) {
  const Scenario scenario = oscillator(
      R"({"step_s": 0.001, "end_s": 3})",
      R"([{"of": "m.storage", "level": 2.5}, {"of": "m.coupling.flow", "direction": "falling"}])");
  Stepper stepper(scenario.system, scenario.options);
  const std::vector<Seen> seen = run(stepper, 3.0);
  ASSERT_EQ(seen.size(), 1U);  // f = -v = 2 sin 2t; H is 2 throughout
  EXPECT_EQ(seen[0].watch, 1);
  EXPECT_NEAR(seen[0].time_s, std::numbers::pi / 2.0, 1e-3);
}

constexpr const char* kLoop = R"(, "signals": {)";

/// A mass on a spring whose force a controller sets every 20 ms.
Scenario loop(const std::string& time, const std::string& sampling) {
  return parse_scenario(R"({"name": "loop", "time": )" + time + R"(,
  "subsystems": [{"name": "m", "type": "linear_oscillator",
                  "parameters": {"mass_kg": 1.5, "stiffness_N_per_m": 4, "damping_Ns_per_m": 0.3},
                  "initial_state": {"q2": -0.2},
                  "inputs": {"force": {"kind": "signal", "signal": "pid"}}}],
  "couplings": [{"kind": "free", "ports": ["m.coupling"]}],
  "method": {"kind": "auto", "stages": 3})" +
                            kLoop + sampling + R"(, "blocks": [
    {"name": "target", "kind": "step", "time_s": 0.5, "after": 1},
    {"name": "far", "kind": "switch", "signal": "m.q2", "on_above": 0.5, "off_below": 0.4,
     "on": 1, "off": -1},
    {"name": "pid", "kind": "pid", "setpoint": "target", "measurement": "m.q2",
     "proportional": 12, "integral": 6, "derivative": 5, "derivative_filter_s": 0.05,
     "minimum": -20, "maximum": 20}]},
  "events": [{"of": "far"}]})",
                        "loop.json", ".");
}

TEST(SampledSignals, WithStepsThatChooseTheirSizeAreThoseOfStepsOfOneSize) {
  const Scenario given = loop(R"({"step_s": 0.002, "end_s": 4})", R"("every": 10)");
  Stepper expected(given.system, given.options);
  const std::vector<Seen> expected_events = run(expected, 4.0);
  const auto error = [&](const std::string& every_s, std::vector<Seen>& seen) {
    const Scenario scenario = loop(adaptive(1e-10, 0.5, 4.0), R"("every_s": )" + every_s);
    Stepper stepper(scenario.system, scenario.options);
    seen = run(stepper, 4.0);
    return std::abs(stepper.state("m")[0] - expected.state("m")[0]);
  };
  std::vector<Seen> seen;
  EXPECT_LT(error("0.02", seen), 1e-8);
  ASSERT_EQ(seen.size(), expected_events.size());
  ASSERT_GE(seen.size(), 1U);
  for (std::size_t i = 0; i < seen.size(); ++i) {
    EXPECT_NEAR(seen[i].time_s, expected_events[i].time_s, 1e-12);
    EXPECT_EQ(seen[i].time_s, seen[i].end_s);
  }
  EXPECT_GT(error("0.04", seen),
            1e-5);  // a controller that is sampled half as often is another one
}

TEST(SampledSignals, AreTakenAtMultiplesOfThePeriod) {
  const Scenario scenario = loop(adaptive(1e-6, 0.5, 1.0), R"("every_s": 0.03)");
  Stepper stepper(scenario.system, scenario.options);
  double last = stepper.signals()[2];
  while (stepper.time_s() < 1.0) {
    stepper.step_towards(1.0);
    const double periods = stepper.time_s() / 0.03;
    if (stepper.signals()[2] != last) {
      EXPECT_NEAR(periods, std::round(periods), 1e-12);
    }
    last = stepper.signals()[2];
  }
}

TEST(Events, ThatEndTheRunEndCallsOfSeveralSteps) {
  for (const std::string& time :
       {std::string(R"({"step_s": 0.01, "end_s": 4})"), adaptive(1e-8, 0.05, 4.0)}) {
    Scenario scenario = ball(time);
    Watch falls;
    falls.name = "low";
    falls.of = {Sensor::Kind::state, 0, 0};
    falls.level = -0.5;
    scenario.options.watches = {falls};
    Stepper free(scenario.system, scenario.options);
    free.run_until(1.0);
    EXPECT_EQ(free.time_s(), 1.0);
    EXPECT_EQ(free.ending_watch(), nullptr);
    scenario.options.watches[0].ends_run = true;
    for (const bool by_count : {false, true}) {
      Stepper stepper(scenario.system, scenario.options);
      const auto go = [&] { by_count ? (void)stepper.step(100) : stepper.run_until(1.0); };
      go();
      const double passes_s = std::sqrt(2.0 * 0.5 / kGravity);
      EXPECT_GE(stepper.time_s(), passes_s - 1e-6);
      EXPECT_LE(stepper.time_s(), passes_s + 0.01);
      ASSERT_NE(stepper.ending_watch(), nullptr);
      EXPECT_EQ(stepper.ending_watch()->name, "low");
      Stepper other(scenario.system, scenario.options);
      other.restore(stepper.snapshot());
      EXPECT_NE(other.ending_watch(), nullptr) << "a snapshot holds it";
      EXPECT_TRUE(stepper.step_if_before(1.0)) << "one step is made in any case";
      EXPECT_EQ(stepper.ending_watch(), nullptr);
      const double from_s = stepper.time_s();
      go();
      EXPECT_GT(stepper.time_s(), from_s) << "a later call goes on";
    }
  }
}

TEST(Events, SettingsAreCheckedTogether) {
  Scenario scenario = oscillator(adaptive(1e-6, 1.0, 1.0), "[]");
  Watch nowhere;
  nowhere.of = {Sensor::Kind::state, 0, 7};
  nowhere.level = std::numeric_limits<double>::infinity();
  Watch signal;
  signal.signal = 0;
  scenario.options.watches = {nowhere, signal};
  scenario.options.sizes->event_tolerance_s = -1.0;
  try {
    const Stepper stepper(scenario.system, scenario.options);
    FAIL() << "nothing was said";
  } catch (const ConfigError& error) {
    std::vector<std::string> places;
    for (const Issue& issue : error.issues()) places.push_back(issue.where);
    EXPECT_EQ(places, (std::vector<std::string>{"/time/step/event_tolerance_s", "/events/0/level",
                                                "/events/0/of", "/events/1/of"}));
  }
}

}  // namespace
}  // namespace portwave::test_events
