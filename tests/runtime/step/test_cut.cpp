#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/system/cut.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "support/systems/large_structures.hpp"

namespace portwave::test_cut {
namespace {

using testing::beam_form;
using testing::BeamOptions;
using testing::columns;
using testing::membrane_form;
using testing::Network;
using testing::numbered;
using testing::rlc_network;
using testing::second_order_part;
using testing::spring_grid;

using PartPointer = std::shared_ptr<const Component>;

Port force(const std::string& name) { return {name, Causality::effort_in, Domain::generic, 1}; }

std::vector<double> some_state(const Component& part) {
  std::vector<double> x;
  for (int i = 0; i < part.signature().state_size(); ++i) {
    x.push_back(0.1 * std::sin(1.0 + 0.7 * i) + 0.02 * std::cos(3.1 * i));
  }
  return x;
}

SystemBuilder::PartOptions driven(const Component& part, std::vector<double> x) {
  SystemBuilder::PartOptions options;
  options.initial_state = std::move(x);
  double frequency_Hz = 1.0;
  for (const ExternalInput& input : part.signature().inputs) {
    options.inputs.emplace(input.name, Signal::sine_product(2.0, {{frequency_Hz, 0.3}}));
    frequency_Hz += 0.7;
  }
  return options;
}

// The first port is joined to an oscillator, the others end free or fixed.
void end_ports(SystemBuilder& builder, const std::vector<std::string>& ports) {
  if (ports.empty()) return;
  builder.add("other", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 30.0}),
              {.initial_state = {0.1, -0.2}});
  builder.connect(ports[0], "other.coupling");
  for (std::size_t i = 1; i < ports.size(); ++i) {
    if (i % 2 == 1) {
      builder.join(joint::Free{}, {ports[i]});
    } else {
      builder.join(joint::Resistive{0.7}, {ports[i]});
    }
  }
}

System whole_system(const PartPointer& part, const std::vector<double>& x) {
  SystemBuilder builder;
  builder.add("whole", part, driven(*part, x));
  std::vector<std::string> ports;
  for (const Port& port : part->signature().ports) ports.push_back("whole." + port.name);
  end_ports(builder, ports);
  return builder.build();
}

System cut_system(const PartPointer& part, const Cut& cut, const std::vector<double>& x) {
  SystemBuilder builder;
  add_pieces(builder, "whole", *part, cut, driven(*part, x));
  std::vector<std::string> ports;
  for (const CutPort& port : cut.ports) ports.push_back(path_of("whole", cut, port));
  end_ports(builder, ports);
  join_pieces(builder, "whole", cut);
  return builder.build();
}

struct CutRun {
  std::vector<double> state;
  double storage_J = 0.0;
  double effort = 0.0;
  EnergyTotals energy;
  double copies = 0.0;  ///< the largest difference of two copies of a state
};

StepperOptions options_of(double step_s, int stages = 1, int threads = 1) {
  StepperOptions options{.step_s = step_s,
                         .start = Start::as_given,
                         .method = CouplingMethod::automatic(1e-13),
                         .threads = threads};
  options.method.waves().stages = stages;
  // What `auto` damps at h = 1 depends on which storages share a resistance, and so on the cut.
  options.method.waves().integrator = StageKind::gauss;
  return options;
}

CutRun run_whole(const PartPointer& part, double step_s, int steps, int stages) {
  const System system = whole_system(part, some_state(*part));
  Stepper stepper(system, options_of(step_s, stages));
  stepper.step(steps);
  const auto x = stepper.state("whole");
  return {{x.begin(), x.end()},
          stepper.storage(0),
          system.scalar_ports().empty() ? 0.0 : stepper.effort(0),
          stepper.energy(),
          0.0};
}

CutRun run_cut(const PartPointer& part, const Cut& cut, double step_s, int steps, int stages,
               int threads = 1) {
  const System system = cut_system(part, cut, some_state(*part));
  Stepper stepper(system, options_of(step_s, stages, threads));
  stepper.step(steps);
  CutRun run;
  for (const Cut::Place& place : cut.states) {
    run.state.push_back(stepper.state(place.piece)[static_cast<std::size_t>(place.state)]);
  }
  for (int piece = 0; piece < static_cast<int>(cut.pieces.size()); ++piece) {
    run.storage_J += stepper.storage(piece);
    const std::vector<int>& states = cut.pieces[static_cast<std::size_t>(piece)].states;
    for (std::size_t k = 0; k < states.size(); ++k) {
      run.copies = std::max(run.copies, std::abs(stepper.state(piece)[k] -
                                                 run.state[static_cast<std::size_t>(states[k])]));
    }
  }
  if (!cut.ports.empty()) {
    const auto [piece, port] = system.find_port(path_of("whole", cut, cut.ports[0]));
    run.effort = stepper.effort(system.first_scalar_port(piece, port));
  }
  run.energy = stepper.energy();
  EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
  return run;
}

double largest(const std::vector<double>& x) {
  double size = 0.0;
  for (const double each : x) size = std::max(size, std::abs(each));
  return size;
}

double difference(const CutRun& a, const CutRun& b) {
  double gap = 0.0;
  for (std::size_t i = 0; i < a.state.size(); ++i) {
    gap = std::max(gap, std::abs(a.state[i] - b.state[i]));
  }
  return gap;
}

void expect_same_motion(const std::string& name, const PartPointer& part, int parts,
                        double tolerance = 1e-10) {
  SCOPED_TRACE(name);
  const Cut cut = cut_part(*part, parts);
  EXPECT_GT(cut.pieces.size(), 1U);
  for (const double h : {1e-3, 1e-2, 1.0}) {
    for (const int stages : {1, 2}) {
      SCOPED_TRACE(fmt::format("h={} stages={}", h, stages));
      const int steps = 40;
      const CutRun whole = run_whole(part, h, steps, stages);
      const CutRun pieces = run_cut(part, cut, h, steps, stages);
      const double size = largest(whole.state);
      EXPECT_LE(difference(whole, pieces), tolerance * size);
      EXPECT_LE(pieces.copies, tolerance * size);
      EXPECT_NEAR(pieces.storage_J, whole.storage_J, 10 * tolerance * whole.energy.max_J);
      EXPECT_NEAR(pieces.effort, whole.effort, 10 * tolerance * (1.0 + std::abs(whole.effort)));
      EXPECT_NEAR(pieces.energy.supplied_J, whole.energy.supplied_J,
                  10 * tolerance * whole.energy.max_J);
      EXPECT_NEAR(pieces.energy.dissipated_J, whole.energy.dissipated_J,
                  10 * tolerance * whole.energy.max_J);
      const EnergyTotals& e = pieces.energy;
      EXPECT_NEAR(e.final_J - e.initial_J, e.supplied_J - e.dissipated_J - e.mismatch_J,
                  1e-10 * e.max_J);
    }
  }
}

// --- second order ----------------------------------------------------------------------------

TEST(CutSecondOrder, ABeamWithConsistentMass) {
  const BeamOptions damped{
      .elements = 40, .mass_damping_per_s = 0.3, .stiffness_damping_s = 1e-4, .clamped = true};
  const PartPointer beam = second_order_part(beam_form(damped), {force("tip")}, {{"load", "N"}});
  expect_same_motion("clamped, damped", beam, 4);
  const Cut cut = cut_part(*beam, 4);
  EXPECT_EQ(cut.pieces.size(), 4U) << "a chain needs no interface";
  EXPECT_EQ(cut.joints.size(), 3U);
}

// At h = 1 s it drifts by 2 km, where K q alone has a rounding of 1e-6 N.
TEST(CutSecondOrder, AFloatingGyroscopicBeam) {
  const BeamOptions free{.elements = 31, .gyroscopic = 0.4};
  expect_same_motion("free", second_order_part(beam_form(free), {force("tip")}, {{"load", "N"}}), 5,
                     1e-8);
}

TEST(CutSecondOrder, FloatingMembranesWithLumpedAndConsistentMass) {
  for (const bool lumped : {true, false}) {
    const SecondOrderForm form = membrane_form(9, 7, 2, lumped, 0.01);
    expect_same_motion(lumped ? "lumped" : "consistent",
                       second_order_part(form, {force("pair"), force("pressure")}, {{"f", "N"}}),
                       6);
  }
}

TEST(CutSecondOrder, PiecesInARingNeedAnInterface) {
  const SecondOrderForm form = membrane_form(10, 10, 1, false, 0.0);
  const Cut cut =
      cut_part(*second_order_part(form, {force("pair"), force("pressure")}, {{"f", "N"}}), 9);
  const auto is_interface = [](const CutPiece& piece) { return piece.name == "interface"; };
  EXPECT_EQ(std::count_if(cut.pieces.begin(), cut.pieces.end(), is_interface), 1);
}

TEST(CutSecondOrder, AMembraneWithNeitherPortsNorInputs) {
  SecondOrderForm form = membrane_form(9, 7, 2, true, 0.01);
  form.B = SparseMatrix(form.M.rows(), 0);
  const PartPointer part = second_order_part(form, {}, {});
  const Cut cut = cut_part(*part, 4);
  EXPECT_TRUE(cut.ports.empty());
  const CutRun whole = run_whole(part, 1e-2, 40, 1), pieces = run_cut(part, cut, 1e-2, 40, 1);
  EXPECT_LE(difference(whole, pieces), 1e-10 * largest(whole.state));
  EXPECT_NEAR(pieces.storage_J, whole.storage_J, 1e-9 * whole.energy.max_J);
}

// Pieces of bodies that nothing joins, and dampers in single directions.
TEST(CutSecondOrder, TrussWithRankOneDampers) {
  constexpr int kNodes = 24;
  testing::Assembly M(2 * kNodes), D(2 * kNodes), K(2 * kNodes);
  for (int i = 0; i < kNodes; ++i) {
    M.add({2 * i, 2 * i + 1}, Eigen::Matrix2d::Identity());
    for (const int j : {i + 1, i + 2}) {
      if (j >= kNodes || j == 12 || j == 13) continue;  // node 12 begins a second body
      const double angle = 0.3 * i + 0.9 * j;
      Eigen::Vector4d bar;
      bar << std::cos(angle), std::sin(angle), -std::cos(angle), -std::sin(angle);
      const Eigen::Matrix4d block = bar * bar.transpose();
      K.add({2 * i, 2 * i + 1, 2 * j, 2 * j + 1}, Eigen::Matrix4d(100.0 * block));
      if (i % 3 == 0) D.add({2 * i, 2 * i + 1, 2 * j, 2 * j + 1}, block);
    }
  }
  SecondOrderForm form{M.matrix(), D.matrix(), K.matrix(), columns(2 * kNodes, {{{0, 1.0}}})};
  expect_same_motion("truss", second_order_part(form, {force("end")}, {}), 5, 1e-9);
}

// --- port-Hamiltonian ------------------------------------------------------------------------

PartPointer network_part(const Network& network, std::vector<Port> ports,
                         std::vector<ExternalInput> inputs) {
  Signature signature{"linear_port_hamiltonian", numbered("x", static_cast<int>(network.Q.rows())),
                      std::move(ports), std::move(inputs)};
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), network.structure,
                                                 network.Q);
}

TEST(CutPortHamiltonian, AnElectricalNetworkWithLosses) {
  for (const int parts : {2, 5}) {
    expect_same_motion(
        fmt::format("{} parts", parts),
        network_part(rlc_network(8, 6), {force("first"), force("second")}, {{"everywhere", "A"}}),
        parts);
  }
}

TEST(CutPortHamiltonian, TornStorage) {
  expect_same_motion("line", network_part(spring_grid(30, 1), {force("left"), force("ends")}, {}),
                     4);
  expect_same_motion("grid", network_part(spring_grid(9, 8), {force("left"), force("ends")}, {}),
                     9);
}

// Ports that feed through stay with their states.
TEST(CutPortHamiltonian, FeedThrough) {
  Network line = spring_grid(24, 1);
  Structure& s = line.structure;
  // A damper of 0.3 between the port of flow and the first mass, and a gyrator between two inputs.
  s = Structure{s.J,
                s.R,
                columns(48, {{{24, 0.5}}, {{30, 1.0}}, {{47, 1.0}}}),
                columns(48, {{{24, -0.3}}, {}, {}}),
                SparseMatrix(3, 3),
                SparseMatrix(3, 3)};
  s.R.coeffRef(24, 24) += 0.3;
  s.S.coeffRef(0, 0) = 0.3;
  s.N.coeffRef(0, 1) = 0.2;
  s.N.coeffRef(1, 0) = -0.2;
  const PartPointer part =
      network_part(line, {{"a", Causality::effort_in, Domain::generic, 2}}, {{"force", "N"}});
  const Cut cut = cut_part(*part, 4);
  const System whole = [&] {
    SystemBuilder builder;
    builder.add("whole", part, driven(*part, some_state(*part)));
    builder.join(joint::Free{}, {"whole.a"});
    return builder.build();
  }();
  SystemBuilder builder;
  add_pieces(builder, "whole", *part, cut, driven(*part, some_state(*part)));
  builder.join(joint::Free{}, {path_of("whole", cut, cut.ports[0])});
  join_pieces(builder, "whole", cut);
  const System pieces = builder.build();
  Stepper one(whole, options_of(0.01)), many(pieces, options_of(0.01));
  one.step(50);
  many.step(50);
  for (std::size_t i = 0; i < cut.states.size(); ++i) {
    EXPECT_NEAR(many.state(cut.states[i].piece)[static_cast<std::size_t>(cut.states[i].state)],
                one.state(0)[i], 1e-11);
  }
}

TEST(CutDescriptor, ACircuitWithAlgebraicNodes) {
  // Every third node of a line has no capacitor; coils to ground at some.
  constexpr int kNodes = 30, kCoils = 6, n = kNodes + kCoils;
  DescriptorForm form{SparseMatrix(n, n), SparseMatrix(n, n), SparseMatrix(n, n),
                      SparseMatrix(n, n), columns(n, {{{0, 1.0}}, {{n / 2, 1.0}, {3, 1.0}}})};
  form.Q.setIdentity();
  for (int i = 0; i < kNodes; ++i) {
    if (i % 3 != 1) form.E.coeffRef(i, i) = 1e-2 * (1 + i % 2);
    form.R.coeffRef(i, i) += 0.05;
    if (i + 1 == kNodes) continue;
    form.R.coeffRef(i, i) += 2.0;
    form.R.coeffRef(i + 1, i + 1) += 2.0;
    form.R.coeffRef(i, i + 1) -= 2.0;
    form.R.coeffRef(i + 1, i) -= 2.0;
  }
  for (int k = 0; k < kCoils; ++k) {
    const int coil = kNodes + k, node = 5 * k;
    form.E.coeffRef(coil, coil) = 0.1;
    form.J.coeffRef(coil, node) = 1.0;
    form.J.coeffRef(node, coil) = -1.0;
  }
  for (SparseMatrix* const M : {&form.E, &form.J, &form.R}) M->makeCompressed();
  Signature signature{"descriptor_port_hamiltonian",
                      numbered("x", n),
                      {{"in", Causality::flow_in, Domain::generic, 1}},
                      {{"source", "A"}}};
  const auto part = std::make_shared<DescriptorPortHamiltonian>(std::move(signature), form);
  const Cut cut = cut_part(*part, 4);
  EXPECT_GE(cut.pieces.size(), 4U);
  const auto system_of = [&](bool is_cut) {
    SystemBuilder builder;
    std::vector<double> x(n, 0.0);
    for (int i = 0; i < n; ++i)
      x[static_cast<std::size_t>(i)] = form.E.coeff(i, i) > 0 ? 0.1 * i : 0;
    if (is_cut) {
      add_pieces(builder, "net", *part, cut, driven(*part, x));
    } else {
      builder.add("net", part, driven(*part, x));
    }
    builder.join(joint::Fixed{}, {is_cut ? path_of("net", cut, cut.ports[0]) : "net.in"});
    if (is_cut) join_pieces(builder, "net", cut);
    return builder.build();
  };
  const System whole = system_of(false), pieces = system_of(true);
  Stepper one(whole, options_of(1e-2)), many(pieces, options_of(1e-2));
  one.step(40);
  many.step(40);
  for (std::size_t i = 0; i < cut.states.size(); ++i) {
    EXPECT_NEAR(many.state(cut.states[i].piece)[static_cast<std::size_t>(cut.states[i].state)],
                one.state(0)[i], 1e-11);
  }
}

// --- what all share --------------------------------------------------------------------------

TEST(Cut, IsTheSameEveryTimeAndForAnyThreads) {
  const PartPointer part = second_order_part(membrane_form(12, 9, 1, false, 0.02),
                                             {force("pair"), force("pressure")}, {{"f", "N"}});
  const Cut first = cut_part(*part, 5), second = cut_part(*part, 5);
  ASSERT_EQ(first.pieces.size(), second.pieces.size());
  for (std::size_t i = 0; i < first.pieces.size(); ++i) {
    EXPECT_EQ(first.pieces[i].states, second.pieces[i].states);
  }
  const CutRun one = run_cut(part, first, 1e-2, 30, 1, 1);
  const CutRun two = run_cut(part, second, 1e-2, 30, 1, 2);
  EXPECT_EQ(one.state, two.state);
}

TEST(Cut, EveryStateAndPortHasAPlaceUnderItsOwnName) {
  const PartPointer part =
      second_order_part(beam_form({.elements = 20}), {force("tip")}, {{"load", "N"}});
  const Cut cut = cut_part(*part, 3);
  const Signature& whole = part->signature();
  for (std::size_t i = 0; i < cut.states.size(); ++i) {
    const CutPiece& piece = cut.pieces[static_cast<std::size_t>(cut.states[i].piece)];
    const auto state = static_cast<std::size_t>(cut.states[i].state);
    EXPECT_EQ(piece.component->signature().states[state].name, whole.states[i].name);
    EXPECT_EQ(piece.states[state], static_cast<int>(i));
  }
  const CutPiece& tip = cut.pieces[static_cast<std::size_t>(cut.ports[0].piece)];
  EXPECT_EQ(tip.component->signature().ports[0].name, "tip");
}

TEST(Cut, OnePartOrDisconnectedOnes) {
  const PartPointer part = second_order_part(membrane_form(3, 3, 4, true, 0.0),
                                             {force("pair"), force("pressure")}, {{"f", "N"}});
  expect_same_motion("four bodies in four parts", part, 4);
  const Cut one = cut_part(*part, 1);
  EXPECT_EQ(one.pieces.size(), 1U);
  EXPECT_TRUE(one.joints.empty());
}

std::string error_of(const Component& part, int parts) {
  try {
    cut_part(part, parts);
  } catch (const ConfigError& error) {
    return error.issues().front().what;
  }
  return "";
}

TEST(Cut, Errors) {
  const PartPointer beam =
      second_order_part(beam_form({.elements = 2}), {force("tip")}, {{"load", "N"}});
  EXPECT_NE(error_of(*beam, 0).find("1 part or more"), std::string::npos);
  EXPECT_NE(error_of(*beam, 7).find("it has 6 coordinates"), std::string::npos);
  EXPECT_NE(error_of(*beam, 100).find("it has 12 states"), std::string::npos);
  EXPECT_NE(
      error_of(*duffing_oscillator(
                   {.mass_kg = 8, .stiffness_N_per_m = 100, .coupling_stiffness_N_per_m = 120}),
               2)
          .find("is not given by matrices"),
      std::string::npos);
  // E ties everything.
  const SecondOrderForm form = beam_form({.elements = 4});
  const auto n = static_cast<int>(form.M.rows());
  DescriptorForm momenta{form.M, SparseMatrix(n, n), SparseMatrix(n, n), SparseMatrix(n, n),
                         SparseMatrix(n, 0)};
  momenta.Q.setIdentity();
  momenta.R.setIdentity();
  const DescriptorPortHamiltonian tied(
      Signature{"descriptor_port_hamiltonian", numbered("x", n), {}, {}}, momenta);
  EXPECT_NE(error_of(tied, 2).find("hang together in 1 group, tied by E and Q"), std::string::npos);
}

// The comparison would notice a joint that is not there.
TEST(CutControl, WithoutItsJointsThePiecesMoveOtherwise) {
  const PartPointer part = second_order_part(beam_form({.elements = 20, .clamped = true}),
                                             {force("tip")}, {{"load", "N"}});
  Cut cut = cut_part(*part, 2);
  const CutRun whole = run_whole(part, 1e-2, 40, 1);
  EXPECT_LE(difference(whole, run_cut(part, cut, 1e-2, 40, 1)), 1e-8);
  std::vector<CutJoint> open;
  for (const CutJoint& joint : cut.joints) {
    for (const CutPort& port : joint.ports) open.push_back({joint::Free{}, {port}});
  }
  cut.joints = open;
  EXPECT_GT(difference(whole, run_cut(part, cut, 1e-2, 40, 1)), 1e-4);
}

}  // namespace
}  // namespace portwave::test_cut
