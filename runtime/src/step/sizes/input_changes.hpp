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
  /// Whether find_sudden may find anything.
  bool may_be_sudden() const { return inputs() > 0 || !smooth_.empty(); }
  /// Calls visit(number of the input) for each that changes after `after_s` and not after `until_s`.
  void for_each_within(double after_s, double until_s,
                       const std::function<void(int input)>& visit) const;
  /// Whether an input jumps in the step from `begin_s`: by more than a kink moves it there.
  bool jumps(double begin_s, double step_s) const;
  /// Into `times_s`, in order: where the step from `begin_s` is to be cut, beyond rounding of its ends.
  ///
  /// With `with_known` all knots and change-overs of an input that changes about them by more than it does beside them
  /// in a whole step: a jump, an edge, a pulse. Always both ends of an eighth of the step or less in which an
  /// expression without change-overs there does a third of what it does in the step, which is four times as much as in
  /// the steps beside it.
  ///
  /// Empty with more than `most` times, and where a displacement jumps. Call it with increasing times.
  void find_sudden(double begin_s, double step_s, std::size_t most, bool with_known,
                   std::vector<double>& times_s);
  /// Whether a displacement (Signal::rate_of) jumps in the step from `begin_s`.
  bool displacement_jumps(double begin_s, double step_s) const;

  void archive(StateArchive& archive);

 private:
  /// An expression, and its values at the ends of four steps in a row.
  struct Smooth {
    const Signal* signal;
    double end_s;  ///< of the third of these steps; −∞: there are no values
    double before, begin, end, next;
  };
  void find_steep(double begin_s, double step_s, std::vector<double>& times_s);

  std::vector<const Signal*> tables_, expressions_, rates_;
  std::vector<Smooth> smooth_;
  double kink_s_;      // the next one of `tables_`
  double change_s_;    // of `expressions_`; infinite: none known
  double searched_s_;  // end of the searched interval
};

}  // namespace portwave
