// How a scenario would be dealt out to ranks: every part once, messages as the network says, and a time that
// adds up.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>

#include <gtest/gtest.h>

#include "rank_study/rank_plan.hpp"
#include "support/systems/systems.hpp"

namespace portwave {
namespace {

Scenario scenario_of(System system, const CouplingMethod& method) {
  StepperOptions options;
  options.step_s = 0.01;
  options.method = method;
  return {"chain", std::move(system), options, 10};
}

Scenario chain(int blocks) {
  CouplingMethod method = WaveCoupling{};
  method.waves().iterations = 3;
  method.waves().guard = false;
  return scenario_of(testing::chain_of_blocks(blocks, 3), method);
}

TEST(RankPlan, OfAChainHasTwoMessagesForEachCut) {
  const Scenario scenario = chain(1025);
  for (const int ranks : {1, 2, 5, 8}) {
    const RankPlan plan = plan_ranks(scenario, {.ranks = ranks});
    ASSERT_EQ(plan.ranks.size(), static_cast<std::size_t>(ranks));
    std::int64_t parts = 0;
    for (const PlannedRank& rank : plan.ranks) parts += rank.parts;
    EXPECT_EQ(parts + plan.whole_parts, 1025);
    EXPECT_EQ(plan.messages, 2 * (ranks - 1)) << ranks;
    EXPECT_EQ(plan.waves_sent, 2 * (ranks - 1)) << ranks;
    EXPECT_NEAR(plan.iterations, 3.0, 1e-12);
    EXPECT_EQ(plan.gathered_bytes_per_evaluation, 0);
    // In each round: seven values of a branch, six entries of each part of a chunk that is cut.
    const int rounds = ranks == 1 ? 0 : ranks == 2 ? 1 : 3;
    EXPECT_LE(plan.gathered_bytes_per_step, rounds * (8 * 7 * 8 + 126 * 6 * 8));
    EXPECT_EQ(plan.gathered_bytes_per_step > 0, ranks > 1);
    EXPECT_GE(plan.imbalance(), 1.0);
    EXPECT_LT(plan.imbalance(), 1.7) << ranks;
  }
}

/// α and β enter as the model says, whatever the machine measures.
TEST(RankPlan, WaitsAsTheModelSays) {
  const Scenario scenario = chain(64);
  const double alpha = 1e-3, beta = 1e6;
  const RankPlan plan =
      plan_ranks(scenario, {.ranks = 4, .latency_s = alpha, .bandwidth_B_per_s = beta});
  // Rank 0 tells the others to step; the ledger and how it went are gathered by doubling.
  const Interconnect network{alpha, beta};
  const auto settings = static_cast<double>(scenario.system.initial_settings().size());
  const double gathers_s =
      broadcast_s(16.0 + 8.0 * settings, 4, network) +
      exchange_s(static_cast<double>(plan.gathered_bytes_per_step) / 2.0, 4.0 * 24.0, 4, network);
  EXPECT_NEAR(plan.time.gathers_s, gathers_s, 1e-12);
  // Ranks in the middle send two waves, and may hide some of that behind their own work.
  const double message_s = alpha + 2.0 * 8.0 / beta;
  double work_s = 0.0;
  for (const PlannedRank& rank : plan.ranks) work_s = std::max(work_s, rank.iterate_s);
  EXPECT_LE(plan.time.messages_s, 3.0 * message_s + 2.0 * 8.0 / beta + 1e-12);
  EXPECT_GE(plan.time.messages_s, 3.0 * message_s - work_s);
  EXPECT_EQ(plan.waiting_s, plan.time.messages_s + plan.time.gathers_s);
  EXPECT_GE(plan.step_s, plan.waiting_s + plan.common_s);
  EXPECT_LT(plan.speed_up(), 1.0);
}

TEST(RankPlan, CountsWhatGapsAreJudgedBy) {
  CouplingMethod method = WaveCoupling{};
  method.waves().iterations = 40;
  method.waves().tolerance = 1e-9;
  const RankPlan plan =
      plan_ranks(scenario_of(testing::chain_of_blocks(64, 3), method), {.ranks = 2});
  // Of the only chunk each has a part, as costs were measured.
  EXPECT_GE(plan.gathered_bytes_per_evaluation, 3 * 8 * 32);
  EXPECT_LE(plan.gathered_bytes_per_evaluation, 3 * 8 * 63);
  EXPECT_GT(plan.iterations, 3.0);
}

TEST(RankPlan, RefusesWhatIsNoCluster) {
  const Scenario scenario = chain(8);
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_THROW(plan_ranks(scenario, {.ranks = 0}), std::invalid_argument);
  EXPECT_THROW(plan_ranks(scenario, {.threads = 0}), std::invalid_argument);
  EXPECT_THROW(plan_ranks(scenario, {.latency_s = -1.0}), std::invalid_argument);
  EXPECT_THROW(plan_ranks(scenario, {.latency_s = infinite}), std::invalid_argument);
  EXPECT_THROW(plan_ranks(scenario, {.bandwidth_B_per_s = 0.0}), std::invalid_argument);
  EXPECT_THROW(plan_ranks(scenario, {.steps = 0}), std::invalid_argument);
  Scenario without = chain(8);
  without.options.method = CouplingMethod(Splitting{});
  EXPECT_THROW(plan_ranks(without, {}), ConfigError);
}

}  // namespace
}  // namespace portwave
