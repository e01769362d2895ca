// Co-energy variables as quantities: speeds of joints at the ends of steps, in rows, signals and events.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_coenergies {
namespace {

constexpr double kInertia_kgm2 = 2.0 * 1.5 * 1.5;

/// A pendulum; `more` of the file behind its couplings.
Scenario pendulum(const std::string& time, double gravity, double momentum,
                  const std::string& inputs, const std::string& more) {
  return parse_scenario(fmt::format(R"({{"name": "p", "time": {},
  "subsystems": [{{"name": "p", "type": "pendulum",
    "parameters": {{"mass_kg": 2, "length_m": 1.5, "gravity_m_per_s2": {}}},
    "initial_state": {{"angle": 0.4, "momentum": {}}}{}}}],
  "couplings": [{{"kind": "free", "ports": ["p.shaft"]}}],
  "method": {{"kind": "auto", "stages": 3}}{}}})",
                                    time, gravity, momentum, inputs, more),
                        "p.json", ".");
}

double value(const Stepper& stepper, const Scenario& scenario, std::size_t quantity) {
  return observe(stepper, scenario.recording.quantities.at(quantity));
}

/// The port tells the mean of a step, as a control: what half a step changes.
TEST(Coenergies, AreTheSpeedAtTheEndOfTheStep) {
  const Scenario scenario =
      pendulum(R"({"step_s": 0.05, "end_s": 1})", 9.81, 1.0, "",
               R"(, "outputs": {"observe": ["p.momentum.coenergy", "p.angle.coenergy",
                                            "p.shaft.flow", "p.momentum"]})");
  EXPECT_EQ(scenario.recording.quantities[0].unit, "rad/s");
  EXPECT_EQ(scenario.recording.quantities[1].unit, "N m");
  Stepper stepper(scenario.system, scenario.options);
  double furthest = 0.0;
  for (int step = 0; step <= 20; ++step) {
    const double speed = value(stepper, scenario, 3) / kInertia_kgm2;
    EXPECT_NEAR(value(stepper, scenario, 0), speed, 1e-15);
    EXPECT_NEAR(value(stepper, scenario, 1), 2.0 * 9.81 * 1.5 * std::sin(stepper.state("p")[0]),
                1e-13);
    furthest =
        std::max(furthest, std::abs(std::abs(value(stepper, scenario, 2)) - std::abs(speed)));
    stepper.step();
  }
  EXPECT_GT(furthest, 0.05);
}

/// Of a tree of bodies, whose speeds are M⁻¹p: the rate of its angles.
TEST(Coenergies, OfAnArmAreTheRatesOfItsJoints) {
  const Scenario scenario = parse_scenario(R"({"name": "arm",
  "time": {"step_s": 1e-4, "end_s": 1},
  "subsystems": [{"name": "arm", "type": "articulated",
    "parameters": {"joints": ["revolute", "revolute"], "names": ["shoulder", "elbow"],
      "places_m": [[0, 0, 1], [0, 0, 0.6]], "axes": [[0, 1, 0], [1, 0, 0]],
      "masses_kg": [2, 1], "centres_m": [[0, 0, 0.3], [0, 0.1, 0.2]],
      "inertias_kgm2": [[0.06, 0, 0, 0.06, 0, 0.01], [0.02, 0, 0, 0.02, 0, 0.004]]},
    "initial_state": {"shoulder_angle": 0.7, "elbow_angle": -0.5, "elbow_momentum": 0.2}}],
  "couplings": [{"kind": "free", "ports": ["arm.shoulder"]}, {"kind": "free", "ports": ["arm.elbow"]}],
  "method": {"kind": "auto", "stages": 3},
  "outputs": {"observe": ["arm.shoulder_angle", "arm.elbow_angle", "*momentum.coenergy"]}})",
                                           "arm.json", ".");
  ASSERT_EQ(scenario.recording.quantities.size(), 4U);
  Stepper stepper(scenario.system, scenario.options);
  std::vector<std::vector<double>> rows;
  for (int step = 0; step < 200; ++step) {
    rows.emplace_back();
    for (std::size_t i = 0; i < 4; ++i) rows.back().push_back(value(stepper, scenario, i));
    stepper.step();
  }
  for (std::size_t n = 1; n + 1 < rows.size(); ++n) {
    for (std::size_t joint = 0; joint < 2; ++joint) {
      const double rate = (rows[n + 1][joint] - rows[n - 1][joint]) / 2e-4;
      ASSERT_NEAR(rows[n][2 + joint], rate, 1e-6) << n;
    }
  }
  EXPECT_GT(std::abs(rows.back()[3]), 0.5);
}

/// T = −dω held over a step leads to 1 − hd/J of the momentum; the mean speed of the step before would not.
TEST(Coenergies, CloseALoopWithoutDelay) {
  const auto momentum = [](const std::string& measured) {
    const Scenario scenario =
        pendulum(R"({"step_s": 0.1, "end_s": 3})", 0.0, 4.0,
                 R"(, "inputs": {"torque": {"kind": "signal", "signal": "brake"}})",
                 fmt::format(R"(, "signals": {{"blocks": [
          {{"name": "brake", "kind": "gain", "signal": "{}", "factor": -9}}]}})",
                             measured));
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(30);
    return stepper.state("p")[1];
  };
  const double exact = 4.0 * std::pow(1.0 - 0.1 * 9.0 / kInertia_kgm2, 30);
  EXPECT_NEAR(momentum("p.momentum.coenergy"), exact, 1e-12);
  EXPECT_GT(std::abs(momentum("p.shaft.flow") - exact), 1e-3);
}

/// The turning point of a swing, from small steps.
TEST(Coenergies, EventsAreFoundWithinSteps) {
  const auto times_of = [](const std::string& time) {
    const Scenario scenario = pendulum(
        time, 9.81, -2.0, "",
        R"(, "events": [{"of": "p.momentum.coenergy", "level": 0.5, "direction": "rising"}])");
    Stepper stepper(scenario.system, scenario.options);
    std::vector<double> times_s;
    while (stepper.time_s() < 2.0 - 1e-9) {
      stepper.step_sizes() != nullptr ? stepper.step_towards(2.0) : stepper.step();
      for (const Event& event : stepper.events()) times_s.push_back(event.time_s);
    }
    return times_s;
  };
  const std::vector<double> fine = times_of(R"({"step_s": 1e-4, "end_s": 2})");
  const std::vector<double> own = times_of(
      R"({"step": {"kind": "adaptive", "tolerance": 1e-8, "largest_s": 0.5}, "end_s": 2})");
  ASSERT_EQ(fine.size(), 1U);
  ASSERT_EQ(own.size(), 1U);
  EXPECT_NEAR(own[0], fine[0], 1e-7);
}

TEST(Coenergies, AreAskedForByName) {
  const auto found = [](const std::string& what) {
    return pendulum(R"({"step_s": 0.05, "end_s": 1})", 9.81, 1.0, "",
                    R"(, "outputs": {"observe": [")" + what + "\"]}")
        .recording.quantities.size();
  };
  EXPECT_EQ(found("*.coenergy"), 2U);
  EXPECT_EQ(found("p"), found("p.*"));
  EXPECT_EQ(found("p"), 5U);
  try {
    (void)found("p.momentm.coenergy");
    FAIL();
  } catch (const ScenarioError& error) {
    EXPECT_NE(std::string(error.what()).find("Did you mean \"p.momentum.coenergy\"?"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace portwave::test_coenergies
