// Derivatives of steps in C++: forward and backward against differences of steps that were made, and what has none.

#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/scenario/scenario.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/runtime/study/step_derivatives.hpp"

namespace portwave {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

const char* const kDrivenPendulum = R"({"name": "driven",
  "time": {"step_s": 0.01, "end_s": 1.0},
  "method": {"kind": "auto", "tolerance": 1e-13},
  "subsystems": [
    {"name": "pendulum", "type": "pendulum", HOW
     "parameters": {"mass_kg": 1.0, "length_m": 0.5, "damping_Nms_per_rad": 0.02},
     "initial_state": [1.2, 0.3]},
    {"name": "spring", "type": "torsional_spring", "parameters": {"stiffness_Nm_per_rad": 20.0}},
    {"name": "flywheel", "type": "inertia", "parameters": {"inertia_kgm2": 0.1}},
    {"name": "drive", "type": "effort_source", "parameters": {"domain": "rotation"},
     "inputs": {"effort": {"kind": "settable"}}}],
  "couplings": [
    {"kind": "connection", "ports": ["pendulum.shaft", "spring.left"]},
    {"kind": "common_flow", "ports": ["spring.right", "flywheel.shaft", "drive.port"]}]})";

/// With `how` the pendulum is stepped.
Scenario scenario_of(const std::string& how) {
  std::string text = kDrivenPendulum;
  text.replace(text.find("HOW"), 3, how);
  return parse_scenario(text, "driven.json", ".");
}

VectorXd states_of(const Stepper& stepper) {
  std::vector<double> all;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    all.insert(all.end(), own.begin(), own.end());
  }
  return Eigen::Map<const VectorXd>(all.data(), static_cast<Eigen::Index>(all.size()));
}

/// x⁺ after a step from x with a torque.
VectorXd stepped(const Scenario& scenario, const VectorXd& x, double torque_Nm) {
  Stepper stepper(scenario.system, scenario.options);
  stepper.set_states({x.data(), static_cast<std::size_t>(x.size())});
  stepper.set_inputs(std::vector{torque_Nm});
  stepper.step();
  return states_of(stepper);
}

/// Central differences of fourth order.
template <class Run>
VectorXd difference(const Run& run, double by) {
  return (8.0 * (run(by) - run(-by)) - (run(2.0 * by) - run(-2.0 * by))) / (12.0 * by);
}

double largest_share(const MatrixXd& found, const MatrixXd& wanted) {
  return (found - wanted).cwiseAbs().maxCoeff() / wanted.cwiseAbs().maxCoeff();
}

class StepDerivativesOf : public ::testing::TestWithParam<const char*> {};

TEST_P(StepDerivativesOf, AreThoseOfDifferences) {
  const Scenario scenario = scenario_of(GetParam());
  constexpr double kTorque = 0.7;
  Stepper stepper(scenario.system, scenario.options);
  const VectorXd x = states_of(stepper);
  stepper.set_inputs(std::vector{kTorque});
  const std::vector<std::string> parameters = {"pendulum.length_m"};
  StepDifferentiator differentiator(stepper, scenario, 0.01, parameters);
  const StepDerivatives step = differentiator.step();
  ASSERT_EQ(step.states(), x.size());
  ASSERT_EQ(step.inputs(), 1);
  ASSERT_EQ(step.parameters(), 1);
  EXPECT_LT(largest_share(states_of(stepper), stepped(scenario, x, kTorque)), 1e-14);

  MatrixXd by_state(x.size(), x.size());
  for (Eigen::Index i = 0; i < x.size(); ++i) {
    by_state.col(i) = difference(
        [&](double by) { return stepped(scenario, x + by * VectorXd::Unit(x.size(), i), kTorque); },
        1e-3);
  }
  const VectorXd by_input =
      difference([&](double by) { return stepped(scenario, x, kTorque + by); }, 1e-2);
  EXPECT_LT(largest_share(step.by_state(), by_state), 1e-9);
  EXPECT_LT(largest_share(step.by_input(), by_input), 1e-9);
  // The control: a derivative that is off by a hundred-millionth is noticed, and so is that of another step.
  EXPECT_GT(largest_share((1.0 + 1e-8) * step.by_state(), by_state), 1e-9);
  EXPECT_GT(largest_share(differentiator.step().by_state(), by_state), 1e-9);

  const VectorXd weights = VectorXd::LinSpaced(x.size(), -1.0, 2.0);
  const StepDerivatives::Cotangents back = step.adjoint(weights);
  EXPECT_LT(largest_share(back.state, step.by_state().transpose() * weights), 1e-11);
  EXPECT_LT(largest_share(back.input, step.by_input().transpose() * weights), 1e-11);
  EXPECT_LT(largest_share(back.parameter, step.by_parameter().transpose() * weights), 1e-11);
}

INSTANTIATE_TEST_SUITE_P(StepDerivatives, StepDerivativesOf,
                         ::testing::Values("", R"("substeps": 3,)", R"("integrator": "damped",)",
                                           R"("integrator": "damped", "theta": 0.5,)"));

/// A body that rests against an end stop, so far pressed into it.
std::string pressed(double approach_m) {
  const std::string by = std::to_string(approach_m);
  return R"({"name": "stop", "time": {"step_s": 0.01, "end_s": 1.0},
    "method": {"kind": "auto", "tolerance": 1e-13},
    "subsystems": [
      {"name": "body", "type": "mass", "parameters": {"mass_kg": 1.0}},
      {"name": "stop", "type": "contact", "parameters": {"force_N": 100.0, "compression_m": 0.1},
       "initial_state": [)" +
         by + R"(]}],
    "couplings": [{"kind": "connection", "ports": ["body.port", "stop.face"]}]})";
}

std::string told_by_a_step(double approach_m) {
  const Scenario scenario = parse_scenario(pressed(approach_m), "stop.json", ".");
  Stepper stepper(scenario.system, scenario.options);
  StepDifferentiator differentiator(stepper, scenario, 0.01);
  try {
    differentiator.step();
  } catch (const std::runtime_error& error) {
    EXPECT_EQ(stepper.step_index(), 1);
    return error.what();
  }
  return "";
}

TEST(StepDerivatives, AreRefusedRightAtAKinkByTheNameOfThePart) {
  EXPECT_NE(told_by_a_step(0.0).find("part \"stop\" has a kink at this state"), std::string::npos)
      << told_by_a_step(0.0);
  // The controls: on either side there are derivatives.
  EXPECT_EQ(told_by_a_step(0.05), "");
  EXPECT_EQ(told_by_a_step(-0.05), "");
}

TEST(StepDerivatives, AreRefusedByNameBeforeAStep) {
  const Scenario scenario = scenario_of("");
  Stepper stepper(scenario.system, scenario.options);
  const std::vector<std::string> unknown = {"pendulum.length"};
  EXPECT_THROW(StepDifferentiator(stepper, scenario, 0.01, unknown), std::exception);
  EXPECT_EQ(stepper.step_index(), 0);
  // The control.
  EXPECT_NO_THROW(StepDifferentiator(stepper, scenario, 0.01).step());
  EXPECT_EQ(stepper.step_index(), 1);
}

}  // namespace
}  // namespace portwave
