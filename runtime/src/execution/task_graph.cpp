#include "execution/task_graph.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <utility>

#include "portwave/subsystems/base/index.hpp"

namespace portwave {
namespace {

constexpr std::size_t kLine = kAlignment / sizeof(double);

}  // namespace

Message::Message(int waves)
    : slot_size_((at(waves) + 1 + kLine - 1) / kLine * kLine), lines_(2 * slot_size_, 0.0) {
  static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(double));
  for (std::size_t i = 0; i < 2; ++i) {
    epochs_[i] = new (lines_.data() + i * slot_size_) std::atomic<std::uint64_t>(0);
  }
}

Task::Task(const WaveDiscretisation& waves, const Partition::Task& cut)
    : waves_(waves), island_group_(cut.island_group), cost_ns_(cut.cost_ns) {}

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

void Task::update_edge(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number,
                       bool gathered) {
  if (shared_.places.empty()) return;
  if (!gathered) gather(s, number);
  shared_.program.update(rule, shared_.b.data(), shared_.u.data());
  scatter_own(shared_.u, s.u);
  edge_program_.update(rule, s.b_trial, s.u);
}

const Task::Bound& Task::bind(const StepArrays& s) {
  if (s.acceleration != nullptr && shared_.kept_u.empty()) {
    for (auto* kept : {&shared_.kept_u, &shared_.kept_b}) {
      kept->assign(at(s.acceleration->slots()), AlignedVector(shared_.places.size(), 0.0));
    }
  }
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

int Task::iterate_alone(const StepArrays& s, int from, int to, const InnerUpdate& rule,
                        PhaseStatus& failure) {
  const std::vector<Call>& calls = bound_for(s).core;
  for (int k = from; k < to; ++k) {
    if (k > 0) core_program_.update(rule, s.b_trial, s.u);
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
void Task::for_places(std::size_t index, const Visit& visit) const {
  if (!island_waves_.empty()) {
    for (const int place : island_waves_[index]) visit(place);
    return;
  }
  for (const auto* slices : {&edge_, &core_}) {
    for (const TaskSlice& slice : *slices) {
      const BatchPlace& place = waves_.batch(slice.batch);
      for (int j = 0; j < place.batch->wave_size(); ++j) {
        const int first = place.wave + j * place.batch->stride();
        for (int l = slice.lanes.first; l < slice.lanes.last; ++l) visit(first + l);
      }
    }
  }
}

void Task::keep(const StepArrays& s, std::size_t index, int slot, const double* exchanged) {
  double* u = s.acceleration->u(slot);
  double* b = s.acceleration->b(slot);
  double* shadow = s.acceleration->shadow(slot);
  for_places(index, [&](int place) {
    u[place] = s.u[place];
    b[place] = s.b_trial[place];
    shadow[place] = exchanged[place];
  });
  if (shared_.places.empty()) return;
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
    for_places(i, [&](int place) {
      double u = 0.0, b = 0.0;
      for (const auto& term : terms) {
        u += term.weight * s.acceleration->u(term.slot)[place];
        b += term.weight * s.acceleration->b(term.slot)[place];
      }
      s.u[place] = u;
      s.b_trial[place] = b;
    });
    for (std::size_t local = 0; local < shared_.places.size(); ++local) {
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
    core_program_.update(rule, s.b_trial, s.u);
  }
  const double* next = s.interface->u();
  for (std::size_t i = 0; i < islands_.size(); ++i) {
    if (!is_active(islands_[i])) continue;
    for_places(i, [&](int place) { s.u[place] = next[place]; });
  }
  for (std::size_t local = 0; local < shared_.places.size(); ++local) {
    shared_.u[local] = next[shared_.places[local]];
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
    const PartPlace& place = waves_.place(failure_.part);
    for (int j = 0; j < waves_.batch(place.batch).batch->wave_size(); ++j) {
      s.b_trial[place.wave + j * place.stride] = std::numeric_limits<double>::quiet_NaN();
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
  for_places(index, [&](int place) { s.a[place] = shadow[place]; });
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
  if (s.ledger != nullptr) {
    for (const Call& call : bound.commit) {
      s.ledger->examine(call.slice.batch, call.slice.lanes, s.a, s.b_next);
    }
  }
  return sound;
}

void Task::recommit(const StepArrays& s, std::span<const char> islands) {
  outcome = {};
  const bool marked = std::any_of(islands_.begin(), islands_.end(),
                                  [&](int island) { return islands[at(island)] != 0; });
  if (!marked) return;
  PhaseStatus failure;
  if (!commit(s, failure)) outcome = {TaskOutcome::kCommit, std::move(failure)};
}

void Task::copy_island(std::size_t index, const double* from, double* to) const {
  for (const int place : island_waves_[index]) to[place] = from[place];
}

std::size_t Task::bytes() const {
  std::size_t sum = sizeof(Task) + edge_program_.bytes() + core_program_.bytes() +
                    shared_.program.bytes() +
                    (edge_junctions_.capacity() + core_junctions_.capacity()) * sizeof(int) +
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
  std::vector<int> edge_of(at(waves.wave_size()), -1);   // task in whose edge a wave lies
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
    for (const int j : own[at(t)]) {
      const auto places = coupling.waves(j);
      const bool is_edge = std::any_of(places.begin(), places.end(),
                                       [&](int wave) { return edge_of[at(wave)] == t; });
      (is_edge ? task.edge_junctions_ : task.core_junctions_).push_back(j);
    }

    Task::Shared& s = task.shared_;
    s.junctions = shared[at(t)];
    std::map<int, std::vector<int>> received;  // from → local places, in the sender's order
    for (const int j : s.junctions) {
      for (const int wave : coupling.waves(j)) {
        const int local = static_cast<int>(s.places.size());
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
  compile();
}

void Task::compile(std::vector<int>& places) {
  const Interconnection& coupling = waves_.interconnection();
  edge_program_ = coupling.program(edge_junctions_);
  core_program_ = coupling.program(core_junctions_);
  for (std::size_t i = 0; i < shared_.places.size(); ++i) {
    places[at(shared_.places[i])] = static_cast<int>(i);
  }
  shared_.program = coupling.program(shared_.junctions, places);
  for (const int place : shared_.places) places[at(place)] = -1;
  for (Bound& bound : bound_) bound = {};
}

void TaskGraph::compile() {
  std::vector<int> places(at(waves_.wave_size()), -1);
  for (const auto& task : tasks_) task->compile(places);
}

std::size_t TaskGraph::bytes() const {
  std::size_t sum = 0;
  for (const auto& task : tasks_) sum += task->bytes();
  return sum;
}

}  // namespace portwave
