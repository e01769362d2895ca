// A step on many ranks: by hand, by a closed formula, and event by event.

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "rank_study/rank_model.hpp"

namespace portwave {
namespace {

using Edges = std::vector<std::pair<int, int>>;

RankStepModel model_of(int ranks, const Edges& edges) {
  RankStepModel model;
  model.ranks.resize(static_cast<std::size_t>(ranks));
  for (RankWork& rank : model.ranks) rank.parts = 10;
  for (const auto& [a, b] : edges) {
    model.ranks[static_cast<std::size_t>(a)].messages.push_back({b, 80});
    model.ranks[static_cast<std::size_t>(b)].messages.push_back({a, 80});
  }
  return model;
}

Edges chain(int ranks) {
  Edges edges;
  for (int r = 0; r + 1 < ranks; ++r) edges.emplace_back(r, r + 1);
  return edges;
}

Edges grid(int rows, int columns) {
  Edges edges;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int r = i * columns + j;
      if (j + 1 < columns) edges.emplace_back(r, r + 1);
      if (i + 1 < rows) edges.emplace_back(r, r + columns);
    }
  }
  return edges;
}

Edges random_graph(int ranks, int count, unsigned seed) {
  std::mt19937 random(seed);
  std::set<std::pair<int, int>> edges;
  for (const auto& edge : chain(ranks)) edges.insert(edge);
  while (static_cast<int>(edges.size()) < ranks - 1 + count) {
    const auto pick = [&] { return static_cast<int>(random() % static_cast<unsigned>(ranks)); };
    const int a = pick(), b = pick();
    if (a < b) edges.emplace(a, b);
  }
  return {edges.begin(), edges.end()};
}

TEST(RankModel, SchedulesTasksInOrder) {
  const double tasks[] = {3.0, 1.0, 1.0, 4.0};
  EXPECT_EQ(list_schedule_s(tasks, 1), 9.0);
  EXPECT_EQ(list_schedule_s(tasks, 2), 6.0);  // {3}, {1, 1, 4}
  EXPECT_EQ(list_schedule_s(tasks, 9), 4.0);
  EXPECT_EQ(list_schedule_s({}, 3), 0.0);
}

TEST(RankModel, GathersByDoubling) {
  const Interconnect network{.latency_s = 10.0, .bandwidth_B_per_s = 8.0};
  EXPECT_EQ(gather_s(64.0, 1, network), 0.0);
  EXPECT_EQ(gather_s(64.0, 2, network), 10.0 + 4.0);  // half of it is there already
  EXPECT_EQ(gather_s(64.0, 8, network), 30.0 + 7.0);
  EXPECT_EQ(gather_s(0.0, 5, network), 30.0);
  // Of eight ranks: eight bytes in each of three rounds, and the others' notes on the way.
  EXPECT_EQ(exchange_s(8.0, 64.0, 8, network), 30.0 + 3.0 + 7.0);
  EXPECT_EQ(exchange_s(8.0, 64.0, 1, network), 0.0);
  EXPECT_EQ(broadcast_s(8.0, 1, network), 0.0);
  EXPECT_EQ(broadcast_s(8.0, 8, network), 33.0);
  EXPECT_EQ(broadcast_s(8.0, 5, network), 23.0);  // two hops, behind another message
}

/// Two ranks, one evaluation. α = 10, a byte takes 1/8.
TEST(RankSimulation, OfTwoRanksIsAsByHand) {
  RankStepModel model;
  model.iterations = 1;
  model.begin_s = 0.5;
  model.common_s = 0.25;
  model.order_bytes = 16;
  model.ranks = {{1.0, 2.0, 3.0, 1, 4, 7, 4, {{1, 8}}}, {1.0, 2.0, 3.0, 1, 4, 7, 4, {{0, 8}}}};
  const Interconnect network{.latency_s = 10.0, .bandwidth_B_per_s = 8.0};
  // Rank 1 has the order at 12, and sends its waves at 13.5, which rank 0 has at 24.5. Rank 0 commits
  // until 27.5; then its committed waves leave until 28.5, its entry until 29.5, and are there at 39.5.
  EXPECT_DOUBLE_EQ(simulate_ranks(model, network), 39.75);
  const RankStepTime time = rank_step_time(model, network);
  EXPECT_DOUBLE_EQ(time.work_s, 6.0);
  EXPECT_DOUBLE_EQ(time.imbalance_s, 0.0);
  EXPECT_DOUBLE_EQ(time.common_s, 0.75);
  EXPECT_DOUBLE_EQ(time.messages_s, 9.0 + 1.0);  // 11 behind 2 of work; and leaving at the end
  EXPECT_DOUBLE_EQ(time.gathers_s, 12.0 + 10.0 + 1.0);  // order; eight of sixteen bytes
  EXPECT_DOUBLE_EQ(time.total_s(), 39.75);
  // For gaps that are judged there is one more exchange: seven bytes, and one that says how it went.
  model.is_judged = true;
  EXPECT_DOUBLE_EQ(rank_step_time(model, network).total_s(), 39.75 + 11.0);
  EXPECT_DOUBLE_EQ(simulate_ranks(model, network), 39.75 + 11.0);
  // What comes is copied: 7 and 4 bytes.
  model.copy_s_per_B = 0.5;
  EXPECT_DOUBLE_EQ(rank_step_time(model, network).common_s, 0.75 + 5.5);
  EXPECT_DOUBLE_EQ(simulate_ranks(model, network), 39.75 + 16.5);
  model.copy_s_per_B = 0.0;
  // No rank waits for a message that is there: all is work.
  const Interconnect free{.latency_s = 0.0, .bandwidth_B_per_s = 1e300};
  EXPECT_DOUBLE_EQ(simulate_ranks(model, free), 6.75);
  EXPECT_DOUBLE_EQ(rank_step_time(model, free).total_s(), 6.75);
}

TEST(RankSimulation, OfOneRankIsItsWork) {
  RankStepModel model;
  model.iterations = 7;
  model.begin_s = 1.0;
  model.common_s = 2.0;
  model.is_driven = true;
  model.is_judged = true;
  model.copy_s_per_B = 1.0;
  model.ranks = {{0.0, 3.0, 4.0, 100, 24, 2400, 0, {}}};
  EXPECT_DOUBLE_EQ(simulate_ranks(model, {}), 28.0);
  EXPECT_DOUBLE_EQ(rank_step_time(model, {}).total_s(), 28.0);
}

/// Three in a row, of which the last is slow: the first, two away, is held up by and by.
TEST(RankSimulation, WaitsForNeighboursOnly) {
  RankStepModel model = model_of(3, chain(3));
  const Interconnect free{.latency_s = 0.0, .bandwidth_B_per_s = 1e300};
  for (RankWork& rank : model.ranks) rank.edge_s = 1.0;
  model.iterations = 10;
  EXPECT_DOUBLE_EQ(simulate_ranks(model, free), 10.0);
  model.ranks[2].edge_s = 2.0;
  EXPECT_DOUBLE_EQ(simulate_ranks(model, free), 20.0);
  // A slow message between the first two is hidden by the third's work in part: the formula is above.
  model.ranks[2].edge_s = 1.0;
  model.ranks[2].core_s = 1.0;
  const Interconnect slow{.latency_s = 1.0, .bandwidth_B_per_s = 1e300};
  EXPECT_LE(simulate_ranks(model, slow), rank_step_time(model, slow).total_s());
}

struct Family {
  std::string name;
  RankStepModel model;
};

std::vector<Family> families() {
  std::vector<Family> all;
  for (const int ranks : {2, 3, 7, 16, 61, 128}) {
    all.push_back({"chain of " + std::to_string(ranks), model_of(ranks, chain(ranks))});
  }
  all.push_back({"grid of 8 by 8", model_of(64, grid(8, 8))});
  all.push_back({"grid of 5 by 13", model_of(65, grid(5, 13))});
  for (unsigned seed = 1; seed <= 6; ++seed) {
    all.push_back(
        {"random graph " + std::to_string(seed), model_of(48, random_graph(48, 40, seed))});
  }
  return all;
}

/// Work of up to `spread` more on some ranks than on others.
void give_work(RankStepModel& model, double edge_s, double core_s, double spread, unsigned seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<double> more(1.0, 1.0 + spread);
  model.iterations = 20;
  model.begin_s = 3e-6;
  model.common_s = 5e-6;
  model.order_bytes = 16;
  for (RankWork& rank : model.ranks) {
    const double own = more(random);
    rank.edge_s = own * edge_s;
    rank.core_s = own * core_s;
    rank.commit_s = own * core_s;
    rank.note_bytes = 24;
  }
}

constexpr double kBound = 0.1;

template <class Check>
void for_all_models(const Check& check) {
  for (const Family& family : families()) {
    for (const auto& [edge_s, core_s] :
         {std::pair{1e-6, 50e-6}, std::pair{1e-6, 1e-6}, std::pair{20e-6, 0.0}}) {
      for (const int bytes : {0, 24}) {
        RankStepModel model = family.model;
        give_work(model, edge_s, core_s, 0.3, 11);
        model.is_judged = bytes > 0;
        for (RankWork& rank : model.ranks) {
          rank.evaluation_bytes = rank.parts * bytes;
          rank.step_bytes = rank.parts * (bytes + 56);
        }
        check(model, family.name + ", core " + std::to_string(1e6 * core_s) + " us, " +
                         std::to_string(bytes) + " bytes");
      }
    }
  }
}

TEST(RankModel, AgreesWithTheSimulation) {
  double worst = 0.0;
  for_all_models([&](const RankStepModel& model, const std::string& what) {
    const double closed_s = rank_step_time(model, {}).total_s();
    const double simulated_s = simulate_ranks(model, {});
    EXPECT_EQ(simulated_s, simulate_ranks(model, {})) << "not deterministic: " << what;
    EXPECT_NEAR(simulated_s, closed_s, kBound * closed_s) << what;
    EXPECT_LE(simulated_s, closed_s * (1.0 + 1e-12)) << what;
    worst = std::max(worst, std::abs(simulated_s / closed_s - 1.0));
  });
  RecordProperty("worst", std::to_string(worst));
}

/// A formula of another latency, of no gathers, or of no messages is seen to disagree.
TEST(RankModelControl, AnotherModelDisagrees) {
  for_all_models([&](const RankStepModel& model, const std::string& what) {
    if (!model.is_judged) return;
    const double simulated_s = simulate_ranks(model, {});
    RankStepModel unjudged = model;
    unjudged.is_judged = false;
    for (const double closed_s : {rank_step_time(model, {.latency_s = 8e-6}).total_s(),
                                  rank_step_time(unjudged, {}).total_s()}) {
      const bool is_noticed = std::abs(simulated_s - closed_s) > kBound * closed_s;
      // Behind much work a message or a gather is little.
      if (model.ranks.front().edge_s + model.ranks.front().core_s < 10e-6) {
        EXPECT_TRUE(is_noticed) << what;
      }
    }
  });
}

TEST(RankSimulation, OfTenThousandRanks) {
  RankStepModel model = model_of(10'000, grid(100, 100));
  give_work(model, 1e-6, 20e-6, 0.0, 1);
  model.iterations = 10;
  model.is_judged = true;
  for (RankWork& rank : model.ranks) {
    rank.evaluation_bytes = 24 * rank.parts;
    rank.step_bytes = 80 * rank.parts;
  }
  const double closed_s = rank_step_time(model, {}).total_s();
  EXPECT_NEAR(simulate_ranks(model, {}), closed_s, 0.02 * closed_s);
}

TEST(RankModel, RefusesMessagesToNobody) {
  for (const int to : {-1, 2, 0}) {
    RankStepModel model = model_of(2, {});
    model.ranks[0].messages.push_back({to, 8});
    EXPECT_THROW(rank_step_time(model, {}), std::invalid_argument) << to;
    EXPECT_THROW(simulate_ranks(model, {}), std::invalid_argument) << to;
  }
}

}  // namespace
}  // namespace portwave
