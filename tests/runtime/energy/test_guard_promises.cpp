// What the guard promises beyond its two laws: it leaves steps alone that met their tolerance, whatever the
// parts are, and where it has to change a step, or cannot judge one, the run says so.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/ranks/ranked_stepper.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/guard_of.hpp"
#include "support/systems/example_scenarios.hpp"
#include "support/thread_ranks.hpp"

namespace portwave::test_guard_promises {
namespace {

using testing::guard_of;
using testing::ThreadRanks;

/// A part that slides on dry friction: waves go through it almost unchanged, so that no shorter â makes up
/// for a deficit.
std::string sliding(double mass_kg, double speed_m_per_s, double friction_N, double creep_m_per_s,
                    const std::string& method, double step_s, int steps) {
  return R"({"name": "sliding", "time": {"step_s": )" + std::to_string(step_s) + R"(, "steps": )" +
         std::to_string(steps) + R"(}, "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": )" +
         std::to_string(mass_kg) + R"(}, "initial_state": {"velocity": )" +
         std::to_string(speed_m_per_s) + R"(}},
    {"name": "d", "type": "coulomb_damper", "parameters": {"friction_N": )" +
         std::to_string(friction_N) + R"(, "creep_speed_m_per_s": )" +
         std::to_string(creep_m_per_s) + R"(}}],
  "couplings": [{"kind": "connection", "ports": ["d.end", "m.port"]}],
  "method": )" +
         method + "}";
}

const char* const kOpenedCoil = R"json({"name": "coil", "time": {"step_s": 1e-5, "end_s": 0.01},
  "subsystems": [
    {"name": "l", "type": "inductor", "parameters": {"inductance_H": 1}, "initial_state": {"current": 1}},
    {"name": "sw", "type": "electrical_switch", "parameters": {"on_S": 10, "off_S": 1e-6},
     "initial_state": {"travel": 1},
     "inputs": {"speed": {"kind": "expression", "expression": "if(t < 0.001, -1000, 0)"}}}],
  "couplings": [{"kind": "connection", "ports": ["l.terminals", "sw.terminals"]}],
  "method": {"kind": "auto"}})json";

struct Stepped {
  explicit Stepped(const std::string& text, bool guarded = true)
      : scenario(parse_scenario(text, "test", {})) {
    scenario.options.method.waves().guard = guarded;
    stepper = std::make_unique<Stepper>(scenario.system, scenario.options);
    stepper->step(scenario.steps);
  }
  RunSummary summary() const { return summarize("test", scenario.options, *stepper, 0.1); }

  Scenario scenario;
  std::unique_ptr<Stepper> stepper;
};

// The mass comes to rest after v²/(2F/m) = 0.1 m and 0.2 s; creep makes it a little farther.
TEST(GuardPromises, BrakesTakeTheEnergyAndNotTheGuard) {
  for (const char* method :
       {R"({"kind": "auto"})", R"({"kind": "auto", "stages": 2})", R"({"kind": "interface"})"}) {
    const std::string text = sliding(1.0, 1.0, 5.0, 1e-6, method, 0.001, 500);
    const Stepped guarded(text), plain(text, false);
    EXPECT_NEAR(guarded.stepper->state("m")[0], 0.1, 1e-3) << method;
    EXPECT_NEAR(guarded.stepper->state("m")[0], plain.stepper->state("m")[0], 1e-8) << method;
    EXPECT_EQ(guard_of(*guarded.stepper).missed_steps, 0) << method;
    EXPECT_TRUE(guarded.summary().is_all_well()) << method;
    // H + T ≤ H₀ + T₀ + what the tolerance left, and that is little.
    const EnergyTotals& e = guarded.stepper->energy();
    EXPECT_LE(e.final_J + e.tank_J, e.initial_J + e.tolerated_J + e.rounding_J) << method;
    EXPECT_LE(e.tolerated_J, 1e-5 * e.initial_J) << method;
  }
}

// The plain iteration hardly converges where the creep speed is a millionth of the speed. It says so.
TEST(GuardPromises, WhatDidNotConvergeIsTold) {
  const char* const method = R"({"kind": "peaceman-rachford", "iterations": 300, "tolerance": 1e-10,
                                 "impedance": {"kind": "matched"}})";
  const Stepped run(sliding(1.0, 1.0, 5.0, 1e-6, method, 0.001, 500));
  EXPECT_GT(std::abs(run.stepper->state("m")[0] - 0.1), 1e-3);
  EXPECT_FALSE(run.summary().is_all_well());
}

// Radau IIA of order 5 at 1e-10: 5.81021 m.
TEST(GuardPromises, CoarseStepsOnFrictionAreThoseWithoutTheGuard) {
  const std::string text = sliding(0.175, 16.7, 4.2, 0.009185, R"({"kind": "auto", "stages": 2})",
                                   0.05497083333333333, 21);
  const Stepped guarded(text), plain(text, false);
  EXPECT_NEAR(guarded.stepper->state("m")[0], 5.81021, 0.15);
  EXPECT_NEAR(guarded.stepper->state("m")[0], plain.stepper->state("m")[0], 1e-6);
  EXPECT_LT(std::abs(guarded.stepper->energy().mismatch_J), 1e-5);
}

// Half a joule ends in the switch, or in the steps in which it opens, and none in the interface.
TEST(GuardPromises, AnOpenedCoilLosesItsEnergyInTheSwitch) {
  const Stepped run(kOpenedCoil);
  const EnergyTotals& e = run.stepper->energy();
  EXPECT_NEAR(run.stepper->state("l")[0], 0.0, 0.02);
  EXPECT_NEAR(e.dissipated_J + e.numerical_dissipation_J, 0.5, 1e-3);
  EXPECT_NEAR(e.mismatch_J, 0.0, 1e-3);
  EXPECT_LE(e.tolerated_J, 1e-3);
  EXPECT_EQ(guard_of(*run.stepper).missed_steps, 0);
}

TEST(GuardPromises, LanesAndRanksDoWhatOneStepperDoes) {
  const std::pair<const char*, double> methods[] = {
      {R"({"kind": "auto"})", 1e-6},
      {R"({"kind": "peaceman-rachford", "iterations": 40, "tolerance": 1e-6,
           "impedance": {"kind": "matched", "retune_factor": 0}})",
       1e-2},
      {R"({"kind": "peaceman-rachford", "iterations": 40, "tolerance": 1e-4, "integrator": "gauss",
           "impedance": {"kind": "matched", "retune_factor": 0}})",
       1e-4}};
  double tolerated_J = 0.0;
  for (const auto& [method, creep_m_per_s] : methods) {
    const std::string text = sliding(1.0, 1.0, 5.0, creep_m_per_s, method, 0.001, 400);
    const Stepped alone(text);
    tolerated_J += alone.stepper->energy().tolerated_J;
    Scenario scenario = parse_scenario(text, "test", {});
    Ensemble ensemble(scenario.system, 16, scenario.options);
    for (int n = 0; n < 400; ++n) ensemble.step();
    for (const int replica : {0, 7, 15}) {
      EXPECT_EQ(ensemble.energy(replica).tolerated_J, alone.stepper->energy().tolerated_J);
      EXPECT_EQ(ensemble.energy(replica).final_J, alone.stepper->energy().final_J);
      EXPECT_EQ(ensemble.certificate(replica).status, alone.stepper->certificate().status);
    }
    ThreadRanks::run(2, [&](const std::shared_ptr<Ranks>& ranks) {
      const Scenario own = parse_scenario(text, "test", {});
      StepperOptions options = own.options;
      options.ranks = ranks;
      Stepper stepper(own.system, options);
      if (ranks->rank() != 0) {
        RankedStepper(stepper).follow();
        return;
      }
      stepper.step(400);
      EXPECT_EQ(stepper.energy().tolerated_J, alone.stepper->energy().tolerated_J);
      EXPECT_EQ(stepper.state("m")[0], alone.stepper->state("m")[0]);
    });
  }
  EXPECT_GT(tolerated_J, 0.0);
}

/// The body of the car has four ports and three ways to move: waves of the fourth meet nothing that stores,
/// and grow with every over-relaxed step.
Scenario relaxed_car(bool guarded, int iterations = 3) {
  Scenario scenario = testing::example("full_car");
  WaveCoupling m;
  m.kind = WaveUpdate::douglas_rachford;
  m.relaxation = 1.2;
  m.iterations = iterations;
  m.impedance_kind = ImpedanceKind::matched;
  m.guard = guarded;
  scenario.options.method = m;
  return scenario;
}

TEST(GuardPromises, WavesThatNoEnergyCanPayForAreNotCommitted) {
  for (const int iterations : {1, 2, 3, 5}) {
    const Scenario scenario = relaxed_car(true, iterations);
    Stepper stepper(scenario.system, scenario.options);
    stepper.step(400);
    const EnergyTotals& e = stepper.energy();
    EXPECT_LE(e.max_energy_ratio, 1.000001) << iterations;
    EXPECT_LE(e.max_J, 2.0 * e.initial_J) << iterations;
    EXPECT_LE(e.rounding_J, 1e-6 * e.initial_J) << iterations;
    double waves = 0.0;
    for (int port = 0; port < static_cast<int>(scenario.system.scalar_ports().size()); ++port) {
      const double a = stepper.waves()->incident(port);
      waves += 0.5 * a * a;
    }
    EXPECT_LE(waves, 1e6 * e.initial_J) << iterations;
    // It says that this is not the motion of the car.
    const RunSummary summary = summarize("car", scenario.options, stepper, 0.1);
    if (iterations == 3) {
      EXPECT_GT(guard_of(stepper).missed_steps, 100);
      EXPECT_FALSE(summary.is_all_well());
      EXPECT_NE(summary_text(summary).find("the guard changed the motion"), std::string::npos);
      EXPECT_NE(summary_text(summary).find("\"body\""), std::string::npos);
    }
  }
}

TEST(GuardPromisesControl, WithoutTheGuardTheCarsWavesGrow) {
  const Scenario scenario = relaxed_car(false);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(60);
  double largest = 0.0;
  for (int port = 0; port < static_cast<int>(scenario.system.scalar_ports().size()); ++port) {
    largest = std::max(largest, std::abs(stepper.waves()->incident(port)));
  }
  EXPECT_GT(0.5 * largest * largest, 1e9 * stepper.energy().initial_J);
  EXPECT_NE(stepper.certificate().status, CertificateStatus::holds);
}

TEST(GuardPromises, APassiveOscillatorOfSubnormalEnergyBreaksNoLaw) {
  for (const double amplitude : {1e-155, 1e-160, 1e-162, 3e-162, 1e-170}) {
    char state[64];
    std::snprintf(state, sizeof state, "%.17g", amplitude);
    const std::string text =
        std::string(R"({"name": "least", "time": {"step_s": 0.01, "steps": 300},
      "subsystems": [
        {"name": "a", "type": "linear_oscillator", "parameters": {"mass_kg": 1, "stiffness_N_per_m": 10},
         "initial_state": {"q2": )") +
        state + R"(}},
        {"name": "b", "type": "linear_oscillator", "parameters": {"mass_kg": 1.5, "stiffness_N_per_m": 20}}],
      "couplings": [{"kind": "connection", "ports": ["a.coupling", "b.coupling"]}],
      "method": {"kind": "auto"}})";
    const Stepped run(text);
    EXPECT_EQ(run.stepper->certificate().status, CertificateStatus::holds) << amplitude;
  }
}

}  // namespace
}  // namespace portwave::test_guard_promises
