#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "parallel/step_arrays.hpp"
#include "parallel/task_graph.hpp"
#include "portwave/runtime/parallel/budget.hpp"

namespace portwave {

/// When an inner iteration ends by itself.
struct IterationRule {
  int budget = 0;  ///< K ≥ 0: evaluations of S at the most
  InnerUpdate update;
  double tolerance = 0.0;           ///< 0: none
  double energy_tolerance_J = 0.0;  ///< 0: none
  bool tolerance_per_part = false;
  bool accelerated = false;
  bool interface = false;  ///< some islands take the interface update from the start
  int rescue_after = 0;    ///< evaluations after which others take it, too; 0: never
  const DeadlineScheduler* deadline = nullptr;  ///< says what there is time for; null: for all

  /// The gap is judged after every evaluation.
  bool checked() const {
    return tolerance > 0.0 || energy_tolerance_J > 0.0 || accelerated || interface;
  }
};

/// What became of an island's inner iteration.
struct IslandOutcome {
  int iterations = 0;  ///< evaluations of S
  bool converged = false;
  bool by_energy = false;   ///< it was the energy tolerance that was met
  bool rescued = false;     ///< it went on with the interface update within the step
  int rejected_trials = 0;  ///< accelerated evaluations that were not kept
  InterfaceGap gap = {};    ///< at the last evaluation that stands, if gaps are judged
};

constexpr std::array<std::size_t, 3> archive_flags(const IslandOutcome*) {
  return {offsetof(IslandOutcome, converged), offsetof(IslandOutcome, by_energy),
          offsetof(IslandOutcome, rescued)};
}

/// What is decided about one island, as a whole, in the course of a macro-step: whether an
/// evaluation of S stands, what the next one starts from where that is more than the plain update
/// (Anderson acceleration, the interface equation), when the island stops, and which waves â it
/// commits. Executors only decide when a task does what, and on which thread.
///
/// An island that is cut into several tasks has one of these per task. All of them choose â for the
/// waves of their own task; only one of them, whichever it is, judges an evaluation.
class IslandIteration {
 public:
  /// The island at `index` of those of `task`.
  IslandIteration(Task& task, std::size_t index)
      : task_(&task), index_(index), island_(task.islands()[index]) {}

  int island() const { return island_; }

  /// Judges evaluation number `evaluations`, from 1, of a checked iteration: all tasks of the
  /// island have measured the gap between u and `exchanged`, which is P b̂. Prepares the next
  /// iterate where that is not the plain update's. True when the island stops: its tolerance is
  /// met, or its budget spent.
  bool judge(const StepArrays& s, const IterationRule& rule, int evaluations,
             const double* exchanged, IslandOutcome& outcome) const;

  /// Whether the last evaluation stands, or was a trial that is rejected.
  bool last_stands(const StepArrays& s) const { return s.next_iterate.stands(island_); }

  /// Where islands of one task stop one by one: takes â from `exchanged`, which goes on changing.
  void keep_shadow(const StepArrays& s, const double* exchanged) const {
    if (last_stands(s)) task_->copy_island(index_, exchanged, s.a);
  }
  /// Before the commit of a checked iteration, P b̂ of the last evaluation being in s.a: â is that
  /// of the last evaluation that stands.
  void restore_shadow(const StepArrays& s) const {
    if (!last_stands(s)) task_->restore_shadow(s, index_);
  }

 private:
  Task* task_;
  std::size_t index_;
  int island_;
};

/// â of a task for the commit, in s.a, after so many evaluations: P bⁿ without any, else the shadow
/// P b̂ of the last one that stands. `number`: of the messages of the last evaluation.
void choose_shadow(Task& task, const StepArrays& s, const IterationRule& rule, int evaluations,
                   std::uint64_t number);

}  // namespace portwave
