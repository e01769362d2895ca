// Steps that choose their size beside diodes: as many as the motion between commutations needs, and as accurate as they
// promise where a diode begins to conduct or blocks.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/output/summary.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "support/systems/example_scenarios.hpp"

namespace portwave::test_steps_beside_diodes {
namespace {

constexpr const char* kSeries =
    R"("E": [[1, -1, -1, -1], [0, 0, 0, 0], [0, 0, 0, 0], [0, 0, 0, 0]],
       "F": [[0, 0, 0, 0], [1, 1, 0, 0], [0, 1, -1, 0], [0, 0, 1, -1]])";

/// A coil that a diode empties into a capacitor, twice.
Scenario coil(double tolerance, const std::string& integrator) {
  return parse_scenario(
      fmt::format(R"j({{"name": "coil", "method": {{"kind": "auto", "integrator": "{}"}},
    "time": {{"step": {{"kind": "adaptive", "tolerance": {}}}, "end_s": 0.008}},
    "subsystems": [
      {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
        "inputs": {{"effort": "if(mod(t,0.004)<0.002,10,0)"}}}},
      {{"name": "l", "type": "inductor", "parameters": {{"inductance_H": 0.01, "resistance_ohm": 1}}}},
      {{"name": "d", "type": "diode", "parameters": {{"saturation_current_A": 1e-9}}}},
      {{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 1e-5, "leakage_S": 0.02}}}}],
    "couplings": [{{"kind": "kernel",
      "ports": ["v.port", "l.terminals", "d.terminals", "c.terminals"], {}}}]}})j",
                  integrator, tolerance, kSeries),
      "coil.json", ".");
}

/// Steps up to the end, but no more than `most`; `voltage`: at the end.
std::int64_t steps_to_end(const Scenario& own, std::int64_t most, double* voltage = nullptr) {
  Stepper stepper(own.system, own.options);
  while (stepper.time_s() < 0.008 && stepper.step_index() < most) stepper.step_towards(0.008);
  if (voltage != nullptr) *voltage = stepper.state("c")[0];
  return stepper.step_index();
}

TEST(StepsBesideDiodes, AreThoseOfTheMotionBetweenCommutations) {
  double rough = 0.0, fine = 0.0;
  EXPECT_LT(steps_to_end(coil(1e-4, "auto"), 2000, &rough), 600);
  EXPECT_LT(steps_to_end(coil(1e-7, "auto"), 20000, &fine), 2000);
  EXPECT_NEAR(rough, fine, 1e-3 * 15.0);
}

// Control: conserving stages keep what the diode blocks, a current that changes its sign in every step, and steps stay
// as short as they were when it blocked.
TEST(StepsBesideDiodes, ConservingStagesHoldStepsShort) {
  EXPECT_EQ(steps_to_end(coil(1e-4, "gauss"), 6000), 6000);
}

/// A source of 7.7 V, 0.27 ohm and a diode, which charge 27 µF three times.
Scenario rectifier(double tolerance) {
  return parse_scenario(fmt::format(R"j({{"name": "rectifier", "method": {{"kind": "auto"}},
    "time": {{"step": {{"kind": "adaptive", "tolerance": {}}}, "end_s": 0.2559413661155474}},
    "subsystems": [
      {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}},
        "inputs": {{"effort": "7.721*sin(2*pi*11.72*t)"}}}},
      {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": 0.27040120650644495}}}},
      {{"name": "d", "type": "diode", "parameters": {{"saturation_current_A": 4.684571539832533e-12}}}},
      {{"name": "c", "type": "capacitor",
        "parameters": {{"capacitance_F": 2.7210934204452615e-05, "leakage_S": 0.00035696532224737234}}}}],
    "couplings": [{{"kind": "kernel",
      "ports": ["v.port", "r.terminals", "d.terminals", "c.terminals"], {}}}]}})j",
                                    tolerance, kSeries),
                        "rectifier.json", ".");
}

/// The largest error of the voltage, in tolerances of its range, beside SciPy's Radau at 1e-10.
double error_of(double tolerance) {
  const struct {
    double time_s, voltage_V;
  } golden[] = {{0.0051188273223109482, 2.27166624}, {0.025594136611554741, 6.95951981},
                {0.046069445900798534, 5.32027692},  {0.066544755190042326, 4.06706253},
                {0.087020064479286119, 3.10904824},  {0.10749537376852993, 7.19230079},
                {0.1279706830577737, 5.56462584},    {0.14844599234701752, 4.253854},
                {0.16892130163626129, 3.25184016},   {0.177, 2.93809302},
                {0.18939661092550508, 7.03999883},   {0.2098719202147489, 5.82019718},
                {0.23034722950399267, 4.4492244},    {0.25082253879323646, 3.40119022}};
  const Scenario own = rectifier(tolerance);
  Stepper stepper(own.system, own.options);
  const int c = stepper.system().find_part("c");
  double worst = 0.0;
  for (const auto& at : golden) {
    while (stepper.time_s() < at.time_s) stepper.step_towards(0.2559413661155474);
    double voltage = 0.0;
    stepper.state_at(c, at.time_s, {&voltage, 1});
    worst = std::max(worst, std::abs(voltage - at.voltage_V));
  }
  return worst / (7.3 * tolerance);
}

// A charge begins soon after a rejected step, in the second of several short ones after a long one: rates of all three
// hid an error of 170 tolerances at 0.177 s. The comparison with halves sees it.
TEST(StepsBesideDiodes, KeepToTheToleranceWhereAChargeBegins) {
  for (const double tolerance : {1e-3, 1e-4, 1e-5, 3.7618038810309317e-06, 1e-7}) {
    EXPECT_LT(error_of(tolerance), 10.0) << tolerance;
  }
}

// Control: the golden values tell other errors.
TEST(StepsBesideDiodes, OfATenthOfTheAccuracyAreTold) {
  EXPECT_GT(error_of(1e-2) * 1e-2 / 3.7618038810309317e-06, 10.0);
}

/// A motor at rest behind a diode that blocks: the waves carry the voltage to and fro, and nothing moves but rounding.
TEST(StepsBesideDiodes, WhereNothingMovesNothingGoesAstray) {
  for (const double voltage : {12.0, 1e-3, 1e-9, 1e6}) {
    for (const double resistance : {0.0, 1.0}) {
      for (const double inductance : {1e-3, 1e-1}) {
        const Scenario own = parse_scenario(
            fmt::format(R"j({{"name": "blocked", "time": {{"step_s": 0.001, "steps": 300}},
    "subsystems": [
      {{"name": "supply", "type": "effort_source", "parameters": {{"domain": "electrical"}},
        "inputs": {{"effort": {}}}}},
      {{"name": "d", "type": "ideal_diode"}},
      {{"name": "m", "type": "dc_motor", "parameters": {{"inductance_H": {}, "resistance_ohm": {},
        "motor_constant_Vs_per_rad": 0.05, "inertia_kgm2": 1e-4, "damping_Nms_per_rad": 1e-5}}}}],
    "couplings": [{{"kind": "common_flow", "ports": ["supply.port", "d.terminals", "m.terminals"]}},
      {{"kind": "free", "ports": ["m.shaft"]}}], "method": {{"kind": "auto"}}}})j",
                        voltage, inductance, resistance),
            "blocked.json", ".");
        Stepper stepper(own.system, own.options);
        stepper.step(300);
        const RunSummary summary = summarize("blocked", own.options, stepper, 1.0);
        EXPECT_LT(std::abs(stepper.state("m")[0]), 1e-12 * voltage);
        EXPECT_FALSE(summary.is_coupled_poorly())
            << voltage << " V, " << resistance << " ohm: " << summary.mismatch_share();
      }
    }
  }
}

/// Control: a tenth of what moves is told, however loose the tolerance.
TEST(StepsBesideDiodesControl, WhatLooseWavesLeaveOfMotionIsTold) {
  const Scenario own = testing::example("two_oscillators");
  StepperOptions options = own.options;
  options.method.waves().guard = false;
  options.method.waves().iterations = 200;
  options.method.waves().tolerance = 0.5;
  Stepper stepper(own.system, options);
  stepper.step(1000);
  RunSummary summary = summarize("loose", options, stepper, 1.0);
  EXPECT_EQ(summary.iterations.not_converged, 0);
  EXPECT_FALSE(summary.is_coupled_poorly());
  summary.energy.mismatch_J = 0.1 * summary.moved_J;
  EXPECT_TRUE(summary.is_coupled_poorly()) << summary.mismatch_share();
}

/// Control: a fiftieth of it as well, however many steps have added their rounding.
TEST(StepsBesideDiodesControl, WhatGoesAstrayInManyStepsIsTold) {
  const Scenario own = testing::example("two_oscillators");
  StepperOptions options = own.options;
  options.method.waves().guard = false;
  options.method.waves().iterations = 200;
  options.method.waves().tolerance = 1e-9;
  Stepper stepper(own.system, options);
  stepper.step(1000);
  RunSummary summary = summarize("long", options, stepper, 1.0);
  ASSERT_EQ(summary.iterations.not_converged, 0);
  EXPECT_FALSE(summary.is_coupled_poorly());
  summary.energy.rounding_J *= 1e8;  // of 10^11 steps
  summary.steps *= 100'000'000;
  summary.energy.mismatch_J = 0.02 * summary.moved_J;
  EXPECT_NEAR(summary.mismatch_share(), 0.02, 1e-12);
}

}  // namespace
}  // namespace portwave::test_steps_beside_diodes
