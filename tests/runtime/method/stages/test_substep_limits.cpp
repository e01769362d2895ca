// Parts with substeps far from where they start, and what is refused.

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "portwave/subsystems/catalogue/oscillators.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "runtime/method/stages/substep_runs.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/descriptor_parts.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/opaque_parts.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_substep_limits {
namespace {

using testing::distance;
using testing::EnergyLaws;
using testing::options_of;
using testing::pair_with;
using testing::states_of;

TEST(SubstepsFarOut, MassesThatCoastKeepTheirVelocity) {
  for (const int stages : {1, 2, 3}) {
    SystemBuilder builder;
    builder.add("A", duffing_oscillator({.mass_kg = 2.0, .coupling_stiffness_N_per_m = 30.0}),
                {.initial_state = {1e6, 3.0, 0.0}, .substeps = 4});
    builder.add("B", linear_oscillator({.mass_kg = 1.0}),
                {.initial_state = {1e6, 3.0}, .substeps = 3});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    Stepper stepper(system, options_of(stages, 0.01));
    EnergyLaws laws(stepper);
    for (int n = 0; n < 3000; ++n) laws.observe(stepper, stepper.step());
    EXPECT_TRUE(laws.hold()) << laws.first_breach();
    EXPECT_EQ(stepper.waves()->guard()->steps, 0) << "nothing has to be withheld";
    EXPECT_NEAR(stepper.state(0)[1], 3.0, 1e-9);
    EXPECT_NEAR(stepper.state(1)[1], 3.0, 1e-9);
    EXPECT_NEAR(stepper.state(0)[0], 1e6 + 90.0, 1e-6);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  }
}

TEST(SubstepsFarOut, UnitsDoNotMatter) {
  // The same pair in units of mass 10^±9 with energies scaled alike: positions stay what they are.
  const auto end_of = [](double unit, int stages) {
    SystemBuilder builder;
    builder.add("A",
                duffing_oscillator({.mass_kg = 8 * unit,
                                    .stiffness_N_per_m = 100 * unit,
                                    .cubic_stiffness_N_per_m3 = 8000 * unit,
                                    .coupling_stiffness_N_per_m = 120 * unit,
                                    .coupling_damping_Ns_per_m = 0.05 * unit}),
                {.initial_state = {0.4, 0, -0.4}, .substeps = 3});
    builder.add("B", linear_oscillator({.mass_kg = 4 * unit, .stiffness_N_per_m = 50 * unit}),
                {.substeps = 2});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    Stepper stepper(system, options_of(stages, 0.02));
    stepper.step(100);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << unit;
    return states_of(stepper);
  };
  for (const int stages : {1, 3}) {
    const std::vector<double> plain = end_of(1.0, stages);
    EXPECT_LT(distance(end_of(1e9, stages), plain), 1e-9);
    EXPECT_LT(distance(end_of(1e-9, stages), plain), 1e-9);
  }
}

// What is refused, and how it reads.

Issues issues_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const ConfigError& error) {
    return error.issues();
  }
  return {};
}

bool has(const Issues& issues, const std::string& where, const std::string& what) {
  return std::ranges::any_of(issues, [&](const Issue& issue) {
    return issue.where == where && issue.what.find(what) != std::string::npos;
  });
}

TEST(SubstepsRefused, NumbersOutOfRangeAndPartsThatTakeNone) {
  const auto long_chain =
      mass_spring_damper_chain({.masses = 100, .mass_kg = 1.0, .stiffness_N_per_m = 1.0});
  SystemBuilder builder;
  builder.add("none", linear_oscillator({.mass_kg = 1.0}), {.substeps = 0});
  builder.add("many", linear_oscillator({.mass_kg = 1.0}), {.substeps = 1001});
  builder.add("opaque", std::make_shared<testing::OpaqueMass>(testing::MassProgram::Parameters{}),
              {.substeps = 2});
  builder.add("circuit", testing::circuit_left(), {.substeps = 2});
  builder.add("long",
              std::make_unique<LinearPortHamiltonian>(
                  long_chain->signature(), long_chain->structure(), *long_chain->linear_form().Q),
              {.substeps = 2});
  const Issues issues = builder.check();
  EXPECT_TRUE(has(issues, "/subsystems/0/substeps", "must be 1 to 1000, got 0"));
  EXPECT_TRUE(has(issues, "/subsystems/1/substeps", "must be 1 to 1000, got 1001"));
  EXPECT_TRUE(has(issues, "/subsystems/2/substeps", "is opaque"));
  EXPECT_TRUE(has(issues, "/subsystems/3/substeps", "is a descriptor part"));
  EXPECT_TRUE(has(issues, "/subsystems/4/substeps", "sparse step maps"));
}

TEST(SubstepsRefused, MethodsThatStepAllPartsAlike) {
  const System system = pair_with(3, 2);
  const System linear = [] {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
                {.initial_state = {1, 0}, .substeps = 2});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}));
    builder.connect("A.coupling", "B.coupling");
    return builder.build();
  }();
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.01;
  options.method = Splitting{};
  EXPECT_TRUE(has(issues_of([&] { Stepper stepper(linear, options); }), "/subsystems/0/substeps",
                  "couples without waves"));
  options = options_of(2, 0.01);
  options.sizes = StepSizes{.tolerance = 1e-4};
  const Issues both = issues_of([&] { Stepper stepper(system, options); });
  EXPECT_TRUE(has(both, "/subsystems/0/substeps", "choose their size"));
  EXPECT_TRUE(has(both, "/subsystems/1/substeps", "choose their size")) << "all are named at once";
  EXPECT_TRUE(has(issues_of([&] { GaussReference reference(system, 0.01, 2); }),
                  "/subsystems/0/substeps", "without waves"));
  EXPECT_TRUE(has(issues_of([&] { MonolithicReference reference(system, 0.01); }),
                  "/subsystems/1/substeps", "must be 1 for subsystem \"B\""));
}

// A part whose forces blow up inside a step: the step fails as a whole.
TEST(SubstepsRefused, FaultsLeaveTheLastCommittedState) {
  Hamiltonian H;
  H.value = [](const double* x) { return 0.5 * x[1] * x[1] - std::log(1.0 - x[0]); };
  H.gradient = [](const double* x, double* g) {
    g[0] = x[0] < 1.0 ? 1.0 / (1.0 - x[0]) : std::nan("");
    g[1] = x[1];
  };
  Structure s = Structure::zero(2, 1);
  s.J.insert(0, 1) = 1.0;
  s.J.insert(1, 0) = -1.0;
  s.G.insert(1, 0) = 1.0;
  const auto wall = std::make_shared<NonlinearPortHamiltonian>(
      Signature{"wall",
                {{"q", "m"}, {"p", "N s"}},
                {{"push", Causality::effort_in, Domain::translation, 1}},
                {}},
      s, H, NonlinearPortHamiltonian::Options{.max_newton_steps = 8});
  SystemBuilder builder;
  builder.add("wall", wall, {.initial_state = {0.5, 1e9}, .substeps = 3});
  builder.join(joint::Free{}, {"wall.push"});
  const System system = builder.build();
  StepperOptions options = options_of(2, 0.1);
  options.method.waves().kind = WaveUpdate::douglas_rachford;
  options.method.waves().impedance_kind = ImpedanceKind::given;
  options.method.waves().impedance = {1.0};
  Stepper stepper(system, options);
  EXPECT_THROW(stepper.step(), StepError);
  EXPECT_EQ(stepper.state(0)[0], 0.5);
  EXPECT_EQ(stepper.state(0)[1], 1e9);
  EXPECT_EQ(stepper.time_s(), 0.0);
}

}  // namespace
}  // namespace portwave::test_substep_limits
