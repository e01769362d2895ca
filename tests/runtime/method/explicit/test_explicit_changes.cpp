// What may change between the steps of kicks and drifts, and of Taylor series: inputs that are set, by a program or a
// controller, and states.

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "runtime/method/network/network_method_runs.hpp"

namespace portwave::test_explicit_changes {
namespace {

constexpr SplittingKind kKinds[] = {SplittingKind::kick_drift, SplittingKind::taylor};

StepperOptions options_of(SplittingKind kind, double step_s) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = kind, .order = kind == SplittingKind::taylor ? 12 : 6};
  return options;
}

StepperOptions with_sizes(StepperOptions options, double tolerance = 1e-8) {
  options.sizes = StepSizes{.tolerance = tolerance};
  return options;
}

System oscillator(const Signal& force) {
  SystemBuilder builder;
  builder.add(
      "a", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 50.0, .damping_Ns_per_m = 0.3}),
      {.initial_state = {0.1, -0.2}, .inputs = {{"force", force}}});
  builder.join(joint::Free{}, {"a.coupling"});
  return builder.build();
}

std::vector<double> whole(const Stepper& stepper) {
  const auto x = stepper.state(0);
  return {x.begin(), x.end()};
}

TEST(ExplicitChanges, AnInputThatIsSetIsHeldOverTheStepsToCome) {
  const System set = oscillator(Signal::settable(1.0));
  const System given = oscillator(Signal::piecewise_linear(
      {{0.0, 1.0}, {0.5, 1.0}, {0.5, -3.0}, {1.25, -3.0}, {1.25, 2.0}, {9.0, 2.0}}));
  for (const SplittingKind kind : kKinds) {
    for (const bool chosen : {false, true}) {
      const StepperOptions options =
          chosen ? with_sizes(options_of(kind, 0.05)) : options_of(kind, 0.05);
      Stepper stepper(set, options), expected(given, options), untouched(set, options);
      const InputSlot force = stepper.find_input("a.force");
      EXPECT_EQ(stepper.input(force), 1.0);
      stepper.run_until(0.5);
      stepper.set_input(force, -3.0);
      stepper.run_until(1.25);
      const Snapshot snapshot = stepper.snapshot();
      stepper.set_input(force, 2.0);
      stepper.run_until(2.0);
      expected.run_until(2.0);
      untouched.run_until(2.0);
      const double same = chosen ? 1e-7 : 1e-12;
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(stepper.state(0)[i], expected.state(0)[i], same) << chosen;
        EXPECT_GT(std::abs(stepper.state(0)[i] - untouched.state(0)[i]), 1e-3) << "control";
      }
      EXPECT_NEAR(stepper.energy().supplied_J, expected.energy().supplied_J, same);
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
      const std::vector<double> end = whole(stepper);
      stepper.restore(snapshot);
      EXPECT_EQ(stepper.input(force), -3.0) << "a snapshot holds what was set";
      stepper.set_input(force, 2.0);
      stepper.run_until(2.0);
      EXPECT_EQ(whole(stepper), end);
    }
  }
}

TEST(ExplicitChanges, StatesThatAreSetAreSuppliedAndSteppedFrom) {
  const System system = oscillator(Signal::constant(0.5));
  SystemBuilder builder;
  builder.add(
      "a", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 50.0, .damping_Ns_per_m = 0.3}),
      {.initial_state = {-0.7, 1.5}, .inputs = {{"force", Signal::constant(0.5)}}});
  builder.join(joint::Free{}, {"a.coupling"});
  const System other = builder.build();
  const double states[] = {-0.7, 1.5};
  for (const SplittingKind kind : kKinds) {
    for (const bool chosen : {false, true}) {
      const StepperOptions options =
          chosen ? with_sizes(options_of(kind, 0.1)) : options_of(kind, 0.1);
      Stepper stepper(system, options), expected(other, options);
      stepper.run_until(1.0);
      const EnergyTotals before = stepper.energy();
      const double flow = stepper.flow(0);
      stepper.set_states(states);
      EXPECT_EQ(whole(stepper), std::vector<double>(states, states + 2));
      EXPECT_NEAR(std::abs(stepper.flow(0)), 1.5, 1e-14) << "that of the present states";
      EXPECT_NE(stepper.flow(0), flow) << "control";
      const EnergyTotals after = stepper.energy();
      EXPECT_NEAR(after.final_J, 0.5 * 50.0 * 0.49 + 0.5 * 2.0 * 2.25, 1e-12);
      EXPECT_NEAR(after.supplied_J - before.supplied_J, after.final_J - before.final_J, 1e-12);
      stepper.run_until(2.0);
      expected.run_until(1.0);
      const double same = chosen ? 1e-7 : 1e-12;
      for (int i = 0; i < 2; ++i) {
        EXPECT_NEAR(stepper.state(0)[i], expected.state(0)[i], same) << chosen;
      }
      const EnergyTotals total = stepper.energy();
      EXPECT_NEAR(total.final_J + total.tank_J - total.initial_J,
                  total.supplied_J - total.dissipated_J, 1e-12);
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
      EXPECT_NEAR(stepper.storage(0), total.final_J, 1e-12);
      Stepper alone(system, options);
      alone.run_until(2.0);
      EXPECT_GT(std::abs(stepper.state(0)[0] - alone.state(0)[0]), 1e-2) << "control";
    }
  }
}

TEST(ExplicitChanges, WithinTheLastStepThereIsNoStateButTheOneThatWasSet) {
  const System system = oscillator(Signal::constant(0.5));
  const double states[] = {-0.7, 1.5};
  for (const SplittingKind kind : kKinds) {
    Stepper stepper(system, with_sizes(options_of(kind, 0.1)));
    stepper.run_until(1.0);
    stepper.set_states(states);
    double x[2];
    stepper.state_at(0, 1.0 - 0.5 * stepper.step_sizes()->last_s, x);
    EXPECT_EQ(x[0], -0.7);
    Stepper again(system, with_sizes(options_of(kind, 0.1)));
    again.restore(stepper.snapshot());
    stepper.run_until(2.0);
    again.run_until(2.0);
    EXPECT_EQ(whole(again), whole(stepper));
  }
}

constexpr const char* kLoop = R"({
  "name": "loop",
  "time": {"step_s": 0.01, "end_s": 4},
  "subsystems": [
    {"name": "slide", "type": "linear_oscillator",
     "parameters": {"mass_kg": 1, "stiffness_N_per_m": 4, "damping_Ns_per_m": 0.2},
     "inputs": {"force": {"kind": "signal", "signal": "pid"}}}
  ],
  "couplings": [{"kind": "free", "ports": ["slide.coupling"]}],
  "signals": {
    "every": 5,
    "blocks": [
      {"name": "target", "kind": "step", "time_s": 0.5, "after": 1},
      {"name": "pid", "kind": "pid", "setpoint": "target", "measurement": "slide.q2",
       "proportional": 20, "integral": 15, "derivative": 8, "derivative_filter_s": 0.02,
       "minimum": -30, "maximum": 30}
    ]
  }
})";

TEST(ExplicitChanges, AControllerClosesTheSameLoopAsWithWaves) {
  const auto run = [](const char* method, const char* time, const char* signals_every) {
    std::vector<Override> set = {{"/method", method}, {"/time", time}};
    std::string loop = kLoop;
    if (*signals_every != '\0') {
      loop.replace(loop.find("\"every\": 5"), 10, signals_every);
    }
    const Scenario scenario = parse_scenario(loop, "loop", ".", set);
    Stepper stepper(scenario.system, scenario.options);
    stepper.run_until(scenario.end_s);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    return whole(stepper);
  };
  constexpr const char* kEqual = R"({"step_s": 0.01, "end_s": 4})";
  constexpr const char* kChosen =
      R"({"step": {"kind": "adaptive", "tolerance": 1e-8}, "end_s": 4})";
  const auto expected = run(R"({"kind": "auto", "stages": 3})", kEqual, "");
  EXPECT_NEAR(expected[0], 1.0, 0.2) << "control: the loop follows its target";
  for (const char* const method :
       {R"({"kind": "kick-drift", "order": 6})", R"({"kind": "taylor", "order": 12})"}) {
    const auto equal = run(method, kEqual, ""), chosen = run(method, kChosen, "\"every_s\": 0.05");
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(equal[i], expected[i], 1e-8) << method;
      EXPECT_NEAR(chosen[i], expected[i], 1e-6) << method;
    }
  }
}

TEST(ExplicitChanges, ReplicasHaveTheirOwnInputs) {
  const System system = oscillator(Signal::settable(0.0));
  for (const SplittingKind kind : kKinds) {
    const StepperOptions options = options_of(kind, 0.05);
    Ensemble ensemble(system, 3, options);
    std::vector<double> before;
    for (int r = 0; r < 3; ++r) ensemble.set_input(r, 0, 1.0 + r);
    ensemble.step(20);
    for (int r = 0; r < 3; ++r) {
      Stepper stepper(system, options);
      stepper.set_input(InputSlot{0}, 1.0 + r);
      stepper.step(20);
      std::vector<double> x(2);
      ensemble.get_state(r, x);
      EXPECT_EQ(x, whole(stepper)) << r;
      EXPECT_NE(x, before) << "control: the inputs of replicas differ";
      before = x;
    }
  }
}

TEST(ExplicitChanges, OtherMethodsWithoutWavesStillRefuse) {
  const System system = oscillator(Signal::settable(0.0));
  StepperOptions options = options_of(SplittingKind::strang, 0.05);
  options.method = Splitting{.kind = SplittingKind::strang};
  Stepper stepper(system, options);
  EXPECT_THROW(stepper.set_input(InputSlot{0}, 1.0), std::logic_error);
  const double states[] = {0.0, 0.0};
  EXPECT_THROW(stepper.set_states(states), std::logic_error);
  EXPECT_THROW(Ensemble(system, 2, options), ConfigError);
}

}  // namespace
}  // namespace portwave::test_explicit_changes
