// The flagship examples against integrators that share nothing with this one, and what their
// recorded quantities say of their energy.

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_flagships {
namespace {

using testing::source_file;

double of(const Stepper& stepper, const std::string& part, int state) {
  return stepper.state(part)[static_cast<std::size_t>(state)];
}

/// To a multiple of the step.
void run_to(Stepper& stepper, double time_s, double step_s) {
  const auto last = static_cast<std::int64_t>(std::llround(time_s / step_s));
  while (stepper.step_index() < last) stepper.step();
}

double signal_of(const Stepper& stepper, const Scenario& scenario, const char* name) {
  const int signal = scenario.options.signals->find_signal(name);
  return stepper.signals()[static_cast<std::size_t>(signal)];
}

/// time_s, position [m], angle [rad], drive [N]: tests/tools/crane_golden.py
struct CraneRow {
  double time_s, position_m, angle_rad, drive_N;
};
constexpr CraneRow kCrane[] = {
    {4, 1.678233707, -0.102565997, 1359.442011},   {8, 8.346425733, 0.127429963, -1631.286050},
    {12, 7.934139432, -0.042258605, 534.042183},   {16, 8.043269348, 0.006176917, -89.120451},
    {20, 7.988434702, -0.000353162, 8.173609},     {24, 10.061527325, -0.208094564, 2122.641418},
    {28, 12.014116359, -0.163115161, 4501.734176}, {32, 12.043583940, 0.294132070, 6000.000000},
    {36, 10.765860361, 0.123576349, -1301.684496}, {40, 5.235000703, -0.046430783, 456.498173},
    {44, -0.070096596, -0.041011751, 569.883733},  {48, -0.055140619, 0.017991444, -203.118763},
    {52, -0.005609781, -0.003918666, 49.136987},   {56, 0.003924514, 0.000586291, -8.396902}};

TEST(Flagships, TheCraneIsThatOfLagrangesEquations) {
  const Scenario scenario = load_scenario(source_file("examples/crane.json"));
  Stepper stepper(scenario.system, scenario.options);
  for (const CraneRow& row : kCrane) {
    run_to(stepper, row.time_s, scenario.options.step_s);
    EXPECT_NEAR(of(stepper, "crane", 0), row.position_m, 2e-5) << row.time_s;
    EXPECT_NEAR(of(stepper, "crane", 1), row.angle_rad, 3e-6) << row.time_s;
    EXPECT_NEAR(signal_of(stepper, scenario, "drive"), row.drive_N, 0.1) << row.time_s;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  // It ran into the buffer, twice, and never against the other stop.
  EXPECT_EQ(stepper.event_counts()[1].all(), 4);
  EXPECT_EQ(stepper.event_counts()[2].all(), 0);
}

TEST(Flagships, WorkOfTheCranesDriveIsItsForceTimesItsWay) {
  const Scenario scenario = load_scenario(source_file("examples/crane.json"));
  Stepper stepper(scenario.system, scenario.options);
  double work_J = 0.0;
  while (stepper.step_index() < 14000) {  // to 28 s, in the buffer
    const double before_m = of(stepper, "crane", 0), drive_N = stepper.input(0, 0);
    stepper.step();
    work_J += drive_N * (of(stepper, "crane", 0) - before_m);
  }
  const double stored_J = stepper.storage(0) + stepper.storage(1) + stepper.storage(2);
  EXPECT_NEAR(stepper.energy().supplied_J, work_J, 1e-7);
  EXPECT_NEAR(stepper.energy().dissipated_J + stepper.energy().mismatch_J, work_J - stored_J, 1e-7);
  EXPECT_GT(stepper.energy().dissipated_J, 100.0);
}

/// time_s, angles [rad], force of the spring at the wall [N]: tests/tools/robot_arm_golden.py
struct ArmRow {
  double time_s;
  std::array<double, 7> angles_rad;
  double push_N;
};
constexpr ArmRow kArm[] = {
    {1.0,
     {0.019026356, 0.060641633, 0.070794188, 0.050286707, 0.029660223, 0.019767712, -0.000273062},
     0.000},
    {1.5,
     {0.101793527, 0.301152661, 0.351287228, 0.250602926, 0.150813501, 0.100234957, 0.000048121},
     0.000},
    {2.0,
     {0.180955977, 0.539540609, 0.629596755, 0.449863381, 0.270631620, 0.180236415, 0.000265927},
     0.000},
    {2.5,
     {0.199607906, 0.599637231, 0.699339814, 0.499632909, 0.299405476, 0.199775720, -0.000045106},
     0.000},
    {3.5,
     {0.200063721, 0.600062842, 0.700087838, 0.500070439, 0.300080580, 0.200045195, 0.000013128},
     0.000},
    {4.5,
     {0.350086721, 0.524988984, 0.524876888, 0.349891405, 0.199801886, 0.099927021, -0.049998929},
     0.000},
    {5.0,
     {0.468816530, 0.465270301, 0.385799714, 0.230651717, 0.120241563, 0.020411032, -0.089734668},
     0.000},
    {5.5,
     {0.492348512, 0.445961135, 0.347609537, 0.199260143, 0.099902480, -0.000670559, -0.101296338},
     199.973},
    {6.0,
     {0.492928247, 0.446209354, 0.347918676, 0.199356002, 0.099945301, -0.000526186, -0.101193602},
     223.284}};

TEST(Flagships, TheRobotArmIsThatOfLagrangesEquations) {
  const Scenario scenario = load_scenario(source_file("examples/robot_arm.json"));
  Stepper stepper(scenario.system, scenario.options);
  for (const ArmRow& row : kArm) {
    run_to(stepper, row.time_s, scenario.options.step_s);
    for (int k = 0; k < 7; ++k) {
      EXPECT_NEAR(of(stepper, "arm", k), row.angles_rad[static_cast<std::size_t>(k)], 1e-4)
          << row.time_s << " " << k;
    }
    EXPECT_NEAR(stepper.storage(scenario.system.find_part("wall")),
                row.push_N * row.push_N / (2.0 * 100.0 / 0.002), 0.02)
        << row.time_s;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  // It follows its path to .02 rad, and presses at the end of it.
  for (int k = 0; k < 7; ++k) {
    const std::string path = "path_" + std::to_string(k + 1) + "[0]";
    EXPECT_NEAR(of(stepper, "arm", k), signal_of(stepper, scenario, path.c_str()), 0.02);
  }
  EXPECT_EQ(stepper.event_counts()[0].rising, 1);
}

/// time_s, voltage of the load and at the machine [V], speed [rad/s]: tests/tools/power_line_golden.py
struct LineRow {
  double time_s, load_V, terminal_V, speed_rad_per_s;
};
constexpr LineRow kLine[] = {{0.020, 0.004831, 8714.986322, 157.039822210},
                             {0.050, -0.001479, -3743.776872, 157.079879668},
                             {0.090, 0.003190, 3721.779087, 157.081890569},
                             {0.110, -38685.679215, -12767.074450, 156.927210789}};

TEST(Flagships, AShortPowerLineIsThatOfItsCells) {
  const Scenario scenario =
      load_scenario(source_file("examples/power_line.json"), {{"/parameters/blocks", "2"},
                                                              {"/parameters/cells", "10"},
                                                              {"/signals/every", "40"},
                                                              {"/time/step_s", "5e-5"},
                                                              {"/method/stages", "3"}});
  Stepper stepper(scenario.system, scenario.options);
  for (const LineRow& row : kLine) {
    run_to(stepper, row.time_s, scenario.options.step_s);
    EXPECT_NEAR(of(stepper, "alpha/line_1", 19) * 300.0, row.load_V, 1.0) << row.time_s;
    EXPECT_NEAR(of(stepper, "alpha/line_0", 0), row.terminal_V, 1.0) << row.time_s;
    EXPECT_NEAR(of(stepper, "generator", 2) / 12000.0, row.speed_rad_per_s, 1e-6) << row.time_s;
  }
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(Flagships, ThePowerLineHasTenThousandSectionsInEachPhase) {
  const Scenario scenario = load_scenario(source_file("examples/power_line.json"));
  int states = 0;
  for (const Part& part : scenario.system.parts()) {
    if (part.component->signature().type == "rlc_ladder") {
      states += part.component->signature().state_size();
    }
  }
  EXPECT_EQ(states, 2 * 2 * 10000);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(20);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  // A wave has come 2 ms, twice the line, far: half the line knows of it, and before not its end.
  EXPECT_GT(std::abs(of(stepper, "beta/line_50", 0)), 1000.0);
}

/// time_s, voltage [V]: tests/tools/battery_golden.py
struct BatteryRow {
  double time_s, voltage_V;
};
constexpr BatteryRow kBattery[] = {
    {100, 11.539546}, {300, 10.960694}, {404, 10.800778}, {500, 11.345202}, {900, 11.514549}};

TEST(Flagships, TheBatteryIsCutOffWhereTheLoopOfTwoEquationsSays) {
  const Scenario scenario = load_scenario(source_file("examples/battery.json"));
  Stepper stepper(scenario.system, scenario.options);
  for (const BatteryRow& row : kBattery) {
    run_to(stepper, row.time_s, scenario.options.step_s);
    EXPECT_NEAR(signal_of(stepper, scenario, "voltage"), row.voltage_V, 1e-3) << row.time_s;
  }
  // The charge is counted from the second sample on, and the voltage is sampled every 0.1 s.
  EXPECT_EQ(stepper.event_counts()[0].all(), 1);
  EXPECT_NEAR(stepper.event_counts()[0].last_s, 404.528811, 0.2);
  EXPECT_EQ(stepper.event_counts()[1].all(), 0);
  EXPECT_EQ(of(stepper, "breaker", 0), 0.0);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_NEAR(stepper.energy().supplied_J, stepper.energy().dissipated_J + stepper.energy().final_J,
              1e-8);
}

TEST(FlagshipsControl, ASupervisorThatClosesTooSoonCutsOffAgain) {
  const Scenario scenario =
      load_scenario(source_file("examples/battery.json"), {{"/parameters/on_above_V", "11.3"}});
  Stepper stepper(scenario.system, scenario.options);
  run_to(stepper, 900, scenario.options.step_s);
  EXPECT_EQ(stepper.event_counts()[0].all(), 3);
  EXPECT_EQ(stepper.event_counts()[1].all(), 2);
}

}  // namespace
}  // namespace portwave::test_flagships
