#pragma once

#include <vector>

#include "portwave/coupling/system/system.hpp"

namespace portwave {

class StateArchive;

/// When the inputs of a system jump or have a kink, as far as that is known: knots of tables, and where
/// expressions change over (Signal::next_change).
class InputChanges {
 public:
  explicit InputChanges(const System& system);

  /// The first such time after `after_s`, as far as `reach_s` from there; infinite where there is none. To
  /// be asked for later and later times: expressions are looked at some way ahead.
  double next(double after_s, double reach_s);

  void archive(StateArchive& archive);

 private:
  std::vector<const Signal*> tables_, expressions_;
  double kink_s_;      // the next one of `tables_`
  double change_s_;    // of `expressions_`; infinite: none known
  double searched_s_;  // up to where these have been looked at
};

}  // namespace portwave
