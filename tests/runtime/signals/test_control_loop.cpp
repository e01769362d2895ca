// Signal graphs within a run: order, holding, energy, faults; and a closed loop against the same
// loop written out by hand.

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/step_batch.hpp"

namespace portwave::test_control_loop {
namespace {

constexpr double kMass_kg = 1.5, kStiffness = 4.0, kDamping = 0.3;

// Masses on springs, each alone, whose force is settable.
System masses(int count, double start_m = 0.0) {
  SystemBuilder builder;
  const std::shared_ptr<const Component> part = linear_oscillator(
      {.mass_kg = kMass_kg, .stiffness_N_per_m = kStiffness, .damping_Ns_per_m = kDamping});
  for (int i = 0; i < count; ++i) {
    SystemBuilder::PartOptions options;
    options.inputs["force"] = Signal::settable();
    options.initial_state = {start_m, 0.0};
    builder.add("m" + std::to_string(i), part, options);
    builder.join(joint::Free{}, {"m" + std::to_string(i) + ".coupling"});
  }
  return builder.build();
}

Sensor position(int part) { return {Sensor::Kind::state, part, 0}; }

StepperOptions options_with(SignalGraph graph, double step_s, int stages = 1) {
  StepperOptions options;
  options.step_s = step_s;
  WaveCoupling waves;
  waves.kind = WaveUpdate::automatic;
  waves.iterations = 50;
  waves.tolerance = 1e-12;
  waves.impedance_kind = ImpedanceKind::automatic;
  waves.stages = stages;
  options.method = waves;
  options.signals = std::make_shared<const SignalGraph>(std::move(graph));
  return options;
}

// Exact motion of m q'' = -k q - c q' + F over h with F held.
std::array<double, 2> exact_step(std::array<double, 2> x, double force, double h) {
  const double rest = force / kStiffness, decay = kDamping / (2.0 * kMass_kg);
  const double frequency = std::sqrt(kStiffness / kMass_kg - decay * decay);
  const double q = x[0] - rest, s = std::sin(frequency * h), c = std::cos(frequency * h);
  const double shrink = std::exp(-decay * h);
  return {rest + shrink * (q * c + (x[1] + decay * q) / frequency * s),
          shrink * (x[1] * c - (decay * x[1] + kStiffness / kMass_kg * q) / frequency * s)};
}

SignalGraph pid_loop(const System& system, int every) {
  block::Pid p;
  p.proportional = 12.0;
  p.integral = 6.0;
  p.derivative = 5.0;
  p.derivative_filter_s = 0.05;
  p.maximum = 20.0;
  SignalGraphBuilder builder(system);
  builder.block("pid", block::pid(p), {"target", "position"}, every);  // before what it needs
  builder.sensor("position", position(0), every);
  builder.block("target", block::step({.time_s = 0.5, .before = 0.0, .after = 1.0}), {}, every);
  builder.actuate("pid", 0, 0);
  return builder.build();
}

class ControlLoop : public ::testing::TestWithParam<int> {};  // stages

TEST_P(ControlLoop, IsThatOfTheSampledDifferenceEquations) {
  const int stages = GetParam();
  const double tolerance = stages == 1 ? 2e-5 : stages == 2 ? 1e-9 : 1e-12;
  constexpr int kEvery = 10, kSteps = 4000;
  constexpr double kStep_s = 2e-3;
  const System system = masses(1, -0.2);
  Stepper stepper(system, options_with(pid_loop(system, kEvery), kStep_s, stages));

  std::array<double, 2> x = {-0.2, 0.0};
  double integral = 0.0, slope = 0.0, last = 0.0, force = 0.0, worst = 0.0;
  for (int n = 0; n < kSteps; ++n) {
    if (n % kEvery == 0) {
      const double period_s = kEvery * kStep_s, r = n * kStep_s < 0.5 ? 0.0 : 1.0;
      if (n > 0) slope = (0.05 * slope - (x[0] - last)) / (0.05 + period_s);
      last = x[0];
      const double v = 12.0 * (r - x[0]) + integral + 5.0 * slope;
      force = std::min(v, 20.0);
      integral += 6.0 * period_s * (r - x[0]) + force - v;
    }
    x = exact_step(x, force, kStep_s);
    stepper.step();
    EXPECT_EQ(stepper.input(0, 0), stepper.signals()[0]);
    worst = std::max(worst, std::abs(stepper.state(0)[0] - x[0]));
  }
  EXPECT_LT(worst, tolerance);
  EXPECT_NEAR(x[0], 1.0, 2e-2);
}
INSTANTIATE_TEST_SUITE_P(Stages, ControlLoop, ::testing::Values(1, 2, 3));

TEST(ControlLoopControl, AStaleSampleIsSeen) {
  // The same comparison, the loop being sampled twice as rarely: far off.
  const System system = masses(1, -0.2);
  Stepper right(system, options_with(pid_loop(system, 10), 2e-3, 3));
  Stepper rare(system, options_with(pid_loop(system, 20), 2e-3, 3));
  right.step(1000);
  rare.step(1000);
  EXPECT_GT(std::abs(right.state(0)[0] - rare.state(0)[0]), 1e-4);
}

TEST(SignalGraph, WorkOfItsActuatorsIsSupply) {
  const System system = masses(1);
  Stepper stepper(system, options_with(pid_loop(system, 5), 1e-2));
  double work_J = 0.0;
  for (int n = 0; n < 1000; ++n) {
    const double force = stepper.input(0, 0), before = stepper.state(0)[0];
    stepper.step();
    work_J += force * (stepper.state(0)[0] - before);
  }
  EXPECT_GT(work_J, 1.0);
  EXPECT_NEAR(stepper.energy().supplied_J, work_J, 1e-12 * work_J);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST(SignalGraph, IsEqualBitByBitForAllThreadsAndRepetitions) {
  const System system = masses(40);
  const auto run = [&](int threads, ExecutorKind executor) {
    SignalGraphBuilder builder(system);
    for (int i = 0; i < 40; ++i) {
      const std::string name = std::to_string(i);
      builder.sensor("q" + name, position((i + 1) % 40));
      builder.block("d" + name, block::sum({1.0, -0.3 * i}), {"drive", "q" + name}, 1 + i % 3);
      builder.actuate("d" + name, i, 0);
    }
    builder.block("drive", block::source(Signal::noise({.interval_s = 0.03, .seed = 3})), {});
    StepperOptions options = options_with(builder.build(), 1e-2);
    options.threads = threads;
    options.executor = executor;
    Stepper stepper(system, options);
    stepper.step(200);
    std::vector<double> all;
    for (int i = 0; i < 40; ++i) all.push_back(stepper.state(i)[0]);
    return all;
  };
  const auto serial = run(1, ExecutorKind::serial);
  EXPECT_EQ(serial, run(1, ExecutorKind::serial));
  EXPECT_EQ(serial, run(2, ExecutorKind::async));
  EXPECT_EQ(serial, run(3, ExecutorKind::graph));
}

TEST(SignalGraph, AFaultOfABlockLeavesTheLastCommittedState) {
  const System system = masses(1);
  const auto calls = std::make_shared<int>(0);
  const auto fails = std::make_shared<bool>(true);
  SignalGraphBuilder builder(system);
  builder.block("sum", block::integrator({}), {"own"});
  builder.block(
      "own",
      block::callback(0, 1,
                      [=](const SampleTime& when, std::span<const double>, std::span<double> y) {
                        ++*calls;
                        if (*fails && when.index == 7) throw std::runtime_error("no answer");
                        y[0] = 1.0;
                      }),
      {});
  builder.actuate("own", 0, 0);
  Stepper stepper(system, options_with(builder.build(), 1e-2));
  for (int n = 0; n < 7; ++n) stepper.step();
  const double before = stepper.state(0)[0];
  try {
    stepper.step();
    FAIL();
  } catch (const StepError& error) {
    EXPECT_EQ(std::string(error.what()),
              "signal \"own\" failed before step 7: no answer; the state is that before the step");
    EXPECT_EQ(error.step(), 7);
    EXPECT_EQ(error.fault(), StepFault::threw);
  }
  EXPECT_EQ(stepper.step_index(), 7);
  EXPECT_EQ(stepper.state(0)[0], before);
  *fails = false;
  stepper.step(13);
  EXPECT_EQ(stepper.step_index(), 20);
  // The integral counts every sample once, however often it was tried.
  EXPECT_NEAR(stepper.signals()[0], 0.2, 1e-15);
}

// A PID by hand, its state handed in and returned.
block::Handle pid_by_hand(const block::Pid& p) {
  return block::callback(2, 1, {0.0, 0.0, 0.0},
                         [p](const SampleTime& when, std::span<const double> u, std::span<double> y,
                             std::span<double> x) {
                           const double argument = -u[1];
                           double slope = 0.0;
                           if (when.index > 0) {
                             slope = (p.derivative_filter_s * x[1] + argument - x[2]) /
                                     (p.derivative_filter_s + when.period_s);
                           }
                           const double wanted =
                               p.proportional * (u[0] - u[1]) + x[0] + p.derivative * slope;
                           y[0] = std::min(std::max(wanted, p.minimum), p.maximum);
                           x[0] += p.integral * when.period_s * (u[0] - u[1]) + (y[0] - wanted);
                           x[1] = slope;
                           x[2] = argument;
                         });
}

TEST(SignalGraph, ACallbackWithStateIsABlockLikeOthersAndGoesBack) {
  const System system = masses(1);
  const block::Pid gains{.proportional = 20.0,
                         .integral = 15.0,
                         .derivative = 8.0,
                         .derivative_filter_s = 0.02,
                         .minimum = -6.0,
                         .maximum = 6.0};
  const auto loop = [&](block::Handle law) {
    SignalGraphBuilder builder(system);
    builder.sensor("q", position(0));
    builder.block("target", block::step({.time_s = 0.05}), {});
    builder.block("law", std::move(law), {"target", "q"}, 2);
    builder.actuate("law", 0, 0);
    return Stepper(system, options_with(builder.build(), 1e-2));
  };
  Stepper built_in = loop(block::pid(gains));
  Stepper by_hand = loop(pid_by_hand(gains));
  built_in.step(100);
  by_hand.step(100);
  EXPECT_NE(by_hand.state(0)[0], 0.0);
  EXPECT_NEAR(by_hand.state(0)[0], built_in.state(0)[0], 1e-12);

  const Snapshot middle = by_hand.snapshot();
  Stepper clone = by_hand.clone();
  by_hand.step(100);
  const double end = by_hand.state(0)[0];
  by_hand.restore(middle);
  by_hand.step(100);
  EXPECT_EQ(by_hand.state(0)[0], end);
  clone.step(100);
  EXPECT_EQ(clone.state(0)[0], end);
}

TEST(SignalGraph, ACallbackThatKeepsItsStateToItselfDoesNotGoBack) {  // a control
  const System system = masses(1);
  SignalGraphBuilder builder(system);
  builder.block("own",
                block::callback(0, 1,
                                [sum = std::make_shared<double>(0.0)](
                                    const SampleTime&, std::span<const double>,
                                    std::span<double> y) { y[0] = *sum += 1.0; }),
                {});
  builder.actuate("own", 0, 0);
  Stepper stepper(system, options_with(builder.build(), 1e-2));
  const Snapshot start = stepper.snapshot();
  stepper.step(10);
  const double end = stepper.state(0)[0];
  stepper.restore(start);
  stepper.step(10);
  EXPECT_NE(stepper.state(0)[0], end);
}

TEST(SignalGraph, ASignalThatIsNotFiniteIsNamed) {
  const System system = masses(1, 1.0);
  SignalGraphBuilder builder(system);
  builder.sensor("q", position(0));
  builder.block("big", block::gain(1e308), {"q"});
  builder.block("bigger", block::gain(1e308), {"big"});
  builder.actuate("bigger", 0, 0);
  Stepper stepper(system, options_with(builder.build(), 1e-2));
  try {
    stepper.step();
    FAIL();
  } catch (const StepError& error) {
    EXPECT_NE(
        std::string(error.what()).find("signal \"bigger\" failed before step 0: bigger is inf"),
        std::string::npos)
        << error.what();
  }
}

TEST(SignalGraphBuilder, ReportsEveryDefectAtOnce) {
  const System system = masses(2);
  SignalGraphBuilder builder(system);
  builder.block("a", block::gain(1.0), {"c"});
  builder.block("a", block::gain(1.0), {"b", "b"});
  builder.block("b.c", block::gain(1.0), {"trajectory"});
  builder.block("trajectory", block::trajectory({{0.0, 1.0}}, block::TrajectoryShape::cubic), {},
                0);
  builder.sensor("s", {Sensor::Kind::state, 5, 0});
  builder.actuate("a", 0, 0);
  builder.actuate("a", 0, 0);
  builder.actuate("x", 7, 0);
  std::vector<std::string> places;
  for (const Issue& issue : builder.check()) places.push_back(issue.where);
  for (const char* const place :
       {"/blocks/0/inputs/0", "/blocks/1/name", "/blocks/1/inputs", "/blocks/1/inputs/0",
        "/blocks/2/name", "/blocks/2/inputs/0", "/blocks/3/every", "/blocks/4/of", "/actuators/1",
        "/actuators/2"}) {
    EXPECT_NE(std::ranges::find(places, place), places.end()) << place;
  }
}

TEST(SignalGraphBuilder, NamesAlgebraicLoopsAndLetsDelaysBreakThem) {
  const System system = masses(1);
  const auto loop = [&](const block::Handle& middle) {
    SignalGraphBuilder builder(system);
    builder.block("a", block::sum({1.0, 1.0}), {"c", "drive"});
    builder.block("b", middle, {"a"});
    builder.block("c", block::gain(0.5), {"b"});
    builder.block("drive", block::source(Signal::constant(1.0)), {});
    return builder;
  };
  const Issues issues = loop(block::gain(1.0)).check();
  ASSERT_EQ(issues.size(), 1U);
  EXPECT_NE(issues[0].what.find("algebraic loop: a -> b -> c -> a"), std::string::npos)
      << issues[0].what;
  EXPECT_TRUE(loop(block::delay(1)).check().empty());
  EXPECT_TRUE(loop(block::integrator({})).check().empty());
}

TEST(SignalGraphBuilder, TellsOfEveryLoopThatHasBlocksOfItsOwn) {
  const System system = masses(1);
  SignalGraphBuilder builder(system);
  builder.block("a", block::gain(0.5), {"b"});
  builder.block("b", block::gain(0.5), {"a"});
  builder.block("alone", block::gain(0.5), {"alone"});
  builder.block("c", block::sum({1.0, 1.0}), {"d", "a"});
  builder.block("d", block::sum({1.0, 1.0}), {"c", "e"});
  builder.block("e", block::gain(0.5), {"c"});  // c -> e -> d -> c: told when the other is gone
  std::vector<std::string> loops;
  for (const Issue& issue : builder.check()) {
    loops.push_back(issue.what.substr(0, issue.what.find('.')));
  }
  EXPECT_EQ(loops, (std::vector<std::string>{"algebraic loop: a -> b -> a",
                                             "algebraic loop: alone -> alone",
                                             "algebraic loop: c -> d -> c"}));
}

/// How long a pulse of 50 ms every 100 ms was on in so many seconds.
double time_on(double step_s, double tolerance, double run_s) {
  const System system = masses(1);
  SignalGraphBuilder builder(system);
  builder.block("pulse",
                block::pulse({.amplitude = 1.0, .period_s = 0.1, .width_s = 0.05, .delay_s = 0.0}),
                {});
  builder.actuate("pulse", 0, 0);
  StepperOptions options = options_with(builder.build(), step_s);
  if (tolerance > 0.0) {
    options.sizes = StepSizes{.tolerance = tolerance};
    options.signals_every_s = 0.01;
  }
  Stepper stepper(system, options);
  double on_s = 0.0;
  stepper.on_step([&](const Stepper& now, const StepReport& report) {
    if (now.signals()[0] == 1.0) on_s += report.step_s;
  });
  stepper.run_until(run_s);
  return on_s;
}

// A sample that is early or late by rounding would make the pulses of some periods 40 or 60 ms long.
TEST(SignalGraph, PulsesOnTheGridAreEquallyLongWithStepsOfOneSizeAndChosenOnes) {
  EXPECT_NEAR(time_on(0.01, 0.0, 100.0), 50.0, 1e-9);
  EXPECT_NEAR(time_on(0.01, 1e-4, 10.0), 5.0, 1e-9);
}

TEST(SettableInputs, AreHeldUntilTheyAreSetAgain) {
  const System system = masses(2);
  StepperOptions options = options_with({}, 1e-2);
  options.signals = nullptr;
  Stepper a(system, options), b(system, options);  // of one system, each with its own
  a.set_input(0, 0, 4.0);
  a.step(100);
  b.step(100);
  EXPECT_GT(a.state(0)[0], 0.1);
  EXPECT_EQ(a.state(1)[0], 0.0);
  EXPECT_EQ(b.state(0)[0], 0.0);
  EXPECT_THROW(a.set_input(0, 1, 1.0), std::out_of_range);
  EXPECT_THROW(a.set_input(0, 0, std::nan("")), std::invalid_argument);
  EXPECT_EQ(a.input(0, 0), 4.0);
  options.method = Splitting{};
  Stepper splitting(system, options);
  EXPECT_THROW(splitting.set_input(0, 0, 1.0), std::logic_error);
}

TEST(SignalGraph, IsRefusedWhereNothingSamplesIt) {
  const System system = masses(1);
  StepperOptions options = options_with(pid_loop(system, 1), 1e-2);
  options.sizes = StepSizes{};
  EXPECT_THROW(Stepper(system, options), ConfigError);
  options.sizes.reset();
  options.method = Splitting{};
  EXPECT_THROW(Stepper(system, options), ConfigError);
}

}  // namespace
}  // namespace portwave::test_control_loop
