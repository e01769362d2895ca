// Stiff decays that storages share: masses on the two sides of a damper, capacitors on those of a resistor. What they
// do against each other dies within a step, and what they do together is conserved.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/impedance/shared_decays.hpp"
#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "runtime/method/states_of_stepper.hpp"

namespace portwave::test_shared_decays {
namespace {

Scenario scenario(const std::string& name, double step_s, const std::string& subsystems,
                  const std::string& couplings, const std::string& integrator, int stages) {
  return parse_scenario(fmt::format(R"({{"name": "{}", "time": {{"step_s": {:.17g}, "steps": 1000}},
    "subsystems": [{}], "couplings": [{}],
    "method": {{"kind": "auto", "integrator": "{}", "stages": {}}}}})",
                                    name, step_s, subsystems, couplings, integrator, stages),
                        name + ".json", ".");
}

/// Two masses, one three times the other, at 100 and 50 m/s, on a damper of hλ = 13 333 and a soft spring: 62.5 m/s.
Scenario pair(double scale, const std::string& integrator, int stages = 1, double other = 3.0) {
  return scenario(
      "pair", 0.01,
      fmt::format(R"({{"name": "m", "type": "mass", "parameters": {{"mass_kg": {0:.17g}}},
       "initial_state": {{"velocity": 100}}}},
      {{"name": "k", "type": "spring_damper",
       "parameters": {{"stiffness_N_per_m": {1:.17g}, "damping_Ns_per_m": {2:.17g}}}}},
      {{"name": "n", "type": "mass", "parameters": {{"mass_kg": {3:.17g}}},
       "initial_state": {{"velocity": 50}}}})",
                  scale, 100.0 * scale, 1e6 * scale, other * scale),
      R"({"kind": "connection", "ports": ["m.port", "k.left"]},
      {"kind": "connection", "ports": ["n.port", "k.right"]})",
      integrator, stages);
}

/// Two masses of 1 and 2 kg with a stiff damper between them, on a spring of 300 N/m to the ground, 10 rad/s, with
/// 1.5 m/s in common, and `apart` against each other.
Scenario swing(double step_s, double apart, const std::string& integrator, int stages = 1,
               double damping = 1e7) {
  return scenario("swing", step_s,
                  fmt::format(R"({{"name": "a", "type": "mass", "parameters": {{"mass_kg": 1}},
       "initial_state": {{"velocity": {:.17g}}}}},
      {{"name": "d", "type": "damper", "parameters": {{"damping_Ns_per_m": {:.17g}}}}},
      {{"name": "b", "type": "mass", "parameters": {{"mass_kg": 2, "ports": 2}},
       "initial_state": {{"velocity": {:.17g}}}}},
      {{"name": "s", "type": "spring", "parameters": {{"stiffness_N_per_m": 300}}}})",
                              1.5 + apart * 2.0 / 3.0, damping, 1.5 - apart / 3.0),
                  R"({"kind": "connection", "ports": ["a.port", "d.left"]},
      {"kind": "connection", "ports": ["b.port_1", "d.right"]},
      {"kind": "connection", "ports": ["b.port_2", "s.left"]},
      {"kind": "fixed", "ports": ["s.right"]})",
                  integrator, stages);
}

/// Capacitors of 1 and 2 mF at 10 and 0 V on the ends of a resistor, with a coil of .1 H across the second.
Scenario resonator(double resistance, const std::string& integrator, int stages = 1) {
  return scenario("resonator", 1e-3,
                  fmt::format(R"({{"name": "a", "type": "capacitor",
       "parameters": {{"capacitance_F": 1e-3}}, "initial_state": {{"voltage": 10}}}},
      {{"name": "r", "type": "resistor", "parameters": {{"resistance_ohm": {:.17g}}}}},
      {{"name": "b", "type": "capacitor", "parameters": {{"capacitance_F": 2e-3}}}},
      {{"name": "l", "type": "inductor", "parameters": {{"inductance_H": 0.1}}}})",
                              resistance),
                  R"({"kind": "kernel",
       "ports": ["a.terminals", "r.terminals", "b.terminals", "l.terminals"],
       "E": [[1, -1, -1, 0], [0, 0, 1, -1], [0, 0, 0, 0], [0, 0, 0, 0]],
       "F": [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0], [0, -1, 1, 1]]})",
                  integrator, stages);
}

/// Of a mass.
double velocity(const Stepper& stepper, const std::string& part) { return stepper.state(part)[1]; }

double open_share(const EnergyTotals& e) {
  return std::abs(e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                  e.numerical_dissipation_J) /
         e.max_J;
}

TEST(SharedDecays, TwoMassesOnAStiffDamperGetOneSpeedAtEveryScale) {
  for (const int stages : {1, 2, 3}) {
    for (const double scale : {1e-9, 1.0, 1e9}) {
      bool is_resolved = true;
      const auto at_end = [&](const std::string& integrator) {
        const Scenario own = pair(scale, integrator, stages);
        Stepper stepper(own.system, own.options);
        const auto momentum = [&] {
          return scale * (velocity(stepper, "m") + 3.0 * velocity(stepper, "n"));
        };
        const double before = momentum();
        stepper.step(200);
        EXPECT_NEAR(momentum(), before, 1e-9 * std::abs(before)) << scale << integrator;
        EXPECT_LT(open_share(stepper.energy()), 1e-9) << scale << integrator;
        is_resolved = summarize("test", own.options, stepper, 1.0).is_resolved();
        return std::abs(velocity(stepper, "m"));
      };
      EXPECT_NEAR(at_end("auto"), 62.5, 0.02) << scale << " stages " << stages;
      // Control: conserving steps throw it to and fro, or leave it, and are told.
      EXPECT_GT(std::abs(at_end("gauss") - 62.5), 10.0) << scale;
      EXPECT_FALSE(is_resolved) << scale << " stages " << stages;
    }
  }
}

std::vector<std::vector<double>> go_on(Stepper& stepper, int steps) {
  return testing::go_on(stepper, steps, testing::all_states);
}

// Of 3.375 J in common and .75 J against each other the last is lost, in the first step.
TEST(SharedDecays, MassesThatSwingTogetherKeepWhatTheyHaveInCommon) {
  const auto energy = [](double apart, const std::string& integrator, int stages) {
    const Scenario own = swing(0.01, apart, integrator, stages);
    Stepper stepper(own.system, own.options);
    stepper.step(1000);
    EXPECT_LT(open_share(stepper.energy()), 1e-9) << integrator;
    return stepper.energy().final_J;
  };
  for (const double apart : {1.5, -1.5}) {
    EXPECT_NEAR(energy(apart, "auto", 1), 3.375, 0.02) << apart;
    EXPECT_LT(energy(apart, "damped", 1), 0.1);  // control: damped all the time
    EXPECT_GT(energy(apart, "gauss", 1), 4.0);   // control: never
    // The states alone that the damper shows, with (hω)³/36 per radian.
    EXPECT_NEAR(energy(apart, "auto", 2), 3.375, 0.02) << apart;
    EXPECT_NEAR(energy(apart, "auto", 3), 3.375, 2e-4) << apart;
    EXPECT_GT(energy(apart, "gauss", 2), 4.0);
  }
}

// SciPy, Radau at 1e-11: V, V and A.
TEST(SharedDecays, CapacitorsOnASmallResistorRingTogetherWithACoil) {
  const struct {
    double time_s, volts, amperes;
  } golden[] = {{0.05, -3.22552, 0.145563},
                {0.1, 2.90936, -0.281693},
                {0.2, 1.74592, -0.49173},
                {0.5, -2.76329, -0.322631},
                {1.0, 1.2497, 0.534904}};
  const auto largest_error = [&](const std::string& integrator, int stages) {
    const Scenario own = resonator(1e-3, integrator, stages);
    Stepper stepper(own.system, own.options);
    double largest = 0.0;
    int done = 0;
    for (const auto& at : golden) {
      const auto step = static_cast<int>(std::lround(at.time_s / 1e-3));
      stepper.step(step - std::exchange(done, step));
      const double a = stepper.state("a")[0], b = stepper.state("b")[0];
      largest = std::max({largest, std::abs(std::abs(a) - std::abs(at.volts)),
                          std::abs(std::abs(b) - std::abs(at.volts)),
                          std::abs(std::abs(stepper.state("l")[0]) - std::abs(at.amperes))});
    }
    EXPECT_LT(open_share(stepper.energy()), 1e-9);
    return largest;
  };
  EXPECT_LT(largest_error("auto", 1), 0.06);
  EXPECT_LT(largest_error("auto", 2), 1e-3);
  EXPECT_GT(largest_error("gauss", 1), 1.0);  // controls
  EXPECT_GT(largest_error("gauss", 2), 1.0);
  EXPECT_GT(largest_error("damped", 1), 0.5);
}

TEST(SharedDecays, WhatMovesSmoothlyOrIsResolvedHasTheBitsOfConservingSteps) {
  const auto has_same_bits = [](const auto& make) {
    const Scenario own = make("auto"), conserving = make("gauss");
    Stepper stepper(own.system, own.options), other(conserving.system, conserving.options);
    return go_on(stepper, 300) == go_on(other, 300);
  };
  for (const int stages : {1, 2, 3}) {
    // Stiff, and swinging together from the start; hλ = .75, resolved; and without any damper.
    for (const double damping : {1e5, 50.0, 0.0}) {
      const double apart = damping > 1e4 ? 0.0 : 1.5;
      EXPECT_TRUE(has_same_bits([&](const std::string& integrator) {
        return swing(0.01, apart, integrator, stages, damping);
      })) << damping
          << " stages " << stages;
    }
    // Control.
    EXPECT_FALSE(has_same_bits([&](const std::string& integrator) {
      return swing(0.01, 1.5, integrator, stages, 1e5);
    })) << stages;
  }
}

/// A swing at half the frequency that a step can tell, as stiff as it gets: the damper's force changes in every step.
TEST(SharedDecays, CoarseSwingsAreNotDamped) {
  for (const double damping : {600.0, 1e3, 1e6}) {
    const Scenario own = swing(0.05, 0.0, "auto", 1, damping);  // hω = .5
    Stepper stepper(own.system, own.options);
    stepper.step(500);
    EXPECT_EQ(stepper.energy().numerical_dissipation_J, 0.0) << damping;
  }
}

/// Little beside what they do in common: wagons that run at 30 and at 300 m/s.
TEST(SharedDecays, WagonsGetOneSpeedHoweverFastTheyRun) {
  for (const double speed : {0.0, 30.0, 300.0}) {
    for (const double apart : {0.5, 0.05}) {
      const auto wagons = [&](const std::string& integrator) {
        return scenario("wagons", 0.01,
                        fmt::format(R"({{"name": "m", "type": "mass",
             "parameters": {{"mass_kg": 1e4}}, "initial_state": {{"velocity": {:.17g}}}}},
            {{"name": "k", "type": "spring_damper",
             "parameters": {{"stiffness_N_per_m": 1e5, "damping_Ns_per_m": 1e11}}}},
            {{"name": "n", "type": "mass", "parameters": {{"mass_kg": 3e4}},
             "initial_state": {{"velocity": {:.17g}}}}})",
                                    speed + 0.75 * apart, speed - 0.25 * apart),
                        R"({"kind": "connection", "ports": ["m.port", "k.left"]},
            {"kind": "connection", "ports": ["n.port", "k.right"]})",
                        integrator, 1);
      };
      const auto largest_apart = [&](const std::string& integrator) {
        const Scenario own = wagons(integrator);
        Stepper stepper(own.system, own.options);
        stepper.step(10);
        double largest = 0.0;
        for (int n = 0; n < 10; ++n) {
          stepper.step();
          largest = std::max(largest, std::abs(velocity(stepper, "m") - velocity(stepper, "n")));
        }
        EXPECT_NEAR(velocity(stepper, "m"), speed, apart + 1e-9);
        return largest;
      };
      EXPECT_LT(largest_apart("auto"), 0.01 * apart) << speed;
      EXPECT_GT(largest_apart("gauss"), 0.9 * apart) << speed;  // control
    }
  }
}

/// The same beside a swing that steps of this size hardly resolve, of which damping would take more than it brings to
/// rest.
TEST(SharedDecays, LittleBesideACoarseSwingIsNotDamped) {
  const Scenario own = swing(0.05, 0.01, "auto", 1, 1e6);  // hω = .5
  Stepper stepper(own.system, own.options);
  stepper.step(50);
  EXPECT_LT(stepper.energy().numerical_dissipation_J, 1e-4);
}

/// What is thrown late: a wheel of 1 kg is hit in the midst of the swing.
TEST(SharedDecays, AHitInTheMidstOfASwingIsDampedThen) {
  const auto largest_apart = [](const std::string& integrator) {
    const Scenario own = swing(0.01, 0.0, integrator);
    Stepper stepper(own.system, own.options);
    stepper.step(100);
    std::vector<double> states = testing::all_states(stepper);
    states[1] += 2.0;
    stepper.set_states(states);
    stepper.step(20);
    double largest = 0.0;
    for (int n = 0; n < 20; ++n) {
      stepper.step();
      largest = std::max(
          largest, std::abs(std::abs(velocity(stepper, "a")) - std::abs(velocity(stepper, "b"))));
    }
    return largest;
  };
  EXPECT_LT(largest_apart("auto"), 1e-3);
  EXPECT_GT(largest_apart("gauss"), 1.0);  // control
}

TEST(SharedDecays, SnapshotsAndThreadsKeepTheBits) {
  for (const bool is_pair : {true, false}) {
    const Scenario own = is_pair ? pair(1.0, "auto") : swing(0.01, 1.5, "auto", 1, 700.0);
    Stepper stepper(own.system, own.options), other(own.system, own.options);
    for (const int before : {0, 1, 2, 50}) {
      stepper.step(before);
      const Snapshot snapshot = stepper.snapshot();
      const auto first = go_on(stepper, 40);
      stepper.restore(snapshot);
      EXPECT_EQ(go_on(stepper, 40), first) << before;
      other.restore(snapshot);
      EXPECT_EQ(go_on(other, 40), first) << before;
    }
    Stepper alone(own.system, own.options);
    const auto expected = go_on(alone, 60);
    for (const ExecutorKind kind : {ExecutorKind::graph, ExecutorKind::async}) {
      StepperOptions options = own.options;
      options.executor = kind;
      options.threads = 2;
      Stepper threaded(own.system, options);
      EXPECT_EQ(go_on(threaded, 60), expected);
    }
  }
}

const auto kAnyPart = [](int) { return true; };
const auto kNoPart = [](int) { return false; };

// λ = d(1/m₁ + 1/m₂), and (1/C₁ + 1/C₂)/R.
TEST(SharedDecays, RatesAreThoseOfWhatMovesAgainstEachOther) {
  const auto rate = [](const Scenario& own, double step_s) {
    const SharedDecays decays(own.system, step_s, shared_decay(1), kAnyPart, kNoPart);
    return decays.losses().size() == 1 ? decays.losses()[0].rate : 0.0;
  };
  EXPECT_NEAR(rate(swing(0.01, 0.0, "auto"), 0.01), 1e7 * 1.5, 1e-3);
  EXPECT_NEAR(rate(resonator(1e-3, "auto"), 1e-3), 1e3 * 1500.0, 1e-3);
  EXPECT_EQ(rate(swing(0.01, 0.0, "auto", 1, 500.0), 0.01), 0.0);  // hλ = 7.5: resolved
  EXPECT_NEAR(rate(pair(1e-9, "auto", 1, 1e18), 0.01), 1e6, 1e-3);
}

/// Through a gear of 10 in a joint, a flow of one side is 10 times that of the other: λ = d(1/m₁ + 100/m₂) or so.
TEST(SharedDecays, WeightsOfJointsCount) {
  const auto geared = [](double ratio) {
    return scenario("geared", 0.01,
                    R"({"name": "a", "type": "mass", "parameters": {"mass_kg": 1},
         "initial_state": {"velocity": 1}},
        {"name": "d", "type": "damper", "parameters": {"damping_Ns_per_m": 1e5}},
        {"name": "b", "type": "mass", "parameters": {"mass_kg": 2, "ports": 2}},
        {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 300}})",
                    fmt::format(R"({{"kind": "connection", "ports": ["a.port", "d.left"]}},
        {{"kind": "transformer", "ports": ["b.port_1", "d.right"], "ratio": {}}},
        {{"kind": "connection", "ports": ["b.port_2", "s.left"]}},
        {{"kind": "fixed", "ports": ["s.right"]}})",
                                ratio),
                    "auto", 1);
  };
  const double ratio = 10.0;
  const Scenario own = geared(ratio);
  const SharedDecays decays(own.system, 0.01, shared_decay(1), kAnyPart, kNoPart);
  ASSERT_EQ(decays.losses().size(), 1u);
  EXPECT_NEAR(decays.losses()[0].rate, 1e5 * (1.0 + 0.5 * ratio * ratio), 1e-2);
  Stepper stepper(own.system, own.options);
  stepper.step(2);
  const double a = std::abs(velocity(stepper, "a"));
  const double b = std::abs(velocity(stepper, "b"));
  EXPECT_NEAR(a, ratio * b, 2e-3 * a);
  EXPECT_GT(stepper.energy().numerical_dissipation_J, 0.0);
}

/// The same two masses and their damper as one part.
TEST(SharedDecays, ADamperInsideAPartIsOne) {
  const auto inside = [](const std::string& integrator) {
    return scenario("inside", 0.01,
                    R"({"name": "p", "type": "linear_port_hamiltonian", "parameters": {
          "states": [{"name": "p1", "unit": "kg m/s"}, {"name": "p2", "unit": "kg m/s"}],
          "ports": [{"name": "end", "domain": "translation", "causality": "effort_in"}],
          "J": [[0, 0], [0, 0]], "R": [[1e7, -1e7], [-1e7, 1e7]], "G": [[0], [1]],
          "Q": [[1, 0], [0, 0.5]]}, "initial_state": {"p1": 2.5, "p2": 2}},
        {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 300}})",
                    R"({"kind": "connection", "ports": ["p.end", "s.left"]},
        {"kind": "fixed", "ports": ["s.right"]})",
                    integrator, 1);
  };
  const auto energy = [&](const std::string& integrator) {
    const Scenario own = inside(integrator);
    Stepper stepper(own.system, own.options);
    stepper.step(1000);
    EXPECT_LT(open_share(stepper.energy()), 1e-9) << integrator;
    return stepper.energy().final_J;
  };
  EXPECT_NEAR(energy("auto"), 3.375, 0.02);
  EXPECT_GT(energy("gauss"), 4.0);  // controls
  EXPECT_LT(energy("damped"), 0.1);
}

/// 300 pairs of masses on stiff dampers that swing together, one mass of which was hit: few parts are damped.
TEST(SharedDecays, OneHitInALargeNetworkDampsWhatIsBeside) {
  std::string parts, couplings;
  constexpr int kPairs = 300;
  for (int i = 0; i < kPairs; ++i) {
    parts += fmt::format(
        R"({}{{"name": "a{}", "type": "mass", "parameters": {{"mass_kg": 1, "ports": 2}},
        "initial_state": {{"velocity": {}}}}},
      {{"name": "d{}", "type": "damper", "parameters": {{"damping_Ns_per_m": 1e5}}}},
      {{"name": "b{}", "type": "mass", "parameters": {{"mass_kg": 1, "ports": 2}},
        "initial_state": {{"velocity": 1}}}},
      {{"name": "s{}", "type": "spring", "parameters": {{"stiffness_N_per_m": 50}}}})",
        i > 0 ? ", " : "", i, i == 120 ? 3 : 1, i, i, i);
    couplings +=
        fmt::format(R"({}{{"kind": "connection", "ports": ["a{}.port_1", "d{}.left"]}},
      {{"kind": "connection", "ports": ["b{}.port_1", "d{}.right"]}},
      {{"kind": "connection", "ports": ["b{}.port_2", "s{}.left"]}},
      {{"kind": "{}", "ports": [{}"s{}.right"]}})",
                    i > 0 ? ", " : "", i, i, i, i, i, i, i + 1 < kPairs ? "connection" : "fixed",
                    i + 1 < kPairs ? fmt::format("\"a{}.port_2\", ", i + 1) : "", i);
  }
  couplings += R"(, {"kind": "free", "ports": ["a0.port_2"]})";
  const Scenario own = scenario("chain", 0.01, parts, couplings, "auto", 1);
  Stepper stepper(own.system, own.options);
  stepper.step(100);
  const RunSummary summary = summarize("test", own.options, stepper, 1.0);
  EXPECT_NE(summary.integrator.find("\"a120\" and 1 other damped in 2 of 100 steps"),
            std::string::npos)
      << summary.integrator;
  EXPECT_LT(open_share(stepper.energy()), 1e-9);
  EXPECT_TRUE(summary.is_all_well());
}

}  // namespace
}  // namespace portwave::test_shared_decays
