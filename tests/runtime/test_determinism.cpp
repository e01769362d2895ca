// Threads, executors and grain are a matter of speed alone: they change no bit of what a run commits.

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "support/networks.hpp"
#include "support/trace.hpp"

namespace portwave {
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
  StepperOptions o;
  o.step_s = 0.01;
  o.method.impedance = {sample.impedance};
  o.method.iterations = 9;
  o.method.relaxation = 1.1;
  o.method.tolerance = tolerance;
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
    for (const ExecutorKind executor : {ExecutorKind::waves, ExecutorKind::graph,
                                        ExecutorKind::barrier, ExecutorKind::automatic}) {
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
    for (const ExecutorKind executor : {ExecutorKind::waves, ExecutorKind::automatic}) {
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

TEST_P(Determinism, OneIterationFewerChangesBits) {
  const System system = GetParam().make();
  StepperOptions o = serial(GetParam(), 0.0);
  const std::vector<double> expected = trace(system, o, kSteps);
  --o.method.iterations;
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
    o.executor = ExecutorKind::waves;
    o.threads = 2;
    o.grain = Grain::of_parts(3);
    const Stepper groups(system, o);
    EXPECT_GE(groups.tasks(), 4) << sample.name;
    o.grain = Grain::per_part();
    const Stepper parts(system, o);
    EXPECT_GE(parts.tasks(), 30) << sample.name;
    Stepper stepper(system, o);
    stepper.run(kSteps);
    EXPECT_GT(stepper.energy().supplied_J, 0.0) << sample.name;
    EXPECT_EQ(stepper.threads(), 2);
  }
}

}  // namespace
}  // namespace portwave
