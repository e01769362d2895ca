#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "portwave/coupling/network/network_model.hpp"
#include "portwave/coupling/network/network_trials.hpp"

namespace portwave {

class StateArchive;

/// The error of a step that was tried, in energy as in StepErrorEstimate: ½eᵀ∇²H e of a part beside the largest energy
/// of motion that any part of its kind in its island has had so far, or a millionth of what any part there has had.
/// Attempts that are rejected count for that too, unless their error is larger than their motion: a motion that begins
/// as a power of time has an error that is a constant share of it, however short the step.
class MotionScales {
 public:
  /// Both are used at construction only.
  MotionScales(const System& system, std::span<const NetworkBlock> blocks);

  /// The states from which motion counts: those at the start of the run.
  std::span<const double> start() const { return start_; }
  /// By block, for NetworkTrials::measure.
  std::span<NetworkTrials::Energies> energies() { return energies_; }
  /// The largest error out of `energies`, as an amplitude; rounding is no error. Infinite if it is not a number.
  double amplitude();
  /// The step they are of was committed.
  void accept();
  /// The part with the largest share in the error that was found last; −1: none.
  int worst_part() const { return worst_part_; }

  std::size_t bytes() const;
  void archive(StateArchive& archive);

 private:
  struct Kind {
    double scale_J = 0.0;  ///< largest so far
    double next_J = 0.0;   ///< with the step that was tried
    int island = 0;
  };

  std::vector<double> start_;
  std::vector<NetworkTrials::Energies> energies_;
  std::vector<int> part_of_block_, kind_of_block_;
  std::vector<Kind> kinds_;
  std::vector<double> island_J_;  ///< the largest of its kinds, attempts that agree included
  std::vector<double> moved_J_, apart_J_;  ///< of an attempt
  int worst_part_ = -1;
};

}  // namespace portwave
