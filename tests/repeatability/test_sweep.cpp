// Random networks in a few ways each. What fails is replayed with
//   portwave_repeatability_soak --family NAME --seed SEED --cases 1

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <oneapi/tbb/global_control.h>

#include "portwave/runtime/step/wave_view.hpp"
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

/// Steps that diodes and switches have taken in pieces: ranks decide that together.
TEST(RepeatabilityOfPieces, HoldsOnRanks) {
  const Case own = make_case("circuit", 20261305, 60);
  const Record expected = run(own, {});
  const Way way{.executor = ExecutorKind::automatic, .ranks = 2};
  EXPECT_EQ(difference(expected, run(own, way)), "");
  Stepper stepper(*own.system, own.options);
  stepper.step(60);
  EXPECT_NE(stepper.waves()->integrator().find("pieces"), std::string::npos) << "control";
}

/// Attempts that other steps replace are not summed up: their sums of chunks are none of the step that stands.
TEST(RepeatabilityOfLedgers, ForgetsReplacedAttempts) {
  const Case own = make_case("struck", 20261136);
  const Way way{.executor = ExecutorKind::automatic, .threads = 2, .ranks = 2, .look_every = 1000};
  const Record expected = run(own, {.look_every = 1000});
  EXPECT_GT(expected.rejected_steps, 0) << "control";
  EXPECT_EQ(difference(expected, run(own, way)), "");
}

/// Kicks and drifts and Taylor series, steps of one size and chosen ones.
TEST(RepeatabilityOfExplicitSteps, HoldsInEveryWay) {
  const tbb::global_control allowed(tbb::global_control::max_allowed_parallelism, 8);
  const Way ways[] = {{.executor = ExecutorKind::async, .threads = 2},
                      {.executor = ExecutorKind::async, .threads = 4, .grain = Grain::of_parts(4)},
                      {.executor = ExecutorKind::automatic, .ranks = 2}};
  std::map<SplittingKind, int> cases;
  int chosen = 0, controls = 0;
  for (const std::string& family : families()) {
    for (std::uint64_t seed = 1; seed <= 7; ++seed) {
      const std::optional<Case> own = make_explicit_case(family, seed, 60);
      if (!own) continue;
      ++cases[own->options.method.splitting().kind];
      chosen += own->options.sizes ? 1 : 0;
      const Record expected = run(*own, {});
      for (const Way& way : ways) {
        EXPECT_EQ(difference(expected, run(*own, way)), "")
            << family << " " << seed << ": " << own->what << "; " << to_string(way);
      }
      Case other = *own;
      other.options.step_s = std::nextafter(own->options.step_s, 1.0);
      other.options.sizes.reset();
      Case fixed = *own;
      fixed.options.sizes.reset();
      const Record of_fixed = run(fixed, {});
      if (!of_fixed.failed.empty()) continue;  // at its first step, maybe
      EXPECT_NE(difference(of_fixed, run(other, {})), "") << own->what << ", control";
      ++controls;
    }
  }
  fmt::print("{} by kicks and drifts, {} by Taylor series, {} in chosen steps\n",
             cases[SplittingKind::kick_drift], cases[SplittingKind::taylor], chosen);
  EXPECT_GE(cases[SplittingKind::kick_drift], 4);
  EXPECT_GE(cases[SplittingKind::taylor], 3);
  EXPECT_GE(chosen, 2);
  EXPECT_GE(controls, 10);
}

INSTANTIATE_TEST_SUITE_P(Random, Repeatability, ::testing::ValuesIn(families()),
                         [](const auto& each) { return each.param; });

}  // namespace
}  // namespace portwave::repeatability
