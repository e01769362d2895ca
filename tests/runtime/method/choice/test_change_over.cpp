// Steps in which a one-sided part changes over: dry friction that begins to stick, a diode that begins to conduct.
// The storages beside it are damped in them, and conserve before and after.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/part_recipes.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "runtime/method/states_of_stepper.hpp"

namespace portwave::test_change_over {
namespace {

using testing::go_on;

Scenario scenario(const std::string& name, double step_s, const std::string& subsystems,
                  const std::string& couplings, const std::string& integrator) {
  return parse_scenario(fmt::format(R"({{"name": "{}", "time": {{"step_s": {:.17g}, "steps": 1000}},
    "subsystems": [{}], "couplings": [{}], "method": {{"kind": "auto", "integrator": "{}"}}}})",
                                    name, step_s, subsystems, couplings, integrator),
                        name + ".json", ".");
}

/// A mass of 1 kg that 5 N of dry friction stop, from 1 m/s, after 0.2 s.
Scenario sliding_mass(double step_s, const std::string& integrator) {
  return scenario("sliding_mass", step_s,
                  R"({"name": "m", "type": "mass", "parameters": {"mass_kg": 1},
       "initial_state": {"velocity": 1}},
      {"name": "d", "type": "coulomb_damper",
       "parameters": {"friction_N": 5, "creep_speed_m_per_s": 1e-5}})",
                  R"({"kind": "connection", "ports": ["d.end", "m.port"]})", integrator);
}

/// Two inertias that 40 N m of dry friction bring to one speed; behind the second a shaft with a third.
Scenario clutch(double step_s, const std::string& integrator) {
  return scenario(
      "clutch", step_s,
      R"({"name": "motor", "type": "inertia", "parameters": {"inertia_kgm2": 0.1, "ports": 2},
       "initial_state": {"speed": 100}},
      {"name": "load", "type": "inertia", "parameters": {"inertia_kgm2": 0.05, "ports": 2}},
      {"name": "shaft", "type": "torsional_spring_damper",
       "parameters": {"stiffness_Nm_per_rad": 500, "damping_Nms_per_rad": 0}},
      {"name": "end", "type": "inertia", "parameters": {"inertia_kgm2": 0.2}},
      {"name": "d", "type": "rotational_coulomb_damper",
       "parameters": {"friction_Nm": 40, "creep_speed_rad_per_s": 1e-4}})",
      R"({"kind": "free", "ports": ["motor.shaft_1"]},
      {"kind": "common_effort", "ports": ["motor.shaft_2", "load.shaft_1", "d.shaft"]},
      {"kind": "connection", "ports": ["load.shaft_2", "shaft.left"]},
      {"kind": "connection", "ports": ["end.shaft", "shaft.right"]})",
      integrator);
}

/// An oscillating circuit whose voltage a diode keeps from rising.
Scenario clamp(double step_s, const std::string& integrator) {
  return scenario("clamp", step_s,
                  R"({"name": "l", "type": "inductor", "parameters": {"inductance_H": 1e-3}},
      {"name": "d", "type": "diode",
       "parameters": {"saturation_current_A": 1e-9, "emission_coefficient": 1.8}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-5},
       "initial_state": {"voltage": -5}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000, "gives": "current"}})",
                  R"({"kind": "common_effort",
       "ports": ["l.terminals", "d.terminals", "c.terminals", "r.terminals"]})",
                  integrator);
}

/// A block that sticks to a table on a spring, both at 1 m/s: 0.5 Hz for 11 kg.
Scenario table(double step_s, const std::string& integrator) {
  return scenario("table", step_s,
                  R"({"name": "table", "type": "mass", "parameters": {"mass_kg": 10, "ports": 2},
       "initial_state": {"velocity": 1}},
      {"name": "block", "type": "mass", "parameters": {"mass_kg": 1},
       "initial_state": {"velocity": -1}},
      {"name": "s", "type": "spring_damper",
       "parameters": {"stiffness_N_per_m": 108.6, "damping_Ns_per_m": 0}},
      {"name": "d", "type": "coulomb_damper",
       "parameters": {"friction_N": 20, "creep_speed_m_per_s": 1e-5}})",
                  R"({"kind": "common_effort", "ports": ["table.port_1", "block.port", "d.end"]},
      {"kind": "connection", "ports": ["s.right", "table.port_2"]},
      {"kind": "fixed", "ports": ["s.left"]})",
                  integrator);
}

constexpr int kSpeed = 1;  // state of masses and inertias

struct Outcome {
  RunSummary summary;
  EnergyTotals energy;
  std::vector<double> values;  ///< of a state, by step
};

Outcome run(const Scenario& scenario, std::int64_t steps, const std::string& part, int state = 0) {
  Stepper stepper(scenario.system, scenario.options);
  Outcome out;
  for (std::int64_t n = 0; n < steps; ++n) {
    stepper.step();
    out.values.push_back(stepper.state(part)[static_cast<std::size_t>(state)]);
  }
  out.energy = stepper.energy();
  out.summary = summarize("test", scenario.options, stepper, 1.0);
  return out;
}

double open_share(const EnergyTotals& e) {
  return std::abs(e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                  e.numerical_dissipation_J) /
         e.max_J;
}

TEST(ChangeOver, AMassThatFrictionStopsStays) {
  for (const double step_s : {0.013, 0.0301, 0.11, 0.5}) {
    const auto after = static_cast<std::size_t>(std::ceil(0.2 / step_s));
    const auto largest_after = [&](const std::string& integrator, Outcome& own) {
      const Scenario sliding = sliding_mass(step_s, integrator);
      own = run(sliding, 100, "m", kSpeed);
      double largest = 0.0;
      for (std::size_t n = after; n < own.values.size(); ++n) {
        largest = std::max(largest, std::abs(own.values[n]));
      }
      return largest;
    };
    Outcome own, conserving;
    EXPECT_LT(largest_after("auto", own), 1e-3) << step_s;
    EXPECT_TRUE(own.summary.is_all_well()) << step_s;
    EXPECT_LT(open_share(own.energy), 1e-12) << step_s;
    EXPECT_GT(own.energy.numerical_dissipation_J, 0.0);
    // What it lost to friction, but for the step in which it stopped.
    EXPECT_LT(own.energy.numerical_dissipation_J,
              0.5 * std::min(1.0, 25.0 * step_s * step_s) + 1e-9);
    // Control: conserving steps throw it back and forth.
    EXPECT_GT(largest_after("gauss", conserving), 4e-3) << step_s;
  }
}

// SciPy, Radau at 1e-9, of the same equations: speeds of the motor and the end, mirrored as their joints mirror them.
TEST(ChangeOver, AClutchThatLocksGoesOnAsOneShaft) {
  const Scenario own = clutch(1e-3, "auto");
  Stepper stepper(own.system, own.options);
  const struct {
    double time_s, motor, end;
  } golden[] = {{0.1, 60.0, 17.4067},    {0.2, 27.2944, 29.5292}, {0.3, 26.6489, 30.0133},
                {0.5, 30.6877, 26.9842}, {0.75, 30.6253, 27.031}, {1.0, 30.4407, 27.1695}};
  for (const auto& at : golden) {
    while (stepper.time_s() < at.time_s - 1e-9) stepper.step();
    EXPECT_NEAR(stepper.state("motor")[kSpeed], at.motor, 0.15) << at.time_s;
    EXPECT_NEAR(stepper.state("end")[kSpeed], -at.end, 0.15) << at.time_s;
  }
  const RunSummary summary = summarize("test", own.options, stepper, 1.0);
  EXPECT_TRUE(summary.is_all_well());
  EXPECT_EQ(summary.iterations.not_converged, 0);
  EXPECT_LT(summary.energy.numerical_dissipation_J, 0.05);
  EXPECT_NE(summary.integrator.find("changed over"), std::string::npos) << summary.integrator;
  // Control: conserving steps leave a torque that alternates, and the run says so.
  const Scenario conserving = clutch(1e-3, "gauss");
  EXPECT_FALSE(run(conserving, 1000, "motor").summary.is_all_well());
}

/// A capacitor behind a resistor that goes down to 1 ohm for every other ten milliseconds: its decay is 0.1 or 100 steps
/// long.
Scenario switched_resistor(double step_s, const std::string& integrator) {
  return scenario(
      "switched_resistor", step_s,
      R"json({"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"},
       "inputs": {"effort": {"kind": "expression", "expression": "10*sin(100*pi*t)"}}},
      {"name": "r", "type": "resistor", "parameters": {"resistance_ohm": 1000},
       "inputs": {"resistance_ohm":
         {"kind": "expression", "expression": "if(mod(t, 0.02) < 0.01, 1000, 1)"}}},
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 1e-6}})json",
      R"({"kind": "common_flow",
       "ports": ["v.port", "r.terminals", "c.terminals"]})",
      integrator);
}

// tau u' = 10 sin wt - u, in closed form from one change of tau to the next.
TEST(ChangeOver, AResistorWhoseParameterIsDrivenChangesOver) {
  const double step_s = 1e-4, omega = 100.0 * std::acos(-1.0);
  const auto largest_error = [&](const std::string& integrator, RunSummary& summary) {
    const Outcome own = run(switched_resistor(step_s, integrator), 600, "c");
    summary = own.summary;
    double largest = 0.0, exact = 0.0;
    const double sign = own.values[49] > 0.0 ? 1.0 : -1.0;  // of the joint
    for (std::size_t n = 0; n < own.values.size(); ++n) {
      const double begin = static_cast<double>(n) * step_s, end = begin + step_s;
      const double tau = n / 100 % 2 == 0 ? 1e-3 : 1e-6;
      const auto steady = [&](double t) {
        return 10.0 * (std::sin(omega * t) - omega * tau * std::cos(omega * t)) /
               (1.0 + omega * omega * tau * tau);
      };
      exact = steady(end) + (exact - steady(begin)) * std::exp(-step_s / tau);
      largest = std::max(largest, std::abs(sign * own.values[n] - exact));
    }
    return largest;
  };
  RunSummary own, conserving;
  EXPECT_LT(largest_error("auto", own), 0.2);
  EXPECT_TRUE(own.is_all_well()) << own.integrator;
  EXPECT_NE(own.integrator.find("in which parameters"), std::string::npos) << own.integrator;
  EXPECT_GT(largest_error("gauss", conserving), 2.0);  // control
}

/// A mass on a spring, with a damper or friction beside it whose parameter follows the time.
Scenario driven_brake(const std::string& brake, const std::string& parameter, double begin,
                      const std::string& expression, const std::string& more_of_spring = "") {
  const bool is_damper = brake == "damper";
  std::string others = is_damper ? "" : "\"creep_speed_m_per_s\": 1e-6,";
  if (!is_damper && parameter != "friction_N") others += "\"friction_N\": 0,";
  return scenario(
      "driven_brake", 1e-3,
      fmt::format(R"json({{"name": "m", "type": "mass", "parameters": {{"mass_kg": 1, "ports": 2}},
       "initial_state": {{"velocity": 1}}}},
      {{"name": "s", "type": "spring", "parameters": {{"stiffness_N_per_m": 400}}{}}},
      {{"name": "d", "type": "{}", "parameters": {{{} "{}": {}}},
       "inputs": {{"{}": {{"kind": "expression", "expression": "{}"}}}}}})json",
                  more_of_spring, brake, others, parameter, begin, parameter, expression),
      fmt::format(R"({{"kind": "connection", "ports": ["d.{}", "m.port_1"]}},
      {{"kind": "connection", "ports": ["s.left", "m.port_2"]}},
      {{"kind": "fixed", "ports": ["s.right"]}}{})",
                  is_damper ? "left" : "end",
                  is_damper ? R"(, {"kind": "fixed", "ports": ["d.right"]})" : ""),
      "auto");
}

/// A brake that is off at first, and then holds.
TEST(ChangeOver, ABrakeThatIsOffAtFirstHoldsOnceItIsDriven) {
  const struct {
    const char *brake, *parameter, *expression;
  } cases[] = {{"damper", "damping_Ns_per_m", "if(t < 0.3, 0, 1e6)"},
               {"coulomb_damper", "friction_N", "if(t < 0.3, 0, 50)"},
               {"coulomb_damper", "viscosity_Ns_per_m", "if(t < 0.3, 0, 1e6)"}};
  for (const auto& own : cases) {
    const double begin = std::string(own.parameter) == "friction_N" ? 1e-9 : 0.0;
    std::string parameter = own.parameter;
    const Scenario brake = driven_brake(own.brake, parameter, begin, own.expression);
    const Outcome done = run(brake, 600, "m", kSpeed);
    EXPECT_NEAR(std::abs(done.values[298]), std::abs(std::cos(20.0 * 0.299)), 0.01) << parameter;
    for (std::size_t n = 330; n < done.values.size(); ++n) {
      ASSERT_LT(std::abs(done.values[n]), 0.02) << parameter << " " << n;
    }
    EXPECT_TRUE(done.summary.is_all_well()) << parameter << done.summary.integrator;
  }
}

/// Held for 10 ms with a spring of 2 J, it swings freely from then on, and is not damped for what was.
TEST(ChangeOver, WhatHeldAtFirstIsNotDampedForEver) {
  const std::string tense = R"(, "initial_state": {"elongation": 0.1})";
  const Outcome own =
      run(driven_brake("damper", "damping_Ns_per_m", 1e6, "if(t < 0.0095, 1e6, 1e-9)", tense), 5000,
          "m", kSpeed);
  EXPECT_GT(own.energy.final_J, 1.95);
  EXPECT_LT(own.energy.final_J, 2.01);
}

TEST(ChangeOver, AClonedRunGoesOnWithTheSameBits) {
  for (const int before : {100, 302, 320}) {
    const Scenario brake =
        driven_brake("damper", "damping_Ns_per_m", 1.0, "if(t < 0.3, 1, 1e6*(1 + 0.1*sin(100*t)))");
    Stepper one(brake.system, brake.options);
    one.step(before);
    Stepper other = one.clone();
    for (int n = 0; n < 300; ++n) {
      one.step();
      other.step();
      ASSERT_EQ(one.state("m")[kSpeed], other.state("m")[kSpeed]) << before << " " << n;
    }
  }
}

/// Steps of another size have batches of their own, and what is then put in force again has those of before.
TEST(ChangeOver, AClonedRunGoesOnWithTheSameBitsAfterAStepOfAnotherSize) {
  const Scenario own = parse_scenario(R"json({"name": "charge",
    "time": {"step_s": 0.18560928328492607, "steps": 55},
    "subsystems": [
      {"name": "c", "type": "capacitor", "parameters": {"capacitance_F": 0.33}, "initial_state": {"voltage": 0}},
      {"name": "l", "type": "inductor", "parameters": {"inductance_H": 0.098, "resistance_ohm": 0.8254},
       "initial_state": {"current": 0.0}},
      {"name": "v", "type": "effort_source", "parameters": {"domain": "electrical"}, "inputs": {"effort": 1.0}},
      {"name": "d", "type": "diode",
       "parameters": {"saturation_current_A": 1e-9, "thermal_voltage_V": 0.00258, "leakage_S": 1e-12}}],
    "couplings": [{"kind": "kernel", "ports": ["c.terminals", "l.terminals", "d.terminals", "v.port"],
      "E": [[0, 0, 0, 0], [-1, 1, 0, 1], [-1, 0, 1, 0], [0, 0, 0, 0]],
      "F": [[1, 1, 1, 0], [0, 0, 0, 0], [0, 0, 0, 0], [0, -1, 0, 1]]}],
    "method": {"kind": "auto"}})json",
                                      "charge.json", ".");
  Stepper one(own.system, own.options);
  one.step(12);
  one.step_by(0.5 * own.options.step_s);
  one.step();
  for (int n = 0; n < 10; ++n) {
    Stepper other = one.clone();
    one.step();
    other.step();
    EXPECT_EQ(other.state("c")[0], one.state("c")[0]) << n;
    EXPECT_EQ(other.state("l")[0], one.state("l")[0]) << n;
  }
}

/// A storage that is exchanged in every step beside dry friction, with an idle port: no component that was left is met
/// again.
TEST(ChangeOver, AStorageWhoseParameterIsDrivenHasNoStaleTwin) {
  const auto chain = [](const std::string& right_end) {
    return scenario("chain", 1e-3,
                    R"json({"name": "c", "type": "mass_spring_damper_chain",
       "parameters": {"masses": 2, "mass_kg": 1, "stiffness_N_per_m": 300, "right_end": "mass"},
       "initial_state": {"v1": 1},
       "inputs": {"mass_kg": {"kind": "expression", "expression": "1 + 0.3*sin(20*t)"}}},
      {"name": "d", "type": "coulomb_damper",
       "parameters": {"friction_N": 2, "creep_speed_m_per_s": 1e-5}},
      {"name": "e", "type": "effort_source", "parameters": {"domain": "translation"}})json",
                    R"({"kind": "connection", "ports": ["d.end", "c.left"]}, )" + right_end,
                    "auto");
  };
  const Outcome idle = run(chain(R"({"kind": "free", "ports": ["c.right"]},
       {"kind": "free", "ports": ["e.port"]})"),
                           1500, "c");
  const Outcome driven =
      run(chain(R"({"kind": "connection", "ports": ["c.right", "e.port"]})"), 1500, "c");
  for (std::size_t n = 0; n < idle.values.size(); ++n) {
    ASSERT_NEAR(idle.values[n], driven.values[n], 1e-9) << n;
  }
  EXPECT_GT(driven.energy.numerical_dissipation_J, 0.0);
}

/// With several stages, what stores beside dry friction is damped for the whole run.
TEST(ChangeOver, SeveralStagesBringToRestWhatFrictionStops) {
  for (const int stages : {2, 3}) {
    const auto at_end = [&](const std::string& integrator, Outcome& own) {
      Scenario sliding = sliding_mass(0.0301, integrator);
      sliding.options.method.waves().stages = stages;
      own = run(sliding, 100, "m", kSpeed);
      double largest = 0.0;
      for (std::size_t n = 10; n < 100; ++n) largest = std::max(largest, std::abs(own.values[n]));
      return largest;
    };
    Outcome own, conserving;
    EXPECT_LT(at_end("auto", own), 1e-4) << stages;
    EXPECT_NE(own.summary.integrator.find("one-sided part may bind \"m\""), std::string::npos)
        << own.summary.integrator;
    EXPECT_GT(at_end("gauss", conserving), 3e-3) << stages;  // control
  }
}

// SciPy, Radau at 1e-9: V and A.
TEST(ChangeOver, ADiodeThatBeginsToConductIsNotThrownAcross) {
  const struct {
    double time_s, capacitor_V, inductor_A;
  } golden[] = {{2e-4, 0.92865, -0.464549},  {4e-4, 0.90535, -0.280966}, {8e-4, 0.53526, 0.050075},
                {1.2e-3, 0.03054, -0.07197}, {2e-3, 0.65033, 0.011872},  {4e-3, 0.13599, 0.056905}};
  const auto largest_error = [&](const std::string& integrator, RunSummary& summary) {
    const Scenario own = clamp(4e-5, integrator);
    Stepper stepper(own.system, own.options);
    double largest = 0.0;
    for (const auto& at : golden) {
      while (stepper.time_s() < at.time_s - 1e-9) stepper.step();
      largest = std::max({largest, std::abs(stepper.state("c")[0] - at.capacitor_V),
                          10.0 * std::abs(stepper.state("l")[0] - at.inductor_A)});
    }
    summary = summarize("test", own.options, stepper, 1.0);
    return largest;
  };
  RunSummary damped, conserving;
  const double own = largest_error("auto", damped);
  EXPECT_LT(own, 0.25);
  EXPECT_TRUE(damped.is_all_well());
  // Control.
  EXPECT_GT(largest_error("gauss", conserving), 1.3 * own);
  EXPECT_FALSE(conserving.is_all_well());
}

TEST(ChangeOver, WhatSticksToAMovingTableMovesWithItAndConserves) {
  // 100 steps by period, for 20 of them.
  const Outcome own = run(table(0.02, "auto"), 2000, "block", kSpeed);
  EXPECT_TRUE(own.summary.is_all_well());
  EXPECT_GT(own.energy.final_J, 0.98 * own.energy.initial_J);
  EXPECT_LT(open_share(own.energy), 1e-11);
  // Control: damped all the time, nothing is left.
  EXPECT_LT(run(table(0.02, "damped"), 2000, "block").energy.final_J, 0.1 * own.energy.initial_J);
}

TEST(ChangeOver, NothingIsDampedWhereAllDecaysAreResolved) {
  const Scenario own = table(1e-9, "auto");
  Stepper stepper(own.system, own.options);
  EXPECT_FALSE(stepper.waves()->may_damp());
  const Scenario stiff = table(0.02, "auto");
  EXPECT_TRUE(Stepper(stiff.system, stiff.options).waves()->may_damp());
}

/// hλ = 4 with the slope of the friction at rest, 5 N by 1e-5 m/s, on 1 kg; resistances are rounded down by up to an
/// eighth.
TEST(ChangeOver, JointsAreWatchedFromTheThresholdOn) {
  const auto is_watched = [](double h_lambda) {
    const Scenario sliding = sliding_mass(h_lambda / 5e5, "auto");
    return Stepper(sliding.system, sliding.options).waves()->may_damp();
  };
  EXPECT_FALSE(is_watched(0.99 * 4.0));
  EXPECT_TRUE(is_watched(1.15 * 4.0));
}

TEST(ChangeOver, SnapshotsHoldWhatIsDamped) {
  for (const auto& make : {clutch, table}) {
    const Scenario own = make(2e-3, "auto");
    Stepper stepper(own.system, own.options), other(own.system, own.options);
    // Before anything changes over, while it does, and long after.
    for (const int before : {3, 75, 10, 200}) {
      stepper.step(before);
      const Snapshot snapshot = stepper.snapshot();
      const auto first = go_on(stepper, 120);
      stepper.restore(snapshot);
      EXPECT_EQ(go_on(stepper, 120), first) << own.name << ", " << before;
      Stepper fresh(own.system, own.options);
      fresh.restore(snapshot);
      EXPECT_EQ(go_on(fresh, 120), first) << own.name << ", " << before;
      other.restore(snapshot);
      EXPECT_EQ(go_on(other, 120), first) << own.name << ", " << before;
    }
  }
}

TEST(ChangeOver, HasTheSameBitsOnThreads) {
  const Scenario own = clutch(1e-3, "auto");
  Stepper alone(own.system, own.options);
  const auto expected = go_on(alone, 300);
  for (const ExecutorKind kind : {ExecutorKind::serial, ExecutorKind::graph, ExecutorKind::async}) {
    StepperOptions options = own.options;
    options.executor = kind;
    options.threads = kind == ExecutorKind::serial ? 1 : 2;
    Stepper stepper(own.system, options);
    EXPECT_EQ(go_on(stepper, 300), expected);
  }
}

/// Solvers of steps of other sizes are made again once parts have changed; a snapshot before they are holds none.
TEST(ChangeOver, StatesMayBeSetBetweenSteps) {
  const Scenario own =
      parse_scenario(R"json({"name": "set", "time": {"step_s": 0.03428472808096912, "steps": 100},
    "subsystems": [
      {"name": "a", "type": "inertia",
       "parameters": {"inertia_kgm2": 1.155264262988134e-06, "damping_Nms_per_rad": 1.8928405190685792e-05},
       "initial_state": {"speed": 0}},
      {"name": "b", "type": "inertia",
       "parameters": {"inertia_kgm2": 1.0138768571161773e-06, "damping_Nms_per_rad": 1.091281452092814e-06,
                      "ports": 2},
       "initial_state": {"speed": 0}},
      {"name": "c", "type": "inertia",
       "parameters": {"inertia_kgm2": 2.418429786690672e-06, "damping_Nms_per_rad": 0.0001197031337216581},
       "initial_state": {"speed": 1.0}},
      {"name": "stop", "type": "rotational_contact",
       "parameters": {"torque_Nm": 5.563557134270594e-05, "angle_rad": 1, "gap_rad": 0.5, "side": "both",
                      "damping_s_per_rad": 0.3}}],
    "couplings": [{"kind": "connection", "ports": ["b.shaft_2", "stop.shaft"]},
                  {"kind": "free", "ports": ["a.shaft"]}, {"kind": "free", "ports": ["b.shaft_1"]},
                  {"kind": "free", "ports": ["c.shaft"]}],
    "method": {"kind": "auto", "tolerance": 1e-13}})json",
                     "set.json", ".");
  Stepper stepper(own.system, own.options);
  std::vector<double> states;
  for (int n = 0; n < 3; ++n) {
    stepper.step();
    states.clear();
    for (int part = 0; part < static_cast<int>(own.system.parts().size()); ++part) {
      const auto x = stepper.state(part);
      states.insert(states.end(), x.begin(), x.end());
    }
    stepper.set_states(states);
    const Snapshot snapshot = stepper.snapshot();
    stepper.step();
    const double speed = stepper.state("c")[0];
    stepper.restore(snapshot);
    stepper.step();
    EXPECT_EQ(stepper.state("c")[0], speed);
  }
}

TEST(ChangeOver, PartsMayBeExchangedWhileTheyAreDamped) {
  Scenario own = clutch(1e-3, "auto");
  const StepperOptions options = own.options;
  Stepper stepper(changed_system(own.system, own, {}), options);
  for (int n = 0; n < 400; ++n) {
    if (n % 20 == 10) {
      set_parameter(stepper, own, "motor.inertia_kgm2", n % 40 == 10 ? 0.11 : 0.1);
      set_parameter(stepper, own, "load.inertia_kgm2", n % 40 == 10 ? 0.04 : 0.05);
    }
    stepper.step();
  }
  const RunSummary summary = summarize("test", options, stepper, 1.0);
  EXPECT_TRUE(summary.is_all_well());
  EXPECT_LT(open_share(stepper.energy()), 1e-9);
  EXPECT_NEAR(stepper.state("motor")[kSpeed], -stepper.state("load")[kSpeed], 0.01);
}

TEST(ChangeOver, ReplicasAreSteppedAsTheyWouldBeAlone) {
  const Scenario own = clutch(1e-3, "auto");
  const auto replica = [&](int) { return clutch(1e-3, "auto").system; };
  Ensemble ensemble(3, replica, own.options);
  ensemble.step(150);
  Stepper stepper(own.system, own.options);
  stepper.step(150);
  std::vector<double> state(static_cast<std::size_t>(ensemble.state_size()));
  for (int i = 0; i < 3; ++i) {
    ensemble.get_state(i, state);
    EXPECT_EQ(state[kSpeed], stepper.state("motor")[kSpeed]);
  }
  EXPECT_NE(ensemble.execution().find("each at its own time"), std::string::npos);
}

}  // namespace
}  // namespace portwave::test_change_over
