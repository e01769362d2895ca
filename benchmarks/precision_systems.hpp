#pragma once

// The systems of the work–precision benchmark as the engine sees them, beside peers/ode.hpp.

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chain_system.hpp"
#include "peers/grid_loop.hpp"
#include "peers/ode.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "precision_reference.hpp"

namespace portwave::bench {

struct Problem {
  std::string name;
  double end_s = 1.0;
  std::function<std::unique_ptr<Ode>(Layout)> ode;
  System system;
  /// The stepper's state in the physical order of `Ode`.
  std::function<std::vector<double>(const Stepper&)> read;
  long fewest_steps = 16;     ///< of peers with equal steps
  int reference_steps = 128;  ///< of the extrapolation, ω h < 1
  /// The end by other means, in the physical order; replaces the extrapolation in double.
  std::function<std::vector<double>()> exact = {};
  double rounding = 1e-12;  ///< what the extrapolation in double may lose
  bool narrow_band = true;  ///< of the interleaved Jacobian; otherwise KLU factorises it
  bool linear = true;       ///< then one tolerance of the inner iteration is as good as all
  std::map<int, double> goals = {};  ///< by the exponent of the accuracy: times as fast as the best
};

/// Every block's middle mass displaced, by 0.05 to 0.1 m.
inline Chain plucked(Chain chain) {
  std::fill(chain.q.begin(), chain.q.end(), 0.0);
  for (std::size_t b = 0; b < chain.blocks.size(); ++b) {
    chain.q[b * kMasses + kMasses / 2] = 0.05 + 0.05 * evenly(b, 2);
  }
  return chain;
}

inline Problem chain_problem(std::string name, const Chain& chain) {
  return {.name = std::move(name),
          .end_s = 2.0,
          .ode = [chain](Layout layout) { return chain_ode(chain, layout); },
          .system = chain_system(chain),
          .read =
              [n = chain.masses()](const Stepper& engine) {
                std::vector<double> q(n), v(n);
                read_engine(engine, q, v);
                q.insert(q.end(), v.begin(), v.end());
                return q;
              },
          .exact = [chain] { return chain_series(chain, 2.0, 128); },
          .goals = {{4, 10.0}, {6, 10.0}, {8, 10.0}}};
}

inline System duffing_grid_system(const GridParameters& p) {
  SystemBuilder builder;
  const auto name = [](std::size_t i, std::size_t j) {
    return "n" + std::to_string(i) + "_" + std::to_string(j);
  };
  const std::shared_ptr<const Subsystem> node =
      duffing_node({.mass_kg = p.mass_kg,
                    .stiffness_N_per_m = p.stiffness_N_per_m,
                    .cubic_stiffness_N_per_m3 = p.cubic_stiffness_N_per_m3,
                    .coupling_stiffness_N_per_m = p.coupling_stiffness_N_per_m,
                    .coupling_damping_Ns_per_m = p.coupling_damping_Ns_per_m});
  for (std::size_t i = 0; i < p.rows; ++i) {
    for (std::size_t j = 0; j < p.columns; ++j) {
      const std::size_t n = i * p.columns + j;
      const double q = grid_position(n);
      const double east = j + 1 < p.columns ? grid_position(n + 1) - q : 0.0;
      const double south = i + 1 < p.rows ? grid_position(n + p.columns) - q : 0.0;
      builder.add(name(i, j), node, {.initial_state = {q, grid_velocity(n), east, south}});
    }
  }
  const auto end = [&](std::size_t i, std::size_t j, const char* port) {
    builder.join(joint::Free{}, {name(i, j) + port});
  };
  for (std::size_t i = 0; i < p.rows; ++i) {
    end(i, 0, ".west");
    end(i, p.columns - 1, ".east");
    for (std::size_t j = 0; j + 1 < p.columns; ++j) {
      builder.connect(name(i, j) + ".east", name(i, j + 1) + ".west");
    }
  }
  for (std::size_t j = 0; j < p.columns; ++j) {
    end(0, j, ".north");
    end(p.rows - 1, j, ".south");
    for (std::size_t i = 0; i + 1 < p.rows; ++i) {
      builder.connect(name(i, j) + ".south", name(i + 1, j) + ".north");
    }
  }
  return builder.build();
}

/// Parts 0, 1, … that begin with (q, v).
inline std::vector<double> positions_and_velocities(const Stepper& engine, std::size_t parts) {
  std::vector<double> state(2 * parts);
  for (std::size_t i = 0; i < parts; ++i) {
    const auto part = engine.state(static_cast<int>(i));
    state[i] = part[0];
    state[parts + i] = part[1];
  }
  return state;
}

inline Problem grid_problem() {
  const GridParameters p;
  return {.name = "grid",
          .end_s = 2.0,
          .ode = [p](Layout layout) { return grid_ode(p, layout); },
          .system = duffing_grid_system(p),
          .read = [n = p.rows * p.columns](
                      const Stepper& engine) { return positions_and_velocities(engine, n); },
          .narrow_band = false,
          .linear = false,
          .goals = {{4, 3.0}, {6, 3.0}, {8, 3.0}}};
}

inline Problem pair_problem() {
  const PairParameters p;
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = p.duffing_mass_kg,
                                  .stiffness_N_per_m = p.stiffness_N_per_m,
                                  .cubic_stiffness_N_per_m3 = p.cubic_stiffness_N_per_m3,
                                  .coupling_stiffness_N_per_m = p.coupling_stiffness_N_per_m,
                                  .coupling_damping_Ns_per_m = p.coupling_damping_Ns_per_m}),
              {.initial_state = {p.initial_m, 0, -p.initial_m}});
  builder.add("B", linear_oscillator({.mass_kg = p.linear_mass_kg,
                                      .stiffness_N_per_m = p.linear_stiffness_N_per_m}));
  builder.connect("A.coupling", "B.coupling");
  return {.name = "pair",
          .end_s = 10.0,
          .ode = [p](Layout layout) { return pair_ode(p, layout); },
          .system = builder.build(),
          .read = [](const Stepper& engine) { return positions_and_velocities(engine, 2); },
          .fewest_steps = 128,
          .reference_steps = 2000,
          .exact = [p] { return pair_in_more_digits(p, 10.0, 4000); },
          .rounding = 1e-10,
          .linear = false,
          .goals = {{4, 3.0}, {6, 3.0}, {8, 3.0}}};
}

/// What a section of the line has at its ends.
struct LineEnds {
  bool driven = false;  ///< by the input "drive", in place of the port "left"
  bool loaded = false;  ///< by the resistor, in place of the port "right"
  auto operator<=>(const LineEnds&) const = default;
};

/// `cells` LC cells: H = Σ ½ L i² + ½ C u², state (i₁, u₁, i₂, u₂, …).
inline std::shared_ptr<const Subsystem> line_section(const LineParameters& p, int cells,
                                                     LineEnds ends) {
  Signature signature{"line_section", {}, {}, {}};
  const int ports = (ends.driven ? 0 : 1) + (ends.loaded ? 0 : 1);
  Structure s = Structure::zero(2 * cells, ports + (ends.driven ? 1 : 0));
  SparseMatrix Q(2 * cells, 2 * cells);
  const double L = p.inductance_H, C = p.capacitance_F;
  for (int k = 0; k < cells; ++k) {
    const int i = 2 * k, u = i + 1;
    signature.states.push_back({"i" + std::to_string(k + 1), "A"});
    signature.states.push_back({"u" + std::to_string(k + 1), "V"});
    Q.insert(i, i) = L;
    Q.insert(u, u) = C;
    s.R.insert(i, i) = p.resistance_ohm / (L * L);
    const double load = ends.loaded && k + 1 == cells ? p.load_S : 0.0;
    s.R.insert(u, u) = (p.conductance_S + load) / (C * C);
    s.J.insert(i, u) = -1.0 / (L * C);
    s.J.insert(u, i) = 1.0 / (L * C);
    if (k == 0) continue;
    s.J.insert(i, i - 1) = 1.0 / (L * C);
    s.J.insert(i - 1, i) = -1.0 / (L * C);
  }
  int column = 0;
  if (!ends.driven) {
    signature.ports.push_back({"left", Causality::effort_in, Domain::electrical, 1});
    s.G.insert(0, column++) = 1.0 / L;
  }
  if (!ends.loaded) {
    signature.ports.push_back({"right", Causality::flow_in, Domain::electrical, 1});
    s.G.insert(2 * cells - 1, column++) = 1.0 / C;
  }
  if (ends.driven) {
    signature.inputs.push_back({"drive", "V"});
    s.G.insert(0, column++) = 1.0 / L;
  }
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q);
}

inline System line_system(const LineParameters& p, int cells) {
  const std::size_t sections = p.cells / static_cast<std::size_t>(cells);
  std::map<LineEnds, std::shared_ptr<const Subsystem>> kinds;
  SystemBuilder builder;
  const auto name = [](std::size_t section) { return "s" + std::to_string(section); };
  for (std::size_t b = 0; b < sections; ++b) {
    const LineEnds ends{.driven = b == 0, .loaded = b + 1 == sections};
    auto& section = kinds[ends];
    if (section == nullptr) section = line_section(p, cells, ends);
    SystemBuilder::PartOptions options;
    for (std::size_t k = 0; k < static_cast<std::size_t>(cells); ++k) {
      options.initial_state.push_back(0.0);
      options.initial_state.push_back(p.initial_V(b * static_cast<std::size_t>(cells) + k));
    }
    if (ends.driven) {
      options.inputs["drive"] = Signal::sine_product(p.drive_V, {{.frequency_Hz = p.drive_Hz}});
    }
    builder.add(name(b), section, options);
    if (b > 0) builder.connect(name(b - 1) + ".right", name(b) + ".left");
  }
  return builder.build();
}

inline Problem line_problem() {
  constexpr int kCells = 4;  // of a section
  const LineParameters p;
  return {.name = "circuit",
          .end_s = 0.05,
          .ode = [p](Layout layout) { return line_ode(p, layout); },
          .system = line_system(p, kCells),
          .read =
              [n = p.cells](const Stepper& engine) {
                std::vector<double> state(2 * n);
                for (std::size_t i = 0; i < n; ++i) {
                  const auto part = engine.state(static_cast<int>(i / kCells));
                  state[i] = part[2 * (i % kCells)];
                  state[n + i] = part[2 * (i % kCells) + 1];
                }
                return state;
              },
          .reference_steps = 200,
          .goals = {{4, 3.0}, {6, 3.0}, {8, 3.0}}};
}

inline std::vector<std::function<Problem()>> problems() {
  constexpr std::size_t kBlocks = 1024;
  return {[] { return chain_problem("chain_equal", plucked(equal_chain(kBlocks))); },
          [] { return chain_problem("chain_varied", plucked(varied_chain(kBlocks))); },
          grid_problem, pair_problem, line_problem};
}

}  // namespace portwave::bench
