#pragma once

#include <cstdint>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/step/step_report.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

class StateArchive;

/// Looks for what inputs do within steps and steps do not see: a step knows an input at its stages, or by its mean
/// where it jumps. Judged are functions of time, which may be asked at other times too: no callbacks, no values
/// set from outside, and no switches, whose steps know how long they are closed.
///
///   undersampled  the mean of an input over steps is other than what they take for it, by a share of its size: a sine
///                 with less than about 3.3 steps of one stage per period is taken for a slower one;
///   pulses        jumps to and fro within steps have the right mean, but more of the mean square than that, in
///                 islands with nonlinear parts: what these make of them has another mean.
///
/// Cost: in steps that are looked at, some evaluations of each input. Allocates at construction only.
class HiddenInputs {
 public:
  explicit HiddenInputs(const System& system);

  /// The step `step`, of this length, with these stages.
  void look(std::int64_t step, double begin_s, double step_s, const StageRule& stages);
  /// The worst input; `resolved`: there is none.
  Resolution value() const;
  void archive(StateArchive& archive);

 private:
  struct Input {
    const Signal* signal;
    int part, input;
    bool is_among_nonlinear;  ///< some part of its island is nonlinear
  };
  /// Sums over the steps looked at, of squares: of the input, of its mean's error, and of what is hidden.
  struct Sums {
    double all = 0.0, off = 0.0, hidden = 0.0;
    std::int64_t off_at = -1, hidden_at = -1;  ///< the first such step
    std::int64_t pulses = 0;                   ///< steps with hidden ones
  };
  std::vector<Input> inputs_;
  std::vector<Sums> sums_;
};

}  // namespace portwave
