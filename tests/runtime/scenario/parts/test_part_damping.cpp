// How much of a damped part is damped, as scenario files say it.

#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"

namespace portwave::test_part_damping {
namespace {

/// A motor, shorted, on a torsional spring.
std::string motor(const std::string& damping) {
  return R"({"name": "s", "time": {"step_s": 0.001, "end_s": 1}, "subsystems": [
    {"name": "m", "type": "dc_motor", )" +
         damping + R"( "parameters": {"inductance_H": 2e-5, "resistance_ohm": 1,
       "motor_constant_Vs_per_rad": 0.02, "inertia_kgm2": 1e-3},
     "initial_state": {"current": 5, "speed": 20}},
    {"name": "k", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 0.1}}],
    "couplings": [{"kind": "free", "ports": ["m.terminals"]},
                  {"kind": "connection", "ports": ["m.shaft", "k.left"]},
                  {"kind": "fixed", "ports": ["k.right"]}]})";
}

/// What the steps of a second dissipate [J]. Errors: ScenarioError.
double numerical_J(const std::string& damping) {
  const Scenario scenario = parse_scenario(motor(damping), "s.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(1000);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << damping;
  return stepper.energy().numerical_dissipation_J;
}

std::string report_of(const std::string& damping) {
  try {
    (void)numerical_J(damping);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "no error";
}

TEST(PartDamping, IsThatOfTheStatesThatAreNamed) {
  const double automatic = numerical_J(""), all = numerical_J(R"("integrator": "damped",)");
  const double current = numerical_J(R"("integrator": "damped", "damped_states": ["current"],)");
  const double speed = numerical_J(R"("integrator": "damped", "damped_states": ["speed"],)");
  EXPECT_EQ(current, automatic);
  EXPECT_GT(all, 20.0 * current);
  EXPECT_GT(speed, 20.0 * current);
  EXPECT_EQ(
      numerical_J(R"("integrator": "damped", "damped_states": ["current", "angle", "speed"],)"),
      all);
  EXPECT_EQ(numerical_J(R"("integrator": "gauss",)"), 0.0);
}

TEST(PartDamping, IsWeakerWithASmallerTheta) {
  const double all = numerical_J(R"("integrator": "damped", "damped_states": ["speed"],)");
  const double some =
      numerical_J(R"("integrator": "damped", "theta": 0.25, "damped_states": ["speed"],)");
  EXPECT_LT(some, 0.6 * all);
  EXPECT_GT(some, 0.1 * all);
  EXPECT_EQ(numerical_J(R"("integrator": "damped", "theta": 0,)"), 0.0);
}

TEST(PartDamping, IsRefusedWhereItMeansNothing) {
  const auto says = [](const std::string& damping, const std::string& text) {
    const std::string report = report_of(damping);
    EXPECT_NE(report.find(text), std::string::npos) << damping << ": " << report;
  };
  says(R"("theta": 0.5,)", "needs \"integrator\": \"damped\"");
  says(R"("integrator": "auto", "damped_states": ["current"],)", "needs \"integrator\"");
  says(R"("integrator": "damped", "theta": 1.5,)", "must be a number");
  says(R"("integrator": "damped", "damped_states": "current",)", "must be an array of states");
  says(R"("integrator": "damped", "damped_states": ["curent"],)", "\"current\"");
  says(R"("integrator": "damped", "damped_states": [],)", "names no state");
}

}  // namespace
}  // namespace portwave::test_part_damping
