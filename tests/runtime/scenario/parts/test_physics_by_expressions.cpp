// Parts given by expressions in scenario files: they move as the same part written by hand, with every kind of
// step, and what is wrong with them is told at its place in the file.

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_physics_by_expressions {
namespace {

const std::string kByEnergy =
    R"json({"name": "pendulum", "type": "port_hamiltonian", "parameters": {
  "states": {"angle": "rad", "momentum": "kg m^2/s"}, "inputs": ["torque"],
  "constants": {"m": 1, "l": 0.5, "g": 9.81, "c": 0.02},
  "energy": "momentum^2/(2*m*l^2) + m*g*l*(1 - cos(angle))",
  "J": [[0, 1], [-1, 0]], "R": [[0, 0], [0, "c"]], "G": [[0, 0], [-1, 1]],
  "ports": [{"name": "shaft", "causality": "effort_in", "domain": "rotation"}]},)json";
const std::string kByHand = R"({"name": "pendulum", "type": "pendulum", "parameters":
  {"mass_kg": 1, "length_m": 0.5, "damping_Nms_per_rad": 0.02},)";

std::string scenario_of(const std::string& pendulum, const std::string& settings) {
  return R"({"name": "s", )" + settings + R"(, "subsystems": [)" + pendulum +
         R"("initial_state": {"angle": 2.5}},
    {"name": "spring", "type": "torsional_spring_damper",
     "parameters": {"stiffness_Nm_per_rad": 2, "damping_Nms_per_rad": 0.1}},
    {"name": "wheel", "type": "inertia", "parameters": {"inertia_kgm2": 0.1}}],
    "couplings": [{"kind": "connection", "ports": ["pendulum.shaft", "spring.left"]},
                  {"kind": "connection", "ports": ["spring.right", "wheel.shaft"]}]})";
}

/// The angle at 1 s.
double angle(const std::string& pendulum, const std::string& settings) {
  const Scenario scenario = parse_scenario(scenario_of(pendulum, settings), "s.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  while (stepper.time_s() < 1.0 - 1e-9) stepper.step();
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << settings;
  return stepper.state("pendulum")[0];
}

const std::string kFixed = R"("time": {"step_s": 0.01, "end_s": 1})";

TEST(PhysicsByExpressions, MoveAsThePartWrittenByHand) {
  for (const std::string method :
       {R"({"kind": "auto"})", R"({"kind": "auto", "stages": 2})",
        R"({"kind": "auto", "stages": 3})", R"({"kind": "auto", "integrator": "damped"})",
        R"({"kind": "auto", "integrator": "damped", "stages": 2})"}) {
    const std::string settings = kFixed + R"(, "method": )" + method;
    EXPECT_NEAR(angle(kByEnergy, settings), angle(kByHand, settings), 1e-8) << method;
  }
  std::string other = kByEnergy;
  other.replace(other.find("9.81"), 4, "9.82");
  EXPECT_GT(std::abs(angle(other, kFixed) - angle(kByHand, kFixed)), 1e-4) << "control";
}

TEST(PhysicsByExpressions, StepsOfChosenSizeKeepToTheirTolerance) {
  const std::string chosen =
      R"("time": {"step": {"kind": "adaptive", "tolerance": 1e-8}, "end_s": 1})";
  const std::string exact =
      R"("time": {"step_s": 0.001, "end_s": 1}, "method": {"kind": "auto", "stages": 3})";
  EXPECT_NEAR(angle(kByEnergy, chosen), angle(kByHand, exact), 1e-4);
}

std::string report_of(const std::string& parameters) {
  try {
    parse_scenario(R"({"name": "s", "time": {"step_s": 0.01, "end_s": 1}, "subsystems": [
      {"name": "own", "type": "port_hamiltonian", "parameters": )" +
                       parameters + "}]}",
                   "s.json", ".");
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return "";
}

TEST(PhysicsByExpressions, TellWhatIsWrongAtItsPlaceInTheFile) {
  const std::string text = report_of(R"({"states": ["q", "p"], "ports": [],
    "energy": "p^2 + sin(q", "J": [[0, "1"], ["-a", 0]], "R": [[0, 0, 0]], "constants": {"b": "x"}})");
  for (const char* const said : {"s.json /subsystems/0/parameters/constants/b: must be a number"}) {
    EXPECT_NE(text.find(said), std::string::npos) << said << "\nin\n" << text;
  }
  const std::string other = report_of(R"({"states": ["q", "p"], "ports": [],
    "energy": "p^2 + sin(q", "J": [[0, "1"], ["-a", 0]], "R": [[0, 0, 0]], "constants": {"b": 1}})");
  for (const char* const said :
       {"s.json /subsystems/0/parameters/energy: in the expression \"p^2 + sin(q\", column 12",
        "s.json /subsystems/0/parameters/J/1/0: in the expression \"-a\", column 2: there is no "
        "\"a\"",
        "s.json /subsystems/0/parameters/R: must be 2×2"}) {
    EXPECT_NE(other.find(said), std::string::npos) << said << "\nin\n" << other;
  }
}

TEST(PhysicsByExpressions, InputsMayBeAnObjectOfNamesAndUnits) {
  std::string by_object = kByEnergy;
  by_object.replace(by_object.find(R"(["torque"])"), 10, R"({"torque": "N m"})");
  EXPECT_EQ(angle(by_object, kFixed), angle(kByEnergy, kFixed));
  const std::string text = report_of(R"({"states": ["q", "p"], "ports": [], "inputs": {"f": 3},
    "energy": "p^2 + q^2", "J": [[0, 1], [-1, 0]], "G": [[0], [1]]})");
  EXPECT_NE(text.find("/subsystems/0/parameters/inputs: must be an array of inputs, or {"),
            std::string::npos)
      << text;
}

/// A mass with this energy, at q with the momentum p.
Scenario mass_by_energy(const std::string& energy, double q, double p, double step_s,
                        const std::string& default_state = "[0, 0]") {
  return parse_scenario(
      fmt::format(R"json({{"name": "s", "time": {{"step_s": {}, "end_s": 10}}, "subsystems": [
    {{"name": "m", "type": "port_hamiltonian", "initial_state": [{}, {}], "parameters": {{
      "states": {{"q": "m", "p": "kg m/s"}}, "energy": "{}", "J": [[0, 1], [-1, 0]], "G": [[0], [1]],
      "default_state": {}, "ports": [{{"name": "force", "causality": "effort_in", "domain": "translation"}}]}}}},
    {{"name": "d", "type": "coulomb_damper",
      "parameters": {{"friction_N": 0.3, "creep_speed_m_per_s": 1e-4}}}}],
    "couplings": [{{"kind": "connection", "ports": ["d.end", "m.force"]}}]}})json",
                  step_s, q, p, energy, default_state),
      "s.json", ".");
}

/// Quadrature does not see a pole between its nodes: a step may not lead to where the energy is no number.
TEST(PhysicsByExpressions, NoStepLeavesTheDomainOfTheEnergy) {
  int inside = 0;
  for (const double step_s : {0.001, 0.01, 0.1}) {
    for (const double p : {0.5, 1.0, 2.0, 5.0, 30.0, 3000.0}) {
      const Scenario own = mass_by_energy("p^2/2 - log(1 - q^2)", 0.5, p, step_s);
      Stepper stepper(own.system, own.options);
      try {
        stepper.step(200);
        ++inside;
      } catch (const StepError& error) {
        EXPECT_EQ(error.part(), "m");
        EXPECT_GE(p, 5.0) << step_s << ": " << error.what();
      }
      EXPECT_LT(std::abs(stepper.state("m")[0]), 1.0) << step_s << " " << p;
    }
  }
  EXPECT_GE(inside, 9);
}

/// Beyond a pole of a fraction the energy is a number again: no step leads there either, nor over a pole of even order.
TEST(PhysicsByExpressions, NoStepLeadsOverAPole) {
  int steps = 0;
  for (const char* energy :
       {"p^2/2 + 1/(1 - q^2)", "p^2/2 + (1 - q^2)^(-1)", "p^2/2 + 1/(1 - q)^2 + 1/(1 + q)^2"}) {
    for (const double step_s : {0.01, 0.05, 0.1, 0.25}) {
      for (const double p : {0.5, 5.0, 10.0, 30.0}) {
        const Scenario own = mass_by_energy(energy, 0.0, p, step_s);
        Stepper stepper(own.system, own.options);
        try {
          for (int n = 0; n < 200; ++n, ++steps) stepper.step();
        } catch (const StepError& error) {
          EXPECT_EQ(error.part(), "m");
        }
        EXPECT_LT(std::abs(stepper.state("m")[0]), 1.0) << energy << " " << step_s << " " << p;
        EXPECT_NE(stepper.certificate().status, CertificateStatus::violated)
            << energy << " " << step_s << " " << p << ": "
            << stepper.certificate().max_passivity_residual_J << " J of "
            << stepper.energy().initial_J << " J";
      }
    }
  }
  EXPECT_GE(steps, 7000);
}

/// Where the numerator vanishes with a divisor there is no pole: motion goes on through it.
TEST(PhysicsByExpressions, StepsLeadOverARootThatANumeratorShares) {
  for (const char* energy :
       {"p^2/2 - sin(q)/q", "p^2/2 + (exp(q) - 1)/q - q/2", "p^2/2 - (1 - cos(q))/q^2",
        "p^2/2 + (q^2 - 0.09)*(q - 1)/(q - 0.3)", "p^2/2 + 0.1*sinh(q)^2/q^2",
        "p^2/2 + q^4/(1e-200*q^2*1e200)", "p^2/2 - (sin(q)/q)^2 + 0.1*sinh(q)/(1e-200*q)*1e-200"}) {
    for (const double step_s : {0.01, 0.1}) {
      const Scenario own = mass_by_energy(energy, 1.0, -2.0, step_s, "[1, 0]");
      Stepper stepper(own.system, own.options);
      const double q = stepper.state("m")[0];
      double least = q;
      for (int n = 0; n < static_cast<int>(8.0 / step_s); ++n) {
        ASSERT_NO_THROW(stepper.step()) << energy << " " << step_s << " step " << n;
        least = std::min(least, stepper.state("m")[0]);
      }
      EXPECT_LT(least, -0.1) << energy;
      EXPECT_EQ(stepper.iterations().not_converged, 0) << energy;
      EXPECT_NE(stepper.certificate().status, CertificateStatus::violated)
          << energy << " " << step_s;
    }
  }
}

/// A numerator that is small where the divisor is 0, or 0 to a lower order, leaves a pole; and products of signs may
/// underflow where signs do not.
TEST(PhysicsByExpressions, NoStepLeadsOverAPoleWhoseNumeratorIsSmall) {
  for (const char* energy : {"p^2/2 + sin(q)/q^2", "p^2/2 + (q + 0.1)/q", "p^2/2 + 1e-6/q",
                             "p^2/2 + 1e-200/(1e-200*q)", "p^2/2 + q^2*(q + 3)/q^3"}) {
    for (const double step_s : {0.01, 0.1, 0.25}) {
      for (const double p : {-0.5, -3.0, -10.0}) {
        const Scenario own = mass_by_energy(energy, 1.0, p, step_s, "[1, 0]");
        Stepper stepper(own.system, own.options);
        try {
          stepper.step(100);
        } catch (const StepError& error) {
          EXPECT_EQ(error.part(), "m");
        }
        EXPECT_GT(stepper.state("m")[0], 0.0) << energy << " " << step_s << " " << p;
      }
    }
  }
}

TEST(PhysicsByExpressions, AnEnergyWithoutASecondDerivativeAtTheStartIsNamed) {
  const auto error_at = [](double q) -> std::string {
    const Scenario own = mass_by_energy("p^2/2 + abs(q)^1.5", q, 0.0, 0.01);
    try {
      Stepper stepper(own.system, own.options);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(error_at(0.0).find("\"m\": the second derivative of its stored energy by \"q\" is not "
                               "finite where it starts, at 0 m"),
            std::string::npos)
      << error_at(0.0);
  EXPECT_EQ(error_at(0.3), "");
}

TEST(PhysicsByExpressions, TheExampleKeepsItsEnergy) {
  const Scenario scenario = load_scenario(testing::source_file("examples/pendulum_by_energy.json"),
                                          {{"/time/end_s", "1"}});
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(500);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  const EnergyTotals energy = stepper.energy();
  EXPECT_NEAR(energy.final_J + energy.dissipated_J, energy.initial_J, 1e-8);
}

}  // namespace
}  // namespace portwave::test_physics_by_expressions
