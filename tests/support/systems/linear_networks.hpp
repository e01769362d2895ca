#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <portwave/coupling/system/system.hpp>
#include <portwave/subsystems/descriptor/descriptor_part.hpp>
#include <portwave/subsystems/linear/linear_part.hpp>

namespace portwave::testing {

using Triplet = Eigen::Triplet<double>;

inline SparseMatrix sparse(int rows, int columns, const std::vector<Triplet>& entries) {
  SparseMatrix m(rows, columns);
  m.setFromTriplets(entries.begin(), entries.end());
  return m;
}

/// One end of the pairs below: `chain` masses in the order (p, q) from the coupling on, a wall at
/// the far end, and on request the elongation x_c of the coupling spring as the last state.
struct PairChain {
  int masses = 25;
  double stiffness = 50.0;  ///< K
  double mass = 0.3;        ///< m
  double damping = 0.1;     ///< r
};

/// Q of section 8: 1/m on p; on q K at the coupling end, 2K elsewhere, also at the wall.
inline std::shared_ptr<const Subsystem> pair_chain(const PairChain& c, bool has_spring,
                                                   double K_co) {
  const int n = 2 * c.masses + (has_spring ? 1 : 0);
  std::vector<Triplet> J, R, Q, G;
  std::vector<StateVariable> states;
  for (int i = 0; i < c.masses; ++i) {
    const int p = 2 * i, q = p + 1;
    states.push_back({"p" + std::to_string(i + 1), "kg m/s"});
    states.push_back({"q" + std::to_string(i + 1), "m"});
    J.emplace_back(p, q, -1.0);
    J.emplace_back(q, p, 1.0);
    R.emplace_back(p, p, c.damping);
    Q.emplace_back(p, p, 1.0 / c.mass);
    Q.emplace_back(q, q, i == 0 ? c.stiffness : 2.0 * c.stiffness);
    if (i + 1 < c.masses) {
      Q.emplace_back(q, q + 2, -c.stiffness);
      Q.emplace_back(q + 2, q, -c.stiffness);
    }
  }
  Port port{"end", Causality::effort_in, Domain::translation, 1};
  if (has_spring) {
    const int x = n - 1;
    states.push_back({"x_c", "m"});
    J.emplace_back(0, x, -1.0);
    J.emplace_back(x, 0, 1.0);
    Q.emplace_back(x, x, K_co);
    G.emplace_back(x, 0, 1.0);
    port.causality = Causality::flow_in;
  } else {
    G.emplace_back(0, 0, 1.0);
  }
  Structure s = Structure::zero(n, 1);
  s.J = sparse(n, n, J);
  s.R = sparse(n, n, R);
  s.G = sparse(n, 1, G);
  return std::make_shared<LinearPortHamiltonian>(Signature{"pair_chain", states, {port}, {}}, s,
                                                 sparse(n, n, Q));
}

/// The coupled chains of the splitting and the dynamic iteration papers: everything at rest but
/// q3(0) = 0.1 of the first chain.
inline System chain_pair(const PairChain& first, const PairChain& second, double K_co) {
  SystemBuilder builder;
  std::vector<double> start(static_cast<std::size_t>(2 * first.masses + 1), 0.0);
  start[5] = 0.1;
  builder.add("chain_1", pair_chain(first, true, K_co), {.initial_state = start});
  builder.add("chain_2", pair_chain(second, false, K_co));
  builder.connect("chain_1.end", "chain_2.end");
  return builder.build();
}
inline System single_rate_chains() { return chain_pair({}, {}, 50.0); }
inline System multirate_chains() {
  return chain_pair({5, 100.0, 0.1, 0.1}, {45, 10.0, 0.4, 0.1}, 10.0);
}

/// Two masses between walls, three springs and two dampers.
inline System two_masses() {
  SystemBuilder builder;
  builder.add("first", pair_chain({1, 2.0, 2.0, 0.5}, true, 4.0));
  builder.add("second", pair_chain({1, 2.0, 2.0, 0.75}, false, 4.0), {.initial_state = {0.1, 0.0}});
  builder.connect("first.end", "second.end");
  return builder.build();
}

/// x' = (J − R)x with J = ν[0 1; −1 0] between two parts of one state, R = τ I.
inline System rotation(double nu, double tau, double x0) {
  SystemBuilder builder;
  const auto part = [&](Causality causality) {
    Structure s = Structure::zero(1, 1);
    s.R = sparse(1, 1, {{0, 0, tau}});
    s.G = sparse(1, 1, {{0, 0, 1.0}});
    return std::make_shared<LinearPortHamiltonian>(
        Signature{"rotation", {{"x", ""}}, {{"port", causality, Domain::generic, 1}}, {}}, s,
        sparse(1, 1, {{0, 0, 1.0}}));
  };
  builder.add("a", part(Causality::effort_in), {.initial_state = {x0}});
  builder.add("b", part(Causality::effort_in), {.initial_state = {x0}});
  Eigen::MatrixXd gain(2, 2);
  gain << 0.0, -nu, nu, 0.0;  // u = −gain y
  builder.join(joint::SkewGain{gain}, {"a.port", "b.port"});
  return builder.build();
}

/// The circuit of the dynamic iteration paper: (u1, u2, u3, j1 | u4, u5), a current into u1, the
/// inductor between the halves.
inline System circuit() {
  constexpr double G1 = 2.0, G2 = 2.0, G3 = 2.0, G4 = 2.0, G5 = 0.2, C = 5e-4, L = 20.0;
  const auto identity = [](int n) {
    SparseMatrix m(n, n);
    m.setIdentity();
    return m;
  };
  SystemBuilder builder;
  DescriptorForm first;
  first.E = sparse(4, 4, {{1, 1, C}, {3, 3, L}});
  first.J = sparse(4, 4, {{2, 3, 1.0}, {3, 2, -1.0}});
  first.R = sparse(4, 4,
                   {{0, 0, G1},
                    {0, 1, -G1},
                    {1, 0, -G1},
                    {1, 1, G1 + G2},
                    {1, 2, -G2},
                    {2, 1, -G2},
                    {2, 2, G2 + G3}});
  first.Q = identity(4);
  first.B = sparse(4, 2, {{3, 0, 1.0}, {0, 1, 1.0}});
  DescriptorForm second;
  second.E = sparse(2, 2, {{1, 1, C}});
  second.J = SparseMatrix(2, 2);
  second.R = sparse(2, 2, {{0, 0, G4}, {0, 1, -G4}, {1, 0, -G4}, {1, 1, G4 + G5}});
  second.Q = identity(2);
  second.B = sparse(2, 1, {{0, 0, 1.0}});
  const auto states = [](std::vector<std::string> names) {
    std::vector<StateVariable> out;
    for (std::string& name : names) out.push_back({std::move(name), ""});
    return out;
  };
  builder.add("left",
              std::make_shared<DescriptorPortHamiltonian>(
                  Signature{"circuit",
                            states({"u1", "u2", "u3", "j1"}),
                            {{"inductor", Causality::effort_in, Domain::electrical, 1}},
                            {{"current", "A"}}},
                  first),
              {.inputs = {{"current", Signal::sine_product(1.0, {{50.0, 0.0}, {500.0, 0.0}})}}});
  builder.add("right", std::make_shared<DescriptorPortHamiltonian>(
                           Signature{"circuit",
                                     states({"u4", "u5"}),
                                     {{"node", Causality::flow_in, Domain::electrical, 1}},
                                     {}},
                           second));
  // J_o(4,5) = +1: the voltage u4 drives j1 up.
  builder.connect("left.inductor", "right.node");
  return builder.build();
}

}  // namespace portwave::testing
