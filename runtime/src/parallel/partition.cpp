#include "portwave/runtime/parallel/partition.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <limits>
#include <set>

#include "parallel/clock.hpp"
#include "parallel/lane_groups.hpp"

namespace portwave {
namespace {

using Item = LaneGroupCost;

void append(Partition::Task& task, const Item& item) {
  task.cost_ns += item.scatter_ns;
  // A range further back could be continued too; it need not.
  constexpr std::size_t kLookBack = 16;
  const std::size_t count = task.ranges.size();
  for (std::size_t i = count; i-- > (count > kLookBack ? count - kLookBack : 0);) {
    BatchRange& range = task.ranges[i];
    if (range.batch == item.range.batch && range.lanes.last == item.range.lanes.first) {
      range.lanes.last = item.range.lanes.last;
      return;
    }
  }
  task.ranges.push_back(item.range);
}

/// Puts an item into the task in which the middle of it lies, tasks being `wanted` long.
template <class Size>
Partition cut(const WaveDiscretisation& waves, const std::vector<Item>& items, double wanted,
              const Size& size) {
  const std::vector<bool> divisible = groups_of_one_island(waves);
  Partition out;
  double gathered = 0.0;
  int previous_island_group = -1, previous_owner = 0;
  double previous_task = 0.0;
  for (const Item& item : items) {
    const double own = size(item);
    const bool begins = item.island_group != previous_island_group || item.owner != previous_owner;
    if (begins) gathered = 0.0;
    const double task = divisible[static_cast<std::size_t>(item.island_group)] && wanted > 0.0
                            ? std::floor((gathered + 0.5 * own) / wanted)
                            : 0.0;
    if (begins || task != previous_task) {
      out.tasks.push_back({item.island_group, {}, 0.0});
    }
    append(out.tasks.back(), item);
    gathered += own;
    previous_island_group = item.island_group;
    previous_owner = item.owner;
    previous_task = task;
    out.iteration_cost_ns += item.scatter_ns;
    out.commit_cost_ns += item.advance_ns;
  }
  return out;
}

/// Σ over junctions of (tasks it touches)², where it touches more than one: directed messages.
std::size_t message_count(const WaveDiscretisation& waves, const Partition& partition) {
  std::vector<int> task_of_entry(static_cast<std::size_t>(waves.entry_count()), -1);
  for (std::size_t t = 0; t < partition.tasks.size(); ++t) {
    for (const BatchRange& range : partition.tasks[t].ranges) {
      for (int l = range.lanes.first; l < range.lanes.last; ++l) {
        task_of_entry[static_cast<std::size_t>(waves.batch(range.batch).entry + l)] =
            static_cast<int>(t);
      }
    }
  }
  std::size_t count = 0;
  std::set<int> touched;
  const Interconnection& coupling = waves.interconnection();
  for (int j = 0; j < coupling.size(); ++j) {
    touched.clear();
    for (const int wave : coupling.waves(j)) {
      const int entry = waves.slot(waves.part_of_wave(wave)).entry;
      touched.insert(task_of_entry[static_cast<std::size_t>(entry)]);
    }
    if (touched.size() > 1) count += touched.size() * (touched.size() - 1);
  }
  return count;
}

}  // namespace

std::vector<LaneGroupCost> lane_groups(const WaveDiscretisation& waves, const LaneCosts& costs) {
  std::vector<Item> items;
  for (int b = 0; b < static_cast<int>(waves.batches().size()); ++b) {
    const BatchSlot& slot = waves.batch(b);
    const int group = slot.batch->lane_group();
    for (int first = 0; first < slot.batch->lanes(); first += group) {
      const int last = std::min(first + group, slot.batch->lanes());
      const int part = slot.parts[static_cast<std::size_t>(first)];
      const double count = last - first;
      items.push_back({slot.island_group,
                       0,
                       waves.position_of_part(part),
                       {b, {first, last}},
                       last - first,
                       count * costs.scatter_ns[static_cast<std::size_t>(b)],
                       count * costs.advance_ns[static_cast<std::size_t>(b)]});
    }
  }
  sort_by_owner(items);
  return items;
}

void sort_by_owner(std::vector<LaneGroupCost>& groups) {
  std::sort(groups.begin(), groups.end(), [](const Item& x, const Item& y) {
    return std::tie(x.island_group, x.owner, x.place, x.range.batch) <
           std::tie(y.island_group, y.owner, y.place, y.range.batch);
  });
}

std::vector<bool> groups_of_one_island(const WaveDiscretisation& waves) {
  std::vector<int> island(static_cast<std::size_t>(waves.island_group_count()), -1);
  std::vector<bool> single(island.size(), true);
  for (int part = 0; part < static_cast<int>(waves.slots().size()); ++part) {
    const auto island_group = static_cast<std::size_t>(waves.island_group_of_part(part));
    const int own = waves.system().island_of_part(part);
    if (island[island_group] >= 0 && island[island_group] != own) single[island_group] = false;
    island[island_group] = own;
  }
  return single;
}

std::string to_string(Grain grain) {
  switch (grain.kind) {
    case Grain::Kind::automatic:
      return "auto";
    case Grain::Kind::part:
      return "part";
    case Grain::Kind::parts:
      return std::to_string(grain.count);
  }
  return "unknown";
}

LaneCosts declared_costs(const WaveDiscretisation& waves) {
  LaneCosts costs;
  for (const BatchSlot& slot : waves.batches()) {
    costs.scatter_ns.push_back(slot.batch->scatter_cost_ns());
    costs.advance_ns.push_back(slot.batch->advance_cost_ns());
  }
  return costs;
}

LaneCosts measured_costs(const WaveDiscretisation& waves, const double* record) {
  constexpr int kRepetitions = 3;
  LaneCosts costs = declared_costs(waves);
  AlignedVector scratch(record, record + waves.record_size()), next(scratch.size());
  AlignedVector a(static_cast<std::size_t>(waves.wave_size()), 0.0), b(a.size(), 0.0);
  PhaseStatus failure;
  for (int i = 0; i < static_cast<int>(waves.batches().size()); ++i) {
    const LaneRange all = waves.batch(i).all();
    if (!waves.batch(i).capabilities.repeatable) continue;
    double best[2] = {std::numeric_limits<double>::infinity(),
                      std::numeric_limits<double>::infinity()};
    bool sound = true;
    for (int k = 0; k < kRepetitions && sound; ++k) {
      // Parts may know what they have just been asked for.
      std::fill(a.begin(), a.end(), 1e-9 * (2 * k));
      const auto start = Clock::now();
      sound = waves.scatter(i, all, scratch.data(), a.data(), b.data(), failure);
      const auto middle = Clock::now();
      std::fill(a.begin(), a.end(), 1e-9 * (2 * k + 1));
      const auto commit = Clock::now();
      sound = sound &&
              waves.advance(i, all, scratch.data(), a.data(), next.data(), b.data(), {}, failure);
      const auto end = Clock::now();
      best[0] = std::min(best[0], std::chrono::duration<double, std::nano>(middle - start).count());
      best[1] = std::min(best[1], std::chrono::duration<double, std::nano>(end - commit).count());
    }
    if (!sound) continue;
    // What the clock is too coarse for keeps what is declared.
    if (best[0] > 0.0) costs.scatter_ns[static_cast<std::size_t>(i)] = best[0] / all.last;
    if (best[1] > 0.0) costs.advance_ns[static_cast<std::size_t>(i)] = best[1] / all.last;
  }
  return costs;
}

Partition whole_island_groups(const WaveDiscretisation& waves, const LaneCosts& costs) {
  return cut(waves, lane_groups(waves, costs), std::numeric_limits<double>::infinity(),
             [](const Item& item) { return static_cast<double>(item.parts); });
}

Partition make_partition(const WaveDiscretisation& waves, const LaneCosts& costs, Grain grain,
                         int threads, int iterations) {
  // Two tasks per thread hide the wait for a neighbour, where they are long enough.
  return cut_into_tasks(waves, lane_groups(waves, costs), grain, threads, iterations, 2.0);
}

Partition cut_into_tasks(const WaveDiscretisation& waves, const std::vector<LaneGroupCost>& items,
                         Grain grain, int threads, int iterations, double per_thread) {
  const std::size_t most_messages = 64 + 16 * static_cast<std::size_t>(waves.wave_size());
  if (grain.kind != Grain::Kind::automatic) {
    double wanted = std::max(grain.count, 1);
    for (;;) {
      Partition out =
          cut(waves, items, wanted, [](const Item& i) { return static_cast<double>(i.parts); });
      if (out.tasks.size() <= 1 || message_count(waves, out) <= most_messages) return out;
      wanted *= 2.0;
    }
  }
  const auto cost = [&](const Item& i) { return i.step_ns(iterations); };
  double total = 0.0, iteration = 0.0;
  for (const Item& item : items) {
    total += cost(item);
    iteration += item.scatter_ns;
  }
  // Where a thread's share of an iteration is short, more tasks than one cost more than they bring: each has
  // waves to send and to wait for. A multiple of the threads, to be even.
  constexpr double kShortestPhase_ns = 3000.0;
  const double affordable = std::floor(iteration / kShortestPhase_ns / threads);
  double tasks = threads * std::clamp(affordable, 1.0, per_thread);
  for (;;) {
    Partition out = cut(waves, items, total / tasks, cost);
    if (out.tasks.size() <= 1 || tasks <= 1.0 || message_count(waves, out) <= most_messages) {
      return out;
    }
    tasks *= 0.5;
  }
}

}  // namespace portwave
