// Parts that are exchanged between the steps of kicks and drifts, and of Taylor series.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/ensemble/ensemble.hpp>
#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>
#include <portwave/subsystems/catalogue/parts.hpp>

#include "runtime/method/network/network_method_runs.hpp"
#include "runtime/method/states_of_stepper.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_explicit_exchanges {
namespace {

using testing::all_states;

constexpr SplittingKind kKinds[] = {SplittingKind::kick_drift, SplittingKind::taylor};

StepperOptions options_of(SplittingKind kind, bool chosen) {
  StepperOptions options;
  options.step_s = chosen ? 0.5 : 0.02;
  if (chosen) options.sizes = StepSizes{.tolerance = 1e-9};
  options.method = Splitting{.kind = kind, .order = kind == SplittingKind::taylor ? 12 : 6};
  return options;
}

LinearOscillatorParameters soft() {
  return {.mass_kg = 2.0, .stiffness_N_per_m = 50.0, .damping_Ns_per_m = 0.3};
}

System oscillator(const LinearOscillatorParameters& parameters, std::vector<double> start,
                  double push = 0.5) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator(parameters),
              {.initial_state = std::move(start), .inputs = {{"force", Signal::constant(push)}}});
  builder.join(joint::Free{}, {"a.coupling"});
  return builder.build();
}

double most_apart(const std::vector<double>& a, const std::vector<double>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(ExplicitExchanges, APartIsAnotherOneFromThenOn) {
  LinearOscillatorParameters stiff = soft();
  stiff.stiffness_N_per_m = 700.0;
  stiff.damping_Ns_per_m = 0.0;  // of a state that was damped before
  for (const SplittingKind kind : kKinds) {
    for (const bool chosen : {false, true}) {
      const StepperOptions options = options_of(kind, chosen);
      Stepper stepper(oscillator(soft(), {0.1, -0.2}), options);
      Stepper untouched(oscillator(soft(), {0.1, -0.2}), options);
      stepper.run_until(1.0);
      const std::vector<double> at_change = all_states(stepper);
      const EnergyTotals before = stepper.energy();
      stepper.set_component(0, linear_oscillator(stiff));
      EXPECT_EQ(all_states(stepper), at_change) << "states carry on";
      const EnergyTotals after = stepper.energy();
      const double more_J = 0.5 * 650.0 * at_change[0] * at_change[0];
      EXPECT_NEAR(after.supplied_J - before.supplied_J, more_J, 1e-13);
      EXPECT_NEAR(after.final_J - before.final_J, more_J, 1e-13);
      const Snapshot snapshot = stepper.snapshot();
      stepper.run_until(2.0);
      untouched.run_until(2.0);

      StepperOptions of_expected = options;
      of_expected.start_s = 1.0;
      Stepper expected(oscillator(stiff, at_change), of_expected);
      expected.run_until(2.0);
      const double same = chosen ? 1e-7 : 1e-12;
      EXPECT_LT(most_apart(all_states(stepper), all_states(expected)), same) << chosen;
      EXPECT_GT(most_apart(all_states(stepper), all_states(untouched)), 1e-2) << "control";
      const EnergyTotals end = stepper.energy();
      EXPECT_NEAR(end.final_J + end.tank_J - end.initial_J, end.supplied_J - end.dissipated_J,
                  1e-12);
      EXPECT_NEAR(end.dissipated_J, before.dissipated_J, 1e-14) << "nothing damps any more";
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);

      const std::vector<double> at_end = all_states(stepper);
      Stepper other(oscillator(soft(), {0.1, -0.2}), options);
      for (Stepper* again : {&stepper, &other}) {
        again->restore(snapshot);
        again->run_until(2.0);
        EXPECT_EQ(all_states(*again), at_end) << "a snapshot holds the exchange";
      }
    }
  }
}

TEST(ExplicitExchanges, APartThatDoesNotFitIsRefusedAndNothingHasChanged) {
  const auto contact = [](double force_N, double damping) {
    return parts::contact({.force_N = force_N, .compression_m = 0.1, .damping_s_per_m = damping})
        .build();
  };
  const auto made = [&] {
    SystemBuilder builder;
    builder.add("m", parts::mass({.mass_kg = 1.0}), {.initial_state = {0.05, 1.0}});
    builder.add("c", contact(30.0, 0.0), {.initial_state = {0.05}});
    builder.connect("m.port", "c.face");
    return builder.build();
  };
  const StepperOptions options = options_of(SplittingKind::kick_drift, false);
  Stepper stepper(made(), options), untouched(made(), options);
  stepper.run_until(0.5);
  EXPECT_THROW(stepper.set_component(1, contact(30.0, 0.4)), ConfigError);
  stepper.run_until(1.0);
  untouched.run_until(1.0);
  EXPECT_EQ(all_states(stepper), all_states(untouched));
  EXPECT_EQ(stepper.energy().supplied_J, untouched.energy().supplied_J);
  Stepper other(made(), options);
  other.set_component(1, contact(50.0, 0.0));
  other.run_until(1.0);
  EXPECT_NE(all_states(other), all_states(untouched)) << "control: one that fits is taken";
}

/// A swinging mass; a spring of `stiffness` hangs on it with a free end, unless that is 0.
System hung(double stiffness, double elongation, double damping = 0.0) {
  SystemBuilder builder;
  builder.add("m",
              duffing_oscillator({.mass_kg = 2.0,
                                  .stiffness_N_per_m = 30.0,
                                  .damping_Ns_per_m = 0.1,
                                  .coupling_stiffness_N_per_m = stiffness,
                                  .coupling_damping_Ns_per_m = damping}),
              {.initial_state = {0.4, -0.2, elongation}});
  builder.join(joint::Free{}, {"m.coupling"});
  return builder.build();
}

// A spring whose end is free and has no damper exerts no force, whatever it is. Beside it: a mass alone, and the limit of
// a damper on the spring.
TEST(ExplicitExchanges, SpringsWithAFreeEndFollowWhatTheyHangOn) {
  SystemBuilder builder;
  builder.add(
      "m", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 30.0, .damping_Ns_per_m = 0.1}),
      {.initial_state = {0.4, -0.2}});
  builder.join(joint::Free{}, {"m.coupling"});
  const System alone = builder.build();
  for (const SplittingKind kind : kKinds) {
    for (const bool chosen : {false, true}) {
      const StepperOptions options = options_of(kind, chosen);
      Stepper stepper(hung(120.0, 0.0), options), beside(alone, options);
      stepper.step();
      EXPECT_EQ(stepper.effort(0), 0.0);
      stepper.run_until(1.0);
      beside.run_until(1.0);
      EXPECT_NEAR(stepper.state(0)[0], beside.state(0)[0], 1e-6);
      EXPECT_NEAR(stepper.state(0)[1], beside.state(0)[1], 1e-6);
      EXPECT_EQ(stepper.state(0)[2], 0.0);
      stepper.set_states(std::array{0.4, -0.2, 0.0});
      EXPECT_NEAR(stepper.flow(0), -0.2, 1e-14) << "that of the mass";
      // A spring of its own: at its free end the speed is that of the mass, too.
      SystemBuilder other;
      other.add(
          "m",
          linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 30.0, .damping_Ns_per_m = 0.1}),
          {.initial_state = {0.4, -0.2}});
      other.add("s", parts::spring({.stiffness_N_per_m = 120.0}));
      other.connect("m.coupling", "s.left");
      other.join(joint::Free{}, {"s.right"});
      Stepper joined(other.build(), options);
      EXPECT_NEAR(joined.flow(2), -0.2, 1e-14);
      joined.run_until(1.0);
      EXPECT_NEAR(joined.state(0)[0], beside.state(0)[0], 1e-6);
      EXPECT_EQ(joined.state(1)[0], 0.0);
      // Stretched it is at odds with its end. If it is to be stepped so, its energy is gone at once.
      EXPECT_THROW(Stepper(hung(120.0, 0.1), options), ConfigError);
      StepperOptions as_given = options;
      as_given.start = Start::as_given;
      Stepper stretched(hung(120.0, 0.1), as_given);
      stretched.run_until(1.0);
      EXPECT_EQ(stretched.state(0)[2], 0.0);
      EXPECT_NEAR(stretched.energy().dissipated_J - stepper.energy().dissipated_J, 0.6, 1e-9);
      EXPECT_EQ(stretched.certificate().status, CertificateStatus::holds);
      Stepper damped(hung(120.0, 0.1, 1e-3), options);
      damped.run_until(1.0);
      EXPECT_NEAR(damped.state(0)[0], stretched.state(0)[0], 1e-9) << "the limit";
      EXPECT_NEAR(damped.energy().dissipated_J, stretched.energy().dissipated_J, 1e-6);
    }
  }
}

TEST(ExplicitExchanges, PortsAreThoseOfThePresentStates) {
  for (const SplittingKind kind : kKinds) {
    for (const bool chosen : {false, true}) {
      Stepper stepper(oscillator(soft(), {0.1, -0.2}), options_of(kind, chosen));
      stepper.run_until(1.0);
      const double mean = stepper.flow(0);
      EXPECT_NE(mean, -stepper.state(0)[1]) << "control: of a step it is a mean";
      const double states[] = {-0.7, 1.5};
      stepper.set_states(states);
      EXPECT_NEAR(std::abs(stepper.flow(0)), 1.5, 1e-14);
      stepper.step();
      EXPECT_NE(std::abs(stepper.flow(0)), std::abs(stepper.state(0)[1])) << "a mean again";
      LinearOscillatorParameters other = soft();
      other.mass_kg = 4.0;
      stepper.set_component(0, linear_oscillator(other));
      EXPECT_NEAR(std::abs(stepper.flow(0)), std::abs(stepper.state(0)[1]), 1e-14);
    }
  }
}

constexpr const char* kDriven = R"json({
  "name": "driven",
  "time": {"step_s": 0.01, "end_s": 3},
  "subsystems": [
    {"name": "slide", "type": "linear_oscillator",
     "parameters": {"mass_kg": 1, "stiffness_N_per_m": 20, "damping_Ns_per_m": 0.2},
     "inputs": {"stiffness_N_per_m": "20 + 5*sin(2*t)", "mass_kg": "1 + 0.3*sin(3*t)"},
     "initial_state": [0.5, 0.0]}
  ],
  "couplings": [{"kind": "free", "ports": ["slide.coupling"]}],
  "signals": {"every_s": 0.01}
})json";

TEST(ExplicitExchanges, SignalsDriveParametersAsWithWaves) {
  const auto run = [](const char* method, const char* time, const char* mass = "") {
    std::vector<Override> set = {{"/method", method}};
    if (*time != '\0') set.push_back({"/time", time});
    if (*mass != '\0') set.push_back({"/subsystems/0/inputs/mass_kg", mass});
    const Scenario scenario = parse_scenario(kDriven, "driven", ".", set);
    Stepper stepper(scenario.system, scenario.options);
    stepper.run_until(3.0);
    const EnergyTotals end = stepper.energy();
    EXPECT_NEAR(end.final_J + end.tank_J - end.initial_J, end.supplied_J - end.dissipated_J, 1e-9);
    return all_states(stepper);
  };
  const auto expected = run(R"({"kind": "auto", "stages": 3})", "");
  const auto steady = run(R"({"kind": "auto", "stages": 3})", "", R"("1")");
  EXPECT_GT(most_apart(expected, steady), 1e-3) << "control";
  constexpr const char* kChosen =
      R"({"step": {"kind": "adaptive", "tolerance": 1e-8}, "end_s": 3})";
  for (const char* const method :
       {R"({"kind": "kick-drift", "order": 6})", R"({"kind": "taylor", "order": 12})"}) {
    EXPECT_LT(most_apart(run(method, ""), expected), 1e-6) << method;
    EXPECT_LT(most_apart(run(method, kChosen), expected), 1e-6) << method;
  }
}

TEST(ExplicitExchanges, ReplicasChooseTheirOwnSteps) {
  const System system = [] {
    SystemBuilder builder;
    builder.add("a", linear_oscillator(soft()),
                {.initial_state = {0.1, 0.0}, .inputs = {{"force", Signal::settable(0.0)}}});
    builder.join(joint::Free{}, {"a.coupling"});
    return builder.build();
  }();
  for (const SplittingKind kind : kKinds) {
    StepperOptions options = options_of(kind, true);
    options.sizes->tolerance = 1e-7;
    Ensemble ensemble(system, 3, options);
    for (int r = 0; r < 3; ++r) ensemble.set_input(r, 0, 20.0 * r);
    ensemble.step(8);
    std::vector<double> before;
    for (int r = 0; r < 3; ++r) {
      Stepper stepper(system, options);
      stepper.set_input(InputSlot{0}, 20.0 * r);
      for (int n = 1; n <= 8; ++n) stepper.run_until(n * options.step_s);
      std::vector<double> x(2);
      ensemble.get_state(r, x);
      EXPECT_EQ(x, all_states(stepper)) << r;
      EXPECT_GT(stepper.step_index(), 8) << "they choose their sizes";
      EXPECT_NE(x, before) << "control: the inputs of replicas differ";
      before = x;
    }
  }
}

}  // namespace
}  // namespace portwave::test_explicit_exchanges
