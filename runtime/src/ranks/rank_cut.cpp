#include "ranks/rank_cut.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <span>
#include <utility>

#include "parallel/lane_groups.hpp"
#include "portwave/coupling/system/graph_partition.hpp"
#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

/// By island group: whether every rank is to step it.
std::vector<char> whole_groups(const WaveDiscretisation& waves, const Partition& partition,
                               bool may_solve) {
  std::vector<int> tasks(at(waves.island_group_count()), 0);
  for (const Partition::Task& task : partition.tasks) ++tasks[at(task.island_group)];
  std::vector<char> is_whole;
  is_whole.reserve(tasks.size());
  for (const int count : tasks) is_whole.push_back(may_solve && count == 1 ? 1 : 0);
  return is_whole;
}

/// Neighbouring tasks go to one rank, so that each has its share of the cost.
std::vector<int> deal_out(const Partition& partition, std::span<const char> is_whole, int ranks) {
  double total = 0.0, gathered = 0.0;
  for (const Partition::Task& task : partition.tasks) {
    if (is_whole[at(task.island_group)] == 0) total += task.cost_ns;
  }
  std::vector<int> rank_of_task;
  for (const Partition::Task& task : partition.tasks) {
    if (is_whole[at(task.island_group)] != 0) {
      rank_of_task.push_back(RankCut::kEvery);
      continue;
    }
    const double middle = gathered + 0.5 * task.cost_ns;
    const int rank = total > 0.0 ? static_cast<int>(ranks * (middle / total)) : 0;
    rank_of_task.push_back(std::clamp(rank, 0, ranks - 1));
    gathered += task.cost_ns;
  }
  return rank_of_task;
}

/// Some number by entry, of which each lane has one.
class ByEntry {
 public:
  explicit ByEntry(const WaveDiscretisation& waves)
      : waves_(waves), value_(at(waves.entry_count()), RankCut::kEvery) {}
  void set(const BatchRange& range, int value) {
    for (int l = range.lanes.first; l < range.lanes.last; ++l) {
      value_[at(waves_.batch(range.batch).entry + l)] = value;
    }
  }
  int of_lane(const BatchRange& range) const {
    return value_[at(waves_.batch(range.batch).entry + range.lanes.first)];
  }
  int of_wave(int wave) const { return value_[at(waves_.slot(waves_.part_of_wave(wave)).entry)]; }
  /// Waves of a junction by that number, in its order.
  void count(int junction, std::map<int, int>& waves) const {
    waves.clear();
    for (const int wave : waves_.interconnection().waves(junction)) ++waves[of_wave(wave)];
  }

 private:
  const WaveDiscretisation& waves_;
  std::vector<int> value_;
};

/// Waves that go from rank to rank in an evaluation.
std::int64_t exchanged(const WaveDiscretisation& waves, const RankCut& cut) {
  ByEntry rank(waves);
  for (std::size_t t = 0; t < cut.partition.tasks.size(); ++t) {
    for (const BatchRange& range : cut.partition.tasks[t].ranges) {
      rank.set(range, cut.rank_of_task[t]);
    }
  }
  std::int64_t sum = 0;
  std::map<int, int> of_rank;
  for (int j = 0; j < waves.interconnection().size(); ++j) {
    rank.count(j, of_rank);
    for (const auto& [own, count] : of_rank) {
      sum += count * static_cast<std::int64_t>(of_rank.size() - 1);
    }
  }
  return sum;
}

/// Work of the busiest rank over the mean.
double imbalance(const RankCut& cut, int ranks) {
  std::vector<double> work(at(ranks), 0.0);
  double sum = 0.0;
  for (std::size_t t = 0; t < cut.rank_of_task.size(); ++t) {
    if (cut.rank_of_task[t] == RankCut::kEvery) continue;
    work[at(cut.rank_of_task[t])] += cut.partition.tasks[t].cost_ns;
    sum += cut.partition.tasks[t].cost_ns;
  }
  return sum > 0.0 ? *std::ranges::max_element(work) * ranks / sum : 1.0;
}

/// Lane groups that are to stay together, numbered, and what two of those exchange.
class ExchangeGraph {
 public:
  ExchangeGraph(const WaveDiscretisation& waves, const std::vector<LaneGroupCost>& groups,
                std::span<const char> is_whole, int iterations)
      : vertex_of_(groups.size(), -1) {
    const std::vector<bool> may_be_cut = groups_of_one_island(waves);
    std::map<int, int> vertex_of_island_group;
    ByEntry vertex(waves);
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const LaneGroupCost& group = groups[i];
      if (is_whole[at(group.island_group)] != 0) continue;
      int number = static_cast<int>(weights_.size());
      if (!may_be_cut[at(group.island_group)]) {
        number = vertex_of_island_group.emplace(group.island_group, number).first->second;
      }
      if (std::cmp_equal(number, weights_.size())) weights_.push_back(0.0);
      weights_[at(number)] += group.step_ns(iterations);
      vertex_of_[i] = number;
      vertex.set(group.range, number);
    }
    add_junctions(waves, vertex);
  }

  /// By lane group.
  std::vector<int> cut(int ranks) const {
    const std::vector<int> part = cut_graph(weights_, edges_, ranks);
    std::vector<int> owner;
    for (const int vertex : vertex_of_) {
      owner.push_back(vertex < 0 ? RankCut::kEvery : part[at(vertex)]);
    }
    return owner;
  }

 private:
  void add_junctions(const WaveDiscretisation& waves, const ByEntry& vertex) {
    std::map<int, int> ends;
    for (int j = 0; j < waves.interconnection().size(); ++j) {
      vertex.count(j, ends);
      ends.erase(RankCut::kEvery);
      // In a row: of a junction of many, all pairs would be too many edges.
      for (auto it = ends.begin(); it != ends.end(); ++it) {
        const auto next = std::next(it);
        if (next != ends.end())
          edges_.push_back({it->first, next->first, it->second + next->second});
      }
    }
  }

  std::vector<int> vertex_of_;  // by lane group; −1: of no rank alone
  std::vector<double> weights_;
  std::vector<GraphEdge> edges_;
};

}  // namespace

RankCut cut_for_ranks(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                      int ranks, int threads, int iterations, bool may_solve, Ranks* agreeing) {
  std::vector<LaneGroupCost> groups = lane_groups(waves, costs);
  // What others wait for is solved first within a task, too: one is enough for one thread.
  const double per_thread = threads == 1 ? 1.0 : 2.0;
  RankCut along;
  along.partition = cut_into_tasks(waves, groups, grain, ranks * threads, iterations, per_thread);
  const std::vector<char> is_whole = whole_groups(waves, along.partition, may_solve);
  along.rank_of_task = deal_out(along.partition, is_whole, ranks);
  const std::int64_t waves_along = exchanged(waves, along);
  constexpr std::size_t kFewest = 8;  // lane groups of a rank that can make a block
  if (waves_along == 0 || ranks == 1 || groups.size() < kFewest * at(ranks)) return along;

  std::vector<int> owner(groups.size());
  if (agreeing == nullptr || agreeing->rank() == 0) {
    owner = ExchangeGraph(waves, groups, is_whole, iterations).cut(ranks);
  }
  if (agreeing != nullptr) agreeing->broadcast(std::as_writable_bytes(std::span(owner)));
  for (std::size_t i = 0; i < groups.size(); ++i) groups[i].owner = owner[i];
  sort_by_owner(groups);
  RankCut by_graph;
  by_graph.is_by_graph = true;
  by_graph.partition =
      cut_into_tasks(waves, groups, grain, ranks * threads, iterations, per_thread);
  ByEntry rank(waves);
  for (const LaneGroupCost& group : groups) rank.set(group.range, group.owner);
  for (const Partition::Task& task : by_graph.partition.tasks) {
    const BatchRange& range = task.ranges.front();
    by_graph.rank_of_task.push_back(rank.of_lane(range));
  }
  constexpr double kWorthIt = 0.9, kUneven = 1.05;
  const bool is_better = static_cast<double>(exchanged(waves, by_graph)) <=
                             kWorthIt * static_cast<double>(waves_along) &&
                         imbalance(by_graph, ranks) <= kUneven * imbalance(along, ranks);
  return is_better ? by_graph : along;
}

RankCut cut_of_slice(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                     int threads, int iterations) {
  const SystemSlice& slice = *waves.system().slice();
  std::vector<LaneGroupCost> groups = lane_groups(waves, costs);
  for (LaneGroupCost& group : groups) {
    const int part = waves.batch(group.range.batch).parts[at(group.range.lanes.first)];
    group.owner = slice.ranks[at(part)];
  }
  sort_by_owner(groups);
  RankCut cut;
  cut.partition =
      cut_into_tasks(waves, groups, grain, threads, iterations, threads == 1 ? 1.0 : 2.0);
  for (const Partition::Task& task : cut.partition.tasks) {
    const BatchRange& first = task.ranges.front();
    cut.rank_of_task.push_back(
        slice.ranks[at(waves.batch(first.batch).parts[at(first.lanes.first)])]);
  }
  return cut;
}

}  // namespace portwave
