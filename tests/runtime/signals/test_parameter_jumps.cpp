// Parameters that follow functions of time which jump: steps are cut there. What a duty, a charge or an impulse is then
// does not depend on where jumps lie in steps.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/snapshot.hpp>
#include <portwave/runtime/step/stepper.hpp>

namespace portwave::test_parameter_jumps {
namespace {

constexpr const char* kSquare =
    R"j({"kind": "expression", "expression": "if(mod(t,0.01)<0.003,0.1,10000)"})j";

/// 10 V behind a resistance that is 0.1 ohm for 3 of 10 ms, and 10 kohm else, on 1 mF beside 5 ohm.
Scenario chopper(const std::string& resistance, const std::string& time, int stages,
                 const std::string& more = "") {
  return parse_scenario(
      fmt::format(
          R"j({{"name": "chopper", "time": {{{}}}, "method": {{"kind": "auto", "stages": {}}},
    "subsystems": [
      {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}}, "inputs": {{"effort": 10}}}},
      {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": 10000}},
        "inputs": {{"resistance_ohm": {}}}}},
      {{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 1e-3, "leakage_S": 0.2}}}}],
    "couplings": [{{"kind": "kernel", "ports": ["v.port", "r.terminals", "c.terminals"],
      "E": [[1, -1, -1], [0, 0, 0], [0, 0, 0]], "F": [[0, 0, 0], [1, 1, 0], [0, 1, -1]]}}]{}}})j",
          time, stages, resistance, more),
      "chopper.json", ".");
}

std::string steps_of(double step_s) {
  return fmt::format(R"("step_s": {}, "steps": 1000)", step_s);
}

/// The voltage by exponentials from jump to jump.
double voltage_at(double time_s) {
  double v = 0.0;
  for (int period = 0; 0.01 * period < time_s - 1e-12; ++period) {
    const double begin_s = 0.01 * period;
    const auto move = [&](double from_s, double to_s, double ohm) {
      const double until_s = std::min(to_s, time_s);
      if (until_s <= from_s) return;
      const double rest = 10.0 / ohm / (1.0 / ohm + 0.2);
      v = rest + (v - rest) * std::exp(-(1.0 / ohm + 0.2) / 1e-3 * (until_s - from_s));
    };
    move(begin_s, begin_s + 0.003, 0.1);
    move(begin_s + 0.003, begin_s + 0.01, 1e4);
  }
  return v;
}

double open_J(const StepLedger& e) {
  return e.changed_J - e.supplied_J + e.dissipated_J + e.numerical_dissipation_J + e.mismatch_J +
         e.impact_J;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  const EnergyTotals e = stepper.energy();
  out.insert(out.end(), {e.final_J, e.supplied_J, e.mismatch_J, e.impact_J, e.dissipated_J,
                         e.numerical_dissipation_J});
  return out;
}

/// A winding whose resistance jumps from 1 to 3 ohm within a step, beside a decay that is faster than it: one damped
/// step behind the jump would leave up to a fifth more than what is left, and half of the step the same.
TEST(ParameterJumps, TheRowBehindOneIsRight) {
  constexpr double kStep_s = 1e-3, kBefore_A = 5.0, kAfter_A = 5.0 / 3.0;
  for (const double h_lambda : {4.5, 8.0, 50.0}) {
    for (const double share : {0.5, 0.9}) {
      const double inductance_H = kStep_s / h_lambda;
      const Scenario own =
          parse_scenario(fmt::format(
                             R"j({{"name": "winding", "time": {{"step_s": {}, "steps": 20}},
    "subsystems": [
      {{"name": "v", "type": "effort_source", "parameters": {{"domain": "electrical"}}, "inputs": {{"effort": 5}}}},
      {{"name": "l", "type": "inductor", "parameters": {{"inductance_H": {:.17g}, "resistance_ohm": 1}},
        "inputs": {{"resistance_ohm": "if(t<{:.17g}, 1, 3)"}}, "initial_state": {{"current": {}}}}}],
    "couplings": [{{"kind": "connection", "ports": ["v.port", "l.terminals"]}}]}})j",
                             kStep_s, inductance_H, (8.0 + share) * kStep_s, kBefore_A),
                         "winding.json", ".");
      Stepper stepper(own.system, own.options);
      stepper.step(9);
      const double left = std::exp(-3.0 * (1.0 - share) * kStep_s / inductance_H);
      EXPECT_NEAR(stepper.state("l")[0], kAfter_A + left * (kBefore_A - kAfter_A),
                  0.02 * (kBefore_A - kAfter_A))
          << h_lambda << ", " << share;
    }
  }
}

TEST(ParameterJumps, ADutyIsRightWhereverItLiesInSteps) {
  const double tolerated_V[] = {0.0, 0.03, 2e-3};
  for (const int stages : {2, 3}) {
    for (const double step_s : {0.0025, 0.004, 0.0007}) {
      const Scenario own = chopper(kSquare, steps_of(step_s), stages);
      Stepper stepper(own.system, own.options);
      while (stepper.time_s() < 0.2) {
        const StepReport report = stepper.step();
        EXPECT_EQ(report.step_s, step_s);
        EXPECT_EQ(stepper.time_s(), static_cast<double>(stepper.step_index()) * step_s);
        EXPECT_LT(std::abs(open_J(report.energy)), 1e-14);  // of 0.05 J
        double changed_J = 0.0;
        for (int part = 0; part < 3; ++part) {
          changed_J += stepper.waves()->energies_of(part).changed_J;
        }
        EXPECT_NEAR(changed_J, report.energy.changed_J, 1e-14);
        // Short steps are taken whole with up to 4 % of error.
        const double most_V = step_s < 0.001 ? 0.05 : tolerated_V[stages - 1];
        EXPECT_NEAR(stepper.state("c")[0], voltage_at(stepper.time_s()), most_V)
            << stages << ", " << step_s << ", " << stepper.time_s();
      }
      EXPECT_NE(stepper.waves()->integrator().find("cut where parameters jump"), std::string::npos);
      EXPECT_EQ(stepper.resolution()->kind, Resolution::Kind::resolved);
    }
  }
}

TEST(ParameterJumps, ADutyIsRightWithOneStage) {
  const Scenario own = chopper(kSquare, steps_of(0.0025), 1);
  Stepper stepper(own.system, own.options);
  stepper.run_until(0.2);
  EXPECT_NEAR(stepper.state("c")[0], 2.4197, 0.1);  // of first order where it decays within a step
}

// Where the voltage falls slowly steps conserve, also after others of another size in which it was damped.
TEST(ParameterJumps, StepsThatConserveHaveNoNumericalDissipation) {
  const Scenario own = chopper(kSquare, steps_of(0.0025), 1);
  Stepper stepper(own.system, own.options);
  double damped_J = 0.0;
  for (int i = 0; i < 40; ++i) {
    const StepReport report = stepper.step();
    damped_J += report.energy.numerical_dissipation_J;
    const bool is_slow = i % 4 == 3;  // the last quarter of a period
    if (is_slow) {
      EXPECT_EQ(report.energy.numerical_dissipation_J, 0.0) << i;
    }
  }
  EXPECT_GT(damped_J, 0.1);
}

// A controller that is sampled every 20 steps leaves functions of time alone.
TEST(ParameterJumps, FunctionsOfTimeHoldForAStepAtAnyRateOfControllers) {
  const Scenario own = chopper(kSquare, steps_of(2.5e-3), 2);
  const Scenario beside = chopper(
      kSquare, steps_of(2.5e-3), 2,
      R"j(, "signals": {"every": 20, "blocks": [{"name": "log", "kind": "gain", "signal": "c.voltage", "factor": 1}]})j");
  Stepper stepper(own.system, own.options), other(beside.system, beside.options);
  for (int n = 0; n < 100; ++n) {
    stepper.step();
    other.step();
    EXPECT_EQ(states_of(stepper), states_of(other)) << n;
  }
}

// Control: the same values, held as a controller holds its samples, have the duty 0.25 and 2.19 V.
TEST(ParameterJumps, SamplesOfAControllerHaveAnotherDuty) {
  const Scenario own = chopper(R"({"kind": "signal", "signal": "s"})", steps_of(0.0025), 2,
                               R"j(, "signals": {"blocks": [{"name": "s", "kind": "expression",
            "expression": "if(mod(t+0.00125,0.01)<0.003,0.1,10000)"}]})j");
  Stepper stepper(own.system, own.options);
  stepper.run_until(0.2);
  EXPECT_NEAR(stepper.state("c")[0], 2.19, 0.02);
  EXPECT_EQ(stepper.waves()->integrator().find("cut"), std::string::npos);
}

TEST(ParameterJumps, FasterThanStepsAreFollowedToo) {
  // 0.3 of 1 S and 0.7 of 0.01 S beside 0.2 S: the ripple is below 1 mV.
  const std::string pulses =
      R"j({"kind": "expression", "expression": "if(mod(t,1e-5)<0.3e-5,1,100)"})j";
  const Scenario own = chopper(pulses, steps_of(0.001), 1);
  Stepper stepper(own.system, own.options);
  for (int i = 0; i < 30; ++i) stepper.step();
  EXPECT_NEAR(stepper.state("c")[0], 10.0 * 0.307 / 0.507, 0.01);
}

// The edges of a table are 1 µs long.
TEST(ParameterJumps, SteepEdgesOfTablesCountAsJumps) {
  std::string knots;
  for (int i = 0; i < 20; ++i) {
    const double begin_s = 0.01 * i;
    knots += fmt::format("[{}, 0.1], [{}, 0.1], [{}, 10000], [{}, 10000], ", begin_s,
                         begin_s + 0.003, begin_s + 0.003001, begin_s + 0.009999);
  }
  const std::string table = fmt::format(R"({{"kind": "table", "knots": [{}[1, 10000]]}})", knots);
  const Scenario own = chopper(table, steps_of(0.0025), 3);
  Stepper stepper(own.system, own.options);
  while (stepper.time_s() < 0.19) {
    stepper.step();
    EXPECT_NEAR(stepper.state("c")[0], voltage_at(stepper.time_s()), 0.01) << stepper.time_s();
  }
}

TEST(ParameterJumps, ChosenStepsEndThereBetweenSamples) {
  const Scenario own =
      chopper(kSquare, R"("step": {"kind": "adaptive", "tolerance": 1e-5}, "end_s": 0.2)", 3,
              R"(, "signals": {"every_s": 0.01})");
  Stepper stepper(own.system, own.options);
  while (stepper.time_s() < 0.2) {
    stepper.step_towards(0.2);
    EXPECT_NEAR(stepper.state("c")[0], voltage_at(stepper.time_s()), 1e-3) << stepper.time_s();
  }
  EXPECT_LT(stepper.step_index(), 4000);
}

// 0.1 C on a capacitor that becomes half as large within the second step, as its plates part.
TEST(ParameterJumps, ChargesStay) {
  for (const int stages : {1, 2, 3}) {
    const Scenario own =
        parse_scenario(fmt::format(R"j({{"name": "plates", "time": {{"step_s": 0.01, "end_s": 1}},
      "method": {{"kind": "auto", "stages": {}}},
      "subsystems": [{{"name": "c", "type": "capacitor", "parameters": {{"capacitance_F": 2e-3}},
        "initial_state": {{"voltage": 50}},
        "inputs": {{"capacitance_F": {{"kind": "expression", "expression": "if(t<0.0137,2e-3,1e-3)"}}}}}}],
      "couplings": [{{"kind": "fixed", "ports": ["c.terminals"]}}]}})j",
                                   stages),
                       "plates.json", ".");
    Stepper stepper(own.system, own.options);
    stepper.step();
    EXPECT_NEAR(stepper.state("c")[0], 50.0, 1e-12);
    const StepReport report = stepper.step();
    EXPECT_NEAR(stepper.state("c")[0], 100.0, 1e-11) << stages;
    EXPECT_NEAR(report.energy.supplied_J, 2.5, 1e-12) << stages;  // of whoever parts them
    EXPECT_NEAR(open_J(report.energy), 0.0, 1e-12);
  }
}

// 30 and 10 rad/s on a ratio that goes from 3 to 2 within a step.
TEST(ParameterJumps, ImpulsesActWhereARatioJumps) {
  const Scenario own = parse_scenario(
      R"j({"name": "gears", "time": {"step_s": 0.01, "end_s": 1}, "method": {"kind": "auto"},
      "subsystems": [
        {"name": "e", "type": "inertia", "parameters": {"inertia_kgm2": 0.1}, "initial_state": {"speed": 30}},
        {"name": "g", "type": "gear", "parameters": {"ratio": 3},
         "inputs": {"ratio": {"kind": "expression", "expression": "if(t<0.0137,3,2)"}}},
        {"name": "l", "type": "inertia", "parameters": {"inertia_kgm2": 1.5}, "initial_state": {"speed": 10}}],
      "couplings": [{"kind": "connection", "ports": ["e.shaft", "g.input"]},
                    {"kind": "common_flow", "ports": ["l.shaft", "g.output"]}]})j",
      "gears.json", ".");
  Stepper stepper(own.system, own.options);
  double impact_J = 0.0, open = 0.0;
  for (int i = 0; i < 5; ++i) {
    const StepReport report = stepper.step();
    impact_J += report.energy.impact_J;
    open = std::max(open, std::abs(open_J(report.energy)));
  }
  EXPECT_NEAR(stepper.state("e")[1], 22.105, 1e-2);
  EXPECT_NEAR(stepper.state("l")[1], 11.053, 1e-2);
  EXPECT_GT(impact_J, 1.0);
  EXPECT_LT(open, 1e-9);
}

TEST(ParameterJumps, WhatFailsInALaterPartLeavesTheStepBefore) {
  const Scenario own =
      chopper(R"j({"kind": "expression", "expression": "if(t<0.0137,1,-1)"})j", steps_of(0.005), 2);
  Stepper stepper(own.system, own.options);
  stepper.step();
  stepper.step();
  const std::vector<double> before = states_of(stepper);
  for (int again = 0; again < 2; ++again) {
    try {
      stepper.step();
      FAIL() << "a negative resistance";
    } catch (const StepError& error) {
      EXPECT_NE(std::string(error.what()).find("r.resistance_ohm"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(states_of(stepper), before);
    EXPECT_EQ(stepper.step_index(), 2);
    EXPECT_EQ(stepper.time_s(), 0.01);
  }
}

TEST(ParameterJumps, SnapshotsGoOnWithTheSameBits) {
  for (const int stages : {1, 3}) {
    for (const double step_s : {0.0025, 0.001}) {
      const Scenario own = chopper(kSquare, steps_of(step_s), stages);
      Stepper whole(own.system, own.options), first(own.system, own.options);
      for (int i = 0; i < 40; ++i) whole.step();
      for (int i = 0; i < 18; ++i) first.step();
      Stepper second(own.system, own.options);
      second.restore(first.snapshot());
      for (int i = 18; i < 40; ++i) second.step();
      EXPECT_EQ(states_of(second), states_of(whole)) << stages << ", " << step_s;
    }
  }
}

TEST(ParameterJumps, KinksAndSmoothFunctionsCutNoSteps) {
  for (const char* const smooth :
       {"1+0.5*sin(300*t)", "1+abs(sin(300*t))", "max(1,100*t)", "20*max(0,sin(700*t))"}) {
    const Scenario own = chopper(
        fmt::format(R"({{"kind": "expression", "expression": "{}"}})", smooth), steps_of(0.001), 1);
    Stepper stepper(own.system, own.options);
    for (int i = 0; i < 50; ++i) stepper.step();
    EXPECT_EQ(stepper.waves()->integrator().find("cut"), std::string::npos) << smooth;
  }
}

}  // namespace
}  // namespace portwave::test_parameter_jumps
