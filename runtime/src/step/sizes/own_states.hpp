#pragma once

#include <cstddef>
#include <vector>

#include "step/sizes/step_error.hpp"

namespace portwave {

class StateArchive;

/// Errors of states beside their own largest values: a part may have a fast state with little energy beside a slow one
/// with much, such as the current of a motor beside its speed.
class OwnStates {
 public:
  /// An error of a state beside its own largest value, above which its motion is not resolved, where that motion has at
  /// least such a share of the energy of its island: more than an inner iteration leaves.
  static constexpr double kJump = 0.08, kLeast = 1e-10;

  /// Of steps that `estimate` judges. `record`: the initial states.
  OwnStates(const WaveDiscretisation& waves, const StepErrorEstimate& estimate,
            const double* record);

  /// Of what the largest value is: of the steps before an attempted one, or with it. A motion that begins has errors
  /// that are a constant share of it.
  enum class Beside { earlier, all };

  /// After a step was accepted.
  void note(const double* record);
  /// The largest difference that the estimate has formed, relative to kJump of the largest value of its state; `next`:
  /// the attempted step.
  double error(const double* next, Beside beside);
  void archive(StateArchive& archive);

 private:
  const WaveDiscretisation& waves_;
  const StepErrorEstimate& estimate_;
  struct Judged {
    int part, states;
    std::size_t first;  // in largest_
  };
  std::vector<Judged> parts_;
  std::vector<double> largest_, scratch_;
};

}  // namespace portwave
