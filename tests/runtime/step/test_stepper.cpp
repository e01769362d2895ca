#include <atomic>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/core/step_batch.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_stepper {
namespace {

using testing::same_bits;

StepperOptions options(double h, double gamma, int iterations, int threads = 1) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.step_s = h;
  o.method.waves().impedance = {gamma};
  o.method.waves().iterations = iterations;
  o.threads = threads;
  o.grain = Grain::per_part();
  if (threads > 1) o.executor = ExecutorKind::async;  // too small a system for `automatic`
  return o;
}

TEST(Stepper, ConvergesToTheMonolithicTrajectory) {
  for (const testing::NamedSystem& sample : testing::sample_systems()) {
    const System system = sample.make();
    StepperOptions o = options(0.01, sample.impedance, 200000);
    o.method.waves().tolerance = 1e-14;
    Stepper stepper(system, o);
    MonolithicReference reference(system, 0.01);
    double worst = 0.0;
    for (int n = 0; n < 50; ++n) {
      stepper.step();
      reference.step();
      for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
        const auto x = stepper.state(i), expected = reference.state(i);
        ASSERT_EQ(x.size(), expected.size());
        for (std::size_t k = 0; k < x.size(); ++k) {
          worst = std::max(worst, std::abs(x[k] - expected[k]));
        }
      }
    }
    EXPECT_LT(worst, 1e-10) << sample.name;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << sample.name;
  }
}

TEST(StepperControl, TooFewIterationsMissTheMonolithicTrajectory) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, options(0.01, 0.4, 5));
  MonolithicReference reference(system, 0.01);
  for (int n = 0; n < 50; ++n) {
    stepper.step();
    reference.step();
  }
  EXPECT_GT(std::abs(stepper.state("A")[0] - reference.state(0)[0]), 1e-6);
}

// Method of arXiv 2603.16424, own computation: Theorem 1 holds, yet one Douglas–Rachford iteration
// makes the energy of two lossless oscillators grow 1.4e4-fold (γ = 2) and 239-fold (γ = 20).
TEST(Stepper, ShowsThatTheorem1DoesNotBoundPhysicalEnergy) {
  const System system = testing::lossless_pair();
  const auto growth = [&](double gamma) {
    StepperOptions o = options(0.01, gamma, 1);
    o.certify = Certify::full;
    o.method.waves().guard = false;
    Stepper stepper(system, o);
    stepper.step(1000);
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    EXPECT_LE(*stepper.certificate().max_augmented_residual_J, 1e-10 * stepper.energy().max_J);
    return stepper.energy().max_J / stepper.energy().initial_J;
  };
  EXPECT_NEAR(growth(2.0), 1.4e4, 0.05e4);
  EXPECT_NEAR(growth(20.0), 239.0, 0.5);
}

// Same source: on the Duffing–linear pair the energy ratio stays mild.
TEST(Stepper, BooksTheEnergyRatioOfTheDuffingPair) {
  const System system = testing::duffing_linear_pair();
  const auto ratio = [&](int iterations) {
    StepperOptions o = options(0.01, 0.4, iterations);
    o.method.waves().guard = false;
    Stepper stepper(system, o);
    stepper.step(1000);
    return stepper.energy().max_energy_ratio;
  };
  EXPECT_NEAR(ratio(5), 1.0048, 5e-5);
  EXPECT_NEAR(ratio(8), 1.0065, 5e-5);
  EXPECT_DOUBLE_EQ(ratio(0), 1.0);
}

// Same source: the first step of the monolithic reference.
TEST(Stepper, FirstConvergedStepOfTheDuffingPairIsGolden) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, options(0.01, 0.4, 200));
  stepper.step();
  EXPECT_NEAR(stepper.state("A")[0], 0.396297065, 5e-10);
  EXPECT_NEAR(stepper.state("A")[1], -0.740586929, 5e-10);
  EXPECT_NEAR(stepper.waves()->outgoing(0), -5.33798634, 5e-9);
  EXPECT_NEAR(stepper.waves()->outgoing(1), -5.33265268, 5e-9);
}

TEST(Stepper, StopsAtTheToleranceAndReportsTheEvaluations) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = options(0.01, 0.4, 500);
  o.method.waves().tolerance = 1e-8;
  Stepper stepper(system, o);
  const StepReport report = stepper.step();
  EXPECT_TRUE(report.converged);
  EXPECT_LE(report.residual, 1e-8);
  EXPECT_GT(report.iterations, 5);
  EXPECT_LT(report.iterations, 100);
  // One iteration fewer does not meet it.
  o.method.waves().iterations = report.iterations - 1;
  Stepper shorter(system, o);
  const StepReport missed = shorter.step();
  EXPECT_FALSE(missed.converged);
  EXPECT_GT(missed.residual, 1e-8);
  EXPECT_EQ(shorter.iterations().not_converged, 1);
}

TEST(Stepper, TolerancePerPartSeesTheWeakPart) {
  // A weak pair hides behind a strong one on the same island.
  SystemBuilder builder;
  builder.add("strong1", linear_oscillator({.mass_kg = 1e6, .stiffness_N_per_m = 1e8}),
              {.initial_state = {1, 0}});
  builder.add("chain", mass_spring_damper_chain({.masses = 1,
                                                 .mass_kg = 1.0,
                                                 .stiffness_N_per_m = 1.0,
                                                 .coupling_stiffness_N_per_m = 1.0,
                                                 .left_end = ChainEnd::spring,
                                                 .right_end = ChainEnd::spring}));
  builder.add("weak", linear_oscillator({.mass_kg = 1e-3, .stiffness_N_per_m = 1e-3}),
              {.initial_state = {1e-3, 0}});
  builder.connect("strong1.coupling", "chain.left");
  builder.connect("chain.right", "weak.coupling");
  const System system = builder.build();
  const auto iterations = [&](bool per_part) {
    StepperOptions o = options(0.01, 0.01, 100000);
    o.method.waves().tolerance = 1e-6;
    o.method.waves().tolerance_per_part = per_part;
    Stepper stepper(system, o);
    stepper.step(3);
    return stepper.iterations().total;
  };
  EXPECT_GT(iterations(true), iterations(false));
}

TEST(Stepper, NoIterationsIsTheExplicitInterface) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o = options(0.01, 0.4, 0);
  o.method.waves().initial_waves = {0.3, -0.2};
  Stepper stepper(system, o);
  stepper.step();
  EXPECT_DOUBLE_EQ(stepper.waves()->incident(0), -0.2);  // â = P b⁰, a swap
  EXPECT_DOUBLE_EQ(stepper.waves()->incident(1), 0.3);
}

TEST(Stepper, EffortAndFlowObeyTheJunctionWhenConverged) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, options(0.01, 0.4, 300));
  for (int n = 0; n < 20; ++n) {
    stepper.step();
    EXPECT_NEAR(stepper.effort(0), stepper.effort(1), 1e-9);
    EXPECT_NEAR(stepper.flow(0) + stepper.flow(1), 0.0, 1e-9);
  }
}

TEST(Stepper, ReportsEveryBadOptionAtOnce) {
  const System system = testing::duffing_linear_pair();
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().iterations = -1;
  o.method.waves().relaxation = 2.0;
  o.method.waves().tolerance = -1.0;
  o.method.waves().impedance = {1, 2, 3};
  o.method.waves().initial_waves = {NAN};
  o.threads = 0;
  try {
    Stepper stepper(system, o);
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    std::vector<std::string> where;
    for (const Issue& issue : error.issues()) where.push_back(issue.where);
    EXPECT_EQ(where,
              (std::vector<std::string>{"/method/iterations", "/method/tolerance",
                                        "/method/relaxation", "/threads", "/method/impedance",
                                        "/method/initial_waves", "/method/initial_waves"}));
  }
  for (const double bad : {0.0, -1.0, double{NAN}, double{INFINITY}}) {
    EXPECT_THROW(Stepper(system, options(bad, 0.4, 1)), ConfigError) << "h=" << bad;
    EXPECT_THROW(Stepper(system, options(0.01, bad, 1)), ConfigError) << "gamma=" << bad;
  }
}

TEST(Stepper, JudgesEveryOptionOfTheMethod) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const System system = testing::duffing_linear_pair();
  struct Case {
    const char* where;
    void (*spoil)(WaveCoupling&);
  };
  const Case cases[] = {
      {"/method/relaxation",
       [](WaveCoupling& m) {
         m.kind = WaveUpdate::peaceman_rachford;
         m.relaxation = 1.5;
       }},
      {"/method/relaxation", [](WaveCoupling& m) { m.relaxation = NAN; }},
      {"/method/energy_tolerance_J", [](WaveCoupling& m) { m.energy_tolerance_J = -1; }},
      {"/method/acceleration", [](WaveCoupling& m) { m.acceleration = -1; }},
      {"/method/acceleration", [](WaveCoupling& m) { m.acceleration = kMaxAcceleration + 1; }},
      {"/method/impedance/kind", [](WaveCoupling& m) { m.kind = WaveUpdate::automatic; }},
      {"/method/impedance/kind",
       [](WaveCoupling& m) {
         m.kind = WaveUpdate::automatic;
         m.impedance_kind = ImpedanceKind::leaf;
       }},
      {"/method/impedance/retune_factor", [](WaveCoupling& m) { m.retune_factor = 1.0; }},
      {"/method/impedance/retune_factor", [](WaveCoupling& m) { m.retune_factor = kInfinity; }},
      {"/method/tank/initial_J", [](WaveCoupling& m) { m.tank.initial_J = -1.0; }},
      {"/method/tank/initial_fraction", [](WaveCoupling& m) { m.tank.initial_fraction = NAN; }},
      {"/method/tank/cap_J", [](WaveCoupling& m) { m.tank.cap_J = -1.0; }},
      {"/method/impedance", [](WaveCoupling& m) { m.impedance = {}; }},
  };
  for (const Case& bad : cases) {
    StepperOptions o = options(0.01, 0.4, 1);
    bad.spoil(o.method.waves());
    try {
      Stepper stepper(system, o);
      ADD_FAILURE() << "accepted " << bad.where;
    } catch (const ConfigError& error) {
      ASSERT_EQ(error.issues().size(), 1U) << error.what();
      EXPECT_EQ(error.issues().front().where, bad.where);
    }
  }
  StepperOptions endless = options(0.01, 0.4, 1);  // control: no cap
  endless.method.waves().tank.cap_J = kInfinity;
  EXPECT_NO_THROW(Stepper(system, endless));
}

// Faults ------------------------------------------------------------------------------------------

/// A mass on a spring whose gradient throws, or turns NaN, while a switch is on.
struct Trap {
  std::atomic<int> mode{0};  // 0 sound, 1 throw, 2 NaN
};

std::unique_ptr<Subsystem> trapped_oscillator(Trap* trap) {
  Signature signature{"trapped",
                      {{"q", "m"}, {"p", "kg m/s"}},
                      {{"coupling", Causality::effort_in, Domain::translation, 1}},
                      {}};
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = -1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) { return 0.5 * (x[0] * x[0] + x[1] * x[1]); };
  hamiltonian.gradient = [trap](const double* x, double* g) {
    if (trap->mode == 1) throw std::runtime_error("the trap is shut");
    g[0] = trap->mode == 2 ? NAN : x[0];
    g[1] = x[1];
  };
  return std::make_unique<NonlinearPortHamiltonian>(std::move(signature), std::move(structure),
                                                    std::move(hamiltonian),
                                                    NonlinearPortHamiltonian::Options{});
}

System system_with_traps(Trap* first, Trap* second) {
  SystemBuilder builder;
  for (int i = 0; i < 4; ++i) {
    builder.add("sound" + std::to_string(i),
                linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = 3.0}),
                {.initial_state = {0.1 * i, 0.0}});
  }
  builder.add("first", trapped_oscillator(first), {.initial_state = {0.2, 0.1}});
  builder.add("second", trapped_oscillator(second), {.initial_state = {0.1, 0.3}});
  builder.join(joint::CommonEffort{}, {"sound0.coupling", "sound1.coupling", "sound2.coupling",
                                       "sound3.coupling", "first.coupling", "second.coupling"});
  return builder.build();
}

std::vector<double> whole_state(const Stepper& stepper) {
  std::vector<double> out;
  for (int i = 0; i < static_cast<int>(stepper.system().parts().size()); ++i) {
    out.insert(out.end(), stepper.state(i).begin(), stepper.state(i).end());
  }
  for (int j = 0; j < static_cast<int>(stepper.system().scalar_ports().size()); ++j) {
    out.push_back(stepper.waves()->outgoing(j));
  }
  out.push_back(stepper.energy().final_J);
  out.push_back(stepper.time_s());
  return out;
}

TEST(StepperFaults, LeaveTheLastCommittedStateAndNameThePart) {
  for (const int threads : {1, 2, 4}) {
    for (const int mode : {1, 2}) {
      Trap first, second;
      const System system = system_with_traps(&first, &second);
      Stepper stepper(system, options(0.01, 0.1, 5, threads));
      Stepper untouched(system, options(0.01, 0.1, 5));
      stepper.step(3);
      untouched.step(3);
      const std::vector<double> before = whole_state(stepper);
      first.mode = second.mode = mode;
      try {
        stepper.step();
        ADD_FAILURE() << "the fault was not seen, threads=" << threads << " mode=" << mode;
      } catch (const StepError& error) {
        EXPECT_EQ(error.part(), "first") << error.what();
        EXPECT_EQ(error.step(), 3);
        EXPECT_EQ(error.iteration(), 0) << error.what();
        EXPECT_EQ(error.fault(), mode == 1 ? StepFault::threw : StepFault::not_finite);
        const bool says_why =
            std::string(error.what()).find("the trap is shut") != std::string::npos;
        EXPECT_EQ(says_why, mode == 1) << error.what();
      }
      EXPECT_TRUE(same_bits(before, whole_state(stepper)));
      first.mode = second.mode = 0;
      stepper.step(3);
      untouched.step(3);
      EXPECT_TRUE(same_bits(whole_state(untouched), whole_state(stepper)))
          << "threads=" << threads << " mode=" << mode;
    }
  }
}

TEST(StepperFaults, ANonFiniteInputIsFoundAndNamed) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}));
  builder.add(
      "B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
      {.initial_state = {0.1, 0},
       .inputs = {{"force", Signal::callback([](double t) { return t > 0.02 ? NAN : 1.0; })}}});
  builder.connect("A.coupling", "B.coupling");
  const System system = builder.build();
  for (const int iterations : {0, 4}) {
    Stepper stepper(system, options(0.01, 1.0, iterations));
    stepper.step(2);
    const std::vector<double> before = whole_state(stepper);
    try {
      stepper.step();
      ADD_FAILURE() << "the NaN was not seen, K=" << iterations;
    } catch (const StepError& error) {
      EXPECT_EQ(error.part(), "B") << error.what();
      EXPECT_EQ(error.fault(), StepFault::not_finite);
      EXPECT_EQ(error.step(), 2);
      EXPECT_EQ(error.iteration(), 0);
    }
    EXPECT_TRUE(same_bits(before, whole_state(stepper)));
  }
}

/// A linear mass whose force is NaN while the switch is on, on a chain of Duffing oscillators.
System duffing_hub_with_switch(std::atomic<bool>* spoiled) {
  SystemBuilder builder;
  std::vector<std::string> ports;
  for (int i = 0; i < 3; ++i) {
    const std::string name = "duffing" + std::to_string(i);
    builder.add(name,
                duffing_oscillator({.mass_kg = 1.0 + i,
                                    .stiffness_N_per_m = 20,
                                    .cubic_stiffness_N_per_m3 = 400,
                                    .coupling_stiffness_N_per_m = 10,
                                    .coupling_damping_Ns_per_m = 0.1}),
                {.initial_state = {0.3 - 0.1 * i, 0.2, 0.05}});
    ports.push_back(name + ".coupling");
  }
  builder.add("driven", linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}),
              {.initial_state = {}, .inputs = {{"force", Signal::callback([spoiled](double) {
                                                  return *spoiled ? NAN : 1.0;
                                                })}}});
  ports.push_back("driven.coupling");
  builder.join(joint::CommonEffort{}, std::move(ports));
  return builder.build();
}

// What a solver keeps from one port solve to the next must not survive a step that failed.
TEST(StepperFaults, LeaveNoTraceInTheSolversOfTheOtherParts) {
  for (const int threads : {1, 2}) {
    std::atomic<bool> spoiled = false;
    const System system = duffing_hub_with_switch(&spoiled);
    Stepper stepper(system, options(0.01, 0.05, 6, threads));
    Stepper untouched(system, options(0.01, 0.05, 6));
    stepper.step(3);
    untouched.step(3);
    spoiled = true;
    EXPECT_THROW(stepper.step(), StepError);
    spoiled = false;
    untouched.step(3);
    ASSERT_NO_THROW(stepper.step(3)) << "threads=" << threads;
    EXPECT_TRUE(same_bits(whole_state(untouched), whole_state(stepper))) << "threads=" << threads;
  }
}

// The solvers of the other parts refuse the NaN an iteration later; it is not theirs.
TEST(StepperFaults, ANonFiniteInputIsNamedThoughItsNeighboursFailFirst) {
  for (const int threads : {1, 2}) {
    std::atomic<bool> spoiled = true;
    const System system = duffing_hub_with_switch(&spoiled);
    Stepper stepper(system, options(0.01, 0.05, 6, threads));
    try {
      stepper.step();
      ADD_FAILURE() << "the NaN was not seen";
    } catch (const StepError& error) {
      EXPECT_EQ(error.part(), "driven") << error.what();
      EXPECT_EQ(error.iteration(), 0) << error.what();
    }
  }
}

TEST(StepperFaults, AStepThatIsNotFoundSaysFromWhereAndWhatIsLeft) {
  for (const int stages : {1, 2, 3}) {
    for (const int threads : {1, 2}) {
      SystemBuilder builder;
      builder.add(
          "A", testing::coupled_quartic({.max_newton_steps = 1}),
          {.initial_state = {0.7, -0.4, 0.3, 0.2}, .inputs = {{"force", Signal::constant(2.5)}}});
      builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}));
      builder.join(joint::Connection{}, {"A.push", "B.coupling"});
      const System system = builder.build();
      StepperOptions own = options(0.1, 1.0, 3, threads);
      own.method.waves().stages = stages;
      Stepper stepper(system, own);
      try {
        stepper.step();
        ADD_FAILURE() << "found with one step of Newton's method";
      } catch (const StepError& error) {
        EXPECT_EQ(error.fault(), StepFault::not_converged);
        const FailedSolve& solve = error.solve();
        EXPECT_EQ(solve.state, (std::vector<double>{0.7, -0.4, 0.3, 0.2}));
        EXPECT_EQ(solve.waves.size(), static_cast<std::size_t>(stages));
        ASSERT_EQ(solve.inputs.size(), static_cast<std::size_t>(stages));
        for (const double input : solve.inputs) EXPECT_NEAR(input, 2.5, 1e-14);
        EXPECT_GT(solve.residual, 1e-12);
        EXPECT_LT(solve.residual, 0.1);
        EXPECT_NE(error.circumstances().find("q1 = 0.7"), std::string::npos)
            << error.circumstances();
        EXPECT_NE(error.circumstances().find("force"), std::string::npos) << error.circumstances();
      }
    }
  }
}

TEST(StepperFaults, AThrowingInputIsNamed) {
  SystemBuilder builder;
  builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}),
              {.initial_state = {}, .inputs = {{"force", Signal::callback([](double) -> double {
                                                  throw std::runtime_error("no such sensor");
                                                })}}});
  builder.join(joint::Free{}, {"A.coupling"});
  const System system = builder.build();
  Stepper stepper(system, options(0.01, 1.0, 2));
  try {
    stepper.step();
    ADD_FAILURE() << "accepted";
  } catch (const StepError& error) {
    EXPECT_STREQ(
        error.what(),
        "part \"A\" failed in step 0, freezing: a callback threw (input \"force\": no such "
        "sensor); the state is that before the step");
  }
  EXPECT_EQ(stepper.step_index(), 0);
}

}  // namespace
}  // namespace portwave::test_stepper
