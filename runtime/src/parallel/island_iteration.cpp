#include "parallel/island_iteration.hpp"

#include "parallel/clock.hpp"

namespace portwave {
namespace {

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

/// Whether new factors fit, without the solve and the evaluation that make use of them.
bool may_renew(const DeadlineScheduler& deadline, Clock::time_point now) {
  const double use_s = deadline.step_s(3, true) - deadline.step_s(2, true);
  const auto earlier =
      now - std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(use_s));
  return deadline.affords(earlier) == DeadlineScheduler::Solve::new_factors;
}

/// By the interface equation, as far as there is time for it.
void advance(const StepArrays& s, int island, const double* exchanged, const IterationRule& rule) {
  const DeadlineScheduler* const deadline = rule.deadline;
  using Effort = InterfaceSolver::Effort;
  using Solve = DeadlineScheduler::Solve;
  if (deadline == nullptr) {
    s.next_iterate.solve(island, s.record, Effort::renew);
    return;
  }
  const Clock::time_point start = Clock::now();
  const Solve most = deadline->affords(start);
  const bool renews_for_later = most != Solve::new_factors && rule.renews_for_later &&
                                s.next_iterate.stands(island) && may_renew(*deadline, start);
  if (renews_for_later && s.next_iterate.renew(island, s.record, s.u, exchanged)) {
    Clock::spend(Work::linearise);
    return deadline->took(Solve::new_factors, seconds(Clock::now() - start));
  }
  const Effort done = s.next_iterate.solve(island, s.record,
                                           most == Solve::new_factors    ? Effort::renew
                                           : most == Solve::with_factors ? Effort::solve
                                                                         : Effort::average);
  if (done == Effort::average) return;
  Clock::spend(done == Effort::renew ? Work::linearise : Work::solve);
  deadline->took(done == Effort::renew ? Solve::new_factors : Solve::with_factors,
                 seconds(Clock::now() - start));
}

}  // namespace

bool IslandIteration::judge(const StepArrays& s, const IterationRule& rule, int evaluations,
                            const double* exchanged, IslandOutcome& outcome) const {
  MeasuredGap gap = s.residual->gap(island_, rule.tolerance_per_part);
  gap.residual = gap.residual_since(s.next_iterate.first_size(island_));
  const double square = 2.0 * gap.energy_J;
  const bool stands = s.next_iterate.take(island_, square, gap.answer);
  if (!s.next_iterate.is_solved(island_)) {
    outcome.rejected_trials = s.next_iterate.rejections(island_);
  }
  outcome.iterations = evaluations;
  if (stands) {
    outcome.gap = gap;
    compare_with_tolerances(rule, gap, outcome);
    if (rule.tolerance_per_part && s.residual->is_rounding(island_, evaluations, gap)) {
      outcome.converged = true;
    }
  }
  if (outcome.converged || evaluations >= rule.budget) return true;
  if (!s.next_iterate.may_solve()) return false;
  bool is_solved = s.next_iterate.is_solved(island_);
  const bool late =
      rule.rescue_after > 0 && evaluations >= rule.rescue_after && may_solve(rule.deadline);
  if (!is_solved && late && stands) {
    is_solved = outcome.rescued =
        s.next_iterate.rescue(island_, s.u, exchanged, square, gap.answer);
  }
  if (is_solved) advance(s, island_, exchanged, rule);
  return false;
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
