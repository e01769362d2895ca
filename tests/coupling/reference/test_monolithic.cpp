#include <functional>
#include <numbers>
#include <stdexcept>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/port.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/systems/nonlinear_parts.hpp"

namespace portwave::test_monolithic {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

VectorXd state(const MonolithicReference& reference, int part) {
  const std::span<const double> x = reference.state(part);
  return Eigen::Map<const VectorXd>(x.data(), static_cast<Eigen::Index>(x.size()));
}

struct PairParameters {
  double k3 = 8000.0;
  double c12 = 0.05;
};

/// The Duffing–linear pair of the wave-coupling paper's benchmark (arXiv 2603.16424).
System duffing_pair(PairParameters p = {}, Signal force = {}) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 8.0,
                                  .stiffness_N_per_m = 100.0,
                                  .cubic_stiffness_N_per_m3 = p.k3,
                                  .coupling_stiffness_N_per_m = 120.0,
                                  .coupling_damping_Ns_per_m = p.c12}),
              {.initial_state = {0.4, 0.0, -0.4}, .inputs = {{"force", force}}});
  builder.add("B", linear_oscillator({.mass_kg = 4.0, .stiffness_N_per_m = 50.0}));
  builder.connect("A.coupling", "B.coupling");
  return builder.build();
}

// Against independent solutions.

TEST(MonolithicReference, TakesTheMidpointStepOfALinearPair) {
  // q1' = v1, 8 v1' = −100 q1 + 120 δ + c12 δ', δ' = v2 − v1, q2' = v2, 4 v2' = −50 q2 − (…).
  const double c = 0.7;
  MatrixXd A(5, 5);                             // (q1, v1, δ, q2, v2)
  A << 0, 1, 0, 0, 0,                           //
      -100.0 / 8, -c / 8, 120.0 / 8, 0, c / 8,  //
      0, -1, 0, 0, 1,                           //
      0, 0, 0, 0, 1,                            //
      0, c / 4, -120.0 / 4, -50.0 / 4, -c / 4;
  for (const double h : {1e-5, 1e-2, 0.3, 5.0}) {
    const System system = duffing_pair({.k3 = 0.0, .c12 = c});
    MonolithicReference reference(system, h);
    const MatrixXd I = MatrixXd::Identity(5, 5);
    const Eigen::FullPivLU<MatrixXd> implicit(I - 0.5 * h * A);
    VectorXd x(5);
    x << 0.4, 0.0, -0.4, 0.0, 0.0;
    for (int n = 0; n < 50; ++n) {
      const VectorXd before = x;
      x = implicit.solve((I + 0.5 * h * A) * x);
      reference.step();
      const VectorXd mid = 0.5 * (x + before);
      const double e = 120.0 * mid[2] + c * (mid[4] - mid[1]);
      EXPECT_NEAR(reference.effort()[0], e, 1e-11 * (1.0 + std::abs(e))) << "h=" << h;
      EXPECT_NEAR(reference.flow()[0], mid[4], 1e-11) << "h=" << h << " n=" << n;
    }
    EXPECT_LT((state(reference, 0) - x.head(3)).norm(), 1e-12) << "h=" << h;
    EXPECT_LT((state(reference, 1) - x.tail(2)).norm(), 1e-12) << "h=" << h;
    EXPECT_DOUBLE_EQ(reference.time_s(), 50 * h);
  }
}

TEST(MonolithicReference, JoinsTwoMassesRigidly) {
  // e₁ = e₂ = e and v̄₁ = −v̄₂ = w leave one equation:
  // 2(m₁ + m₂)w/h = 2(m₁v₁ − m₂v₂)/h − k₁(q₁ + hw/2) + k₂(q₂ − hw/2).
  const double m1 = 2.0, m2 = 3.0, k1 = 5.0, k2 = 11.0, h = 0.07;
  SystemBuilder builder;
  builder.add("one", linear_oscillator({.mass_kg = m1, .stiffness_N_per_m = k1}),
              {.initial_state = {0.5, 0.2}});
  builder.add("two", linear_oscillator({.mass_kg = m2, .stiffness_N_per_m = k2}),
              {.initial_state = {-0.1, 0.6}});
  builder.connect("one.coupling", "two.coupling");
  const System system = builder.build();
  MonolithicReference reference(system, h);
  reference.step();
  const double force = 2.0 * (m1 * 0.2 - m2 * 0.6) / h - k1 * 0.5 + k2 * -0.1;
  const double w = force / (2.0 * (m1 + m2) / h + 0.5 * h * (k1 + k2));
  EXPECT_NEAR(reference.state(0)[0], 0.5 + h * w, 1e-15);
  EXPECT_NEAR(reference.state(0)[1], 2.0 * w - 0.2, 1e-15);
  EXPECT_NEAR(reference.state(1)[0], -0.1 - h * w, 1e-15);
  EXPECT_NEAR(reference.state(1)[1], -2.0 * w - 0.6, 1e-15);
}

TEST(MonolithicReference, TakesTheBenchmarksFirstStep) {
  // Own independent computation of the paper's benchmark, nine digits.
  const System system = duffing_pair();
  MonolithicReference reference(system, 0.01);
  reference.step();
  EXPECT_NEAR(reference.state(0)[0], 0.396297065, 5e-10);
  EXPECT_NEAR(reference.state(0)[1], -0.740586929, 5e-10);
  const WaveTransform port(0.4, 0.01);
  const double expected[] = {-5.33798634, -5.33265268};
  for (std::size_t j = 0; j < 2; ++j) {
    const double b = port.to_waves({reference.effort()[j], reference.flow()[j]}).outgoing;
    EXPECT_NEAR(b, expected[j], 5e-9) << "port " << j;
  }
}

TEST(MonolithicReference, CutsAChainWithoutATrace) {
  // 64 blocks of 5 masses, joined by their end springs, are the chain of 320 masses.
  ChainParameters p{.masses = 5,
                    .mass_kg = 0.3,
                    .stiffness_N_per_m = 40.0,
                    .damping_Ns_per_m = 0.05,
                    .coupling_stiffness_N_per_m = 40.0};
  constexpr int kBlocks = 64;
  SystemBuilder cut;
  std::vector<double> q_all, whole_state;
  for (int i = 0; i < 5 * kBlocks; ++i) q_all.push_back(0.1 * std::sin(0.05 * i * i));
  q_all.push_back(0.0);  // the wall
  for (int i = 0; i < 5 * kBlocks; ++i) {
    whole_state.insert(whole_state.end(), {q_all[static_cast<std::size_t>(i)], 0.0});
  }
  whole_state.push_back(-q_all[5 * kBlocks - 1]);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    std::vector<double> x(whole_state.begin() + 10 * block, whole_state.begin() + 10 * block + 10);
    x.push_back(q_all[5 * block + 5] - q_all[5 * block + 4]);
    cut.add("block" + std::to_string(block), mass_spring_damper_chain(p), {.initial_state = x});
    if (block > 0) {
      cut.connect("block" + std::to_string(block - 1) + ".right",
                  "block" + std::to_string(block) + ".left");
    }
  }
  cut.join(joint::Free{}, {"block0.left"});
  cut.join(joint::Fixed{}, {"block63.right"});
  p.masses = 5 * kBlocks;
  SystemBuilder whole;
  whole.add("chain", mass_spring_damper_chain(p), {.initial_state = whole_state});
  whole.join(joint::Free{}, {"chain.left"});
  whole.join(joint::Fixed{}, {"chain.right"});
  const System cut_system = cut.build(), whole_system = whole.build();
  MonolithicReference blocks(cut_system, 0.02), chain(whole_system, 0.02);
  for (int n = 0; n < 50; ++n) {
    blocks.step();
    chain.step();
  }
  const VectorXd expected = state(chain, 0);
  for (int block = 0; block < kBlocks; ++block) {
    const double error =
        (state(blocks, block).head(10) - expected.segment(10 * block, 10)).cwiseAbs().maxCoeff();
    EXPECT_LT(error, 1e-13) << "block " << block;
  }
  EXPECT_NEAR(blocks.storage(), chain.storage(), 1e-12);
}

// Energy.

TEST(MonolithicReference, ConservesTheEnergyOfALosslessPair) {
  for (const double h : {1e-3, 1e-2, 0.1, 1.0}) {
    for (const double loss : {0.0, 0.05}) {
      const System system = duffing_pair({.c12 = loss});
      MonolithicReference reference(system, h);
      const double initial = reference.storage();
      for (int n = 0; n < 1000; ++n) reference.step();
      const double change = (reference.storage() - initial) / initial;
      if (loss == 0.0) {
        EXPECT_LT(std::abs(change), 1e-12) << "h=" << h << ", 1000 steps";
      } else {
        EXPECT_LT(change, -1e-6) << "control: a damper must show, h=" << h;
      }
    }
  }
}

/// Parts of several kinds on every kind of junction, one driven force.
System network(const Signal& force) {
  SystemBuilder builder;
  const auto mass = [] { return linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20.0}); };
  const auto spring = [] {
    return duffing_oscillator({.mass_kg = 0.5,
                               .stiffness_N_per_m = 8.0,
                               .cubic_stiffness_N_per_m3 = 30.0,
                               .coupling_stiffness_N_per_m = 25.0});
  };
  for (const char* name : {"m1", "m2", "m3", "m4"}) {
    builder.add(name, mass(), {.initial_state = {0.3, -0.2}});
  }
  builder.add("s1", spring(), {.initial_state = {0.5, 0.1, 0.2}, .inputs = {{"force", force}}});
  for (const char* name : {"s2", "s3", "s4", "s5"}) {
    builder.add(name, spring(), {.initial_state = {-0.4, 0.6, 0.1}});
  }
  builder.join(joint::CommonFlow{}, {"s1.coupling", "s2.coupling", "m1.coupling"});
  builder.join(joint::CommonEffort{}, {"m2.coupling", "m3.coupling", "s3.coupling"});
  builder.join(joint::Transformer{.ratio = 2.5}, {"m4.coupling", "s4.coupling"});
  builder.join(joint::Fixed{}, {"s5.coupling"});
  return builder.build();
}

TEST(MonolithicReference, BalancesPowerAndWorkOnEveryKindOfJunction) {
  for (const double h : {1e-3, 0.05, 0.5}) {
    const System system = network(Signal::sine_product(3.0, {{.frequency_Hz = 0.8}}));
    const int driven = system.find_part("s1");
    MonolithicReference reference(system, h);
    double stored = reference.storage();
    for (int n = 0; n < 200; ++n) {
      const double q = reference.state(driven)[0];
      reference.step();
      double power = 0.0, size = 0.0;
      for (std::size_t j = 0; j < reference.effort().size(); ++j) {
        power += reference.effort()[j] * reference.flow()[j];
        size += std::abs(reference.effort()[j] * reference.flow()[j]);
      }
      EXPECT_LT(std::abs(power), 1e-13 * size + 1e-300) << "h=" << h << " n=" << n;
      // Lossless: all that is stored is the force's work, F(t + h/2)·Δq.
      const double force = 3.0 * std::sin(2.0 * std::numbers::pi * 0.8 * (n + 0.5) * h);
      const double work = force * (reference.state(driven)[0] - q);
      EXPECT_LT(std::abs(reference.storage() - stored - work), 1e-13 * (stored + size * h))
          << "h=" << h << " n=" << n;
      stored = reference.storage();
    }
  }
}

TEST(MonolithicReference, KeepsTheCasimirOfAFreeRigidBody) {
  // A state-dependent structure taken at the midpoint keeps H and |L|², both quadratic.
  for (const double drag : {0.0, 0.05}) {
    SystemBuilder builder;
    builder.add("body", testing::rigid_body(drag));
    builder.join(joint::Free{}, {"body.torque"});
    const System system = builder.build();
    MonolithicReference reference(system, 0.2);
    const double energy = reference.storage(), momentum = state(reference, 0).squaredNorm();
    int most = 0;
    for (int n = 0; n < 500; ++n) {
      reference.step();
      most = std::max(most, reference.last_newton_steps());
    }
    const double drift = std::abs(state(reference, 0).squaredNorm() / momentum - 1.0);
    if (drag == 0.0) {
      EXPECT_LT(drift, 1e-12);
      EXPECT_LT(std::abs(reference.storage() / energy - 1.0), 1e-12);
      EXPECT_LE(most, 6) << "Newton without the structure's derivative takes many more";
    } else {
      EXPECT_GT(drift, 0.1) << "control: drag must show";
    }
  }
}

// Order.

double observed_order(const std::function<System(double h)>& system_for) {
  constexpr double kTime = 1.0;
  VectorXd end[3];
  for (int level = 0; level < 3; ++level) {
    const int steps = 500 << level;
    const double h = kTime / steps;
    const System system = system_for(h);
    MonolithicReference reference(system, h);
    for (int n = 0; n < steps; ++n) reference.step();
    end[level] = state(reference, 0);
  }
  return std::log2((end[0] - end[1]).norm() / (end[1] - end[2]).norm());
}

TEST(MonolithicReference, IsOfSecondOrderWithInputsAtTheMidpoint) {
  const auto force = [](double t) { return 200.0 * std::cos(3.0 * t); };
  const double order =
      observed_order([&](double) { return duffing_pair({}, Signal::callback(force)); });
  EXPECT_NEAR(order, 2.0, 0.1);
  // Control: a force that comes some steps late costs an order.
  const double late = observed_order([&](double h) {
    return duffing_pair({}, Signal::callback([=](double t) { return force(t - 4.0 * h); }));
  });
  EXPECT_NEAR(late, 1.0, 0.2);
}

// Failures.

TEST(MonolithicReference, LeavesTheStateAloneWhenNewtonRunsOut) {
  const System system = duffing_pair();
  MonolithicReference reference(system, 0.01, {.max_newton_steps = 1});
  const VectorXd before = state(reference, 0);
  EXPECT_THROW(reference.step(), std::runtime_error);
  EXPECT_EQ(state(reference, 0), before);
  EXPECT_EQ(reference.time_s(), 0.0);
  EXPECT_EQ(reference.effort()[0], 0.0);
}

TEST(MonolithicReference, SaysWhenTheCoupledStepIsSingular) {
  // Two short circuits in parallel do not determine their currents; with resistance they do.
  for (const double resistance : {0.0, 1.0}) {
    SystemBuilder builder;
    const Port port{"terminals", Causality::flow_in, Domain::electrical, 1};
    builder.add("r1", make_resistor(resistance, port));
    builder.add("r2", make_resistor(resistance, port));
    builder.connect("r1.terminals", "r2.terminals");
    builder.add("body", testing::rigid_body());
    builder.join(joint::Free{}, {"body.torque"});
    const System system = builder.build();
    MonolithicReference reference(system, 0.1);
    const VectorXd before = state(reference, 2);
    if (resistance > 0.0) {
      EXPECT_NO_THROW(reference.step());
      continue;
    }
    try {
      reference.step();
      FAIL() << "a singular step passed";
    } catch (const std::runtime_error& error) {
      EXPECT_NE(std::string(error.what()).find("singular"), std::string::npos) << error.what();
    }
    EXPECT_EQ(state(reference, 2), before);
  }
}

TEST(MonolithicReference, RefusesABadStepAndABadState) {
  const System system = duffing_pair();
  for (const double h : {0.0, -0.1, std::nan(""), HUGE_VAL}) {
    EXPECT_THROW(MonolithicReference(system, h), ConfigError) << h;
  }
  EXPECT_THROW(MonolithicReference(system, 0.1, {.max_newton_steps = 0}), ConfigError);
  MonolithicReference reference(system, 0.1);
  EXPECT_THROW(reference.set_state(0, std::vector<double>{1.0}), ConfigError);
  reference.set_state(0, std::vector<double>{0.1, 0.2, 0.3});
  EXPECT_EQ(reference.state(0)[1], 0.2);
}

}  // namespace
}  // namespace portwave::test_monolithic
