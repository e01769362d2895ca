// Bodies on the ground with friction by the normal force: beside SciPy on Newton's equations
// (tests/tools/ground_contact_golden.py), and beside formulas.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_ground_contact_runs {
namespace {

constexpr double kGravity = 9.81, kMass = 2.0, kStiffness = 2e4, kRadius = 0.1;

/// What steps of 1 and .1 ms are off: of order 2.
constexpr double kCoarse_m = 1e-5, kFine_m = 1e-7, kFine_m_per_s = 1e-4;

struct Ground {
  double friction = 0.3, creep_speed = 0.02, damping = 0.5, radius = 0.0;
  bool rolls = false;
  std::array<double, 3> normal = {0, 0, 1};
};

/// A ball of 2 kg; `ball` and `point`: its start and that of the contact.
Scenario scenario(double step_s, double end_s, const Ground& ground, const std::string& ball,
                  const std::string& point, const std::string& method = R"({"kind": "auto"})") {
  return parse_scenario(
      fmt::format(R"({{"name": "ground", "time": {{"step_s": {}, "end_s": {}}},
  "subsystems": [
    {{"name": "ball", "type": "rigid_body", "initial_state": {},
      "parameters": {{"mass_kg": {}, "inertia_1_kgm2": 0.008, "inertia_2_kgm2": 0.008,
                      "inertia_3_kgm2": 0.008}}}},
    {{"name": "ground", "type": "ground_contact", "initial_state": {},
      "parameters": {{"force_N": {}, "compression_m": 1, "damping_s_per_m": {}, "friction": {},
                      "creep_speed_m_per_s": {}, "radius_m": {}, "rolls": {},
                      "normal": [{}, {}, {}]}}}}],
  "couplings": [{{"kind": "connection", "ports": ["ball.force", "ground.point"]}},
                {}],
  "method": {}}})",
                  step_s, end_s, ball, kMass, point, kStiffness, ground.damping, ground.friction,
                  ground.creep_speed, ground.radius, ground.rolls, ground.normal[0],
                  ground.normal[1], ground.normal[2],
                  ground.rolls
                      ? R"({"kind": "connection", "ports": ["ball.torque", "ground.spin"]})"
                      : R"({"kind": "free", "ports": ["ball.torque"]})",
                  method),
      "ground.json", ".");
}

struct Motion {
  std::vector<std::vector<double>> states;  ///< of the ball, at the times asked for
  double worst_balance_J = 0.0;
  double worst_drift_m = 0.0;  ///< of the contact's point from the ball
};

Motion run(const Scenario& given, const std::vector<double>& times) {
  Stepper stepper(given.system, given.options);
  const bool rolls = stepper.system().parts()[1].component->signature().ports.size() > 1;
  Motion out;
  for (const double time : times) {
    while (stepper.time_s() < time - 1e-9) {
      const StepReport report = stepper.step();
      EXPECT_GE(report.energy.dissipated_J, 0.0);
    }
    const auto x = stepper.state("ball"), r = stepper.state("ground");
    out.states.emplace_back(x.begin(), x.end());
    for (std::size_t i = 0; i < 3 && !rolls; ++i) {
      out.worst_drift_m = std::max(out.worst_drift_m, std::abs(x[i] - r[i]));
    }
  }
  const EnergyTotals energy = stepper.energy();
  out.worst_balance_J =
      std::abs(energy.final_J - energy.initial_J - energy.supplied_J + energy.dissipated_J +
               energy.numerical_dissipation_J + energy.mismatch_J);
  return out;
}

constexpr const char* kThrown = R"({"z": 0.5, "p_x": 6, "p_y": 2, "p_z": 2})";
const std::vector<double> kTimes = {0.5, 0.8, 1.2, 1.6};
/// x, y, z [m]; the velocities [m/s].
constexpr double kThrownPath[4][6] = {
    {1.433197061, 0.4777323537, 0.008471601524, 1.794269038, 0.5980896795, 0.3315067598},
    {1.876545153, 0.6255150509, 3.285553464e-05, 1.052829333, 0.3509431111, -0.006339666859},
    {2.074751679, 0.6915838932, -0.001013567084, 0.0003147487429, 0.0001049162476, -0.004018494675},
    {2.07475373, 0.6915845766, -0.0009818307508, 0.0, 0.0, 0.0002754741319}};

/// The largest differences of places and velocities.
std::pair<double, double> off(const Motion& seen) {
  double place = 0.0, velocity = 0.0;
  for (std::size_t k = 0; k < 4; ++k) {
    for (std::size_t i = 0; i < 3; ++i) {
      place = std::max(place, std::abs(seen.states[k][i] - kThrownPath[k][i]));
      velocity =
          std::max(velocity, std::abs(seen.states[k][3 + i] / kMass - kThrownPath[k][3 + i]));
    }
  }
  return {place, velocity};
}

TEST(GroundContactRuns, APointThatIsThrownBouncesAndSlidesToRest) {
  Ground law;
  law.damping = 1.5;
  const auto thrown = [&](double step_s) {
    return run(scenario(step_s, 1.6, law, kThrown, R"({"z": 0.5})"), kTimes);
  };
  const Motion coarse = thrown(1e-3), fine = thrown(1e-4);
  EXPECT_LT(off(coarse).first, kCoarse_m);
  EXPECT_LT(off(fine).first, kFine_m);
  EXPECT_LT(off(fine).second, kFine_m_per_s);
  EXPECT_GT(off(coarse).first, 50.0 * off(fine).first);
  EXPECT_LT(coarse.worst_balance_J, 1e-9);
  EXPECT_LT(fine.worst_balance_J, 1e-9);
  EXPECT_LT(fine.worst_drift_m, 1e-9);
}

TEST(GroundContactRunsControl, LessFrictionSlidesFarther) {
  Ground law;
  law.damping = 1.5;
  law.friction = 0.29;
  const Motion seen = run(scenario(1e-4, 1.6, law, kThrown, R"({"z": 0.5})"), kTimes);
  EXPECT_GT(off(seen).first, 0.01);  // of 2 m
}

/// On a plane that rises to the left; it starts where it rests along the normal.
Motion on_incline(double angle, double friction) {
  Ground law;
  law.friction = friction;
  law.creep_speed = 0.01;
  law.damping = 20.0;
  law.normal = {std::sin(angle), 0.0, std::cos(angle)};
  const double s = kMass * kGravity * std::cos(angle) / kStiffness;
  const std::string start =
      fmt::format(R"({{"x": {}, "z": {}}})", -s * law.normal[0], -s * law.normal[2]);
  return run(scenario(1e-3, 1.0, law, start, start), {0.5, 1.0});
}

/// The velocity down the plane.
double down(const std::vector<double>& x, double angle) {
  return (x[3] * std::cos(angle) - x[5] * std::sin(angle)) / kMass;
}

TEST(GroundContactRuns, ABlockOnAnInclineSticksBelowTheAngleOfFriction) {
  for (const double angle : {0.1, 0.3, 0.7}) {
    for (const double share : {1.1, 1.5, 3.0}) {
      const double friction = share * std::tan(angle);
      // μN tanh(v/v₀) = m g sin: a creep.
      const double creep = 0.01 * std::atanh(1.0 / share);
      const Motion seen = on_incline(angle, friction);
      EXPECT_NEAR(down(seen.states[1], angle), creep, 1e-6) << angle << " " << share;
      EXPECT_LT(seen.worst_balance_J, 1e-10);
    }
  }
}

TEST(GroundContactRuns, ABlockOnAnInclineSlidesAboveTheAngleOfFriction) {
  for (const double angle : {0.1, 0.3, 0.7}) {
    for (const double share : {0.5, 0.2, 0.0}) {
      const double friction = share * std::tan(angle);
      const double a = kGravity * (std::sin(angle) - friction * std::cos(angle));
      const Motion seen = on_incline(angle, friction);
      const double gained = down(seen.states[1], angle) - down(seen.states[0], angle);
      EXPECT_NEAR(gained, 0.5 * a, 1e-6) << angle << " " << share;
    }
  }
}

TEST(GroundContactRuns, ABallSlidesAndThenRolls) {
  Ground law;
  law.friction = 0.2;
  law.radius = kRadius;
  law.rolls = true;
  const std::string start = fmt::format(R"({{"z": {}, "p_x": 4, "L_3": 0.024}})",
                                        kRadius - kMass * kGravity / kStiffness);
  const std::string point = fmt::format(R"({{"z": {}}})", kRadius - kMass * kGravity / kStiffness);
  const Motion seen = run(scenario(1e-3, 1.5, law, start, point), {0.2, 0.5, 1.5});
  const double x[] = {0.36076, 0.797513116, 2.226084545}, v[] = {1.6076, 1.428571429, 1.428571429},
               w[] = {9.81, 14.28571429, 14.28571429};
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(seen.states[k][0], x[k], 2e-6);
    EXPECT_NEAR(seen.states[k][3] / kMass, v[k], 1e-6);
    // It spins about z, too, which nothing brakes.
    const double spin = std::hypot(seen.states[k][10], seen.states[k][11], seen.states[k][12]);
    EXPECT_NEAR(spin / 0.008, std::hypot(w[k], 3.0), 1e-5);
    EXPECT_NEAR(seen.states[k][2], kRadius - kMass * kGravity / kStiffness, 1e-9);
  }
  EXPECT_LT(seen.worst_balance_J, 1e-10);
}

TEST(GroundContactRunsControl, ABallThatDoesNotRollIsBrakedToRest) {
  Ground law;
  law.friction = 0.2;
  law.radius = kRadius;
  const std::string z = fmt::format("{}", kRadius - kMass * kGravity / kStiffness);
  const Motion seen =
      run(scenario(1e-3, 1.5, law, R"({"p_x": 4, "z": )" + z + "}", R"({"z": )" + z + "}"), {1.5});
  EXPECT_NEAR(seen.states[0][3], 0.0, 1e-3);
}

/// Stages that are damped, as `auto` takes where a creep is stiff: energy is kept too, and the block sticks.
TEST(GroundContactRuns, StandsOnDampedStagesToo) {
  Ground law;
  law.damping = 1.5;
  const Motion seen = run(scenario(1e-3, 1.6, law, kThrown, R"({"z": 0.5})",
                                   R"({"kind": "auto", "integrator": "damped"})"),
                          kTimes);
  EXPECT_LT(off(seen).first, 5e-3);
  EXPECT_LT(seen.worst_balance_J, 1e-9);
  EXPECT_NEAR(seen.states[3][2], -kMass * kGravity / kStiffness, 1e-6);
}

}  // namespace
}  // namespace portwave::test_ground_contact_runs
