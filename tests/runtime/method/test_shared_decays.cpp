// Stiff decays that storages share: masses on the two sides of a damper, capacitors on those of a resistor. What they do
// against each other dies within a step, and what they do together is conserved.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/output/summary.hpp"
#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/snapshot.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_shared_decays {
namespace {

Scenario scenario(const std::string& name, double step_s, const std::string& subsystems,
                  const std::string& couplings, const std::string& integrator, int stages) {
  return parse_scenario(
      fmt::format(R"({{"name": "{}", "time": {{"step_s": {:.17g}, "steps": 1000}},
    "subsystems": [{}], "couplings": [{}],
    "method": {{"kind": "auto", "integrator": "{}", "stages": {}}}}})",
                  name, step_s, subsystems, couplings, integrator, stages),
      name + ".json", ".");
}

/// Two masses, one three times the other, at 100 and 50 m/s, on a damper of hλ = 13 333 and a soft spring: 62.5 m/s.
Scenario pair(double scale, const std::string& integrator, int stages = 1, double other = 3.0) {
  return scenario("pair", 0.01,
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
               double damping = 1e5) {
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

constexpr std::size_t kMomentum = 1;

/// Of a mass.
double velocity(const Stepper& stepper, const std::string& part, double mass) {
  return stepper.state(part)[kMomentum] / mass;
}

double open_share(const EnergyTotals& e) {
  return std::abs(e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                  e.numerical_dissipation_J) /
         e.max_J;
}

TEST(SharedDecays, TwoMassesOnAStiffDamperGetOneSpeedAtEveryScale) {
  for (const int stages : {1, 2, 3}) {
    for (const double scale : {1e-9, 1.0, 1e9}) {
      const auto at_end = [&](const std::string& integrator, bool& is_all_well) {
        const Scenario own = pair(scale, integrator, stages);
        Stepper stepper(own.system, own.options);
        const auto momentum = [&] {
          return stepper.state("m")[kMomentum] - stepper.state("n")[kMomentum];
        };
        const double before = momentum();
        stepper.step(200);
        EXPECT_NEAR(momentum(), before, 1e-9 * std::abs(before)) << scale << integrator;
        EXPECT_LT(open_share(stepper.energy()), 1e-12) << scale << integrator;
        is_all_well = summarize("test", own.options, stepper, 1.0).is_all_well();
        return std::abs(velocity(stepper, "m", scale));
      };
      bool is_well = false, conserving_is_well = true;
      EXPECT_NEAR(at_end("auto", is_well), 62.5, 0.02) << scale << " stages " << stages;
      EXPECT_TRUE(is_well) << scale << " stages " << stages;
      // Control: conserving steps throw it to and fro, or leave it, and are told.
      EXPECT_GT(std::abs(at_end("gauss", conserving_is_well) - 62.5), 10.0) << scale;
      EXPECT_FALSE(conserving_is_well) << scale << " stages " << stages;
    }
  }
}

}  // namespace
}  // namespace portwave::test_shared_decays
