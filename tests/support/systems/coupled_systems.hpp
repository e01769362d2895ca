#pragma once

// Systems on which impedances matter: rigid hubs, grids, stiff–soft pairs, drives, random trees.

#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::testing {

/// Dense matrices of a linear part, H = ½xᵀQx.
struct LinearMatrices {
  explicit LinearMatrices(int states, int ports)
      : J(Eigen::MatrixXd::Zero(states, states)),
        R(J),
        Q(J),
        G(Eigen::MatrixXd::Zero(states, ports)),
        P(G),
        S(Eigen::MatrixXd::Zero(ports, ports)) {}
  void flow(int i, int j, double value) {
    J(i, j) += value;
    J(j, i) -= value;
  }
  Eigen::MatrixXd J, R, Q, G, P, S;
};

inline std::shared_ptr<const Subsystem> linear_part(const LinearMatrices& m,
                                                    const std::vector<Port>& ports,
                                                    std::vector<double> start = {}) {
  Signature signature;
  signature.type = "linear";
  for (Eigen::Index i = 0; i < m.J.rows(); ++i) {
    signature.states.push_back({"x" + std::to_string(i), "1"});
  }
  signature.ports = ports;
  Structure s = Structure::zero(static_cast<int>(m.J.rows()), static_cast<int>(m.G.cols()));
  s.J = m.J.sparseView();
  s.R = m.R.sparseView();
  s.G = m.G.sparseView();
  s.P = m.P.sparseView();
  s.S = m.S.sparseView();
  return std::make_shared<LinearPortHamiltonian>(
      std::move(signature), std::move(s), SparseMatrix(m.Q.sparseView()),
      LinearPortHamiltonian::Options{.default_state = std::move(start)});
}

inline Port effort_port(std::string name, Domain domain = Domain::generic) {
  return {std::move(name), Causality::effort_in, domain, 1};
}
inline Port flow_port(std::string name, Domain domain = Domain::generic) {
  return {std::move(name), Causality::flow_in, domain, 1};
}

/// A mass on a spring to ground that carries a spring whose free end is port "up" (flow-in, unless
/// k_up = 0) and rigid ports "p0", "p1", … (effort-in, f = −v). State (q, v [, δ]).
struct SprungMass {
  double mass = 1.0, stiffness = 1.0, damping = 0.0;
  double up_stiffness = 0.0, up_damping = 0.0;
  int rigid_ports = 0;
  double velocity = 0.0;  ///< at the start
};

inline std::shared_ptr<const Subsystem> sprung_mass(const SprungMass& p) {
  const bool up = p.up_stiffness > 0.0;
  const int states = up ? 3 : 2, offset = up ? 1 : 0;
  LinearMatrices m(states, p.rigid_ports + offset);
  m.Q(0, 0) = p.stiffness;
  m.Q(1, 1) = p.mass;
  m.flow(0, 1, 1.0 / p.mass);
  m.R(1, 1) = p.damping / (p.mass * p.mass);
  std::vector<Port> ports;
  if (up) {  // δ' = u − v, e = kδ + c(u − v): as in duffing_oscillator
    m.Q(2, 2) = p.up_stiffness;
    m.flow(1, 2, 1.0 / p.mass);
    m.R(1, 1) += p.up_damping / (p.mass * p.mass);
    m.G(2, 0) = 1.0;
    m.P(1, 0) = -p.up_damping / p.mass;
    m.S(0, 0) = p.up_damping;
    ports.push_back(flow_port("up"));
  }
  for (int j = 0; j < p.rigid_ports; ++j) {
    m.G(1, j + offset) = -1.0 / p.mass;
    ports.push_back(effort_port("p" + std::to_string(j)));
  }
  std::vector<double> start(static_cast<std::size_t>(states), 0.0);
  start[1] = p.velocity;
  return linear_part(m, ports, start);
}

/// Limbs on one rigid hub; limb masses from 1/spread to spread.
inline System star_on_hub(int limbs, double spread, double hub_mass = 5.0) {
  SystemBuilder builder;
  builder.add(
      "hub",
      sprung_mass({.mass = hub_mass, .stiffness = 10.0, .rigid_ports = limbs, .velocity = 1.0}));
  for (int i = 0; i < limbs; ++i) {
    const double exponent = limbs > 1 ? 2.0 * ((i * 37) % limbs) / (limbs - 1) - 1.0 : 0.0;
    const std::string name = "limb" + std::to_string(i);
    builder.add(name, sprung_mass({.mass = std::pow(spread, exponent),
                                   .stiffness = 20.0 + i,
                                   .damping = 0.01,
                                   .up_stiffness = 50.0 + i,
                                   .up_damping = 0.01,
                                   .velocity = i % 3 - 1.0}));
    builder.connect(name + ".up", "hub.p" + std::to_string(i));
  }
  return builder.build();
}

/// Equal blocks of `chain_of_blocks` in a ring.
inline System ring_of_blocks(int blocks, int masses) {
  const std::shared_ptr<const Subsystem> block =
      mass_spring_damper_chain({.masses = masses,
                                .mass_kg = 0.3,
                                .stiffness_N_per_m = 50,
                                .damping_Ns_per_m = 0.1,
                                .coupling_stiffness_N_per_m = 50});
  const auto name = [](int i) { return "block" + std::to_string(i); };
  SystemBuilder builder;
  for (int i = 0; i < blocks; ++i) builder.add(name(i), block);
  for (int i = 0; i < blocks; ++i) {
    builder.connect(name(i) + ".right", name((i + 1) % blocks) + ".left");
  }
  return builder.build();
}

/// A grid of Duffing masses with free edges, every tenth one moving.
inline System duffing_grid(int rows, int columns, double amplitude = 0.4) {
  const std::shared_ptr<const Subsystem> node = duffing_node({.mass_kg = 8.0,
                                                              .stiffness_N_per_m = 100.0,
                                                              .cubic_stiffness_N_per_m3 = 8000.0,
                                                              .coupling_stiffness_N_per_m = 120.0,
                                                              .coupling_damping_Ns_per_m = 0.05});
  const auto name = [](int i, int j) { return "n" + std::to_string(i) + "_" + std::to_string(j); };
  SystemBuilder builder;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int number = i * columns + j;
      builder.add(name(i, j), node,
                  {.initial_state = {amplitude * std::sin(0.7 * number),
                                     number % 10 == 0 ? 1.0 : 0.0, 0.0, 0.0}});
    }
  }
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      if (j + 1 < columns) {
        builder.connect(name(i, j) + ".east", name(i, j + 1) + ".west");
      } else {
        builder.join(joint::Free{}, {name(i, j) + ".east"});
      }
      if (i + 1 < rows) {
        builder.connect(name(i, j) + ".south", name(i + 1, j) + ".north");
      } else {
        builder.join(joint::Free{}, {name(i, j) + ".south"});
      }
      if (j == 0) builder.join(joint::Free{}, {name(i, j) + ".west"});
      if (i == 0) builder.join(joint::Free{}, {name(i, j) + ".north"});
    }
  }
  return builder.build();
}

/// A soft part on a stiff one: k, m against stiffness_ratio·k, mass_ratio·m.
inline System stiff_soft_pair(double stiffness_ratio, double mass_ratio, bool duffing) {
  SystemBuilder builder;
  if (duffing) {
    builder.add("soft",
                duffing_oscillator({.mass_kg = 1.0,
                                    .stiffness_N_per_m = 1.0,
                                    .cubic_stiffness_N_per_m3 = 80.0,
                                    .coupling_stiffness_N_per_m = 2.0,
                                    .coupling_damping_Ns_per_m = 0.01}),
                {.initial_state = {0.4, 0.0, -0.4}});
  } else {
    builder.add("soft", sprung_mass({.mass = 1.0,
                                     .stiffness = 1.0,
                                     .up_stiffness = 2.0,
                                     .up_damping = 0.01,
                                     .velocity = 1.0}));
  }
  builder.add(
      "stiff",
      sprung_mass(
          {.mass = mass_ratio, .stiffness = stiffness_ratio, .rigid_ports = 1, .velocity = 1e-3}));
  builder.connect(duffing ? "soft.coupling" : "soft.up", "stiff.p0");
  return builder.build();
}

/// An inductance or inertia with loss and ports that share its flow: p' = −(r/m)p + Σ e, f = p/m.
inline std::shared_ptr<const Subsystem> inertance(double m, double r,
                                                  const std::vector<Port>& ports,
                                                  double start = 0.0) {
  LinearMatrices matrices(1, static_cast<int>(ports.size()));
  matrices.Q(0, 0) = 1.0 / m;
  matrices.R(0, 0) = r;
  matrices.G.setOnes();
  return linear_part(matrices, ports, {start});
}

/// A spring and damper between two ends: δ' = f₁ + f₂, e₁ = e₂ = kδ + c(f₁ + f₂).
inline std::shared_ptr<const Subsystem> shaft(double k, double c, const std::vector<Port>& ports) {
  LinearMatrices matrices(1, 2);
  matrices.Q(0, 0) = k;
  matrices.G.setOnes();
  matrices.S.setConstant(c);
  return linear_part(matrices, ports);
}

/// DC motors, each RL – gyrator – rotor – shaft – transformer – load, on one 0-junction: on a
/// common bus of their terminals with a capacitor, or with their loads joined.
inline System dc_motors(int count, bool on_bus) {
  const Domain el = Domain::electrical, rot = Domain::rotation;
  SystemBuilder builder;
  std::vector<std::string> common;
  for (int i = 0; i < count; ++i) {
    const std::string id = std::to_string(i);
    const double scale = std::pow(10.0, (i % 5 - 2) * 0.5);
    std::vector<Port> winding = {effort_port("machine", el)}, load = {effort_port("gear", rot)};
    if (on_bus) winding.push_back(effort_port("bus", el));
    if (!on_bus) load.push_back(effort_port("common", rot));
    builder.add("winding" + id, inertance(1e-3 * scale, 0.5, winding, 1e-3 * (i % 3)));
    builder.add("rotor" + id, inertance(1e-4 * scale, 1e-5,
                                        {effort_port("machine", rot), effort_port("shaft", rot)}));
    builder.add("shaft" + id, shaft(50.0, 1e-3, {flow_port("rotor", rot), flow_port("gear", rot)}));
    builder.add("load" + id, inertance(0.1 / scale, 1e-2, load, 0.1 * (i % 4)));
    builder.join(joint::Gyrator{0.05}, {"winding" + id + ".machine", "rotor" + id + ".machine"});
    builder.connect("rotor" + id + ".shaft", "shaft" + id + ".rotor");
    builder.join(joint::Transformer{0.1}, {"shaft" + id + ".gear", "load" + id + ".gear"});
    common.push_back(on_bus ? "winding" + id + ".bus" : "load" + id + ".common");
  }
  if (on_bus) {
    LinearMatrices capacitor(1, 1);
    capacitor.Q(0, 0) = 1.0 / 1e-2;
    capacitor.R(0, 0) = 1e-3;
    capacitor.G(0, 0) = 1.0;
    builder.add("bus", linear_part(capacitor, {flow_port("bus", el)}, {0.24}));
    common.push_back("bus.bus");
  }
  builder.join(joint::CommonEffort{}, common);
  return builder.build();
}

/// Random tree of sprung masses, each child's spring on the mass of its parent; masses and
/// stiffnesses from 1/spread to spread.
inline System random_mass_tree(int parts, double spread, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  std::vector<int> parent(static_cast<std::size_t>(parts), -1);
  std::vector<int> children(static_cast<std::size_t>(parts), 0);
  for (std::size_t i = 1; i < parent.size(); ++i) {
    parent[i] = static_cast<int>(generator() % i);
    ++children[static_cast<std::size_t>(parent[i])];
  }
  SystemBuilder builder;
  for (std::size_t i = 0; i < parent.size(); ++i) {
    const double mass = std::pow(spread, unit(generator));
    const double stiffness = 10.0 * std::pow(spread, unit(generator));
    const double up = 30.0 * std::pow(spread, unit(generator));
    builder.add("part" + std::to_string(i), sprung_mass({.mass = mass,
                                                         .stiffness = stiffness,
                                                         .damping = 0.01,
                                                         .up_stiffness = i == 0 ? 0.0 : up,
                                                         .up_damping = 0.01,
                                                         .rigid_ports = children[i],
                                                         .velocity = unit(generator)}));
  }
  std::vector<int> used(parent.size(), 0);
  for (std::size_t i = 1; i < parent.size(); ++i) {
    const auto p = static_cast<std::size_t>(parent[i]);
    builder.connect("part" + std::to_string(i) + ".up",
                    "part" + std::to_string(p) + ".p" + std::to_string(used[p]++));
  }
  return builder.build();
}

/// Random tree of parts with random matrices: four states, every port acting on all of them, either
/// causality at random.
inline System random_dense_tree(int parts, double spread, std::uint64_t seed) {
  std::mt19937_64 generator(seed);
  std::uniform_real_distribution<double> unit(-1.0, 1.0);
  const auto random_matrix = [&](Eigen::Index rows, Eigen::Index columns) {
    Eigen::MatrixXd m(rows, columns);
    for (Eigen::Index j = 0; j < columns; ++j) {
      for (Eigen::Index i = 0; i < rows; ++i) m(i, j) = unit(generator);
    }
    return m;
  };
  std::vector<std::pair<int, int>> edges;
  std::vector<int> degree(static_cast<std::size_t>(parts), 0);
  for (int i = 1; i < parts; ++i) {
    const int parent = static_cast<int>(generator() % static_cast<std::uint64_t>(i));
    edges.emplace_back(parent, i);
    ++degree[static_cast<std::size_t>(parent)];
    ++degree[static_cast<std::size_t>(i)];
  }
  constexpr int kStates = 4;
  SystemBuilder builder;
  for (int i = 0; i < parts; ++i) {
    const int ports = degree[static_cast<std::size_t>(i)];
    LinearMatrices m(kStates, ports);
    const Eigen::MatrixXd A = random_matrix(kStates, kStates), B = random_matrix(kStates, kStates);
    m.J = A - A.transpose();
    m.R = 0.01 * Eigen::MatrixXd::Identity(kStates, kStates);
    m.Q = std::pow(spread, unit(generator)) *
          (B * B.transpose() + 0.1 * Eigen::MatrixXd::Identity(kStates, kStates));
    m.G = random_matrix(kStates, ports);
    m.R = 0.5 * (m.R + m.R.transpose()).eval();
    m.Q = 0.5 * (m.Q + m.Q.transpose()).eval();
    std::vector<Port> own;
    for (int j = 0; j < ports; ++j) {
      own.push_back({"p" + std::to_string(j),
                     generator() % 2 == 0 ? Causality::effort_in : Causality::flow_in,
                     Domain::generic, 1});
    }
    std::vector<double> start;
    for (int k = 0; k < kStates; ++k) start.push_back(unit(generator));
    builder.add("part" + std::to_string(i), linear_part(m, own, start));
  }
  std::vector<int> used(degree.size(), 0);
  const auto next_port = [&](int part) {
    return "part" + std::to_string(part) + ".p" +
           std::to_string(used[static_cast<std::size_t>(part)]++);
  };
  for (const auto& [a, b] : edges) {
    const std::string first = next_port(a), second = next_port(b);
    builder.connect(first, second);
  }
  return builder.build();
}

}  // namespace portwave::testing
