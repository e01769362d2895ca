// Tables with two knots of equal time: what steps of every kind make of the jump.

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
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

}  // namespace
}  // namespace portwave::test_jumps_of_inputs
