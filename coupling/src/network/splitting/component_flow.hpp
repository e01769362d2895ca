#pragma once

#include <span>
#include <vector>

#include "network/stage_solver.hpp"
#include "portwave/subsystems/base/aligned.hpp"
#include "portwave/subsystems/base/for_each.hpp"

namespace portwave {

/// The flow of ẋ = F x + g(t) over a time, by Gauss's method of two stages: order 4, and an isometry of every
/// energy that F keeps. States that F does not tie together are solved apart, equal ones side by side; states
/// that neither F nor g touches stay.
class ComponentFlow {
 public:
  static constexpr int kStages = 2;
  /// Places of the stages, as shares of the time.
  static std::span<const double> places();

  /// `steps`: so many of equal length. `driven`: by state, whether g may act on it.
  /// Errors: ConfigError where a step is singular.
  ComponentFlow(const SparseMatrix& F, double duration_s, int steps,
                const std::vector<char>& driven);

  int steps() const { return steps_; }
  double step_s() const { return step_s_; }

  /// One step of all states, x in place. `g` at the stages, all states of the first before those of the second;
  /// null: 0. `stages`: likewise, x at the stages, written for the states that are touched; null: nobody asks.
  void step(const ForEach& each, double* x, const double* g, double* stages);

  double operations() const;
  int tasks() const { return static_cast<int>(tasks_.size()) - 1; }
  std::size_t bytes() const { return work_.capacity() * sizeof(double); }

 private:
  /// Components of equal F: one solver, states by component.
  struct Class {
    StageSolver solver;
    int size = 0;
    std::vector<int> states;  ///< size by component
  };
  /// Components [first, first + count) of a class.
  struct Group {
    int of = 0, first = 0, count = 0;
  };
  void run(const Group& group, double* x, const double* g, double* stages, double* work) const;

  int states_;
  int steps_;
  double step_s_;
  std::vector<Class> classes_;
  std::vector<Group> groups_;
  std::vector<int> tasks_;            ///< of groups
  std::vector<std::size_t> work_of_;  ///< by task
  AlignedVector work_;
};

}  // namespace portwave
