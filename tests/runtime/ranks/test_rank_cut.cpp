// How a system is dealt out to ranks: every lane once, little to exchange, even work. What is exchanged is
// counted here from the junctions of the system.

#include <algorithm>
#include <cstddef>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "ranks/rank_cut.hpp"
#include "support/systems/coupled_systems.hpp"
#include "support/systems/networks.hpp"
#include "support/systems/systems.hpp"

namespace portwave::test_rank_cut {
namespace {

struct Cut {
  Cut(const System& system, int ranks, bool may_solve = false, int threads = 1)
      : waves(system, 0.01, std::vector<double>(system.scalar_ports().size(), 1.0)),
        made(cut_for_ranks(waves, declared_costs(waves), Grain::automatic(), ranks, threads, 5,
                           may_solve)) {}

  /// By part; parts that are in no task, or in two, fail the test.
  std::vector<int> ranks() const {
    std::vector<int> rank(waves.slots().size(), -2);
    for (std::size_t t = 0; t < made.partition.tasks.size(); ++t) {
      for (const BatchRange& range : made.partition.tasks[t].ranges) {
        const std::vector<int>& parts = waves.batch(range.batch).parts;
        for (int l = range.lanes.first; l < range.lanes.last; ++l) {
          int& own = rank[static_cast<std::size_t>(parts[static_cast<std::size_t>(l)])];
          EXPECT_EQ(own, -2) << "in two tasks";
          own = made.rank_of_task[t];
        }
      }
    }
    EXPECT_EQ(std::ranges::count(rank, -2), 0) << "in no task";
    return rank;
  }

  WaveDiscretisation waves;
  RankCut made;
};

/// Connections between parts of different ranks.
int connections_cut(const System& system, const std::vector<int>& rank) {
  int count = 0;
  for (const Junction& junction : system.junctions()) {
    std::set<int> ranks;
    for (const int port : junction.waves) {
      ranks.insert(rank[static_cast<std::size_t>(
          system.scalar_ports()[static_cast<std::size_t>(port)].part)]);
    }
    count += static_cast<int>(ranks.size()) - 1;
  }
  return count;
}

TEST(RankCut, OfALargeGridIsMadeOfBlocks) {
  const System system = testing::duffing_grid(96, 96);
  const Cut cut(system, 16);
  EXPECT_TRUE(cut.made.is_by_graph);
  const std::vector<int> rank = cut.ranks();
  // Strips cut 15 lines of 96, blocks 6.
  EXPECT_LT(connections_cut(system, rank), 15 * 96 * 9 / 10);
  EXPECT_GE(connections_cut(system, rank), 5 * 96);
  std::map<int, int> parts;
  for (const int own : rank) ++parts[own];
  ASSERT_EQ(parts.size(), 16U);
  for (const auto& [own, count] : parts) EXPECT_NEAR(count, 576, 60) << "rank " << own;
}

TEST(RankCut, OfAChainIsAlongIt) {
  const System system = testing::chain_of_blocks(512, 3);
  for (const int ranks : {2, 7}) {
    const Cut cut(system, ranks);
    EXPECT_FALSE(cut.made.is_by_graph);
    EXPECT_EQ(connections_cut(system, cut.ranks()), ranks - 1);
  }
}

TEST(RankCut, IsTheSameAgain) {
  const System system = testing::duffing_grid(64, 64);
  const Cut one(system, 8, false, 2), other(system, 8, false, 2);
  EXPECT_EQ(one.made.rank_of_task, other.made.rank_of_task);
  EXPECT_EQ(one.ranks(), other.ranks());
}

TEST(RankCut, LeavesSmallIslandsToOneRankOrToAll) {
  SystemBuilder builder;
  for (int i = 0; i < 40; ++i) {
    const std::string n = std::to_string(i);
    builder.add("d" + n, duffing_oscillator({.mass_kg = 1.0 + i,
                                             .stiffness_N_per_m = 20,
                                             .cubic_stiffness_N_per_m3 = 300,
                                             .coupling_stiffness_N_per_m = 10}));
    builder.add("l" + n, linear_oscillator({.mass_kg = 2, .stiffness_N_per_m = 8}));
    builder.connect("d" + n + ".coupling", "l" + n + ".coupling");
  }
  const System system = builder.build();
  const Cut cut(system, 3), whole(system, 3, true);
  EXPECT_EQ(connections_cut(system, cut.ranks()), 0);
  for (const int own : whole.ranks()) EXPECT_EQ(own, RankCut::kEvery);
}

TEST(RankCut, OfOneRankIsAllOfIt) {
  const System system = testing::duffing_grid(12, 12);
  for (const int own : Cut(system, 1).ranks()) EXPECT_EQ(own, 0);
}

}  // namespace
}  // namespace portwave::test_rank_cut
