// Steps whose stages are damped, by waves: known numbers, order, the energy account, and which parts `auto` damps.

#include <cmath>
#include <cstdint>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/linear_networks.hpp"
#include "support/random_networks.hpp"
#include "support/systems.hpp"
#include "support/whole_system.hpp"

namespace portwave::test_damped_stages {
namespace {

StepperOptions options_of(int stages, double step_s, StageKind integrator = StageKind::damped) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(1e-13);
  options.method.waves().stages = stages;
  options.method.waves().integrator = integrator;
  return options;
}

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int part = 0; part < static_cast<int>(stepper.system().parts().size()); ++part) {
    out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
  }
  return out;
}

/// In the order of the condensed system.
Eigen::VectorXd states_in(const CondensedSystem& condensed, const Stepper& stepper) {
  Eigen::VectorXd out(condensed.Q().rows());
  for (int part = 0; part < static_cast<int>(condensed.system().parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part);
    if (x.empty()) continue;
    const int first = condensed.blocks()[at(condensed.block_of_part(part))].first;
    for (std::size_t i = 0; i < x.size(); ++i) out[first + static_cast<int>(i)] = x[i];
  }
  return out;
}

/// A mass under a force that changes keeps second order, whatever is damped elsewhere.
TEST(DampedStages, OfAnIslandLeaveTheInputsOfOthersInTheMiddleOfSteps) {
  const auto end = [](bool beside_a_decay, int steps) {
    SystemBuilder builder;
    builder.add("m", parts::mass({.mass_kg = 1.0}).build(),
                {.inputs = {{"force", Signal::expression("sin(t)")}}});
    builder.join(joint::Free{}, {"m.port"});
    if (beside_a_decay) {
      builder.add("c", parts::capacitor({.capacitance_F = 1e-6}).build(), {.initial_state = {1.0}});
      builder.join(joint::Resistive{1.0}, {"c.terminals"});
    }
    const System system = builder.build();
    Stepper stepper(system, options_of(1, 2.0 / steps, StageKind::automatic));
    stepper.step(steps);
    return stepper.state(0)[0];
  };
  const double exact = 2.0 - std::sin(2.0);  // the position
  EXPECT_EQ(end(true, 40), end(false, 40));
  EXPECT_NEAR(end(true, 40), exact, 5e-4);  // at the ends of steps: 2e-2
  EXPECT_GT(std::abs(end(true, 40) - exact), 1e-6);
}

/// A coil far in saturation behind a large resistance: one damped stage is implicit Euler, whatever hλ is. (With the
/// curvature at the start of the step in place of the end, a step left 62 % of the flux at every resistance.)
TEST(DampedStages, LetDecaysOfEveryConvexEnergyDie) {
  const double inductance_H = 0.5, saturation_Vs = 0.1, step_s = 0.1;
  for (const double resistance_ohm : {1.0, 1e2, 1e4, 1e9}) {
    SystemBuilder builder;
    builder.add("l",
                parts::saturating_inductor({.inductance_H = inductance_H,
                                            .saturation_flux_Vs = saturation_Vs,
                                            .resistance_ohm = resistance_ohm})
                    .build(),
                {.initial_state = {1.0}});
    builder.join(joint::Free{}, {"l.terminals"});
    const System system = builder.build();
    Stepper stepper(system, options_of(1, step_s));
    double flux = 1.0, stored_J = stepper.energy().initial_J;
    for (int k = 0; k < 3; ++k) {
      stepper.step(1);
      const auto current = [&](double own) {
        return own / inductance_H * (1.0 + own * own / (saturation_Vs * saturation_Vs));
      };
      double low = 0.0, high = flux;  // of x + hR i(x) = flux
      for (int i = 0; i < 200; ++i) {
        const double middle = 0.5 * (low + high);
        (middle + step_s * resistance_ohm * current(middle) > flux ? high : low) = middle;
      }
      flux = low;
      EXPECT_NEAR(stepper.state(0)[0], flux, 1e-10 * (1e-6 + flux)) << resistance_ohm << ", " << k;
      stored_J -= step_s * resistance_ohm * current(flux) * current(flux);
    }
    const EnergyTotals& energy = stepper.energy();
    EXPECT_GT(energy.numerical_dissipation_J, 0.0);
    EXPECT_NEAR(energy.final_J, stored_J - energy.numerical_dissipation_J,
                1e-12 * energy.initial_J);
  }
}

// From an independent prototype that solves the stages of the whole system at once (Radau's nodes, θ = 1, K the
// positive part of the Hessian at the start of the step).
TEST(DampedStages, OfTheDuffingPairHaveTheKnownErrors) {
  struct Known {
    int stages;
    double step_s, error, numerical_J;
  };
  constexpr double q1 = -0.2774531015, q2 = 0.0905967774;  // exact at 10 s
  const System system = testing::duffing_linear_pair();
  for (const Known& known :
       {Known{2, 0.04, 5.1653e-1, 29.41596}, Known{2, 0.02, 9.3412e-2, 6.775515},
        Known{2, 0.01, 4.8408e-2, 0.9657002}, Known{3, 0.04, 1.7833e-2, 0.3204987},
        Known{3, 0.02, 6.1414e-4, 1.073703e-2}, Known{3, 0.01, 1.9469e-5, 3.408942e-4}}) {
    Stepper stepper(system, options_of(known.stages, known.step_s));
    stepper.step(std::lround(10.0 / known.step_s));
    const double error = std::hypot(stepper.state(0)[0] - q1, stepper.state(1)[0] - q2);
    EXPECT_NEAR(error, known.error, 2e-4 * known.error) << known.stages << ", " << known.step_s;
    const EnergyTotals energy = stepper.energy();
    EXPECT_NEAR(energy.numerical_dissipation_J, known.numerical_J, 1e-6 * known.numerical_J)
        << known.stages << ", " << known.step_s;
    const double open = energy.final_J - energy.initial_J - energy.supplied_J +
                        energy.dissipated_J + energy.numerical_dissipation_J + energy.mismatch_J;
    EXPECT_LT(std::abs(open), 1e-11 * energy.initial_J);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
  Stepper one(system, options_of(1, 0.01));
  one.step(1000);
  EXPECT_NEAR(one.energy().numerical_dissipation_J, 67.6, 0.05);
}

TEST(DampedStages, OfTheSingleRateChainsHaveTheKnownErrors) {
  struct Known {
    int stages, power;
    double error;
  };
  const System system = testing::single_rate_chains();
  const CondensedSystem condensed(system);
  const Eigen::VectorXd exact = testing::exact_state(condensed, 2.0);
  for (const Known& known :
       {Known{1, 7, 0.27322}, Known{1, 9, 0.18131}, Known{1, 11, 0.065912}, Known{2, 7, 1.2467e-3},
        Known{2, 9, 1.9413e-5}, Known{2, 11, 3.0271e-7}, Known{3, 7, 4.7603e-7},
        Known{3, 9, 4.6272e-10}}) {
    const double h = std::ldexp(1.0, -known.power);
    Stepper stepper(system, options_of(known.stages, h));
    stepper.step(std::lround(2.0 / h));
    EXPECT_NEAR((states_in(condensed, stepper) - exact).norm(), known.error, 2e-3 * known.error)
        << known.stages << " stages, h = 2^-" << known.power;
  }
}

// Closed form of a capacitor that discharges through a diode beside a resistor, by a solver of its own.
TEST(DampedStages, DischargeACapacitorThroughADiode) {
  SystemBuilder builder;
  builder.add("c", parts::capacitor({.capacitance_F = 1e-5}), {.initial_state = {5.0}});
  builder.add("d", parts::diode({.saturation_current_A = 1e-9, .emission_coefficient = 1.8}));
  builder.add("r", parts::resistor({.resistance_ohm = 1000.0, .gives = "current"}));
  builder.join(joint::CommonEffort{}, {"c.terminals", "d.terminals", "r.terminals"});
  const System system = builder.build();
  const auto voltage = [](const Stepper& stepper) { return stepper.state(0)[0]; };
  for (const StageKind integrator : {StageKind::damped, StageKind::automatic}) {
    Stepper coarse(system, options_of(1, 1e-4, integrator));
    coarse.step();
    EXPECT_NEAR(voltage(coarse), 0.9225, 1e-4);
    coarse.step(9);
    EXPECT_NEAR(voltage(coarse), 0.59817, 1e-5);
    coarse.step(90);
    EXPECT_NEAR(voltage(coarse), 0.23364, 1e-5);
    Stepper fine(system, options_of(1, 1e-5, integrator));
    fine.step(100);
    EXPECT_NEAR(voltage(fine), 0.57662, 1e-5);
    fine.step(900);
    EXPECT_NEAR(voltage(fine), 0.22659, 1e-5);
  }
  Stepper gauss(system, options_of(1, 1e-4, StageKind::gauss));
  gauss.step(2);
  EXPECT_LT(voltage(gauss), -1.0);  // what damping is for
}

/// R(z) of Radau IIA with s stages.
double radau(int stages, double z) {
  if (stages == 1) return 1.0 / (1.0 - z);
  if (stages == 2) return (1.0 + z / 3.0) / (1.0 - 2.0 * z / 3.0 + z * z / 6.0);
  return (1.0 + 2.0 * z / 5.0 + z * z / 20.0) /
         (1.0 - 3.0 * z / 5.0 + 3.0 * z * z / 20.0 - z * z * z / 60.0);
}

System decay(double capacitance, double resistance) {
  SystemBuilder builder;
  builder.add("c", parts::capacitor({.capacitance_F = capacitance}), {.initial_state = {1.0}});
  builder.add("r", parts::resistor({.resistance_ohm = resistance, .gives = "current"}));
  builder.connect("c.terminals", "r.terminals");
  return builder.build();
}

TEST(DampedStages, DecayAsRadauDoesHoweverStiff) {
  for (int stages = 1; stages <= 3; ++stages) {
    for (const double h_lambda : {0.1, 3.0, 1e2, 1e5, 1e12}) {
      for (const double unit : {1e-9, 1.0, 1e9}) {
        const System system = decay(1e-3 * unit, 1e3 / (h_lambda * unit));  // λ = h_lambda/s
        Stepper stepper(system, options_of(stages, 1.0));
        stepper.step();
        const double left = stepper.state(0)[0];
        EXPECT_NEAR(left, radau(stages, -h_lambda), 1e-13)
            << stages << " stages, " << h_lambda << ", units of " << unit;
        const EnergyTotals energy = stepper.energy();
        EXPECT_NEAR(energy.final_J + energy.dissipated_J + energy.numerical_dissipation_J,
                    energy.initial_J, 1e-13 * energy.initial_J);
        EXPECT_GE(energy.numerical_dissipation_J, 0.0);
        EXPECT_GE(energy.dissipated_J, -1e-14 * energy.initial_J);
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
      }
    }
  }
}

/// One step of Radau IIA of ẋ = Ax, all stages at once.
Eigen::VectorXd radau_step(const StageRule& rule, const Eigen::MatrixXd& A,
                           const Eigen::VectorXd& x, double h) {
  const Eigen::Index n = x.size();
  Eigen::MatrixXd lhs = Eigen::MatrixXd::Identity(rule.count * n, rule.count * n);
  for (int i = 0; i < rule.count; ++i) {
    for (int j = 0; j < rule.count; ++j) {
      lhs.block(i * n, j * n, n, n) -=
          h * rule.A[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] * A;
    }
  }
  const Eigen::VectorXd rates = lhs.lu().solve((A * x).replicate(rule.count, 1));
  Eigen::VectorXd out = x;
  for (int i = 0; i < rule.count; ++i) {
    out += h * rule.b[static_cast<std::size_t>(i)] * rates.segment(i * n, n);
  }
  return out;
}

TEST(DampedStages, OfRandomNetworksAreRadauIIAOfTheWhole) {
  int compared = 0;
  for (unsigned seed = 1; seed <= 1000 && compared < 12; ++seed) {
    const System system = testing::random_network({}, seed);
    std::optional<CondensedSystem> whole;
    try {
      whole.emplace(system);
    } catch (const ConfigError&) {  // dampers that parts share
      continue;
    }
    ++compared;
    const CondensedSystem& condensed = *whole;
    const Eigen::MatrixXd A =
        Eigen::MatrixXd(condensed.J_local() + condensed.J_coupling() - condensed.R()) *
        Eigen::MatrixXd(condensed.Q());
    for (int stages = 1; stages <= 3; ++stages) {
      for (const double h : {0.01, 0.3, 10.0}) {
        const StageRule rule = damped(stage_rule(stages, StageNodes::radau));
        Stepper stepper(system, options_of(stages, h));
        const Eigen::VectorXd start = states_in(condensed, stepper);
        Eigen::VectorXd y = start;
        for (int n = 0; n < 5; ++n) {
          stepper.step();
          y = radau_step(rule, A, y, h);
        }
        EXPECT_LT((states_in(condensed, stepper) - y).norm(), 1e-9 * start.norm())
            << seed << ", " << stages << ", h = " << h;
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << seed;
      }
    }
  }
  EXPECT_GE(compared, 5);
}

TEST(DampedStages, AreChosenForPartsThatDecayFarFasterThanTheStep) {
  const auto damped_in = [](const System& system, double h) {
    return Stepper(system, options_of(1, h, StageKind::automatic)).waves()->damped_parts();
  };
  EXPECT_EQ(damped_in(decay(1e-3, 1.0), 1e-3), 0);  // hλ = 1
  EXPECT_EQ(damped_in(decay(1e-3, 1.0), 0.1), 1);   // hλ = 100
  EXPECT_EQ(damped_in(testing::duffing_linear_pair(), 0.01), 0);
  EXPECT_EQ(damped_in(testing::single_rate_chains(), 0.1), 0);
  SystemBuilder rigid;  // what stores does not decay, however stiff
  rigid.add("a", parts::inertia({.inertia_kgm2 = 1.0}));
  rigid.add("b", parts::inertia({.inertia_kgm2 = 3.0}));
  rigid.join(joint::CommonFlow{}, {"a.shaft", "b.shaft"});
  EXPECT_EQ(damped_in(rigid.build(), 10.0), 0);
  SystemBuilder
      swinging;  // a stiff damper between masses on springs: their common swing must not be damped
  swinging.add("a", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}));
  swinging.add("d", parts::damper({.damping_Ns_per_m = 1e6}));
  swinging.add("b", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}));
  swinging.connect("a.coupling", "d.left");
  swinging.connect("d.right", "b.coupling");
  const System oscillators = swinging.build();
  EXPECT_GT(fastest_decays(oscillators, 0.01)[0].h_lambda, 1e3);
  EXPECT_EQ(damped_in(oscillators, 0.01), 0);
  SystemBuilder rubbing;  // the same without springs
  rubbing.add("a", parts::mass({.mass_kg = 1}));
  rubbing.add("d", parts::damper({.damping_Ns_per_m = 1e6}));
  rubbing.add("b", parts::mass({.mass_kg = 3}), {.initial_state = {0.0, 1.0}});
  rubbing.connect("a.port", "d.left");
  rubbing.connect("d.right", "b.port");
  const System masses = rubbing.build();
  EXPECT_EQ(damped_in(masses, 0.01), 2);
  Stepper sliding(masses, options_of(1, 0.01, StageKind::automatic));
  sliding.step(10);
  EXPECT_NEAR(sliding.state(0)[1], 0.75, 1e-9);
  EXPECT_NEAR(sliding.state(2)[1], 0.75, 1e-9);
  SystemBuilder two;  // capacitors through next to nothing
  two.add("a", parts::capacitor({.capacitance_F = 1e-3}), {.initial_state = {10.0}});
  two.add("r", parts::resistor({.resistance_ohm = 1e-6}));
  two.add("b", parts::capacitor({.capacitance_F = 1e-3}));
  two.join(joint::CommonFlow{}, {"a.terminals", "r.terminals", "b.terminals"});
  const System capacitors = two.build();
  EXPECT_EQ(damped_in(capacitors, 1e-3), 2);
  Stepper stepper(capacitors, options_of(1, 1e-3, StageKind::automatic));
  stepper.step(10);
  EXPECT_NEAR(stepper.state(0)[0], 5.0, 1e-6);
  EXPECT_NEAR(stepper.state(2)[0], -5.0, 1e-6);  // efforts of a common flow add up to 0
  EXPECT_NEAR(stepper.energy().dissipated_J + stepper.energy().numerical_dissipation_J, 0.025,
              1e-6);
}

/// Two storages of 1, each at 1 K or -1 K. The first gives what the second takes: through a resistance in the second,
/// or as it stands, where the second is a storage of the other kind.
System two_storages(bool behind_a_resistance) {
  const auto storage = [](Causality causality, double conductance) {
    Structure s = Structure::zero(1, 1);
    if (conductance > 0.0) {
      s.R.insert(0, 0) = conductance;
      s.P.insert(0, 0) = -conductance;
      s.S.insert(0, 0) = conductance;
    } else {
      s.G.insert(0, 0) = 1.0;
    }
    SparseMatrix Q(1, 1);
    Q.insert(0, 0) = 1.0;
    return std::make_shared<LinearPortHamiltonian>(
        Signature{"storage", {{"T", "K"}}, {{"port", causality, Domain::generic, 1}}, {}},
        std::move(s), Q);
  };
  SystemBuilder builder;
  builder.add("a", storage(Causality::flow_in, 0.0), {.initial_state = {1.0}});
  builder.add("b", storage(Causality::effort_in, behind_a_resistance ? 1e6 : 0.0),
              {.initial_state = {-1.0}});
  builder.connect("a.port", "b.port");
  return builder.build();
}

TEST(DampedStages, AreChosenForStoragesThatMeetBehindAResistance) {
  EXPECT_EQ(islands_that_may_oscillate(two_storages(true)), std::vector<char>{0});
  EXPECT_EQ(islands_that_may_oscillate(two_storages(false)), std::vector<char>{1});  // control
  const System system = two_storages(true);
  Stepper stepper(system, options_of(1, 1.0, StageKind::automatic));
  stepper.step();
  EXPECT_NEAR(stepper.state(0)[0], 0.0, 1e-5);  // conserving steps exchange the two
  EXPECT_NEAR(stepper.state(1)[0], 0.0, 1e-5);
}

TEST(DampedStages, LeaveSystemsThatAreResolvedAsTheyAre) {
  for (const bool pair : {true, false}) {
    const System system = pair ? testing::duffing_linear_pair() : testing::single_rate_chains();
    Stepper automatic(system, options_of(1, 0.01, StageKind::automatic));
    Stepper gauss(system, options_of(1, 0.01, StageKind::gauss));
    automatic.step(100);
    gauss.step(100);
    EXPECT_EQ(states_of(automatic), states_of(gauss));
    EXPECT_EQ(automatic.energy().numerical_dissipation_J, 0.0);
  }
}

TEST(DampedStages, MayBeThoseOfSomePartsAlone) {
  SystemBuilder builder;
  builder.add("A", parts::capacitor({.capacitance_F = 1.0}),
              {.initial_state = {1.0}, .integrator = StageKind::damped});
  builder.add("L", parts::inductor({.inductance_H = 1.0}));
  builder.connect("A.terminals", "L.terminals");
  const System system = builder.build();
  Stepper stepper(system, options_of(1, 0.1, StageKind::gauss));
  EXPECT_EQ(stepper.waves()->damped_parts(), 1);
  // The capacitor by implicit Euler beside the inductor by the midpoint: u⁺ = u − h ī, i⁺ = i + h u⁺.
  double u = 1.0, i = 0.0, numerical_J = 0.0;
  for (int n = 0; n < 20; ++n) {
    stepper.step();
    const double next = (u - 0.1 * i) / (1.0 + 0.005);
    numerical_J += 0.5 * (next - u) * (next - u);
    u = next;
    i += 0.1 * next;
    EXPECT_NEAR(stepper.state(0)[0], u, 1e-13) << n;
    EXPECT_NEAR(std::abs(stepper.state(1)[0]), std::abs(i), 1e-13) << n;
  }
  EXPECT_NEAR(stepper.energy().numerical_dissipation_J, numerical_J, 1e-14);
  EXPECT_EQ(stepper.waves()->energies_of(1).numerical_dissipation_J, 0.0);
  EXPECT_GT(stepper.waves()->energies_of(0).numerical_dissipation_J, 0.0);
}

/// 1 µs behind a slow source, which is 6.28 µV at 2 s. What conserving stages leave of the decay turns over
/// with every step, within the tolerance; damped ones leave nothing.
TEST(DampedStages, OfChosenSizeKeepToTheirTolerance) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["effort"] = Signal::expression("sin(2*pi*t)");
  builder.add("v", parts::effort_source({.domain = "electrical"}), options);
  builder.add("r", parts::resistor({.resistance_ohm = 1.0}));
  builder.add("c", parts::capacitor({.capacitance_F = 1e-6}));
  builder.join(joint::CommonFlow{}, {"v.port", "r.terminals", "c.terminals"});
  const System system = builder.build();
  constexpr double kOmega = 2.0 * std::numbers::pi;
  const double exact_V = 1e-6 * kOmega;  // the efforts of a common flow add up to 0
  for (const double tolerance : {1e-3, 1e-5, 1e-7}) {
    std::int64_t steps[2] = {0, 0};
    double error_V[2] = {0.0, 0.0};
    for (const StageKind kind : {StageKind::gauss, StageKind::damped}) {
      const int i = kind == StageKind::gauss ? 0 : 1;
      StepperOptions chosen;
      chosen.step_s = 0.1;
      chosen.sizes = StepSizes{.tolerance = tolerance};
      chosen.method.waves().stages = 3;
      chosen.method.waves().integrator = kind;
      Stepper stepper(system, chosen);
      while (stepper.step_if_before(2.0)) ++steps[i];
      error_V[i] = std::abs(stepper.state("c")[0] - exact_V);
      EXPECT_LE(error_V[i], tolerance);
    }
    EXPECT_LE(steps[1], steps[0]) << tolerance;
    EXPECT_LE(error_V[1], 0.1 * error_V[0]) << tolerance;
  }
}

TEST(DampedStages, AreRefusedWhereTheyCannotBe) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
              {.integrator = StageKind::damped});
  builder.join(joint::Free{}, {"A.coupling"});
  const System alone = builder.build();
  StepperOptions strang = options_of(1, 0.01);
  strang.method = CouplingMethod::of_kind(SplittingKind::strang);
  EXPECT_THROW(Stepper(alone, strang), ConfigError);
}

}  // namespace
}  // namespace portwave::test_damped_stages
