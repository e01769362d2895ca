#pragma once

#include <limits>
#include <optional>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

class StateArchive;

/// A smooth pulse within a step, beyond all that the stages of the step see of the input.
struct InputPulse {
  double time_s;   ///< about where it is farthest
  double height;   ///< above or below what the stages see
  double width_s;  ///< of it, at half of its height; at most that of the step
};

/// Such a pulse in the step from `begin_s` on. `largest` is |u| of all values met so far, and is taken on: a pulse
/// leaves what the stages see by more than they span, and by more than a twentieth of that.
/// Errors: what the expression throws.
std::optional<InputPulse> find_pulse(const Expression& input, const StageRule& stages,
                                     double begin_s, double step_s, double& largest);

/// Smooth pulses of inputs that a step would pass over, as exp(-((t-50)/1e-6)^2) does between two stages: in between the
/// input leaves what it is at the ends and stages of the step, by more than these differ. Known are expressions of the
/// time, by interval arithmetic (Expression::farthest_outside); what changes over is known already (InputChanges). Other
/// variation the estimate of errors judges.
/// Cost: per input and step, its values there and one evaluation over the interval; some dozen where that does not
/// decide. Allocates at construction only.
class InputPulses {
 public:
  InputPulses(const System& system, const StageRule& stages);

  /// Whether an input has a pulse within the step from `begin_s` on that its stages do not see.
  bool within(double begin_s, double step_s);
  void archive(StateArchive& archive);

 private:
  struct Input {
    const Expression* of;
    double largest = 0.0;                                       ///< |u| of all values met
    double pulse_s = -std::numeric_limits<double>::infinity();  ///< the last one found; −∞: none
    double width_s = 0.0;                                       ///< of it
  };
  /// Whether a step is too long beside the pulse found last: steps shrink towards it with their distance from it, down
  /// to a quarter of its width, so that its flanks are not passed over either.
  static bool is_too_long(const Input& input, double begin_s, double step_s);
  StageRule stages_;
  std::vector<Input> inputs_;
};

}  // namespace portwave
