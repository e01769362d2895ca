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
  int rescue_after = 0;    ///< evaluations after which the other islands take it too; 0: never
  const DeadlineScheduler* deadline = nullptr;  ///< says which solves there is time for; null: all
  /// Under a deadline: an interface equation takes new factors for solves in the steps to come where this one has no
  /// time for both.
  bool renews_for_later = false;

  /// Whether the gap is judged after every evaluation.
  bool checked() const {
    return tolerance > 0.0 || energy_tolerance_J > 0.0 || accelerated || interface;
  }
};

/// The outcome of an island's inner iteration.
struct IslandOutcome {
  int iterations = 0;  ///< evaluations of S
  bool converged = false;
  bool by_energy = false;   ///< only the energy tolerance was met
  bool rescued = false;     ///< it went on with the interface update within the step
  int rejected_trials = 0;  ///< accelerated evaluations that were not kept
  InterfaceGap gap = {};    ///< at the last evaluation that stands, if gaps are judged
};

constexpr std::array<std::size_t, 3> archive_flags(const IslandOutcome*) {
  return {offsetof(IslandOutcome, converged), offsetof(IslandOutcome, by_energy),
          offsetof(IslandOutcome, rescued)};
}

/// The decisions about one island, as a whole, in a macro-step: whether an evaluation of S stands, where the
/// next one starts if that is not the plain update (Anderson acceleration, the interface equation), when the
/// island stops, and which waves â it commits. Executors only decide when and on which thread a task acts.
///
/// An island that is cut into several tasks has one such object per task. Each chooses â for the waves of its
/// own task. An evaluation is judged by one of them; it does not matter which.
class IslandIteration {
 public:
  /// For the island at `index` in the list of `task`.
  IslandIteration(Task& task, std::size_t index)
      : task_(&task), index_(index), island_(task.islands()[index]) {}

  int island() const { return island_; }

  /// Judges evaluation number `evaluations`, counted from 1, of a checked iteration, once all tasks of the
  /// island have measured the gap between u and `exchanged`, which is P b̂. Prepares the next iterate unless
  /// the plain update makes it. Returns true when the island stops: its tolerance is met, or its budget
  /// spent.
  bool judge(const StepArrays& s, const IterationRule& rule, int evaluations,
             const double* exchanged, IslandOutcome& outcome) const;

  /// Whether the last evaluation stands, or was a trial that is rejected.
  bool last_stands(const StepArrays& s) const { return s.next_iterate.stands(island_); }

  /// For a task whose islands stop one by one: copies â from `exchanged`, which later evaluations overwrite.
  void keep_shadow(const StepArrays& s, const double* exchanged) const {
    if (last_stands(s)) task_->copy_island(index_, exchanged, s.a);
  }
  /// Called before the commit of a checked iteration, when s.a holds P b̂ of the last evaluation: replaces it
  /// by that of the last evaluation that stands.
  void restore_shadow(const StepArrays& s) const {
    if (!last_stands(s)) task_->restore_shadow(s, index_);
  }

 private:
  Task* task_;
  std::size_t index_;
  int island_;
};

/// Writes into s.a the â that a task commits after `evaluations`: P bⁿ if there were none, else the shadow P
/// b̂ of the last one that stands. `number`: the number of the last evaluation's messages.
void choose_shadow(Task& task, const StepArrays& s, const IterationRule& rule, int evaluations,
                   std::uint64_t number);

}  // namespace portwave
