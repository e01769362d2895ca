#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

class StateArchive;
struct StepSizes;

/// h₀2⁻ᵏ, the longest that follows every input with a known period. h₀: the largest step.
double longest_for_periods(const System& system, const StepSizes& sizes, double largest_s);

/// Known times at which the inputs of a system jump or have a kink: knots of tables, and changes of
/// expressions (Signal::next_change).
class InputChanges {
 public:
  explicit InputChanges(const System& system);

  /// The first such time after `after_s`, as far as `reach_s` from there; infinite if there is none. Call it
  /// with increasing times: expressions are searched some way ahead.
  double next(double after_s, double reach_s);

  /// How many inputs there are that change so.
  std::size_t inputs() const { return tables_.size() + expressions_.size(); }
  /// Calls visit(number of the input) for each that changes after `after_s` and not after `until_s`.
  void for_each_within(double after_s, double until_s,
                       const std::function<void(int input)>& visit) const;
  /// Whether an input jumps in the step from `begin_s`: by more than a kink moves it there.
  bool jumps(double begin_s, double step_s) const;
  /// Whether a displacement (Signal::rate_of) jumps in the step from `begin_s`.
  bool displacement_jumps(double begin_s, double step_s) const;

  void archive(StateArchive& archive);

 private:
  std::vector<const Signal*> tables_, expressions_, rates_;
  double kink_s_;      // the next one of `tables_`
  double change_s_;    // of `expressions_`; infinite: none known
  double searched_s_;  // end of the searched interval
};

}  // namespace portwave
