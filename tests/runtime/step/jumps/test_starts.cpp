// States that violate rigid joints, refused at the start and where an input jumps, or told. What impulses make of
// them: test_impulses.cpp.

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"

namespace portwave::test_starts {
namespace {

std::shared_ptr<const Component> part(const std::string& type, Parameters parameters) {
  return make_part(type, std::move(parameters));
}

StepperOptions options_of(double step_s, Start start = Start::refuse) {
  StepperOptions options;
  options.step_s = step_s;
  options.start = start;
  WaveCoupling waves;
  waves.kind = WaveUpdate::automatic;
  waves.impedance_kind = ImpedanceKind::automatic;
  waves.iterations = 50;
  waves.tolerance = 1e-10;
  options.method = waves;
  return options;
}

System two_inertias(double a, double b) {
  SystemBuilder builder;
  builder.add("a", part("inertia", {{"inertia_kgm2", 1.0}}), {.initial_state = {0.0, a}});
  builder.add("b", part("inertia", {{"inertia_kgm2", 3.0}}), {.initial_state = {0.0, b}});
  builder.join(joint::CommonFlow{}, {"a.shaft", "b.shaft"});
  return builder.build();
}

/// An inertia whose speed is prescribed.
System driven(Signal speed, double start = 0.0) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["flow"] = std::move(speed);
  builder.add("q", part("flow_source", {{"domain", std::string("rotation")}}), options);
  builder.add("j", part("inertia", {{"inertia_kgm2", 1.0}}), {.initial_state = {0.0, start}});
  builder.join(joint::CommonFlow{}, {"q.port", "j.shaft"});
  return builder.build();
}

std::string refusal(const System& system, const StepperOptions& options) {
  try {
    const Stepper stepper(system, options);
  } catch (const ConfigError& error) {
    return error.what();
  }
  return {};
}

/// The step that could not begin; −1: all went well.
std::int64_t refused_step(Stepper& stepper, int steps, std::string* text = nullptr) {
  try {
    stepper.step(steps);
  } catch (const StepError& error) {
    EXPECT_EQ(error.fault(), StepFault::at_odds) << error.what();
    EXPECT_EQ(error.step(), stepper.step_index());
    if (text != nullptr) *text = error.what();
    return error.step();
  }
  return -1;
}

bool contains(const std::string& text, const std::string& piece) {
  return text.find(piece) != std::string::npos;
}

TEST(Starts, AtOddsAreRefusedWithJointPartsAndValues) {
  const std::string text = refusal(two_inertias(10.0, 2.0), options_of(0.01));
  for (const char* piece :
       {"/subsystems/0/initial_state", "common_flow of a.shaft, b.shaft", "a.speed = 10 rad/s",
        "b.speed = 2 rad/s", "a.speed 10 -> 4 rad/s", "24 J", "as_given"}) {
    EXPECT_TRUE(contains(text, piece)) << piece << "\n" << text;
  }
  EXPECT_EQ(refusal(two_inertias(2.0, 2.0), options_of(0.01)), "");
}

TEST(Starts, AsGivenIsSteppedAndTold) {
  const System system = two_inertias(10.0, 2.0);
  Stepper stepper(system, options_of(0.01, Start::as_given));
  stepper.step(3);
  EXPECT_EQ(stepper.starts_at_odds().count, 1);
  EXPECT_EQ(stepper.starts_at_odds().first_s, 0.0);
  EXPECT_TRUE(contains(stepper.starts_at_odds().first, "a.shaft, b.shaft"));
  // They oscillate about the result of the impulse, which is why it is told.
  EXPECT_NEAR(stepper.state("a")[1], -2.0, 1e-6);
  const System sound = two_inertias(2.0, 2.0);
  Stepper other(sound, options_of(0.01, Start::as_given));
  other.step(3);
  EXPECT_EQ(other.starts_at_odds().count, 0);
}

TEST(Starts, AJumpOfAnExpressionIsFoundBeforeItsStep) {
  for (const char* text : {"if(t<0.5,0,10)", "10*(t > 0.5)", "if(t<0.5004,0,10)"}) {
    const System system = driven(Signal::expression(text));
    Stepper stepper(system, options_of(0.001));
    std::string what;
    EXPECT_EQ(refused_step(stepper, 1000, &what), 500) << text;
    EXPECT_TRUE(contains(what, "q.flow jumps from 0 to 10 rad/s")) << what;
    EXPECT_TRUE(contains(what, "q.port, j.shaft")) << what;
    EXPECT_NEAR(stepper.state("j")[1], 0.0, 1e-12);
    EXPECT_EQ(stepper.step_index(), 500);
    Stepper given(system, options_of(0.001, Start::as_given));
    given.step(1000);
    EXPECT_EQ(given.starts_at_odds().count, 1) << text;
    EXPECT_NEAR(given.starts_at_odds().first_s, 0.5, 1e-9);
  }
}

TEST(Starts, ASmallJumpOnASmoothMotionIsFound) {
  const System system = driven(Signal::expression("sin(7*t) + 0.01*(t > 0.3)"));
  Stepper stepper(system, options_of(0.01));
  EXPECT_EQ(refused_step(stepper, 100), 30);
}

TEST(Starts, ASteepTableIsAJump) {
  const System system =
      driven(Signal::piecewise_linear({{0.0, 0.0}, {0.25, 0.0}, {0.25 + 1e-9, 3.0}, {1.0, 3.0}}));
  Stepper stepper(system, options_of(0.01));
  EXPECT_EQ(refused_step(stepper, 100), 25);
}

TEST(Starts, WhatIsSmoothOrHasKinksIsNoJump) {
  const std::vector<Signal> signals = {
      Signal::expression("sin(20*t)"),
      Signal::expression("max(0, t - 0.2505)"),
      Signal::expression("abs(t - 0.5) - 0.5"),
      Signal::expression("t^3"),
      Signal::expression("1 - cos(2*pi*t)"),
      Signal::expression("exp(-5*t) - 1"),
      Signal::expression("if(t < 0.3, 0, (t - 0.3)*10)"),
      Signal::sine_product(3.0, {{5.0, 0.0}}),
      Signal::piecewise_linear({{0.0, 0.0}, {0.2999, 0.0}, {0.4, 5.0}, {0.5, -1.0}}),
      Signal::chirp({.amplitude = 1.0, .from_Hz = 0.0, .to_Hz = 8.0}),
      Signal::callback([](double t) { return 2.0 * std::sin(t); }),
  };
  for (std::size_t i = 0; i < signals.size(); ++i) {
    for (const double step_s : {0.01, 0.003}) {
      const System system = driven(signals[i]);
      ASSERT_EQ(refusal(system, options_of(step_s)), "") << i;
      Stepper stepper(system, options_of(step_s));
      std::string what;
      EXPECT_EQ(refused_step(stepper, 150, &what), -1) << i << ": " << what;
      // And a state that such a run has come to is taken back.
      const Snapshot here = stepper.snapshot();
      stepper.step(10);
      stepper.restore(here);
      EXPECT_EQ(refused_step(stepper, 10, &what), -1) << i << ": " << what;
    }
  }
}

TEST(Starts, ASineThatBeginsAtRoundingIsNone) {
  constexpr double kPi = 3.14159265358979323846;
  EXPECT_EQ(refusal(driven(Signal::sine_product(5.0, {{1.0, kPi}})), options_of(0.01)), "");
  EXPECT_EQ(refusal(driven(Signal::expression("sin(t + pi)")), options_of(0.01)), "");
  EXPECT_NE(refusal(driven(Signal::expression("cos(t)")), options_of(0.01)), "");
  EXPECT_EQ(refusal(driven(Signal::expression("cos(t)"), 1.0), options_of(0.01)), "");
}

TEST(Starts, StepsThatChooseTheirSizeComeToTheJump) {
  const System system = driven(Signal::expression("if(t<0.5,0,10)"));
  StepperOptions options = options_of(0.2);
  options.sizes = StepSizes{.tolerance = 1e-4};
  Stepper stepper(system, options);
  EXPECT_THROW(stepper.run_until(1.0), StepError);
  EXPECT_EQ(stepper.time_s(), 0.5);
}

TEST(Starts, AnInputThatIsSetJumps) {
  const System system = driven(Signal::settable(0.0));
  Stepper stepper(system, options_of(0.01));
  const InputSlot flow = stepper.find_input("q.flow");
  stepper.step(5);
  stepper.set_input(flow, 2.0);
  std::string what;
  EXPECT_EQ(refused_step(stepper, 5, &what), 5);
  EXPECT_TRUE(contains(what, "q.flow jumps from 0 to 2 rad/s")) << what;
  EXPECT_EQ(refused_step(stepper, 5), 5) << "it stays refused";
  stepper.set_input(flow, 0.0);
  EXPECT_EQ(refused_step(stepper, 5), -1);
}

TEST(Starts, ASnapshotKnowsThatAnInputWasSet) {
  const System system = driven(Signal::settable(0.0));
  Stepper stepper(system, options_of(0.01)), other(system, options_of(0.01));
  stepper.step(5);
  stepper.set_input(stepper.find_input("q.flow"), 2.0);
  other.restore(stepper.snapshot());
  EXPECT_EQ(refused_step(other, 5), 5);
}

TEST(Starts, AStateThatNobodyCheckedIsCheckedWhereItIsTakenUp) {
  const System system = driven(Signal::expression("if(t<0.5,0,10)"));
  Stepper given(system, options_of(0.01, Start::as_given)), stepper(system, options_of(0.01));
  given.step(40);
  const Snapshot before = given.snapshot();
  given.step(20);
  stepper.restore(before);
  EXPECT_EQ(refused_step(stepper, 5), -1);
  stepper.restore(given.snapshot());
  EXPECT_EQ(refused_step(stepper, 5), 60);
}

System with_controller(std::shared_ptr<const Block> reference, StepperOptions& options) {
  System system = driven(Signal::settable(0.0));
  SignalGraphBuilder builder(system);
  builder.block("reference", std::move(reference), {});
  builder.actuate("reference", 0, 0);
  options.signals = std::make_shared<const SignalGraph>(builder.build());
  return system;
}

// It is held between samples, so that what it drives would have to jump at each of them.
TEST(Starts, ASampledReferenceJumpsAtTheSampleAtWhichItChanges) {
  StepperOptions options = options_of(0.01);
  std::string what;
  const System smooth =
      with_controller(block::ramp({.start_s = 0.2, .slope_per_s = 3.0, .end_s = 1.5}), options);
  Stepper ramp(smooth, options);
  EXPECT_EQ(refused_step(ramp, 300, &what), 21);
  EXPECT_TRUE(contains(what, "q.flow jumps from 0 to 0.03 rad/s")) << what;
  EXPECT_EQ(refused_step(ramp, 300), 21) << "it stays refused";
  const System jumps =
      with_controller(block::step({.time_s = 0.5, .before = 0.0, .after = 1.0}), options);
  Stepper step(jumps, options);
  EXPECT_EQ(refused_step(step, 300, &what), 50);
  EXPECT_TRUE(contains(what, "q.flow jumps from 0 to 1 rad/s")) << what;
  const System rests = with_controller(block::source(Signal::constant(0.0)), options);
  Stepper still(rests, options);
  EXPECT_EQ(refused_step(still, 300), -1);
}

TEST(Starts, OfAnInputThatNoJointTiesThereIsNone) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["torque"] = Signal::settable(0.0);
  builder.add("j", part("inertia", {{"inertia_kgm2", 1.0}}), options);
  builder.join(joint::Free{}, {"j.shaft"});
  const System system = builder.build();
  Stepper stepper(system, options_of(0.01));
  stepper.set_input(stepper.find_input("j.torque"), 1e3);
  EXPECT_EQ(refused_step(stepper, 5), -1);
}

/// Its state is a momentum: of another mass it has another speed.
std::shared_ptr<const Component> body(double mass_kg) {
  Signature signature{
      "body", {{"p", "kg m/s"}}, {{"t", Causality::effort_in, Domain::translation, 1}}, {}};
  Structure s = Structure::zero(1, 1);
  s.G.insert(0, 0) = -1.0;
  SparseMatrix Q(1, 1);
  Q.insert(0, 0) = 1.0 / mass_kg;
  return std::make_shared<LinearPortHamiltonian>(std::move(signature), std::move(s), Q);
}

TEST(Starts, APartThatChangesMayBeAtOdds) {
  const auto make = [] {
    SystemBuilder builder;
    builder.add("a", body(1.0), {.initial_state = {2.0}});
    builder.add("b", body(3.0), {.initial_state = {6.0}});
    builder.join(joint::CommonFlow{}, {"a.t", "b.t"});
    return builder.build();
  };
  Stepper stepper(make(), options_of(0.01));
  stepper.step(5);
  stepper.set_component(1, body(3.0));
  EXPECT_EQ(refused_step(stepper, 5), -1);
  stepper.set_component(1, body(1.5));
  std::string what;
  EXPECT_EQ(refused_step(stepper, 5, &what), 10);
  EXPECT_TRUE(contains(what, "a.p = 2 kg m/s against b.p = 6 kg m/s")) << what;
}

TEST(Starts, ASwitchThatOpensUnderCurrentIsTold) {
  SystemBuilder builder;
  builder.add("l", part("inductor", {{"inductance_H", 1.0}}), {.initial_state = {1.0}});
  SystemBuilder::PartOptions options{.initial_state = {1.0}};
  options.inputs["speed"] = Signal::expression("if(t < 0.001, -1000, 0)");
  builder.add("s", part("electrical_switch", {{"on_S", 10.0}, {"off_S", 0.0}}), options);
  builder.connect("l.terminals", "s.terminals");
  const System system = builder.build();
  Stepper stepper(system, options_of(1e-5));
  std::string what;
  const std::int64_t step = refused_step(stepper, 200, &what);
  EXPECT_GE(step, 99);
  EXPECT_LE(step, 101);
  EXPECT_TRUE(contains(what, "l.terminals, s.terminals")) << what;
}

TEST(Starts, AReplicaAtOddsFailsAlone) {
  const auto replica = [](int i) { return two_inertias(2.0, i == 1 ? 5.0 : 2.0); };
  Ensemble ensemble(4, replica, options_of(0.01));
  ensemble.step();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(ensemble.status(i).failed, i == 1) << i;
  EXPECT_EQ(ensemble.status(1).fault, StepFault::at_odds);
  EXPECT_TRUE(contains(ensemble.status(1).error, "b.speed = 5 rad/s")) << ensemble.status(1).error;
}

}  // namespace
}  // namespace portwave::test_starts
