// Steps whose stages are damped, by waves: known numbers, order, the energy account, and which parts `auto` damps.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numbers>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/coupling/network/condensed.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/systems.hpp"
#include "support/systems/whole_system.hpp"

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

// Golden numbers: of an independent prototype that solves the stages of the whole system at once (Radau's nodes, θ = 1,
// K the positive part of the Hessian at the start of the step). Each is tested to half a unit of its last digit.
/// A printed number, and half a unit of its last digit.
struct Printed {
  double value, half_unit;
};

Printed printed(const std::string& digits) {
  const std::size_t e = std::min(digits.find('e'), digits.size());
  const std::size_t point = std::min(digits.find('.'), e);
  const double places = e > point ? static_cast<double>(e - point) - 1.0 : 0.0;
  const double power = e < digits.size() ? std::stod(digits.substr(e + 1)) : 0.0;
  return {std::stod(digits), 0.5000001 * std::pow(10.0, power - places)};
}

void expect_digits(double found, const std::string& digits, const std::string& where) {
  const Printed known = printed(digits);
  EXPECT_LE(std::abs(found - known.value), known.half_unit)
      << where << ": " << found << " in place of " << digits;
}

TEST(DampedStages, Control_DigitsAreToldApart) {
  const auto agrees = [](double found, const std::string& digits) {
    return std::abs(found - printed(digits).value) <= printed(digits).half_unit;
  };
  EXPECT_TRUE(agrees(0.516534, "5.1653e-1") && !agrees(0.516536, "5.1653e-1"));
  EXPECT_TRUE(agrees(29.415964, "29.41596") && !agrees(29.415966, "29.41596"));
  EXPECT_TRUE(agrees(-2.264, "-2.26") && !agrees(-2.266, "-2.26"));
}

TEST(DampedStages, OfTheDuffingPairHaveTheKnownErrors) {
  struct Known {
    int stages;
    double step_s;
    const char *error, *numerical_J;
  };
  constexpr double q1 = -0.2774531015, q2 = 0.0905967774;  // exact at 10 s
  const System system = testing::duffing_linear_pair();
  for (const Known& known :
       {Known{2, 0.04, "5.1653e-1", "29.41596"}, Known{2, 0.02, "9.3412e-2", "6.775515"},
        Known{2, 0.01, "4.8408e-2", ".9657002"}, Known{3, 0.04, "1.7833e-2", ".3204987"},
        Known{3, 0.02, "6.1414e-4", "1.073703e-2"}, Known{3, 0.01, "1.9469e-5", "3.408942e-4"}}) {
    const std::string where = fmt::format("{} stages, h = {}", known.stages, known.step_s);
    Stepper stepper(system, options_of(known.stages, known.step_s));
    stepper.step(std::lround(10.0 / known.step_s));
    const double error = std::hypot(stepper.state(0)[0] - q1, stepper.state(1)[0] - q2);
    expect_digits(error, known.error, where);
    const EnergyTotals energy = stepper.energy();
    expect_digits(energy.numerical_dissipation_J, known.numerical_J, where);
    const double open = energy.final_J - energy.initial_J - energy.supplied_J +
                        energy.dissipated_J + energy.numerical_dissipation_J + energy.mismatch_J;
    EXPECT_LT(std::abs(open), 1e-11 * energy.initial_J) << where;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << where;
  }
  Stepper one(system, options_of(1, 0.01));
  one.step(1000);
  expect_digits(one.energy().numerical_dissipation_J, "67.6", "one stage");
  expect_digits(one.energy().initial_J, "68.8", "one stage");
}

TEST(DampedStages, OfTheSingleRateChainsHaveTheKnownErrors) {
  struct Known {
    int stages, power;
    const char* error;
  };
  const System system = testing::single_rate_chains();
  const CondensedSystem condensed(system);
  const Eigen::VectorXd exact = testing::exact_state(condensed, 2.0);
  const auto error_of = [&](int stages, int power) {
    const double h = std::ldexp(1.0, -power);
    Stepper stepper(system, options_of(stages, h));
    stepper.step(std::lround(2.0 / h));
    return (states_in(condensed, stepper) - exact).norm();
  };
  for (const Known& known : {Known{1, 7, ".27322"}, Known{1, 9, ".18131"}, Known{1, 11, ".065912"},
                             Known{2, 7, "1.2467e-3"}, Known{2, 9, "1.9413e-5"},
                             Known{2, 11, "3.0271e-7"}, Known{3, 7, "4.7603e-7"}}) {
    expect_digits(error_of(known.stages, known.power), known.error,
                  fmt::format("{} stages, h = 2^-{}", known.stages, known.power));
  }
  // The prototype gives 4.6272e-10 and 4.6e-13, rounded by a unit of these digits as all sums of doubles are. These are
  // R(hA)ⁿ x in extended precision, R being Padé's (2, 3).
  EXPECT_NEAR(error_of(3, 9), 4.627256e-10, 1e-14);
  EXPECT_NEAR(error_of(3, 11), 4.511698e-13, 1e-14);
}

constexpr double kCapacitance_F = 1e-5, kResistance_ohm = 1000.0, kSaturation_A = 1e-9,
                 kEmission = 1.8, kStart_V = 5.0;

/// 10 µF from 5 V, discharged through 1 kΩ beside a diode.
System diode_case() {
  SystemBuilder builder;
  builder.add("c", parts::capacitor({.capacitance_F = kCapacitance_F}),
              {.initial_state = {kStart_V}});
  builder.add("d", parts::diode(
                       {.saturation_current_A = kSaturation_A, .emission_coefficient = kEmission}));
  builder.add("r", parts::resistor({.resistance_ohm = kResistance_ohm, .gives = "current"}));
  builder.join(joint::CommonEffort{}, {"c.terminals", "d.terminals", "r.terminals"});
  return builder.build();
}

/// −u̇ of the diode case, with nV_T = 46.5336 mV.
double discharge_V_per_s(double u) {
  constexpr double kThermal_V = 0.0465336;
  return (kSaturation_A * std::expm1(u / kThermal_V) + u / kResistance_ohm) / kCapacitance_F;
}

/// u(t): t is the integral of 1/(−u̇) from u to the start, which bisection inverts.
double discharged_V(double time_s) {
  const auto time_to = [](double u) {
    double sum = 0.0;
    constexpr int kPieces = 4000;  // in log u, by Simpson's rule
    const double first = std::log(u), piece = (std::log(kStart_V) - first) / kPieces;
    const auto f = [](double log_u) {
      return std::exp(log_u) / discharge_V_per_s(std::exp(log_u));
    };
    for (int i = 0; i < kPieces; ++i) {
      const double a = first + i * piece;
      sum += piece / 6.0 * (f(a) + 4.0 * f(a + 0.5 * piece) + f(a + piece));
    }
    return sum;
  };
  double low = 1e-6, high = kStart_V;
  for (int i = 0; i < 60; ++i) {
    const double middle = std::sqrt(low * high);
    (time_to(middle) < time_s ? high : low) = middle;
  }
  return low;
}

TEST(DampedStages, TheTruthOfTheDiodeCase) {
  const std::pair<double, const char*> known[] = {
      {1e-6, ".92868"}, {1e-4, ".71071"}, {1e-3, ".57337"}, {1e-2, ".22554"}, {5e-2, ".0041297"}};
  for (const auto& [time_s, digits] : known) {
    expect_digits(discharged_V(time_s), digits, fmt::format("{} s", time_s));
  }
  // Chosen steps find it.
  const System system = diode_case();
  StepperOptions chosen = options_of(0, 1e-4, StageKind::automatic);
  chosen.method = WaveCoupling::automatic_with_stages(0);
  chosen.sizes = StepSizes{.tolerance = 1e-8};
  Stepper stepper(system, chosen);
  for (const auto& [time_s, digits] : known) {
    stepper.run_until(time_s);
    EXPECT_NEAR(stepper.state(0)[0], discharged_V(time_s), 1e-5) << time_s;
  }
}

TEST(DampedStages, DischargeACapacitorThroughADiode) {
  const System system = diode_case();
  const auto voltage = [](const Stepper& stepper) { return stepper.state(0)[0]; };
  for (const StageKind integrator : {StageKind::damped, StageKind::automatic}) {
    const std::string where{to_string(integrator)};
    Stepper coarse(system, options_of(1, 1e-4, integrator));
    coarse.step();
    expect_digits(voltage(coarse), ".9225", where);
    coarse.step(9);
    expect_digits(voltage(coarse), ".59817", where);
    coarse.step(90);
    expect_digits(voltage(coarse), ".23364", where);
    Stepper fine(system, options_of(1, 1e-5, integrator));
    fine.step(100);
    expect_digits(voltage(fine), ".57662", where);
    fine.step(900);
    expect_digits(voltage(fine), ".22659", where);
  }
  // One damped stage is never below the truth; more overshoot in the step in which the diode conducts.
  Stepper one(system, options_of(1, 1e-4));
  for (int n = 1; n <= 100; ++n) {
    one.step();
    EXPECT_GT(voltage(one), discharged_V(n * 1e-4)) << n;
  }
  for (const auto& [stages, digits] : {std::pair{2, "-2.26"}, std::pair{3, "-2.63"}}) {
    StepperOptions plain = options_of(stages, 1e-4);
    plain.method.waves().kind = WaveUpdate::interface;
    plain.method.waves().iterations = 100;
    Stepper several(system, plain);
    several.step();
    expect_digits(voltage(several), digits, fmt::format("{} stages", stages));
    // With the methods that are chosen such a step is taken in pieces.
    Stepper in_pieces(system, options_of(stages, 1e-4));
    for (int n = 1; n <= 20; ++n) {
      in_pieces.step();
      EXPECT_NEAR(voltage(in_pieces), discharged_V(n * 1e-4), 1e-3) << stages << ' ' << n;
    }
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
