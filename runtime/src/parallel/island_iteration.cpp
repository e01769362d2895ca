#include "parallel/island_iteration.hpp"

#include "parallel/clock.hpp"

namespace portwave {
namespace {

/// The island takes the interface update in this step.
bool is_solved(const StepArrays& s, int island) {
  return s.interface != nullptr && s.interface->engaged(island);
}

/// Whether an island with this gap may stop, and whether for its energy alone.
void compare_with_tolerances(const IterationRule& rule, const InterfaceGap& gap,
                             IslandOutcome& outcome) {
  const bool residual_met = rule.tolerance > 0.0 && gap.residual <= rule.tolerance;
  const bool energy_met = rule.energy_tolerance_J > 0.0 && gap.energy_J <= rule.energy_tolerance_J;
  outcome.by_energy = !residual_met && energy_met;
  outcome.converged = residual_met || energy_met;
}

bool may_solve(const DeadlineScheduler* deadline) {
  return deadline == nullptr || deadline->affords(Clock::now()) != DeadlineScheduler::Solve::none;
}

/// By the interface equation, as far as there is time for it.
void advance(const StepArrays& s, int island, const double* exchanged,
             const DeadlineScheduler* deadline) {
  using Effort = InterfaceSolver::Effort;
  using Solve = DeadlineScheduler::Solve;
  if (deadline == nullptr) {
    s.interface->advance(island, s.record, s.u, exchanged);
    return;
  }
  const Clock::time_point start = Clock::now();
  const Solve most = deadline->affords(start);
  const Effort done = s.interface->advance(island, s.record, s.u, exchanged,
                                           most == Solve::anew           ? Effort::renew
                                           : most == Solve::with_factors ? Effort::solve
                                                                         : Effort::average);
  if (done == Effort::average) return;
  deadline->took(done == Effort::renew ? Solve::anew : Solve::with_factors,
                 seconds(Clock::now() - start));
}

}  // namespace

bool IslandIteration::judge(const StepArrays& s, const IterationRule& rule, int evaluations,
                            const double* exchanged, IslandOutcome& outcome) const {
  const InterfaceGap gap = s.residual->gap(island_, rule.tolerance_per_part);
  const double square = 2.0 * gap.energy_J;
  bool stands = true;
  bool solved = is_solved(s, island_);
  if (solved) {
    stands = s.interface->accept(island_, square);
  } else if (s.acceleration != nullptr) {
    s.acceleration->judge(island_, square);
    stands = s.acceleration->sequence(island_).stands();
    outcome.rejected_trials = s.acceleration->sequence(island_).rejections();
  }
  outcome.iterations = evaluations;
  if (stands) {
    outcome.gap = gap;
    compare_with_tolerances(rule, gap, outcome);
  }
  if (outcome.converged || evaluations >= rule.budget) return true;
  if (s.interface == nullptr) return false;
  const bool late =
      rule.rescue_after > 0 && evaluations >= rule.rescue_after && may_solve(rule.deadline);
  if (!solved && late && stands && s.interface->engage(island_)) {
    if (s.acceleration != nullptr) s.acceleration->sequence(island_).abandon();
    solved = outcome.rescued = s.interface->accept(island_, square);
  }
  if (solved) advance(s, island_, exchanged, rule.deadline);
  return false;
}

bool IslandIteration::last_stands(const StepArrays& s) const {
  if (is_solved(s, island_)) return s.interface->stands(island_);
  return s.acceleration == nullptr || s.acceleration->sequence(island_).stands();
}

void choose_shadow(Task& task, const StepArrays& s, const IterationRule& rule, int evaluations,
                   std::uint64_t number) {
  if (evaluations == 0) return task.start(s, s.a);
  if (!rule.checked()) return task.exchange(s, number, s.a);
  for (std::size_t i = 0; i < task.islands().size(); ++i) {
    IslandIteration(task, i).restore_shadow(s);
  }
}

}  // namespace portwave
