// The interface equation as the update of whole runs: against the monolithic step, on all
// executors, and where things go wrong.

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/reference/monolithic.hpp"
#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/nonlinear/nonlinear_part.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/random_networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_interface_method {
namespace {

StepperOptions interface(double step_s) {
  StepperOptions options{.method = WaveCoupling{}};
  options.start = Start::as_given;
  options.step_s = step_s;
  options.method.waves().kind = WaveUpdate::interface;
  options.method.waves().impedance_kind = ImpedanceKind::automatic;
  options.method.waves().tolerance = 1e-10;
  options.method.waves().integrator = StageKind::gauss;  // as the reference
  return options;
}

/// The largest difference from the monolithic step, relative to the largest state; negative where
/// there is no such step.
double worst_error(Stepper& stepper, double step_s, int steps) {
  const System& system = stepper.system();
  MonolithicReference reference(system, step_s);
  double worst = 0.0, size = 0.0;
  for (int n = 0; n < steps; ++n) {
    try {
      reference.step();
    } catch (const std::runtime_error&) {
      return -1.0;
    }
    stepper.step();
    for (int i = 0; i < static_cast<int>(system.parts().size()); ++i) {
      const auto x = stepper.state(i), y = reference.state(i);
      for (std::size_t k = 0; k < x.size(); ++k) {
        worst = std::max(worst, std::abs(x[k] - y[k]));
        size = std::max(size, std::abs(y[k]));
      }
    }
  }
  return size > 0.0 ? worst / size : 0.0;
}

TEST(InterfaceMethod, IsTheMonolithicStepOnRandomNetworks) {
  int compared = 0;
  for (unsigned seed = 1; seed <= 200; ++seed) {
    const bool loops = seed % 4 != 0;
    const double decades = loops ? 1.0 : 5.0;
    const System system = testing::random_network({8, decades, loops}, seed);
    testing::RandomNumbers random(seed);
    const double h = random.logarithmic(1e-3, 1.0);
    Stepper stepper(system, interface(h));
    const double error = worst_error(stepper, h, 15);
    if (error < 0.0) continue;
    ++compared;
    EXPECT_LE(error, 1e-7) << "seed " << seed << " h " << h;
    EXPECT_LE(stepper.iterations().max, 4) << "seed " << seed << " h " << h;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << "seed " << seed << " h " << h;
    EXPECT_NE(stepper.certificate().status, CertificateStatus::violated) << "seed " << seed;
  }
  EXPECT_GT(compared, 150);
}

TEST(InterfaceMethod, StiffTreesTakeAtMostFourEvaluations) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const System system = testing::random_mass_tree(100, 300.0, seed);
    Stepper stepper(system, interface(1e-2));
    EXPECT_LE(worst_error(stepper, 1e-2, 20), 1e-7) << seed;
    EXPECT_LE(stepper.iterations().max, 4) << seed;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << seed;
  }
}

// K = 0 commits P bⁿ, K = 1 the shadow of the first evaluation: as every other iteration.
TEST(InterfaceMethod, AgreesWithTheOthersAtBudgetsOfNoneAndOne) {
  const System system = testing::duffing_grid(3, 3);
  for (const int budget : {0, 1}) {
    std::vector<double> traces[2];
    for (const WaveUpdate kind : {WaveUpdate::peaceman_rachford, WaveUpdate::interface}) {
      StepperOptions o = interface(0.01);
      o.method.waves().kind = kind;
      o.method.waves().impedance_kind = ImpedanceKind::given;
      o.method.waves().impedance = {20.0};
      o.method.waves().tolerance = 0.0;
      o.method.waves().iterations = budget;
      o.method.waves().guard = false;
      Stepper stepper(system, o);
      std::vector<double>& out = traces[kind == WaveUpdate::interface ? 1 : 0];
      for (int n = 0; n < 20; ++n) {
        EXPECT_EQ(stepper.step().iterations, budget);
        testing::append_interface(stepper, out);
      }
    }
    EXPECT_TRUE(testing::same_bits(traces[0], traces[1])) << "K = " << budget;
  }
}

std::vector<System> samples() {
  std::vector<System> out;
  out.push_back(testing::archipelago());
  out.push_back(testing::net(9, 9));
  out.push_back(testing::random_mass_tree(90, 100.0, 4));
  return out;
}

TEST(InterfaceMethod, ExecutorThreadsAndGrainChangeNoBit) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  for (const System& system : samples()) {
    for (const int budget : {4, 30}) {
      for (const bool automatic : {false, true}) {
        StepperOptions o = interface(0.05);
        o.method.waves().iterations = budget;
        o.method.waves().tolerance = budget == 4 ? 0.0 : 1e-10;
        if (automatic) {  // most islands are rescued
          o.method.waves().kind = WaveUpdate::peaceman_rachford;
          o.method.waves().impedance_kind = ImpedanceKind::given;
          o.method.waves().impedance = {3.0};
          o.method.waves().rescue_after = 3;
        }
        o.executor = ExecutorKind::serial;
        const std::vector<double> expected = testing::trace(system, o, 4);
        for (const ExecutorKind executor :
             {ExecutorKind::serial, ExecutorKind::async, ExecutorKind::graph}) {
          for (const int threads : {1, 3}) {
            for (const Grain grain : {Grain::automatic(), Grain::per_part(), Grain::of_parts(5)}) {
              o.executor = executor;
              o.threads = threads;
              o.grain = grain;
              EXPECT_TRUE(testing::same_bits(expected, testing::trace(system, o, 4)))
                  << system.parts().size() << " parts, " << to_string(executor) << ", " << threads
                  << " threads, grain " << to_string(grain) << ", K " << budget
                  << (automatic ? ", rescued" : "");
            }
          }
        }
      }
    }
  }
}

TEST(InterfaceMethod, RescuesWhatThePlainIterationDoesNotEnd) {
  const System system = testing::random_mass_tree(60, 100.0, 2);
  StepperOptions o = interface(0.01);
  o.method.waves().kind = WaveUpdate::peaceman_rachford;
  o.method.waves().impedance_kind = ImpedanceKind::given;
  o.method.waves().impedance = {1.0};
  o.method.waves().iterations = 30;
  Stepper lost(system, o);
  lost.step(20);
  EXPECT_EQ(lost.iterations().not_converged, 20) << "control";
  o.method.waves().rescue_after = 6;
  Stepper stepper(system, o);
  EXPECT_LE(worst_error(stepper, 0.01, 200), 1e-8);
  EXPECT_EQ(stepper.iterations().not_converged, 0);
  EXPECT_LE(stepper.iterations().max, 9);
  // Once rescued, an island takes the interface equation from the start for a while.
  EXPECT_GE(stepper.iterations().rescues, 2);
  EXPECT_LE(stepper.iterations().rescues, 4);
  EXPECT_LE(stepper.iterations().per_step(), 3.5);
}

/// A mass with a spring to a wall on its right that only pushes, k ((q − gap)₊)²/2.
std::shared_ptr<const Subsystem> bouncer(double mass, double stiffness, double gap) {
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = -1.0;
  const auto depth = [gap](double q) { return std::max(q - gap, 0.0); };
  Hamiltonian hamiltonian;
  hamiltonian.value = [=](const double* x) {
    return 0.5 * stiffness * depth(x[0]) * depth(x[0]) + 0.5 * x[1] * x[1] / mass;
  };
  hamiltonian.gradient = [=](const double* x, double* g) {
    g[0] = stiffness * depth(x[0]);
    g[1] = x[1] / mass;
  };
  NonlinearPortHamiltonian::Options options;
  options.discrete_gradient = DiscreteGradient::mean_value;
  options.check_derivatives = false;
  return std::make_shared<NonlinearPortHamiltonian>(
      Signature{"bouncer",
                {{"q", "m"}, {"p", "kg m/s"}},
                {{"coupling", Causality::effort_in, Domain::translation, 1}},
                {}},
      std::move(structure), std::move(hamiltonian), options);
}

TEST(AutomaticMethod, EndsEveryStepAtAContact) {
  for (const double stiffness : {1e3, 1e4, 1e5}) {
    SystemBuilder builder;
    builder.add("hub", testing::sprung_mass(
                           {.mass = 1.0, .stiffness = 40.0, .rigid_ports = 1, .velocity = 1.0}));
    std::vector<std::string> ports = {"hub.p0"};
    for (int i = 0; i < 4; ++i) {
      const std::string id = std::to_string(i);
      builder.add("wall" + id, bouncer(0.1 * (i + 1), stiffness, 0.02 * i));
      builder.add("spring" + id,
                  testing::sprung_mass(
                      {.mass = 0.2, .up_stiffness = 300.0, .up_damping = 0.1, .rigid_ports = 1}));
      builder.connect("wall" + id + ".coupling", "spring" + id + ".up");
      ports.push_back("spring" + id + ".p0");
    }
    builder.join(joint::CommonFlow{}, ports);
    const System system = builder.build();
    StepperOptions o;
    o.start = Start::as_given;
    o.step_s = 5e-3;
    o.method = CouplingMethod::automatic();
    Stepper stepper(system, o);
    stepper.step(600);
    EXPECT_EQ(stepper.iterations().not_converged, 0) << stiffness;
    EXPECT_LE(stepper.iterations().max, 40) << stiffness;
    EXPECT_LE(stepper.iterations().per_step(), 12.0) << stiffness;
    RecordProperty("max_" + std::to_string(stiffness), stepper.iterations().max);
  }
}

TEST(AutomaticMethod, TakesFewEvaluationsOnGridsAtLargeAmplitudes) {
  for (const double h : {1e-3, 1e-2}) {
    const System system = testing::duffing_grid(12, 12, 10.0);
    StepperOptions o;
    o.start = Start::as_given;
    o.step_s = h;
    o.method = CouplingMethod::automatic();
    Stepper stepper(system, o);
    stepper.step(40);
    EXPECT_EQ(stepper.iterations().not_converged, 0) << h;
    // At h = 1e-2 the interface equation needs 5, and several times as long.
    EXPECT_LE(stepper.iterations().max, h < 5e-3 ? 8 : 24) << h << ": " << stepper.method().reason;
  }
}

TEST(AutomaticMethod, ChoosesIslandByIsland) {
  SystemBuilder builder;
  builder.add("a", testing::sprung_mass({.mass = 1.0, .up_stiffness = 20.0, .velocity = 1.0}));
  builder.add("b", testing::sprung_mass({.mass = 2.0, .rigid_ports = 1}));
  builder.connect("a.up", "b.p0");
  testing::RandomNumbers random(5);
  std::vector<std::string> ports;
  for (int i = 0; i < 6; ++i) {
    const std::string name = "s" + std::to_string(i);
    builder.add(name, testing::random_part(random, 3, 3, 1.0), {.initial_state = {1.0, -0.5, 0.2}});
    for (int k = 0; k < 3; ++k) ports.push_back(name + ".p" + std::to_string(k));
  }
  builder.join(joint::SkewGain{random.skew(18)}, ports);
  const System system = builder.build();
  StepperOptions o;
  o.start = Start::as_given;
  o.step_s = 0.1;
  o.method = CouplingMethod::automatic();
  Stepper stepper(system, o);
  EXPECT_EQ(stepper.method().method.kind(), WaveUpdate::peaceman_rachford);
  EXPECT_EQ(stepper.method().method.waves().interface_islands, std::vector<int>{1});
  EXPECT_NE(stepper.method().reason.find("the interface equation on 1 of 2 islands"),
            std::string::npos)
      << stepper.method().reason;
  EXPECT_LE(worst_error(stepper, 0.1, 50), 1e-8);
  EXPECT_LE(stepper.iterations().max, 4);
}

TEST(AutomaticMethod, MissesNoToleranceOnRandomNetworks) {
  int ran = 0;
  for (unsigned seed = 1; seed <= 300; ++seed) {
    const bool loops = seed % 4 != 0;
    const System system = testing::random_network({8, loops ? 1.0 : 5.0, loops}, seed);
    testing::RandomNumbers random(seed);
    StepperOptions o;
    o.start = Start::as_given;
    o.step_s = random.logarithmic(1e-3, 1.0);
    o.method = CouplingMethod::automatic();
    o.method.waves().integrator = StageKind::gauss;  // as the reference
    Stepper stepper(system, o);
    const double error = worst_error(stepper, o.step_s, 15);
    if (error < 0.0) continue;
    ++ran;
    EXPECT_EQ(stepper.iterations().not_converged, 0) << "seed " << seed;
    EXPECT_LE(stepper.iterations().max, 4) << "seed " << seed << ": " << stepper.method().reason;
    EXPECT_LE(error, 1e-6) << "seed " << seed << ": " << stepper.method().reason;
  }
  EXPECT_GT(ran, 250);
}

// A trial at which a part cannot be solved is rejected; at any other evaluation that is a fault,
// and nothing is committed.
TEST(InterfaceMethod, FaultsCommitNothing) {
  bool broken = false;
  Structure structure = Structure::zero(2, 1);
  structure.J.insert(0, 1) = 1.0;
  structure.J.insert(1, 0) = -1.0;
  structure.G.insert(1, 0) = -1.0;
  Hamiltonian hamiltonian;
  hamiltonian.value = [](const double* x) { return std::pow(x[0], 4) + 0.5 * x[1] * x[1]; };
  hamiltonian.gradient = [&broken](const double* x, double* g) {
    if (broken) throw std::runtime_error("ordered");
    g[0] = 4.0 * std::pow(x[0], 3);
    g[1] = x[1];
  };
  SystemBuilder builder;
  builder.add("quartic",
              std::make_shared<NonlinearPortHamiltonian>(
                  Signature{"quartic",
                            {{"q", ""}, {"p", ""}},
                            {{"coupling", Causality::effort_in, Domain::translation, 1}},
                            {}},
                  structure, hamiltonian, NonlinearPortHamiltonian::Options{}),
              {.initial_state = {1.0, 0.2}});
  builder.add("B", linear_oscillator({.mass_kg = 1, .stiffness_N_per_m = 2}));
  builder.connect("quartic.coupling", "B.coupling");
  const System system = builder.build();
  Stepper stepper(system, interface(0.05)), other(system, interface(0.05));
  for (int n = 0; n < 30; ++n) {
    if (n == 10) {
      broken = true;
      for (int attempt = 0; attempt < 3; ++attempt) {
        EXPECT_THROW(stepper.step(), StepError);
        EXPECT_EQ(stepper.step_index(), 10);
      }
      broken = false;
    }
    stepper.step();
    other.step();
    for (int i = 0; i < 2; ++i) {
      EXPECT_NEAR(stepper.state(i)[0], other.state(i)[0], 1e-9);
      EXPECT_NEAR(stepper.state(i)[1], other.state(i)[1], 1e-9);
    }
  }
}

}  // namespace
}  // namespace portwave::test_interface_method
