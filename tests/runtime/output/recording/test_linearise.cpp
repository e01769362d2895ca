// The linearisation of whole systems: against difference quotients of a solver that shares no code
// with it, against the matrices of condensed linear systems, and against closed forms.

#include <algorithm>
#include <cmath>
#include <complex>
#include <stdexcept>
#include <string>
#include <vector>

#include <Eigen/Eigenvalues>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/coupling/network/condensed.hpp>
#include <portwave/coupling/network/linearisation.hpp>
#include <portwave/coupling/reference/gauss_reference.hpp>
#include <portwave/coupling/system/derived_systems.hpp>
#include <portwave/runtime/output/linearise.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/subsystems/catalogue/chain.hpp>

#include "support/systems/example_scenarios.hpp"

namespace portwave::test_linearise {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

std::vector<double> initial_states(const System& system) {
  std::vector<double> out;
  for (const Part& part : system.parts()) {
    out.insert(out.end(), part.initial_state.begin(), part.initial_state.end());
  }
  return out;
}

System moved(const System& system, const std::vector<double>& state) {
  const System* const one[] = {&system};
  return gathered_system(one, state.data());
}

/// ẋ at a state, from steps of the reference that get shorter and shorter.
VectorXd rate_by_steps(const System& system, const std::vector<double>& state, double step_s) {
  const System there = moved(system, state);
  const auto quotient = [&](double h) {
    GaussReference reference(there, h, 3);
    reference.step();
    VectorXd out(static_cast<Eigen::Index>(state.size()));
    Eigen::Index k = 0;
    for (std::size_t i = 0; i < there.parts().size(); ++i) {
      for (const double x : reference.state(static_cast<int>(i))) {
        out[k] = (x - state[static_cast<std::size_t>(k)]) / h;
        ++k;
      }
    }
    return out;
  };
  // Richardson's extrapolation of an error in h and h².
  const VectorXd coarse = quotient(step_s), middle = quotient(step_s / 2),
                 fine = quotient(step_s / 4);
  return (coarse - 6.0 * middle + 8.0 * fine) / 3.0;
}

struct Probe {
  std::string name;
  std::string scenario;
  std::vector<double> state = {};  ///< empty: the initial one
  double step_s = 1e-4;            ///< short beside what the system does
};

std::string of(const std::string& subsystems, const std::string& couplings) {
  return fmt::format(
      R"({{"name":"probe","subsystems":[{}],"couplings":[{}],"method":{{"kind":"auto"}},)"
      R"("time":{{"step_s":0.01,"steps":10}}}})",
      subsystems, couplings);
}

const std::string kDuffing =
    R"({"name":"A","type":"duffing_oscillator","parameters":{"mass_kg":8,"stiffness_N_per_m":100,)"
    R"("cubic_stiffness_N_per_m3":8000,"coupling_stiffness_N_per_m":120,)"
    R"("coupling_damping_Ns_per_m":0.05}})";
const std::string kOscillator =
    R"({"name":"B","type":"linear_oscillator","parameters":{"mass_kg":4,"stiffness_N_per_m":50,)"
    R"("damping_Ns_per_m":0.3},"inputs":{"force":{"kind":"settable"}}})";

std::vector<Probe> probes() {
  return {
      {"pair",
       of(kDuffing + "," + kOscillator,
          R"({"kind":"connection","ports":["A.coupling","B.coupling"]})"),
       {0.4, -1.5, 0.1, 2.0, -3.0}},
      {"arm_on_a_motor",  // structure and energy depend on the state
       of(R"({"name":"arm","type":"planar_arm","parameters":{"masses_kg":[2,1],)"
          R"("lengths_m":[0.5,0.4]}},)"
          R"({"name":"motor","type":"dc_motor","parameters":{"inductance_H":1e-2,)"
          R"("resistance_ohm":1.0,"motor_constant_Vs_per_rad":0.05,"inertia_kgm2":1e-2}},)"
          R"({"name":"joint","type":"torsional_spring_damper","parameters":)"
          R"({"stiffness_Nm_per_rad":30,"damping_Nms_per_rad":0.1}},)"
          R"({"name":"supply","type":"effort_source","parameters":{"domain":"electrical"},)"
          R"("inputs":{"effort":{"kind":"settable"}}})",
          R"({"kind":"connection","ports":["supply.port","motor.terminals"]},)"
          R"({"kind":"connection","ports":["motor.shaft","joint.left"]},)"
          R"({"kind":"connection","ports":["joint.right","arm.joint_1"]},)"
          R"({"kind":"free","ports":["arm.joint_2"]})")},
      {"body",
       of(R"({"name":"body","type":"rigid_body","parameters":{"mass_kg":2,)"
          R"("inertia_1_kgm2":0.1,"inertia_2_kgm2":0.2,"inertia_3_kgm2":0.3}})",
          R"({"kind":"free","ports":["body.force"]},{"kind":"free","ports":["body.torque"]})"),
       {0.1, -2, 3, 1, 2, -1, 0.5, 0.5, -0.5, 0.5, 0.3, -0.2, 0.4}},
  };
}

Scenario parsed(const std::string& text) { return parse_scenario(text, "probe.json", "."); }

/// Largest difference of A from difference quotients of the rate, beside the size of its column; and
/// of the rate.
double defect_of_A(const Scenario& scenario, const std::vector<double>& state, double step_s,
                   double factor = 1.0) {
  const Linearisation own = linearised(scenario.system, {.state = state});
  const MatrixXd A = factor * MatrixXd(own.A);
  double worst = 0.0;
  const VectorXd rate = rate_by_steps(scenario.system, state, step_s);
  const double rate_scale = rate.cwiseAbs().maxCoeff() + own.rate.cwiseAbs().maxCoeff();
  if (rate_scale > 0.0) {
    worst = (factor * own.rate - rate).cwiseAbs().maxCoeff() / rate_scale;
  }
  for (Eigen::Index j = 0; j < A.cols(); ++j) {
    std::vector<double> ahead = state, back = state;
    const auto c = static_cast<std::size_t>(j);
    const double reach = 1e-3 * std::max(std::abs(state[c]), 0.1);
    // Five points: the error is in reach⁴.
    const auto rate_at = [&](double times) {
      std::vector<double> there = state;
      there[c] += times * reach;
      return rate_by_steps(scenario.system, there, step_s);
    };
    const VectorXd slope =
        (8.0 * (rate_at(1) - rate_at(-1)) - (rate_at(2) - rate_at(-2))) / (12.0 * reach);
    // A column that is 0 is so up to the rounding of the others.
    const double scale = std::max({slope.cwiseAbs().maxCoeff(), A.col(j).cwiseAbs().maxCoeff(),
                                   1e-2 * A.cwiseAbs().maxCoeff()});
    worst = std::max(worst, (A.col(j) - slope).cwiseAbs().maxCoeff() / scale);
  }
  return worst;
}

class LinearisationLaw : public ::testing::TestWithParam<Probe> {};

TEST_P(LinearisationLaw, AIsTheDerivativeOfTheRate) {
  const Scenario scenario = parsed(GetParam().scenario);
  std::vector<double> state = GetParam().state;
  if (state.empty()) {
    state = initial_states(scenario.system);
    for (std::size_t i = 0; i < state.size(); ++i) {
      state[i] += 0.3 + 0.1 * static_cast<double>(i % 3) - 0.05 * static_cast<double>(i);
    }
  }
  EXPECT_LE(defect_of_A(scenario, state, GetParam().step_s), 2e-6);
  EXPECT_GE(defect_of_A(scenario, state, GetParam().step_s, 1.00001), 3e-6) << "control";
}

INSTANTIATE_TEST_SUITE_P(Systems, LinearisationLaw, ::testing::ValuesIn(probes()),
                         [](const auto& test) { return test.param.name; });

TEST(Linearisation, OfLinearSystemsIsTheCondensedForm) {
  for (const char* name : {"msd_chains", "msd_multirate", "ring_of_cells", "msd_singlerate"}) {
    const Scenario scenario = testing::example(name);
    const CondensedSystem condensed(scenario.system);
    const Linearisation own = linearised(scenario.system);
    if (!own.is_explicit) continue;  // descriptor parts
    const MatrixXd A = MatrixXd(condensed.J_local() + condensed.J_coupling() - condensed.R()) *
                       MatrixXd(condensed.Q());
    ASSERT_EQ(own.A.rows(), A.rows()) << name;
    EXPECT_LE((MatrixXd(own.A) - A).norm(), 1e-12 * A.norm()) << name;
  }
}

TEST(Linearisation, APendulumUprightFallsAsFastAsItsEigenvalueSays) {
  const Scenario scenario =
      parsed(of(R"({"name":"p","type":"pendulum","parameters":{"mass_kg":1.2,"length_m":0.8,)"
                R"("inertia_kgm2":0.1}})",
                R"({"kind":"free","ports":["p.shaft"]})"));
  const Linearisation own = linearised(scenario.system, {.state = {std::acos(-1.0), 0.0}});
  EXPECT_TRUE(own.is_explicit);
  EXPECT_LE(own.rate.norm(), 1e-14 * 9.81);
  const Eigen::VectorXcd values = MatrixXd(own.A).eigenvalues();
  const double lambda = std::sqrt(1.2 * 9.81 * 0.8 / (0.1 + 1.2 * 0.8 * 0.8));
  for (const double wanted : {lambda, -lambda}) {
    EXPECT_LE(std::min(std::abs(values[0] - wanted), std::abs(values[1] - wanted)), 1e-7);
  }
}

TEST(Linearisation, InputsAndOutputsOfADividerOfVoltages) {
  const Scenario scenario =
      parsed(of(R"({"name":"source","type":"effort_source","parameters":{"domain":"electrical"},)"
                R"("inputs":{"effort":{"kind":"settable"}}},)"
                R"({"name":"r1","type":"resistor","parameters":{"resistance_ohm":3}},)"
                R"({"name":"r2","type":"resistor","parameters":{"resistance_ohm":1}},)"
                R"({"name":"c","type":"capacitor","parameters":{"capacitance_F":0.5}})",
                R"({"kind":"common_flow","ports":["source.port","r1.terminals","r2.terminals"]},)"
                R"({"kind":"fixed","ports":["c.terminals"]})"));
  StepperOptions options = scenario.options;
  Stepper stepper(scenario.system, options);
  stepper.set_input(stepper.find_input("source.effort"), 8.0);
  const Linearisation own =
      linearise(stepper, {"r2.terminals.effort", "r2.terminals.flow", "c.voltage"});
  ASSERT_EQ(own.D.rows(), 3);
  ASSERT_EQ(own.D.cols(), 1);
  EXPECT_EQ(own.input_names, (std::vector<std::string>{"source.effort"}));
  EXPECT_EQ(own.state_names, (std::vector<std::string>{"c.voltage"}));
  EXPECT_NEAR(std::abs(own.D.coeff(0, 0)), 0.25, 1e-14);
  EXPECT_NEAR(std::abs(own.D.coeff(1, 0)), 0.25, 1e-14);
  EXPECT_NEAR(std::abs(own.output[0]), 2.0, 1e-13);
  EXPECT_EQ(own.C.coeff(2, 0), 1.0);
  EXPECT_EQ(own.D.coeff(2, 0), 0.0);
  EXPECT_EQ(own.input[0], 8.0);
}

TEST(Linearisation, BIsWhatAnInputDoesToARun) {
  const Scenario scenario = parsed(probes()[0].scenario);
  const Linearisation own = linearised(scenario.system, {.state = probes()[0].state});
  const System there = moved(scenario.system, probes()[0].state);
  StepperOptions options;
  options.step_s = 1e-5;
  options.method = WaveCoupling::automatic(1e-13);
  options.method.waves().stages = 3;
  Stepper with(there, options), without(there, options);
  with.set_input(with.find_input("B.force"), 100.0);
  with.step();
  without.step();
  Eigen::Index k = 0;
  for (int part = 0; part < 2; ++part) {
    for (std::size_t i = 0; i < with.state(part).size(); ++i, ++k) {
      const double rate = (with.state(part)[i] - without.state(part)[i]) / (100.0 * options.step_s);
      EXPECT_NEAR(own.B.coeff(k, 0), rate, 1e-4) << own.state_names[static_cast<std::size_t>(k)];
    }
  }
  EXPECT_EQ(own.B.coeff(4, 0), 0.25);
}

const std::string kTrain = of(
    R"({"name":"m","type":"mass","parameters":{"mass_kg":3},"inputs":{"force":{"kind":"settable"}}},)"
    R"({"name":"n","type":"mass","parameters":{"mass_kg":5}},)"
    R"({"name":"s","type":"spring","parameters":{"stiffness_N_per_m":200}})",
    R"({"kind":"common_flow","ports":["m.port","n.port","s.left"]},)"
    R"({"kind":"fixed","ports":["s.right"]})");

TEST(Linearisation, MassesThatAreJoinedRigidlyMoveAsOne) {
  const Scenario scenario = parsed(kTrain);
  const System& system = scenario.system;
  // Both at 2 m/s, the spring long by 0.1 m, pushed by 7 N.
  const Linearisation own =
      linearised(system, {.state = {0.5, 2, -1, 2, 0.1}, .input = {7}},
                 {{LinearOutput::Kind::state, 3}, {LinearOutput::Kind::effort, 1}});
  ASSERT_TRUE(own.is_explicit);
  ASSERT_EQ(own.state_names.size(), 4U);
  EXPECT_EQ(std::ranges::count(own.state_names, "m.velocity") +
                std::ranges::count(own.state_names, "n.velocity"),
            1);
  const Eigen::VectorXcd values = MatrixXd(own.A).eigenvalues();
  const double omega = std::sqrt(200.0 / 8.0);
  for (const std::complex<double> wanted : {std::complex(0.0, omega), std::complex(0.0, -omega)}) {
    EXPECT_LE((values.array() - wanted).abs().minCoeff(), 1e-12);
  }
  const auto place = [&](const char* end) {
    const auto found = std::ranges::find_if(
        own.state_names, [&](const std::string& name) { return name.ends_with(end); });
    return found - own.state_names.begin();
  };
  const auto v = static_cast<Eigen::Index>(place(".velocity"));
  EXPECT_NEAR(own.B.coeff(v, 0), 1.0 / 8.0, 1e-14);
  // s.left takes the flow of the masses, by the sign of the junction: the spring works against it.
  const auto d = static_cast<Eigen::Index>(place(".elongation"));
  EXPECT_NEAR(own.A.coeff(v, d) * own.A.coeff(d, v), -omega * omega, 1e-12);
  EXPECT_NEAR(own.C.coeff(0, v), 1.0, 1e-14);
  EXPECT_NEAR(own.output[0], 2.0, 0.0);
  // What pushes the other mass: its share of all forces.
  EXPECT_NEAR(std::abs(own.D.coeff(1, 0)), 5.0 / 8.0, 1e-14);
  const double force = 7.0 + own.A.coeff(v, d) * 8.0 * 0.1;
  EXPECT_NEAR(own.rate[v], force / 8.0, 1e-13);
  EXPECT_NEAR(std::abs(own.output[1]), std::abs(5.0 / 8.0 * force), 1e-12);
  const MatrixXd recover = own.recover;
  EXPECT_EQ(recover.rows(), 5);
  EXPECT_NEAR(std::abs(recover(1, v)), 1.0, 1e-14);
  EXPECT_NEAR(std::abs(recover(3, v)), 1.0, 1e-14);
}

TEST(Linearisation, AShaftWithGearAndLoadIsOneThatTurns) {
  const Scenario scenario = testing::example("embedding/servo");
  const Linearisation own = linearised(scenario.system, {}, {{LinearOutput::Kind::state, 2}});
  ASSERT_TRUE(own.is_explicit);
  // Against a run: the servo is linear.
  Stepper stepper(scenario.system, scenario.options);
  stepper.set_input(stepper.find_input("supply.effort"), 3.0);
  stepper.run_until(0.05);
  VectorXd x = VectorXd::Zero(own.A.rows());
  const MatrixXd A = own.A, B = own.B;
  constexpr int kFine = 200000;
  const double h = 0.05 / kFine;
  for (int i = 0; i < kFine; ++i) {  // Heun
    const VectorXd slope = A * x + B * 3.0;
    x += h * (slope + 0.5 * h * (A * slope));
  }
  const VectorXd all = own.recover * x;
  Eigen::Index k = 0;
  for (int part = 0; part < static_cast<int>(scenario.system.parts().size()); ++part) {
    for (const double state : stepper.state(part)) {
      EXPECT_NEAR(all[k], state, 2e-3 * std::abs(state) + 1e-6) << k;
      ++k;
    }
  }
}

TEST(Linearisation, WhatPrescribesAStateKeepsPortsAsVariables) {
  const Scenario scenario =
      parsed(of(R"({"name":"m","type":"mass","parameters":{"mass_kg":3}},)"
                R"({"name":"hand","type":"flow_source","parameters":{"domain":"translation"},)"
                R"("inputs":{"flow":{"kind":"settable"}}})",
                R"({"kind":"connection","ports":["m.port","hand.port"]})"));
  const Linearisation own = linearised(scenario.system);
  EXPECT_FALSE(own.is_explicit);
  ASSERT_EQ(own.A.rows(), 2 + 4);
  EXPECT_EQ(own.state_names[2], "m.port.effort");
  // The pencil has no finite eigenvalue but that of the position, 0.
  const auto determinant = [&](double s) {
    return (s * MatrixXd(own.E) - MatrixXd(own.A)).determinant();
  };
  EXPECT_NEAR(determinant(2.0), 2.0 * determinant(1.0), 1e-12);
  EXPECT_NE(determinant(1.0), 0.0);
}

TEST(Linearisation, ANonlinearResistanceCountsWithItsSlope) {
  const Scenario scenario =
      parsed(of(R"({"name":"tank","type":"tank","parameters":{"area_m2":2}},)"
                R"({"name":"valve","type":"valve","parameters":{"nominal_flow_m3_per_s":0.01,)"
                R"("nominal_pressure_Pa":1e4,"laminar_pressure_Pa":1.0}})",
                R"({"kind":"connection","ports":["tank.outlet","valve.line"]})"));
  const auto at_level = [&](double level) {
    return linearised(scenario.system, {.state = {level}});
  };
  const Linearisation own = at_level(6.0);
  const double slope = own.A.coeff(0, 0), reach = 1e-3;
  EXPECT_LT(own.rate[0], -1e-3);
  EXPECT_NEAR(slope, (at_level(6.0 + reach).rate[0] - at_level(6.0 - reach).rate[0]) / (2 * reach),
              1e-6 * std::abs(slope));
  // Torricelli: the flow goes with the root of the level.
  EXPECT_NEAR(slope, own.rate[0] / (2.0 * 6.0), 1e-4 * std::abs(slope));
}

TEST(Linearisation, OfALongChainIsSparse) {
  SystemBuilder builder;
  constexpr int kBlocks = 2000;
  for (int i = 0; i < kBlocks; ++i) {
    builder.add(fmt::format("b{}", i), mass_spring_damper_chain({.masses = 2,
                                                                 .mass_kg = 1.0,
                                                                 .stiffness_N_per_m = 10,
                                                                 .damping_Ns_per_m = 0.1,
                                                                 .coupling_stiffness_N_per_m = 10,
                                                                 .left_end = ChainEnd::mass,
                                                                 .right_end = ChainEnd::spring}));
  }
  for (int i = 0; i + 1 < kBlocks; ++i) {
    builder.connect(fmt::format("b{}.right", i), fmt::format("b{}.left", i + 1));
  }
  builder.join(joint::Free{}, {"b0.left"});
  builder.join(joint::Fixed{}, {fmt::format("b{}.right", kBlocks - 1)});
  const System system = builder.build();
  const Linearisation own = linearised(system);
  EXPECT_TRUE(own.is_explicit);
  EXPECT_LE(own.A.nonZeros(), 8 * own.A.rows());
}

TEST(Linearisation, TellsEverythingThatIsWrong) {
  const Scenario scenario = parsed(probes()[0].scenario);
  try {
    static_cast<void>(linearised(
        scenario.system, {.state = {1, 2}, .input = {1, 2, 3}, .effort = {std::nan(""), 0.0}}));
    FAIL();
  } catch (const ConfigError& error) {
    ASSERT_EQ(error.issues().size(), 3U);
    EXPECT_EQ(error.issues()[0].where, "/state");
    EXPECT_EQ(error.issues()[0].what, "must have 5 numbers, one per state of each part, and has 2");
    EXPECT_EQ(error.issues()[1].where, "/input");
    EXPECT_EQ(error.issues()[2].where, "/effort");
  }
  EXPECT_THROW(static_cast<void>(linearised(scenario.system, {}, {{LinearOutput::Kind::flow, 7}})),
               ConfigError);
  Stepper stepper(scenario.system, scenario.options);
  EXPECT_THROW(static_cast<void>(linearise(stepper, {"A.storage"})), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(linearise(stepper, {"A.q7"})), std::out_of_range);
}

}  // namespace
}  // namespace portwave::test_linearise
