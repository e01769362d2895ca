#pragma once

// Descriptor parts of index 0, 1 and 2.

#include <cmath>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Core>

#include "portwave/subsystems/descriptor/descriptor_part.hpp"

namespace portwave::testing {

/// Dense matrices of a descriptor part; B counts ports, then inputs.
struct DescriptorMatrices {
  DescriptorMatrices(int states, int inputs)
      : E(Eigen::MatrixXd::Zero(states, states)),
        J(E),
        R(E),
        Q(Eigen::MatrixXd::Identity(states, states)),
        B(Eigen::MatrixXd::Zero(states, inputs)) {}

  void flow(int i, int j, double value) {
    J(i, j) += value;
    J(j, i) -= value;
  }
  /// Between states i and j, or to ground (j < 0).
  static void branch(Eigen::MatrixXd& M, int i, int j, double value) {
    M(i, i) += value;
    if (j < 0) return;
    M(j, j) += value;
    M(i, j) -= value;
    M(j, i) -= value;
  }
  void resistor(int i, int j, double ohm) { branch(R, i, j, 1.0 / ohm); }
  void capacitor(int i, int j, double farad) { branch(E, i, j, farad); }

  DescriptorForm form() const {
    return {E.sparseView(), J.sparseView(), R.sparseView(), Q.sparseView(), B.sparseView()};
  }

  Eigen::MatrixXd E, J, R, Q, B;
};

inline Signature descriptor_signature(std::initializer_list<const char*> states,
                                      std::vector<Port> ports,
                                      std::initializer_list<const char*> inputs = {}) {
  Signature signature;
  signature.type = "descriptor";
  for (const char* name : states) signature.states.push_back({name, "1"});
  signature.ports = std::move(ports);
  for (const char* name : inputs) signature.inputs.push_back({name, "1"});
  return signature;
}

inline Port port(std::string name, Causality causality) {
  return {std::move(name), causality, Domain::generic, 1};
}

/// The circuit of Bartel, Günther, Jacob & Reis, Numer. Math. 155 (2023), cut between the inductor
/// and u4: u1, u2, u3, j1 with the current source at u1, and u4, u5. The left one takes the voltage
/// u4 and gives −j1; the right one takes the current j1 and gives u4.
inline std::unique_ptr<DescriptorPortHamiltonian> circuit_left(
    StepMapStorage storage = StepMapStorage::automatic) {
  DescriptorMatrices m(4, 2);
  m.capacitor(1, -1, 5e-4);
  m.E(3, 3) = 20.0;
  m.flow(2, 3, 1.0);
  m.resistor(0, 1, 0.5);
  m.resistor(1, 2, 0.5);
  m.resistor(2, -1, 0.5);
  m.B(3, 0) = 1.0;
  m.B(0, 1) = 1.0;
  return std::make_unique<DescriptorPortHamiltonian>(
      descriptor_signature({"u1", "u2", "u3", "j1"}, {port("right", Causality::effort_in)},
                           {"source"}),
      m.form(), DescriptorPortHamiltonian::Options{.storage = storage});
}
inline std::unique_ptr<DescriptorPortHamiltonian> circuit_right(
    StepMapStorage storage = StepMapStorage::automatic) {
  DescriptorMatrices m(2, 1);
  m.capacitor(1, -1, 5e-4);
  m.resistor(0, 1, 0.5);
  m.resistor(1, -1, 5.0);
  m.B(0, 0) = 1.0;
  return std::make_unique<DescriptorPortHamiltonian>(
      descriptor_signature({"u4", "u5"}, {port("left", Causality::flow_in)}), m.form(),
      DescriptorPortHamiltonian::Options{.storage = storage});
}

/// Two masses on a rigid rod, p1, p2 and its force: index 2, since p1/m1 = p2/m2. A port at the
/// first mass, an external force on the second.
inline std::unique_ptr<DescriptorPortHamiltonian> rigid_rod(
    std::vector<double> start = {}, StepMapStorage storage = StepMapStorage::automatic) {
  DescriptorMatrices m(3, 2);
  m.E.diagonal() << 1.0, 1.0, 0.0;
  m.Q.diagonal() << 1.0 / 2.0, 1.0 / 3.0, 1.0;
  m.flow(0, 2, -1.0);
  m.flow(1, 2, 1.0);
  m.R(0, 0) = 0.5;
  m.B(0, 0) = 1.0;
  m.B(1, 1) = 1.0;
  return std::make_unique<DescriptorPortHamiltonian>(
      descriptor_signature({"p1", "p2", "rod"}, {port("end", Causality::effort_in)}, {"force"}),
      m.form(),
      DescriptorPortHamiltonian::Options{.storage = storage, .default_state = std::move(start)});
}

/// A ladder of nodes: resistors along it, a capacitor to ground at every other node and one across
/// neighbours here and there; a port at each end, at nodes without a capacitor where `nodes` is
/// odd, and a current source in the middle.
inline std::unique_ptr<DescriptorPortHamiltonian> rc_ladder(
    int nodes, StepMapStorage storage = StepMapStorage::automatic, double shift = 0.0) {
  Signature signature;
  signature.type = "ladder";
  for (int i = 0; i < nodes; ++i) signature.states.push_back({"u" + std::to_string(i), "V"});
  signature.ports = {port("left", Causality::flow_in), port("right", Causality::flow_in)};
  signature.inputs = {{"source", "A"}};
  using Triplets = std::vector<Eigen::Triplet<double>>;
  Triplets E, R, B;
  const auto branch = [nodes](Triplets& M, int i, int j, double value) {
    M.emplace_back(i, i, value);
    if (j < 0 || j >= nodes) return;
    M.emplace_back(j, j, value);
    M.emplace_back(i, j, -value);
    M.emplace_back(j, i, -value);
  };
  for (int i = 0; i < nodes; ++i) {
    const double vary = 1.0 + 0.3 * std::sin(i + shift);
    if (i + 1 < nodes) branch(R, i, i + 1, vary);
    if (i % 3 == 0) branch(R, i, -1, 0.1 * vary);
    if (i % 2 == 1) branch(E, i, -1, 1e-3 * vary);
    if (i % 8 == 2) branch(E, i, i + 2, 1e-4);
  }
  B.emplace_back(0, 0, 1.0);
  B.emplace_back(nodes - 1, 1, 1.0);
  B.emplace_back(nodes / 2, 2, 1.0);
  DescriptorForm form{SparseMatrix(nodes, nodes), SparseMatrix(nodes, nodes),
                      SparseMatrix(nodes, nodes), SparseMatrix(nodes, nodes),
                      SparseMatrix(nodes, 3)};
  form.E.setFromTriplets(E.begin(), E.end());
  form.R.setFromTriplets(R.begin(), R.end());
  form.B.setFromTriplets(B.begin(), B.end());
  form.Q.setIdentity();
  return std::make_unique<DescriptorPortHamiltonian>(
      std::move(signature), std::move(form),
      DescriptorPortHamiltonian::Options{.storage = storage});
}

/// Index 1 with matrices of every shape: E not symmetric, Q not diagonal, EᵀQ symmetric.
inline std::unique_ptr<DescriptorPortHamiltonian> skewed_part(
    StepMapStorage storage = StepMapStorage::automatic) {
  Eigen::MatrixXd T(4, 4);
  T << 1.0, 0.5, 0.0, -0.3, 0.2, 1.0, 0.4, 0.0, 0.0, -0.6, 1.0, 0.1, 0.3, 0.0, 0.2, 1.0;
  Eigen::MatrixXd root(4, 2);
  root << 1.0, 0.0, 0.3, 0.8, 0.0, -0.5, 0.2, 0.1;
  DescriptorMatrices m(4, 3);
  m.Q = T;
  m.E = T.transpose().inverse() * (root * root.transpose());  // EᵀQ = root rootᵀ
  m.flow(0, 1, 1.0);
  m.flow(2, 3, 0.7);
  m.flow(0, 3, -0.4);
  m.R = Eigen::MatrixXd::Identity(4, 4) * 0.3;
  m.R(0, 2) = m.R(2, 0) = 0.1;
  m.B << 1.0, 0.0, 0.2, 0.0, 1.0, 0.0, 0.3, 0.0, 1.0, 0.0, -0.5, 0.4;
  return std::make_unique<DescriptorPortHamiltonian>(
      descriptor_signature({"x0", "x1", "x2", "x3"},
                           {port("force", Causality::effort_in), port("speed", Causality::flow_in)},
                           {"drive"}),
      m.form(), DescriptorPortHamiltonian::Options{.storage = storage});
}

}  // namespace portwave::testing
