// Runs that take the iteration of a small island as one call commit the same bits as runs that
// take it phase by phase, whatever else is asked of a step.

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "portwave/runtime/step/stepper.hpp"
#include "portwave/subsystems/catalogue/chain.hpp"
#include "support/systems/small_systems.hpp"
#include "support/trace.hpp"

namespace portwave::test_small_islands {
namespace {

using testing::same_bits;
using testing::small_system;
using testing::SmallSystem;
using testing::trace;

StepperOptions options(double scale, unsigned seed, int iterations) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.step_s = 0.01;
  o.method.waves().impedance = {0.7 * scale};
  o.method.waves().iterations = iterations;
  o.method.waves().relaxation = seed % 2 == 0 ? 1.0 : 0.8;
  if (seed % 3 == 0) o.method.waves().kind = WaveUpdate::peaceman_rachford;
  return o;
}

/// The graph executor takes an iteration at a time, whole ones only where the budget is one.
StepperOptions by_phases(StepperOptions o) {
  o.executor = ExecutorKind::graph;
  o.grain = Grain::per_part();
  return o;
}

TEST(SmallIslandRuns, CommitTheSameBitsAsRunsByPhases) {
  for (unsigned seed = 1; seed <= 24; ++seed) {
    SmallSystem kind{.pair = seed % 2 == 0, .driven = seed % 5 < 2};
    kind.scale = seed % 3 == 0 ? 1.0 : seed % 3 == 1 ? 1e9 : 1e-9;
    kind.offset = seed % 4 == 0 ? 1e3 : 0.0;
    const System system = small_system(kind, seed);
    for (const int iterations : {0, 2, 5, 30}) {
      for (const int stages : {1, 2, 3}) {
        for (const bool guard : {false, true}) {
          for (const Certify certify : {Certify::none, Certify::energy, Certify::full}) {
            if (certify == Certify::full && iterations == 30) continue;
            StepperOptions o = options(kind.scale, seed, iterations);
            o.method.waves().stages = stages;
            o.method.waves().guard = guard;
            o.certify = certify;
            const auto expected = trace(system, by_phases(o), 8);
            const std::string where =
                fmt::format("seed {} K={} stages {} guard {} certify {}", seed, iterations, stages,
                            guard, static_cast<int>(certify));
            for (const ExecutorKind executor : {ExecutorKind::serial, ExecutorKind::async}) {
              o.executor = executor;
              EXPECT_TRUE(same_bits(expected, trace(system, o, 8))) << where;
            }
          }
        }
      }
    }
  }
}

// So far out that what parts store does not balance, and is formed again after the island was summed up.
TEST(SmallIslandRuns, CloseAccountsFarFromTheOrigin) {
  SystemBuilder builder;
  const auto add = [&](const std::string& name, ChainEnd right_end, std::vector<double> x) {
    builder.add(name,
                mass_spring_damper_chain({.masses = 2,
                                          .mass_kg = 10,
                                          .stiffness_N_per_m = 1e3,
                                          .coupling_stiffness_N_per_m = 40,
                                          .right_end = right_end}),
                {.initial_state = std::move(x)});
  };
  add("a", ChainEnd::spring, {1e12, 1.0, 1e12, -1.0, 0.1});
  add("b", ChainEnd::mass, {1e12, 0.5, 1e12, 2.0});
  builder.join(joint::Free{}, {"a.left"});
  builder.connect("a.right", "b.left");
  builder.join(joint::Free{}, {"b.right"});
  const System system = builder.build();
  for (const bool guard : {false, true}) {
    StepperOptions o = options(1.0, 2, 4);
    o.method.waves().guard = guard;
    const auto expected = trace(system, by_phases(o), 20);
    for (const ExecutorKind executor : {ExecutorKind::serial, ExecutorKind::async}) {
      o.executor = executor;
      EXPECT_TRUE(same_bits(expected, trace(system, o, 20))) << guard;
    }
  }
}

// Control: it is the bits of these runs that are compared.
TEST(SmallIslandRuns, DifferWhereTheBudgetDiffers) {
  int off = 0;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    const System system = small_system({.pair = seed % 2 == 0}, seed);
    const auto expected = trace(system, by_phases(options(1.0, seed, 3)), 8);
    StepperOptions o = options(1.0, seed, 4);
    o.executor = ExecutorKind::serial;
    off += same_bits(expected, trace(system, o, 8)) ? 0 : 1;
  }
  EXPECT_EQ(off, 8);
}

/// How a run fails, and what it has committed when it does.
std::pair<std::string, std::vector<double>> failure_of(const System& system,
                                                       const StepperOptions& o) {
  Stepper stepper(system, o);
  std::string what;
  try {
    for (int n = 0; n < 5; ++n) stepper.step();
  } catch (const StepError& error) {
    what = error.what();
  }
  std::vector<double> committed;
  testing::append_interface(stepper, committed);
  return {what, committed};
}

TEST(SmallIslandRuns, FailAsRunsByPhases) {
  int failed = 0;
  for (unsigned seed = 1; seed <= 24; ++seed) {
    // A cube that overflows: some parts fail in an iteration, others when they commit.
    const System system =
        small_system({.pair = seed % 2 == 0, .driven = true, .force = 1e305}, seed);
    for (const int iterations : {0, 2, 6}) {
      StepperOptions o = options(1.0, seed, iterations);
      o.method.waves().guard = false;
      o.certify = Certify::none;
      const auto expected = failure_of(system, by_phases(o));
      o.executor = ExecutorKind::serial;
      const auto found = failure_of(system, o);
      EXPECT_EQ(found.first, expected.first) << seed;
      EXPECT_TRUE(same_bits(found.second, expected.second)) << seed;
      failed += expected.first.empty() ? 0 : 1;
    }
  }
  EXPECT_GE(failed, 12);
}

// Impedances and budgets that change between steps: what was bound is bound anew.
TEST(SmallIslandRuns, FollowChangesOfImpedanceAndBudget) {
  for (unsigned seed = 1; seed <= 16; ++seed) {
    const System system = small_system({.pair = seed % 2 == 0}, seed);
    const auto run = [&](const StepperOptions& o) {
      Stepper stepper(system, o);
      std::vector<double> numbers;
      for (int n = 0; n < 9; ++n) {
        if (n == 3) {
          stepper.waves()->set_impedance(
              std::vector<double>(system.scalar_ports().size(), 1.3 + 0.1 * seed));
        }
        if (n == 6) stepper.waves()->set_iterations(4);
        stepper.step();
        testing::append_interface(stepper, numbers);
      }
      return numbers;
    };
    StepperOptions o = options(1.0, seed, 7);
    const auto expected = run(by_phases(o));
    o.executor = ExecutorKind::serial;
    EXPECT_TRUE(same_bits(expected, run(o))) << seed;
  }
}

}  // namespace
}  // namespace portwave::test_small_islands
