// Steps with stages by waves: what they converge to, their order, their energy at every budget, and
// that nothing depends on who executes them.

#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "portwave/coupling/reference/gauss_reference.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/linear/linear_part.hpp"
#include "support/energy_laws.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/linear_networks.hpp"
#include "support/systems/nonlinear_parts.hpp"
#include "support/systems/random_networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_stages {
namespace {

using testing::EnergyLaws;

StepperOptions options_of(int stages, double step_s, double tolerance = 1e-13) {
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = step_s;
  options.method = WaveCoupling::automatic(tolerance);
  options.method.waves().stages = stages;
  options.method.waves().integrator = StageKind::gauss;  // as the reference
  return options;
}

/// The largest difference of any state from the reference's, as a part of the largest state.
double difference(const System& system, const Stepper& stepper, const GaussReference& reference) {
  double most = 0.0, size = 0.0;
  for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
    const std::span<const double> x = stepper.state(part), y = reference.state(part);
    for (std::size_t i = 0; i < x.size(); ++i) {
      most = std::max(most, std::abs(x[i] - y[i]));
      size = std::max(size, std::abs(y[i]));
    }
  }
  return most / size;
}

struct StagedRunOutcome {
  double difference;
  CertificateStatus status;
  std::int64_t not_converged;
};

class Stages : public ::testing::TestWithParam<int> {};

TEST_P(Stages, ConvergeToTheReferenceOnTheDuffingPair) {
  const System system = testing::duffing_linear_pair();
  Stepper stepper(system, options_of(GetParam(), 0.02));
  GaussReference reference(system, 0.02, GetParam());
  for (int n = 0; n < 500; ++n) {
    stepper.step();
    reference.step();
  }
  EXPECT_LT(difference(system, stepper, reference), 1e-9);
  EXPECT_NEAR(stepper.effort(0), reference.effort()[0], 1e-7);
  EXPECT_NEAR(stepper.flow(0), reference.flow()[0], 1e-8);
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_NEAR(stepper.time_s(), 10.0, 1e-12);
}

TEST_P(Stages, ConvergeToTheReferenceOnRandomNetworks) {
  for (unsigned seed = 1; seed <= 25; ++seed) {
    const System system = testing::random_network({}, seed);
    for (const double step_s : {0.01, 0.3}) {
      Stepper stepper(system, options_of(GetParam(), step_s));
      GaussReference reference(system, step_s, GetParam());
      for (int n = 0; n < 10; ++n) {
        stepper.step();
        reference.step();
      }
      EXPECT_LT(difference(system, stepper, reference), 1e-9) << seed << ", h = " << step_s;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << seed;
    }
  }
}

/// The slope of the error at the end over a halving of the step.
double order_of(const System& system, int stages, double step_s, double end_s) {
  const auto run = [&](int factor) {
    StepperOptions options = options_of(stages, step_s / factor);
    Stepper stepper(system, options);
    stepper.step(std::lround(end_s / step_s) * factor);
    std::vector<double> x;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      x.insert(x.end(), stepper.state(part).begin(), stepper.state(part).end());
    }
    return x;
  };
  const std::vector<double> coarse = run(1), fine = run(2), finest = run(4);
  double first = 0.0, second = 0.0;
  for (std::size_t i = 0; i < coarse.size(); ++i) {
    first += std::pow(coarse[i] - fine[i], 2);
    second += std::pow(fine[i] - finest[i], 2);
  }
  return 0.5 * std::log2(first / second);
}

TEST_P(Stages, HaveTwiceAsMuchOrder) {
  const double tolerance = GetParam() == 3 ? 0.15 : 0.1;
  const double shorter = GetParam() == 1 ? 8.0 : 1.0;  // one stage gets to its order late
  EXPECT_NEAR(order_of(testing::chain_of_blocks(3, 2), GetParam(), 0.04 / shorter, 1.2),
              2.0 * GetParam(), tolerance);
  EXPECT_NEAR(order_of(testing::duffing_linear_pair(), GetParam(), 0.02 / shorter, 1.0),
              2.0 * GetParam(), tolerance);
}

TEST_P(Stages, SampleInputsAtTheStages) {
  const auto driven = [] {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 10}),
                {.inputs = {{"force", Signal::sine_product(2.0, {{0.7, 0.3}}, 0.5)}}});
    builder.add("B", linear_oscillator({.mass_kg = 1.5, .stiffness_N_per_m = 20}),
                {.inputs = {{"force", Signal::sine_product(1.0, {{1.1, 0.0}})}}});
    builder.connect("A.coupling", "B.coupling");
    return builder.build();
  };
  const System system = driven();
  EXPECT_NEAR(order_of(system, GetParam(), 0.1, 2.0), 2.0 * GetParam(), 0.15);
  Stepper stepper(system, options_of(GetParam(), 0.1));
  GaussReference reference(system, 0.1, GetParam());
  long double balance = 0.0L;
  for (int n = 0; n < 200; ++n) {
    const StepReport report = stepper.step();
    reference.step();
    balance += static_cast<long double>(report.energy.supplied_J) -
               static_cast<long double>(report.energy.dissipated_J);
  }
  EXPECT_LT(difference(system, stepper, reference), 1e-10);
  // Nothing is lost in this system: what was supplied is stored.
  EXPECT_NEAR(static_cast<double>(balance), reference.storage(), 1e-9 * reference.storage());
  EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
}

TEST_P(Stages, KeepTheEnergyAtEveryBudget) {
  std::int64_t guarded = 0;
  for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
    for (const int budget : {0, 1, 2, 5}) {
      for (const double impedance : {0.02, 0.4, 30.0}) {
        for (unsigned seed = 0; seed <= 6; ++seed) {
          const System system = seed == 0 ? testing::duffing_linear_pair()
                                          : testing::random_network({.decades = 3.0}, seed);
          StepperOptions options;
          options.start = Start::as_given;
          options.step_s = 0.02;
          options.method = WaveCoupling{.kind = kind, .iterations = budget, .stages = GetParam()};
          options.method.waves().impedance = {impedance};
          Stepper stepper(system, options);
          EnergyLaws laws(stepper);
          for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
          EXPECT_TRUE(laws.hold()) << laws.first_breach() << ", K = " << budget
                                   << ", gamma = " << impedance << ", seed " << seed;
          guarded += stepper.waves()->guard()->steps;
        }
      }
    }
  }
  EXPECT_GT(guarded, 50) << "the guard had to act";
}

// The control of the test above: without the guard coarse iterations do break the law.
TEST_P(Stages, BreakTheLawOfTheTankWithoutGuard) {
  const System system = testing::random_network({.decades = 3.0}, 3);
  StepperOptions options;
  options.start = Start::as_given;
  options.step_s = 0.02;
  options.method = WaveCoupling{.iterations = 1, .stages = GetParam()};
  options.method.waves().impedance = {0.02};
  options.method.waves().guard = false;
  Stepper stepper(system, options);
  EnergyLaws laws(stepper);
  for (int n = 0; n < 60; ++n) laws.observe(stepper, stepper.step());
  EXPECT_FALSE(laws.hold());
}

TEST_P(Stages, DoNotDependOnWhoExecutesThem) {
  const System system = testing::chain_of_blocks(24, 3);
  const auto run = [&](ExecutorKind executor, int threads, bool accelerated,
                       const Grain& grain = Grain::per_part()) {
    StepperOptions options;
    options.start = Start::as_given;
    options.step_s = 0.01;
    options.method = WaveCoupling{.iterations = 4, .stages = GetParam()};
    options.method.waves().impedance = {2.0};
    options.method.waves().acceleration = accelerated ? 3 : 0;
    options.certify = Certify::full;
    options.threads = threads;
    options.executor = executor;
    options.grain = grain;
    Stepper stepper(system, options);
    stepper.step(30);
    std::vector<double> out;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
    }
    for (int port = 0; port < static_cast<int>(system.scalar_ports().size()); ++port) {
      out.push_back(stepper.effort(port));
      out.push_back(stepper.waves()->waves_at(port, GetParam() - 1).outgoing);
    }
    out.push_back(stepper.energy().tank_J);
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated);
    return out;
  };
  for (const bool accelerated : {false, true}) {
    const std::vector<double> serial = run(ExecutorKind::serial, 1, accelerated);
    EXPECT_EQ(run(ExecutorKind::serial, 1, accelerated, {}), serial) << "eight lanes at once";
    for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
      EXPECT_EQ(run(executor, 3, accelerated), serial) << to_string(executor);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, Stages, ::testing::Values(1, 2, 3));

// Far from where one starts: drift, large offsets, units of 1e±9, long runs.

TEST(StagesFarOut, MassesThatCoastKeepTheirVelocity) {
  SystemBuilder builder;
  builder.add("A",
              mass_spring_damper_chain({.masses = 1,
                                        .mass_kg = 2.0,
                                        .stiffness_N_per_m = 1.0,
                                        .damping_Ns_per_m = 0.0,
                                        .coupling_stiffness_N_per_m = 30.0,
                                        .right_end = ChainEnd::spring}),
              {.initial_state = {1e6, 3.0, 0.0}});
  builder.add("B",
              mass_spring_damper_chain({.masses = 1,
                                        .mass_kg = 1.0,
                                        .stiffness_N_per_m = 1.0,
                                        .damping_Ns_per_m = 0.0,
                                        .coupling_stiffness_N_per_m = 30.0,
                                        .right_end = ChainEnd::mass}),
              {.initial_state = {1e6, 3.0}});
  builder.connect("A.right", "B.left");
  builder.join(joint::Free{}, {"A.left"});
  builder.join(joint::Free{}, {"B.right"});
  const System system = builder.build();
  for (const int stages : {2, 3}) {
    Stepper stepper(system, options_of(stages, 0.01, 1e-13));
    EnergyLaws laws(stepper);
    for (int n = 0; n < 5000; ++n) laws.observe(stepper, stepper.step());
    EXPECT_TRUE(laws.hold()) << laws.first_breach();
    EXPECT_EQ(stepper.waves()->guard()->steps, 0) << "nothing has to be withheld";
    EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    GaussReference reference(system, 0.01, stages);
    for (int n = 0; n < 5000; ++n) reference.step();
    EXPECT_LT(difference(system, stepper, reference), 1e-10);
  }
}

TEST(StagesFarOut, UnitsDoNotMatter) {
  // x = √energy units: mass in 1e∓9, stiffness and impedance likewise; the motion is the same.
  for (const double unit : {1e-9, 1.0, 1e9}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 2 * unit, .stiffness_N_per_m = 10 * unit}),
                {.initial_state = {1.0, 0.0}});
    builder.add("B",
                linear_oscillator({.mass_kg = 1.5 * unit,
                                   .stiffness_N_per_m = 20 * unit,
                                   .damping_Ns_per_m = 0.1 * unit}),
                {.initial_state = {-1.0, 0.5}});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    for (const int stages : {2, 3}) {
      for (const double step_s : {1e-6, 0.05, 20.0}) {
        Stepper stepper(system, options_of(stages, step_s, 1e-12));
        GaussReference reference(system, step_s, stages);
        for (int n = 0; n < 100; ++n) {
          stepper.step();
          reference.step();
        }
        EXPECT_LT(difference(system, stepper, reference), 1e-8) << unit << ", h = " << step_s;
        EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << unit;
      }
    }
  }
}

TEST(StagesFarOut, StepsFarBeyondTheTimeScaleOfAPartKeepItsEnergy) {
  // hω from 1e3 to 1e9: the step maps need more digits than those of a long double.
  for (const double stiffness : {1e6, 1e12, 1e18}) {
    SystemBuilder builder;
    builder.add("A", linear_oscillator({.mass_kg = 1.0, .stiffness_N_per_m = stiffness}),
                {.initial_state = {1.0 / std::sqrt(stiffness), 0.3}});
    builder.add("B", linear_oscillator({.mass_kg = 2.0, .stiffness_N_per_m = 1.0}),
                {.initial_state = {0.4, -0.1}});
    builder.connect("A.coupling", "B.coupling");
    const System system = builder.build();
    for (const int stages : {2, 3}) {
      Stepper stepper(system, options_of(stages, 1.0, 1e-13));
      EnergyLaws laws(stepper);
      const double before = stepper.storage(0) + stepper.storage(1);
      for (int n = 0; n < 300; ++n) laws.observe(stepper, stepper.step());
      EXPECT_TRUE(laws.hold()) << laws.first_breach() << ", k = " << stiffness;
      EXPECT_NEAR(stepper.storage(0) + stepper.storage(1), before, 1e-9 * before) << stiffness;
      EXPECT_NE(stepper.certificate().status, CertificateStatus::violated) << stiffness;
    }
  }
}

TEST(StagesFarOut, RigidBodiesKeepEnergyWithAStructureThatDependsOnTheState) {
  SystemBuilder builder;
  builder.add("one", testing::rigid_body(0.0));
  builder.add("two", testing::rigid_body(0.0), {.initial_state = {0.3, -0.2, 0.7}});
  builder.connect("one.torque", "two.torque");
  const System system = builder.build();
  for (const int stages : {2, 3}) {
    Stepper stepper(system, options_of(stages, 0.05, 1e-13));
    GaussReference reference(system, 0.05, stages);
    const double before = reference.storage();
    for (int n = 0; n < 200; ++n) {
      stepper.step();
      reference.step();
    }
    EXPECT_LT(difference(system, stepper, reference), 1e-9);
    double after = 0.0;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      after += stepper.storage(part);
    }
    EXPECT_NEAR(after, before, 1e-11 * before);
  }
}

// Nonlinear parts, by Newton on all stages.

StagedRunOutcome run_beside_reference(const System& system, int stages, double step_s, int steps) {
  Stepper stepper(system, options_of(stages, step_s, 1e-12));
  GaussReference reference(system, step_s, stages);
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    reference.step();
  }
  return {difference(system, stepper, reference), stepper.certificate().status,
          stepper.iterations().not_converged};
}

void expect_as_reference(const System& system, double step_s, int steps, double tolerance = 1e-9) {
  for (const int stages : {2, 3}) {
    const StagedRunOutcome outcome = run_beside_reference(system, stages, step_s, steps);
    EXPECT_LT(outcome.difference, tolerance) << stages << " stages, h = " << step_s;
    EXPECT_EQ(outcome.status, CertificateStatus::holds) << stages << " stages, h = " << step_s;
    EXPECT_EQ(outcome.not_converged, 0) << stages << " stages, h = " << step_s;
  }
}

// In every swing of these a mean gradient is 0 by cancellation, and some equation of the stages is
// nothing but round-off of the others. A solver that judges each by its own size gives up there.
TEST(StagesNonlinear, SwingThroughZero) {
  struct Mass {
    double mass, stiffness, cubic, coupling, damping, step_s;
  };
  for (const Mass& m :
       {Mass{8, 100, 0, 1, 0, 0.01}, Mass{0.01, 1, 1, 1e4, 0.1, 0.5}, Mass{1, 1, 0, 120, 0, 0.5},
        Mass{1, 0, 8000, 1, 0.1, 0.01}, Mass{0.01, 0, 0, 1, 0.1, 0.5}}) {
    SystemBuilder builder;
    builder.add("mass",
                duffing_oscillator({.mass_kg = m.mass,
                                    .stiffness_N_per_m = m.stiffness,
                                    .cubic_stiffness_N_per_m3 = m.cubic,
                                    .damping_Ns_per_m = m.damping,
                                    .coupling_stiffness_N_per_m = m.coupling}),
                {.initial_state = {0.0, 0.1, 0.2}});
    builder.join(joint::Free{}, {"mass.coupling"});
    const System system = builder.build();
    for (const int stages : {2, 3}) {
      Stepper stepper(system, options_of(stages, m.step_s, 1e-12));
      const double before = stepper.storage(0);
      ASSERT_NO_THROW(stepper.step(400)) << "k = " << m.stiffness << ", h = " << m.step_s;
      EXPECT_LE(stepper.storage(0), before * (1.0 + 1e-10)) << "k = " << m.stiffness;
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds);
    }
  }
}

TEST(StagesNonlinear, StiffStepsAreJudgedByWhatTheirRoundingMoves) {
  for (const double coupling : {1e4, 1e8}) {  // hω = 2000 and 2e5
    SystemBuilder builder;
    builder.add("mass",
                duffing_oscillator({.mass_kg = 0.01,
                                    .stiffness_N_per_m = 1.0,
                                    .cubic_stiffness_N_per_m3 = 1.0,
                                    .coupling_stiffness_N_per_m = coupling}),
                {.initial_state = {0.0, 1.0, 0.0}});
    builder.join(joint::Fixed{}, {"mass.coupling"});
    const System system = builder.build();
    for (const int stages : {2, 3}) {
      Stepper stepper(system, options_of(stages, 2.0, 1e-12));
      for (int n = 0; n < 500; ++n) stepper.step();
      EXPECT_EQ(stepper.certificate().status, CertificateStatus::holds) << coupling;
    }
  }
}

// A port without a spring behind it answers with nothing, which is no reason to refuse it.
TEST(StagesNonlinear, PortsMayAnswerWithNothing) {
  SystemBuilder builder;
  builder.add("A", duffing_oscillator({.mass_kg = 1,
                                       .stiffness_N_per_m = 50,
                                       .cubic_stiffness_N_per_m3 = 30,
                                       .damping_Ns_per_m = 0.5}));
  builder.add("B", linear_oscillator({.mass_kg = 4, .stiffness_N_per_m = 50}),
              {.initial_state = {0.1, 0.0}});
  builder.connect("A.coupling", "B.coupling");
  expect_as_reference(builder.build(), 0.2, 40);
}

TEST(StagesNonlinear, OfEveryKind) {
  SystemBuilder builder;  // H not polynomial, of a part with flow as its input; inputs from rest
  builder.add("capacitor", testing::stiffening_capacitor(), {.initial_state = {0.7}});
  builder.add("other", testing::stiffening_capacitor());
  builder.connect("capacitor.terminals", "other.terminals");
  expect_as_reference(builder.build(), 0.05, 100);

  SystemBuilder rigid;  // R depends on the state
  rigid.add("body", testing::rigid_body(0.05));
  rigid.join(joint::Free{}, {"body.torque"});
  expect_as_reference(rigid.build(), 0.02, 100);

  expect_as_reference(testing::duffing_grid(3, 3), 0.01, 50);
}

TEST(StagesNonlinear, DoNotDependOnWhoExecutesThem) {
  const System system = testing::duffing_grid(4, 5);
  const auto run = [&](ExecutorKind executor, int threads, const Grain& grain) {
    StepperOptions options = options_of(2, 0.01, 1e-8);
    options.threads = threads;
    options.executor = executor;
    options.grain = grain;
    Stepper stepper(system, options);
    stepper.step(10);
    std::vector<double> out;
    for (int part = 0; part < static_cast<int>(system.parts().size()); ++part) {
      out.insert(out.end(), stepper.state(part).begin(), stepper.state(part).end());
    }
    return out;
  };
  const std::vector<double> serial = run(ExecutorKind::serial, 1, {});
  for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::graph}) {
    EXPECT_EQ(run(executor, 3, Grain::per_part()), serial) << to_string(executor);
  }
}

// With everything left to `auto`: evaluations to a residual of 1e-10, the most of steps 2 to 6.
TEST(StagesConverge, InFewEvaluations) {
  const auto most = [](const System& system, int stages, double step_s,
                       WaveUpdate kind = WaveUpdate::automatic) {
    StepperOptions options = options_of(stages, step_s, 1e-10);
    options.method.waves().kind = kind;
    Stepper stepper(system, options);
    stepper.step();
    int evaluations = 0;
    for (int n = 0; n < 5; ++n) evaluations = std::max(evaluations, stepper.step().iterations);
    EXPECT_EQ(stepper.iterations().not_converged, 0);
    return evaluations;
  };
  const System chain = testing::chain_of_blocks(64, 5), star = testing::star_on_hub(64, 1.0),
               ring = testing::ring_of_blocks(16, 5), grid = testing::duffing_grid(12, 12),
               pair = testing::duffing_linear_pair();
  for (const int stages : {2, 3}) {
    for (const double step_s : {1e-4, 1e-3, 1e-2}) {
      EXPECT_LE(most(chain, stages, step_s), 2) << step_s;
      EXPECT_LE(most(star, stages, step_s), 3) << step_s;
      EXPECT_LE(most(ring, stages, step_s), 3) << step_s;
    }
    // Evaluations of Duffing parts are cheap, and are taken where the interface equation needs fewer.
    EXPECT_LE(most(grid, stages, 1e-3, WaveUpdate::interface), 4);
    EXPECT_LE(most(grid, stages, 1e-3), stages == 2 ? 10 : 12);
    EXPECT_LE(most(pair, stages, 1e-3), 7);
    EXPECT_LE(most(pair, stages, 1e-2), 3);
  }
}

// What is refused, and how it reads.

TEST(StagesRefused, PartsWithoutEquationsAndLargeDenseOnes) {
  const auto refusal = [](const System& system) -> std::string {
    try {
      const Stepper stepper(system, options_of(2, 0.01));
    } catch (const ConfigError& error) {
      return error.issues().front().where + " " + error.issues().front().what;
    }
    return "none";
  };
  EXPECT_EQ(refusal(testing::circuit()), "none");
  StepperOptions options = options_of(4, 0.01);
  const System pair = testing::lossless_pair();
  EXPECT_THROW(Stepper(pair, options), ConfigError);

  const auto long_chain = [](StepMapStorage storage) {
    const auto chain =
        mass_spring_damper_chain({.masses = 201, .mass_kg = 1.0, .stiffness_N_per_m = 1.0});
    SystemBuilder builder;
    builder.add("long", std::make_unique<LinearPortHamiltonian>(
                            chain->signature(), chain->structure(), *chain->linear_form().Q,
                            LinearPortHamiltonian::Options{.storage = storage}));
    builder.join(joint::Free{}, {"long.left"});
    builder.join(joint::Free{}, {"long.right"});
    return builder.build();
  };
  EXPECT_EQ(refusal(long_chain(StepMapStorage::automatic)), "none");
  EXPECT_NE(refusal(long_chain(StepMapStorage::dense))
                .find("/subsystems/0 \"stages\" must be 1: subsystem \"long\""),
            std::string::npos);
  EXPECT_NE(
      refusal(long_chain(StepMapStorage::dense))
          .find("has 403 states, and stages that are solved densely are for parts of up to 400"),
      std::string::npos);
}

TEST(StagesRefused, ImpedancesOfAWrongLength) {
  const System system = testing::lossless_pair();
  Stepper stepper(system, options_of(2, 0.01));
  for (const std::size_t size : {1u, 3u, 5u, 400u}) {
    EXPECT_THROW(stepper.waves()->set_impedance(std::vector<double>(size, 1.0)), ConfigError);
  }
  EXPECT_NO_THROW(stepper.step());
}

TEST(StagesGiven, ImpedancesHoldAtAllStages) {
  const System system = testing::lossless_pair();
  StepperOptions options;
  options.start = Start::as_given;
  options.method = WaveCoupling{.iterations = 3, .stages = 2};
  options.method.waves().impedance = {0.3, 0.5};
  options.method.waves().initial_waves = {1.0, 2.0};
  Stepper stepper(system, options);
  const WaveView& waves = *stepper.waves();
  ASSERT_EQ(waves.stages(), 2);
  for (const int stage : {0, 1}) {
    EXPECT_EQ(waves.impedance(0, stage), 0.3);
    EXPECT_EQ(waves.impedance(1, stage), 0.5);
  }
  // The energy of the waves at the start is that of the waves that were given.
  double energy = 0.0;
  for (const int port : {0, 1}) {
    for (const int stage : {0, 1})
      energy += 0.5 * std::pow(waves.waves_at(port, stage).outgoing, 2);
  }
  EXPECT_NEAR(energy, 0.5 * (1.0 + 4.0), 1e-15);
  // What was chosen can be given again, stage by stage.
  options.method = stepper.method().method;
  EXPECT_EQ(options.method.waves().impedance.size(), 4u);
  Stepper again(system, options);
  stepper.step(20);
  again.step(20);
  EXPECT_EQ(again.state(0)[0], stepper.state(0)[0]);
  stepper.waves()->set_impedance(std::vector<double>{1.0, 2.0});
  EXPECT_EQ(waves.impedance(1, 1), 2.0);
  stepper.step(5);
}

}  // namespace
}  // namespace portwave::test_stages
