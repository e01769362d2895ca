#include "parallel/task_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {
Task::Task(const WaveDiscretisation& waves, const Partition::Task& cut)
    : waves_(waves), island_group_(cut.island_group) {}

void Task::start(const StepArrays& s, double* out) {
  if (!shared_.offsets.empty()) {
    for (std::size_t i = 0; i < shared_.offsets.size(); ++i) {
      shared_.b[i] = s.b[shared_.offsets[i]];
    }
    shared_.coupling.exchange(shared_.b.data(), shared_.u.data());
    scatter_own(shared_.u, out);
  }
  edge_coupling_.exchange(s.b, out);
  core_coupling_.exchange(s.b, out);
}

/// b̂ of the shared junctions: the task's own and what its neighbours sent.
void Task::gather(const StepArrays& s, std::uint64_t number) {
  for (const int local : shared_.own) shared_.b[at(local)] = s.b_trial[shared_.offsets[at(local)]];
  for (const Inbound& in : inbound_) {
    const double* waves = in.channel->waves(number);
    for (std::size_t i = 0; i < in.local.size(); ++i) shared_.b[at(in.local[i])] = waves[i];
  }
}

void Task::scatter_own(const AlignedVector& from, double* out) const {
  for (const int local : shared_.own) out[shared_.offsets[at(local)]] = from[at(local)];
}

void Task::update_edge(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number,
                       bool gathered) {
  if (shared_.offsets.empty()) return;
  if (!gathered) gather(s, number);
  shared_.coupling.update(rule, shared_.b.data(), shared_.u.data());
  scatter_own(shared_.u, s.u);
  edge_coupling_.update(rule, s.b_trial, s.u);
}

const Task::Bound& Task::bind(const StepArrays& s, std::vector<int>& numbers) {
  if (s.acceleration != nullptr && shared_.kept_u.empty()) {
    for (auto* kept : {&shared_.kept_u, &shared_.kept_b}) {
      kept->assign(at(s.acceleration->slots()), AlignedVector(shared_.offsets.size(), 0.0));
    }
  }
  Bound& bound = bound_[bound_[0].record == nullptr ? 0 : 1];
  bound.record = s.record;
  const auto bind_all = [&](const std::vector<TaskSlice>& slices, std::vector<Call>& calls) {
    calls.clear();
    for (const TaskSlice& slice : slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      Call& call = calls.emplace_back();
      call.slice = slice;
      if (batch.calls == nullptr) continue;
      call.bound = batch.calls->bind_scatter(slice.lanes, s.record + batch.record, s.u + batch.wave,
                                             s.b_trial + batch.wave);
    }
  };
  bind_all(edge_, bound.edge);
  bind_all(core_, bound.core);
  bound.commit.clear();
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      Call& call = bound.commit.emplace_back();
      call.slice = slice;
      if (batch.calls == nullptr) continue;
      call.bound = batch.calls->bind_advance(slice.lanes, s.record + batch.record, s.a + batch.wave,
                                             s.next + batch.record, s.b_next + batch.wave,
                                             s.columns.from(batch.entry));
    }
  }
  bound.small = bind_small(s.record, numbers);
  bound.examines_islands =
      bound.small != nullptr && s.ledger != nullptr &&
      std::ranges::all_of(islands_, [&](int island) { return s.ledger->prepare_island(island); });
  return bound;
}

const Task::Bound& Task::bind(const StepArrays& s) {
  std::vector<int> numbers(at(waves_.wave_size()), -1);
  return bind(s, numbers);
}

std::unique_ptr<SmallIsland> Task::bind_small(double* record, std::vector<int>& numbers) const {
  if (!alone()) return nullptr;
  const auto is_large = [](const TaskSlice& slice) {
    return slice.lanes.last - slice.lanes.first > SmallIsland::kMostLanes;
  };
  if (std::ranges::any_of(core_, is_large)) return nullptr;  // without a list on the heap
  std::vector<SmallIsland::Lanes> lanes;
  for (const TaskSlice& slice : core_) lanes.push_back({slice.batch, slice.lanes});
  return SmallIsland::of(waves_, lanes, core_junctions_, record, numbers);
}

int Task::iterate_alone(const StepArrays& s, int from, int to, const InnerUpdate& rule,
                        PhaseStatus& failure) {
  const std::vector<Call>& calls = bound_for(s).core;
  for (int k = from; k < to; ++k) {
    if (k > 0) core_coupling_.update(rule, s.b_trial, s.u);
    if (!solve(calls, s)) {
      failure = std::move(failure_);
      return k;
    }
  }
  return to;
}

bool Task::solve_slowly(const TaskSlice& slice, const StepArrays& s, bool first) {
  PhaseStatus own;
  if (waves_.inexact_scatter(slice.batch, slice.lanes, s.record, s.u, s.b_trial, own)) return true;
  if (first) failure_ = {};
  failure_.merge(std::move(own));
  return false;
}

/// The port solves of a lane group into s.b_next; its record is then as it was before.
PhaseStatus Task::solve_aside(const StepArrays& s, const TaskSlice& group) const {
  const BatchSlot& slot = waves_.batch(group.batch);
  const auto number = at(group.lanes.first / slot.batch->lane_group());
  const std::vector<RecordRegion> regions = slot.batch->record_regions();
  const auto begin_of = [&](const RecordRegion& region) {
    return s.record + slot.record + region.begin + number * region.doubles;
  };
  std::vector<double> before;
  for (const RecordRegion& region : regions) {
    before.insert(before.end(), begin_of(region), begin_of(region) + region.doubles);
  }
  PhaseStatus failure;
  const bool sound =
      waves_.inexact_scatter(group.batch, group.lanes, s.record, s.u, s.b_next, failure);
  const double* from = before.data();
  for (const RecordRegion& region : regions) {
    std::copy_n(from, region.doubles, begin_of(region));
    from += region.doubles;
  }
  return sound ? PhaseStatus{} : failure;
}

void Task::send(const StepArrays& s, std::uint64_t number) {
  for (const Outbound& out : outbound_) {
    out.channel->send(number, [&](double* waves) {
      for (std::size_t i = 0; i < out.offsets.size(); ++i) waves[i] = s.b_trial[out.offsets[i]];
    });
  }
}

void Task::publish(std::uint64_t number) {
  for (const Outbound& out : outbound_) out.channel->publish(number);
}

void Task::exchange(const StepArrays& s, std::uint64_t number, double* out) {
  if (!shared_.offsets.empty()) {
    gather(s, number);
    shared_.coupling.exchange(shared_.b.data(), shared_.a.data());
    scatter_own(shared_.a, out);
  }
  edge_coupling_.exchange(s.b_trial, out);
  core_coupling_.exchange(s.b_trial, out);
}

void Task::measure(const StepArrays& s, const double* exchanged) {
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      s.residual->measure(slice.batch, slice.lanes, s.u, s.b_trial, exchanged);
      if (s.acceleration != nullptr) {
        s.acceleration->measure(slice.batch, slice.lanes, s.u, exchanged);
      }
    }
  }
  if (s.acceleration == nullptr) return;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    keep(s, i, s.acceleration->sequence(islands_[i]).slot(), exchanged);
  }
}

template <class Visit>
void Task::for_offsets(std::size_t index, const Visit& visit) const {
  if (!island_waves_.empty()) {
    for (const int offset : island_waves_[index]) visit(offset);
    return;
  }
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      for (int j = 0; j < batch.batch->wave_size(); ++j) {
        const int first = batch.wave + j * batch.batch->stride();
        for (int l = slice.lanes.first; l < slice.lanes.last; ++l) visit(first + l);
      }
    }
  }
}

void Task::keep(const StepArrays& s, std::size_t index, int slot, const double* exchanged) {
  double* u = s.acceleration->u(slot);
  double* b = s.acceleration->b(slot);
  double* shadow = s.acceleration->shadow(slot);
  for_offsets(index, [&](int offset) {
    u[offset] = s.u[offset];
    b[offset] = s.b_trial[offset];
    shadow[offset] = exchanged[offset];
  });
  if (shared_.offsets.empty()) return;
  std::copy(shared_.u.begin(), shared_.u.end(), shared_.kept_u[at(slot)].begin());
  std::copy(shared_.b.begin(), shared_.b.end(), shared_.kept_b[at(slot)].begin());
}

bool Task::combine(const StepArrays& s) {
  bool combined = false;
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    const AndersonSequence& sequence = s.acceleration->sequence(islands_[i]);
    if (sequence.plain()) continue;
    combined = true;
    const std::span<const AndersonSequence::Term> terms = sequence.terms();
    for_offsets(i, [&](int offset) {
      double u = 0.0, b = 0.0;
      for (const auto& term : terms) {
        u += term.weight * s.acceleration->u(term.slot)[offset];
        b += term.weight * s.acceleration->b(term.slot)[offset];
      }
      s.u[offset] = u;
      s.b_trial[offset] = b;
    });
    for (std::size_t local = 0; local < shared_.offsets.size(); ++local) {
      double u = 0.0, b = 0.0;
      for (const auto& term : terms) {
        u += term.weight * shared_.kept_u[at(term.slot)][local];
        b += term.weight * shared_.kept_b[at(term.slot)][local];
      }
      shared_.u[local] = u;
      shared_.b[local] = b;
    }
  }
  return combined;
}

bool Task::adopt(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number,
                 bool gathered) {
  const auto is_active = [&](int island) { return s.interface->active(island); };
  if (std::ranges::none_of(islands_, is_active)) return false;
  if (!std::ranges::all_of(islands_, is_active)) {
    update_edge(s, rule, number, gathered);
    core_coupling_.update(rule, s.b_trial, s.u);
  }
  const double* next = s.interface->u();
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (!is_active(islands_[i])) continue;
    for_offsets(i, [&](int offset) { s.u[offset] = next[offset]; });
  }
  for (std::size_t local = 0; local < shared_.offsets.size(); ++local) {
    shared_.u[local] = next[shared_.offsets[local]];
  }
  return true;
}

bool Task::reject_failed_trials(const StepArrays& s) {
  if (s.acceleration == nullptr && s.interface == nullptr) return false;
  const auto on_trial = [&](int island) {
    return (s.interface != nullptr && s.interface->on_trial(island)) ||
           (s.acceleration != nullptr && s.acceleration->sequence(island).on_trial());
  };
  const auto island_of = [&](int part) { return waves_.system().island_of_part(part); };
  std::vector<int> spoiled;
  while (!failure_.ok()) {
    const int island = island_of(failure_.part);
    if (!on_trial(island)) return false;
    const PartSlot& failed = waves_.slot(failure_.part);
    for (int j = 0; j < waves_.batch(failed.batch).batch->wave_size(); ++j) {
      s.b_trial[failed.wave + j * failed.stride] = std::numeric_limits<double>::quiet_NaN();
    }
    if (islands_.size() == 1) return true;
    // Others of this task may hide behind the part that was named.
    spoiled.push_back(island);
    failure_ = find_failure(s, [&](int part) {
      return std::find(spoiled.begin(), spoiled.end(), island_of(part)) == spoiled.end();
    });
  }
  return true;
}

void Task::restore_shadow(const StepArrays& s, std::size_t index) const {
  const int island = islands_[index];
  const double* shadow = s.interface != nullptr && s.interface->engaged(island)
                             ? s.interface->shadow()
                             : s.acceleration->shadow(s.acceleration->sequence(island).base());
  for_offsets(index, [&](int offset) { s.a[offset] = shadow[offset]; });
}

bool Task::commit(const StepArrays& s, PhaseStatus& failure) {
  const Bound& bound = bound_for(s);
  bool sound = true;
  for (const Call& call : bound.commit) {
    if (call.bound && call.bound() < 0) continue;
    sound = commit_slowly(call.slice, s, failure) && sound;
  }
  if (s.ledger != nullptr) examine(bound, s);
  return sound;
}

bool Task::commit_slowly(const TaskSlice& slice, const StepArrays& s, PhaseStatus& failure) const {
  PhaseStatus own;
  if (waves_.advance(slice.batch, slice.lanes, s.record, s.a, s.next, s.b_next, s.columns, own)) {
    return true;
  }
  failure.merge(std::move(own));
  return false;
}

void Task::examine(const Bound& bound, const StepArrays& s) const {
  if (bound.examines_islands) {
    for (const int island : islands_) s.ledger->examine_island(island, s.a, s.b_next);
    return;
  }
  for (const Call& call : bound.commit) {
    s.ledger->examine(call.slice.batch, call.slice.lanes, s.a, s.b_next);
  }
}

void Task::recommit(const StepArrays& s, std::span<const char> islands) {
  outcome = {};
  const auto is_marked = [&](int island) { return islands[at(island)] != 0; };
  if (std::ranges::none_of(islands_, is_marked)) return;
  PhaseStatus failure;
  const bool sound = std::ranges::all_of(islands_, is_marked)
                         ? commit(s, failure)
                         : commit_islands(s, is_marked, failure);
  if (!sound) outcome = {TaskOutcome::kCommit, std::move(failure)};
}

/// Only the lane groups in which some island is marked: what others have committed stays as it is.
template <class IsMarked>
bool Task::commit_islands(const StepArrays& s, const IsMarked& is_marked, PhaseStatus& failure) {
  bool sound = true;
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      const BatchSlot& batch = waves_.batch(slice.batch);
      const int group = batch.batch->lane_group();
      for (int first = slice.lanes.first; first < slice.lanes.last; first += group) {
        const LaneRange lanes{first, std::min(first + group, slice.lanes.last)};
        bool is_any = false;
        for (int lane = lanes.first; lane < lanes.last; ++lane) {
          is_any = is_any || is_marked(waves_.system().island_of_part(batch.parts[at(lane)]));
        }
        if (!is_any) continue;
        sound = commit_slowly({slice.batch, lanes}, s, failure) && sound;
        if (s.ledger != nullptr) s.ledger->examine(slice.batch, lanes, s.a, s.b_next);
      }
    }
  }
  return sound;
}

void Task::copy_island(std::size_t index, const double* from, double* to) const {
  for (const int offset : island_waves_[index]) to[offset] = from[offset];
}

std::size_t Task::bytes() const {
  std::size_t sum = sizeof(Task) + edge_coupling_.bytes() + core_coupling_.bytes() +
                    shared_.coupling.bytes() +
                    (edge_junctions_.capacity() + core_junctions_.capacity()) * sizeof(int) +
                    (edge_.capacity() + core_.capacity()) * sizeof(TaskSlice);
  for (const auto& waves : island_waves_) sum += waves.capacity() * sizeof(int);
  return sum;
}

/// Takes a partition apart into tasks, step by step.
class TaskGraph::Builder {
 public:
  Builder(TaskGraph& graph, const Partition& partition)
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
  }

 private:
  int count() const { return static_cast<int>(cuts_.size()); }
  Task& task(int t) { return *graph_.tasks_[at(t)]; }

  /// visit(offset) for the waves of a slice.
  template <class Visit>
  void for_waves(const TaskSlice& slice, const Visit& visit) const {
    const BatchSlot& batch = waves_.batch(slice.batch);
    for (int j = 0; j < batch.batch->wave_size(); ++j) {
      for (int l = slice.lanes.first; l < slice.lanes.last; ++l) {
        visit(batch.wave + j * batch.batch->stride() + l);
      }
    }
  }

  void make_tasks() {
    task_of_wave_.assign(at(waves_.wave_size()), -1);
    for (int t = 0; t < count(); ++t) {
      graph_.tasks_.push_back(std::make_unique<Task>(waves_, cuts_[at(t)]));
      for (const TaskSlice& slice : cuts_[at(t)].slices) {
        for_waves(slice, [&](int wave) { task_of_wave_[at(wave)] = t; });
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
    for (const TaskSlice& slice : cuts_[at(t)].slices) {
      const int group = waves_.batch(slice.batch).batch->lane_group();
      for (int first = slice.lanes.first; first < slice.lanes.last; first += group) {
        const TaskSlice one{slice.batch, {first, std::min(first + group, slice.lanes.last)}};
        bool is_edge = false;
        for_waves(one, [&](int wave) { is_edge = is_edge || is_shared_wave_[at(wave)] != 0; });
        append(one, is_edge ? task(t).edge_ : task(t).core_);
        if (is_edge) for_waves(one, [&](int wave) { task_of_edge_wave_[at(wave)] = t; });
      }
    }
  }
  static void append(const TaskSlice& one, std::vector<TaskSlice>& list) {
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
      (is_edge ? task(t).edge_junctions_ : task(t).core_junctions_).push_back(j);
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
      for (const TaskSlice& slice : cuts_[at(t)].slices) {
        for (int l = slice.lanes.first; l < slice.lanes.last; ++l) {
          islands.insert(system.island_of_part(waves_.batch(slice.batch).parts[at(l)]));
        }
      }
      task(t).islands_.assign(islands.begin(), islands.end());
      if (islands.size() < 2) continue;
      for (const int island : islands) {
        task(t).island_waves_.push_back(std::move(waves_of_island[at(t)][island]));
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
  Builder(*this, partition).build();
  compile();
}

void Task::compile(std::vector<int>& local) {
  const Interconnection& coupling = waves_.interconnection();
  coupling.recompile(edge_coupling_, edge_junctions_);
  coupling.recompile(core_coupling_, core_junctions_);
  for (std::size_t i = 0; i < shared_.offsets.size(); ++i) {
    local[at(shared_.offsets[i])] = static_cast<int>(i);
  }
  coupling.recompile(shared_.coupling, shared_.junctions, local);
  for (const int offset : shared_.offsets) local[at(offset)] = -1;
  for (Bound& bound : bound_) bound.record = nullptr;  // its lists keep their memory
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
