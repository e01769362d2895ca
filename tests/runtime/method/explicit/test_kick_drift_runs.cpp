// Kicks and drifts, stepped by a Stepper.

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>

#include "runtime/method/network/network_method_runs.hpp"
#include "runtime/method/states_of_stepper.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_kick_drift_runs {
namespace {

using testing::refused;
using testing::states_and_ports;

StepperOptions options_of(double step_s, int order = 6) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = SplittingKind::kick_drift, .order = order};
  return options;
}

TEST(KickDriftRuns, KeepTheLedgerAndTheCertificate) {
  const System system = testing::separable_pair();
  Stepper stepper(system, options_of(0.02));
  stepper.step(500);
  const EnergyTotals& energy = stepper.energy();
  EXPECT_NEAR(energy.dissipated_J, 8.081472398240848, 1e-7);
  EXPECT_NEAR(energy.final_J + energy.tank_J, energy.initial_J - energy.dissipated_J,
              1e-12 * energy.initial_J);
  EXPECT_NEAR(energy.final_J, stepper.storage(0) + stepper.storage(1), 1e-12 * energy.initial_J);
  EXPECT_LE(std::abs(energy.tank_J), 1e-12 * energy.initial_J);
  EXPECT_LE(energy.max_energy_ratio, 1.0 + 1e-12);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.iterations().max, 0);
  EXPECT_EQ(stepper.waves(), nullptr);
  EXPECT_NE(stepper.method().reason.find("order 6, 12 kicks"), std::string::npos)
      << stepper.method().reason;
  EXPECT_EQ(stepper.remarks(), "");
  Stepper coarse(system, options_of(0.2));
  coarse.step(20);
  EXPECT_NE(coarse.remarks().find("halved"), std::string::npos);
  EXPECT_EQ(coarse.certificate().status, CertificateStatus::holds);
}

// Mean efforts and flows of a long step are those of the short steps that it consists of.
TEST(KickDriftRuns, TellMeanEffortsAndFlows) {
  const System system = testing::separable_line(8, 4);
  const auto error = [&](int substeps) {
    constexpr int kShort = 64;
    const double step_s = 1e-4 * substeps;
    Stepper coarse(system, options_of(step_s)), fine(system, options_of(step_s / kShort));
    double worst = 0.0;
    for (int n = 0; n < 4; ++n) {
      coarse.step();
      double effort = 0.0, flow = 0.0;
      for (int k = 0; k < kShort; ++k) {
        fine.step();
        effort += fine.effort(0) / kShort;
        flow += fine.flow(0) / kShort;
      }
      EXPECT_NEAR(coarse.effort(0), coarse.effort(1), 1e-13);
      EXPECT_NEAR(coarse.flow(0), -coarse.flow(1), 1e-13);
      worst =
          std::max({worst, std::abs(coarse.effort(0) - effort), std::abs(coarse.flow(0) - flow)});
    }
    return worst;
  };
  const double coarse = error(4), fine = error(2);
  EXPECT_GT(std::log2(coarse / fine), 3.0) << coarse << ", " << fine;
}

TEST(KickDriftRuns, GoOnFromASnapshotBitByBit) {
  const System system = testing::separable_line(8, 4);
  Stepper stepper(system, options_of(2e-4));
  stepper.step(10);
  const Snapshot snapshot = stepper.snapshot();
  stepper.step(10);
  const std::vector<double> expected = states_and_ports(stepper);
  const double stored_J = stepper.energy().final_J;
  stepper.restore(snapshot);
  stepper.step(9);
  EXPECT_NE(states_and_ports(stepper), expected) << "control";
  stepper.step();
  EXPECT_EQ(states_and_ports(stepper), expected);
  EXPECT_EQ(stepper.energy().final_J, stored_J);
}

TEST(KickDriftRuns, KeepTheStateWhereAnInputThrows) {
  bool trap = false;
  SystemBuilder builder;
  builder.add(
      "a", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 2.0}),
      {.initial_state = {0.1, 0.0}, .inputs = {{"force", Signal::callback([&trap](double time_s) {
                                                  if (trap)
                                                    throw std::runtime_error("the trap is shut");
                                                  return std::sin(time_s);
                                                })}}});
  builder.join(joint::Free{}, {"a.coupling"});
  const System system = builder.build();
  Stepper stepper(system, options_of(0.1)), untouched(system, options_of(0.1));
  stepper.step(3);
  untouched.step(3);
  trap = true;
  try {
    stepper.step();
    ADD_FAILURE() << "the fault was not seen";
  } catch (const StepError& error) {
    EXPECT_EQ(error.part(), "a");
    EXPECT_EQ(error.fault(), StepFault::threw);
    EXPECT_NE(std::string(error.what()).find("the trap is shut"), std::string::npos);
  }
  trap = false;
  EXPECT_EQ(states_and_ports(stepper), states_and_ports(untouched));
  stepper.step(3);
  untouched.step(3);
  EXPECT_EQ(states_and_ports(stepper), states_and_ports(untouched));
}

TEST(KickDriftRuns, TakeAShorterStepAtTheEnd) {
  const System system = testing::separable_line(8, 4);
  Stepper stepper(system, options_of(2e-4)), fine(system, options_of(5e-5));
  stepper.run_until(2.1e-3);
  EXPECT_EQ(stepper.step_index(), 11);
  fine.run_until(2.1e-3);
  double worst = 0.0;
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < stepper.state(part).size(); ++i) {
      worst = std::max(worst, std::abs(stepper.state(part)[i] - fine.state(part)[i]));
    }
  }
  EXPECT_LT(worst, 1e-6);
  // And goes on with long ones.
  stepper.step();
  EXPECT_NEAR(stepper.time_s(), 2.3e-3, 1e-15);
  fine.run_until(2.3e-3);
  EXPECT_NEAR(stepper.state(0)[0], fine.state(0)[0], 1e-6);
  EXPECT_GT(std::abs(stepper.state(0)[0] - system.parts()[0].initial_state[0]), 1e-3) << "control";
}

// Beside the straight line between the ends of a step.
TEST(KickDriftRuns, FindTheTimesOfEventsWithinTheirSteps) {
  const System system = testing::separable_pair();
  struct Passage {
    double time_s = 0.0, straight_s = 0.0;
  };
  const auto first = [&](double step_s) {
    StepperOptions options = options_of(step_s);
    Watch watch;
    watch.of = {Sensor::Kind::state, 0, 0};
    watch.level = 0.1;
    options.watches = {watch};
    Stepper stepper(system, options);
    while (stepper.events().empty()) {
      const double before = stepper.state(0)[0] - 0.1, start_s = stepper.time_s();
      stepper.step();
      const double after = stepper.state(0)[0] - 0.1;
      if (stepper.events().empty()) continue;
      double state[3];
      stepper.state_at(0, stepper.events().front().time_s, state);
      EXPECT_NEAR(state[0], 0.1, 1e-13);
      return Passage{stepper.events().front().time_s, start_s + step_s * before / (before - after)};
    }
    return Passage{};
  };
  const Passage fine = first(1e-3), coarse = first(0.04), half = first(0.02);
  EXPECT_NEAR(coarse.time_s, fine.time_s, 1e-6);
  EXPECT_NEAR(half.time_s, fine.time_s, 3e-8);
  EXPECT_GT(std::abs(half.straight_s - fine.time_s), 1e-5) << "control";
}

StepperOptions automatic(double step_s, int stages) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = CouplingMethod::automatic_with_stages(stages);
  options.method.waves().explicit_steps = true;
  return options;
}

TEST(KickDriftRuns, AutoTakesThemWhereTheySuit) {
  const System system = testing::separable_pair();
  for (const int stages : {2, 3}) {
    Stepper chosen(system, automatic(0.02, stages)), own(system, options_of(0.02, 2 * stages));
    chosen.step(50);
    own.step(50);
    EXPECT_EQ(chosen.waves(), nullptr);
    EXPECT_EQ(states_and_ports(chosen), states_and_ports(own));
    EXPECT_NE(chosen.remarks().find("auto: kicks and drifts"), std::string::npos)
        << chosen.remarks();
  }
  StepperOptions silent = automatic(0.02, 3);
  silent.method.waves().explicit_steps = false;
  EXPECT_NE(Stepper(system, silent).waves(), nullptr) << "control";
}

TEST(KickDriftRuns, AutoStaysWithWavesAndSaysWhy) {
  const auto reason = [](const System& system, const StepperOptions& options) {
    const Stepper stepper(system, options);
    EXPECT_NE(stepper.waves(), nullptr);
    return stepper.remarks();
  };
  const auto expect = [](const std::string& text, const char* part) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  };
  const System pair = testing::separable_pair();
  expect(reason(pair, automatic(0.5, 3)), "highest frequency");
  expect(reason(testing::separable_pair(40.0), automatic(0.02, 3)), "fastest damping");
  StepperOptions late = automatic(0.02, 3);
  late.time.deadline_s = 10.0;
  expect(reason(pair, late), "deadline");
  StepperOptions damped = automatic(0.02, 3);
  damped.sizes = StepSizes{.tolerance = 1e-4};
  expect(reason(testing::separable_pair(400.0), damped), "fastest damping");
  const Issues one_stage = refused(pair, automatic(0.02, 1));
  ASSERT_EQ(one_stage.size(), 1U);
  EXPECT_EQ(one_stage.front().where, "/method/explicit_steps");
}

/// A kink of which the energy near the start says nothing: a mass of 1 runs 0.2 m on a spring of 1, from there on beside
/// another of 5. Half a turn of the first, and of both, by their closed forms.
TEST(KickDriftRuns, KinksFarFromTheStartAreNotMissed) {
  for (const double at : {0.2, 20.0, 2000.0}) {
    const std::string text =
        R"({"name": "kink", "time": {"step_s": 0.001, "steps": 1}, "subsystems": [
          {"name": "stop", "type": "port_hamiltonian", "initial_state": [0], "parameters": {
            "states": ["x"], "constants": {"at": )" +
        std::to_string(at) +
        R"(}, "energy": "x^2/2 + 5*max(0, x - at)^2/2", "G": [[1]],
            "ports": [{"name": "p", "causality": "flow_in", "domain": "translation"}]}},
          {"name": "m", "type": "mass", "parameters": {"mass_kg": 1}, "initial_state": {"velocity": )" +
        std::to_string(2.0 * at) + R"(}}],
          "couplings": [{"kind": "connection", "ports": ["m.port", "stop.p"]}]})";
    const Scenario scenario = parse_scenario(text, "kink.json", ".");
    Stepper stepper(scenario.system, options_of(0.001));
    stepper.step(1000);
    // x = 2 at sin t until t = π/6; from there ẍ = 5 at - 6 x with x = at, ẋ = √3 at.
    const double w = std::sqrt(6.0), left = 1.0 - std::acos(-1.0) / 6.0;
    const double x = 5.0 / 6.0 + std::cos(w * left) / 6.0 + std::sqrt(3.0) / w * std::sin(w * left);
    EXPECT_NEAR(stepper.state("stop")[0], x * at, 1e-5 * at) << at;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

TEST(KickDriftRuns, RefuseDeadlinesAndOtherOrders) {
  const System system = testing::separable_pair();
  StepperOptions options = options_of(0.02);
  options.time.deadline_s = 1e-3;
  const Issues late = refused(system, options);
  ASSERT_EQ(late.size(), 1U);
  EXPECT_EQ(late.front().where, "/deadline_s");
  const Issues order = refused(system, options_of(0.02, 5));
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(order.front().where, "/method/order");
  EXPECT_TRUE(refused(system, options_of(0.02)).empty()) << "control";
}

}  // namespace
}  // namespace portwave::test_kick_drift_runs
