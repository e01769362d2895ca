// What methods without waves refuse, how they keep time, and what their certificates say.

#include <chrono>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/runtime/output/recorder.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/catalogue.hpp"
#include "runtime/method/network/network_method_runs.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_network_rules {
namespace {

using testing::options_of;
using testing::refused;
using testing::set_fast;
using testing::set_tolerance;

TEST(NetworkMethodRules, JudgeEveryOptionOfTheKind) {
  const System system = testing::two_masses();
  struct Case {
    const char* where;
    MethodKind kind;
    void (*spoil)(CouplingMethod&);
  };
  const Case cases[] = {
      {"/method/factor", SplittingKind::impulse,
       [](CouplingMethod& m) { m.splitting().factor = 0; }},
      {"/method/fast", SplittingKind::impulse, [](CouplingMethod& m) { m.splitting().fast = {}; }},
      {"/method/fast/1", SplittingKind::impulse,
       [](CouplingMethod& m) {
         m.splitting().fast = {"first", "secnd"};
       }},
      {"/method/split_dissipation", SplittingKind::impulse,
       [](CouplingMethod& m) { m.splitting().split_dissipation = true; }},
      {"/method/iterations", IterationKind::jacobi,
       [](CouplingMethod& m) { m.dynamic().iterations = -1; }},
      {"/method/tolerance", IterationKind::jacobi,
       [](CouplingMethod& m) { m.dynamic().tolerance = NAN; }},
      {"/method/window_steps", IterationKind::gauss_seidel,
       [](CouplingMethod& m) { m.dynamic().window_steps = 0; }},
      {"/method/divergence_limit", IterationKind::jacobi,
       [](CouplingMethod& m) { m.dynamic().divergence_limit = 1.0; }},
      {"/method/divergence_limit", IterationKind::gauss_seidel,
       [](CouplingMethod& m) { m.dynamic().divergence_limit = NAN; }},
      {"/method/lambda", IterationKind::lions_mercier,
       [](CouplingMethod& m) { m.dynamic().lambda = 0.0; }},
      {"/method/mu", IterationKind::lions_mercier,
       [](CouplingMethod& m) { m.dynamic().mu = -1.0; }},
      {"/method/omega", IterationKind::lions_mercier,
       [](CouplingMethod& m) {
         m.dynamic().mu = 2.0;
         m.dynamic().omega = 1.0;
       }},
      {"/method/omega", IterationKind::lions_mercier,
       [](CouplingMethod& m) { m.dynamic().omega = -1.0; }},
      {"/method/alpha", IterationKind::lions_mercier,
       [](CouplingMethod& m) { m.dynamic().alpha = 1.01; }},
  };
  for (const Case& bad : cases) {
    StepperOptions options = options_of(bad.kind);
    EXPECT_TRUE(refused(system, options).empty()) << bad.where << ": control";
    bad.spoil(options.method);
    const Issues issues = refused(system, options);
    ASSERT_EQ(issues.size(), 1U) << bad.where;
    EXPECT_EQ(issues.front().where, bad.where) << issues.front().what;
  }
  StepperOptions options = options_of(SplittingKind::impulse);
  set_fast(options.method, {"secnd"});
  EXPECT_NE(refused(system, options).front().what.find("Did you mean \"second\"?"),
            std::string::npos);
}

TEST(NetworkQuantities, AreNoWaves) {
  const System system = testing::two_masses();
  for (const MethodKind kind :
       {MethodKind(SplittingKind::strang), MethodKind(WaveUpdate::douglas_rachford)}) {
    for (const char* name : {"first.end.incident", "second.end.outgoing", "first.end.effort"}) {
      Quantity quantity;
      Issues issues;
      const bool found =
          resolve_quantity(system, name, "/outputs/observe/0", quantity, issues, kind);
      const bool is_wave = std::string(name).find("effort") == std::string::npos;
      EXPECT_EQ(found, !is_wave || kind.couples_by_waves()) << name;
      ASSERT_EQ(issues.size(), found ? 0U : 1U);
      if (found) continue;
      EXPECT_EQ(issues.front().what, "the method \"strang\" couples without waves: there is no \"" +
                                         std::string(name) + "\"");
    }
  }
}

TEST(NetworkPace, HoldsAStepUntilItIsDue) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(SplittingKind::strang);
  options.time.pace = 10.0;  // a step every millisecond
  Stepper stepper(system, options);
  const auto start = std::chrono::steady_clock::now();
  stepper.step(20);
  EXPECT_GE(std::chrono::steady_clock::now() - start, std::chrono::milliseconds(19));
  EXPECT_EQ(stepper.deadline().value().steps, 20) << "those that were late are counted";

  options.time.pace = 1e-6;  // a step every three hours
  options.interrupted = [] { return true; };
  Stepper interrupted(system, options);
  interrupted.step(3);
  EXPECT_EQ(interrupted.step_index(), 3);
}

TEST(NetworkTimes, AreTakenOnRequest) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(SplittingKind::strang);
  EXPECT_EQ(Stepper(system, options).step().times.iterate_s, 0.0);
  options.timed = true;
  EXPECT_GT(Stepper(system, options).step().times.iterate_s, 0.0);
}

// A window that has met a loose tolerance may leave that much of the coupling errors in the energy.
// It is not short of convergence, and no law is broken.
TEST(NetworkCertificate, AllowsForTheToleranceOfAConvergedWindow) {
  const System system = testing::two_masses();
  StepperOptions options = options_of(IterationKind::lions_mercier);
  options.method = DynamicIteration{
      .iterations = 1000, .tolerance = 1e-2, .window_steps = 500, .mu = 2.0, .omega = 2.2};
  Stepper stepper(system, options);
  stepper.step(500);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_GT(stepper.certificate().max_passivity_residual_J, 1e-9) << "nothing was tested";
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.certificate().steps_with_excess, 0);

  // Control: the same iterations without a tolerance that they meet.
  set_iterations(options.method, static_cast<int>(stepper.iterations().max));
  set_tolerance(options.method, 0.0);
  Stepper unconverged(system, options);
  unconverged.step(500);
  EXPECT_EQ(unconverged.certificate().status, CertificateStatus::conditional);
  EXPECT_GT(unconverged.certificate().steps_with_excess, 0);
}

// A negative damper creates energy, whatever the method and its tolerance.
TEST(NetworkCertificate, IsViolatedByAnActivePart) {
  SystemBuilder builder;
  Parameters parameters;
  parameters["mass_kg"] = 1.0;
  parameters["stiffness_N_per_m"] = 2.0;
  parameters["damping_Ns_per_m"] = -0.5;
  builder.add("A", make_part("linear_oscillator", parameters, /*allow_active=*/true),
              {.initial_state = {1.0, 0.5}});
  builder.join(joint::Free{}, {"A.coupling"});
  const System system = builder.build();
  for (const MethodKind kind :
       {MethodKind(SplittingKind::strang), MethodKind(IterationKind::jacobi),
        MethodKind(IterationKind::gauss_seidel)}) {
    StepperOptions options = options_of(kind);
    set_tolerance(options.method, 0.1);
    Stepper stepper(system, options);
    stepper.step(10);
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::violated) << to_string(kind);
    EXPECT_EQ(stepper.certificate().steps_with_excess, 0) << to_string(kind);
  }
}

}  // namespace
}  // namespace portwave::test_network_rules
