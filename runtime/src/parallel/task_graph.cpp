#include "parallel/task_graph.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {

/// Takes a partition apart into tasks, step by step.
class TaskBuilder {
 public:
  TaskBuilder(TaskGraph& graph, const Partition& partition)
      : graph_(graph),
        waves_(graph.waves_),
        cuts_(partition.tasks),
        own_(cuts_.size()),
        shared_(cuts_.size()) {}

  void build() {
    make_tasks();
    sort_junctions();
    for (int t = 0; t < count(); ++t) {
      sort_lanes(t);
      sort_own_junctions(t);
    }
    for (int t = 0; t < count(); ++t) number_shared_waves(t);
    for (int t = 0; t < count(); ++t) connect(t);
    list_islands();
    list_chunks();
  }

 private:
  int count() const { return static_cast<int>(cuts_.size()); }
  Task& task(int t) { return *graph_.tasks_[at(t)]; }

  /// visit(offset) for the waves of a range.
  template <class Visit>
  void for_waves(const BatchRange& range, const Visit& visit) const {
    const BatchSlot& batch = waves_.batch(range.batch);
    for (int j = 0; j < batch.batch->wave_size(); ++j) {
      for (int l = range.lanes.first; l < range.lanes.last; ++l) {
        visit(batch.wave + j * batch.batch->stride() + l);
      }
    }
  }

  void make_tasks() {
    task_of_wave_.assign(at(waves_.wave_size()), -1);
    for (int t = 0; t < count(); ++t) {
      graph_.tasks_.push_back(std::make_unique<Task>(waves_, cuts_[at(t)]));
      for (const BatchRange& range : cuts_[at(t)].ranges) {
        for_waves(range, [&](int wave) { task_of_wave_[at(wave)] = t; });
      }
    }
  }

  /// Junctions by task: those of one task, and those it shares.
  void sort_junctions() {
    const Interconnection& coupling = waves_.interconnection();
    is_shared_wave_.assign(at(waves_.wave_size()), 0);
    std::set<int> touched;
    for (int j = 0; j < coupling.size(); ++j) {
      touched.clear();
      for (const int wave : coupling.waves(j)) touched.insert(task_of_wave_[at(wave)]);
      if (touched.size() == 1) {
        own_[at(*touched.begin())].push_back(j);
        continue;
      }
      for (const int t : touched) shared_[at(t)].push_back(j);
      for (const int wave : coupling.waves(j)) is_shared_wave_[at(wave)] = 1;
    }
    task_of_edge_wave_.assign(at(waves_.wave_size()), -1);
  }

  /// Lane groups with a shared port are the task's edge, which comes first in every phase.
  void sort_lanes(int t) {
    for (const BatchRange& range : cuts_[at(t)].ranges) {
      const int group = waves_.batch(range.batch).batch->lane_group();
      for (int first = range.lanes.first; first < range.lanes.last; first += group) {
        const BatchRange one{range.batch, {first, std::min(first + group, range.lanes.last)}};
        bool is_edge = false;
        for_waves(one, [&](int wave) { is_edge = is_edge || is_shared_wave_[at(wave)] != 0; });
        append(one, is_edge ? task(t).shape_.edge : task(t).shape_.core);
        if (is_edge) for_waves(one, [&](int wave) { task_of_edge_wave_[at(wave)] = t; });
      }
    }
  }
  static void append(const BatchRange& one, std::vector<BatchRange>& list) {
    if (!list.empty() && list.back().batch == one.batch &&
        list.back().lanes.last == one.lanes.first) {
      list.back().lanes.last = one.lanes.last;
    } else {
      list.push_back(one);
    }
  }

  /// Junctions that touch the edge belong to it.
  void sort_own_junctions(int t) {
    for (const int j : own_[at(t)]) {
      const auto waves = waves_.interconnection().waves(j);
      const bool is_edge = std::any_of(waves.begin(), waves.end(),
                                       [&](int wave) { return task_of_edge_wave_[at(wave)] == t; });
      (is_edge ? task(t).shape_.edge_junctions : task(t).shape_.core_junctions).push_back(j);
    }
  }

  void number_shared_waves(int t) {
    Task::Shared& s = task(t).shared_;
    s.junctions = shared_[at(t)];
    for (const int j : s.junctions) {
      for (const int wave : waves_.interconnection().waves(j)) {
        if (task_of_wave_[at(wave)] == t) s.own.push_back(static_cast<int>(s.offsets.size()));
        s.offsets.push_back(wave);
      }
    }
    for (auto* v : {&s.u, &s.b, &s.a}) v->resize(s.offsets.size(), 0.0);
  }

  /// A channel from each task with which this one shares a junction.
  void connect(int t) {
    Task& to = task(t);
    std::map<int, std::vector<int>> received;  // by sender: local numbers, in the order of sending
    for (std::size_t local = 0; local < to.shared_.offsets.size(); ++local) {
      const int from = task_of_wave_[at(to.shared_.offsets[local])];
      if (from != t) received[from].push_back(static_cast<int>(local));
    }
    for (auto& [from, local] : received) {
      graph_.channels_.push_back(
          std::make_unique<Channel>(ChannelSlots(static_cast<int>(local.size()))));
      Channel* const channel = graph_.channels_.back().get();
      std::vector<int> sent;
      for (const int number : local) sent.push_back(to.shared_.offsets[at(number)]);
      graph_.links_.push_back({from, t, channel, sent});
      to.neighbours_.push_back(from);
      to.inbound_.push_back({channel, std::move(local)});
      task(from).outbound_.push_back({channel, std::move(sent)});
    }
  }

  /// The islands of each task; where it has several, their waves as well.
  void list_islands() {
    const System& system = waves_.system();
    std::vector<std::map<int, std::vector<int>>> waves_of_island(cuts_.size());
    for (std::size_t wave = 0; wave < task_of_wave_.size(); ++wave) {
      const int part = waves_.part_of_wave(static_cast<int>(wave));
      if (part < 0) continue;
      waves_of_island[at(task_of_wave_[wave])][system.island_of_part(part)].push_back(
          static_cast<int>(wave));
    }
    for (int t = 0; t < count(); ++t) {
      std::set<int> islands;  // those without ports, too
      for (const BatchRange& range : cuts_[at(t)].ranges) {
        for (int l = range.lanes.first; l < range.lanes.last; ++l) {
          islands.insert(system.island_of_part(waves_.batch(range.batch).parts[at(l)]));
        }
      }
      task(t).shape_.islands.assign(islands.begin(), islands.end());
      if (islands.size() < 2) continue;
      for (const int island : islands) {
        task(t).shape_.island_waves.push_back(std::move(waves_of_island[at(t)][island]));
      }
    }
  }

  /// What a task can sum up although others have parts of its island.
  void list_chunks() {
    if (waves_.system().slice() != nullptr) return;
    std::vector<int> task_of_entry(at(waves_.entry_count()), -1);
    for (int t = 0; t < count(); ++t) {
      for (const BatchRange& range : cuts_[at(t)].ranges) {
        const int entry = waves_.batch(range.batch).entry;
        std::fill_n(task_of_entry.begin() + entry + range.lanes.first,
                    range.lanes.last - range.lanes.first, t);
      }
    }
    const PartOrderReduction& parts = waves_.reduction();
    for (int chunk = 0; chunk < parts.chunk_count(); ++chunk) {
      const std::span<const int> own = parts.parts_of_chunk(chunk);
      const auto task_of = [&](int part) { return task_of_entry[at(waves_.slot(part).entry)]; };
      const int t = task_of(own.front());
      if (t < 0 || task(t).alone()) continue;
      if (std::ranges::all_of(own, [&](int part) { return task_of(part) == t; })) {
        task(t).shape_.chunks.push_back(chunk);
      }
    }
  }

  TaskGraph& graph_;
  const WaveDiscretisation& waves_;
  const std::vector<Partition::Task>& cuts_;
  std::vector<int> task_of_wave_;               // by offset
  std::vector<char> is_shared_wave_;            // by offset
  std::vector<int> task_of_edge_wave_;          // by offset: the task in whose edge it lies
  std::vector<std::vector<int>> own_, shared_;  // junctions by task
};

TaskGraph::TaskGraph(const WaveDiscretisation& waves, const Partition& partition) : waves_(waves) {
  TaskBuilder(*this, partition).build();
  compile();
}

void TaskGraph::compile() {
  numbers_.resize(at(waves_.wave_size()), -1);
  for (const auto& task : tasks_) task->compile(numbers_);
}

std::size_t TaskGraph::bytes() const {
  std::size_t sum = numbers_.capacity() * sizeof(int);
  for (const auto& task : tasks_) sum += task->bytes();
  return sum;
}

}  // namespace portwave
