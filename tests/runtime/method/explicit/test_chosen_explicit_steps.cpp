// Kicks and drifts, and Taylor series, in steps that choose their size.

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/runtime/scenario/scenario.hpp>
#include <portwave/runtime/step/stepper.hpp>
#include <portwave/subsystems/catalogue/oscillators.hpp>

#include "runtime/method/network/network_method_runs.hpp"
#include "runtime/method/states_of_stepper.hpp"
#include "support/files/source_folder.hpp"
#include "support/systems/separable_networks.hpp"

namespace portwave::test_chosen_explicit_steps {
namespace {

using testing::all_states;
using testing::refused;

struct Case {
  SplittingKind kind;
  int order;
};
constexpr Case kKickDrift[] = {{SplittingKind::kick_drift, 4}, {SplittingKind::kick_drift, 6}};
constexpr Case kAll[] = {{SplittingKind::kick_drift, 4},
                         {SplittingKind::kick_drift, 6},
                         {SplittingKind::taylor, 8},
                         {SplittingKind::taylor, 16}};

std::string name_of(const Case& own) {
  return std::string(to_string(MethodKind(own.kind))) + " of order " + std::to_string(own.order);
}

StepperOptions options_of(const Case& own, double tolerance, double largest_s) {
  StepperOptions options;
  options.step_s = largest_s;
  options.sizes = StepSizes{.tolerance = tolerance};
  options.method = Splitting{.kind = own.kind, .order = own.order};
  return options;
}

StepperOptions in_equal_steps(double step_s, int order = 6) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = SplittingKind::kick_drift, .order = order};
  return options;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double difference = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += (a[i] - b[i]) * (a[i] - b[i]);
    size += b[i] * b[i];
  }
  return std::sqrt(difference / size);
}

System oscillator(double stiffness, double damping, double q0, const Signal& force) {
  SystemBuilder builder;
  builder.add("a",
              linear_oscillator(
                  {.mass_kg = 1.0, .stiffness_N_per_m = stiffness, .damping_Ns_per_m = damping}),
              {.initial_state = {q0, 0.0}, .inputs = {{"force", force}}});
  builder.join(joint::Free{}, {"a.coupling"});
  return builder.build();
}

/// Four Duffing masses in a line; one is pushed from 0.75 s on, one shaken, one hit at 1.6 s within 20 ms.
System driven_chain(double cubic) {
  SystemBuilder builder;
  const std::shared_ptr<const Subsystem> node = duffing_node({.mass_kg = 8,
                                                              .stiffness_N_per_m = 100,
                                                              .cubic_stiffness_N_per_m3 = cubic,
                                                              .damping_Ns_per_m = 0.3,
                                                              .coupling_stiffness_N_per_m = 120,
                                                              .coupling_damping_Ns_per_m = 0.05});
  constexpr double kStart[] = {0.3, -0.2, 0.1, 0.25};
  const char* const forces[] = {"40*sin(7*t)", "if(t > 0.75, 30, 0)", "",
                                "60*exp(-((t - 1.6)/0.02)^2)"};
  for (int i = 0; i < 4; ++i) {
    const double east = i < 3 ? kStart[i + 1] - kStart[i] : 0.0;
    SystemBuilder::PartOptions options{.initial_state = {kStart[i], 0.5 - i, east, 0.0}};
    if (*forces[i] != '\0') options.inputs["force"] = Signal::expression(forces[i]);
    builder.add("n" + std::to_string(i), node, std::move(options));
  }
  for (int i = 0; i < 4; ++i) {
    const std::string own = "n" + std::to_string(i);
    builder.join(joint::Free{}, {own + ".north"});
    builder.join(joint::Free{}, {own + ".south"});
    if (i == 0) builder.join(joint::Free{}, {own + ".west"});
    if (i == 3) builder.join(joint::Free{}, {own + ".east"});
    if (i < 3) builder.connect(own + ".east", "n" + std::to_string(i + 1) + ".west");
  }
  return builder.build();
}

// The exact state is known to 15 digits (the golden pair of the method).
TEST(ChosenExplicitSteps, ErrorsOfAnOscillatorPairGoWithTheTolerance) {
  const System system = testing::separable_pair();
  for (const Case& own : kKickDrift) {
    for (double tolerance = 1e-3; tolerance > 0.5e-9; tolerance *= 0.1) {
      Stepper stepper(system, options_of(own, tolerance, 1.0));
      stepper.run_until(10.0);
      const double error = std::hypot(stepper.state(0)[0] + .277453101531988,
                                      stepper.state(1)[0] - .090596777434194);
      EXPECT_LT(error, 10.0 * tolerance) << name_of(own) << ", " << tolerance;
      EXPECT_GT(error, 5e-3 * tolerance) << name_of(own) << ", " << tolerance;
    }
  }
  Stepper longest(system, in_equal_steps(0.12));
  longest.run_until(10.0);
  EXPECT_GT(std::abs(longest.state(0)[0] + .277453101531988), 1e-5)
      << "control: with one size the accuracy is that of the size";
}

TEST(ChosenExplicitSteps, ErrorsGoWithTheToleranceWhereInputsJumpShakeAndHit) {
  for (const double cubic : {8000.0, 0.0}) {
    const System system = driven_chain(cubic);
    // The jump and the end of the run lie between its steps.
    Stepper reference(system, in_equal_steps(2.5e-4));
    reference.run_until(3.0);
    const std::vector<double> expected = all_states(reference);
    for (const Case& own : kAll) {
      if (cubic != 0.0 && own.kind == SplittingKind::taylor) continue;
      for (const double tolerance : {1e-3, 1e-5, 1e-7, 1e-9}) {
        Stepper stepper(system, options_of(own, tolerance, 0.5));
        stepper.run_until(3.0);
        const double error = distance(all_states(stepper), expected);
        EXPECT_LT(error, 10.0 * tolerance) << name_of(own) << ", " << tolerance;
        EXPECT_GT(error, 1e-3 * tolerance) << name_of(own) << ", " << tolerance;
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
        EXPECT_LT(stepper.step_index(), 1500) << name_of(own) << ", " << tolerance;
      }
    }
  }
}

TEST(ChosenExplicitSteps, AreShortWhereTheMotionIsFast) {
  const auto sizes = [](const Case& own, const char* force, double at_s) {
    const System system = oscillator(4.0, 0.1, 0.0, Signal::expression(force));
    Stepper stepper(system, options_of(own, 1e-6, 1.0));
    double near = std::numeric_limits<double>::infinity(), far = 0.0;
    while (stepper.time_s() < 20.0) {
      const StepReport report = stepper.step_towards(20.0);
      EXPECT_LE(report.error, 0.25) << "a share of the tolerance, for one step";
      double& extreme = std::abs(stepper.time_s() - at_s) < 0.05 ? near : far;
      extreme = &extreme == &near ? std::min(near, report.step_s) : std::max(far, report.step_s);
    }
    return far / near;
  };
  for (const Case& own : kAll) {
    EXPECT_GT(sizes(own, "exp(-((t - 10)/0.01)^2)", 10.0), 20.0) << name_of(own);
    EXPECT_LT(sizes(own, "sin(t)", 10.0), 8.0) << name_of(own) << ", control";
  }
}

// Thousands of steps in a period of the oscillator, whose errors have one sign.
TEST(ChosenExplicitSteps, UnderAFastForceMeetTheToleranceAtTheEnd) {
  const System system = oscillator(4.0, 0.0, 0.0, Signal::expression("500*sin(200*t)"));
  const double forced = 500.0 / (4.0 - 200.0 * 200.0), free = -100.0 * forced;
  for (const Case& own : kKickDrift) {
    for (const double tolerance : {1e-4, 1e-5, 1e-6, 1e-7}) {
      Stepper stepper(system, options_of(own, tolerance, 1.0));
      stepper.run_until(5.0);
      const double exact = forced * std::sin(1000.0) + free * std::sin(10.0);
      const double error = std::abs(stepper.state(0)[0] - exact) / std::abs(free);
      EXPECT_LT(error, 4.0 * tolerance) << name_of(own) << ", " << tolerance;
      EXPECT_GT(error, 1e-4 * tolerance) << name_of(own) << ", " << tolerance << ", control";
    }
  }
}

// What a stiff damper leaves of each step has one sign. The exact state is that of SciPy's DOP853 at a relative tolerance
// of 1e-13.
TEST(ChosenExplicitSteps, UnderAStiffSharedDamperMeetTheToleranceAtTheEnd) {
  const System system = testing::separable_pair(2000.0);
  const double q1 = -.02269322270840459, v1 = 2.3559048563938387, q2 = -.19840485813449255,
               v2 = 2.3693533715402437;
  for (const Case& own : kKickDrift) {
    for (const double tolerance : {1e-6, 1e-7, 1e-8}) {
      Stepper stepper(system, options_of(own, tolerance, 1.0));
      stepper.run_until(10.0);
      const double error = distance(all_states(stepper), {q1, v1, q2 - q1, q2, v2});
      EXPECT_LT(error, 6.0 * tolerance) << name_of(own) << ", " << tolerance;
      EXPECT_GT(error, 1e-2 * tolerance) << name_of(own) << ", " << tolerance << ", control";
    }
  }
}

TEST(ChosenExplicitSteps, KeepTheAccountOfEveryStep) {
  const System system = driven_chain(0.0);
  for (const Case& own : kAll) {
    for (const double tolerance : {1e-2, 1e-5, 1e-8}) {
      Stepper stepper(system, options_of(own, tolerance, 0.5));
      double tank_J = stepper.energy().tank_J;
      while (stepper.time_s() < 3.0) {
        const StepLedger energy = stepper.step_towards(3.0).energy;
        EXPECT_NEAR(energy.changed_J + energy.tank_J - tank_J,
                    energy.supplied_J - energy.dissipated_J, 1e-12)
            << name_of(own) << " at " << stepper.time_s();
        EXPECT_GE(energy.dissipated_J, 0.0);
        tank_J = energy.tank_J;
      }
      const EnergyTotals total = stepper.energy();
      EXPECT_NEAR(total.final_J + total.tank_J - total.initial_J,
                  total.supplied_J - total.dissipated_J, 1e-11);
      EXPECT_GT(total.supplied_J, 1.0) << "control: there is something to account for";
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
  }
}

/// A step that begins where a force jumps sees it from the beginning: the first steps after it need not be tiny.
TEST(ChosenExplicitSteps, BeginBehindAJump) {
  for (const char* const force : {"if(t > 0.75, 5, 0)", "if(t >= 0.75, 5, 0)"}) {
    const System system = oscillator(4.0, 0.0, 0.0, Signal::expression(force));
    for (const Case& own : kAll) {
      Stepper stepper(system, options_of(own, 1e-9, 0.25));
      stepper.run_until(2.0);
      EXPECT_NEAR(stepper.state(0)[0], 1.25 * (1.0 - std::cos(2.0 * 1.25)), 1e-8)
          << name_of(own) << ", " << force;
      EXPECT_GT(stepper.step_sizes()->smallest_s, 1e-3) << name_of(own) << ", " << force;
    }
  }
}

TEST(ChosenExplicitSteps, TellStatesAndPortsWithinAStep) {
  const System system = oscillator(9.0, 0.0, 0.5, Signal::constant(0.0));
  for (const Case& own : kAll) {
    Stepper stepper(system, options_of(own, 1e-9, 1.0));
    double worst = 0.0, worst_force = 0.0, mean = 0.0, x[2];
    while (stepper.time_s() < 4.0) {
      const StepReport report = stepper.step_towards(4.0);
      const double begin_s = stepper.time_s() - report.step_s;
      for (const double share : {0.0, 0.13, 0.5, 0.77, 1.0}) {
        const double t = std::min(begin_s + share * report.step_s, stepper.time_s());
        stepper.state_at(0, t, x);
        worst = std::max({worst, std::abs(x[0] - 0.5 * std::cos(3.0 * t)),
                          std::abs(x[1] + 1.5 * std::sin(3.0 * t))});
        worst_force =
            std::max(worst_force, std::abs(stepper.port_at(0, t).flow - 1.5 * std::sin(3.0 * t)));
      }
      mean += stepper.flow(0) * report.step_s;
    }
    EXPECT_LT(worst, 3e-8) << name_of(own);
    EXPECT_LT(worst_force, 3e-8) << name_of(own);
    EXPECT_NEAR(mean, 0.5 * (1.0 - std::cos(12.0)), 3e-8) << name_of(own);
    const double h = stepper.step_sizes()->last_s, end_s = stepper.time_s();
    stepper.state_at(0, end_s - 0.5 * h, x);
    const double chord = 0.25 * (std::cos(3.0 * (end_s - h)) + std::cos(3.0 * end_s));
    EXPECT_GT(std::abs(chord - x[0]), 1e-6) << name_of(own) << ", control";
  }
}

TEST(ChosenExplicitSteps, EndAtEvents) {
  const System system = oscillator(9.0, 0.0, 0.5, Signal::constant(0.0));
  for (const Case& own : kAll) {
    StepperOptions options = options_of(own, 1e-10, 1.0);
    Watch watch;
    watch.name = "down";
    watch.of = {Sensor::Kind::state, 0, 0};
    watch.level = 0.25;
    watch.direction = Watch::Direction::falling;
    options.watches.push_back(watch);
    Stepper stepper(system, options);
    int found = 0;
    while (stepper.time_s() < 10.0) {
      stepper.step_towards(10.0);
      for (const Event& event : stepper.events()) {
        const double expected_s = (std::numbers::pi / 3.0 + 2.0 * std::numbers::pi * found) / 3.0;
        EXPECT_NEAR(event.time_s, expected_s, 1e-8) << name_of(own);
        EXPECT_NEAR(stepper.time_s(), event.time_s, 2e-9)
            << name_of(own) << ": the step ends there";
        EXPECT_FALSE(event.rising);
        ++found;
      }
    }
    EXPECT_EQ(found, 5) << name_of(own);
    EXPECT_GE(stepper.step_sizes()->shortened, 5) << name_of(own);
  }
}

/// Steps are longer here than it takes from one passage to the way back.
TEST(ChosenExplicitSteps, EndAtEventsThatCancelWithinAStep) {
  const System system = oscillator(100.0, 0.0, 0.5, Signal::constant(0.0));
  const double way_back_s = 2.0 * std::acos(0.6) / 10.0;
  for (const auto& [own, tolerance] : {std::pair{Case{SplittingKind::taylor, 40}, 1e-9},
                                       std::pair{Case{SplittingKind::taylor, 16}, 1e-3},
                                       std::pair{Case{SplittingKind::kick_drift, 6}, 1e-3}}) {
    StepperOptions options = options_of(own, tolerance, 1.0);
    Stepper free(system, options);
    free.run_until(4.0);
    EXPECT_GT(free.step_sizes()->largest_s, way_back_s) << name_of(own) << ", control";
    Watch watch;
    watch.name = "level";
    watch.of = {Sensor::Kind::state, 0, 0};
    watch.level = 0.3;
    options.watches.push_back(watch);
    Stepper stepper(system, options);
    std::vector<double> times_s;
    while (stepper.time_s() < 4.0) {
      stepper.step_towards(4.0);
      for (const Event& event : stepper.events()) times_s.push_back(event.time_s);
    }
    ASSERT_EQ(times_s.size(), 13U) << name_of(own);
    for (std::size_t k = 0; k < times_s.size(); ++k) {
      const double turns = 2.0 * std::numbers::pi * static_cast<double>((k + 1) / 2);
      const double expected_s = (turns + (k % 2 == 0 ? 1.0 : -1.0) * std::acos(0.6)) / 10.0;
      EXPECT_NEAR(times_s[k], expected_s, 10.0 * tolerance) << name_of(own);
    }
  }
}

TEST(ChosenExplicitSteps, GoOnFromASnapshotBitByBit) {
  for (const Case& own : kAll) {
    const System system = driven_chain(own.kind == SplittingKind::taylor ? 0.0 : 8000.0);
    const StepperOptions options = options_of(own, 1e-7, 0.5);
    Stepper stepper(system, options), other(system, options);
    stepper.run_until(0.9);
    const Snapshot snapshot = stepper.snapshot();
    const double middle_s = stepper.time_s() - 0.3 * stepper.step_sizes()->last_s;
    double within[4], within_restored[4];
    stepper.state_at(1, middle_s, within);
    stepper.run_until(3.0);
    const std::vector<double> expected = all_states(stepper);
    const StepSizeStatistics sizes = *stepper.step_sizes();
    for (Stepper* again : {&stepper, &other}) {
      again->restore(snapshot);
      again->state_at(1, middle_s, within_restored);
      EXPECT_TRUE(std::ranges::equal(within, within_restored)) << name_of(own);
      again->run_until(3.0);
      EXPECT_EQ(all_states(*again), expected) << name_of(own);
      EXPECT_EQ(again->step_sizes()->rejected, sizes.rejected);
      EXPECT_EQ(again->step_sizes()->changes, sizes.changes);
      EXPECT_EQ(again->energy().tank_J, stepper.energy().tank_J);
    }
    Stepper without_stop(system, options);
    without_stop.run_until(3.0);
    EXPECT_NE(all_states(without_stop), expected) << name_of(own) << ", control";
  }
}

TEST(ChosenExplicitSteps, DoNotDependOnThreads) {
  SystemBuilder builder;
  for (int i = 0; i < 24; ++i) {
    const std::string name = "a" + std::to_string(i);
    builder.add(name, linear_oscillator({.mass_kg = 1.0 + i, .stiffness_N_per_m = 50.0}),
                {.initial_state = {0.1 * i, 1.0},
                 .inputs = {{"force", Signal::sine_product(1.0 + i, {{0.3}})}}});
    builder.join(joint::Free{}, {name + ".coupling"});
  }
  const System system = builder.build();
  for (const Case& own : kAll) {
    StepperOptions options = options_of(own, 1e-8, 0.5);
    Stepper one(system, options);
    options.threads = 4;
    options.executor = ExecutorKind::async;
    Stepper four(system, options);
    one.run_until(5.0);
    four.run_until(5.0);
    EXPECT_EQ(all_states(one), all_states(four)) << name_of(own);
    EXPECT_EQ(one.step_index(), four.step_index());
  }
}

TEST(ChosenExplicitSteps, AStepTooShortToBeAllowedIsAnError) {
  const System system = oscillator(1e6, 0.0, 0.5, Signal::constant(0.0));
  for (const Case& own : kAll) {
    StepperOptions options = options_of(own, 1e-9, 1.0);
    options.sizes->smallest_s = 0.5;
    Stepper stepper(system, options);
    try {
      stepper.run_until(10.0);
      ADD_FAILURE() << name_of(own) << ": no error";
    } catch (const StepError& error) {
      EXPECT_EQ(error.fault(), StepFault::too_inaccurate);
      EXPECT_NE(std::string(error.what()).find("smallest_s is 0.5"), std::string::npos)
          << error.what();
    }
    EXPECT_EQ(stepper.time_s(), 0.0);
    EXPECT_EQ(stepper.state(0)[0], 0.5) << "the state is that before";
    options.sizes->smallest_s = 0.0;
    Stepper free(system, options);
    free.run_until(0.01);
    EXPECT_NEAR(free.state(0)[0], 0.5 * std::cos(10.0), 1e-7) << name_of(own) << ", control";
  }
}

TEST(ChosenExplicitSteps, OfARunFromRestFollowTheFirstMotion) {
  const System system = oscillator(4.0, 0.0, 0.0, Signal::expression("t^3"));
  for (const Case& own : kAll) {
    Stepper stepper(system, options_of(own, 1e-7, 0.5));
    stepper.run_until(2.0);
    // q'' + 4q = t³.
    const double exact = 2.0 - 0.75 + 3.0 / 16.0 * std::sin(4.0);
    EXPECT_NEAR(stepper.state(0)[0], exact, 1e-6) << name_of(own);
    EXPECT_LT(stepper.step_index(), 150) << name_of(own);
  }
}

// Before the bump the car stands on its springs: roundings of what its weight supplies add up, and nothing moves.
TEST(ChosenExplicitSteps, StandStillUnderALoad) {
  for (const char* const time :
       {R"({"step_s": 0.002, "end_s": 4})",
        R"({"step": {"kind": "adaptive", "tolerance": 1e-6}, "end_s": 4})"}) {
    const Scenario scenario =
        load_scenario(testing::source_folder() / "examples" / "full_car.json",
                      {{"/method", R"({"kind": "taylor", "order": 16})"}, {"/time", time}});
    Stepper stepper(scenario.system, scenario.options);
    stepper.run_until(4.0);
    const EnergyTotals energy = stepper.energy();
    EXPECT_NEAR(energy.supplied_J, 515.79, 0.01) << "control: it has driven over the bump";
    EXPECT_NEAR(energy.final_J + energy.tank_J - energy.initial_J,
                energy.supplied_J - energy.dissipated_J, 1e-11 * energy.initial_J);
    EXPECT_LE(std::abs(energy.tank_J), 1e-12 * energy.initial_J);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

TEST(ChosenExplicitSteps, OfARateOfADisplacementAreAsAccurate) {
  SystemBuilder builder;
  builder.add("a", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 4.0}),
              {.inputs = {{"force", Signal::rate_of(Signal::expression("sin(3*t)/3"))}}});
  builder.join(joint::Free{}, {"a.coupling"});
  const System system = builder.build();
  for (const Case& own : kAll) {
    Stepper stepper(system, options_of(own, 1e-7, 0.5));
    stepper.run_until(2.0);
    const double exact = (std::cos(4.0) - std::cos(6.0)) / 5.0;  // q'' + 4q = cos 3t
    EXPECT_NEAR(stepper.state(0)[0], exact, 1e-6) << name_of(own);
  }
}

TEST(ChosenExplicitSteps, AutoTakesKicksAndDriftsInThem) {
  StepperOptions options;
  options.step_s = 1.0;
  options.sizes = StepSizes{.tolerance = 1e-6};
  options.method = WaveCoupling::automatic_with_stages(3);
  options.method.waves().explicit_steps = true;
  const System pair = testing::separable_pair();
  Stepper chosen(pair, options), own(pair, options_of(kKickDrift[1], 1e-6, 1.0));
  chosen.run_until(3.0);
  own.run_until(3.0);
  EXPECT_EQ(chosen.waves(), nullptr) << chosen.remarks();
  EXPECT_EQ(all_states(chosen), all_states(own));
  const System damped = testing::separable_pair(400.0);
  Stepper waves(damped, options);
  EXPECT_NE(waves.waves(), nullptr);
  EXPECT_NE(waves.remarks().find("fastest damping"), std::string::npos) << waves.remarks();
}

TEST(ChosenExplicitSteps, OtherMethodsRefuseThem) {
  const System system = oscillator(9.0, 0.0, 0.5, Signal::constant(0.0));
  StepperOptions options = options_of({SplittingKind::strang, 2}, 1e-6, 0.1);
  const Issues issues = refused(system, options);
  ASSERT_FALSE(issues.empty());
  EXPECT_EQ(issues.front().where, "/time/step");
  EXPECT_NE(issues.front().what.find("\"kick-drift\""), std::string::npos) << issues.front().what;
  for (const Case& own : kAll) {
    EXPECT_TRUE(refused(system, options_of(own, 1e-6, 0.1)).empty()) << name_of(own) << ", control";
  }
}

}  // namespace
}  // namespace portwave::test_chosen_explicit_steps
