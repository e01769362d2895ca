// Inputs that jump, on free masses and through rigid joints: what steps of every kind make of it.

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/core/signal.hpp"

namespace portwave::test_jumps_of_inputs {
namespace {

/// A force that jumps up at .33 s and down again at .41 s: a pulse within one step of .2 s.
Signal pulse() {
  return Signal::piecewise_linear({{0, 0}, {0.33, 0}, {0.33, 5}, {0.41, 5}, {0.41, 0}, {2, 0}});
}
constexpr double kImpulse_Ns = 5.0 * 0.08;
/// Of the position at 1 s: ∫(1 − t)F dt.
constexpr double kWay = 5.0 * (0.08 - 0.5 * (0.41 * 0.41 - 0.33 * 0.33));

System driven_mass(const Signal& force, int substeps = 1) {
  SystemBuilder builder;
  builder.add("m", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 0}),
              {.inputs = {{"force", force}}, .substeps = substeps});
  builder.join(joint::Free{}, {"m.coupling"});
  return builder.build();
}

StepperOptions options_with(CouplingMethod method, int stages = 1) {
  StepperOptions options{.step_s = 0.2, .method = std::move(method)};
  if (options.method.couples_by_waves()) options.method.waves().stages = stages;
  return options;
}

TEST(JumpsOfInputs, FixedStepsTakeInTheWholeImpulse) {
  for (int stages = 1; stages <= 3; ++stages) {
    for (const int substeps : {1, 3}) {
      const System system = driven_mass(pulse(), substeps);
      Stepper stepper(system, options_with(CouplingMethod::automatic(), stages));
      stepper.step(5);
      const double* x = stepper.state("m").data();
      EXPECT_NEAR(2.0 * x[1], kImpulse_Ns, 1e-14) << stages << " stages, " << substeps;
      if (stages > 1) {
        EXPECT_NEAR(2.0 * x[0], kWay, 1e-14) << stages << " stages, " << substeps;
      }
    }
  }
}

TEST(JumpsOfInputs, MethodsWithoutWavesToo) {
  const System system = driven_mass(pulse());
  for (const CouplingMethod& method :
       {CouplingMethod(Splitting{.kind = SplittingKind::strang}),
        CouplingMethod(DynamicIteration{.kind = IterationKind::jacobi, .iterations = 3}),
        CouplingMethod(DynamicIteration{.kind = IterationKind::jacobi,
        .iterations = 3,
        .integrator = Integrator::radau_iia})}) {
    Stepper stepper(system, options_with(method));
    stepper.step(5);
    EXPECT_NEAR(2.0 * stepper.state("m")[1], kImpulse_Ns, 1e-13) << to_string(method.kind());
  }
}

TEST(JumpsOfInputsControl, SamplesMissIt) {
  const System system =
      driven_mass(Signal::callback([table = pulse()](double t) { return table(t); }));
  Stepper stepper(system, options_with(CouplingMethod::automatic(), 1));
  stepper.step(5);
  EXPECT_GT(std::abs(2.0 * stepper.state("m")[1] - kImpulse_Ns), 0.1);
}

TEST(JumpsOfInputs, ChosenStepsEndThere) {
  const System system = driven_mass(pulse());
  StepperOptions options = options_with(CouplingMethod::automatic());
  options.sizes.emplace();
  options.step_s = 0.5;
  Stepper stepper(system, options);
  std::vector<double> ends;
  while (const auto report = stepper.step_if_before(1.0)) {
    ends.push_back(stepper.time_s());
    // The step that ends at the jump has seen none of it.
    if (stepper.time_s() == 0.33) {
      EXPECT_EQ(stepper.state("m")[1], 0.0);
    }
  }
  for (const double jump : {0.33, 0.41}) EXPECT_EQ(std::ranges::count(ends, jump), 1) << jump;
  EXPECT_NEAR(2.0 * stepper.state("m")[1], kImpulse_Ns, 1e-14);
}

/// A mass of 2 kg whose velocity is prescribed.
constexpr double kMass_kg = 2.0;
System led_mass(Signal velocity) {
  SystemBuilder builder;
  SystemBuilder::PartOptions options;
  options.inputs["flow"] = std::move(velocity);
  builder.add("v", make_part("flow_source", {{"domain", std::string("translation")}}), options);
  builder.add("m", make_part("mass", {{"mass_kg", kMass_kg}}));
  builder.join(joint::CommonFlow{}, {"v.port", "m.port"});
  return builder.build();
}

/// A pulse of 10 m/s between two times, as an expression, a table, and a function.
std::vector<Signal> pulses(double from_s, double to_s) {
  return {
      Signal::expression(fmt::format("if(t < {:.17g}, 0, if(t < {:.17g}, 10, 0))", from_s, to_s)),
      Signal::piecewise_linear({{from_s, 0.0}, {from_s, 10.0}, {to_s, 10.0}, {to_s, 0.0}}),
      Signal::callback([=](double t) { return t >= from_s && t < to_s ? 10.0 : 0.0; })};
}

/// The rows of a run, and whether each balances: Δ stored = supplied − impact.
struct Rows {
  std::vector<double> position, velocity;
  EnergyTotals energy;
  std::int64_t impulses = 0;
  Resolution::Kind resolution = Resolution::Kind::resolved;
};
Rows run(const System& system, StepperOptions options, int steps) {
  Stepper stepper(system, options);
  Rows out;
  // After an impulse at the start.
  double stored_J = stepper.energy().final_J, changed_J = stored_J;
  double supplied_J = stepper.energy().supplied_J;
  for (int n = 0; n < steps; ++n) {
    const StepReport report = stepper.step();
    const double* x = stepper.state("m").data();
    out.position.push_back(x[0]);
    out.velocity.push_back(x[1]);
    const StepLedger& e = report.energy;
    EXPECT_NEAR(e.stored_J, 0.5 * kMass_kg * x[1] * x[1], 1e-7) << n;
    EXPECT_NEAR(e.stored_J - stored_J, e.supplied_J - e.impact_J, 1e-7) << n;
    EXPECT_NEAR(e.changed_J, e.supplied_J - e.impact_J, 1e-7) << n;
    stored_J = e.stored_J;
    changed_J += e.changed_J;
    supplied_J += e.supplied_J;
  }
  out.energy = stepper.energy();
  EXPECT_NEAR(changed_J, out.energy.final_J, 1e-7);
  EXPECT_NEAR(supplied_J, out.energy.supplied_J, 1e-7);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  out.impulses = stepper.impulses().count;
  if (const auto found = stepper.resolution()) out.resolution = found->kind;
  return out;
}

// 0 → 10 m/s → 0: Mv² = 200 J are supplied, 100 J are lost at each edge, and the mass moves by ten times the width,
// wherever in steps of 10 ms the edges are.
TEST(JumpsOfInputs, BothEdgesOfAPulseAreImpulsesAndItsWayIsRight) {
  const std::vector<std::pair<double, double>> edges = {
      {0.503, 0.506}, {0.503, 0.508}, {0.5, 0.5033},   {0.5005, 0.5095}, {0.501, 0.503},
      {0.507, 0.509}, {0.503, 0.51},  {0.496, 0.5042}, {0.4963, 0.5321}, {0.503, 0.5030005}};
  for (const auto& [from_s, to_s] : edges) {
    const std::vector<Signal> signals = pulses(from_s, to_s);
    for (std::size_t kind = 0; kind < signals.size(); ++kind) {
      if (kind == 2 && to_s - from_s < 1.3e-3) continue;  // between the samples of a function
      for (const int stages : {1, 2, 3}) {
        const std::string where = fmt::format("{} {} s, {}, {}", from_s, to_s, kind, stages);
        StepperOptions options = options_with(CouplingMethod::automatic(), stages);
        options.step_s = 0.01;
        const Rows rows = run(led_mass(signals[kind]), options, 100);
        for (int n = 0; n < 100; ++n) {
          const double t = 0.01 * (n + 1);
          const double way = 10.0 * std::clamp(t - from_s, 0.0, to_s - from_s);
          EXPECT_NEAR(rows.position[static_cast<std::size_t>(n)], way, 1e-8) << where << " " << t;
          // A row at a jump has what was before it.
          const bool is_within = t > from_s + 1e-9 && t < to_s + 1e-9;
          EXPECT_NEAR(rows.velocity[static_cast<std::size_t>(n)], is_within ? 10.0 : 0.0, 1e-7)
              << where << " " << t;
        }
        EXPECT_EQ(rows.impulses, 2) << where;
        EXPECT_NEAR(rows.energy.supplied_J, 200.0, 1e-5) << where;
        EXPECT_NEAR(rows.energy.impact_J, 200.0, 1e-5) << where;
      }
    }
  }
}

TEST(JumpsOfInputs, PulsesThatNoRowShowsAreTold) {
  StepperOptions options = options_with(CouplingMethod::automatic());
  options.step_s = 0.01;
  // Pulses of 4 ms around every fifth row, whose edges are nearest to the same row.
  const System train = led_mass(Signal::expression("if(mod(t + 0.002, 0.05) < 0.004, 10, 0)"));
  const Rows fast = run(train, options, 100);
  EXPECT_NEAR(fast.position.back(), 10.0 * 0.08, 1e-8);
  EXPECT_NEAR(fast.energy.impact_J, 100.0 * 41, 1e-3);  // the last one has begun
  EXPECT_EQ(fast.resolution, Resolution::Kind::pulses);
  const System slow = led_mass(Signal::expression("if(mod(t + 0.002, 0.5) < 0.204, 10, 0)"));
  EXPECT_EQ(run(slow, options, 100).resolution, Resolution::Kind::resolved);
}

// A step that has the jump of a moving source follows it: u = 3 + 40 t before, 20 t after .3033 s.
TEST(JumpsOfInputs, OfAMovingSourceStatesFollowToTheEndOfEveryStep) {
  StepperOptions options = options_with(CouplingMethod::automatic());
  options.step_s = 0.01;
  const double jump_s = 0.3033, before = 3.0 + 40.0 * jump_s, after = 20.0 * jump_s;
  const Rows rows =
      run(led_mass(Signal::expression("if(t < 0.3033, 3 + 40*t, 20*t)")), options, 60);
  for (int n = 0; n < 60; ++n) {
    const double t = 0.01 * (n + 1);
    const double v = t < jump_s ? 3.0 + 40.0 * t : 20.0 * t;
    const double way =
        t < jump_s ? 3.0 * t + 20.0 * t * t : 3.0 * jump_s + 10.0 * jump_s * jump_s + 10.0 * t * t;
    EXPECT_NEAR(rows.velocity[static_cast<std::size_t>(n)], v, 1e-7) << t;
    EXPECT_NEAR(rows.position[static_cast<std::size_t>(n)], way, 1e-7) << t;
  }
  // Besides the impulse ½M(v² − u²) is supplied as the velocity rises from u to v.
  const double ramps = 0.5 * kMass_kg * (before * before - 9.0 + 144.0 - after * after);
  const double supplied_J = kMass_kg * 9.0 + ramps + kMass_kg * after * (after - before);
  EXPECT_NEAR(rows.energy.supplied_J, supplied_J, 1e-5);
  const double lost = after - before;
  EXPECT_NEAR(rows.energy.impact_J, 0.5 * kMass_kg * (9.0 + lost * lost), 1e-5);
}

}  // namespace
}  // namespace portwave::test_jumps_of_inputs
