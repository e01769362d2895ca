// Cutting weighted graphs: what is known of small ones.

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <portwave/coupling/system/graph_partition.hpp>

namespace portwave::test_graph_cut {
namespace {

/// rows × columns vertices, joined to their neighbours.
std::vector<GraphEdge> grid(int rows, int columns) {
  std::vector<GraphEdge> edges;
  for (int i = 0; i < rows; ++i) {
    for (int j = 0; j < columns; ++j) {
      const int v = i * columns + j;
      if (j + 1 < columns) edges.push_back({v, v + 1});
      if (i + 1 < rows) edges.push_back({v + columns, v});
    }
  }
  return edges;
}

int cut_weight(const std::vector<GraphEdge>& edges, const std::vector<int>& part) {
  int sum = 0;
  for (const GraphEdge& e : edges) {
    if (part[static_cast<std::size_t>(e.a)] != part[static_cast<std::size_t>(e.b)]) sum += e.weight;
  }
  return sum;
}

TEST(GraphCut, OfAGridIsNearAStraightLine) {
  const std::vector<GraphEdge> edges = grid(24, 40);
  const std::vector<int> part = cut_graph(std::vector<double>(24 * 40, 1.0), edges, 2);
  EXPECT_LE(cut_weight(edges, part), 40);
  EXPECT_GE(cut_weight(edges, part), 24) << "less than the shortest line: the count is wrong";
  const auto first = std::ranges::count(part, 0);
  EXPECT_NEAR(static_cast<double>(first), 480.0, 20.0);
  // Control: a cut at random is far worse.
  std::vector<int> scattered;
  for (int i = 0; i < 24 * 40; ++i) scattered.push_back(i * 7 % 2);
  EXPECT_GT(cut_weight(edges, scattered), 500);
}

TEST(GraphCut, AvoidsHeavyEdges) {
  // A row in which every second edge is heavy.
  std::vector<GraphEdge> edges;
  for (int i = 0; i + 1 < 40; ++i) edges.push_back({i, i + 1, i % 2 == 0 ? 1000 : 1});
  const std::vector<int> part = cut_graph(std::vector<double>(40, 1.0), edges, 4);
  EXPECT_LT(cut_weight(edges, part), 10);
}

TEST(GraphCut, EvensOutWeights) {
  // The first fifth of a row weighs as much as all others.
  std::vector<double> weights(120, 1.0);
  std::fill_n(weights.begin(), 20, 5.0);
  std::vector<GraphEdge> edges;
  for (int i = 0; i + 1 < 120; ++i) edges.push_back({i, i + 1});
  const std::vector<int> part = cut_graph(weights, edges, 2);
  double with = 0.0, all = 0.0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    all += weights[i];
    if (part[i] == part[0]) with += weights[i];
  }
  EXPECT_LT(with, 0.55 * all);
  EXPECT_GT(with, 0.45 * all);
}

TEST(GraphCut, NumbersPartsByTheirFirstVertices) {
  const std::vector<GraphEdge> edges = grid(16, 16);
  const std::vector<int> part = cut_graph(std::vector<double>(256, 1e-9), edges, 8);
  int next = 0;
  for (const int own : part) {
    ASSERT_LE(own, next);
    if (own == next) ++next;
  }
  EXPECT_EQ(next, 8);
  EXPECT_EQ(part, cut_graph(std::vector<double>(256, 1e-9), edges, 8));
  EXPECT_EQ(part, cut_graph(std::vector<double>(256, 1e9), edges, 8)) << "units do not matter";
}

TEST(GraphCut, TakesWhatIsHardlyAGraph) {
  EXPECT_EQ(cut_graph({}, {}, 3), std::vector<int>());
  EXPECT_EQ(cut_graph(std::vector<double>{1.0}, {}, 3), std::vector<int>{0});
  EXPECT_EQ(cut_graph(std::vector<double>{1.0, 1.0}, {}, 1), (std::vector<int>{0, 0}));
  const std::vector<GraphEdge> to_itself = {{0, 0, 5}};
  EXPECT_EQ(cut_graph(std::vector<double>{0.0, 0.0}, to_itself, 2).size(), 2U);
}

}  // namespace
}  // namespace portwave::test_graph_cut
