// Motion that begins and ends between two rows, where half of the step sees as little of it as the step: what the
// comparison tells beside solutions written again.

#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include <Eigen/Eigenvalues>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/study/step_comparison.hpp"
#include "support/files/source_folder.hpp"

namespace portwave::test_transients {
namespace {

struct Seen {
  StepAgreement agreement;
  std::vector<std::vector<double>> rows;  ///< all states, after each step
  double told() const {
    return std::max(agreement.share * agreement.error_of_difference, agreement.instant_error());
  }
};

Seen run(const std::string& text) {
  const Scenario scenario = parse_scenario(text, "test.json", testing::source_folder());
  StepComparison comparison(scenario, scenario.options, StepComparison::Extent::whole);
  Stepper stepper(scenario.system, scenario.options);
  Seen out;
  while (stepper.step_index() < scenario.steps) {
    stepper.step();
    comparison.record(stepper);
    out.rows.emplace_back();
    for (const Part& part : scenario.system.parts()) {
      const auto state = stepper.state(part.name);
      out.rows.back().insert(out.rows.back().end(), state.begin(), state.end());
    }
  }
  out.agreement = *comparison.finish(stepper.step_index(), std::abs(stepper.energy().supplied_J));
  return out;
}

/// A body of 1 kg with a damper, on dry friction.
std::string body(const std::string& time, double damping, double friction, double creep,
                 const std::string& more) {
  return R"({"name": "body", "time": )" + time + R"(, "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": 1, "damping_Ns_per_m": )" +
         std::to_string(damping) + "}" + more + R"(},
    {"name": "f", "type": "coulomb_damper", "parameters": {"friction_N": )" +
         std::to_string(friction) + R"(, "creep_speed_m_per_s": )" + std::to_string(creep) + R"(}}],
    "couplings": [{"kind": "connection", "ports": ["m.port", "f.end"]}]})";
}

/// How far it goes that way, by small explicit steps.
double way(double damping, double friction, double creep, double speed, double force,
           double force_s, double end_s) {
  constexpr double kStep = 2e-6;
  double x = 0.0, v = speed;
  for (double t = 0.0; t < end_s; t += kStep) {
    const auto rate = [&](double at_s, double u) {
      return (at_s < force_s ? force : 0.0) - damping * u - friction * std::tanh(u / creep);
    };
    const double middle = v + 0.5 * kStep * rate(t, v);
    x += kStep * middle;
    v += kStep * rate(t + 0.5 * kStep, middle);
  }
  return x;
}

/// In one damped step, and in two of half the size, friction takes all the speed before the body has moved.
TEST(Transients, ABodyThatStopsInItsFirstStep) {
  const Seen own = run(body(R"({"step_s": 0.6, "steps": 20})", 15.0, 5.3, 1e-3,
                            R"(, "initial_state": {"velocity": 0.5})"));
  const double exact_m = way(15.0, 5.3, 1e-3, 0.5, 0.0, 0.0, 0.6);
  EXPECT_NEAR(exact_m, 0.01256, 1e-4);
  EXPECT_LT(own.rows.back()[0], 0.1 * exact_m);
  EXPECT_GT(own.told(), 0.5);
  EXPECT_TRUE(own.agreement.is_far());
}

/// It rests in every row, and has moved all the same.
TEST(Transients, ABodyThatIsHitBetweenTwoRows) {
  constexpr double kForce_N = 5.14, kHit_s = 0.00893;
  for (const double at_s : {3.625, 3.5}) {
    const auto knot = [](double t, double value) {
      return "[" + std::to_string(t) + ", " + std::to_string(value) + "]";
    };
    const std::string knots = "[[0, 0], " + knot(at_s, 0.0) + ", " + knot(at_s, kForce_N) + ", " +
                              knot(at_s + kHit_s, kForce_N) + ", " + knot(at_s + kHit_s, 0.0) + "]";
    const Seen own =
        run(body(R"({"step_s": 0.5, "steps": 40})", 34.6, 1.68, 4.3e-3,
                 R"(, "inputs": {"force": {"kind": "table", "knots": )" + knots + "}}"));
    const double exact_m = way(34.6, 1.68, 4.3e-3, 0.0, kForce_N, kHit_s, 1.0);
    const double off = std::abs(own.rows.back()[0] - exact_m) / std::abs(own.rows.back()[0]);
    EXPECT_GT(off, 0.1);
    EXPECT_GT(own.told(), 0.5 * off) << at_s;
  }
}

/// Its speed in the rows is creep of rounding, of which no error is one of the run.
TEST(Transients, TheSpeedOfABodyThatRestsInAllRowsIsNotJudged) {
  const Seen own =
      run(R"file({"name": "rest", "time": {"step_s": 0.05, "steps": 40}, "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": 1},
     "inputs": {"force": "if(mod(t, 0.5) < 0.002, 300, 0)"}},
    {"name": "f", "type": "coulomb_damper",
     "parameters": {"friction_N": 40, "creep_speed_m_per_s": 0.0001}}],
    "couplings": [{"kind": "connection", "ports": ["m.port", "f.end"]}],
    "method": {"kind": "auto", "stages": 2}})file");
  // Four times 2 ms under 260 N, and what .52 m/s slide on 40 N.
  EXPECT_NEAR(own.rows.back()[0], 0.0156, 1e-6);
  EXPECT_FALSE(own.agreement.is_far()) << own.agreement.state;
}

/// Pieces of a step have the size of the motion within it, in steps of half the size, too: those of a comparison are
/// shorter. A slow mass carries a fast one, whose oscillation is over within some steps.
TEST(Transients, AnOscillationThatEndsWithinSomeSteps) {
  constexpr double kStep = 0.05;
  const Seen own = run(R"({"name": "two", "time": {"step_s": 0.05, "steps": 40}, "subsystems": [
    {"name": "m", "type": "mass", "parameters": {"mass_kg": 1, "ports": 2},
     "initial_state": {"velocity": 0.5}},
    {"name": "s", "type": "spring", "parameters": {"stiffness_N_per_m": 1}},
    {"name": "s2", "type": "spring_damper",
     "parameters": {"stiffness_N_per_m": 64000, "damping_Ns_per_m": 0.028},
     "initial_state": {"elongation": 0.001}},
    {"name": "m2", "type": "mass", "parameters": {"mass_kg": 0.001}}],
    "couplings": [{"kind": "connection", "ports": ["m.port_1", "s.right"]},
      {"kind": "fixed", "ports": ["s.left"]}, {"kind": "connection", "ports": ["m.port_2", "s2.left"]},
      {"kind": "connection", "ports": ["s2.right", "m2.port"]}]})");
  // Elongation and speed of the slow one, of the fast one.
  Eigen::Matrix4d A;
  A << 0, 1, 0, 0, -1, -0.028, 64000, 0.028, 0, -1, 0, 1, 0, 28, -6.4e7, -28;
  const Eigen::EigenSolver<Eigen::Matrix4d> solver(A);
  const Eigen::Matrix4cd V = solver.eigenvectors();
  const Eigen::Vector4cd start =
      V.inverse() * Eigen::Vector4d(0.0, 0.5, 0.001, 0.0).cast<std::complex<double>>();
  constexpr std::size_t kFastSpeed =
      5;  // behind two states of m, one of s and of s2, and the position of m2
  double off = 0.0, least = 0.0, most = 0.0;
  for (std::size_t row = 0; row < own.rows.size(); ++row) {
    const double t = kStep * static_cast<double>(row + 1);
    const Eigen::Vector4cd grown =
        (solver.eigenvalues() * t).array().exp().matrix().cwiseProduct(start);
    const double exact = (V * grown).real()[3];
    const double value = own.rows[row][kFastSpeed];
    off = std::max(off, std::abs(value - exact));
    least = std::min(least, value);
    most = std::max(most, value);
  }
  EXPECT_GT(off, 0.05 * (most - least));
  EXPECT_GT(own.told() * (most - least), 0.5 * off);
}

/// Numbers of states without a unit have nothing in common: a state of 1e6 hides no other of 1 with as much energy.
TEST(Transients, StatesWithoutUnitsAreComparedByTheirEnergy) {
  const auto turning = [](const std::string& name, const std::string& size,
                          const std::string& rate) {
    return R"({"name": ")" + name + R"(", "type": "port_hamiltonian", "initial_state": [)" + size +
           R"j(, 0], "parameters": {"energy": "(x^2 + y^2)/(2*s^2)", "states": ["x", "y"],
             "constants": {"s": )j" +
           size + R"(, "w": )" + rate +
           R"(}, "J": [[0, "w*s^2"], ["-w*s^2", 0]], "G": [[0], ["s"]],
             "ports": [{"name": "a", "causality": "effort_in"}]}})";
  };
  const Seen own = run(R"({"name": "pair", "time": {"step_s": 0.2, "end_s": 30}, "couplings":
    [{"kind": "skew_gain", "ports": ["wide.a", "quick.a"], "gain": [[0, 1e-9], [-1e-9, 0]]}],
    "subsystems": [)" + turning("wide", "1e6", "0.05") +
                       ", " + turning("quick", "1", "1") + "]}");
  // The midpoint rule turns by 2 atan(h/2) in a step: half the step differs by most of a tenth of a radian.
  EXPECT_NEAR(own.told(), 0.5 * 30.0 * 0.2 * 0.2 / 12.0, 0.01);

  // A place of which the energy knows nothing, 3e8 away in the end.
  const std::string coasting =
      R"({"name": "wide", "type": "port_hamiltonian", "initial_state": [0, 1e7],
    "parameters": {"states": ["q", "p"], "energy": "p^2/2", "J": [[0, 1], [-1, 0]], "G": [[0], [1]],
      "ports": [{"name": "a", "causality": "effort_in"}]}})";
  const Seen beside = run(R"({"name": "pair", "time": {"step_s": 0.2, "end_s": 30}, "couplings":
    [{"kind": "skew_gain", "ports": ["wide.a", "quick.a"], "gain": [[0, 1e-12], [-1e-12, 0]]}],
    "subsystems": [)" + coasting +
                          ", " + turning("quick", "1", "1") + "]}");
  EXPECT_NEAR(beside.told(), own.told(), 0.01);
}

/// A stiff spring between two masses that coast, one of them with a port that leads nowhere: what its waves would be with
/// an impedance of 1 depends on the units, and is no motion beside which that of the spring is rounding.
TEST(Transients, PortsThatLeadNowhereHideNothingInAnyUnits) {
  const auto pair = [](double second) {
    const auto text = [](double value) { return fmt::format("{:.17g}", value); };
    const double newton = second, kg = newton * second * second;
    return R"({"name": "pair", "time": {"steps": 100, "step_s": )" + text(0.1 * second) +
           R"(}, "subsystems": [{"name": "a", "type": "mass", "initial_state": {"velocity": )" +
           text(1.0 / second) + R"(}, "parameters": {"ports": 2, "mass_kg": )" + text(kg) +
           R"(}}, {"name": "b", "type": "mass", "initial_state": {"velocity": )" +
           text(1.0 / second) + R"(}, "parameters": {"mass_kg": )" + text(0.01 * kg) +
           R"(}}, {"name": "s", "type": "spring", "initial_state": [0.001],
             "parameters": {"stiffness_N_per_m": )" +
           text(1e3 * newton) + R"(}}], "couplings": [
             {"kind": "connection", "ports": ["s.left", "a.port_1"]}, {"kind": "free", "ports": ["a.port_2"]},
             {"kind": "connection", "ports": ["s.right", "b.port"]}]})";
  };
  const Seen one = run(pair(1.0)), small = run(pair(1e-9));
  EXPECT_GT(one.told(), 0.5);  // hω = 32
  EXPECT_NEAR(small.told(), one.told(), 0.01 * one.told());
  EXPECT_EQ(small.agreement.unjudged, "");
}

}  // namespace
}  // namespace portwave::test_transients
