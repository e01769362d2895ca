#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "portwave/coupling/system/system.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/runtime/step/step_report.hpp"
#include "portwave/subsystems/core/stage_rule.hpp"

namespace portwave {

class StateArchive;

/// Looks for what inputs do within steps and steps do not see: a step knows an input at its stages, or by its mean
/// where it jumps. Judged are functions of time, which may be asked at other times too: no callbacks, no values
/// set from outside, and no switches, whose steps know how long they are closed.
///
///   undersampled  the mean of an input over steps is other than what they take for it, by a share of its size: a sine
///                 with less than about 3.3 steps of one stage per period is taken for a slower one, and a smooth pulse
///                 that is far shorter than a step may be passed over;
/// Parameters that follow functions of time are judged, too: over a step they have the value of its middle, so that
/// jumps to and fro within it are `undersampled`.
///
///   pulses        jumps to and fro within steps have the right mean, but more of the mean square than that, in
///                 islands with nonlinear parts: what these make of them has another mean.
///
/// Cost: in steps that are looked at, some evaluations of each input; in all steps about one of each expression, where
/// nothing is suspected.
/// Allocates at construction only.
class HiddenInputs {
 public:
  /// `parameters`: the graph that drives parameters before every step; null: none does. `widest`: pulses of a larger
  /// share of a step are seen by a method that looks at more places than its stages are.
  HiddenInputs(const System& system, const SignalGraph* parameters,
               double widest = std::numeric_limits<double>::infinity());
  bool empty() const { return inputs_.empty(); }

  /// The step `step`, of this length, with these stages.
  void look(std::int64_t step, double begin_s, double step_s, const StageRule& stages);
  /// Likewise, of every step: looks for smooth pulses that the step passes over.
  /// `is_cut`: the step was taken in parts, from jump to jump of parameters.
  void search(std::int64_t step, double begin_s, double step_s, const StageRule& stages,
              bool is_cut);
  /// The worst input; `resolved`: there is none.
  Resolution value() const;
  void archive(StateArchive& archive);

 private:
  struct Input {
    const Signal* signal;
    int part;
    int input;  ///< of the part; after its inputs the parameters, by number of SignalGraph::parameter_actuators
    bool is_among_nonlinear;  ///< some part of its island is nonlinear
    bool is_parameter = false;
  };
  /// Sums over the steps looked at, of squares: of the input, of its mean's error, and of what is hidden.
  struct Sums {
    double all = 0.0, off = 0.0, hidden = 0.0;
    std::int64_t off_at = -1, hidden_at = -1;  ///< the first such step
    std::int64_t pulses = 0;                   ///< steps with hidden ones
    // Of the search for smooth pulses: squares of the input in all steps, and of the means of missed pulses.
    double square = 0.0, missed = 0.0;
    double largest = 0.0;                                          ///< |u| of all values met
    double searched_s = -std::numeric_limits<double>::infinity();  ///< so far
    std::int64_t is_suspect =
        0;  ///< 1: something is in the stretch searched last, so that each step of it is searched
    std::int64_t missed_at = -1;  ///< the first step with such a pulse
    // Of a parameter: where it jumps next, as far as searched, and its value in the last step.
    double next_jump_s = -std::numeric_limits<double>::infinity();
    double last = 0.0;
  };
  static void search_jumps(const Signal& parameter, std::int64_t step, double begin_s,
                           double step_s, Sums& sums);
  static bool takes_mean(const Signal& input, double begin_s, double step_s,
                         const StageRule& stages, double mean);
  static void search_stretch(const Expression& input, double begin_s, double end_s, double steps,
                             bool is_parameter, Sums& sums);
  double widest_;
  std::vector<Input> inputs_;
  std::vector<Sums> sums_;
};

}  // namespace portwave
