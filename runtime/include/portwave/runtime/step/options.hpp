#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "portwave/coupling/energy/certificate.hpp"
#include "portwave/coupling/method/method.hpp"
#include "portwave/coupling/method/number_range.hpp"
#include "portwave/runtime/parallel/arena.hpp"
#include "portwave/runtime/parallel/budget.hpp"
#include "portwave/runtime/parallel/executor_kind.hpp"
#include "portwave/runtime/parallel/grain.hpp"
#include "portwave/runtime/parallel/profile.hpp"
#include "portwave/runtime/ranks/ranks.hpp"
#include "portwave/runtime/signals/signal_graph.hpp"
#include "portwave/runtime/step/events.hpp"
#include "portwave/subsystems/base/export.hpp"

namespace PORTWAVE_EXPORT portwave {

/// Macro-steps that choose their own size: on the ladder step_s·2⁻ᵏ, or freely without waves (step-size.md).
struct StepSizes {
  /// Tolerance of the local error of a step, as an amplitude: √ of a part's error energy, relative to the
  /// largest energy of motion that a part of its kind in its island has had, or to a millionth of that of
  /// any part there. In [1e-13, 0.1].
  double tolerance = 1e-6;
  /// Shortest step [s]; 0: no limit.
  double smallest_s = 0.0;
  /// A step in which a watched state passes its level ends at most this long after that [s]; 0:
  /// kEventShare of step_s.
  double event_tolerance_s = 0.0;

  static constexpr double kEventShare = 1e-9;
  static NumberRange tolerances() { return {.minimum = 1e-13, .maximum = 0.1}; }
};

/// How the stepper treats states that violate the constraints of rigid joints, at the start, where an input
/// jumps, and where a part or the states were changed (docs/concepts/starts.md).
enum class Start {
  consistent,  ///< the impulse of physics acts: states jump to where the joints hold (Stepper::impulses)
  as_given,  ///< stepped as they are; Stepper::starts_at_odds reports them
  refuse,    ///< refused: ConfigError at the start, StepError before a step
};

struct StepperOptions {
  double step_s = 0.01;                 ///< macro-step h > 0; with `sizes` the largest one
  std::optional<StepSizes> sizes = {};  ///< empty: all steps are of size step_s
  double start_s =
      0.0;  ///< time at which the run begins, of any sign; step n ends at start_s + (n + 1) h
  Start start = Start::consistent;
  /// With `sizes`, CouplingMethod::automatic_with_stages(0) also chooses the number of stages, as it does for
  /// a scenario file that gives none.
  CouplingMethod method = CouplingMethod::automatic();
  /// Sensors, controllers and actuators: sampled before each step, their outputs held over it. Null:
  /// none. Of methods without waves: kick-drift and taylor.
  std::shared_ptr<const SignalGraph> signals = {};
  /// Time between samples of the graph [s]. With `sizes` > 0; steps end there. With steps of one size a
  /// whole number of them, or 0: it is sampled before every step.
  double signals_every_s = 0.0;
  /// Quantities watched for events, beside the levels that parts report (Subsystem::state_levels).
  std::vector<Watch> watches = {};
  /// For a comparison with this run: steps of kicks and drifts and of Taylor series, also those that were halved, are
  /// taken as two halves, and so are the parts of a damped step behind a jump of an input.
  bool halves_once_more = false;
  Certify certify = Certify::energy;
  int threads =
      1;  ///< ≥ 1; with 1, `automatic` is `serial`. Fewer where the system gives this user fewer
  Grain grain = {};
  ExecutorKind executor = ExecutorKind::automatic;
  /// Its workers help, as many as `threads` and the arena allow; null: the stepper's own workers. Not with
  /// `graph`.
  std::shared_ptr<Arena> arena = {};
  /// Processes that step the system together, including this one; null: this one alone. Results do not
  /// depend on them. Needs `automatic` or `serial`, no `time`, and the same options everywhere.
  std::shared_ptr<Ranks> ranks = {};
  TimeBudget time = {};
  /// Polled while a step waits for its pace, which then begins, and between iterations of a window,
  /// which then fails.
  std::function<bool()> interrupted = {};
  bool timed = false;  ///< fill StepReport::times; always so with a time budget
  /// Measures some steps, for Stepper::profile. Steps are then `timed`; when off, it costs nothing.
  std::optional<ProfileOptions> profile = {};
};

}  // namespace portwave
