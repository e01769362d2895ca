// An arm of seven links on elastic joints with gears and motors, coupled from its parts, against the same
// system in one integration by SUNDIALS.

#include <algorithm>
#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "agreement/robot_arm.hpp"
#include "agreement/sundials_reference.hpp"
#include "portwave/runtime/scenario/scenario.hpp"

namespace portwave {
namespace {

using agreement::kJoints;
using agreement::RobotArm;
using agreement::Unknowns;

constexpr double kEnd_s = 0.3;

/// SUNDIALS 6.4.1, ERKStep with FEHLBERG_13_7_8 at tolerances of 1e-12, after 0.3 s: the order of
/// `Unknowns`. CVODE's Adams methods agree with it to 5e-14 rad in angles, and to 3e-11 in all.
constexpr Unknowns kAtTheEnd = {
    0.728558638015668, -0.605196849011052, 0.665482529876274,  -0.237119048933048,
    0.279983586403155, -0.284932565335834, 0.554717042901499,  1.10392816700355,
    -1.67203107139652, 1.62996462328223,   -2.50427404912677,  3.66520319719637,
    -3.19382771686541, 1.61050861442755,   117.795182537331,   -96.0757215289751,
    80.5582025681835,  -27.9695088068941,  28.3812636656783,   -28.354781060788,
    55.5990912576069,  173.094756994763,   -271.009036361058,  192.790066732995,
    -303.693960752588, 364.408460872057,   -321.304791446249,  160.166310236324,
    13.9937639072669,  5.80660954306099,   8.81382176194443,   2.73948951619855,
    3.59508164139117,  0.127358608853824,  -0.415280905218146, 85.3471842361242};

/// The largest differences from a reference at the end.
struct Difference {
  double angles_rad = 0.0, momenta = 0.0, twists_rad = 0.0, speeds_rad_per_s = 0.0,
         currents_A = 0.0, stored_J = 0.0, supplied_J = 0.0;
  CertificateStatus status = CertificateStatus::violated;
};

Difference coupled_against(const RobotArm& arm, const Unknowns& y, int stages, double step_s) {
  const Scenario scenario = parse_scenario(scenario_of(arm, stages, step_s), "robot_arm.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(std::llround(kEnd_s / step_s));
  Difference d;
  const auto see = [](double& worst, double difference) {
    worst = std::max(worst, std::abs(difference));
  };
  const auto momenta = agreement::momenta(arm, y);
  const auto state = stepper.state("arm");
  for (std::size_t k = 0; k < kJoints; ++k) {
    const std::string number = std::to_string(k + 1);
    const auto motor = stepper.state("motor_" + number);
    const double twist = y[k] - y[2 * kJoints + k] / arm.drives[k].ratio;
    see(d.angles_rad, state[k] - y[k]);
    see(d.momenta, state[kJoints + k] - momenta[k]);
    see(d.twists_rad, stepper.state("shaft_" + number)[0] - twist);
    see(d.speeds_rad_per_s, motor[2] - y[3 * kJoints + k]);
    see(d.currents_A, motor[0] - y[4 * kJoints + k]);
  }
  for (int part = 0; part < static_cast<int>(scenario.system.parts().size()); ++part) {
    d.stored_J += stepper.storage(part);
  }
  d.stored_J -= stored_J(arm, y);
  d.supplied_J = stepper.energy().supplied_J - y[5 * kJoints];
  d.status = stepper.certificate().status;
  return d;
}

TEST(RobotArmAgreement, WithSundialsToRoundOffWithThreeStages) {
  const RobotArm arm = agreement::seven_joints();
  const Difference d = coupled_against(arm, kAtTheEnd, 3, 0.002);
  EXPECT_LE(d.angles_rad, 1e-11);
  EXPECT_LE(d.momenta, 1e-10);
  EXPECT_LE(d.twists_rad, 1e-11);
  EXPECT_LE(d.speeds_rad_per_s, 2e-9);
  EXPECT_LE(d.currents_A, 1e-9);
  EXPECT_LE(std::abs(d.stored_J), 1e-9);
  EXPECT_LE(std::abs(d.supplied_J), 5e-9);
  EXPECT_EQ(d.status, CertificateStatus::holds);
}

TEST(RobotArmAgreement, ApproachesSundialsWithTwiceTheStages) {
  const RobotArm arm = agreement::seven_joints();
  for (const int stages : {1, 2}) {
    const Difference coarse = coupled_against(arm, kAtTheEnd, stages, 0.002);
    const Difference fine = coupled_against(arm, kAtTheEnd, stages, 0.001);
    const auto order = [](double far, double near) { return std::log2(std::abs(far / near)); };
    EXPECT_NEAR(order(coarse.angles_rad, fine.angles_rad), 2.0 * stages, 0.1) << stages;
    EXPECT_NEAR(order(coarse.momenta, fine.momenta), 2.0 * stages, 0.1) << stages;
    EXPECT_NEAR(order(coarse.currents_A, fine.currents_A), 2.0 * stages, 0.1) << stages;
    EXPECT_NEAR(order(coarse.stored_J, fine.stored_J), 2.0 * stages, 0.2) << stages;
    EXPECT_LE(fine.angles_rad, stages == 1 ? 2e-6 : 1e-10) << stages;
  }
}

TEST(RobotArmAgreementControl, NoticesOnePercentOfARotor) {
  RobotArm arm = agreement::seven_joints();
  arm.drives[3].inertia *= 1.01;
  EXPECT_GT(coupled_against(arm, kAtTheEnd, 2, 0.002).angles_rad, 1e-6);
}

#if defined(PORTWAVE_TESTS_SUNDIALS)
TEST(RobotArmAgreement, SundialsGivesTheNumbersAbove) {
  const RobotArm arm = agreement::seven_joints();
  for (const auto peer : {agreement::Peer::runge_kutta, agreement::Peer::adams}) {
    const Unknowns y = agreement::by_sundials(arm, kEnd_s, peer);
    for (std::size_t i = 0; i < agreement::kUnknowns; ++i) {
      EXPECT_NEAR(y[i], kAtTheEnd[i], i < kJoints ? 1e-12 : 2e-10) << i;
    }
  }
}
#endif

}  // namespace
}  // namespace portwave
