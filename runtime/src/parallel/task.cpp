#include "parallel/task.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "portwave/subsystems/base/index.hpp"
#include "portwave/subsystems/core/batch_facets.hpp"

namespace portwave {

Task::Task(const WaveDiscretisation& waves, const Partition::Task& cut)
    : waves_(waves), calls_(waves, shape_) {
  shape_.island_group = cut.island_group;
}

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

void Task::begin(const StepArrays& s) {
  start(s, s.u);
  const auto is_affine = [&](int island) { return s.next_iterate.is_affine(island); };
  if (std::ranges::none_of(shape_.islands, is_affine)) return;
  const bool all = std::ranges::all_of(shape_.islands, is_affine);
  for (const auto* ranges : {&shape_.edge, &shape_.core}) {
    for (const BatchRange& range : *ranges) {
      const BatchSlot& slot = waves_.batch(range.batch);
      if (slot.affine == nullptr) continue;
      const auto know = [&](LaneRange lanes) {
        slot.affine->known_waves(lanes, s.record + slot.record, s.u + slot.wave);
      };
      if (all) {
        know(range.lanes);
        continue;
      }
      // Islands that share the task with it make no other bits of an island.
      for (int lane = range.lanes.first; lane < range.lanes.last; ++lane) {
        if (is_affine(waves_.system().island_of_part(slot.parts[at(lane)]))) know({lane, lane + 1});
      }
    }
  }
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

void Task::bind(const StepArrays& s, std::vector<int>& numbers) {
  if (s.next_iterate.is_accelerated() && shared_.kept_u.empty()) {
    for (auto* kept : {&shared_.kept_u, &shared_.kept_b}) {
      kept->assign(at(s.next_iterate.acceleration()->slots()),
                   AlignedVector(shared_.offsets.size(), 0.0));
    }
  }
  calls_.bind(s, alone(), numbers);
}

int Task::iterate_alone(const StepArrays& s, int from, int to, const InnerUpdate& rule,
                        PhaseStatus& failure) {
  const std::vector<TaskCalls::Call>& calls = calls_.of(s).core;
  for (int k = from; k < to; ++k) {
    if (k > 0) core_coupling_.update(rule, s.b_trial, s.u);
    if (!solve(calls, s)) {
      failure = std::move(failure_);
      return k;
    }
  }
  return to;
}

bool Task::solve_slowly(const BatchRange& range, const StepArrays& s, bool first) {
  PhaseStatus own;
  if (waves_.inexact_scatter(range.batch, range.lanes, s.record, s.u, s.b_trial, own)) return true;
  if (first) failure_ = {};
  failure_.merge(std::move(own));
  return false;
}

bool Task::note_failed(const BatchRange& range, int lane, const StepArrays& s, bool first) {
  const int part = waves_.batch(range.batch).parts[at(lane)];
  PhaseStatus own;
  find_failure_in(
      range, s, [](int) { return true; }, own);
  if (own.ok()) {
    if (waves_.is_ignored(part)) return true;
    own = {part, StepFault::not_converged, {}};
  }
  if (first) failure_ = {};
  failure_.merge(std::move(own));
  return false;
}

/// The port solves of a lane group into s.b_next; its record is then as it was before.
PhaseStatus Task::solve_aside(const StepArrays& s, const BatchRange& group) const {
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

/// Of the waves that P b̂ was just formed of.
void Task::put_magnitudes(const StepArrays& s) {
  double* const m = s.residual->magnitudes().data();
  if (m == nullptr) return;
  if (!shared_.offsets.empty()) {
    shared_.coupling.magnitudes(shared_.b.data(), shared_.a.data());
    scatter_own(shared_.a, m);
  }
  edge_coupling_.magnitudes(s.b_trial, m);
  core_coupling_.magnitudes(s.b_trial, m);
}

void Task::measure(const StepArrays& s, const double* exchanged) {
  put_magnitudes(s);
  Acceleration* const acceleration = s.next_iterate.acceleration();
  for (std::size_t i = 0; i < shape_.islands.size(); ++i) {
    if (!s.next_iterate.is_solved(shape_.islands[i])) continue;
    const InterfaceSolver::Evaluation trial = s.next_iterate.trial(shape_.islands[i]);
    for_stretches(i, [&](int first, int count) {
      trial.take(at(first), count, s.u + first, exchanged + first);
    });
  }
  for (const auto* ranges : {&shape_.edge, &shape_.core}) {
    for (const BatchRange& range : *ranges) {
      s.residual->measure(range.batch, range.lanes, s.u, s.b_trial, exchanged);
      if (acceleration != nullptr) {
        acceleration->measure(range.batch, range.lanes, s.u, exchanged);
      }
    }
  }
  for (const int chunk : shape_.chunks) s.residual->sum_chunk(chunk);
  if (acceleration == nullptr) return;
  for (std::size_t i = 0; i < shape_.islands.size(); ++i) {
    keep(s, i, acceleration->sequence(shape_.islands[i]).slot(), exchanged);
  }
}

template <class Visit>
void Task::for_offsets(std::size_t index, const Visit& visit) const {
  for_stretches(index, [&](int first, int count) {
    for (int offset = first; offset < first + count; ++offset) visit(offset);
  });
}

template <class Visit>
void Task::for_stretches(std::size_t index, const Visit& visit) const {
  if (!shape_.island_waves.empty()) {
    for (const int offset : shape_.island_waves[index]) visit(offset, 1);
    return;
  }
  for (const auto* ranges : {&shape_.edge, &shape_.core}) {
    for (const BatchRange& range : *ranges) {
      const BatchSlot& batch = waves_.batch(range.batch);
      for (int j = 0; j < batch.batch->wave_size(); ++j) {
        const int first = batch.wave + j * batch.batch->stride();
        visit(first + range.lanes.first, range.lanes.last - range.lanes.first);
      }
    }
  }
}

void Task::keep(const StepArrays& s, std::size_t index, int slot, const double* exchanged) {
  Acceleration& acceleration = *s.next_iterate.acceleration();
  double* u = acceleration.u(slot);
  double* b = acceleration.b(slot);
  double* shadow = acceleration.shadow(slot);
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
  Acceleration& acceleration = *s.next_iterate.acceleration();
  bool combined = false;
  for (std::size_t i = 0; i < shape_.islands.size(); ++i) {
    const std::span<const AndersonSequence::Term> terms =
        s.next_iterate.combination(shape_.islands[i]);
    if (terms.empty()) continue;
    combined = true;
    for_offsets(i, [&](int offset) {
      double u = 0.0, b = 0.0;
      for (const auto& term : terms) {
        u += term.weight * acceleration.u(term.slot)[offset];
        b += term.weight * acceleration.b(term.slot)[offset];
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
  const auto is_active = [&](int island) { return s.next_iterate.has_solution(island); };
  const auto solved = std::ranges::find_if(shape_.islands, is_active);
  if (solved == shape_.islands.end()) return false;
  if (!std::ranges::all_of(shape_.islands, is_active)) {
    update_edge(s, rule, number, gathered);
    core_coupling_.update(rule, s.b_trial, s.u);
  }
  for (std::size_t i = 0; i < shape_.islands.size(); ++i) {
    if (!is_active(shape_.islands[i])) continue;
    const InterfaceSolver::Update next = s.next_iterate.solution(shape_.islands[i]);
    for_stretches(i,
                  [next, u = s.u](int first, int count) { next.put(at(first), count, u + first); });
  }
  // A task that shares junctions has one island.
  for (std::size_t local = 0; local < shared_.offsets.size(); ++local) {
    shared_.u[local] = s.next_iterate.solution(*solved).of(at(shared_.offsets[local]));
  }
  return true;
}

bool Task::reject_failed_trials(const StepArrays& s) {
  if (!s.next_iterate.has_trials()) return false;
  const auto island_of = [&](int part) { return waves_.system().island_of_part(part); };
  std::vector<int> spoiled;
  while (!failure_.ok()) {
    const int island = island_of(failure_.part);
    if (!s.next_iterate.on_trial(island)) return false;
    const PartSlot& failed = waves_.slot(failure_.part);
    for (int j = 0; j < waves_.batch(failed.batch).batch->wave_size(); ++j) {
      s.b_trial[failed.wave + j * failed.stride] = std::numeric_limits<double>::quiet_NaN();
    }
    if (shape_.islands.size() == 1) return true;
    // Others of this task may hide behind the part that was named.
    spoiled.push_back(island);
    failure_ = find_failure(s, [&](int part) {
      return std::find(spoiled.begin(), spoiled.end(), island_of(part)) == spoiled.end();
    });
  }
  return true;
}

void Task::restore_shadow(const StepArrays& s, std::size_t index) const {
  const double* shadow = s.next_iterate.shadow(shape_.islands[index]);
  for_offsets(index, [&](int offset) { s.a[offset] = shadow[offset]; });
}

bool Task::commit(const StepArrays& s, PhaseStatus& failure) {
  const TaskCalls::Bound& bound = calls_.of(s);
  bool sound = true;
  for (const TaskCalls::Call& call : bound.commit) {
    if (call.bound && call.bound() < 0) continue;
    sound = commit_slowly(call.range, s, failure) && sound;
  }
  if (s.ledger != nullptr) examine(bound, s);
  for (std::size_t i = 0; s.sums != nullptr && i < bound.commit.size(); ++i) {
    s.sums->take(bound.commit[i].range.batch, bound.commit[i].range.lanes, s.a, s.b_next);
  }
  return sound;
}

bool Task::commit_slowly(const BatchRange& range, const StepArrays& s, PhaseStatus& failure) const {
  PhaseStatus own;
  if (waves_.advance(range.batch, range.lanes, s.record, s.a, s.next, s.b_next, s.columns, own)) {
    return true;
  }
  failure.merge(std::move(own));
  return false;
}

void Task::examine(const TaskCalls::Bound& bound, const StepArrays& s) const {
  if (bound.examines_islands) {
    for (const int island : shape_.islands) s.ledger->examine_island(island, s.a, s.b_next);
    return;
  }
  for (const TaskCalls::Call& call : bound.commit) {
    s.ledger->examine(call.range.batch, call.range.lanes, s.a, s.b_next);
  }
  for (const int chunk : shape_.chunks) s.ledger->sum_chunk(chunk);
}

void Task::recommit(const StepArrays& s, std::span<const char> islands) {
  outcome = {};
  const auto is_marked = [&](int island) { return islands[at(island)] != 0; };
  if (std::ranges::none_of(shape_.islands, is_marked)) return;
  PhaseStatus failure;
  const bool sound = std::ranges::all_of(shape_.islands, is_marked)
                         ? commit(s, failure)
                         : commit_islands(s, is_marked, failure);
  if (!sound) outcome = {TaskOutcome::kCommit, std::move(failure)};
}

/// Only the lane groups in which some island is marked: what others have committed stays as it is.
template <class IsMarked>
bool Task::commit_islands(const StepArrays& s, const IsMarked& is_marked, PhaseStatus& failure) {
  bool sound = true;
  for (const auto* ranges : {&shape_.edge, &shape_.core}) {
    for (const BatchRange& range : *ranges) {
      const BatchSlot& batch = waves_.batch(range.batch);
      const int group = batch.batch->lane_group();
      for (int first = range.lanes.first; first < range.lanes.last; first += group) {
        const LaneRange lanes{first, std::min(first + group, range.lanes.last)};
        bool is_any = false;
        for (int lane = lanes.first; lane < lanes.last; ++lane) {
          is_any = is_any || is_marked(waves_.system().island_of_part(batch.parts[at(lane)]));
        }
        if (!is_any) continue;
        sound = commit_slowly({range.batch, lanes}, s, failure) && sound;
        if (s.ledger != nullptr) s.ledger->examine(range.batch, lanes, s.a, s.b_next);
        if (s.sums != nullptr) s.sums->take(range.batch, lanes, s.a, s.b_next);
      }
    }
  }
  return sound;
}

void Task::copy_island(std::size_t index, const double* from, double* to) const {
  for (const int offset : shape_.island_waves[index]) to[offset] = from[offset];
}

std::size_t Task::bytes() const {
  std::size_t sum =
      sizeof(Task) + edge_coupling_.bytes() + core_coupling_.bytes() + shared_.coupling.bytes() +
      (shape_.edge_junctions.capacity() + shape_.core_junctions.capacity()) * sizeof(int) +
      (shape_.edge.capacity() + shape_.core.capacity()) * sizeof(BatchRange);
  for (const auto& waves : shape_.island_waves) sum += waves.capacity() * sizeof(int);
  return sum;
}

void Task::compile(std::vector<int>& local) {
  const Interconnection& coupling = waves_.interconnection();
  coupling.recompile(edge_coupling_, shape_.edge_junctions);
  coupling.recompile(core_coupling_, shape_.core_junctions);
  for (std::size_t i = 0; i < shared_.offsets.size(); ++i) {
    local[at(shared_.offsets[i])] = static_cast<int>(i);
  }
  coupling.recompile(shared_.coupling, shared_.junctions, local);
  for (const int offset : shared_.offsets) local[at(offset)] = -1;
  calls_.forget();
}

}  // namespace portwave
