// Springs with play: end stops of a shaft, on both sides, and gears with backlash. Motions are compared with
// those of SciPy, which goes from flank to flank (tests/tools/play_and_friction_golden.py), and with formulas.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_play {
namespace {

/// To a multiple of the step.
void run_to(Stepper& stepper, double time_s, double step_s) {
  const auto last = static_cast<std::int64_t>(std::llround(time_s / step_s));
  while (stepper.step_index() < last) stepper.step();
}

struct Teeth {
  double backlash_rad = 0.02, ratio = 5.0;
};

/// A torque of 1 N m on the input turns round at 0.2 s; both shafts start at rest in the middle of the play.
Scenario gear(const std::string& time, const Teeth& teeth = {},
              const std::string& method = R"({"kind": "auto"})") {
  return parse_scenario(fmt::format(R"({{"name": "reversal", "time": {},
  "subsystems": [
    {{"name": "motor", "type": "inertia", "parameters": {{"inertia_kgm2": 0.01}},
      "inputs": {{"torque": {{"kind": "expression", "expression": "if(t < 0.2, 1, -1) "}}}}}},
    {{"name": "gear", "type": "gear_with_backlash",
      "parameters": {{"torque_Nm": 20, "angle_rad": 0.002, "damping_s_per_rad": 0.05,
                      "backlash_rad": {}, "ratio": {}}}}},
    {{"name": "load", "type": "inertia", "parameters": {{"inertia_kgm2": 0.2}}}}],
  "couplings": [{{"kind": "connection", "ports": ["motor.shaft", "gear.input"]}},
                {{"kind": "connection", "ports": ["gear.output", "load.shaft"]}}],
  "method": {}}})",
                                    time, teeth.backlash_rad, teeth.ratio, method),
                        "gear.json", ".");
}

struct GearRow {
  double time_s, motor_rad, motor_rad_per_s, load_rad, load_rad_per_s, work_J;
};
constexpr GearRow kGear[] = {
    {0.03, 0.045, 3.0, 0.0, 0.0, 0.045},
    {0.10, 0.294436561384, 6.72928572009, 0.0513908596541, 0.817678569976, 0.294436561384},
    {0.20, 1.12004152011, 10.4001461935, 0.219989619973, 2.39996345164, 1.12004152011},
    {0.23, 1.39078126288, 9.34926637464, 0.29105468428, 1.91268340634, 0.849301777333},
    {0.30, 1.94302615326, 4.45144785807, 0.389243461684, 1.38713803548, 0.297056886949},
    {0.50, 1.92508610092, -4.04105339974, 0.393728474769, -1.48973665006, 0.31499693929}};

TEST(GearWithBacklash, ReversesAsFromFlankToFlank) {
  constexpr double kStep_s = 2e-5;
  const Scenario scenario = gear(fmt::format(R"({{"step_s": {}, "end_s": 0.5}})", kStep_s));
  Stepper stepper(scenario.system, scenario.options);
  for (const GearRow& row : kGear) {
    run_to(stepper, row.time_s, kStep_s);
    EXPECT_NEAR(stepper.state("motor")[0], row.motor_rad, 5e-5) << row.time_s;
    EXPECT_NEAR(stepper.state("motor")[1], row.motor_rad_per_s, 5e-3) << row.time_s;
    EXPECT_NEAR(stepper.state("load")[0], row.load_rad, 2e-5) << row.time_s;
    EXPECT_NEAR(stepper.state("load")[1], row.load_rad_per_s, 2e-3) << row.time_s;
    EXPECT_NEAR(stepper.energy().supplied_J, row.work_J, 5e-5) << row.time_s;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  // Each flank is touched and left as often as there.
  EXPECT_EQ(stepper.event_counts()[0].all(), 6);
  EXPECT_EQ(stepper.event_counts()[1].all(), 8);
}

/// Nothing touches it, so that not one bit of it moves.
TEST(GearWithBacklash, TheDrivenSideStaysUntilThePlayIsCrossed) {
  for (const double ratio : {5.0, -3.0}) {
    constexpr double kStep_s = 1e-4;
    const Scenario scenario =
        gear(fmt::format(R"({{"step_s": {}, "end_s": 0.1}})", kStep_s), {0.02, ratio});
    Stepper stepper(scenario.system, scenario.options);
    // The input turns by n b/2 at 100 rad/s².
    const double crossed_s = std::sqrt(2.0 * 0.01 * std::abs(ratio) / 100.0);
    double moved_s = 0.0;
    while (moved_s == 0.0 && stepper.time_s() < 0.1) {
      stepper.step();
      if (stepper.state("load")[1] != 0.0) moved_s = stepper.time_s();
    }
    EXPECT_NEAR(moved_s, crossed_s, kStep_s) << ratio;
    EXPECT_GT(ratio * stepper.state("load")[1], 0.0);
  }
}

TEST(GearWithBacklashControl, WithoutPlayTheDrivenSideMovesAtOnce) {
  const Scenario scenario = gear(R"({"step_s": 1e-4, "end_s": 0.1})", {0.0, 5.0});
  Stepper stepper(scenario.system, scenario.options);
  stepper.step();
  EXPECT_GT(stepper.state("load")[1], 0.0);
}

/// H by formulas, from the states alone.
double gear_energy_J(const Stepper& stepper) {
  const double w = stepper.state("motor")[1], v = stepper.state("load")[1];
  const double s = std::max(0.0, std::abs(stepper.state("gear")[0]) - 0.01);
  return 0.5 * 0.01 * w * w + 0.5 * 0.2 * v * v + 0.5 * 1e4 * s * s;
}

TEST(GearWithBacklash, KeepsItsAccountAcrossEveryFlankAtEveryStep) {
  for (const double step_s : {2e-5, 1e-3, 0.02}) {
    const Scenario scenario = gear(fmt::format(R"({{"step_s": {}, "end_s": 2}})", step_s));
    Stepper stepper(scenario.system, scenario.options);
    double before_J = 0.0, most_J = 0.0, turned_rad = 0.0;
    for (int k = 0; k < 2000 && stepper.time_s() < 1.99; ++k) {
      const double torque_Nm = stepper.time_s() + 0.5 * step_s < 0.2 ? 1.0 : -1.0;
      const StepReport report = stepper.step();
      const double after_J = gear_energy_J(stepper);
      const double work_J = torque_Nm * (stepper.state("motor")[0] - turned_rad);
      most_J = std::max(most_J, after_J);
      EXPECT_NEAR(after_J - before_J,
                  work_J - report.energy.dissipated_J - report.energy.mismatch_J,
                  1e-12 * (1.0 + most_J))
          << step_s << " " << k;
      EXPECT_GE(report.energy.dissipated_J, 0.0);
      before_J = after_J;
      turned_rad = stepper.state("motor")[0];
    }
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
  }
}

/// All stages see the gradient of the whole step.
TEST(GearWithBacklash, TakesSeveralStagesAndKeepsItsAccount) {
  for (const char* method : {R"({"kind": "auto", "stages": 2, "integrator": "gauss"})",
                             R"({"kind": "auto", "stages": 3, "integrator": "gauss"})",
                             R"({"kind": "auto", "stages": 2, "integrator": "damped"})",
                             R"({"kind": "auto", "stages": 3})"}) {
    for (const double step_s : {1e-5, 1e-3, 0.02}) {
      const Scenario scenario =
          gear(fmt::format(R"({{"step_s": {}, "end_s": 2}})", step_s), {}, method);
      Stepper stepper(scenario.system, scenario.options);
      double before_J = 0.0, most_J = 0.0, turned_rad = 0.0;
      for (const GearRow& row : kGear) {
        const auto last = static_cast<std::int64_t>(std::llround(row.time_s / step_s));
        while (stepper.step_index() < last) {
          const double torque_Nm = stepper.time_s() + 0.5 * step_s < 0.2 ? 1.0 : -1.0;
          const StepReport report = stepper.step();
          const double after_J = gear_energy_J(stepper);
          const double work_J = torque_Nm * (stepper.state("motor")[0] - turned_rad);
          most_J = std::max(most_J, after_J);
          EXPECT_NEAR(after_J - before_J,
                      work_J - report.energy.dissipated_J - report.energy.numerical_dissipation_J -
                          report.energy.mismatch_J,
                      1e-12 * (1.0 + most_J))
              << method << step_s;
          EXPECT_GE(report.energy.dissipated_J, 0.0);
          EXPECT_GE(report.energy.numerical_dissipation_J, 0.0);
          before_J = after_J;
          turned_rad = stepper.state("motor")[0];
        }
        if (step_s > 1e-5) continue;
        const bool is_damped = std::string(method).find("gauss") == std::string::npos;
        EXPECT_NEAR(stepper.state("motor")[0], row.motor_rad, is_damped ? 6e-3 : 2e-5) << method;
        EXPECT_NEAR(stepper.state("load")[1], row.load_rad_per_s, is_damped ? 6e-2 : 1e-3)
            << method;
      }
      EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    }
  }
}

/// A mass that flies into a spring and out of it: d = v t to the face, half a period within, and back.
TEST(Contact, ThrowsAMassBackWithSeveralStages) {
  constexpr double kSpeed = 1.0, kGap_m = 0.1, kStiffness = 1e4;
  const double touched_s = kGap_m / kSpeed, left_s = touched_s + M_PI / std::sqrt(kStiffness);
  for (int stages = 1; stages <= 3; ++stages) {
    double before = 0.0;
    for (const double step_s : {2e-3, 1e-3, 5e-4, 2.5e-4}) {
      const Scenario scenario = parse_scenario(fmt::format(R"({{"name": "bounce",
  "time": {{"step_s": {}, "end_s": 0.2}},
  "subsystems": [
    {{"name": "ball", "type": "mass", "parameters": {{"mass_kg": 1}}, "initial_state": {{"velocity": 1}}}},
    {{"name": "wall", "type": "contact",
      "parameters": {{"force_N": 1e4, "compression_m": 1, "gap_m": 0.1}}}}],
  "couplings": [{{"kind": "connection", "ports": ["ball.port", "wall.face"]}}],
  "method": {{"kind": "auto", "stages": {}, "integrator": "gauss"}}}})",
                                                           step_s, stages),
                                               "bounce.json", ".");
      Stepper stepper(scenario.system, scenario.options);
      run_to(stepper, 0.09, step_s);
      EXPECT_NEAR(stepper.state("ball")[0], 0.09, 1e-15) << stages;
      double least_N = 0.0, largest_N = 0.0;
      const auto last = static_cast<std::int64_t>(std::llround(0.2 / step_s));
      while (stepper.step_index() < last) {
        stepper.step();
        const double force_N = stepper.effort(scenario.system.first_scalar_port(1));
        least_N = std::min(least_N, force_N);
        largest_N = std::max(largest_N, force_N);
      }
      EXPECT_GE(least_N, -1e-9) << "it pulls";
      EXPECT_NEAR(largest_N, kSpeed * std::sqrt(kStiffness), 2.0);
      EXPECT_NEAR(stepper.state("ball")[1], -kSpeed, 1e-11);
      const double error_m =
          std::abs(stepper.state("ball")[0] - (kGap_m - kSpeed * (0.2 - left_s)));
      if (before > 0.0) {
        EXPECT_LT(error_m, 0.4 * before) << stages << " " << step_s;
      }
      before = error_m;
    }
  }
}

/// Pressed at a given speed: one damped stage takes ½k(vh)² of each step, and so do several.
TEST(Contact, DampedStagesTakeWhatOneTakes) {
  constexpr double kStep_s = 1e-3, kSpeed = 2.0, kStiffness = 1e4;
  for (int stages = 1; stages <= 3; ++stages) {
    const Scenario scenario =
        parse_scenario(fmt::format(R"({{"name": "press", "time": {{"step_s": {}, "end_s": 0.01}},
  "subsystems": [
    {{"name": "press", "type": "flow_source", "parameters": {{"domain": "translation"}},
      "inputs": {{"flow": {}}}}},
    {{"name": "wall", "type": "contact", "parameters": {{"force_N": {}, "compression_m": 1}}}}],
  "couplings": [{{"kind": "connection", "ports": ["press.port", "wall.face"]}}],
  "method": {{"kind": "auto", "stages": {}, "integrator": "damped"}}}})",
                                   kStep_s, kSpeed, kStiffness, stages),
                       "press.json", ".");
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(10);
    const double moved_m = kSpeed * kStep_s, depth_m = std::abs(stepper.state("wall")[0]);
    EXPECT_NEAR(depth_m, 10.0 * moved_m, 1e-11);
    EXPECT_NEAR(stepper.energy().numerical_dissipation_J,
                10.0 * 0.5 * kStiffness * moved_m * moved_m, 1e-9)
        << stages;
    EXPECT_NEAR(stepper.energy().final_J, 0.5 * kStiffness * depth_m * depth_m, 1e-9);
  }
}

/// A flywheel on a weak spring between two stops of Hertz's law.
Scenario stops(const std::string& time, const std::string& side = "both") {
  return parse_scenario(fmt::format(R"({{"name": "stops", "time": {},
  "subsystems": [
    {{"name": "wheel", "type": "inertia", "parameters": {{"inertia_kgm2": 0.5, "ports": 2}},
      "initial_state": {{"speed": 3}}}},
    {{"name": "weak", "type": "torsional_spring", "parameters": {{"stiffness_Nm_per_rad": 2}}}},
    {{"name": "stop", "type": "rotational_contact",
      "parameters": {{"torque_Nm": 800, "angle_rad": 0.01, "gap_rad": 0.3, "law": "hertz",
                      "side": "{}"}}}}],
  "couplings": [{{"kind": "connection", "ports": ["wheel.shaft_1", "weak.right"]}},
                {{"kind": "fixed", "ports": ["weak.left"]}},
                {{"kind": "connection", "ports": ["wheel.shaft_2", "stop.shaft"]}}],
  "method": {{"kind": "auto"}}}})",
                                    time, side),
                        "stops.json", ".");
}

struct StopRow {
  double time_s, angle_rad, speed_rad_per_s;
};
constexpr StopRow kStops[] = {{0.5, 0.239507440983, 2.96151055083},
                              {1.0, 0.148414258641, -2.9852793556},
                              {2.0, -0.295372014988, 2.94126188742}};

TEST(RotationalContact, StopsAShaftOnBothSides) {
  constexpr double kStep_s = 2e-5;
  const Scenario scenario = stops(fmt::format(R"({{"step_s": {}, "end_s": 2}})", kStep_s));
  Stepper stepper(scenario.system, scenario.options);
  for (const StopRow& row : kStops) {
    run_to(stepper, row.time_s, kStep_s);
    EXPECT_NEAR(stepper.state("wheel")[0], row.angle_rad, 1e-3) << row.time_s;
    EXPECT_NEAR(stepper.state("wheel")[1], row.speed_rad_per_s, 1e-2) << row.time_s;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  const double w = stepper.state("wheel")[1], d = stepper.state("wheel")[0];
  EXPECT_NEAR(0.5 * 0.5 * w * w + 0.5 * 2.0 * d * d, 2.25, 1e-7);  // between the stops
}

TEST(RotationalContact, TellsWhichFaceClosesAndWhen) {
  const Scenario scenario = stops(
      R"({"step": {"kind": "adaptive", "tolerance": 1e-7, "largest_s": 0.01}, "end_s": 0.6})");
  Stepper stepper(scenario.system, scenario.options);
  struct Passage {
    std::string what;
    double time_s;
  };
  const Passage expected[] = {
      {"closes", 0.100678960395},          {"opens", 0.109231538703},
      {"closes negative", 0.310589459494}, {"opens negative", 0.319142037801},
      {"closes", 0.520499958593},          {"opens", 0.529052536901}};
  std::size_t seen = 0;
  while (stepper.time_s() < 0.6) {
    stepper.step_towards(0.6);
    for (const Event& event : stepper.events()) {
      ASSERT_LT(seen, std::size(expected));
      const Watch& watch = stepper.watches()[static_cast<std::size_t>(event.watch)];
      EXPECT_EQ(watch.name, "stop");
      EXPECT_EQ(event.rising ? watch.rising : watch.falling, expected[seen].what);
      EXPECT_NEAR(event.time_s, expected[seen].time_s, 1e-5) << seen;
      ++seen;
    }
  }
  EXPECT_EQ(seen, std::size(expected));
}

TEST(RotationalContactControl, OneSideLetsItThrough) {
  const Scenario scenario = stops(R"({"step_s": 1e-4, "end_s": 1})", "positive");
  Stepper stepper(scenario.system, scenario.options);
  double least_rad = 0.0;
  while (stepper.time_s() < 0.99) {
    stepper.step();
    least_rad = std::min(least_rad, stepper.state("wheel")[0]);
  }
  EXPECT_LT(least_rad, -0.5);
}

}  // namespace
}  // namespace portwave::test_play
