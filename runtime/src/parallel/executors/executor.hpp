#pragma once

#include <algorithm>
#include <memory>
#include <span>

#include "parallel/island_iteration.hpp"
#include "parallel/step_arrays.hpp"
#include "parallel/task_graph.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/parallel/budget.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

class StepTrace;

/// A macro-step's inner iteration and commit, as asked for.
struct StepPlan {
  IterationRule rule;
  DeadlineScheduler* deadline = nullptr;  ///< null: no deadline
  bool timed = false;                     ///< note when the inner iteration ended
  /// Not empty: no inner iteration, only the commit once more of the tasks in which an island, by
  /// number, is marked here, with the incident waves as they are. Outcomes stay.
  std::span<const char> recommit = {};
  /// Nothing looks at what an evaluation leaves behind when the one before it is committed, nor does an
  /// evaluation depend on the judgement of the one before: it may begin before that judgement is known.
  bool may_go_ahead = false;

  /// The number of evaluations, including the `done` ones, up to which nobody looks at the clock. Between
  /// evaluations of an interface equation there may be solves.
  int until_clock(int done) const { return rule.interface ? done + 1 : rule.budget; }
  /// Whether nobody looks at the inner iteration, or at its intermediate results, before its end.
  bool is_unwatched() const {
    return deadline == nullptr && !timed && recommit.empty() && !rule.checked();
  }
};

struct StepResult {
  int failed_at = -1;  ///< iteration, or TaskOutcome::kCommit
  PhaseStatus failure;
  bool out_of_time = false;  ///< the deadline ended it
  DeadlineScheduler::Time inner_end{};
};

/// Runs macro-steps on some number of threads. Everything is elementwise over lanes or junctions
/// and sums run in part order, so results do not depend on the executor, the partition or the
/// schedule.
///
/// A call returns when all its work is done, also after a failure; it reports the earliest
/// iteration that failed, and of that the part with the lowest number. Outcomes are by island.
class Executor {
 public:
  virtual ~Executor() = default;
  virtual int threads() const = 0;
  virtual int tasks() const = 0;
  /// A loop over many parts, for use between calls of `execute`: on the threads of `execute`, or on the
  /// calling thread where an executor offers no other.
  virtual const ForEach& for_each() const { return alone_; }
  /// The same for whoever is at work within `execute`: the threads that find nothing else to do help. May be
  /// called by several at once.
  virtual const ForEach& for_each_within() const { return alone_; }
  /// Memory of tasks, channels and compiled junctions.
  virtual std::size_t bytes() const = 0;
  /// Makes ready for steps with these arrays, so that none of them allocates. Steps come with two
  /// sets of arrays in turn.
  virtual void bind(const StepArrays& arrays) = 0;
  StepResult execute(const StepArrays& arrays, const StepPlan& plan,
                     std::span<IslandOutcome> outcomes) {
    // Here, once for all executors: an island says nothing of this step that is true of the last one only.
    if (plan.recommit.empty()) std::ranges::fill(outcomes, IslandOutcome{});
    return do_execute(arrays, plan, outcomes);
  }
  /// The junctions and step maps have changed: `bind` is to follow.
  virtual void recompile() = 0;
  /// Whether bound calls keep places of coefficients, as those of small islands do: then `recompile` and
  /// `bind` are to follow also when the part in one lane was exchanged (WaveDiscretisation::exchange_part).
  virtual bool keeps_places() const = 0;

 private:
  /// The body of `execute`, with outcomes of islands whose iteration has not begun.
  virtual StepResult do_execute(const StepArrays& arrays, const StepPlan& plan,
                                std::span<IslandOutcome> outcomes) = 0;

  ForEach alone_;
};

/// The failure to report: the earliest iteration, and of that the part with the lowest number.
void take_failure(const TaskGraph& graph, StepResult& result);

/// Everything on the calling thread, island group by island group. `trace`: what its tasks do is noted
/// there, as tasks −1, −2, …; null: nobody looks.
std::unique_ptr<Executor> make_serial_executor(const WaveDiscretisation& waves,
                                               const Partition& island_groups,
                                               StepTrace* trace = nullptr);
/// A plain tbb::flow::graph with one node per task and phase: the reference for the fast one.
std::unique_ptr<Executor> make_graph_executor(const WaveDiscretisation& waves,
                                              const Partition& partition, int threads);
/// Tasks claimed by workers that never wait for one another (docs/concepts/wave-exchange.md).
/// `arena`: whose workers they are; null: its own.
std::unique_ptr<Executor> make_async_executor(const WaveDiscretisation& waves,
                                              const Partition& partition, int threads,
                                              const std::shared_ptr<Arena>& arena = nullptr,
                                              StepTrace* trace = nullptr);
/// The serial one or the async executor, whichever the clock has lately found faster.
std::unique_ptr<Executor> make_automatic_executor(std::unique_ptr<Executor> serial,
                                                  std::unique_ptr<Executor> parallel);

}  // namespace portwave
