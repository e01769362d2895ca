// What `auto` damps where energy swings: states that a resistance of their own brings to rest, and nothing else.

#include <cmath>
#include <complex>
#include <string>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/coupling/impedance/integrator_choice.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_own_decays {
namespace {

StepperOptions options_of(StageKind integrator, double step_s, int stages = 1) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(1e-12);
  options.method.waves().stages = stages;
  options.method.waves().integrator = integrator;
  return options;
}

/// exp(tA)x by eigenvectors.
Eigen::VectorXd moved(const Eigen::MatrixXd& A, const Eigen::VectorXd& x, double t) {
  const Eigen::EigenSolver<Eigen::MatrixXd> solver(A);
  const Eigen::VectorXcd share = solver.eigenvectors().lu().solve(x.cast<std::complex<double>>());
  const Eigen::VectorXcd factors = (t * solver.eigenvalues()).array().exp();
  return (solver.eigenvectors() * factors.cwiseProduct(share)).real();
}

constexpr double kResistance = 1.0, kInductance = 2e-5, kConstant = 0.02, kInertia = 1e-3,
                 kStiffness = 0.1;

/// A motor, shorted, on a torsional spring: the winding decays within .02 ms, the rotor swings with 10 rad/s.
System swinging_motor() {
  SystemBuilder builder;
  builder.add("m",
              parts::dc_motor({.inductance_H = kInductance,
                               .resistance_ohm = kResistance,
                               .motor_constant_Vs_per_rad = kConstant,
                               .inertia_kgm2 = kInertia}),
              {.initial_state = {5.0, 0.0, 20.0}});
  builder.add("k", parts::torsional_spring({.stiffness_Nm_per_rad = kStiffness}));
  builder.join(joint::Free{}, {"m.terminals"});
  builder.connect("m.shaft", "k.left");
  builder.join(joint::Fixed{}, {"k.right"});
  return builder.build();
}

/// Of current, twist (as the angle of the rotor) and speed.
Eigen::VectorXd exact_motor(double t) {
  Eigen::MatrixXd A(3, 3);
  A << -kResistance / kInductance, 0.0, -kConstant / kInductance,  //
      0.0, 0.0, 1.0,                                               //
      kConstant / kInertia, -kStiffness / kInertia, 0.0;
  return moved(A, Eigen::Vector3d(5.0, 0.0, 20.0), t);
}

double worst_speed(StageKind integrator, double* current, std::string* told, double* numerical_J) {
  constexpr double kStep = 1e-3;
  const System system = swinging_motor();
  Stepper stepper(system, options_of(integrator, kStep));
  double worst = 0.0;
  for (int k = 1; k <= 2000; ++k) {
    stepper.step();
    const Eigen::VectorXd exact = exact_motor(k * kStep);
    worst = std::max(worst, std::abs(stepper.state(0)[2] - exact[2]));
    if (k == 10) *current = std::abs(stepper.state(0)[0] - exact[0]);
  }
  const EnergyTotals& energy = stepper.energy();
  EXPECT_NEAR(energy.final_J + energy.dissipated_J + energy.numerical_dissipation_J,
              energy.initial_J, 1e-11 * energy.initial_J);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  *told = stepper.waves()->integrators().text(system);
  *numerical_J = energy.numerical_dissipation_J;
  return worst;
}

TEST(OwnDecays, OfAMotorsWindingDieWhileTheRotorSwings) {
  double current = 0.0, numerical_J = 0.0;
  std::string told;
  const double error = worst_speed(StageKind::automatic, &current, &told, &numerical_J);
  EXPECT_LT(error, 0.02 * 20.0);
  EXPECT_LT(current, 0.01 * 5.0);
  EXPECT_NE(told.find("\"m.current\" decays by h·λ = 50"), std::string::npos) << told;
  // Of .2 J. The first step takes what the current had before it was that of the rotor's voltage, .4 A the other way;
  // the swing pays next to nothing.
  const double of_start_J = 0.5 * kInductance * 5.4 * 5.4;
  EXPECT_NEAR(numerical_J, of_start_J, 0.1 * of_start_J);
  // Controls: conserving steps turn the current over, damping all states takes the swing.
  (void)worst_speed(StageKind::gauss, &current, &told, &numerical_J);
  EXPECT_GT(current, 0.3 * 5.0);
  const double of_all = worst_speed(StageKind::damped, &current, &told, &numerical_J);
  EXPECT_GT(of_all, 2.0 * error);
  EXPECT_GT(numerical_J, 5e-3);
}

TEST(OwnDecays, OfAWindingAreLeftToStepsThatResolveThem) {
  const System system = swinging_motor();
  const auto damped_with = [&](double step_s, int stages) {
    return choose_integrators(system,
                              options_of(StageKind::automatic, step_s, stages).method.waves(),
                              step_s, /*is_adaptive=*/false)
        .damped_parts;
  };
  EXPECT_EQ(damped_with(5e-5, 1), 0);    // hλ = 2.5
  EXPECT_EQ(damped_with(1.5e-4, 1), 0);  // 7.5
  EXPECT_EQ(damped_with(2e-4, 1), 1);    // 10
  EXPECT_EQ(damped_with(2e-4, 3), 0);    // three stages resolve that
  EXPECT_EQ(damped_with(1e-3, 3), 1);
}

/// What dies in the first step is no motion that is not resolved; weak damping lets it turn over, and is told.
TEST(OwnDecays, AreResolvedWhereTheyDie) {
  const System system = swinging_motor();
  for (int stages = 1; stages <= 3; ++stages) {
    Stepper stepper(system, options_of(StageKind::automatic, 1e-3, stages));
    stepper.step(200);
    EXPECT_EQ(stepper.waves()->damped_parts(), 1) << stages;
    EXPECT_EQ(stepper.resolution().value().kind, Resolution::Kind::resolved) << stages;
  }
  for (const double theta : {1.0, 0.01}) {
    SystemBuilder builder;
    builder.add(
        "c", parts::capacitor({.capacitance_F = 1e-3}),
        {.initial_state = {1.0}, .integrator = StageKind::damped, .damping = {.theta = theta}});
    builder.add("r", parts::resistor({.resistance_ohm = 1.0, .gives = "current"}));
    builder.connect("c.terminals", "r.terminals");
    const System decay = builder.build();
    Stepper stepper(decay, options_of(StageKind::gauss, 0.1));
    stepper.step(200);
    EXPECT_EQ(stepper.resolution().value().kind == Resolution::Kind::resolved, theta == 1.0);
  }
}

/// A mass in thick oil on a soft spring: it creeps, x = exp(−kt/c).
TEST(OwnDecays, OfAMassInThickOilLetItCreep) {
  for (const bool is_own : {true, false}) {
    const double oil = 1e4, stiffness = 100.0, step_s = 0.01;
    SystemBuilder builder;
    builder.add("m",
                parts::mass({.mass_kg = 1.0, .damping_Ns_per_m = is_own ? oil : 0.0, .ports = 2}),
                {.initial_state = {0.0, 1.0}});
    builder.add("k", parts::spring({.stiffness_N_per_m = stiffness}), {.initial_state = {0.1}});
    builder.connect("m.port_1", "k.right");
    builder.join(joint::Fixed{}, {"k.left"});
    if (is_own) {
      builder.join(joint::Free{}, {"m.port_2"});
    } else {
      builder.add("c", parts::damper({.damping_Ns_per_m = oil}));
      builder.connect("m.port_2", "c.right");
      builder.join(joint::Fixed{}, {"c.left"});
    }
    const System system = builder.build();
    Stepper stepper(system, options_of(StageKind::automatic, step_s));
    EXPECT_EQ(stepper.waves()->damped_parts(), 1) << is_own;
    stepper.step(5);
    EXPECT_NEAR(stepper.state(0)[1], -stiffness / oil * 0.1, 1e-6) << is_own;
    Stepper gauss(system, options_of(StageKind::gauss, step_s));
    gauss.step(5);
    EXPECT_GT(std::abs(gauss.state(0)[1]), 0.3) << is_own;  // what damping is for
  }
}

/// The damper between two masses takes nothing of what they have in common, nor does a resistance that two states of a
/// part share.
TEST(OwnDecays, AreNotThoseOfWhatIsShared) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}));
  builder.add("d", parts::damper({.damping_Ns_per_m = 1e6}));
  builder.add("b", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}));
  builder.connect("a.coupling", "d.left");
  builder.connect("d.right", "b.coupling");
  const System system = builder.build();
  EXPECT_EQ(choose_integrators(system, options_of(StageKind::automatic, 0.01).method.waves(), 0.01,
                               /*is_adaptive=*/false)
                .damped_parts,
            0);
}

}  // namespace
}  // namespace portwave::test_own_decays
