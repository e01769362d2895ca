#pragma once

// A ring of cells, each a mass, a spring with a damper, a Duffing oscillator on the mass and dry friction
// under it; 500 of them are 2000 parts of four kinds.

#include <string>

#include <fmt/format.h>

#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave::bench {

constexpr int kCells = 500;

/// Its numbers, by cell.
struct Cell {
  double mass_kg, stiffness_N_per_m, damping_Ns_per_m, start_m_per_s;
  double oscillator_mass_kg, oscillator_stiffness_N_per_m, cubic_stiffness_N_per_m3;
  double coupling_stiffness_N_per_m, coupling_damping_Ns_per_m;
  double friction_N, creep_speed_m_per_s;
};

inline Cell friction_cell(int i, bool varied) {
  const double share = varied ? 1.0 + 1e-3 * i : 1.0;
  return {.mass_kg = 2.0 * share,
          .stiffness_N_per_m = 40.0 * share,
          .damping_Ns_per_m = 0.2,
          .start_m_per_s = i % 7 == 0 ? 1.0 : 0.0,
          .oscillator_mass_kg = share,
          .oscillator_stiffness_N_per_m = 30.0,
          .cubic_stiffness_N_per_m3 = 200.0,
          .coupling_stiffness_N_per_m = 50.0,
          .coupling_damping_Ns_per_m = 0.1,
          .friction_N = 0.3 * share,
          .creep_speed_m_per_s = 0.05};
}

inline constexpr double kRingStep_s = 0.002;

/// All cells equal, or all different.
inline Scenario friction_ring(bool varied, int cells = kCells) {
  std::string parts, couplings;
  for (int i = 0; i < cells; ++i) {
    const Cell c = friction_cell(i, varied);
    const char* const comma = i == 0 ? "" : ", ";
    parts += fmt::format(
        R"({}{{"name": "mass{}", "type": "mass", "parameters": {{"mass_kg": {}, "ports": 4}},
             "initial_state": {{"velocity": {}}}}},
           {{"name": "spring{}", "type": "spring_damper",
             "parameters": {{"stiffness_N_per_m": {}, "damping_Ns_per_m": {}}}}},)",
        comma, i, c.mass_kg, c.start_m_per_s, i, c.stiffness_N_per_m, c.damping_Ns_per_m);
    parts += fmt::format(
        R"({{"name": "duffing{}", "type": "duffing_oscillator",
             "parameters": {{"mass_kg": {}, "stiffness_N_per_m": {}, "cubic_stiffness_N_per_m3": {},
               "coupling_stiffness_N_per_m": {}, "coupling_damping_Ns_per_m": {}}}}},
           {{"name": "friction{}", "type": "coulomb_damper",
             "parameters": {{"friction_N": {}, "creep_speed_m_per_s": {}}}}})",
        i, c.oscillator_mass_kg, c.oscillator_stiffness_N_per_m, c.cubic_stiffness_N_per_m3,
        c.coupling_stiffness_N_per_m, c.coupling_damping_Ns_per_m, i, c.friction_N,
        c.creep_speed_m_per_s);
    couplings += fmt::format(
        R"({}{{"kind": "connection", "ports": ["mass{}.port_1", "spring{}.right"]}},
           {{"kind": "connection", "ports": ["mass{}.port_2", "spring{}.left"]}},
           {{"kind": "connection", "ports": ["mass{}.port_3", "duffing{}.coupling"]}},
           {{"kind": "connection", "ports": ["mass{}.port_4", "friction{}.end"]}})",
        comma, i, i, i, (i + 1) % cells, i, i, i, i);
  }
  return parse_scenario(
      fmt::format(
          R"({{"name": "ring", "time": {{"step_s": {}, "end_s": 1}}, "method": {{"kind": "auto"}},
          "subsystems": [{}], "couplings": [{}]}})",
          kRingStep_s, parts, couplings),
      "ring.json", ".");
}

}  // namespace portwave::bench
