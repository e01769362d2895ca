// Kicks and drifts, and Taylor series, where a spring's end is led along a displacement.

#include <cmath>
#include <string>

#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/catalogue/parts.hpp"

namespace portwave::test_explicit_displacements {
namespace {

/// A mass on a spring of e -> 40 e + c e^3, whose other end is led.
System led(double cubic, const Signal& displacement) {
  SystemBuilder builder;
  builder.add(
      "m", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 5.0, .damping_Ns_per_m = 0.2}),
      {.initial_state = {0.1, 0.0}});
  if (cubic == 0.0) {
    builder.add("s", parts::spring({.stiffness_N_per_m = 40.0}), {.initial_state = {0.1}});
  } else {
    builder.add(
        "s",
        parts::port_hamiltonian({.states = {{"e", "m"}},
                                 .ports = {{"left", Causality::flow_in, Domain::translation, 1},
                                           {"right", Causality::flow_in, Domain::translation, 1}},
                                 .constants = {{"c", cubic}, {"k", 40.0}},
                                 .energy = "k*e^2/2 + c*e^4/4",
                                 .J = {{0}},
                                 .G = {{-1, 1}}})
            .build(),
        {.initial_state = {0.1}});
  }
  SystemBuilder::PartOptions ground;
  ground.inputs["flow"] = Signal::rate_of(displacement);
  builder.add("ground", parts::flow_source({.domain = "translation"}), ground);
  builder.connect("ground.port", "s.left");
  builder.connect("s.right", "m.coupling");
  return builder.build();
}

struct Case {
  SplittingKind kind;
  int order;
};
constexpr Case kCases[] = {{SplittingKind::kick_drift, 4},
                           {SplittingKind::kick_drift, 6},
                           {SplittingKind::taylor, 8},
                           {SplittingKind::taylor, 16}};

StepperOptions options_of(const Case& own, double step_s, double tolerance) {
  StepperOptions options;
  options.step_s = step_s;
  options.method = Splitting{.kind = own.kind, .order = own.order};
  if (tolerance > 0.0) options.sizes = StepSizes{.tolerance = tolerance};
  return options;
}

// By SciPy's DOP853 in two runs, the elongation being set anew between them. A jump within a step, and where one begins.
TEST(ExplicitDisplacements, ThatJumpAreFollowedAtAnyOrder) {
  struct Exact {
    double cubic, position, velocity;
  };
  constexpr double kJump_s = 1.097, kEnd_s = 3.0;
  const Signal jump =
      Signal::piecewise_linear({{0.0, 0.0}, {kJump_s, 0.0}, {kJump_s, 0.8}, {9.0, 0.8}});
  for (const Exact& exact :
       {Exact{0.0, 0.15578667, 0.30042831}, {300.0, 0.85350906, -6.77245505}}) {
    const System system = led(exact.cubic, jump);
    for (const Case& own : kCases) {
      if (own.kind == SplittingKind::taylor && exact.cubic != 0.0) continue;
      const std::string name =
          std::string(to_string(MethodKind(own.kind))) + std::to_string(own.order);
      Stepper chosen(system, options_of(own, 0.5, 1e-6));
      chosen.run_until(kEnd_s);
      EXPECT_NEAR(chosen.state(0)[0], exact.position, 1e-5) << name << exact.cubic;
      EXPECT_NEAR(chosen.state(0)[1], exact.velocity, 1e-4) << name << exact.cubic;
      EXPECT_EQ(chosen.certificate().status, CertificateStatus::holds);
      Stepper equal(system, options_of(own, 0.01, 0.0));
      equal.run_until(kEnd_s);
      EXPECT_NEAR(equal.state(0)[0], exact.position, 2e-3) << name << exact.cubic;
      EXPECT_NEAR(equal.state(0)[0] - 0.8, equal.state(1)[0], 1e-12) << "where it should be";
      EXPECT_EQ(equal.certificate().status, CertificateStatus::holds);
    }
    Stepper still(led(exact.cubic, Signal::constant(0.0)), options_of(kCases[1], 0.01, 0.0));
    still.run_until(kEnd_s);
    EXPECT_GT(std::abs(still.state(0)[0] - exact.position), 0.1) << "control";
  }
}

// A step sees the polynomial of a rate that has its moments, and the error of that is far below the polynomial's own.
TEST(ExplicitDisplacements, ThatAreSmoothAllowTaylorSeriesLongSteps) {
  const System system = led(0.0, Signal::expression("0.5*sin(3*t)"));
  Stepper exact(system, options_of({SplittingKind::taylor, 16}, 1e-3, 0.0));
  exact.run_until(4.0);
  for (const double tolerance : {1e-4, 1e-6, 1e-8}) {
    Stepper chosen(system, options_of({SplittingKind::taylor, 16}, 0.5, tolerance));
    chosen.run_until(4.0);
    const double error = std::abs(chosen.state(0)[0] - exact.state(0)[0]);
    EXPECT_LT(error, tolerance) << tolerance;
    EXPECT_GT(error, 1e-5 * tolerance) << "control: not by steps that are far too short";
    EXPECT_LT(chosen.step_index(), 200) << tolerance;
  }
}

}  // namespace
}  // namespace portwave::test_explicit_displacements
