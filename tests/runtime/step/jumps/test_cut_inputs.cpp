// Inputs that change suddenly within a step, beside a decay that is faster than it: the row at its end.

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/ensemble/ensemble.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/runtime/step/wave_view.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace portwave::test_cut_inputs {
namespace {

constexpr double kStep_s = 1e-3;
constexpr double kBefore_V = 1.0, kAfter_V = 5.0, kResistance_ohm = 1.0;

/// A winding on a source of voltage, at rest with kBefore_V, whose current decays by hλ within a step.
System winding(const Signal& voltage, double h_lambda) {
  SystemBuilder builder;
  builder.add("v", make_part("effort_source", {{"domain", std::string("electrical")}}),
              {.inputs = {{"effort", voltage}}});
  builder.add("l",
              make_part("inductor", {{"inductance_H", kStep_s * kResistance_ohm / h_lambda},
                                     {"resistance_ohm", kResistance_ohm}}),
              {.initial_state = std::vector{kBefore_V / kResistance_ohm}});
  builder.join(joint::Connection{}, {"v.port", "l.terminals"});
  return builder.build();
}

StepperOptions with(int stages, bool halves = false) {
  StepperOptions options{.step_s = kStep_s, .halves_once_more = halves};
  options.method.waves().stages = stages;
  options.method.waves().integrator = StageKind::damped;
  return options;
}

/// What is left after `way` steps of a jump of hλ is e^(−hλ·way): the current [A].
double settled_A(double h_lambda, double way) {
  return (kAfter_V - (kAfter_V - kBefore_V) * std::exp(-h_lambda * way)) / kResistance_ohm;
}

double current_A(const Signal& voltage, double h_lambda, const StepperOptions& options, int steps) {
  const System system = winding(voltage, h_lambda);
  Stepper stepper(system, options);
  stepper.step(steps);
  return stepper.state("l")[0];
}

std::string jump_at(double time_s) {
  return fmt::format("if(t < {:.17g}, {}, {})", time_s, kBefore_V, kAfter_V);
}

Signal knots_at(double from_s, double to_s) {
  return Signal::piecewise_linear({{0.0, kBefore_V}, {from_s, kBefore_V}, {to_s, kAfter_V}});
}

class CutInputs : public testing::TestWithParam<int> {};

/// Of one stage (1 + hλ/n)⁻ⁿ − e^(−hλ) with n = 16 is 0.017 at most.
TEST_P(CutInputs, RowsFollowAJumpWhereverItLies) {
  const double most_A = (kAfter_V - kBefore_V) * (GetParam() == 1 ? 0.017 : 0.002);
  for (const double h_lambda : {5.0, 8.0, 50.0, 500.0, 1e6}) {
    for (const double share : {0.02, 0.5, 0.9, 0.97, 0.997}) {
      const double jump_s = (3.0 + share) * kStep_s;
      for (const Signal& voltage :
           {Signal::expression(jump_at(jump_s)), knots_at(jump_s, jump_s)}) {
        EXPECT_NEAR(current_A(voltage, h_lambda, with(GetParam()), 4),
                    settled_A(h_lambda, 1.0 - share), most_A)
            << h_lambda << ", " << share;
      }
    }
  }
}

TEST_P(CutInputs, EdgesAndSmoothStepsLikewise) {
  const double most_A = (kAfter_V - kBefore_V) * 0.02;
  const double middle_s = 3.96 * kStep_s, width_s = 1e-4 * kStep_s;
  const Signal edge = knots_at(middle_s - width_s, middle_s + width_s);
  const Signal smooth =
      Signal::expression(fmt::format("3 + 2*tanh((t - {:.17g})/{:.17g})", middle_s, width_s));
  for (const double h_lambda : {8.0, 50.0, 500.0}) {
    const double exact_A = settled_A(h_lambda, 0.04);
    EXPECT_NEAR(current_A(edge, h_lambda, with(GetParam()), 4), exact_A, most_A) << h_lambda;
    EXPECT_NEAR(current_A(smooth, h_lambda, with(GetParam()), 4), exact_A, most_A) << h_lambda;
  }
}

/// Also where the edge goes on in the next step.
TEST_P(CutInputs, EdgesAcrossARow) {
  const double from_s = 3.97 * kStep_s, to_s = 4.05 * kStep_s, h_lambda = 500.0;
  const double there_V = kBefore_V + (kAfter_V - kBefore_V) * 0.03 / 0.08;
  const double lag_V = (kAfter_V - kBefore_V) / 0.08 / h_lambda;
  const Signal edge = knots_at(from_s, to_s);
  EXPECT_NEAR(current_A(edge, h_lambda, with(GetParam()), 4), there_V - lag_V, 0.02);
  EXPECT_NEAR(current_A(edge, h_lambda, with(GetParam()), 5), kAfter_V, 2e-5);
}

/// The mean of the step is what a pulse leaves without cuts; at its end nothing is left.
TEST_P(CutInputs, PulsesAreOverAtTheEndOfTheStep) {
  const Signal pulse = Signal::piecewise_linear({{0.0, kBefore_V},
                                                 {3.1 * kStep_s, kBefore_V},
                                                 {3.1 * kStep_s, kAfter_V},
                                                 {3.6 * kStep_s, kAfter_V},
                                                 {3.6 * kStep_s, kBefore_V}});
  EXPECT_NEAR(current_A(pulse, 500.0, with(GetParam()), 4), kBefore_V, 0.01);
}

/// A valve that closes on a small tank makes what is behind it fast, and the part of the step behind the jump is
/// attempted again with a damped tank: with the pressure from there on, not with that at the beginning of the step.
TEST(CutInputs, PartsThatAreAttemptedAgainBeginBehindTheJump) {
  constexpr double kWeight_Pa_per_m = 9806.65, kPressure_Pa = 70.0;
  for (const double share : {0.5, 0.9, 0.97}) {
    const double jump_s = (3.0 + share) * kStep_s;
    SystemBuilder builder;
    builder.add("tank", make_part("tank", {{"area_m2", 1e-4 * kWeight_Pa_per_m * kStep_s}}),
                {.initial_state = std::vector{10.0 / kWeight_Pa_per_m}});
    builder.add("valve", make_part("valve", {{"nominal_flow_m3_per_s", 1.0},
                                             {"nominal_pressure_Pa", kPressure_Pa},
                                             {"laminar_pressure_Pa", 0.01}}));
    builder.add(
        "pump", make_part("effort_source", {{"domain", std::string("hydraulic")}}),
        {.inputs = {{"effort", Signal::piecewise_linear(
                                   {{0.0, 0.0}, {jump_s, 0.0}, {jump_s, -kPressure_Pa}})}}});
    builder.join(joint::CommonFlow{}, {"tank.outlet", "valve.line", "pump.port"});
    const System system = builder.build();
    Stepper stepper(system, {.step_s = kStep_s});
    stepper.step(4);
    EXPECT_NEAR(stepper.state("tank")[0] * kWeight_Pa_per_m, kPressure_Pa, 0.1) << share;
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, CutInputs, testing::Values(1, 2, 3));

/// What nothing tells of cannot be cut: the same jump as a function.
TEST(CutInputsControl, AFunctionThatJumpsIsSeenByItsSamples) {
  const double jump_s = 3.5 * kStep_s, h_lambda = 8.0;
  const Signal hidden =
      Signal::callback([=](double t) { return t < jump_s ? kBefore_V : kAfter_V; });
  const double exact_A = settled_A(h_lambda, 0.5);
  EXPECT_GT(std::abs(current_A(hidden, h_lambda, with(1), 4) - exact_A), 0.3);
  EXPECT_LT(std::abs(current_A(knots_at(jump_s, jump_s), h_lambda, with(1), 4) - exact_A), 0.07);
}

/// Parts of half the size behind a jump, so that a comparison shows what those of the run are off by.
TEST(CutInputs, ComparisonsHalveThePartsBehindAJump) {
  const double jump_s = 3.5 * kStep_s, h_lambda = 4.6;
  const Signal voltage = knots_at(jump_s, jump_s);
  const double exact_A = settled_A(h_lambda, 0.5);
  const double own = current_A(voltage, h_lambda, with(1), 4) - exact_A;
  const double finer = current_A(voltage, h_lambda, with(1, true), 4) - exact_A;
  EXPECT_NEAR(own / finer, 2.0, 0.1);
}

/// What is sudden between the samples of conserving steps is so between those of half the step, too.
TEST(CutInputs, ComparisonsOfConservingStepsSeeSmoothJumps) {
  const double middle_s = 3.97 * kStep_s, h_lambda = 0.9;
  const Signal smooth = Signal::expression(
      fmt::format("3 + 2*tanh((t - {:.17g})/{:.17g})", middle_s, 1e-3 * kStep_s));
  StepperOptions options = with(3);
  options.method.waves().integrator = StageKind::automatic;
  const double exact_A = settled_A(h_lambda, 0.03);
  EXPECT_NEAR(current_A(smooth, h_lambda, options, 4), kBefore_V / kResistance_ohm, 1e-3);
  options.halves_once_more = true;
  EXPECT_NEAR(current_A(smooth, h_lambda, options, 4), exact_A, 1e-3);
}

TEST(CutInputs, AccountsAndMeansAreThoseOfTheWholeStep) {
  const double jump_s = 3.6 * kStep_s;
  const System system = winding(knots_at(jump_s, jump_s), 50.0);
  Stepper stepper(system, with(1));
  for (int step = 0; step < 6; ++step) {
    const StepReport report = stepper.step();
    const StepLedger& own = report.energy;
    EXPECT_EQ(report.step_s, kStep_s);
    EXPECT_EQ(stepper.step_index(), step + 1);
    EXPECT_NEAR(own.changed_J,
                own.supplied_J - own.dissipated_J - own.numerical_dissipation_J - own.mismatch_J,
                1e-16);
    if (step == 3) {
      EXPECT_GT(own.dissipated_J, 0.0);
      EXPECT_NEAR(stepper.effort(0), 0.6 * kBefore_V + 0.4 * kAfter_V, 1e-12);
    }
  }
}

TEST(CutInputs, FindingsProfilesAndTimesCountWholeSteps) {
  const System system = winding(Signal::expression("if(mod(t, 1.3e-3) < 6e-4, 5, 1)"), 50.0);
  StepperOptions options = with(1);
  options.profile = ProfileOptions{};
  Stepper stepper(system, options);
  std::int64_t iterations = 0;
  double inner_s = 0.0;
  for (int step = 0; step < 20; ++step) {
    const StepReport report = stepper.step();
    iterations += report.iterations;
    inner_s += report.times.iterate_s;
  }
  EXPECT_GE(stepper.certificate().worst_passivity_step, 0);
  EXPECT_LT(stepper.certificate().worst_passivity_step, 20);
  const Profile profile = stepper.profile();
  EXPECT_EQ(profile.steps, 20);
  EXPECT_EQ(profile.sampled, 20);
  EXPECT_EQ(profile.iterations, iterations);
  EXPECT_NEAR(profile.inner_s, inner_s, 1e-9 * inner_s);
  const auto is_inner = [](const ProfileEvent& event) {
    return event.kind == ProfileEvent::Kind::inner;
  };
  EXPECT_GT(std::ranges::count_if(profile.events, is_inner), 100);
}

/// Bits of runs do not depend on how they were come to.
TEST(CutInputs, SnapshotsRepeatTheStep) {
  const double jump_s = 3.6 * kStep_s;
  const System system =
      winding(Signal::expression(fmt::format("{} + sin(200*t)", jump_at(jump_s))), 50.0);
  Stepper stepper(system, with(1));
  stepper.step(2);
  const auto early = stepper.snapshot();
  stepper.step(4);
  const std::vector<double> first(stepper.state("l").begin(), stepper.state("l").end());
  stepper.restore(early);
  stepper.step(4);
  EXPECT_EQ(first, std::vector<double>(stepper.state("l").begin(), stepper.state("l").end()));
}

/// Energies and means of parts are of the step that was taken last, and a snapshot has no such step.
TEST(CutInputs, ASnapshotHasNoMeansOfALaterStep) {
  const double jump_s = 3.6 * kStep_s;
  const System system = winding(knots_at(jump_s, jump_s), 50.0);
  Stepper stepper(system, with(1));
  stepper.step(3);
  const double before_V = stepper.effort(0);
  const auto early = stepper.snapshot();
  stepper.step();
  EXPECT_GT(stepper.effort(0), before_V + 1.0);
  stepper.restore(early);
  EXPECT_NEAR(stepper.effort(0), before_V, 1e-12);
}

/// Times of jumps are known to some spacings of numbers, which are a billionth of a step after a million of them.
TEST(CutInputs, FarFromTheBeginningOfTime) {
  for (const double start_s : {2e4, -3e3, 1e6}) {
    StepperOptions options = with(1);
    options.start_s = start_s;
    const System system = winding(Signal::expression(jump_at(start_s + 3.9 * kStep_s)), 50.0);
    Stepper stepper(system, options);
    stepper.step(4);
    EXPECT_NEAR(stepper.state("l")[0], settled_A(50.0, 0.1), 0.07) << start_s;
  }
}

/// Steps that are not cut, for there is too much to cut at, take no time to find that out.
TEST(CutInputs, ManyChangesAreNotCounted) {
  const System system = winding(Signal::expression("if(mod(t, 1e-12) < 4e-13, 5, 1)"), 50.0);
  Stepper stepper(system, with(1));
  stepper.step(3);
  EXPECT_EQ(stepper.waves()->integrator().find("cut where"), std::string::npos);
}

/// Triangles, sines, noise and jumps between steps move no more within a step than beside it, and cut nothing.
TEST(CutInputs, OtherInputsCutNothing) {
  std::vector<Signal::Knot> triangle;
  for (int i = 0; i < 20; ++i) triangle.push_back({1.3 * i * kStep_s, i % 2 == 0 ? 1.0 : 3.0});
  for (const Signal& voltage :
       {Signal::piecewise_linear(triangle), Signal::expression("1 + sin(2000*t)"),
        Signal::expression("1 + abs(sin(900*t))"), knots_at(4.0 * kStep_s, 4.0 * kStep_s),
        Signal::expression(jump_at(4.0 * kStep_s))}) {
    const System system = winding(voltage, 50.0);
    Stepper stepper(system, with(1));
    stepper.step(20);
    EXPECT_EQ(stepper.waves()->integrator().find("cut where"), std::string::npos);
  }
}

TEST(CutInputs, ReplicasAreCutAsTheyWouldBeAlone) {
  const double jump_s = 3.9 * kStep_s, h_lambda = 8.0;
  for (const Signal& voltage : {knots_at(jump_s, jump_s), Signal::constant(kBefore_V)}) {
    const System system = winding(voltage, h_lambda);
    Ensemble ensemble(system, 3, with(1));
    ensemble.step(4);
    std::vector<double> state(static_cast<std::size_t>(ensemble.state_size()));
    ensemble.get_state(2, state);
    EXPECT_EQ(state[0], current_A(voltage, h_lambda, with(1), 4));
    EXPECT_EQ(ensemble.in_lanes(), voltage.next_kink(0.0) > 1.0) << ensemble.execution();
  }
}

TEST(CutInputs, SayHowManySteps) {
  const System system = winding(Signal::expression(jump_at(3.5 * kStep_s)), 50.0);
  Stepper stepper(system, with(1));
  stepper.step(20);
  EXPECT_NE(stepper.waves()->integrator().find("1 of 20 steps cut where inputs or parameters jump"),
            std::string::npos);
}

}  // namespace
}  // namespace portwave::test_cut_inputs
