// Random networks in a few ways each. What fails is replayed with
//   portwave_repeatability_soak --family NAME --seed SEED --cases 1

#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "repeatability/networks.hpp"
#include "repeatability/run.hpp"
#include "repeatability/sweep.hpp"

namespace portwave::repeatability {
namespace {

class Repeatability : public ::testing::TestWithParam<std::string> {};

TEST_P(Repeatability, HoldsInEveryWay) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  Coverage coverage;
  std::string told;
  const Effort effort{.ways = 3, .rank_ways = 1, .most_steps = 100};
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    told += try_case(GetParam(), seed, effort, coverage);
  }
  fmt::print("{}: {}\n", GetParam(), coverage.text());
  EXPECT_EQ(told, "") << "replay: portwave_repeatability_soak --family NAME --seed SEED --cases 1";
}

/// The least change of a step shows.
TEST_P(Repeatability, Control_OneBitShows) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EXPECT_TRUE(notices_one_bit(GetParam(), seed)) << seed;
  }
}

/// Parts whose port solves are linearised by differences of a common size: the same however they are batched.
TEST(RepeatabilityOfLinearisations, DoesNotDependOnTheGrain) {
  const Case own = make_case("brakes", 116, 10);
  const Record expected = run(own, {});
  EXPECT_EQ(difference(expected, run(own, {.grain = Grain::per_part()})), "");
}

INSTANTIATE_TEST_SUITE_P(Random, Repeatability, ::testing::ValuesIn(families()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace portwave::repeatability
