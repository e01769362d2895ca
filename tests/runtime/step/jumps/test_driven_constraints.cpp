// Steps of chosen size where an input drives a storage through rigid joints: they need about as many steps as
// motion of the same kind without a constraint, and keep to their tolerance.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numbers>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"

namespace portwave::test_driven_constraints {
namespace {

constexpr double kOmega = 2.0 * std::numbers::pi;

System driven(const std::string& source, Parameters of_source, const std::string& input,
              Signal signal, const std::string& type, Parameters parameters,
              const std::string& port, Joint joint) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs[input] = std::move(signal);
  builder.add("source", make_part(source, std::move(of_source)), options);
  builder.add("part", make_part(type, std::move(parameters)));
  builder.join(std::move(joint), {"source.port", "part." + port});
  return builder.build();
}

System capacitor(Signal volt) {
  return driven("effort_source", {{"domain", std::string("electrical")}}, "effort", std::move(volt),
                "capacitor", {{"capacitance_F", 1e-3}}, "terminals", joint::CommonEffort{});
}
System inertia(Signal speed) {
  return driven("flow_source", {{"domain", std::string("rotation")}}, "flow", std::move(speed),
                "inertia", {{"inertia_kgm2", 2.0}}, "shaft", joint::CommonFlow{});
}
/// Nothing is prescribed but a torque.
System pushed(Signal torque) {
  return driven("effort_source", {{"domain", std::string("rotation")}}, "effort", std::move(torque),
                "inertia", {{"inertia_kgm2", 1.0}}, "shaft", joint::CommonFlow{});
}
/// The capacitor behind a resistor.
System smooth(Signal volt) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["effort"] = std::move(volt);
  builder.add("source", make_part("effort_source", {{"domain", std::string("electrical")}}),
              options);
  builder.add("r", make_part("resistor", {{"resistance_ohm", 100.0}}));
  builder.add("part", make_part("capacitor", {{"capacitance_F", 1e-3}}));
  builder.join(joint::CommonFlow{}, {"source.port", "r.terminals", "part.terminals"});
  return builder.build();
}

struct Outcome {
  std::int64_t steps = 0, rejected = 0;
  double error = 0.0;  ///< largest of the state at the ends of steps
  bool balances = false;
};

Outcome run(const System& system, double tolerance, int state,
            const std::function<double(double)>& exact, StageKind integrator = StageKind::automatic,
            int stages = 0) {
  StepperOptions options;
  options.step_s = 0.1;
  options.sizes = StepSizes{.tolerance = tolerance};
  options.method.waves().stages = stages;
  options.method.waves().integrator = integrator;
  Stepper stepper(system, options);
  Outcome out;
  while (const auto report = stepper.step_if_before(2.0)) {
    const double error =
        std::abs(stepper.state("part")[static_cast<std::size_t>(state)] - exact(stepper.time_s()));
    out.error = std::max(out.error, error);
    out.rejected += report->rejected_steps;
    if (++out.steps > 200'000) break;
  }
  const EnergyTotals e = stepper.energy();
  const double open = e.final_J - e.initial_J - e.supplied_J + e.dissipated_J + e.mismatch_J +
                      e.impact_J + e.numerical_dissipation_J;
  out.balances = std::abs(open) <= 1e-12 * (e.max_J + std::abs(e.supplied_J));
  return out;
}

double wave(double t) { return std::sin(kOmega * t); }

/// What is prescribed has rates of one order less than what moves by itself.
TEST(DrivenConstraints, KeepToTheToleranceInAboutTheStepsOfSmoothMotion) {
  const Signal sine = Signal::expression("sin(2*pi*t)");
  const System of_voltage = capacitor(sine), of_speed = inertia(sine), free = smooth(sine);
  for (const double tolerance : {1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8}) {
    const Outcome behind = run(free, tolerance, 0, [](double) { return 0.0; });
    const Outcome voltage = run(of_voltage, tolerance, 0, wave);
    const Outcome speed = run(of_speed, tolerance, 1, wave);
    const std::string where =
        fmt::format("{:g}: {} {} {}", tolerance, behind.steps, voltage.steps, speed.steps);
    EXPECT_LE(voltage.error, tolerance) << where;
    EXPECT_LE(speed.error, tolerance) << where;
    const std::int64_t most = (tolerance < 1e-6 ? 4 : 2) * behind.steps;
    EXPECT_LE(voltage.steps, most) << where;
    EXPECT_LE(speed.steps, most) << where;
    EXPECT_TRUE(voltage.balances && speed.balances) << where;
  }
}

/// Control: conserving stages meet the constraint in the mean of a step only.
TEST(DrivenConstraints, CollapseWithConservingStages) {
  const Signal sine = Signal::expression("sin(2*pi*t)");
  EXPECT_LE(run(capacitor(sine), 1e-5, 0, wave).steps, 200);
  EXPECT_THROW(run(capacitor(sine), 1e-5, 0, wave, StageKind::gauss), StepError);
}

TEST(DrivenConstraints, AreDampedWithAnyNumberOfStages) {
  const Signal sine = Signal::expression("sin(2*pi*t)");
  for (const int stages : {1, 2, 3}) {
    for (const double tolerance : {1e-2, 1e-3}) {
      const Outcome own = run(inertia(sine), tolerance, 1, wave, StageKind::automatic, stages);
      EXPECT_LE(own.error, 10.0 * tolerance) << stages << " " << tolerance;
      EXPECT_LE(own.steps, 20'000) << stages << " " << tolerance;
      EXPECT_TRUE(own.balances) << stages << " " << tolerance;
    }
  }
}

/// Two arms of two thin rods of 1 m and 1 kg on one axle, each the mirror image of the other, that hold one another's
/// tip: the tips move up and down. At 0.7 s torques of 4 Nm set in.
System arms() {
  SystemBuilder builder;
  for (const auto& [name, sign] : {std::pair{"part", 1.0}, std::pair{"other", -1.0}}) {
    SystemBuilder::PartOptions options;
    options.initial_state = {0.3 * sign, 0.2 * sign, 0.0, 0.0};
    options.inputs["torque_1"] =
        Signal::expression(sign > 0.0 ? "if(t < 0.7, 0, 4)" : "if(t < 0.7, 0, -4)");
    builder.add(name,
                make_part("planar_arm", {{"lengths_m", std::vector<double>{1, 1}},
                                         {"masses_kg", std::vector<double>{1, 1}},
                                         {"tip_port", true}}),
                options);
    builder.join(joint::Free{}, {std::string(name) + ".joint_1"});
    builder.join(joint::Free{}, {std::string(name) + ".joint_2"});
  }
  builder.join(joint::CommonFlow{}, {"part.tip", "other.tip"});
  return builder.build();
}

/// Angles after 2 s of one arm whose tip a force keeps on its vertical line: SciPy's DOP853 at 1e-13.
constexpr std::array kArm{0.21189975, 0.38808296};

/// What turns with the arms is met at the ends of steps, so that no velocity swings about it.
TEST(TurningConstraints, AreMetByDampedSteps) {
  for (const double tolerance : {1e-3, 1e-5, 1e-7}) {
    for (const int angle : {0, 1}) {
      const double end = kArm.at(static_cast<std::size_t>(angle));
      StepperOptions options;
      options.step_s = 0.01;
      options.sizes = StepSizes{.tolerance = tolerance};
      options.method.waves().stages = 0;
      Stepper stepper(arms(), options);
      std::int64_t steps = 0;
      while (stepper.step_if_before(2.0)) ++steps;
      EXPECT_NEAR(stepper.state("part")[static_cast<std::size_t>(angle)], end, 20.0 * tolerance)
          << tolerance;
      EXPECT_LE(steps, 3000) << tolerance;
      EXPECT_EQ(stepper.waves()->integrator(),
                "damped, with order 5, in 2 of 2 parts; rigid joints turn with what \"part\" does");
    }
  }
}

/// Control: with conserving steps forces swing, twice as far at each change of the size, until they are not finite.
TEST(TurningConstraints, OverthrowConservingSteps) {
  int failed = 0;
  for (const double tolerance : {1e-6, 1e-7, 1e-8, 1e-9}) {
    StepperOptions options;
    options.step_s = 0.01;
    options.sizes = StepSizes{.tolerance = tolerance};
    options.method.waves().stages = 0;
    options.method.waves().integrator = StageKind::gauss;
    Stepper stepper(arms(), options);
    try {
      while (stepper.step_if_before(2.0)) continue;
    } catch (const StepError&) {
      ++failed;
    }
  }
  EXPECT_GT(failed, 0);
}

/// Joints of an arm tie in directions that do not turn: such systems conserve.
TEST(TurningConstraints, LeaveMotorsOnJointsAsTheyWere) {
  SystemBuilder builder;
  builder.add("arm", make_part("planar_arm", {{"lengths_m", std::vector<double>{1}},
                                              {"masses_kg", std::vector<double>{1}},
                                              {"tip_port", true}}));
  builder.add("rotor", make_part("inertia", {{"inertia_kgm2", 1.0}}));
  builder.join(joint::CommonFlow{}, {"arm.joint_1", "rotor.shaft"});
  builder.join(joint::Free{}, {"arm.tip"});
  StepperOptions options;
  options.step_s = 0.01;
  options.sizes = StepSizes{.tolerance = 1e-6};
  options.method.waves().stages = 0;
  EXPECT_EQ(Stepper(builder.build(), options).waves()->damped_parts(), 0);
}

/// The summary says which part and why; constant inputs and other systems are stepped as ever.
TEST(DrivenConstraints, AreNamed) {
  StepperOptions options;
  options.step_s = 0.1;
  options.sizes = StepSizes{.tolerance = 1e-4};
  options.method.waves().stages = 0;
  const Stepper driven_one(inertia(Signal::expression("sin(t)")), options);
  EXPECT_EQ(driven_one.waves()->integrator(),
            "damped, with order 5, in 1 of 2 parts; an input drives \"part\" through rigid joints");
  EXPECT_EQ(Stepper(inertia(Signal::constant(0.0)), options).waves()->damped_parts(), 0);
  EXPECT_EQ(Stepper(pushed(Signal::expression("sin(t)")), options).waves()->damped_parts(), 0);
  EXPECT_EQ(Stepper(inertia(Signal::settable(0.0)), options).waves()->damped_parts(), 1);
  options.sizes.reset();
  options.method.waves().stages = 3;
  EXPECT_EQ(Stepper(inertia(Signal::expression("sin(t)")), options).waves()->damped_parts(), 0)
      << "steps of one size";
}

// A pipe on a reservoir whose far end is closed smoothly: the flow there is prescribed, and what waits behind it
// runs on. Beside a Runge-Kutta method for its equations.
constexpr int kCells = 4;
constexpr double kInertance = 2.0 / kCells, kCapacitance = 0.6 / kCells, kFriction = 0.3 / kCells;
using Pipe = std::array<double, 2 * kCells>;  // Q₁, p₁, …, Q_n, p_n

double end_flow(double t) { return 0.25 * (1.0 - std::cos(std::numbers::pi * std::min(t, 2.0))); }

Pipe rates(double t, const Pipe& x) {
  Pipe out{};
  for (int i = 0; i < kCells; ++i) {
    const auto q = static_cast<std::size_t>(2 * i), p = q + 1;
    const double share = i == 0 ? 0.5 : 1.0, before = i == 0 ? 1.0 : x[q - 1];
    out[q] = (before - x[p] - share * kFriction * x[q]) / (share * kInertance);
    out[p] = (x[q] - (i + 1 < kCells ? x[q + 2] : end_flow(t))) / kCapacitance;
  }
  return out;
}

Pipe by_runge_kutta(double end_s, int steps) {
  Pipe x{};
  const double h = end_s / steps;
  const auto moved = [](const Pipe& from, double by, const Pipe& rate) {
    Pipe out = from;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] += by * rate[i];
    return out;
  };
  for (int n = 0; n < steps; ++n) {
    const double t = n * h;
    const Pipe a = rates(t, x), b = rates(t + 0.5 * h, moved(x, 0.5 * h, a)),
               c = rates(t + 0.5 * h, moved(x, 0.5 * h, b)), d = rates(t + h, moved(x, h, c));
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] += h / 6.0 * (a[i] + 2.0 * b[i] + 2.0 * c[i] + d[i]);
    }
  }
  return x;
}

TEST(DrivenConstraints, WaterHammerIsThatOfTheEquations) {
  const auto pipe = [](const std::string& end, Signal signal) {
    SystemBuilder builder;
    SystemBuilder::PartOptions reservoir, closed;
    reservoir.inputs["effort"] = Signal::constant(1.0);
    closed.inputs[end == "flow_source" ? "flow" : "effort"] = std::move(signal);
    builder.add("reservoir", make_part("effort_source", {{"domain", std::string("hydraulic")}}),
                reservoir);
    builder.add("part", make_part("fluid_line", {{"cells", kCells},
                                                 {"inertance_kg_per_m4", 2.0},
                                                 {"capacitance_m3_per_Pa", 0.6},
                                                 {"friction_Pas_per_m3", 0.3}}));
    builder.add("end", make_part(end, {{"domain", std::string("hydraulic")}}), closed);
    builder.join(joint::CommonEffort{}, {"reservoir.port", "part.left"});
    if (end == "flow_source") {
      builder.join(joint::CommonFlow{}, {"end.port", "part.right"});
    } else {
      builder.join(joint::CommonEffort{}, {"end.port", "part.right"});
    }
    return builder.build();
  };
  const System closing = pipe("flow_source", Signal::expression("0.25*(1 - cos(pi*min(t, 2)))"));
  const System open = pipe("effort_source", Signal::expression("sin(pi*min(t, 2))"));
  const Pipe exact = by_runge_kutta(4.0, 40'000);
  for (const double tolerance : {1e-3, 1e-5, 1e-7}) {
    StepperOptions options;
    options.step_s = 0.1;
    options.sizes = StepSizes{.tolerance = tolerance};
    options.method.waves().stages = 0;
    Stepper stepper(closing, options), smooth(open, options);
    std::int64_t steps = 0, smooth_steps = 0;
    while (stepper.step_if_before(4.0) && steps < 100'000) ++steps;
    while (smooth.step_if_before(4.0)) ++smooth_steps;
    const Signature& signature = closing.parts()[1].component->signature();
    for (int i = 0; i < 2 * kCells; ++i) {
      const std::string name = fmt::format("{}_{}", i % 2 == 0 ? "flow" : "pressure", i / 2 + 1);
      const auto it = std::ranges::find(signature.states, name, &StateVariable::name);
      ASSERT_NE(it, signature.states.end()) << name;
      const auto index = static_cast<std::size_t>(it - signature.states.begin());
      EXPECT_NEAR(stepper.state("part")[index], exact[static_cast<std::size_t>(i)],
                  20.0 * tolerance)
          << name << " " << tolerance;
    }
    EXPECT_LE(steps, 2 * smooth_steps + 20) << tolerance;
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << tolerance;
  }
}

}  // namespace
}  // namespace portwave::test_driven_constraints
