// Parameters that follow signals: each step is that of a stepper whose parameters a program sets, the account of
// energy holds the work of every change, and functions of time are held to second order.

#include <array>
#include <cmath>
#include <functional>
#include <memory>
#include <numbers>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/scenario/network_builder.hpp>
#include <portwave/runtime/scenario/part_parameters.hpp>
#include <portwave/runtime/scenario/part_recipes.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/signals/block.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

namespace portwave::test_driven_parameters {
namespace {

Scenario parsed(const std::string& text) { return parse_scenario(text, "driven.json", "."); }

/// A mass between a spring with a damper and a Duffing oscillator. `inputs`: of the spring.
std::string chain(const std::string& inputs, const std::string& more = "", double step_s = 0.01) {
  return fmt::format(
      R"({{"name": "chain", "time": {{"step_s": {}, "end_s": 4}}, "method": {{"kind": "auto"}},
        "subsystems": [
          {{"name": "body", "type": "mass", "parameters": {{"mass_kg": 2, "ports": 2}},
            "initial_state": {{"velocity": 1}}}},
          {{"name": "wall", "type": "flow_source", "parameters": {{"domain": "translation"}}}},
          {{"name": "spring", "type": "spring_damper", "inputs": {{{}}},
            "parameters": {{"stiffness_N_per_m": 100, "damping_Ns_per_m": 0.5}}}},
          {{"name": "other", "type": "duffing_oscillator", "parameters": {{"mass_kg": 1,
            "stiffness_N_per_m": 30, "cubic_stiffness_N_per_m3": 200,
            "coupling_stiffness_N_per_m": 50}}}}],
        "couplings": [
          {{"kind": "connection", "ports": ["body.port_1", "spring.right"]}},
          {{"kind": "connection", "ports": ["wall.port", "spring.left"]}},
          {{"kind": "connection", "ports": ["body.port_2", "other.coupling"]}}]{}}})",
      step_s, inputs, more);
}

constexpr const char* kStiffness =
    R"j("stiffness_N_per_m": {"kind": "expression", "expression": "100 + 40*sin(3*t)"})j";
double stiffness_at(double time_s) { return 100.0 + 40.0 * std::sin(3.0 * time_s); }

/// Damping that follows what a controller makes of a measurement.
constexpr const char* kDamping = R"("damping_Ns_per_m": {"kind": "signal", "signal": "c"})";
constexpr const char* kLaw = R"j(, "signals": {"blocks": [{"name": "c", "kind": "expression",
    "expression": "if(v > 0, 6, 0.5)", "signals": {"v": "body.velocity"}}]})j";

std::vector<double> states_of(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    const auto own = stepper.state(i);
    out.insert(out.end(), own.begin(), own.end());
  }
  for (const double own : {stepper.energy().final_J, stepper.energy().supplied_J,
                           stepper.energy().dissipated_J, stepper.energy().mismatch_J}) {
    out.push_back(own);
  }
  return out;
}

struct Setting {
  const char* name;
  std::function<void(StepperOptions&)> change;
};

class DrivenParameters : public ::testing::TestWithParam<Setting> {};

TEST_P(DrivenParameters, AreThoseThatAProgramSetsBeforeEveryStep) {
  Scenario driven = parsed(chain(fmt::format("{}, {}", kStiffness, kDamping), kLaw));
  Scenario plain = parsed(chain(""));
  GetParam().change(driven.options);
  GetParam().change(plain.options);
  Stepper own(driven.system, driven.options);
  Stepper set(std::move(plain.system), plain.options);
  for (int n = 0; n < 300; ++n) {
    set_parameter(set, plain, "spring.stiffness_N_per_m", stiffness_at(own.time_s() + 0.005));
    const double speed = set.state("body")[1];
    set_parameter(set, plain, "spring.damping_Ns_per_m", speed > 0.0 ? 6.0 : 0.5);
    own.step();
    set.step();
    ASSERT_EQ(states_of(own).size(), states_of(set).size());
    for (std::size_t i = 0; i < states_of(own).size(); ++i) {
      ASSERT_NEAR(states_of(own)[i], states_of(set)[i], 1e-9 * (1.0 + std::abs(states_of(set)[i])))
          << n << " " << i;
    }
  }
  EXPECT_EQ(parameter(own, driven, "spring.stiffness_N_per_m"),
            parameter(set, plain, "spring.stiffness_N_per_m"));
  EXPECT_NE(parameter(own, driven, "spring.stiffness_N_per_m"), 100.0);
  EXPECT_EQ(own.certificate().status, CertificateStatus::holds);
}

INSTANTIATE_TEST_SUITE_P(
    Methods, DrivenParameters,
    ::testing::Values(Setting{"automatic", [](StepperOptions&) {}},
                      Setting{"threads",
                              [](StepperOptions& options) {
                                options.threads = 2;
                                options.executor = ExecutorKind::async;
                              }},
                      Setting{"stages",
                              [](StepperOptions& options) { options.method.waves().stages = 2; }},
                      Setting{"interface",
                              [](StepperOptions& options) {
                                options.method = WaveCoupling::automatic(1e-12);
                                options.method.waves().kind = WaveUpdate::interface;
                              }}),
    [](const auto& own) { return std::string(own.param.name); });

TEST(DrivenParameterEnergy, IsSuppliedByTheChangesToTheLastJoule) {
  Scenario scenario = parsed(chain(kStiffness));
  Stepper stepper(scenario.system, scenario.options);
  double work_J = 0.0, stiffness = 100.0;
  for (int n = 0; n < 400; ++n) {
    const double next = stiffness_at(stepper.time_s() + 0.005), d = stepper.state("spring")[0];
    work_J += 0.5 * (next - stiffness) * d * d;
    stiffness = next;
    stepper.step();
  }
  const EnergyTotals energy = stepper.energy();
  EXPECT_GT(std::abs(work_J), 1e-2);  // there is work to be lost
  EXPECT_NEAR(energy.supplied_J, work_J, 1e-10);
  EXPECT_NEAR(
      energy.final_J - energy.initial_J,
      energy.supplied_J - energy.dissipated_J - energy.mismatch_J - energy.numerical_dissipation_J,
      1e-10);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(DrivenParameterEnergy, OfEveryStepIsInItsReport) {
  for (const char* method : {"auto", "kick-drift", "taylor"}) {
    Scenario scenario = parsed(fmt::format(
        R"({{"name": "pumped", "time": {{"step_s": 0.02, "end_s": 4}}, "method": {{"kind": "{}"}},
          "subsystems": [
            {{"name": "body", "type": "mass", "parameters": {{"mass_kg": 2}}, "initial_state": {{"velocity": 1}}}},
            {{"name": "spring", "type": "spring", "inputs": {{{}}}, "parameters": {{"stiffness_N_per_m": 100}}}}],
          "couplings": [{{"kind": "connection", "ports": ["body.port", "spring.right"]}},
                        {{"kind": "fixed", "ports": ["spring.left"]}}]}})",
        method, kStiffness));
    Stepper stepper(scenario.system, scenario.options);
    double stored_J = stepper.energy().initial_J, supplied_J = 0.0;
    for (int n = 0; n < 200; ++n) {
      const StepLedger own = stepper.step().energy;
      ASSERT_NEAR(own.stored_J - stored_J, own.supplied_J - own.dissipated_J - own.mismatch_J,
                  1e-12)
          << method << n;
      ASSERT_NEAR(own.changed_J, own.stored_J - stored_J, 1e-12) << method << n;
      stored_J = own.stored_J;
      supplied_J += own.supplied_J;
    }
    EXPECT_GT(std::abs(supplied_J), 1e-2) << method;  // there is work to be lost
    EXPECT_NEAR(supplied_J, stepper.energy().supplied_J, 1e-12) << method;
  }
}

TEST(DrivenParameterEnergy, OfAPumpedOscillatorIsNoEnergyFromNothing) {
  // Stiffness at twice the frequency feeds an oscillation: the energy grows, and all of it is supplied.
  const std::string text = R"j({"name": "pumped", "time": {"step_s": 0.01, "end_s": 40},
    "method": {"kind": "auto"},
    "subsystems": [
      {"name": "body", "type": "mass", "parameters": {"mass_kg": 1},
       "initial_state": {"velocity": 0.1}},
      {"name": "wall", "type": "flow_source", "parameters": {"domain": "translation"}},
      {"name": "spring", "type": "spring", "parameters": {"stiffness_N_per_m": 100},
       "inputs": {"stiffness_N_per_m": {"kind": "expression",
                                        "expression": "100 - 20*sin(20*t)"}}}],
    "couplings": [{"kind": "connection", "ports": ["body.port", "spring.right"]},
                  {"kind": "connection", "ports": ["wall.port", "spring.left"]}]})j";
  Scenario scenario = parsed(text);
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(1000);
  const EnergyTotals energy = stepper.energy();
  EXPECT_GT(energy.final_J, 50.0 * energy.initial_J);
  EXPECT_NEAR(energy.final_J - energy.initial_J, energy.supplied_J, 1e-9 * energy.final_J);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

/// m q'' + c q' + k(t) q = 0 by Runge and Kutta in 2^17 steps.
std::array<double, 2> reference(double end_s) {
  constexpr int kSteps = 1 << 17;
  const double h = end_s / kSteps;
  using State = std::array<double, 2>;
  const auto rate = [](double t, const State& x) {
    return State{x[1], -stiffness_at(t) / 2.0 * x[0] - 0.5 / 2.0 * x[1]};
  };
  const auto moved = [](const State& x, double by, const State& along) {
    return State{x[0] + by * along[0], x[1] + by * along[1]};
  };
  State x{0.0, 1.0};
  for (int n = 0; n < kSteps; ++n) {
    const double t = n * h;
    const State a = rate(t, x), b = rate(t + h / 2, moved(x, h / 2, a)),
                c = rate(t + h / 2, moved(x, h / 2, b)), d = rate(t + h, moved(x, h, c));
    for (std::size_t i = 0; i < 2; ++i) x[i] += h / 6 * (a[i] + 2 * b[i] + 2 * c[i] + d[i]);
  }
  return x;
}

TEST(DrivenParameterOrder, IsTwoForFunctionsOfTime) {
  const std::array<double, 2> exact = reference(2.0);
  std::vector<double> errors;
  for (const int steps : {200, 400, 800}) {
    const std::string text = fmt::format(
        R"({{"name": "alone", "time": {{"step_s": {}, "end_s": 2}}, "method": {{"kind": "auto"}},
          "subsystems": [
            {{"name": "body", "type": "mass", "parameters": {{"mass_kg": 2}},
              "initial_state": {{"velocity": 1}}}},
            {{"name": "wall", "type": "flow_source", "parameters": {{"domain": "translation"}}}},
            {{"name": "spring", "type": "spring_damper", "inputs": {{{}}},
              "parameters": {{"stiffness_N_per_m": 100, "damping_Ns_per_m": 0.5}}}}],
          "couplings": [{{"kind": "connection", "ports": ["body.port", "spring.right"]}},
                        {{"kind": "connection", "ports": ["wall.port", "spring.left"]}}]}})",
        2.0 / steps, kStiffness);
    Scenario scenario = parsed(text);
    Stepper stepper(std::move(scenario.system), scenario.options);
    stepper.step(steps);
    errors.push_back(std::hypot(10.0 * (stepper.state("body")[0] - exact[0]),
                                stepper.state("body")[1] - exact[1]));
  }
  for (std::size_t i = 1; i < errors.size(); ++i) {
    EXPECT_NEAR(std::log2(errors[i - 1] / errors[i]), 2.0, 0.1) << errors[i - 1];
  }
}

/// Evaluations that 200 steps take to find derivatives of nonlinear parts, all by the interface equation.
std::int64_t linearisations(const std::string& inputs) {
  Scenario scenario = parsed(chain(inputs));
  scenario.options.method = WaveCoupling::automatic(1e-10);
  scenario.options.method.waves().kind = WaveUpdate::interface;
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(200);
  return stepper.iterations().linearisations;
}

TEST(DrivenParameterCost, IsNoDerivativeOfOtherParts) {
  const std::int64_t still = linearisations("");
  ASSERT_GT(still, 0);  // there are derivatives to be found
  EXPECT_LE(linearisations(kStiffness), 2 * still + 20);
  // A change that the old derivatives do not fit renews them.
  EXPECT_GT(linearisations(R"j("stiffness_N_per_m": {"kind": "expression",
                               "expression": "if(sin(300*t) > 0, 1e5, 1)"})j"),
            4 * still);
}

TEST(DrivenParameterSnapshots, GoOnBitByBit) {
  const std::string text = chain(fmt::format("{}, {}", kStiffness, kDamping), kLaw);
  Scenario scenario = parsed(text), again = parsed(text);
  Stepper stepper(scenario.system, scenario.options);
  stepper.step(37);
  const Snapshot then = stepper.snapshot();
  const std::vector<std::byte> bytes = then.to_bytes();
  Stepper clone = stepper.clone();
  stepper.step(50);
  const std::vector<double> expected = states_of(stepper);
  clone.step(50);
  EXPECT_EQ(states_of(clone), expected);
  stepper.step(13);
  stepper.restore(then);
  stepper.step(50);
  EXPECT_EQ(states_of(stepper), expected);
  Stepper other(again.system, again.options);
  other.restore(Snapshot::from_bytes(bytes));
  other.step(50);
  EXPECT_EQ(states_of(other), expected);
}

TEST(DrivenParameterSnapshots, OfAnotherDriveAreRefused) {
  // The same signal drives another parameter.
  Scenario one = parsed(chain(kDamping, kLaw)), same = parsed(chain(kDamping, kLaw));
  Scenario other = parsed(chain(R"("stiffness_N_per_m": {"kind": "signal", "signal": "c"})", kLaw));
  Stepper a(one.system, one.options), b(same.system, same.options);
  Stepper c(other.system, other.options);
  EXPECT_NO_THROW(b.restore(a.snapshot()));
  EXPECT_THROW(c.restore(a.snapshot()), std::invalid_argument);
}

TEST(DrivenParameterSnapshots, KeepWhatAProgramHasSetSinceTheSignalChanged) {
  const std::string text = chain(R"("damping_Ns_per_m": {"kind": "constant", "value": 4})");
  Scenario scenario = parsed(text), again = parsed(text);
  Stepper stepper(scenario.system, scenario.options), other(again.system, again.options);
  stepper.step(5);
  EXPECT_EQ(parameter(stepper, scenario, "spring.damping_Ns_per_m"), 4.0);
  set_parameter(stepper, scenario, "spring.damping_Ns_per_m", 2.0);
  other.restore(stepper.snapshot());
  for (Stepper* const each : {&stepper, &other}) {
    each->step(5);
    EXPECT_EQ(parameter(*each, "spring.damping_Ns_per_m"), 2.0);
  }
}

TEST(DrivenParameterFaults, StopBeforeTheStepAndNameAll) {
  Scenario scenario =
      parsed(chain(kDamping, R"(, "signals": {"blocks": [{"name": "c", "kind": "expression",
              "expression": "1 - 20*t", "signals": {}}]})"));
  Stepper stepper(scenario.system, scenario.options);
  std::string text;
  std::int64_t step = -1;
  try {
    stepper.step(100);
  } catch (const StepError& error) {
    text = error.what();
    step = error.step();
  }
  EXPECT_EQ(step, 6);
  EXPECT_EQ(stepper.step_index(), 6);
  EXPECT_NE(text.find("signal \"c\""), std::string::npos) << text;
  EXPECT_NE(text.find("spring.damping_Ns_per_m must be >= 0"), std::string::npos) << text;
  EXPECT_THROW(stepper.step(), StepError);  // and again
  EXPECT_EQ(stepper.step_index(), 6);
}

std::string errors_of(const std::string& text) {
  try {
    parsed(text);
  } catch (const ScenarioError& error) {
    return error.report();
  }
  return {};
}

TEST(DrivenParameterFaults, OfScenariosAreToldAtOnce) {
  const std::string none = errors_of(chain(R"("stiffness": {"kind": "signal", "signal": "x"})"));
  EXPECT_NE(none.find("stiffness"), std::string::npos);
  EXPECT_NE(errors_of(chain(R"("damping_Ns_per_m": {"kind": "settable"})")).find("set_parameter"),
            std::string::npos);
  EXPECT_NE(errors_of(chain(R"("damping_Ns_per_m": {"kind": "signal", "signal": "nobody"})"))
                .find("there is no signal \"nobody\""),
            std::string::npos);
  EXPECT_NE(errors_of(chain(kDamping, R"(, "signals": {"blocks": [{"name": "c", "kind": "step",
                "after": 1, "time_s": 1, "unit": "m"}]})"))
                .find("spring.damping_Ns_per_m"),
            std::string::npos);
  EXPECT_EQ(errors_of(chain(kDamping, kLaw)), "");
}

TEST(DrivenParameterGraphs, AreBuiltInCode) {
  NetworkBuilder network("pair");
  const PartHandle body = network.add("body", parts::mass({.mass_kg = 2}));
  const PartHandle spring =
      network.add("spring", parts::spring_damper({.stiffness_N_per_m = 50, .damping_Ns_per_m = 1}));
  network.connect(body.port("port"), spring.port("right"));
  network.free(spring.port("left"));
  network.set_state(body, "velocity", 1.0);
  Scenario scenario = network.build({.step_s = 0.01});
  SignalGraphBuilder graph(scenario.system);
  graph.block("k", block::held_source(Signal::expression("50 + t")), {});
  graph.actuate_parameter("k", spring.index(), "stiffness_N_per_m");
  scenario.options.signals = std::make_shared<const SignalGraph>(graph.build());
  Stepper stepper(std::move(scenario.system), scenario.options);
  stepper.step(10);
  EXPECT_NEAR(parameter(stepper, "spring.stiffness_N_per_m"), 50.095, 1e-12);

  SignalGraphBuilder wrong(stepper.system());
  wrong.block("k", block::source(Signal::constant(1.0)), {});
  wrong.actuate_parameter("k", spring.index(), "stiffness")
      .actuate_parameter("nobody", spring.index(), "damping_Ns_per_m")
      .actuate_parameter("k", 7, "mass_kg")
      .actuate_parameter("k", body.index(), "mass_kg")
      .actuate_parameter("k", body.index(), "mass_kg");
  EXPECT_EQ(wrong.check().size(), 4u);
}

}  // namespace
}  // namespace portwave::test_driven_parameters
