// Islands share batches and steps, and nothing else: each iterates as long as it needs, and comes out
// as if it were alone.

#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "support/networks.hpp"
#include "support/trace.hpp"

namespace portwave {
namespace {

using testing::archipelago;
using testing::kIslands;
using testing::same_bits;

StepperOptions options(double tolerance, ExecutorKind executor = ExecutorKind::serial) {
  StepperOptions o;
  o.method.impedance = {0.1};
  o.method.iterations = 200;
  o.method.tolerance = tolerance;
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
  std::vector<double> numbers;  ///< states and waves, part by part
};

std::vector<IslandStep> run_island(const System& system, int island, const StepperOptions& o,
                                   int steps) {
  Stepper stepper(system, o);
  const int first = system.find_part(std::to_string(island) + "_0");
  std::vector<IslandStep> out;
  for (int n = 0; n < steps; ++n) {
    stepper.step();
    IslandStep now{stepper.iterations_of_island(system.island_of_part(first)), {}};
    for (int k = 0; k < testing::kIslandParts[island]; ++k) {
      const int part = system.find_part(std::to_string(island) + "_" + std::to_string(k));
      now.numbers.insert(now.numbers.end(), stepper.state(part).begin(), stepper.state(part).end());
      const int port = system.first_scalar_port(part);
      now.numbers.insert(now.numbers.end(),
                         {stepper.incident_wave(port), stepper.outgoing_wave(port)});
    }
    out.push_back(std::move(now));
  }
  return out;
}

/// The islands [first, last) together with all others, and alone.
void expect_as_alone(int first, int last, double tolerance, ExecutorKind executor) {
  const System together = archipelago();
  ASSERT_EQ(together.island_count(), kIslands);
  for (int island = first; island < last; ++island) {
    const System alone = archipelago({island});
    ASSERT_EQ(alone.island_count(), 1);
    const auto expected = run_island(alone, island, options(tolerance), 6);
    const auto actual = run_island(together, island, options(tolerance, executor), 6);
    for (std::size_t n = 0; n < expected.size(); ++n) {
      const std::string where = std::string(to_string(executor)) + ", tolerance " +
                                ::testing::PrintToString(tolerance) + ", island " +
                                std::to_string(island) + ", step " + std::to_string(n);
      EXPECT_EQ(actual[n].iterations, expected[n].iterations) << where;
      ASSERT_TRUE(same_bits(actual[n].numbers, expected[n].numbers)) << where;
    }
  }
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

INSTANTIATE_TEST_SUITE_P(Executors, Islands,
                         ::testing::Values(ExecutorKind::serial, ExecutorKind::waves,
                                           ExecutorKind::graph, ExecutorKind::barrier),
                         [](const auto& each) { return std::string(to_string(each.param)); });

TEST(IslandsEnergy, TolerancesStopThemSeparatelyToo) {
  const System together = archipelago();
  StepperOptions o = options(0.0);
  o.method.energy_tolerance_J = 1e-6;
  Stepper stepper(together, o);
  const StepReport report = stepper.step();
  EXPECT_TRUE(report.converged);
  EXPECT_EQ(report.reason, StopReason::energy_tolerance);
  std::vector<int> iterations;
  for (int i = 0; i < kIslands; ++i) iterations.push_back(stepper.iterations_of_island(i));
  EXPECT_EQ(*std::max_element(iterations.begin(), iterations.end()), report.iterations);
  EXPECT_LT(*std::min_element(iterations.begin(), iterations.end()), report.iterations);
}

// The law above is about something: islands of one pack differ, and so do the large ones.
TEST(IslandsControl, TheyNeedDifferentNumbersOfIterations) {
  const System together = archipelago();
  const WaveDiscretisation waves(together, 0.01,
                                 std::vector<double>(together.scalar_ports().size(), 0.1));
  const auto pack = [&](int island) {
    return waves.pack_of_part(together.find_part(std::to_string(island) + "_0"));
  };
  EXPECT_EQ(waves.pack_count(), 3);
  for (int island = 1; island < 5; ++island) EXPECT_EQ(pack(island), pack(0)) << island;
  EXPECT_NE(pack(5), pack(6));
  Stepper stepper(together, options(1e-8));
  stepper.run(3);
  const auto iterations = [&](int island) {
    return stepper.iterations_of_island(
        together.island_of_part(together.find_part(std::to_string(island) + "_0")));
  };
  EXPECT_NE(iterations(5), iterations(6)) << "the two lines";
  std::set<int> in_one_pack;
  for (int island = 0; island < 5; ++island) in_one_pack.insert(iterations(island));
  EXPECT_GE(in_one_pack.size(), 3u);
  EXPECT_LT(std::max(iterations(5), *in_one_pack.begin()), 200) << "all spend their budget";
}

}  // namespace
}  // namespace portwave
