#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "parallel/channel.hpp"
#include "parallel/step_arrays.hpp"
#include "parallel/task_calls.hpp"
#include "portwave/runtime/parallel/partition.hpp"

namespace portwave {

/// The failure of a task in a step, if there is one.
struct TaskOutcome {
  static constexpr int kCommit = INT32_MAX;

  int failed_at = -1;  ///< iteration whose port solve failed; kCommit: the commit; −1: none
  PhaseStatus failure;
};

/// One task: some lane groups, the junctions among them, and its share of the junctions that it has
/// in common with other tasks. The phases of a macro-step are its member functions; each touches
/// only the task's own part of the arrays, and channels. Offsets are those in a wave array of the
/// whole system.
class Task {
 public:
  Task(const WaveDiscretisation& waves, const Partition::Task& cut);

  int island_group() const { return shape_.island_group; }
  std::span<const int> islands() const { return shape_.islands; }
  /// Whether it shares no junction with another task.
  bool alone() const { return inbound_.empty(); }

  /// u⁰ = P bⁿ into `out`.
  void start(const StepArrays& s, double* out);
  /// Before the first iteration: u⁰ = P bⁿ, or waves at which parts know their answer (AffineMap::known_waves) where
  /// one update leads from any to the solution.
  void begin(const StepArrays& s);
  /// Iteration k of a step: updates u if k > 0, then finds b̂ ≈ S(u) (StepBatch::inexact_scatter). Its
  /// messages have the number `number`, those of the iteration before it `number` − 1. Lanes that other tasks
  /// wait for come first; their waves are sent before the rest is done. `on_fault` is called with the
  /// PhaseStatus of a failure before anything that depends on the failure is sent.
  template <class OnFault>
  void iterate(const StepArrays& s, int k, const InnerUpdate& rule, std::uint64_t number,
               const OnFault& on_fault) {
    begin_iteration(s, k, rule, number);
    iterate_edge_first(
        !shape_.edge.empty(), [&] { return solve_edge(s, rule, number); },
        [&] { return solve_core(s, rule); }, [&] { on_fault(std::move(failure_)); },
        [&] { send(s, number); });
  }
  /// The same in two calls: everything up to the sending of the waves, then the rest.
  template <class OnFault>
  void iterate_edge(const StepArrays& s, int k, const InnerUpdate& rule, std::uint64_t number,
                    const OnFault& on_fault) {
    begin_iteration(s, k, rule, number);
    iterate_edge_first(
        !shape_.edge.empty(), [&] { return solve_edge(s, rule, number); }, [] { return true; },
        [&] { on_fault(std::move(failure_)); }, [&] { send(s, number); });
  }
  template <class OnFault>
  void iterate_core(const StepArrays& s, const InnerUpdate& rule, const OnFault& on_fault) {
    if (!solve_core(s, rule)) on_fault(std::move(failure_));
  }
  /// Makes iterations [from, to) of a task that is alone. Returns `to` or, if a port solve fails, the number
  /// of the iteration that failed; `failure` then describes it.
  int iterate_alone(const StepArrays& s, int from, int to, const InnerUpdate& rule,
                    PhaseStatus& failure);
  /// For a task that is alone and small, with a fixed budget: makes all `evaluations` in one call, and writes
  /// â to s.a. Returns false, with nothing done, if the task is not such a one or a port solve failed.
  bool iterate_at_once(const StepArrays& s, int evaluations, const InnerUpdate& rule) {
    SmallIsland* const small = calls_.of(s).small.get();
    return small != nullptr && small->iterate(rule, evaluations, s.b, s.a);
  }
  /// Repeats the port solves, lane group by lane group, and returns the lowest-numbered part that fails and
  /// for which counts(part) holds. Results go to where the commit will write, and warm starts are not
  /// changed: b̂ must not depend, now or later, on whether a part of another island has failed.
  template <class Counts>
  PhaseStatus find_failure(const StepArrays& s, const Counts& counts) const {
    PhaseStatus lowest;
    for (const auto* ranges : {&shape_.edge, &shape_.core}) {
      for (const BatchRange& range : *ranges) {
        find_failure_in(range, s, counts, lowest);
      }
    }
    return lowest;
  }
  /// â = P b̂ of iteration `number` into `out`.
  void exchange(const StepArrays& s, std::uint64_t number, double* out);
  /// Measures the gap between u and `exchanged`. If the iteration is accelerated, also forms products with
  /// earlier gaps, and keeps the waves.
  void measure(const StepArrays& s, const double* exchanged);
  /// Restores in s.a the â that an island had at the last evaluation that stands.
  void restore_shadow(const StepArrays& s, std::size_t index) const;
  /// x⁺, b⁺, energies for the incident waves in s.a.
  bool commit(const StepArrays& s, PhaseStatus& failure);
  /// Commits once more if an island of this task is marked in `islands`; notes a failure in `outcome`.
  void recommit(const StepArrays& s, std::span<const char> islands);
  /// Publishes its messages with whatever waves they hold, so that tasks that wait for them can finish.
  void publish(std::uint64_t number);

  /// Whether message `number` has arrived from all neighbours.
  bool ready(std::uint64_t number) const { return all_arrived(inbound_, number); }
  /// Copies `from` to `to` at the offsets of an island of this task.
  void copy_island(std::size_t index, const double* from, double* to) const;

  std::span<const int> neighbours() const { return neighbours_; }
  /// Lanes that share a junction with those of other tasks.
  std::span<const BatchRange> edge() const { return shape_.edge; }
  std::size_t bytes() const;

  TaskOutcome outcome;

 private:
  friend class TaskBuilder;
  friend class TaskGraph;

  /// Junctions shared with other tasks, on a small wave array of their own: both sides do the same
  /// update, so that only b̂ has to travel.
  struct Shared {
    std::vector<int> junctions;
    CompiledJunctions coupling;
    std::vector<int> offsets;  ///< by local number of a wave
    std::vector<int> own;      ///< local numbers of the task's own waves
    AlignedVector u, b, a;
    std::vector<AlignedVector> kept_u, kept_b;  ///< by slot of an accelerated iteration
  };
  struct Inbound {
    const Channel* channel;
    std::vector<int> local;  ///< local numbers of its waves
  };
  struct Outbound {
    Channel* channel;
    std::vector<int> offsets;
  };

  void begin_iteration(const StepArrays& s, int k, const InnerUpdate& rule, std::uint64_t number) {
    calls_now_ = &calls_.of(s);
    combined_ = k > 0 && s.next_iterate.is_accelerated() && combine(s);
    updated_ = k == 0 || (s.next_iterate.may_solve() && adopt(s, rule, number - 1, combined_));
  }
  bool solve_edge(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number) {
    if (!updated_) update_edge(s, rule, number - 1, combined_);
    return solve(calls_now_->edge, s) || reject_failed_trials(s);
  }
  bool solve_core(const StepArrays& s, const InnerUpdate& rule) {
    if (!updated_) core_coupling_.update(rule, s.b_trial, s.u);
    return solve(calls_now_->core, s) || reject_failed_trials(s);
  }
  PhaseStatus solve_aside(const StepArrays& s, const BatchRange& group) const;
  void gather(const StepArrays& s, std::uint64_t number);
  void scatter_own(const AlignedVector& from, double* out) const;
  /// `gathered`: whether b̂ of the shared junctions has been gathered already.
  void update_edge(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number,
                   bool gathered);
  /// Replaces u and b̂ by the combinations from which an accelerated iteration makes its next update. Returns
  /// false if there are none, and both stay as they are.
  bool combine(const StepArrays& s);
  /// Takes over the next iterates that the interface solver has made, after the plain update of the task's
  /// other islands. Returns false if it has made none.
  bool adopt(const StepArrays& s, const InnerUpdate& rule, std::uint64_t number, bool gathered);
  void put_magnitudes(const StepArrays& s);
  void keep(const StepArrays& s, std::size_t index, int slot, const double* exchanged);
  /// visit(offset) for the offsets of an island.
  template <class Visit>
  void for_offsets(std::size_t index, const Visit& visit) const;
  /// visit(first, count) for those that follow one another.
  template <class Visit>
  void for_stretches(std::size_t index, const Visit& visit) const;
  void bind(const StepArrays& s, std::vector<int>& numbers);
  bool keeps_places() const { return calls_.keeps_places(); }
  /// Takes over the junctions and step maps as they are now. `local`: scratch, −1 for every offset before and
  /// after the call.
  void compile(std::vector<int>& local);
  /// False when a lane failed; failure_ then says which.
  bool solve(const std::vector<TaskCalls::Call>& calls, const StepArrays& s) {
    bool sound = true;
    for (const TaskCalls::Call& call : calls) {
      if (!call.bound) {
        sound = solve_slowly(call.range, s, sound) && sound;
      } else if (const int lane = call.bound(); lane >= 0 && lane < call.range.lanes.last) {
        sound = note_failed(call.range, lane, s, sound) && sound;
      }
    }
    return sound;
  }
  /// A port solve that fails at a trial of an accelerated or quasi-Newton iteration is no fault: its waves
  /// become NaN, so that the trial is rejected. Returns false if something else has failed too; failure_ then
  /// says what.
  bool reject_failed_trials(const StepArrays& s);
  bool solve_slowly(const BatchRange& range, const StepArrays& s, bool first);
  /// What the bound port solves of `range`, of which that in `lane` has failed, have met. Solves nothing again: others
  /// in the same lanes would go on from other warm starts.
  bool note_failed(const BatchRange& range, int lane, const StepArrays& s, bool first);
  /// Of the port solves of a range, as find_failure.
  template <class Counts>
  void find_failure_in(const BatchRange& range, const StepArrays& s, const Counts& counts,
                       PhaseStatus& lowest) const {
    const int group = waves_.batch(range.batch).batch->lane_group();
    for (int first = range.lanes.first; first < range.lanes.last; first += group) {
      const LaneRange lanes{first, std::min(first + group, range.lanes.last)};
      PhaseStatus own = solve_aside(s, {range.batch, lanes});
      if (!own.ok() && counts(own.part)) lowest.merge(std::move(own));
    }
  }
  template <class IsMarked>
  bool commit_islands(const StepArrays& s, const IsMarked& is_marked, PhaseStatus& failure);
  // Kept out of `commit`, which would otherwise need a stack frame for its failures.
  [[gnu::noinline]] bool commit_slowly(const BatchRange& range, const StepArrays& s,
                                       PhaseStatus& failure) const;
  void examine(const TaskCalls::Bound& bound, const StepArrays& s) const;
  void send(const StepArrays& s, std::uint64_t number);

  const WaveDiscretisation& waves_;
  TaskShape shape_;
  CompiledJunctions edge_coupling_, core_coupling_;
  Shared shared_;
  std::vector<Inbound> inbound_;
  std::vector<Outbound> outbound_;
  std::vector<int> neighbours_;
  TaskCalls calls_;
  // The iteration that has begun: its calls, whether u and b̂ were combined, and whether u is updated.
  const TaskCalls::Bound* calls_now_ = nullptr;
  bool combined_ = false, updated_ = false;
  PhaseStatus failure_;
};

}  // namespace portwave
