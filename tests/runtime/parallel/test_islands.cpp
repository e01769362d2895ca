// Islands share batches and steps, and nothing else: each iterates as long as it needs, and comes
// out as if it were alone.

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/coupling/waves/wave_discretisation.hpp"
#include "support/guard_of.hpp"
#include "support/systems/networks.hpp"
#include "support/trace.hpp"

namespace portwave::test_islands {
namespace {

using testing::archipelago;
using testing::kIslands;
using testing::same_bits;

StepperOptions options(double tolerance, ExecutorKind executor = ExecutorKind::serial) {
  StepperOptions o{.method = WaveCoupling{}};
  o.start = Start::as_given;
  o.method.waves().impedance = {0.1};
  o.method.waves().iterations = 200;
  o.method.waves().tolerance = tolerance;
  o.executor = executor;
  if (executor != ExecutorKind::serial) {
    o.threads = 3;
    o.grain = Grain::of_parts(8);
  }
  return o;
}

/// What an island did in a step, and where it is.
struct IslandStep {
  int iterations;
  std::vector<double> numbers;  ///< states and waves, part by part, and the tank
};

std::vector<IslandStep> run_island(const System& system, int island, const StepperOptions& o,
                                   int steps, std::int64_t* uses = nullptr) {
  Stepper stepper(system, o);
  const int first = system.find_part(std::to_string(island) + "_0");
  std::vector<IslandStep> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    IslandStep now{stepper.waves()->iterations_of_island(system.island_of_part(first)), {}};
    for (int k = 0; k < testing::kIslandParts[island]; ++k) {
      const int part = system.find_part(std::to_string(island) + "_" + std::to_string(k));
      now.numbers.insert(now.numbers.end(), stepper.state(part).begin(), stepper.state(part).end());
      const int port = system.first_scalar_port(part);
      now.numbers.insert(now.numbers.end(),
                         {stepper.waves()->incident(port), stepper.waves()->outgoing(port)});
    }
    now.numbers.push_back(stepper.waves()->tank(system.island_of_part(first)));
    out.push_back(std::move(now));
  }
  if (uses != nullptr) *uses += testing::guard_of(stepper).uses;
  return out;
}

/// The islands [first, last) together with all others, and alone. Returns how often the guard acted
/// on them alone.
std::int64_t expect_as_alone(int first, int last, const StepperOptions& one,
                             const StepperOptions& all, int steps = 6) {
  const System together = archipelago();
  EXPECT_EQ(together.island_count(), kIslands);
  std::int64_t uses = 0;
  for (int island = first; island < last; ++island) {
    const System alone = archipelago({island});
    EXPECT_EQ(alone.island_count(), 1);
    const auto expected = run_island(alone, island, one, steps, &uses);
    const auto actual = run_island(together, island, all, steps);
    for (std::size_t n = 0; n < expected.size(); ++n) {
      const std::string where = std::string(to_string(all.executor)) + ", tolerance " +
                                ::testing::PrintToString(all.method.waves().tolerance) + ", " +
                                std::string(to_string(all.method.kind())) +
                                ", K=" + std::to_string(all.method.waves().iterations) +
                                ", acceleration " +
                                std::to_string(all.method.waves().acceleration) + ", island " +
                                std::to_string(island) + ", step " + std::to_string(n);
      EXPECT_EQ(actual[n].iterations, expected[n].iterations) << where;
      EXPECT_TRUE(same_bits(actual[n].numbers, expected[n].numbers)) << where;
      if (::testing::Test::HasFailure()) return uses;
    }
  }
  return uses;
}

void expect_as_alone(int first, int last, double tolerance, ExecutorKind executor) {
  expect_as_alone(first, last, options(tolerance), options(tolerance, executor));
}

class Islands : public ::testing::TestWithParam<ExecutorKind> {
 private:
  tbb::global_control allowed_{tbb::global_control::max_allowed_parallelism, 3};
};

constexpr double kTolerances[] = {0.0, 1e-2, 1e-8};

TEST_P(Islands, LargeOnesTakeTheIterationsAndEndInTheStateOfTheirOwnRun) {
  for (const double tolerance : kTolerances) expect_as_alone(5, kIslands, tolerance, GetParam());
}

TEST_P(Islands, SmallOnesTakeTheIterationsAndEndInTheStateOfTheirOwnRun) {
  for (const double tolerance : kTolerances) expect_as_alone(0, 5, tolerance, GetParam());
}

// The guard commits again the islands that overdraw, acceleration judges each by itself.
TEST_P(Islands, GuardAndAccelerationKeepToOneIsland) {
  std::int64_t uses = 0;
  for (const WaveUpdate kind : {WaveUpdate::douglas_rachford, WaveUpdate::peaceman_rachford}) {
    for (const int memory : {0, 4}) {
      for (const auto& each :
           {std::pair{1, 0.0}, std::pair{2, 0.0}, std::pair{6, 1e-2}, std::pair{60, 1e-6}}) {
        const int budget = each.first;
        const double tolerance = each.second;
        const auto adapt = [&](StepperOptions o) {
          o.method.waves().kind = kind;
          o.method.waves().iterations = budget;
          o.method.waves().acceleration = memory;
          o.method.waves().impedance = {2.0};
          o.method.waves().tank.initial_J = 0.0;
          o.method.waves().tank.initial_fraction = 1e-4;
          return o;
        };
        uses += expect_as_alone(0, kIslands, adapt(options(tolerance)),
                                adapt(options(tolerance, GetParam())), 10);
      }
    }
  }
  EXPECT_GT(uses, 50);
}

INSTANTIATE_TEST_SUITE_P(Executors, Islands,
                         ::testing::Values(ExecutorKind::serial, ExecutorKind::async,
                                           ExecutorKind::graph),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(IslandsEnergy, TolerancesStopThemSeparatelyToo) {
  const System together = archipelago();
  StepperOptions o = options(0.0);
  o.method.waves().energy_tolerance_J = 1e-6;
  Stepper stepper(together, o);
  const StepReport report = stepper.step();
  EXPECT_TRUE(report.converged);
  EXPECT_EQ(report.reason, StopReason::energy_tolerance);
  std::vector<int> iterations;
  for (int i = 0; i < kIslands; ++i) iterations.push_back(stepper.waves()->iterations_of_island(i));
  EXPECT_EQ(*std::max_element(iterations.begin(), iterations.end()), report.iterations);
  EXPECT_LT(*std::min_element(iterations.begin(), iterations.end()), report.iterations);
}

// The law above is about something: islands of one island group differ, and so do the large ones.
TEST(IslandsControl, TheyNeedDifferentNumbersOfIterations) {
  const System together = archipelago();
  const WaveDiscretisation waves(together, 0.01,
                                 std::vector<double>(together.scalar_ports().size(), 0.1));
  const auto island_group = [&](int island) {
    return waves.island_group_of_part(together.find_part(std::to_string(island) + "_0"));
  };
  EXPECT_EQ(waves.island_group_count(), 3);
  for (int island = 1; island < 5; ++island)
    EXPECT_EQ(island_group(island), island_group(0)) << island;
  EXPECT_NE(island_group(5), island_group(6));
  Stepper stepper(together, options(1e-8));
  stepper.step(3);
  const auto iterations = [&](int island) {
    return stepper.waves()->iterations_of_island(
        together.island_of_part(together.find_part(std::to_string(island) + "_0")));
  };
  EXPECT_NE(iterations(5), iterations(6)) << "the two lines";
  std::set<int> in_one_island_group;
  for (int island = 0; island < 5; ++island) in_one_island_group.insert(iterations(island));
  EXPECT_GE(in_one_island_group.size(), 3u);
  EXPECT_LT(std::max(iterations(5), *in_one_island_group.begin()), 200) << "all spend their budget";
}

}  // namespace
}  // namespace portwave::test_islands
