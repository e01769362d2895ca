// Free motions against MuJoCo 4.0.0 (its Runge-Kutta method with steps of 5e-5 s to 2.5e-4 s), by
// tests/tools/mujoco_golden.py. MuJoCo's own error, by halving its step, is below 3e-11.

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <Eigen/Dense>
#include <gtest/gtest.h>

#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "support/free_motion.hpp"

namespace portwave::test_mechanisms_golden {
namespace {

using Numbers = std::vector<double>;

std::shared_ptr<const Component> part_of(const char* type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

/// The angles, then the speeds, that a mechanism with angles and momenta has after a time, from rest.
Numbers swing(const std::shared_ptr<const Component>& part, Numbers angles, double time_s,
              int steps, int stages = 3) {
  const std::size_t n = angles.size();
  angles.resize(2 * n, 0.0);
  Numbers end = testing::move_freely(part, stages, time_s / steps, steps, std::move(angles));
  Numbers g(2 * n);
  part->port_hamiltonian()->gradient(end.data(), g.data());
  for (std::size_t k = 0; k < n; ++k) end[n + k] = g[n + k];
  return end;
}

double distance(const Numbers& a, const Numbers& b) {
  double worst = a.size() == b.size() ? 0.0 : INFINITY;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
  }
  return worst;
}

const Numbers kPendulum = {-1.81418748346745, 3.48639673751276};

TEST(MechanismsGolden, Pendulum) {
  const auto part =
      part_of("pendulum", {{"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1}});
  EXPECT_LE(distance(swing(part, {2.5}, 2.0, 400), kPendulum), 1e-10);
}

TEST(MechanismsGoldenControl, NoticesAnotherInertiaAndALongStep) {
  const auto heavier =
      part_of("pendulum", {{"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1001}});
  EXPECT_GT(distance(swing(heavier, {2.5}, 2.0, 400), kPendulum), 1e-5);
  const auto part =
      part_of("pendulum", {{"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1}});
  EXPECT_GT(distance(swing(part, {2.5}, 2.0, 400, 1), kPendulum), 1e-5);
}

TEST(MechanismsGolden, ArmOfTwoLinks) {
  const auto part = part_of("planar_arm", {{"lengths_m", Numbers{1.0, 0.8}},
                                           {"masses_kg", Numbers{2.0, 1.5}},
                                           {"centres_m", Numbers{0.5, 0.4}},
                                           {"inertias_kgm2", Numbers{0.2, 0.1}}});
  EXPECT_LE(distance(swing(part, {2.0, -1.0}, 1.0, 400),
                     {-1.06413872416634, -0.905490757716556, -3.69671436171043, 2.65622804959008}),
            1e-10);
}

TEST(MechanismsGolden, ArmOfSevenLinks) {
  Numbers lengths, masses, angles;
  for (int k = 0; k < 7; ++k) {
    lengths.push_back(0.5 - 0.03 * k);
    masses.push_back(2.0 - 0.2 * k);
    angles.push_back(0.3 * (k + 1) / 7 + 0.5);
  }
  const auto part = part_of("planar_arm", {{"lengths_m", lengths},
                                           {"masses_kg", masses},
                                           {"centres_m", Numbers(7, 0.2)},
                                           {"inertias_kgm2", Numbers(7, 0.05)}});
  const Numbers golden = {0.0800988308802741, -0.308631936561647, -0.253692038794578,
                          -0.536907053546871, -0.741761825480052, 2.04864568236958,
                          -7.36954757196587,  -1.16080618855991,  -2.17512639408624,
                          0.932414574731073,  -2.04969899572734,  9.85036646052155,
                          4.2912083165373,    -39.4464180160604};
  EXPECT_LE(distance(swing(part, angles, 1.0, 500), golden), 1e-8);
}

/// time_s, angles, speeds, and the energy gained since the start [J].
using Motion = std::vector<Numbers>;

/// The largest difference of a swing from rest, in angles and speeds and in energy; `steps` in the
/// first row's time.
std::pair<double, double> differences(const std::shared_ptr<const Component>& part,
                                      const Numbers& start, const Motion& golden, int steps) {
  const Subsystem& physics = *part->port_hamiltonian();
  const std::size_t n = start.size();
  const double step_s = golden[0][0] / steps;
  Numbers x = start, g(2 * n);
  x.resize(2 * n, 0.0);
  const double energy = physics.storage(x.data());
  double time_s = 0.0, motion = 0.0, gain = 0.0;
  for (const Numbers& row : golden) {
    const int these = static_cast<int>(std::lround((row[0] - time_s) / step_s));
    x = testing::move_freely(part, 3, step_s, these, x);
    time_s = row[0];
    physics.gradient(x.data(), g.data());
    for (std::size_t k = 0; k < n; ++k) {
      motion = std::max(motion, std::abs(x[k] - row[1 + k]));
      motion = std::max(motion, std::abs(g[n + k] - row[1 + n + k]));
    }
    gain = std::max(gain, std::abs(physics.storage(x.data()) - energy - row[1 + 2 * n]));
  }
  return {motion, gain};
}

TEST(MechanismsGolden, ArmOfThreeLinksWithDampingLosesItsEnergy) {
  const Motion golden = {
      {0.25, 1.02152411055785, 1.06503042265236, -0.187465954268763, -3.29118496345922,
       0.421808218477118, 1.9208472374392, -0.524085403504364},
      {0.5, 0.426204849342141, 0.0216415308493538, 0.0911547144285352, -0.846277027474751,
       -8.27656163841085, -2.76719044958883, -3.28014172665109},
      {0.75, -0.616937402566035, -0.0791104616990918, -0.215250415736333, -5.3843479323213,
       3.63751165180158, 2.12822276695584, -6.31436545735467},
      {1, -1.2996819834463, -0.116605487195422, 0.045320962112894, -0.371602059435393,
       -2.75973679159627, -0.609267409856865, -7.5094459284523},
      {1.5, -0.350478940379411, -0.878988282661457, -0.494423998934477, 2.26062711842379,
       3.78578120264187, 0.214702286467781, -9.30924775259353},
      {2, 0.962302438556771, -0.0232181746332942, 0.139782111660959, 2.63405710000939,
       -1.41360238188385, -1.62286321322055, -14.8834872393621}};
  const auto arm = [](double damping) {
    return part_of("planar_arm", {{"lengths_m", Numbers{0.6, 0.5, 0.3}},
                                  {"masses_kg", Numbers{2.0, 1.5, 0.8}},
                                  {"centres_m", Numbers{0.3, 0.25, 0.15}},
                                  {"inertias_kgm2", Numbers{0.06, 0.03, 0.006}},
                                  {"damping_Nms_per_rad", Numbers{0.3, 0.3, damping}}});
  };
  const auto [motion, gain] = differences(arm(0.3), {1.5, 0.8, -0.4}, golden, 100);
  EXPECT_LE(motion, 1e-9);
  EXPECT_LE(gain, 1e-9);
  const auto [other_motion, other_gain] = differences(arm(0.31), {1.5, 0.8, -0.4}, golden, 100);
  EXPECT_GT(other_motion, 1e-3);
  EXPECT_GT(other_gain, 1e-3);
}

TEST(MechanismsGolden, PendulumFallsFromNearlyUprightAndKeepsItsEnergy) {
  const auto part =
      part_of("pendulum", {{"mass_kg", 1.2}, {"length_m", 0.8}, {"inertia_kgm2", 0.1}});
  const Motion golden = {{0.25, 3.0850877809222, -0.125956718062961, 0.0},
                         {0.5, 3.02967398688237, -0.342042797558595, 0.0},
                         {0.75, 2.89423867235013, -0.801054063079174, 0.0},
                         {1, 2.58422220958451, -1.80706416389548, 0.0},
                         {1.5, 0.627230497162252, -6.26497688767832, 0.0},
                         {2, -2.10485484917443, -3.26114038258935, 0.0}};
  const auto [motion, gain] = differences(part, {3.1}, golden, 50);
  EXPECT_LE(motion, 1e-10);
  EXPECT_LE(gain, 1e-12);
}

TEST(MechanismsGolden, RigidBodyThatTurnsOver) {
  const auto part = part_of("rigid_body", {{"mass_kg", 2.0},
                                           {"inertia_1_kgm2", 1.0},
                                           {"inertia_2_kgm2", 1.5},
                                           {"inertia_3_kgm2", 2.0}});
  const Numbers start = {1.0, 2.0, 3.0, 1.0, -0.5, 8.0, 1.0, 0.0, 0.0, 0.0, 0.01, 4.5, 0.04};
  Numbers end = testing::move_freely(part, 3, 0.02, 250, start);
  for (std::size_t i = 0; i < 3; ++i) end[3 + i] /= 2.0;
  const double inertia[] = {1.0, 1.5, 2.0};
  for (std::size_t i = 0; i < 3; ++i) end[10 + i] /= inertia[i];
  const Numbers golden = {3.50000000000128,
                          0.749999999998917,
                          -99.6250000000015,
                          0.5,
                          -0.25,
                          -45.0499999999879,
                          0.328004264053207,
                          -0.272460508627094,
                          0.88385512562016,
                          0.19229818230173,
                          -1.63341666215574,
                          2.33296664007926,
                          1.15515150352843};
  EXPECT_LE(distance(end, golden), 1e-9);
}

}  // namespace
}  // namespace portwave::test_mechanisms_golden
