// Threads, executors and grain are a matter of speed alone: they change no bit of what a run
// commits.

#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "support/guard_of.hpp"
#include "support/systems/networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_determinism {
namespace {

using testing::NamedSystem;
using testing::same_bits;
using testing::trace;

constexpr int kSteps = 5;

/// Eight threads whatever the machine has.
class EightThreads {
 private:
  tbb::global_control control_{tbb::global_control::max_allowed_parallelism, 8};
};

StepperOptions serial(const NamedSystem& sample, double tolerance) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.step_s = 0.01;
  o.method.waves().impedance = {sample.impedance};
  o.method.waves().iterations = 9;
  o.method.waves().relaxation = 1.1;
  o.method.waves().tolerance = tolerance;
  o.certify = Certify::full;
  o.executor = ExecutorKind::serial;
  return o;
}

std::string describe(const StepperOptions& o) {
  return std::string(to_string(o.executor)) + ", " + std::to_string(o.threads) +
         " threads, grain " + to_string(o.grain);
}

std::vector<Grain> grains() {
  return {Grain::automatic(), Grain::per_part(), Grain::of_parts(1), Grain::of_parts(3),
          Grain::of_parts(16)};
}

class Determinism : public ::testing::TestWithParam<NamedSystem> {};

TEST_P(Determinism, ExecutorThreadsAndGrainChangeNoBit) {
  const EightThreads allowed;
  const System system = GetParam().make();
  for (const double tolerance : {0.0, 1e-3}) {
    StepperOptions o = serial(GetParam(), tolerance);
    const std::vector<double> expected = trace(system, o, kSteps);
    o.grain = Grain::per_part();
    EXPECT_TRUE(same_bits(expected, trace(system, o, kSteps))) << describe(o);
    for (const ExecutorKind executor :
         {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
      for (const int threads : {1, 2, 3, 5, 8}) {
        for (const Grain grain : grains()) {
          o.executor = executor;
          o.threads = threads;
          o.grain = grain;
          EXPECT_TRUE(same_bits(expected, trace(system, o, kSteps)))
              << describe(o) << ", tolerance " << tolerance;
        }
      }
    }
  }
}

// Long enough for workers to come, to leave when there is nothing to do, and to come again.
TEST_P(Determinism, LongRunsOnManyThreadsChangeNoBit) {
  const EightThreads allowed;
  const System system = GetParam().make();
  for (const double tolerance : {0.0, 1e-3}) {
    StepperOptions o = serial(GetParam(), tolerance);
    o.certify = Certify::energy;
    const std::vector<double> expected = trace(system, o, 250);
    for (const ExecutorKind executor : {ExecutorKind::async, ExecutorKind::automatic}) {
      for (const int threads : {2, 8}) {
        o.executor = executor;
        o.threads = threads;
        o.grain = Grain::of_parts(8);
        EXPECT_TRUE(same_bits(expected, trace(system, o, 250)))
            << describe(o) << ", tolerance " << tolerance;
      }
    }
  }
}

struct SafeMethod {
  const char* name;
  WaveUpdate kind;
  double relaxation;
  int iterations;
  int acceleration;
  double tolerance;
  int change_every;  ///< impedances anew before every so many steps
};

/// The guard acts in many steps: tanks are empty, budgets small.
constexpr SafeMethod kSafeMethods[] = {
    {"guarded DR", WaveUpdate::douglas_rachford, 1.0, 1, 0, 0.0, 0},
    {"guarded PR", WaveUpdate::peaceman_rachford, 1.0, 2, 0, 0.0, 3},
    {"averaged", WaveUpdate::peaceman_rachford, 0.5, 3, 0, 1e-3, 0},
    {"accelerated DR", WaveUpdate::douglas_rachford, 1.0, 4, 3, 0.0, 0},
    {"accelerated PR", WaveUpdate::peaceman_rachford, 1.0, 12, 5, 1e-4, 4},
    {"explicit", WaveUpdate::douglas_rachford, 1.0, 0, 2, 0.0, 1},
};

struct SafeRun {
  std::vector<double> numbers;
  GuardStatistics guard;
};

/// Like `trace`, with the guard's part of the ledger and changes of impedance.
SafeRun safe_run(const System& system, const StepperOptions& o, int change_every, int steps) {
  Stepper stepper(system, o);
  std::mt19937_64 random(5);
  std::uniform_real_distribution<double> exponent(-1.0, 1.0);
  std::vector<double> impedance(system.scalar_ports().size());
  SafeRun run;
  for (int n = 0; n < steps; ++n) {
    if (change_every > 0 && n % change_every == 0) {
      for (double& gamma : impedance) {
        gamma = o.method.waves().impedance[0] * std::pow(10.0, exponent(random));
      }
      stepper.waves()->set_impedance(impedance);
    }
    const StepReport r = stepper.step();
    run.numbers.insert(run.numbers.end(), {static_cast<double>(r.iterations), r.residual, r.gap_J,
                                           static_cast<double>(r.converged), r.energy.stored_J,
                                           r.energy.mismatch_J, r.energy.tank_J, r.energy.alpha,
                                           r.energy.withheld_J, r.energy.max_passivity_residual_J});
    for (int island = 0; island < system.island_count(); ++island) {
      run.numbers.insert(run.numbers.end(),
                         {static_cast<double>(stepper.waves()->iterations_of_island(island)),
                          stepper.waves()->tank(island)});
    }
    testing::append_interface(stepper, run.numbers);
  }
  run.guard = testing::guard_of(stepper);
  run.numbers.insert(
      run.numbers.end(),
      {static_cast<double>(run.guard.uses), static_cast<double>(run.guard.trials),
       run.guard.min_alpha, run.guard.withheld_J, stepper.waves()->tuning().rescattered_J,
       static_cast<double>(stepper.certificate().status)});
  return run;
}

TEST_P(Determinism, GuardAccelerationAndChangesOfImpedanceChangeNoBit) {
  const EightThreads allowed;
  const System system = GetParam().make();
  std::int64_t uses = 0;
  for (const SafeMethod& method : kSafeMethods) {
    StepperOptions o{.method = WaveCoupling{}};
    o.start = Start::as_given;
    o.step_s = 0.01;
    o.method.waves().kind = method.kind;
    o.method.waves().relaxation = method.relaxation;
    o.method.waves().iterations = method.iterations;
    o.method.waves().acceleration = method.acceleration;
    o.method.waves().tolerance = method.tolerance;
    o.method.waves().impedance = {10.0 * GetParam().impedance};
    o.method.waves().tank.initial_J = 0.0;
    o.executor = ExecutorKind::serial;
    constexpr int kSafeSteps = 30;
    const SafeRun expected = safe_run(system, o, method.change_every, kSafeSteps);
    uses += expected.guard.uses;
    o.grain = Grain::per_part();
    EXPECT_TRUE(
        same_bits(expected.numbers, safe_run(system, o, method.change_every, kSafeSteps).numbers))
        << method.name << ", " << describe(o);
    for (const ExecutorKind executor :
         {ExecutorKind::async, ExecutorKind::graph, ExecutorKind::automatic}) {
      for (const int threads : {1, 2, 5}) {
        for (const Grain grain : {Grain::automatic(), Grain::per_part(), Grain::of_parts(3)}) {
          o.executor = executor;
          o.threads = threads;
          o.grain = grain;
          EXPECT_TRUE(same_bits(expected.numbers,
                                safe_run(system, o, method.change_every, kSafeSteps).numbers))
              << method.name << ", " << describe(o);
        }
      }
    }
  }
  EXPECT_GE(uses, 10) << "the guard acts";
}

TEST_P(Determinism, OneIterationFewerChangesBits) {
  const System system = GetParam().make();
  StepperOptions o = serial(GetParam(), 0.0);
  const std::vector<double> expected = trace(system, o, kSteps);
  --o.method.waves().iterations;
  EXPECT_FALSE(same_bits(expected, trace(system, o, kSteps)));
}

std::vector<NamedSystem> systems() {
  std::vector<NamedSystem> all = testing::sample_systems();
  for (NamedSystem& system : testing::large_systems()) all.push_back(std::move(system));
  return all;
}

INSTANTIATE_TEST_SUITE_P(Systems, Determinism, ::testing::ValuesIn(systems()),
                         [](const auto& each) { return each.param.name; });

// What the sweep above sweeps: without this a partition that never cuts would pass it.
TEST(DeterminismControl, TheSweepCutsSystemsIntoTasks) {
  const EightThreads allowed;
  for (const NamedSystem& sample : testing::large_systems()) {
    const System system = sample.make();
    StepperOptions o = serial(sample, 1e-3);
    o.executor = ExecutorKind::async;
    o.threads = 2;
    o.grain = Grain::of_parts(3);
    const Stepper groups(system, o);
    EXPECT_GE(groups.tasks(), 4) << sample.name;
    o.grain = Grain::per_part();
    const Stepper parts(system, o);
    EXPECT_GE(parts.tasks(), 30) << sample.name;
    Stepper stepper(system, o);
    stepper.step(kSteps);
    EXPECT_GT(stepper.energy().supplied_J, 0.0) << sample.name;
    EXPECT_EQ(stepper.threads(), 2);
  }
}

}  // namespace
}  // namespace portwave::test_determinism
