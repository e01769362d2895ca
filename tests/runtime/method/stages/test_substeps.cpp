// Parts that take steps of their own within a step: what they converge to, their order and their
// energy at every budget.

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "portwave/subsystems/stages/staged_part.hpp"
#include "runtime/method/stages/substep_runs.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/descriptor_parts.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/opaque_parts.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_substeps {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;
using testing::distance;
using testing::EnergyLaws;
using testing::options_of;
using testing::pair_with;
using testing::states_of;

// A second implementation for two linear parts: Gauss points, Lagrange polynomials and collocation
// written out anew, the ports of the step found by trying unit inputs.

struct Gauss {
  VectorXd c, b;
  MatrixXd A;  ///< by integrating Lagrange polynomials exactly
};

double lagrange(const VectorXd& nodes, int j, double t) {
  double product = 1.0;
  for (int k = 0; k < nodes.size(); ++k) {
    if (k != j) product *= (t - nodes[k]) / (nodes[j] - nodes[k]);
  }
  return product;
}

Gauss gauss(int stages) {
  Gauss out;
  out.c.resize(stages);
  if (stages == 1) out.c << 0.5;
  if (stages == 2) out.c << 0.5 - 0.5 / std::sqrt(3.0), 0.5 + 0.5 / std::sqrt(3.0);
  if (stages == 3) out.c << 0.5 - 0.5 * std::sqrt(0.6), 0.5, 0.5 + 0.5 * std::sqrt(0.6);
  // Moments: Σⱼ aᵢⱼ cⱼᵏ = cᵢᵏ⁺¹/(k + 1).
  MatrixXd powers(stages, stages), moments(stages, stages);
  VectorXd full(stages);
  for (int k = 0; k < stages; ++k) {
    full[k] = 1.0 / (k + 1);
    for (int i = 0; i < stages; ++i) {
      powers(k, i) = std::pow(out.c[i], k);
      moments(k, i) = std::pow(out.c[i], k + 1) / (k + 1);
    }
  }
  out.A = powers.fullPivLu().solve(moments).transpose();
  out.b = powers.fullPivLu().solve(full);
  return out;
}

/// ẋ = A x + B u, y = C x + D u with one port.
struct OnePort {
  MatrixXd A;
  VectorXd B, C;
  double D;
  int substeps;
};

/// x⁺ and the outputs of the step for its inputs u, both at the stages.
std::pair<VectorXd, VectorXd> march(const OnePort& part, const Gauss& rule, double step_s,
                                    VectorXd x, const VectorXd& u) {
  const auto n = static_cast<int>(x.size()), s = static_cast<int>(rule.c.size());
  const double h = step_s / part.substeps;
  VectorXd y = VectorXd::Zero(s);
  for (int k = 0; k < part.substeps; ++k) {
    VectorXd input = VectorXd::Zero(s);
    for (int i = 0; i < s; ++i) {
      for (int l = 0; l < s; ++l) {
        input[i] += lagrange(rule.c, l, (k + rule.c[i]) / part.substeps) * u[l];
      }
    }
    MatrixXd lhs = MatrixXd::Identity(s * n, s * n);
    VectorXd rhs(s * n);
    for (int i = 0; i < s; ++i) {
      rhs.segment(i * n, n) = part.A * x + part.B * input[i];
      for (int j = 0; j < s; ++j) lhs.block(i * n, j * n, n, n) -= h * rule.A(i, j) * part.A;
    }
    const VectorXd slopes = lhs.fullPivLu().solve(rhs);
    for (int i = 0; i < s; ++i) {
      VectorXd at_stage = x;
      for (int j = 0; j < s; ++j) at_stage += h * rule.A(i, j) * slopes.segment(j * n, n);
      const double own = part.C.dot(at_stage) + part.D * input[i];
      for (int l = 0; l < s; ++l) {
        y[l] += rule.b[i] / (rule.b[l] * part.substeps) *
                lagrange(rule.c, l, (k + rule.c[i]) / part.substeps) * own;
      }
    }
    for (int i = 0; i < s; ++i) x += h * rule.b[i] * slopes.segment(i * n, n);
  }
  return {x, y};
}

/// One step of u₁ = y₂, u₂ = −y₁.
void step_pair(const std::array<OnePort, 2>& parts, const Gauss& rule, double step_s,
               std::array<VectorXd, 2>& x) {
  const auto s = static_cast<int>(rule.c.size());
  VectorXd at_rest[2];
  MatrixXd gain[2];
  for (int i = 0; i < 2; ++i) {
    const OnePort& part = parts[static_cast<std::size_t>(i)];
    const VectorXd& own = x[static_cast<std::size_t>(i)];
    at_rest[i] = march(part, rule, step_s, own, VectorXd::Zero(s)).second;
    gain[i].resize(s, s);
    for (int l = 0; l < s; ++l) {
      gain[i].col(l) =
          march(part, rule, step_s, VectorXd::Zero(own.size()), VectorXd::Unit(s, l)).second;
    }
  }
  // u₁ = y₂ = r₂ + G₂u₂,  u₂ = −y₁ = −r₁ − G₁u₁
  const MatrixXd lhs = MatrixXd::Identity(s, s) + gain[1] * gain[0];
  const VectorXd u1 = lhs.fullPivLu().solve(at_rest[1] - gain[1] * at_rest[0]);
  const VectorXd u2 = -at_rest[0] - gain[0] * u1;
  x[0] = march(parts[0], rule, step_s, x[0], u1).first;
  x[1] = march(parts[1], rule, step_s, x[1], u2).first;
}

/// Of a linear part.
MatrixXd energy_matrix(const Subsystem& part) {
  const SparseMatrix* const Q = part.linear_form().Q;
  return Q != nullptr ? MatrixXd(*Q) : MatrixXd();
}

OnePort one_port(const Subsystem& part, int substeps) {
  const Structure& s = part.structure();
  const MatrixXd Q = energy_matrix(part), J = MatrixXd(s.J), R = MatrixXd(s.R);
  const MatrixXd G = MatrixXd(s.G), P = MatrixXd(s.P);
  return {(J - R) * Q, (G - P).col(0), ((G + P).transpose() * Q).row(0).transpose(),
          MatrixXd(s.S)(0, 0) + MatrixXd(s.N)(0, 0), substeps};
}

/// Two linear parts of three and four states, with losses in states, across and in the port.
std::array<std::shared_ptr<const Subsystem>, 2> lossy_pair() {
  testing::LinearMatrices first(3, 1), second(4, 1);
  first.flow(0, 1, 3.0);
  first.flow(1, 2, -1.2);
  first.Q.diagonal() << 2.0, 0.7, 5.0;
  first.R(1, 1) = 0.2;
  first.G(1, 0) = 0.8;
  first.G(2, 0) = 0.3;
  first.P(1, 0) = 0.05;
  first.S(0, 0) = 0.3;
  second.flow(0, 2, 20.0);
  second.flow(1, 3, 7.0);
  second.flow(0, 1, 0.5);
  second.Q.diagonal() << 1.0, 4.0, 0.5, 2.0;
  second.Q(0, 1) = second.Q(1, 0) = 0.4;
  second.R(3, 3) = 0.1;
  second.G(2, 0) = 1.0;
  second.G(3, 0) = -0.6;
  return {testing::linear_part(first, {testing::effort_port("p")}, {1.0, -0.5, 0.2}),
          testing::linear_part(second, {testing::flow_port("p")}, {0.3, 0.1, -1.0, 0.6})};
}

class Substeps : public ::testing::TestWithParam<int> {};

TEST_P(Substeps, AreThoseOfASecondImplementation) {
  const auto parts = lossy_pair();
  const Gauss rule = gauss(GetParam());
  for (const auto& [m1, m2] : std::vector<std::pair<int, int>>{{1, 1}, {3, 1}, {1, 5}, {4, 7}}) {
    SystemBuilder builder;
    builder.add("one", parts[0], {.substeps = m1});
    builder.add("two", parts[1], {.substeps = m2});
    builder.connect("one.p", "two.p");
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), 0.1));
    const std::array<OnePort, 2> own = {one_port(*parts[0], m1), one_port(*parts[1], m2)};
    std::array<VectorXd, 2> x;
    for (std::size_t i = 0; i < 2; ++i) {
      const std::vector<double> start = parts[i]->default_state();
      x[i] = Eigen::Map<const VectorXd>(start.data(), static_cast<Eigen::Index>(start.size()));
    }
    for (int n = 0; n < 50; ++n) {
      stepper.step();
      step_pair(own, rule, 0.1, x);
    }
    const std::vector<double> got = states_of(stepper);
    std::vector<double> wanted(x[0].begin(), x[0].end());
    wanted.insert(wanted.end(), x[1].begin(), x[1].end());
    EXPECT_LT(distance(got, wanted), 1e-11) << m1 << ", " << m2;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    // The second implementation does tell one number of substeps from another.
    if (m2 > 1) {
      std::array<OnePort, 2> other = own;
      other[1].substeps = m2 - 1;
      std::array<VectorXd, 2> y = x;
      step_pair(other, rule, 0.1, y);
      step_pair(own, rule, 0.1, x);
      EXPECT_GT((y[1] - x[1]).norm(), 1e-9);
    }
  }
}

// As a linear part with step maps, and as a nonlinear one whose H happens to be quadratic.
std::shared_ptr<const Subsystem> as_nonlinear(const std::shared_ptr<const Subsystem>& part) {
  const MatrixXd Q = energy_matrix(*part);
  const auto n = Q.rows();
  Hamiltonian H;
  H.value = [Q, n](const double* x) {
    const Eigen::Map<const VectorXd> v(x, n);
    return 0.5 * v.dot(Q * v);
  };
  H.gradient = [Q, n](const double* x, double* g) {
    Eigen::Map<VectorXd>(g, n) = Q * Eigen::Map<const VectorXd>(x, n);
  };
  return std::make_shared<NonlinearPortHamiltonian>(
      part->signature(), part->structure(), std::move(H),
      NonlinearPortHamiltonian::Options{.default_state = part->default_state()});
}

TEST_P(Substeps, OfNonlinearPartsAreThoseOfLinearOnesWhereHIsQuadratic) {
  const auto parts = lossy_pair();
  const auto run = [&](bool first, bool second) {
    SystemBuilder builder;
    builder.add("one", first ? as_nonlinear(parts[0]) : parts[0], {.substeps = 3});
    builder.add("two", second ? as_nonlinear(parts[1]) : parts[1], {.substeps = 6});
    builder.connect("one.p", "two.p");
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), 0.1));
    std::vector<double> out;
    for (int n = 0; n < 30; ++n) {
      const StepReport report = stepper.step();
      out.push_back(report.energy.dissipated_J);
    }
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    const std::vector<double> states = states_of(stepper);
    out.insert(out.end(), states.begin(), states.end());
    return out;
  };
  const std::vector<double> linear = run(false, false);
  EXPECT_LT(distance(run(true, false), linear), 1e-10);
  EXPECT_LT(distance(run(true, true), linear), 1e-10);
}

/// The slope of the error at the end over halvings of the step.
double order_of(const System& system, int stages, double step_s, double end_s) {
  const auto run = [&](int factor) {
    Stepper stepper(system, options_of(stages, step_s / factor));
    stepper.step(std::lround(end_s / step_s) * factor);
    return states_of(stepper);
  };
  const std::vector<double> coarse = run(1), fine = run(2), finest = run(4);
  return std::log2(distance(coarse, fine) / distance(fine, finest));
}

TEST_P(Substeps, KeepTheOrderOfTheCoupling) {
  const double tolerance = GetParam() == 3 ? 0.2 : 0.12;
  const double shorter = GetParam() == 1 ? 4.0 : 1.0;
  for (const auto& [m1, m2] : std::vector<std::pair<int, int>>{{3, 1}, {1, 2}, {4, 3}}) {
    EXPECT_NEAR(order_of(pair_with(m1, m2), GetParam(), 0.02 / shorter, 1.0), 2.0 * GetParam(),
                tolerance)
        << m1 << ", " << m2;
  }
}

// Against the exact state of the pair at t = 10 s: q1 and q2 of two independent integrators at 1e-13.
TEST_P(Substeps, OfTheFasterPartMakeTheRunMoreAccurate) {
  const auto error = [&](int of_a) {
    const System system = pair_with(of_a, 1);
    Stepper stepper(system, options_of(GetParam(), 0.04, 1e-12));
    stepper.step(250);
    return std::hypot(stepper.state(0)[0] + 0.2774531015, stepper.state(1)[0] - 0.0905967774);
  };
  const double one = error(1), four = error(4);
  const double gain[] = {10.0, 100.0, 300.0};
  EXPECT_LT(four * gain[GetParam() - 1], one);
}

TEST_P(Substeps, KeepTheEnergyAtEveryBudget) {
  std::int64_t guarded = 0;
  for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
    for (const int budget : {0, 1, 2, 5}) {
      for (const double impedance : {0.02, 0.4, 30.0}) {
        for (unsigned seed = 0; seed <= 6; ++seed) {
          const System system =
              seed == 0
                  ? pair_with(3, 2)
                  : testing::random_network({.decades = 3.0, .substeps = {1, 4, 2, 1, 3}}, seed);
          StepperOptions options;
          options.start = Start::as_given;
          options.step_s = 0.02;
          options.method = WaveCoupling{.kind = kind, .iterations = budget, .stages = GetParam()};
          options.method.waves().impedance = {impedance};
          options.certify = budget == 2 ? Certify::full : Certify::energy;
          Stepper stepper(system, options);
          EnergyLaws laws(stepper);
          for (int n = 0; n < (seed == 0 ? 20 : 60); ++n) laws.observe(stepper, stepper.step());
          EXPECT_TRUE(laws.hold()) << laws.first_breach() << ", K = " << budget
                                   << ", gamma = " << impedance << ", seed " << seed;
          guarded += stepper.waves()->guard()->steps;
        }
      }
    }
  }
  EXPECT_GT(guarded, 50) << "the guard had to act";
}

// The control of the test above.
TEST_P(Substeps, BreakTheLawOfTheTankWithoutGuard) {
  int broken = 0;
  for (unsigned seed = 1; seed <= 6; ++seed) {
    const System system =
        testing::random_network({.decades = 3.0, .substeps = {1, 4, 2, 1, 3}}, seed);
    StepperOptions options;
    options.start = Start::as_given;
    options.step_s = 0.02;
    options.method = WaveCoupling{.iterations = 1, .stages = GetParam()};
    options.method.waves().impedance = {0.02};
    options.method.waves().guard = false;
    Stepper stepper(system, options);
    EnergyLaws laws(stepper);
    for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
    broken += laws.hold() ? 0 : 1;
  }
  EXPECT_GT(broken, 0);
}

// The books of energy against what the states say, without the engine's own account of change.
TEST_P(Substeps, BookWhatInputsSupply) {
  SystemBuilder builder;
  builder.add("A",
              duffing_oscillator({.mass_kg = 1,
                                  .stiffness_N_per_m = 10,
                                  .cubic_stiffness_N_per_m3 = 5,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = 3,
                                  .coupling_damping_Ns_per_m = 0.2}),
              {.inputs = {{"force", Signal::sine_product(2.0, {{0.7, 0.3}}, 0.5)}}, .substeps = 3});
  builder.add("B", testing::coupled_quartic(),
              {.initial_state = {0.2, 0.1, 0.0, 0.0},
               .inputs = {{"force", Signal::sine_product(1.0, {{1.1, 0.0}})}},
               .substeps = 4});
  builder.connect("A.coupling", "B.push");
  const System system = builder.build();
  EXPECT_NEAR(order_of(system, GetParam(), 0.05, 2.0), 2.0 * GetParam(), 0.25);
  Stepper stepper(system, options_of(GetParam(), 0.1));
  long double balance = 0.0L;
  const double before = stepper.storage(0) + stepper.storage(1);
  for (int n = 0; n < 200; ++n) {
    const StepReport report = stepper.step();
    balance += static_cast<long double>(report.energy.supplied_J) -
               static_cast<long double>(report.energy.dissipated_J);
  }
  const double after = stepper.storage(0) + stepper.storage(1);
  EXPECT_GT(stepper.energy().dissipated_J, 0.1);
  EXPECT_NEAR(static_cast<double>(balance), after - before, 1e-9 * after);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

// An input much faster than the steps is seen by substeps: m v̇ = F cos ωt, ten periods a step.
TEST_P(Substeps, SampleInputsWithin) {
  constexpr double kOmega = 200.0 * M_PI, kStep = 0.0995;
  const auto error = [&](int substeps) {
    SystemBuilder builder;
    builder.add("mass", linear_oscillator({.mass_kg = 2.0}),
                {.inputs = {{"force", Signal::sine_product(3.0, {{kOmega / (2.0 * M_PI), 0.5}})}},
                 .substeps = substeps});
    builder.join(joint::Free{}, {"mass.coupling"});
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), kStep));
    stepper.step();
    const double wanted = -1.5 / kOmega * (std::cos(kOmega * kStep + 0.5) - std::cos(0.5));
    return std::abs(stepper.state(0)[1] / wanted - 1.0);
  };
  const double bound[] = {5e-3, 1e-5, 1e-8};
  EXPECT_LT(error(200), bound[GetParam() - 1]);
  EXPECT_GT(error(1), 1.0);
}

// Structure that depends on the state, ports of dimension 3, no losses: energy stays.
TEST_P(Substeps, OfRigidBodiesKeepEnergy) {
  SystemBuilder builder;
  builder.add("one", testing::rigid_body(0.0), {.substeps = 4});
  builder.add("two", testing::rigid_body(0.0), {.substeps = 1});
  builder.connect("one.torque", "two.torque");
  const System system = builder.build();
  Stepper stepper(system, options_of(GetParam(), 0.05, 1e-13));
  const double before = stepper.storage(0) + stepper.storage(1);
  for (int n = 0; n < 200; ++n) stepper.step();
  EXPECT_NEAR(stepper.storage(0) + stepper.storage(1), before, 1e-11 * before);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
}

// Two masses that are one rigid body: with substeps their velocities agree in the mean of each step, not
// at its ends, which leaves order 2, 2 and 4.
TEST_P(Substeps, AcrossARigidJointCostOrder) {
  const auto joined = [](int first, int second) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
                {.initial_state = {1, 0}, .substeps = first});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
                {.initial_state = {-1, 0}, .substeps = second});
    builder.connect("A.coupling", "B.coupling");
    return builder.build();
  };
  const double order[] = {2.0, 2.0, 4.0};
  EXPECT_NEAR(order_of(joined(3, 1), GetParam(), 0.05, 1.0), order[GetParam() - 1], 0.25);
  EXPECT_NEAR(order_of(joined(4, 4), GetParam(), 0.05, 1.0), order[GetParam() - 1], 0.25);
  EXPECT_NEAR(order_of(joined(1, 1), GetParam(), 0.05, 1.0), 2.0 * GetParam(), 0.15);
}

TEST_P(Substeps, DoNotDependOnWhoExecutesThem) {
  const auto grid = [] {
    SystemBuilder builder;
    for (int i = 0; i < 12; ++i) {
      const std::string name = "b" + std::to_string(i);
      if (i % 3 == 0) {
        builder.add(name,
                    duffing_oscillator({.mass_kg = 1.0 + i,
                                        .stiffness_N_per_m = 100,
                                        .cubic_stiffness_N_per_m3 = 800,
                                        .coupling_stiffness_N_per_m = 120}),
                    {.initial_state = {0.1 * i, 0, 0}, .substeps = 2 + i % 2});
      } else {
        builder.add(name, linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50.0}),
                    {.initial_state = {0.1, 0.0}, .substeps = 1 + i % 3});
      }
    }
    std::vector<std::string> ports(12);
    for (int i = 0; i < 12; ++i) {
      ports[static_cast<std::size_t>(i)] = "b" + std::to_string(i) + ".coupling";
    }
    builder.join(joint::CommonEffort{}, ports);
    return builder.build();
  };
  const System system = grid();
  const auto run = [&](ExecutorKind executor, int threads, const Grain& how) {
    StepperOptions options;
    options.start = Start::as_given;
    options.step_s = 0.01;
    options.method = WaveCoupling{.iterations = 4, .stages = GetParam()};
    options.method.waves().impedance = {2.0};
    options.certify = Certify::full;
    options.threads = threads;
    options.executor = executor;
    options.grain = how;
    Stepper stepper(system, options);
    stepper.step(10);
    std::vector<double> out = states_of(stepper);
    out.push_back(stepper.energy().tank_J);
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    return out;
  };
  const std::vector<double> serial = run(ExecutorKind::serial, 1, Grain::per_part());
  EXPECT_EQ(run(ExecutorKind::serial, 1, {}), serial);
  for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
    EXPECT_EQ(run(executor, 3, Grain::per_part()), serial) << to_string(executor);
  }
}

// A fast part beside slow ones: 160 Hz in steps of 20 ms. Its own motion is as accurate as its
// substeps; without them it is not even in step.
TEST_P(Substeps, ResolveAFastPart) {
  const auto error = [&](int substeps) {
    const double k = 1.0, fast = 1e6;
    SystemBuilder builder;
    builder.add("slow", linear_oscillator({.mass_kg = 1e3, .stiffness_N_per_m = 1e3}),
                {.initial_state = {0.1, 0.0}});
    builder.add(
        "fast",
        testing::sprung_mass({.mass = 1.0, .stiffness = fast, .up_stiffness = k, .velocity = 2.0}),
        {.substeps = substeps});
    builder.connect("fast.up", "slow.coupling");
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), 0.02));
    stepper.step(5);
    const double omega = std::sqrt(fast + k);
    return std::abs(stepper.state(1)[1] / 2.0 - std::cos(omega * 0.1));
  };
  const double bound[] = {1e-2, 1e-5, 1e-5};  // the slow part takes some of it
  EXPECT_LT(error(500), bound[GetParam() - 1]);
  EXPECT_GT(error(1), 0.1);
}

/// A capacitor that leaks, as a linear part with S or N at its external input or in its port, in units
/// of `unit`: what the energy book says against what the state says.
TEST_P(Substeps, BookSmallNumbersToo) {
  for (const double unit : {1.0, 1e-9, 1e-13, 1e9}) {
    testing::LinearMatrices m(1, 1);
    m.Q(0, 0) = 1.0 / unit;  // H = q²/2C
    m.G(0, 0) = 1.0;
    m.S(0, 0) = 0.3 / unit;  // a resistor in the line
    const auto run = [&](int substeps) {
      SystemBuilder builder;
      builder.add("C", testing::linear_part(m, {testing::flow_port("line")}, {unit}),
                  {.substeps = substeps});
      builder.join(joint::Resistive{0.8 / unit}, {"C.line"});
      const System system = builder.build();
      Stepper stepper(system, options_of(GetParam(), 0.05));
      const double before = stepper.storage(0);
      stepper.step(20);
      EXPECT_NEAR(stepper.energy().dissipated_J, before - stepper.storage(0), 1e-10 * before)
          << unit << ", " << substeps;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
      return stepper.storage(0) / before;
    };
    // q' = −q/(RC), RC = 1.1
    EXPECT_NEAR(run(4), std::exp(-2.0 / 1.1), 1e-3) << unit;
    EXPECT_NEAR(run(4), run(1), 1e-3);
  }
}

// Large and small displacements beside one another; as many substeps as may be.
TEST_P(Substeps, ConvergeFarOut) {
  for (const int substeps : {2, 5, 19, 20, 21, 100}) {
    SystemBuilder builder;
    builder.add("A",
                duffing_oscillator({.mass_kg = 8,
                                    .stiffness_N_per_m = 100,
                                    .cubic_stiffness_N_per_m3 = 30,
                                    .coupling_stiffness_N_per_m = 120,
                                    .coupling_damping_Ns_per_m = 0.05}),
                {.initial_state = {547.0, 0, -547.0}, .substeps = substeps});
    builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}));
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), 2.7e-4));
    EXPECT_NO_THROW(stepper.step(100)) << substeps;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << substeps;
  }
}

// Steps far beyond the time scale of a stiff part: a solution is a solution.
TEST_P(Substeps, StiffPartsKeepTheirBook) {
  for (const double stiffness : {1e6, 1e10}) {
    SystemBuilder builder;
    builder.add("A",
                duffing_oscillator({.mass_kg = 0.01,
                                    .stiffness_N_per_m = stiffness,
                                    .cubic_stiffness_N_per_m3 = stiffness,
                                    .damping_Ns_per_m = 3.0,
                                    .coupling_stiffness_N_per_m = stiffness,
                                    .coupling_damping_Ns_per_m = 5.0}),
                {.initial_state = {0.1, 0.0, 0.0}, .substeps = 3});
    builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}),
                {.initial_state = {0.1, 0.0}});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    Stepper stepper(system, options_of(GetParam(), 0.5));
    const double before = stepper.storage(0) + stepper.storage(1);
    for (int n = 0; n < 100; ++n) {
      stepper.step();
      const EnergyTotals& energy = stepper.energy();
      const double now = stepper.storage(0) + stepper.storage(1);
      EXPECT_NEAR(now + energy.dissipated_J + energy.mismatch_J, before, 1e-9 * before)
          << stiffness << ", step " << n;
    }
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
  }
}

// A set-up that would take long and much memory is solved as nonlinear parts are.
TEST_P(Substeps, ManyOfADrivenPartAreSetUpAtOnce) {
  SystemBuilder builder;
  builder.add("mass", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 8.0}),
              {.initial_state = {1.0, 0.0},
               .inputs = {{"force", Signal::sine_product(3.0, {{0.5, 0.0}})}},
               .substeps = 1000});
  builder.join(joint::Free{}, {"mass.coupling"});
  const System system = builder.build();
  Stepper stepper(system, options_of(GetParam(), 0.5));
  stepper.step(4);
  // x'' + 4x = 1.5 sin πt, x(0) = 1
  const double W = M_PI, c = 1.5 / (4.0 - W * W), t = 2.0;
  const double wanted = std::cos(2.0 * t) + c * (std::sin(W * t) - W / 2.0 * std::sin(2.0 * t));
  EXPECT_NEAR(stepper.state(0)[0], wanted, 1e-6);
}

INSTANTIATE_TEST_SUITE_P(Stages, Substeps, ::testing::Values(1, 2, 3));

}  // namespace
}  // namespace portwave::test_substeps
