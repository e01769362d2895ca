#include "task_graph.hpp"

#include <algorithm>
#include <map>
#include <new>
#include <set>
#include <utility>

namespace portwave {
namespace {

constexpr std::size_t kLine = kAlignment / sizeof(double);

std::size_t at(int i) { return static_cast<std::size_t>(i); }

}  // namespace

Message::Message(int waves)
    : slot_size_((at(waves) + 1 + kLine - 1) / kLine * kLine), lines_(2 * slot_size_, 0.0) {
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(double));
  for (std::size_t i = 0; i < 2; ++i) {
    epochs_[i] = new (lines_.data() + i * slot_size_) std::atomic<std::uint64_t>(0);
  }
}

Task::Task(const WaveDiscretisation& waves, const Partition::Task& cut)
    : waves_(waves), pack_(cut.pack), cost_ns_(cut.cost_ns) {}

void Task::start(const StepArrays& s, double* out) {
  if (!shared_.places.empty()) {
    for (std::size_t i = 0; i < shared_.places.size(); ++i) {
      shared_.b[i] = s.b[shared_.places[i]];
    }
    shared_.program.exchange(shared_.b.data(), shared_.u.data());
    scatter_own(shared_.u, out);
  }
  edge_program_.exchange(s.b, out);
  core_program_.exchange(s.b, out);
}

/// b̂ of the shared junctions: the task's own and what its neighbours sent.
void Task::gather(const StepArrays& s, std::uint64_t number) {
  for (const int local : shared_.own) shared_.b[at(local)] = s.b_trial[shared_.places[at(local)]];
  for (const Inbound& in : inbound_) {
    const double* waves = in.message->waves(number);
    for (std::size_t i = 0; i < in.local.size(); ++i) shared_.b[at(in.local[i])] = waves[i];
  }
}

void Task::scatter_own(const AlignedVector& from, double* out) const {
  for (const int local : shared_.own) out[shared_.places[at(local)]] = from[at(local)];
}

void Task::update_edge(const StepArrays& s, double relaxation, std::uint64_t number) {
  if (shared_.places.empty()) return;
  gather(s, number);
  shared_.program.douglas_rachford(relaxation, shared_.b.data(), shared_.u.data());
  scatter_own(shared_.u, s.u);
  edge_program_.douglas_rachford(relaxation, s.b_trial, s.u);
}

const Task::Bound& Task::bind(const StepArrays& s) {
  Bound& bound = bound_[bound_[0].record == nullptr ? 0 : 1];
  bound.record = s.record;
  const auto bind_all = [&](const std::vector<TaskSlice>& slices, std::vector<Call>& calls) {
    calls.clear();
    for (const TaskSlice& slice : slices) {
      const BatchPlace& place = waves_.batch(slice.batch);
      calls.push_back({place.batch->bind_scatter(slice.lanes, s.record + place.record,
                                                 s.u + place.wave, s.b_trial + place.wave),
                       slice});
    }
  };
  bind_all(edge_, bound.edge);
  bind_all(core_, bound.core);
  bound.commit.clear();
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      const BatchPlace& place = waves_.batch(slice.batch);
      bound.commit.push_back(
          {place.batch->bind_advance(slice.lanes, s.record + place.record, s.a + place.wave,
                                     s.next + place.record, s.b_next + place.wave,
                                     s.columns.from(place.entry)),
           slice});
    }
  }
  return bound;
}

int Task::iterate_alone(const StepArrays& s, int from, int to, double relaxation,
                        PhaseStatus& failure) {
  const std::vector<Call>& calls = bound_for(s).core;
  for (int k = from; k < to; ++k) {
    if (k > 0) core_program_.douglas_rachford(relaxation, s.b_trial, s.u);
    if (!solve(calls, s)) {
      failure = std::move(failure_);
      return k;
    }
  }
  return to;
}

bool Task::solve_slowly(const TaskSlice& slice, const StepArrays& s, bool first) {
  PhaseStatus own;
  if (waves_.approach(slice.batch, slice.lanes, s.record, s.u, s.b_trial, own)) return true;
  if (first) failure_ = {};
  failure_.merge(std::move(own));
  return false;
}

void Task::send(const StepArrays& s, std::uint64_t number) {
  for (const Outbound& out : outbound_) {
    double* waves = out.message->waves(number);
    for (std::size_t i = 0; i < out.places.size(); ++i) waves[i] = s.b_trial[out.places[i]];
    out.message->publish(number);
  }
}

void Task::publish(std::uint64_t number) {
  for (const Outbound& out : outbound_) out.message->publish(number);
}

void Task::exchange(const StepArrays& s, std::uint64_t number, double* out) {
  if (!shared_.places.empty()) {
    gather(s, number);
    shared_.program.exchange(shared_.b.data(), shared_.a.data());
    scatter_own(shared_.a, out);
  }
  edge_program_.exchange(s.b_trial, out);
  core_program_.exchange(s.b_trial, out);
}

void Task::measure(const StepArrays& s, const double* exchanged) const {
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      s.residual->measure(slice.batch, slice.lanes, s.u, s.b_trial, exchanged);
    }
  }
}

bool Task::commit(const StepArrays& s, PhaseStatus& failure) {
  const Bound& bound = bound_for(s);
  bool sound = true;
  for (const Call& call : bound.commit) {
    if (call.bound && call.bound() < 0) continue;
    PhaseStatus own;
    const TaskSlice& slice = call.slice;
    if (!waves_.advance(slice.batch, slice.lanes, s.record, s.a, s.next, s.b_next, s.columns,
                        own)) {
      failure.merge(std::move(own));
      sound = false;
    }
  }
  if (s.book != nullptr) {
    for (const Call& call : bound.commit) {
      s.book->examine(call.slice.batch, call.slice.lanes, s.a, s.b_next);
    }
  }
  return sound;
}

void Task::copy_island(std::size_t index, const double* from, double* to) const {
  for (const int place : island_waves_[index]) to[place] = from[place];
}

std::size_t Task::bytes() const {
  std::size_t sum = sizeof(Task) + edge_program_.bytes() + core_program_.bytes() +
                    shared_.program.bytes() +
                    (edge_.capacity() + core_.capacity()) * sizeof(TaskSlice);
  for (const auto& waves : island_waves_) sum += waves.capacity() * sizeof(int);
  return sum;
}

TaskGraph::TaskGraph(const WaveDiscretisation& waves, const Partition& partition) : waves_(waves) {
  const Interconnection& coupling = waves.interconnection();
  const int count = static_cast<int>(partition.tasks.size());
  std::vector<int> task_of_wave(at(waves.wave_size()), -1);
  const auto for_waves = [&](const TaskSlice& slice, const auto& body) {
    const BatchPlace& place = waves.batch(slice.batch);
    for (int j = 0; j < place.batch->wave_size(); ++j) {
      for (int l = slice.lanes.first; l < slice.lanes.last; ++l) {
        body(place.wave + j * place.batch->stride() + l, l);
      }
    }
  };
  for (int t = 0; t < count; ++t) {
    tasks_.push_back(std::make_unique<Task>(waves, partition.tasks[at(t)]));
    for (const TaskSlice& slice : partition.tasks[at(t)].slices) {
      for_waves(slice, [&](int wave, int /*lane*/) { task_of_wave[at(wave)] = t; });
    }
  }

  // Junctions by task: those of one task, and those it shares.
  std::vector<std::vector<int>> own(at(count)), shared(at(count));
  std::vector<bool> is_shared_wave(at(waves.wave_size()), false);
  std::set<int> touched;
  for (int j = 0; j < coupling.size(); ++j) {
    touched.clear();
    for (const int wave : coupling.waves(j)) touched.insert(task_of_wave[at(wave)]);
    if (touched.size() == 1) {
      own[at(*touched.begin())].push_back(j);
      continue;
    }
    for (const int t : touched) shared[at(t)].push_back(j);
    for (const int wave : coupling.waves(j)) is_shared_wave[at(wave)] = true;
  }

  std::map<std::pair<int, int>, std::vector<int>> sent;  // (from, to) → places
  std::vector<int> local_of_wave(at(waves.wave_size()), -1);
  std::vector<int> edge_of(at(waves.wave_size()), -1);  // task in whose edge a wave lies
  for (int t = 0; t < count; ++t) {
    Task& task = *tasks_[at(t)];
    // Lane groups with a shared port come first in every phase; so do the junctions they touch.
    for (const TaskSlice& slice : partition.tasks[at(t)].slices) {
      const BatchPlace& place = waves.batch(slice.batch);
      const int group = place.batch->lane_group();
      for (int first = slice.lanes.first; first < slice.lanes.last; first += group) {
        const TaskSlice one{slice.batch, {first, std::min(first + group, slice.lanes.last)}};
        bool is_edge = false;
        for_waves(one, [&](int wave, int) { is_edge = is_edge || is_shared_wave[at(wave)]; });
        std::vector<TaskSlice>& list = is_edge ? task.edge_ : task.core_;
        if (!list.empty() && list.back().batch == one.batch &&
            list.back().lanes.last == one.lanes.first) {
          list.back().lanes.last = one.lanes.last;
        } else {
          list.push_back(one);
        }
        if (is_edge) for_waves(one, [&](int wave, int) { edge_of[at(wave)] = t; });
      }
    }
    std::vector<int> edge_junctions, core_junctions;
    for (const int j : own[at(t)]) {
      const auto places = coupling.waves(j);
      const bool is_edge = std::any_of(places.begin(), places.end(),
                                       [&](int wave) { return edge_of[at(wave)] == t; });
      (is_edge ? edge_junctions : core_junctions).push_back(j);
    }
    task.edge_program_ = coupling.program(edge_junctions);
    task.core_program_ = coupling.program(core_junctions);

    Task::Shared& s = task.shared_;
    std::map<int, std::vector<int>> received;  // from → local places, in the sender's order
    for (const int j : shared[at(t)]) {
      for (const int wave : coupling.waves(j)) {
        const int local = static_cast<int>(s.places.size());
        local_of_wave[at(wave)] = local;
        s.places.push_back(wave);
        const int from = task_of_wave[at(wave)];
        if (from == t) {
          s.own.push_back(local);
        } else {
          received[from].push_back(local);
          sent[{from, t}].push_back(wave);
        }
      }
    }
    s.program = coupling.program(shared[at(t)], local_of_wave);
    for (auto* v : {&s.u, &s.b, &s.a}) v->resize(s.places.size(), 0.0);
    for (auto& [from, local] : received) {
      messages_.push_back(std::make_unique<Message>(static_cast<int>(local.size())));
      task.neighbours_.push_back(from);
      task.inbound_.push_back({messages_.back().get(), std::move(local)});
      tasks_[at(from)]->outbound_.push_back({messages_.back().get(), sent[{from, t}]});
    }
  }

  std::vector<std::map<int, std::vector<int>>> islands(at(count));
  for (std::size_t wave = 0; wave < task_of_wave.size(); ++wave) {
    const int part = waves.part_of_wave(static_cast<int>(wave));
    if (part < 0) continue;
    islands[at(task_of_wave[wave])][waves.system().island_of_part(part)].push_back(
        static_cast<int>(wave));
  }
  for (int t = 0; t < count; ++t) {
    Task& task = *tasks_[at(t)];
    std::set<int> without_ports;
    for (const TaskSlice& slice : partition.tasks[at(t)].slices) {
      for (int l = slice.lanes.first; l < slice.lanes.last; ++l) {
        without_ports.insert(waves.system().island_of_part(waves.batch(slice.batch).parts[at(l)]));
      }
    }
    for (const int island : without_ports) {
      task.islands_.push_back(island);
      if (without_ports.size() > 1) {
        task.island_waves_.push_back(std::move(islands[at(t)][island]));
      }
    }
  }
}

std::size_t TaskGraph::bytes() const {
  std::size_t sum = 0;
  for (const auto& task : tasks_) sum += task->bytes();
  return sum;
}

}  // namespace portwave
