#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <Eigen/LU>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/tuning.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"
#include "support/systems/descriptor_parts.hpp"

// Descriptor parts in a system: the monolithic reference, port responses, what the builder refuses.

namespace portwave::test_descriptor_coupling {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

const Signal kSource = Signal::sine_product(1.0, {{50.0, 0.0}, {500.0, 0.0}}, 0.0);

double source(double t) {
  const double w = 2.0 * std::numbers::pi;
  return std::sin(w * 50.0 * t) * std::sin(w * 500.0 * t);
}

System circuit() {
  SystemBuilder builder;
  builder.add("left", testing::circuit_left(),
              {.initial_state = {}, .inputs = {{"source", kSource}}});
  builder.add("right", testing::circuit_right());
  builder.connect("left.right", "right.left");
  return builder.build();
}

VectorXd state(const MonolithicReference& reference, int part) {
  const std::span<const double> x = reference.state(part);
  return Eigen::Map<const VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
}

TEST(DescriptorMonolithic, TakesTheMidpointStepOfTheWholeCircuit) {
  // The uncut equations with J(j1, u4) = 1, in (Ex, x_mid).
  testing::DescriptorMatrices m(6, 1);
  m.capacitor(1, -1, 5e-4);
  m.E(3, 3) = 20.0;
  m.capacitor(5, -1, 5e-4);
  m.flow(2, 3, 1.0);
  m.flow(3, 4, 1.0);
  m.resistor(0, 1, 0.5);
  m.resistor(1, 2, 0.5);
  m.resistor(2, -1, 0.5);
  m.resistor(4, 5, 0.5);
  m.resistor(5, -1, 5.0);
  const MatrixXd A = m.J - m.R;
  for (const double h : {1e-6, 1e-4, 3e-3}) {
    const System system = circuit();
    MonolithicReference reference(system, h);
    const Eigen::FullPivLU<MatrixXd> implicit(2.0 / h * m.E - A);
    VectorXd Ex = VectorXd::Zero(6);
    double scale = 0.0, Ex_scale = 0.0;  // the largest so far
    for (int n = 0; n < 200; ++n) {
      const VectorXd x_mid =
          implicit.solve(2.0 / h * Ex + VectorXd::Unit(6, 0) * source((n + 0.5) * h));
      Ex = 2.0 * m.E * x_mid - Ex;
      reference.step();
      VectorXd x(6);
      x << state(reference, 0), state(reference, 1);
      scale = std::max(scale, x_mid.cwiseAbs().maxCoeff());
      Ex_scale = std::max(Ex_scale, Ex.cwiseAbs().maxCoeff());
      ASSERT_LE((m.E * x - Ex).cwiseAbs().maxCoeff(), 1e-12 * Ex_scale) << "h=" << h << " n=" << n;
      for (const int algebraic : {0, 2, 4}) {
        ASSERT_NEAR(x[algebraic], x_mid[algebraic], 1e-12 * scale) << "h=" << h << " n=" << n;
      }
      ASSERT_NEAR(reference.flow()[0], x_mid[3], 1e-12 * scale);
      ASSERT_NEAR(reference.effort()[0], x_mid[4], 1e-12 * scale);
    }
  }
}

TEST(DescriptorMonolithic, HoldsARigidRodTogether) {
  SystemBuilder builder;
  builder.add("rod", testing::rigid_rod(), {.initial_state = {2.0, 3.0, 0.0}});
  builder.join(joint::Resistive{0.4}, {"rod.end"});
  const System system = builder.build();
  MonolithicReference reference(system, 0.05);
  for (int n = 0; n < 100; ++n) reference.step();
  const VectorXd x = state(reference, 0);
  EXPECT_NEAR(x[0] / 2.0, x[1] / 3.0, 1e-13);
  // (m1 + m2) v' = −(r + γ) v by midpoint steps.
  const double z = 0.05 * 0.9 / 5.0, factor = (1.0 - 0.5 * z) / (1.0 + 0.5 * z);
  EXPECT_NEAR(x[0] / 2.0, std::pow(factor, 100), 1e-13);
}

TEST(DescriptorMonolithic, KeepsEnergyWhereNothingIsLost) {
  // Control for the energy of descriptor parts: a rod without damping on a spring.
  testing::DescriptorMatrices m(3, 1);
  m.E.diagonal() << 1.0, 1.0, 0.0;
  m.Q.diagonal() << 1.0 / 2.0, 1.0 / 3.0, 1.0;
  m.flow(0, 2, -1.0);
  m.flow(1, 2, 1.0);
  m.B(0, 0) = 1.0;
  const auto rod = std::make_shared<DescriptorPortHamiltonian>(
      testing::descriptor_signature({"p1", "p2", "rod"},
                                    {testing::port("end", Causality::effort_in)}),
      m.form());
  SystemBuilder builder;
  builder.add("rod", rod, {.initial_state = {2.0, 3.0, 0.0}});
  builder.add("body", duffing_oscillator({.mass_kg = 1.5,
                                          .stiffness_N_per_m = 20.0,
                                          .cubic_stiffness_N_per_m3 = 50.0,
                                          .coupling_stiffness_N_per_m = 30.0}));
  builder.connect("body.coupling", "rod.end");
  const System system = builder.build();
  MonolithicReference reference(system, 0.02);
  const double start = reference.storage();
  double body = 0.0;
  for (int n = 0; n < 200; ++n) {
    reference.step();
    body = std::max(body, system.parts()[1].port_hamiltonian()->storage(reference.state(1).data()));
    EXPECT_NEAR(reference.storage(), start, 1e-12 * start) << n;
  }
  EXPECT_GT(body, 0.1 * start);  // control: energy was exchanged
}

TEST(DescriptorResponses, AreThoseOfTheStepSolvers) {
  for (const double h : {1e-4, 1e-2, 1.0}) {
    for (const int nodes : {9, 101}) {  // dense and sparse
      const auto part = testing::rc_ladder(nodes);
      const Component* parts[] = {part.get()};
      const auto batch = part->make_batch(parts);
      const std::vector<double> gamma = {0.3, 2.0};
      batch->prepare(h, gamma.data());
      Eigen::Matrix<double, 2, 2, Eigen::RowMajor> D;
      batch->affine_map()->affine_matrix(0, D.data());
      const MatrixXd response = port_response(*part, h);
      const MatrixXd expected = scattering_matrix(response, part->signature(), gamma);
      EXPECT_LE((D - expected).cwiseAbs().maxCoeff(), 1e-12) << "h=" << h << " n=" << nodes;
      const MatrixXd other = scattering_matrix(response, part->signature(), std::vector{0.3, 2.1});
      EXPECT_GT((D - other).cwiseAbs().maxCoeff(), 1e-4);  // control
    }
  }
}

std::string refusal(std::vector<double> start) {
  SystemBuilder builder;
  builder.add("rod", testing::rigid_rod(), {.initial_state = std::move(start)});
  builder.join(joint::Free{}, {"rod.end"});
  try {
    (void)builder.build();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "";
}

TEST(DescriptorSystem, RefusesAStartThatNoInputCanMend) {
  EXPECT_EQ(
      refusal({2.0, 4.5, 0.0}),
      "/subsystems/0/initial_state: violates a constraint between p1, p2: they leave 0.5 in the "
      "equation of rod, where terms of 2.5 must cancel (the part has index 2, and no input acts "
      "there)");
  EXPECT_EQ(refusal({2.0, 3.0, 17.0}), "");
  const std::string infinite = refusal({2.0, std::numeric_limits<double>::infinity(), 0.0});
  EXPECT_EQ(infinite.find("violates"), std::string::npos) << infinite;
}

TEST(DescriptorSystem, RefusesADefaultStartAsWell) {
  SystemBuilder builder;
  builder.add("rod", testing::rigid_rod({2.0, 4.5, 0.0}));
  builder.join(joint::Free{}, {"rod.end"});
  try {
    (void)builder.build();
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(error.issues().front().where, "/subsystems/0");
  }
}

}  // namespace
}  // namespace portwave::test_descriptor_coupling
