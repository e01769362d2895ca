#pragma once

#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "protocol.hpp"

namespace portwave::weak_memory {

inline Scenario pair_of_tasks(int threads, std::vector<int> budgets) {
  return {.name = "pair",
          .tasks = 2,
          .junctions = {{0, 1}},
          .threads = threads,
          .budgets = std::move(budgets)};
}

inline Scenario line_of_three(int threads, std::vector<int> budgets) {
  return {.name = "line",
          .tasks = 3,
          .junctions = {{0, 1}, {1, 2}},
          .threads = threads,
          .budgets = std::move(budgets)};
}

inline Scenario triangle(int threads, std::vector<int> budgets) {
  return {.name = "triangle",
          .tasks = 3,
          .junctions = {{0, 1}, {1, 2}, {0, 2}},
          .threads = threads,
          .budgets = std::move(budgets)};
}

/// Checked iterations, the decision allowing so many of each step.
inline Scenario deciding(Scenario scenario, std::vector<int> iterations) {
  scenario.checked = true;
  scenario.iterations = std::move(iterations);
  return scenario;
}

/// A clock may end the iteration at any time.
inline Scenario timed(Scenario scenario) {
  scenario.timed = true;
  return scenario;
}

inline Scenario faulting(Scenario scenario, std::vector<Fault> faults) {
  scenario.faults = std::move(faults);
  return scenario;
}

inline std::string describe(const Scenario& s) {
  std::string text = s.name + ", " + std::to_string(s.threads) + " threads, K =";
  for (int budget : s.budgets) text += ' ' + std::to_string(budget);
  for (int iterations : s.iterations) text += ", stops after " + std::to_string(iterations);
  for (const Fault& f : s.faults) {
    text += ", fault in step " + std::to_string(f.step) + " task " + std::to_string(f.task) +
            (f.k == Fault::kCommit ? ", commit" : ", iteration " + std::to_string(f.k)) +
            (f.late ? ", late" : "");
  }
  if (s.timed) text += ", timed";
  for (const Weakening& w : s.weakenings) text += ", " + w.variable + " weakened";
  return text;
}

inline const char* describe(Interrupt interrupt) {
  switch (interrupt) {
    case Interrupt::everywhere:
      return "everywhere";
    case Interrupt::after_writes:
      return "after writes";
    case Interrupt::before_reads:
      return "before reads";
  }
  return "";
}

/// Explores and says how much there was.
inline Exploration examine(const Scenario& scenario, Interrupt interrupt, Search search) {
  Exploration result = explore(Protocol(scenario), interrupt, search);
  std::cout << "  " << describe(scenario) << "; interrupted " << describe(interrupt) << ": "
            << result.states << " states, "
            << (result.holds() ? std::to_string(result.ends) + " ends" : result.violation) << '\n';
  return result;
}

}  // namespace portwave::weak_memory
