#pragma once

// The systems of peers/stiff_ode.hpp, cut into parts.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "links.hpp"
#include "peers/stiff_ode.hpp"
#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::bench {

/// `cells` cells of the rod: H = Σ ½ C T², f = heat flow [W]. The resistance to the next section is in this one.
inline std::shared_ptr<const Subsystem> rod_section(const RodParameters& p, std::size_t cells,
                                                    bool first, bool last) {
  const int n = static_cast<int>(cells);
  const double C = p.capacity_J_per_K, g = 1.0 / p.resistance_K_per_W;
  Signature signature{"rod_section", {}, {}, {}};
  Structure s = Structure::zero(n, 2 - (last ? 1 : 0));
  SparseMatrix Q(n, n);
  for (int i = 0; i < n; ++i) {
    signature.states.push_back({"T" + std::to_string(i + 1), "K"});
    Q.insert(i, i) = C;
    const bool outer = last && i + 1 == n;
    s.R.insert(i, i) = ((i > 0 ? g : 0.0) + (outer ? 0.0 : g)) / (C * C);
    if (i == 0) continue;
    s.R.insert(i, i - 1) = -g / (C * C);
    s.R.insert(i - 1, i) = -g / (C * C);
  }
  int column = 0;
  const int heat = first ? 1 - (last ? 1 : 0) : column++;
  if (!first) signature.ports.push_back({"left", Causality::flow_in, Domain::generic, 1});
  if (!last) {
    const int right = first ? 0 : column;
    signature.ports.push_back({"right", Causality::effort_in, Domain::generic, 1});
    s.P.insert(n - 1, right) = -g / C;
    s.S.insert(right, right) = g;
  }
  if (first) signature.inputs.push_back({"heat", "W"});
  s.G.insert(0, heat) = 1.0 / C;
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q);
}

/// The rod in sections of so many cells, which divide it.
inline System rod_system(const RodParameters& p, std::size_t cells) {
  const std::size_t sections = p.cells / cells;
  const auto inner = rod_section(p, cells, false, false);
  SystemBuilder builder;
  const auto name = [](std::size_t section) { return "s" + std::to_string(section); };
  for (std::size_t b = 0; b < sections; ++b) {
    const bool first = b == 0, last = b + 1 == sections;
    SystemBuilder::PartOptions options;
    for (std::size_t k = 0; k < cells; ++k) {
      options.initial_state.push_back(p.initial_K(b * cells + k));
    }
    if (first) {
      options.inputs["heat"] =
          Signal::sine_product(p.heat_W, {{.frequency_Hz = p.heat_Hz}}, p.heat_W);
    }
    builder.add(name(b), first || last ? rod_section(p, cells, first, last) : inner, options);
    if (b > 0) builder.connect(name(b - 1) + ".right", name(b) + ".left");
  }
  return builder.build();
}

/// The network as one part. States as those of the Ode: u of the nodes, i of the coils.
inline System mesh_as_one_part(const MeshParameters& p) {
  const int nodes = static_cast<int>(p.nodes()), coils = static_cast<int>(p.coils());
  const int n = nodes + coils, columns = static_cast<int>(p.columns);
  Signature signature{"mesh", {}, {}, {{"drive", "V"}}};
  std::vector<Eigen::Triplet<double>> J, R, Q;
  SystemBuilder::PartOptions options;
  const auto place = [](std::size_t i) { return static_cast<int>(i); };
  for (std::size_t i = 0; i < p.nodes(); ++i) {
    signature.states.push_back({"u" + std::to_string(i), "V"});
    options.initial_state.push_back(p.initial_V(i));
    Q.emplace_back(place(i), place(i), p.capacitance_F(i));
    const double leak_S = p.leak_S + (i == 0 ? 1.0 / p.source_ohm : 0.0);
    R.emplace_back(place(i), place(i), leak_S / (p.capacitance_F(i) * p.capacitance_F(i)));
  }
  for (int a = 0; a + columns < nodes; ++a) {
    const int b = a + columns;
    const double g = 1.0 / p.south_ohm(static_cast<std::size_t>(a));
    for (const int row : {a, b}) {
      for (const int column : {a, b}) {
        R.emplace_back(
            row, column,
            (row == column ? g : -g) / (p.capacitance_F(static_cast<std::size_t>(row)) *
                                        p.capacitance_F(static_cast<std::size_t>(column))));
      }
    }
  }
  for (std::size_t coil = 0; coil < p.coils(); ++coil) {
    const double L = p.inductance_H(coil);
    const std::size_t west = coil / (p.columns - 1) * p.columns + coil % (p.columns - 1);
    const int i = nodes + place(coil);
    signature.states.push_back({"i" + std::to_string(coil), "A"});
    options.initial_state.push_back(0.0);
    Q.emplace_back(i, i, L);
    R.emplace_back(i, i, p.coil_ohm(coil) / (L * L));
    for (const auto& [node, sign] : {std::pair{west, 1.0}, std::pair{west + 1, -1.0}}) {
      J.emplace_back(i, place(node), sign / (L * p.capacitance_F(node)));
      J.emplace_back(place(node), i, -sign / (L * p.capacitance_F(node)));
    }
  }
  Structure s = Structure::zero(n, 1);
  SparseMatrix storage(n, n);
  s.J.setFromTriplets(J.begin(), J.end());
  s.R.setFromTriplets(R.begin(), R.end());
  storage.setFromTriplets(Q.begin(), Q.end());
  // The source stands behind its resistor: the node feels it as a current.
  s.G.insert(0, 0) = 1.0 / (p.source_ohm * p.capacitance_F(0));
  options.inputs["drive"] = Signal::sine_product(p.drive_V, {{.frequency_Hz = p.drive_Hz}});
  SystemBuilder builder;
  builder.add("mesh",
              std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), storage),
              options);
  return builder.build();
}

/// The network as a netlist: a part for every capacitor, resistor and coil. The parts of the states are the nodes,
/// then the coils.
inline System mesh_as_netlist(const MeshParameters& p) {
  SystemBuilder builder;
  std::vector<std::vector<std::string>> at(p.nodes());
  const auto add = [&](const std::string& name, std::shared_ptr<const Subsystem> part,
                       std::size_t a, std::size_t b) {
    builder.add(name, std::move(part));
    at[a].push_back(name + ".a");
    at[b].push_back(name + ".b");
  };
  for (std::size_t i = 0; i < p.nodes(); ++i) {
    const std::string name = "c" + std::to_string(i);
    builder.add(name,
                parts::capacitor({.capacitance_F = p.capacitance_F(i), .leakage_S = p.leak_S}),
                {.initial_state = {p.initial_V(i)}});
    at[i].push_back(name + ".terminals");
  }
  for (std::size_t coil = 0; coil < p.coils(); ++coil) {
    const std::size_t west = coil / (p.columns - 1) * p.columns + coil % (p.columns - 1);
    add("l" + std::to_string(coil), coil_link(p.inductance_H(coil), p.coil_ohm(coil)), west,
        west + 1);
  }
  for (std::size_t i = 0; i + p.columns < p.nodes(); ++i) {
    add("r" + std::to_string(i), link(p.south_ohm(i)), i, i + p.columns);
  }
  Structure s =
      Structure::zero(0, 2);  // a source behind a resistor: f = (e − V)/R, the source's current −f
  s.S.insert(0, 0) = 1.0 / p.source_ohm;
  s.S.insert(1, 1) = 1.0 / p.source_ohm;
  s.S.insert(0, 1) = -1.0 / p.source_ohm;
  s.S.insert(1, 0) = -1.0 / p.source_ohm;
  builder.add(
      "source",
      std::make_shared<LinearPortHamiltonian>(
          Signature{"source",
                    {},
                    {{"port", Causality::effort_in, Domain::electrical, 1}},
                    {{"drive", "V"}}},
          std::move(s), SparseMatrix(0, 0)),
      {.inputs = {{"drive", Signal::sine_product(p.drive_V, {{.frequency_Hz = p.drive_Hz}})}}});
  at[0].push_back("source.port");
  for (const auto& ports : at) builder.join(joint::CommonEffort{}, ports);
  return builder.build();
}

}  // namespace portwave::bench
